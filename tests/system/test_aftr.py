"""An AFTR of the Linux kernel, in a kernel of its own: one B4, a hundred that share an address, and planted faults."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import QUICK, RELAYED_FRAMES, KeptBed, check_series, faults, netns_document, relayed_with
from tests.system.machine import missing_for_guest, nothing_compared
from tests.system.stateful_beds import ONE_SIZE, stateful_campaign
from tests.system.test_stateful import assert_counts_agree, measured

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.overload.result import OverloadResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.session import measure

MISSING = missing_for_guest("conntrack")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"an AFTR in a kernel of its own needs {', '.join(MISSING)}"),
]

RECIPE = "linux-aftr"

COUNT = 1000


def b4s(count: int) -> dict[str, Any]:
    """Return the left side with so many B4s: 2001:2::2 and up."""
    hosts = {"hosts": {"offset": 14, "mode": "pseudorandom", "range": f"2-{count + 1}"}}
    return {"ipv6": {"address": "2001:2::2", **hosts}}


def connections(b4s: int, hosts: int = 1, count: int = COUNT) -> dict[str, Any]:
    """Return connections that are spread over B4s and the hosts behind them."""
    ports = f"10000-{10_000 + count // (b4s * hosts) - 1}"
    return {"count": count, "rate": "20k", "timeout": "200ms", "gap": "100ms", "source_ports": ports}


@pytest.mark.parametrize(
    ("number", "hosts"),
    [pytest.param(1, 1, marks=pytest.mark.nightly("fewer of the same")), (100, 1), (10, 10)],
)
def test_hosts_with_the_same_address_are_told_apart_by_their_b4(number: int, hosts: int, tmp_path: Path) -> None:
    behind = {"hosts": {"offset": 2, "mode": "pseudorandom", "range": f"1-{hosts}"}} if hosts > 1 else {}
    campaign = stateful_campaign(
        RECIPE,
        repetitions=1,
        left=b4s(number),
        b4={"address": "10.0.0.1", **behind},
        connections=connections(number, hosts),
        traffic=ONE_SIZE | {"mix": "9/10"},
    )
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)


FIRST_PORT, PORTS = 2000, 100


def limited(tmp_path: Path, number: int) -> Path:
    """Write the recipe with so many public ports for each B4: a limit, as an AFTR has it for a subscriber."""
    ports = ((FIRST_PORT + b4 * PORTS, FIRST_PORT + (b4 + 1) * PORTS - 1) for b4 in range(number))
    each = "\n".join(
        f'oifname "{{right}}" ip saddr 100.64.0.{b4} meta l4proto udp masquerade to :{first}-{last}'
        for b4, (first, last) in enumerate(ports, 1)
    )
    return changed_recipe(tmp_path, RECIPE, ('oifname "{right}" masquerade', each))


@pytest.mark.nightly("its searches take two minutes and a half")
@pytest.mark.parametrize(("number", "capacity"), [(1, PORTS), (10, 600), (100, 600)])
def test_the_limit_of_a_b4_and_the_size_of_the_table_are_two_results(
    number: int, capacity: int, tmp_path: Path
) -> None:
    campaign = stateful_campaign(
        limited(tmp_path, number),
        repetitions=1,
        frame_loss=None,
        gateway={"table": {"size": 600}},
        left=b4s(number),
        connections={"source_ports": connections(number)["source_ports"], "timeout": "100ms", "gap": "50ms"},
        connection_tracking_table_capacity={
            "start": capacity - 20, "maximum": 1000, "maximum_rate": 2000, "rate_resolution": 1000, "resolution": 1,
        },
    )  # fmt: skip
    result, _ = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    (search,) = run.repetitions
    assert (search.kind, search.lower_bound, search.overflow) == ("found", capacity, "refused")


@pytest.mark.nightly("its searches and its series start three kernels")
def test_rates_and_delays_are_measured_and_a_series_is_made(tmp_path: Path) -> None:
    search = {"maximum": "20k", "resolution": "40%", "search_duration": QUICK["duration"]}
    tables = {
        "throughput": search,
        "delay": {"load": "50%", "duration": "1s", "first_tag": "200ms", "tags": 100},
        "connection_establishment_rate": {"maximum": "20k"},
    }
    campaign = stateful_campaign(
        RECIPE, repetitions=1, frame_loss=None, left=b4s(100), connections=connections(100) | {"rate": "50%"}, **tables
    )
    result, _ = measured(campaign, tmp_path / "result")
    establishment, throughput, _ = result.runs
    assert isinstance(throughput, ThroughputResult) and isinstance(establishment, EstablishmentResult)
    for run in (throughput, establishment):
        (repetition,) = run.repetitions
        if repetition.kind == "tester_limited":
            nothing_compared("the Tester could not offer a load")
        else:
            assert repetition.lower_bound is not None and repetition.lower_bound >= 500
    document = {
        **netns_document(RECIPE, left=b4s(1), connections=connections(1)),
        "traffic": ONE_SIZE,
        "repetitions": 1,
    }
    del document["left"]["ipv6"]["hosts"]["range"]
    document["connections"].pop("source_ports")
    vary = """
"left.ipv6.hosts.range" = ["2-2", "2-101"]
"connections.source_ports" = ["10000-10999", "10000-10009"]
"""
    check_series({**document, "frame_loss": {"rates": [1000]}}, vary, tmp_path)


NET = "2001:2:0:10:"
"""Network of B4s behind a router: the gateway asks for no neighbour before it sends to what nobody is."""
INSIDE, OUTSIDE = 'oifname "dslite"', f"meta l4proto 4 ip6 daddr {NET}:2"
PLANTED: dict[str, tuple[str, str, set[str]]] = {
    "another B4's tunnel": (OUTSIDE, f"ip6 daddr set {NET}:3", {"tunnel_destination", "other_subscriber"}),
    "nobody's tunnel": (OUTSIDE, f"ip6 daddr set {NET}:ffff", {"tunnel_destination"}),
    "another end of the tunnel": (OUTSIDE, "ip6 saddr set 2001:2:0:ff::2", {"tunnel_source"}),
    "outer hop limit": (OUTSIDE, "ip6 hoplimit set 3", {"tunnel_header"}),
    "outer traffic class": (OUTSIDE, "ip6 dscp set 1", {"tunnel_traffic_class"}),
    "kept TTL": (INSIDE, "ip ttl set 10", {"hop_limit"}),
    "changed traffic class inside": (INSIDE, "ip dscp set 1", {"traffic_class"}),
    "another address": (INSIDE, "ip daddr set 10.0.0.9", {"unknown_connection", "destination_address"}),
}
"""Which replies nftables changes (those to the first of two B4s, or all), what it does, and the reasons counted."""


@pytest.fixture(scope="module")
def aftrs() -> Iterator[KeptBed]:
    def two_b4s(way: str) -> Campaign:
        left = {"address_mode": "nexthop", "ipv6": {**b4s(2)["ipv6"], "address": f"{NET}:2", "router": "2001:2::2"}}
        return stateful_campaign(
            RECIPE, left=left, connections=connections(2), traffic=ONE_SIZE | {"direction": way}, repetitions=1
        )

    with contextlib.closing(KeptBed(two_b4s)) as result:
        yield result


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_and_counted(name: str, aftrs: KeptBed) -> None:
    which, change, expected = PLANTED[name]
    counts, changed = relayed_with(aftrs.get("reverse"), which, change)
    assert (counts.received, faults(counts)) == (RELAYED_FRAMES - changed, dict.fromkeys(expected, changed))


@pytest.mark.nightly("ten seconds; echo requests through tunnels of an AFTR are tried in every run")
def test_clients_behind_b4s_get_a_reply_to_every_request(aftrs: KeptBed, tmp_path: Path) -> None:
    """Echo requests of four B4s, whose hosts all have one address and the same identifiers."""
    aftrs.close()
    right = {"ipv4": {"address": "198.19.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "2-257"}}}
    asked = {"clients": [4], "destinations": 64, "count": 3}
    document = netns_document(RECIPE, left=b4s(8), right=right, overload=asked, repetitions=1)
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, OverloadResult)
    (point,) = run.points
    assert point.counts.requests == point.counts.replies == (4 * 64 * 3,)
    assert point.faults == {}

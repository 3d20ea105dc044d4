"""Stateful gateways of the kernel and tayga, counted from both sides: phases, capacity, tear-down, planted faults."""

from __future__ import annotations

import html
import os
import shutil
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.journals import read_journal
from tests.judge import judged
from tests.recipes import changed_recipe
from tests.system.beds import PATIENT, QUICK, faults, valid_of
from tests.system.machine import nightly_but, nothing_compared
from tests.system.stateful_beds import CONNECTIONS, ONE_SIZE, stateful_campaign

from gatemark.campaign.events import Event
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.phases import StatefulTrials
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, TestBedError
from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.connection_tracking_table_capacity.report import OVERFLOWS, size_words
from gatemark.procedures.connection_tracking_table_capacity.result import NO_CAPACITY, CapacityResult
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.stored import CampaignResult
from gatemark.trial.record import TrialRecord

MISSING = [tool for tool in ("ip", "nft", "iptables", "conntrack", "tayga", "ethtool") if shutil.which(tool) is None]
if os.geteuid() != 0:
    MISSING.insert(0, "root")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"stateful gateways in namespaces need {', '.join(MISSING)}")

RECIPES = ("nft-nat44", "iptables-nat44", "nft-nat66", "tayga-nat64", "tayga-nat46")
COUNT = CONNECTIONS["count"]


def measured(campaign: Campaign, folder: Path, *, report: bool = False) -> tuple[CampaignResult, list[TrialRecord]]:
    """Measure a campaign; return its result and its trials."""
    result = measure(campaign, output=folder, report=report)
    return result, list(read_journal(ResultFolder.open(result.folder).journal_file))


def check_phase_one_faults(
    recipe: Path, validity: dict[str, Any], reasons: set[str], folder: Path, **tables: Any
) -> None:
    """Establish 100 connections through a gateway that does something wrong to each frame; all reasons are counted."""
    few = {"count": 100, "rate": "1k", "timeout": "200ms", "gap": "100ms", "retries": 0}
    campaign = stateful_campaign(recipe, repetitions=1, connections=few, validity=validity, **tables)
    said = ""
    try:
        measured(campaign, folder)
    except TestBedError as error:
        said = str(error)
    attempts = [
        record.connections.phase_one[-1]
        for record in read_journal(ResultFolder.open(folder).journal_file)
        if record.connections is not None
    ]
    valid = [attempt for attempt in attempts if attempt.verdict is not None]
    assert ("test phase 1 failed in every attempt" in said) == (attempts[-1] in valid)
    if not valid:
        nothing_compared("no valid trial")
    for attempt in valid:
        ((_, _, counts),) = attempt.report.counts()
        assert (counts.offered, counts.received, counts.faulty) == (100, 0, 100)
        # tayga writes no checksum in one of 65,536 packets of IPv6
        told = {
            reason: count for reason, count in faults(counts).items() if reason in reasons or reason != "udp_checksum"
        }
        assert told == dict.fromkeys(reasons, 100)


def check_capacity_of_ports(recipe: str, tables: dict[str, Any], ports: int, folder: Path) -> None:
    """Find how many connections to one destination a customer edge holds: as many as it has ports."""
    campaign = stateful_campaign(
        recipe, repetitions=1, frame_loss=None, **tables,
        connections={"rate": "2k", "timeout": "100ms", "gap": "50ms"},
        connection_tracking_table_capacity={
            "start": ports - 10, "maximum": ports + 10, "maximum_rate": "2k", "rate_resolution": "1900",
        },
    )  # fmt: skip
    result, _ = measured(campaign, folder)
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    (search,) = run.repetitions
    assert (search.kind, search.lower_bound, search.upper_bound) == ("found", ports, ports + 1)
    assert search.overflow == "refused"
    assert size_words(result.document.gateway, run) == "", "the port set is the limit, and not the table"


def assert_counts_agree(records: list[TrialRecord], count: int) -> None:
    """Both sides count the same connections after phase 1, and phase 2 makes and loses none.

    Frames may be lost, because whatever else this machine does takes the gateway's CPU; none may be wrong.
    """
    for record in valid_of(records):
        facts = record.connections
        assert facts is not None
        assert facts.counted_before == 0
        established = facts.phase_one[-1].report.connections
        assert established is not None
        assert (established.count, established.established) == (count, count)
        assert facts.counted_after_phase_one == count
        assert facts.counted_after_phase_two == count
        assert not [counts.faults for _, _, counts in record.report.counts() if counts.faulty]


@pytest.mark.parametrize(("recipe", "inside"), [*product(RECIPES, ("left", "right")), ("tayga-clat-nat44", "left")])
def test_tester_and_gateway_count_the_same_connections(recipe: str, inside: str, tmp_path: Path) -> None:
    traffic = {"frame_sizes": {"family": "ipv6" if recipe == "nft-nat66" else "ipv4", "octets": 128}}
    campaign = stateful_campaign(recipe, gateway={"inside": inside}, repetitions=1, traffic=traffic)
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["established"] == behaviour["port_preserved"] == COUNT
    assert behaviour["public_addresses"] == 1


def test_nothing_changes_where_ports_are_not_preserved(tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "nft-nat44", ("masquerade", "masquerade random"))
    _, records = measured(stateful_campaign(recipe, repetitions=1), tmp_path / "result")
    assert_counts_agree(records, COUNT)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["port_preserved"] < COUNT // 100


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("\nprefix 2001:2:0:6400::/96\n", "\nprefix 2001:2:0:6500::/96\n", "destination_address"),
        ("map 192.0.0.1 2001:2:0:4000::1", "map 192.0.0.1 2001:2:0:4000::9", "source_address"),
    ],
)
def test_another_prefix_or_address_of_a_clat_is_named(before: str, after: str, reason: str, tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "tayga-clat-nat44", (before, after))
    check_phase_one_faults(recipe, PATIENT | {"retries": 2}, {reason}, tmp_path / "result")


@pytest.mark.parametrize("recipe", ["nft-nat44", "tayga-nat64"])
def test_many_hosts_on_both_sides_and_background_beside_them(recipe: str, tmp_path: Path) -> None:
    ipv4 = {"offset": 2, "mode": "pseudorandom"}
    inside: dict[str, Any] = {"ipv4": {"address": "198.18.0.2", "hosts": ipv4 | {"range": "2-11"}}}
    if recipe == "tayga-nat64":
        hosts = {"offset": 14, "mode": "pseudorandom", "range": "2-11"}
        inside = {"ipv6": {"address": "2001:2::2", "hosts": hosts}}
    campaign = stateful_campaign(
        recipe,
        repetitions=1,
        left=inside,
        right={"ipv4": {"address": "198.19.0.2", "hosts": ipv4 | {"range": "2-5"}}},
        connections=CONNECTIONS | {"source_ports": "5000-5009"},
        traffic=ONE_SIZE | {"mix": "9/10"},
    )
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)


@pytest.mark.parametrize(("technology", "family"), [("nat44", "ipv4"), ("nat66", "ipv6")])
@pytest.mark.parametrize("inside", ["left", "right"])
def test_a_loop_back_returns_every_connection(technology: str, family: str, inside: str, tmp_path: Path) -> None:
    sides = {"ipv4": ("198.18.0.2", "198.19.0.2"), "ipv6": ("2001:2::2", "2001:2:0:8000::2")}[family]
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "testbed": {"kind": "loopback", "huge_pages": "never"},
                "gateway": {"technology": technology, "inside": inside},
                "left": {"port": "ring", family: {"address": sides[0]}},
                "right": {"port": "ring", family: {"address": sides[1]}},
                "repetitions": 1,
                "traffic": {"frame_sizes": {"family": family, "octets": 128}},
                "trial": QUICK,
                "validity": PATIENT,
                "connections": CONNECTIONS,
                "frame_loss": {"rates": ["5k"]},
            }
        )
    )
    _, records = measured(campaign, tmp_path / "result")
    (record,) = (record for record in records if record.verdict is not None)
    assert record.verdict is not None and record.verdict.passed, record.verdict
    assert record.report.connections is not None and record.report.connections.established == COUNT


def test_directions_one_by_one(tmp_path: Path) -> None:
    campaign = stateful_campaign("nft-nat44", repetitions=1, traffic=ONE_SIZE | {"direction": ["forward", "reverse"]})
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    observed = {tuple(direction.direction for direction in record.report.directions) for record in records}
    assert observed == {("forward",), ("reverse",)}


@pytest.mark.alone  # Linux has one size of the table for all namespaces
@pytest.mark.parametrize(
    ("size", "hash_size"), nightly_but({0}, "the same search of a smaller hash table", [(999, 262_144), (997, 1024)])
)
def test_capacity_is_what_the_table_was_set_to(size: int, hash_size: int, tmp_path: Path) -> None:
    """With a large hash table Linux refuses most connections beyond its limit, with a small one it evicts others.

    Both sizes are just below a number that is tried: what passes is tried once, what fails three times.
    """
    campaign = stateful_campaign(
        "nft-nat44",
        repetitions=1,
        frame_loss=None,
        gateway={"table": {"size": size, "hash_size": hash_size}},
        connections={"rate": "20k", "timeout": "100ms", "gap": "50ms"},
        connection_tracking_table_capacity={"start": 500, "maximum_rate": "40k", "rate_resolution": "30k"},
    )
    result, records = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    (search,) = run.repetitions
    assert (search.kind, search.lower_bound, search.upper_bound) == ("found", size, size + 1)
    over = [r for r in records if r.connections and (r.order.connections or 0) > size and r.verdict is not None]
    assert over and not any(record.verdict and record.verdict.passed for record in over)
    assert search.overflow in ("refused", "evicted")
    if hash_size == 1024:
        assert search.overflow == "evicted"
        assert search.lost_connections is not None


SHORT = """
ct timeout short { protocol udp; l3proto ip; policy = { unreplied : 1, replied : 1 } ; }
chain strangers { type filter hook input priority 0; iifname "{right}" drop; }
"""
BEYOND = {
    "expired": (SHORT, 'ct state new ct count over 200 ct timeout set "short"'),
    "unusable": ("", 'ct state new ct count over 200 ct mark set 1; iifname "{right}" ct mark 1 drop'),
}
"""Connections beyond 200 get a timeout of a second, as where timeouts shrink as a table fills, and the frames that come
to expired ones make no others; or their frames pass one way only, as where one half of a mapping is evicted."""


def capacity_with(
    rules: str, folder: Path, *, resolution: int, objects: str = "", rate: int = 200, **connections: Any
) -> tuple[CampaignResult, CapacityResult]:
    """Search for the capacity of a NAT44 from 150 to 299 connections, with rules of nftables before its own.

    They are reloaded whenever the table is cleared. `ct count` drops deleted connections a few at a time, and at most
    once per tick of the kernel's clock. In a burst it would still count those of earlier trials.
    """
    chain = f"{objects}\nchain planted {{\n type filter hook forward priority 0;\n {rules}\n }}\n chain postrouting {{"
    reloaded = 'clear_state = ["conntrack -F", "nft flush ruleset", "nft -f {dir}/rules.nft"]'
    campaign = stateful_campaign(
        changed_recipe(
            folder, "nft-nat44", ("chain postrouting {", chain), ('clear_state = ["conntrack -F"]', reloaded)
        ),
        repetitions=1,
        frame_loss=None,
        connections={"rate": rate, "timeout": "100ms", "gap": "50ms", **connections},
        connection_tracking_table_capacity={
            "start": 150, "maximum": 299, "maximum_rate": rate, "rate_resolution": rate * 3 // 4,
            "resolution": resolution,
            "beta": "90%", "gamma": "90%",
        },
    )  # fmt: skip
    result, _ = measured(campaign, folder / "result", report=True)
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    return result, run


@pytest.mark.parametrize(
    "fate", [pytest.param("expired", marks=pytest.mark.nightly("ten seconds, for timeouts to pass")), "unusable"]
)
def test_a_table_that_is_not_full_is_not_called_full(fate: Literal["expired", "unusable"], tmp_path: Path) -> None:
    objects, rules = BEYOND[fate]
    rate = 200 if fate == "expired" else 2000  # slowly enough for a second to pass
    result, run = capacity_with(rules, tmp_path, objects=objects, resolution=149, rate=rate)
    (search,) = run.repetitions
    assert (search.kind, search.lower_bound, search.overflow, search.lost_connections) == ("found", 150, fate, "newest")
    assert OVERFLOWS[fate] in html.unescape((result.folder / "report.html").read_text())


IN_USE = "ct timeout short { protocol udp; l3proto ip; policy = { unreplied : 300, replied : 3 } ; }"


@pytest.mark.alone
@pytest.mark.nightly("a trial of eight seconds; tests of the engine and of causes have the same law")
def test_a_timeout_of_connections_in_use_is_named(tmp_path: Path) -> None:
    """Linux gives a connection of more than two seconds this timeout with its second reply; its host states another."""
    chain = f'{IN_USE}\nchain planted {{\n type filter hook forward priority 0;\n ct timeout set "short"\n }}'
    campaign = stateful_campaign(
        changed_recipe(tmp_path, "nft-nat44", ("chain postrouting {", f"{chain}\n chain postrouting {{")),
        repetitions=1,
        traffic={"direction": "reverse", "frame_sizes": {"family": "ipv4", "octets": [64]}},
        connections={"count": 30_000, "rate": 20_000, "timeout": "200ms", "gap": "100ms"},
        trial={"duration": "8s", "settle": "0s", "learn": "200ms", "drain": "300ms", "rest": "50ms"},
        frame_loss={"rates": [4000]},
    )
    _, records = measured(campaign, tmp_path / "result")
    if (last := records[-1]).verdict is None:
        nothing_compared("no valid trial")
        return
    (cause,) = last.causes
    assert (cause.cause, cause.what) == ("age", "frames of connections that had been silent for about 3s")
    assert "after 2 or more frames in this trial" in cause.sentence


def test_a_filtered_port_is_no_full_table(tmp_path: Path) -> None:
    """A third destination port is needed for more than 200 connections."""
    _, run = capacity_with("udp dport 3 drop", tmp_path, resolution=20, rate=2000, source_ports="1024-1123")
    (search,) = run.repetitions
    assert (search.kind, search.overflow, run.capacity) == ("found", "filtered", None)
    assert run.refused is not None and run.refused.startswith(NO_CAPACITY["filtered"])
    assert any("destination port 3" in cause.what for cause in run.losses)


def test_tear_down_deletes_every_connection_and_is_timed(tmp_path: Path) -> None:
    campaign = stateful_campaign(
        "nft-nat44", repetitions=3, frame_loss=None, connections=CONNECTIONS | {"count": 20_000},
        connection_tear_down_rate={},
    )  # fmt: skip
    result, records = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    times: dict[int | None, list[int]] = {0: [], 20_000: []}
    for record in records:
        if record.verdict is not None and record.connections is not None:
            assert record.verdict.passed
            assert record.connections.tear_down_ns is not None
            times[record.order.connections].append(record.connections.tear_down_ns)
    assert len(times[0]) == len(times[20_000]) == 3
    assert min(times[0]) > 0 and max(times[20_000]) < 5_000_000_000
    assert isinstance(run, TearDownResult)
    assert (len(run.full_ns.values), len(run.empty_ns.values)) == (3, 3)


def test_connections_that_a_tear_down_leaves_are_named_and_not_in_the_rate(tmp_path: Path) -> None:
    """The command deletes the connections of one of four hosts."""
    recipe = changed_recipe(
        tmp_path,
        "nft-nat44",
        ('tear_down = "conntrack -F"', 'tear_down = "conntrack -D -p udp -s 198.18.0.2 2>/dev/null || :"'),
    )
    four = {"mode": "increasing", "offset": 2, "range": "2-5"}
    campaign = stateful_campaign(
        recipe,
        repetitions=1,
        frame_loss=None,
        left={"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": four}},
        connection_tear_down_rate={},
    )
    result, records = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, TearDownResult)
    counted = [
        record.connections.counted_after_tear_down
        for record in records
        if record.verdict is not None and record.connections is not None and record.order.connections
    ]
    (left,) = counted
    assert left is not None and 0 < left < COUNT
    assert run.left is not None and run.left.values == (left,)
    assert (run.deleted, run.refused) == (COUNT - left, None)
    assert judged([result.folder]) == []


PLANTED = {
    "drops every second new connection": (
        "ct state new numgen inc mod 2 == 1 drop",
        "1000 of 2000 connections were not established",
    ),
    "forwards untranslated": ("accept", "untranslated_source 2000"),
}


@pytest.mark.alone
@pytest.mark.parametrize("fault", PLANTED)
def test_a_gateway_that_loses_connections_is_named_and_never_measured(fault: str, tmp_path: Path) -> None:
    rule, reason = PLANTED[fault]
    chain = f"chain planted {{\n type filter hook forward priority 0;\n {rule}\n }}\n chain postrouting {{"
    changes = [("chain postrouting {", chain)]
    if fault == "forwards untranslated":
        changes.append(('oifname "{right}" masquerade', 'oifname "{right}" accept'))
    recipe = changed_recipe(tmp_path, "nft-nat44", *changes)
    campaign = stateful_campaign(recipe, repetitions=1, connections=CONNECTIONS | {"retries": 1})
    with pytest.raises(TestBedError) as raised:
        measured(campaign, tmp_path / "result")
    assert "test phase 1 failed in every attempt" in str(raised.value)
    assert reason in str(raised.value)
    records = read_journal(ResultFolder.open(tmp_path / "result").journal_file)
    assert records and not any(record.verdict for record in records)
    assert all(record.connections and record.connections.counted_after_phase_two is None for record in records)


def test_a_gateway_that_loses_connections_has_no_establishment_rate(tmp_path: Path) -> None:
    rule = PLANTED["drops every second new connection"][0]
    chain = f"chain planted {{\n type filter hook forward priority 0;\n {rule}\n }}\n chain postrouting {{"
    campaign = stateful_campaign(
        changed_recipe(tmp_path, "nft-nat44", ("chain postrouting {", chain)),
        repetitions=1,
        frame_loss=None,
        connection_establishment_rate={"maximum": "20k", "minimum": "5k", "resolution": "5k"},
    )
    result, _ = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, EstablishmentResult)
    assert run.rate is None
    assert run.limited_by == "gateway"


def test_a_table_that_cannot_be_cleared_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = StatefulTrials.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "empty_wait_s", 0.5)  # in place of 10 s
    recipe = changed_recipe(tmp_path, "nft-nat44", ('clear_state = ["conntrack -F"]', 'clear_state = ["true"]'))
    with pytest.raises(TestBedError, match="still holds 2000 connections"):
        measured(stateful_campaign(recipe, repetitions=2), tmp_path / "result")


@pytest.mark.alone  # Linux has one size of the table for all namespaces
def test_settings_of_the_machine_hold_for_the_campaign_and_are_as_before_afterwards(tmp_path: Path) -> None:
    """The size of the table, and the leave of the workers to run without being stopped for 50 ms of each second."""
    wanted = {"net/netfilter/nf_conntrack_max": "54321", "kernel/sched_rt_runtime_us": "-1"}
    files = {name: Path("/proc/sys") / name for name in wanted}
    before = {name: file.read_text() for name, file in files.items()}
    during: list[dict[str, str]] = []

    def look(_: Event) -> None:
        during.append({name: file.read_text().strip() for name, file in files.items()})

    campaign = stateful_campaign("nft-nat44", repetitions=1, gateway={"table": {"size": 54_321}})
    measure(campaign, output=tmp_path / "result", on_event=look)
    assert during
    assert all(observed == wanted for observed in during)
    assert {name: file.read_text() for name, file in files.items()} == before


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "UDP timeout too short": ({"gateway": {"table": {"udp_timeout": "1s"}}}, "gateway.table.udp_timeout"),
    "table below N": ({"gateway": {"table": {"size": 1999}}}, "gateway.table.size"),
    "port space too small": (
        {
            "left": {
                "ipv4": {
                    "address": "198.18.0.2",
                    "hosts": {"offset": 2, "mode": "pseudorandom", "range": "2-101"},
                }
            },
            "connections": CONNECTIONS | {"count": "10M", "destination_ports": "1-2"},
        },
        "connections",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_cannot_be_measured_is_refused_before_anything_is_made(mistake: str, tmp_path: Path) -> None:
    tables, key = REFUSED[mistake]
    with pytest.raises(ConfigError) as raised:
        measured(stateful_campaign("nft-nat44", **tables), tmp_path / "result")
    assert key in str(raised.value)
    assert not (tmp_path / "result").exists()

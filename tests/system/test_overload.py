"""Overload by echo requests, through gateways whose truth is known and through real ones.

A closed loop obeys one law: as many requests are answered in a second as the gateway's capacity lets through, or as
there are slots for one round trip, whichever is less. The reference gateway has both in its file; what the Tester adds
to a round trip is measured on the same links without any delay.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.system.beds import PATIENT
from tests.system.machine import missing, nightly_but, nothing_compared

from gatemark.calibrate.base import campaign_of, gateway_of
from gatemark.calibrate.links import Links, ReferenceTestBed, open_links
from gatemark.calibrate.model import Check
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign, recipe_text
from gatemark.dut.steering import CorePlan, plan_cores, stepping_back, usable_cpus
from gatemark.preflight import check_gateway_path
from gatemark.procedures.overload.result import OverloadPoint, OverloadResult
from gatemark.refdut.document import Delay, Flow, Selector, Table
from gatemark.refdut.process import RefDut, find_refdut
from gatemark.results.toml_text import to_toml
from gatemark.session import measure
from gatemark.technology import TECHNOLOGIES, TechnologyName
from gatemark.tester import Equipment

MISSING = missing("ip", "nft", "tayga", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

SECOND = 10**9
CAPACITY, DELAY_NS, WINDOW = 8000, 2_500_000, 4
DESTINATIONS = 12
"""Few, so that a trial lasts 90 to 130 ms: on some machines a thread of the kernel alone takes the reference gateway's
CPU for 4 ms seven times a second, and a trial in which that happens is repeated."""
CLIENTS = (1, 2, 4, 8)
WITHIN = 0.02
PACE_NS = 10_000_000
ATTEMPTS = 12
"""Of a trial in which Tester and reference gateway must keep their times."""
UNKEPT_NS = 500_000
"""A trial in which the reference gateway did not look at its ports for longer, or sent a packet later, is repeated; so
is one in which the Tester was that late: in a closed loop, what it loses is missing from the rate."""
HOSTS = {"offset": 2, "mode": "increasing"}
TIMES = {"settle": "0s", "learn": "100ms", "drain": "100ms", "rest": "100ms"}
"""Counts do not depend on when a request was sent."""


@pytest.fixture(scope="module")
def links() -> Iterator[tuple[Links, CorePlan]]:
    cores = plan_cores(usable_cpus())
    with open_links("memif", cores) as both:
        yield both, cores


def through_reference(
    links: tuple[Links, CorePlan],
    folder: Path,
    overload: Mapping[str, Any],
    *,
    forward: Flow | None = None,
    reverse: Flow | None = None,
    technology: TechnologyName = "router44",
    subscribers: int = 1,
    unkept_ns: int | None = UNKEPT_NS,
) -> OverloadResult:
    """Measure the reference gateway, a router unless said otherwise, with these flows; None: only counts matter."""
    is_stateful = TECHNOLOGIES[technology].is_stateful
    both, cores = links
    lateness_max = "5ms" if unkept_ns is None else f"{unkept_ns}ns"
    check = Check(
        procedure="overload",
        name="overload",
        truth="",
        technology=technology,
        subscribers=subscribers,
        table=Table(size=100_000, udp_timeout_ns=300 * SECOND) if is_stateful else None,
        forward=forward or Flow(),
        reverse=reverse or Flow(),
        tables={
            "trial": TIMES,
            "overload": dict(overload),
            "validity": {"retries": ATTEMPTS - 1, "lateness_max": lateness_max},
        },
        compare=lambda _: (),
    )
    configuration = gateway_of(check, both.ports, str(both.folder / "control.sock"), cores.gateway[0])
    ask = f"{find_refdut()} ask {configuration.control}"
    document = campaign_of(check, both.ports, ask=ask, cores=(), configuration=configuration)
    for side in ("left", "right"):
        family = TECHNOLOGIES[technology].families[side == "right"]
        if family == "ipv4" or side == "right":
            hosts = {**HOSTS, "range": "2-9" if side == "left" else "2-4097"}
            document[side][family]["hosts"] = hosts if family == "ipv4" else {**hosts, "offset": 14}
    with RefDut(configuration, both.folder, netns=both.gateway_namespace) as gateway:
        equipment = Equipment(
            open_testbed=lambda campaign: ReferenceTestBed(
                campaign, both, gateway, poll_gap_max_ns=unkept_ns, late_departure_max_ns=unkept_ns
            )
        )
        with stepping_back():  # as `calibrate` does: the reference gateway shares its CPU with this process
            return only(
                measure(campaign_from_dict(document), output=folder / "result", equipment=equipment, report=False).runs
            )


def only(runs: Any) -> OverloadResult:
    (result,) = runs
    assert isinstance(result, OverloadResult)
    assert result.refused is None
    return result


def value(point: OverloadPoint, name: str) -> float:
    """The one value of a figure of one repetition."""
    figure = point.rtt_ns[name] if name in point.rtt_ns else getattr(point, name)
    assert len(figure.values) == 1, f"{point.clients} clients: no trial in which Tester and gateway kept their times"
    (known,) = figure.values
    assert known is not None, (point.clients, name)
    return float(known)


def is_the_gateways(point: OverloadPoint) -> bool:
    """Whether figures are the gateway's. Others, of a busy machine, say that they are not, and have no median."""
    if point.limited_by == "gateway":
        return True
    assert point.limited_by == "tester" and point.median(point.replies_per_second) is None
    assert point.repetitions or point.replies_per_second.values == ()
    nothing_compared(f"{point.clients} clients")
    return False


@pytest.mark.alone
def test_a_closed_loop_obeys_delay_and_capacity(links: tuple[Links, CorePlan], tmp_path: Path) -> None:
    """min(C, clients x W / (d + own round trip)) packets/s, within 2 %; to d belongs the service of a packet.

    All slots ask at once at the beginning, and these first requests wait for each other: in a loop that the capacity
    does not limit, the last one for the services of all others. In one that it limits, nobody is served in the first
    delay. A column is compared if Tester and gateway kept their times, by what they counted themselves.
    """
    short = {"timeout": "230ms"}  # an attempt of 0.6 s, as not each should meet a thread that wakes up every 512 ms
    for name in ("own", "law"):
        (tmp_path / name).mkdir()
    alone = through_reference(links, tmp_path / "own", {"clients": 1, "window": 1, "destinations": 500, **short})
    if not is_the_gateways(alone.points[0]):
        return
    added_ns = value(alone.points[0], "mean")
    result = through_reference(
        links,
        tmp_path / "law",
        {"clients": list(CLIENTS), "window": WINDOW, "destinations": DESTINATIONS, **short},
        forward=Flow(capacity=CAPACITY, queue=1000, delay=Delay(kind="fixed", values_ns=(DELAY_NS,))),
    )
    service_ns = SECOND / CAPACITY
    alone_ns = DELAY_NS + service_ns + added_ns
    rounds = DESTINATIONS * 11 // WINDOW
    for point in filter(is_the_gateways, result.points):
        slots = point.clients * WINDOW
        round_trip_ns = max(alone_ns, slots * service_ns)
        start_ns = alone_ns + (slots - 1) * service_ns - round_trip_ns
        law = slots * (rounds - 1) * SECOND / ((rounds - 1) * round_trip_ns + start_ns)
        first_mean_ns = alone_ns + (slots - 1) * service_ns / 2
        mean_ns = (first_mean_ns + (rounds - 1) * round_trip_ns) / rounds
        assert value(point, "replies_per_second") == pytest.approx(law, rel=WITHIN), point.clients
        assert value(point, "mean") == pytest.approx(mean_ns, rel=WITHIN), point.clients
        assert value(point, "outstanding") <= slots * (1 + WITHIN)
        assert point.counts.requests == point.counts.replies == (slots * rounds,)


@pytest.mark.alone
def test_replies_after_the_timeout_are_late(links: tuple[Links, CorePlan], tmp_path: Path) -> None:
    overload = {"clients": 1, "window": 1, "destinations": 5, "timeout": "5ms", "pace_without_reply": "50ms"}
    slow = Flow(delay=Delay(kind="fixed", values_ns=(10_000_000,)))
    (point,) = through_reference(links, tmp_path, overload, reverse=slow, unkept_ns=None).points
    assert (point.counts.requests, point.counts.late, point.counts.lost) == ((55,), (55,), (0,))
    assert value(point, "loss_percent") == 100


@pytest.mark.alone
def test_a_constant_rate_is_offered_whatever_comes_back(links: tuple[Links, CorePlan], tmp_path: Path) -> None:
    """At twice the capacity half of the requests are lost, but for those that the queue holds."""
    queue, rate, seconds = 10, 2 * CAPACITY, 0.1
    overload = {
        "mode": "constant_rate",
        "rates": [rate],
        "clients": 8,
        "destinations": 512,
        "duration": f"{seconds}s",
    }
    flow = Flow(capacity=CAPACITY, queue=queue)
    (point,) = through_reference(links, tmp_path, overload, forward=flow).points
    if not is_the_gateways(point):
        return
    assert point.counts.requests == (round(rate * seconds),)
    assert point.counts.replies[0] == pytest.approx(CAPACITY * seconds, abs=queue + 0.01 * CAPACITY * seconds)


@pytest.mark.alone
def test_a_border_relay_finds_customer_edges_by_the_identifiers_of_their_sets(
    links: tuple[Links, CorePlan], tmp_path: Path
) -> None:
    overload = {"clients": [1, 4], "destinations": 128}
    (tmp_path / "right").mkdir()
    result = through_reference(links, tmp_path / "right", overload, technology="map_t_br", unkept_ns=None)
    for point in result.points:
        requests = point.clients * 128 * 11
        assert point.counts.requests == point.counts.replies == (requests,)
        assert point.faults == {}
    (tmp_path / "wrong").mkdir()
    wrong = Flow(corrupt=(("other_edge_port", Selector(every=4)),))
    result = through_reference(
        links,
        tmp_path / "wrong",
        {**overload, "clients": 2},
        reverse=wrong,
        technology="map_t_br",
        unkept_ns=None,
    )
    (point,) = result.points
    requests = 2 * 128 * 11
    assert (point.counts.requests, point.counts.faulty) == ((requests,), (requests // 4,))
    assert point.faults == {"replies: identifier": requests // 4, "replies: other_edge_port": requests // 4}


@pytest.mark.alone
@pytest.mark.parametrize(
    "technology",
    [
        "aftr",
        *(
            pytest.param(name, marks=pytest.mark.nightly("fewer of the same"))
            for name in ("map_e_br", "lwaftr", "sixrd_br")
        ),
    ],
)
def test_requests_and_replies_go_through_tunnels(
    links: tuple[Links, CorePlan], tmp_path: Path, technology: TechnologyName
) -> None:
    for name, wrong in (("right", ()), ("wrong", (("other_subscriber", Selector(every=4)),))):
        (tmp_path / name).mkdir()
        (point,) = through_reference(
            links,
            tmp_path / name,
            {"clients": 4, "destinations": 128},
            reverse=Flow(corrupt=wrong),
            technology=technology,
            subscribers=8,
            unkept_ns=None,
        ).points
        requests = 4 * 128 * 11
        faulty = requests // 4 if wrong else 0
        assert (point.counts.requests, point.counts.arrived) == ((requests,), (requests,))
        assert (point.counts.replies, point.counts.faulty) == ((requests - faulty,), (faulty,))
        reasons = ("replies: other_subscriber", "replies: tunnel_destination") if wrong else ()
        assert point.faults == dict.fromkeys(reasons, faulty)


def recipe(folder: Path, base: str, *, rules: str = "", start: str | None = None) -> Path:
    """Write a built-in recipe with nftables rules of its own, or with another program that is the gateway."""
    text = recipe_text(base)
    document = tomllib.loads(text)
    files, commands = document.setdefault("files", {}), document["commands"]
    if rules:
        files["planted.nft"] = rules
        commands["setup"] = [*commands.get("setup", []), "nft -f {dir}/planted.nft"]
    if start is not None:
        files["start.sh"] = start
        commands["start"] = ["sh {dir}/start.sh"]
    path = folder / "gateway.toml"
    path.write_text(to_toml(document), encoding="utf-8")
    return path


def overload_campaign(name: str | Path, overload: Mapping[str, Any], family: str = "ipv4", **tables: Any) -> Campaign:
    """A gateway in namespaces; its 512 destinations are its neighbours."""
    clients = {
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": {**HOSTS, "range": "2-9"}},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1", "hosts": {**HOSTS, "offset": 14, "range": "2-9"}},
    }
    right = {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": {**HOSTS, "range": "2-513"}}
    document = {
        "repetitions": 1,
        "testbed": {"kind": "netns", "recipe": str(name)},
        "left": {"mtu": 1500, family: clients[family]},
        "right": {"mtu": 1500, "ipv4": right},
        "trial": TIMES,
        "validity": PATIENT,
        "overload": dict(overload),
        **tables,
    }
    return complete_campaign(campaign_from_dict(document))


def through_recipe(
    folder: Path,
    name: str | Path,
    overload: Mapping[str, Any],
    family: str = "ipv6",
    *,
    report: bool = False,
    **tables: Any,
) -> tuple[OverloadResult, Path]:
    """Measure that gateway."""
    result = measure(overload_campaign(name, overload, family, **tables), output=folder / "result", report=report)
    return only(result.runs), result.folder


@pytest.mark.parametrize("every", [4, 11])
@pytest.mark.parametrize("message", ["echo-request", "echo-reply"])
def test_every_kth_packet_that_is_dropped_is_lost(tmp_path: Path, every: int, message: str) -> None:
    """Loss is exactly 1/k; the slots go on after the pace without a reply."""
    rules = f"""table ip planted {{
    chain lossy {{
        type filter hook forward priority 0; policy accept;
        icmp type {message} numgen inc mod {every} 0 drop
    }}
}}"""
    overload = {"clients": 2, "destinations": 40, "pace_without_reply": "5ms", "timeout": "200ms"}
    result, _ = through_recipe(tmp_path, recipe(tmp_path, "linux-router4", rules=rules), overload, "ipv4")
    (point,) = result.points
    requests = 2 * 40 * 11
    arrived = requests if message == "echo-reply" else requests - requests // every
    assert (point.counts.requests, point.counts.arrived) == ((requests,), (arrived,))
    assert (point.counts.lost, point.counts.late, point.counts.faulty) == ((requests // every,), (0,), (0,))
    assert value(point, "loss_percent") == pytest.approx(100 / every)
    assert point.faults == {}


def test_a_reply_to_another_client_is_a_fault_of_its_own(tmp_path: Path) -> None:
    """Every eighth reply to the first client is sent to the second one."""
    rules = """table ip planted {
    chain mixed_up {
        type filter hook forward priority 0; policy accept;
        icmp type echo-reply ip daddr 198.18.0.2 numgen inc mod 8 0 ip daddr set 198.18.0.3
    }
}"""
    overload = {"clients": 2, "destinations": 40, "pace_without_reply": "1ms", "timeout": "200ms"}
    result, _ = through_recipe(tmp_path, recipe(tmp_path, "linux-router4", rules=rules), overload, "ipv4")
    (point,) = result.points
    assert point.counts.requests == (880,)
    assert point.counts.faulty == (55,)
    assert point.faults["replies: wrong_client"] == 55
    assert [client.faulty for client in point.clients_apart] == [(55,), (0,)]


RIGHT_OF_IPV6 = {
    "mtu": 1500,
    "ipv6": {
        "address": "2001:2:0:8000::2",
        "gateway": "2001:2:0:8000::1",
        "hosts": {**HOSTS, "offset": 14, "range": "2-513"},
    },
}


ANSWERING = ["tayga-nat64", "nft-nat44", "nft-nat66", "tayga-siit64", "linux-router4"]


@pytest.mark.parametrize("name", nightly_but({2, 3, 4}, "fewer of the same", ANSWERING))
def test_real_gateways_answer_every_request(tmp_path: Path, name: str) -> None:
    family = "ipv4" if name in ("nft-nat44", "linux-router4") else "ipv6"
    sides: dict[str, Any] = {"right": RIGHT_OF_IPV6} if name == "nft-nat66" else {}
    result, _ = through_recipe(tmp_path, name, {"clients": [1, 4], "destinations": 64}, family, **sides)
    for point in result.points:
        requests = point.clients * 64 * 11
        assert (point.counts.requests, point.counts.replies) == ((requests,), (requests,))
        assert point.faults == {}
        assert value(point, "minimum") > 0


@pytest.mark.alone
@pytest.mark.nightly("a quarter of a minute; other tests have its traffic, its page and its telemetry")
def test_the_paper_with_tayga_and_masquerade(tmp_path: Path) -> None:
    """Two numbers of clients: table, plots, CPU of the gateway's process, memory above the baseline."""
    result, folder = through_recipe(
        tmp_path,
        "tayga-nat64",
        {"clients": [1, 4], "destinations": 64, "count": 100},
        gateway={"telemetry": {"interval": "100ms", "processes": ["tayga"]}},
        report=True,
        trial={**TIMES, "settle": "500ms", "learn": "500ms"},
    )
    for point in result.points:
        assert sum(point.counts.lost) + sum(point.counts.late) <= sum(point.counts.requests) // 100
        if value(point, "maximum") < PACE_NS:  # no slot went on without its reply
            assert value(point, "outstanding") <= point.clients * WINDOW * (1 + WITHIN)
    host = [{sampled.series: sampled for sampled in point.host} for point in result.points]
    in_time = [sampled for sampled in host if "process.tayga.cpu" in sampled]
    if not in_time:
        nothing_compared("all clients were done before two samples were taken")
    for sampled in in_time:
        busy, memory = sampled["process.tayga.cpu"], sampled["process.tayga.memory"]
        assert busy.values.values[0] is not None and busy.values.values[0] > 1
        assert memory.above_baseline is not None and memory.above_baseline.values[0] is not None
    reason = result.judgement.reason
    if reason is not None:  # its figures are not the gateway's, and are not drawn
        assert "Tester" in reason
        nothing_compared(reason)
        return
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("against the number of clients") >= 3


@pytest.mark.alone
@pytest.mark.nightly("a quarter of a minute; columns after a collapse have unit tests")
def test_a_gateway_that_is_killed_is_named_and_the_next_column_measured(tmp_path: Path) -> None:
    """The program that is the gateway is killed as soon as its table has more than 200 entries."""
    start = """tayga --config {dir}/tayga.conf --nodetach &
gateway=$!
while sleep 0.02; do
    if test "$(conntrack -C)" -gt 200; then
        kill -KILL $gateway
        exit 137
    fi
done"""
    gateway = recipe(tmp_path, "tayga-nat64", start=start)
    overload = {"clients": [1, 8, 2], "destinations": 64, "count": 100, "timeout": "200ms", "duration": "5s"}
    result, _ = through_recipe(tmp_path, gateway, overload)
    works, killed, later = result.points
    assert (works.repetitions, killed.repetitions, later.repetitions) == (1, 0, 1)
    assert len(killed.collapses) == 1
    assert result.judgement.graceful is False
    assert [(check.rule, check.clients) for check in result.judgement.checks] == [("health", 8)]


def through_map_t(folder: Path, name: str | Path, sides: Mapping[str, Any], clients: list[int]) -> OverloadResult:
    """Measure a MAP-T gateway in namespaces with 64 destinations for each client."""
    document = {
        "repetitions": 1,
        "testbed": {"kind": "netns", "recipe": str(name)},
        **sides,
        "trial": TIMES,
        "validity": PATIENT,
        "overload": {"clients": clients, "destinations": 64, "pace_without_reply": "5ms", "timeout": "200ms"},
    }
    return only(measure(campaign_from_dict(document), output=folder / "result", report=False).runs)


RELAYED = {"right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": {**HOSTS, "range": "2-513"}}}}


def test_a_real_border_relay_answers_every_request(tmp_path: Path) -> None:
    result = through_map_t(tmp_path, "tayga-mapt-br", RELAYED, [1, 4])
    for point in result.points:
        requests = point.clients * 64 * 11
        assert (point.counts.requests, point.counts.replies) == ((requests,), (requests,))
        assert point.faults == {}


def test_a_relay_that_changes_an_identifier_is_found(tmp_path: Path) -> None:
    """Every fourth request leaves with the identifier of nobody's port."""
    rules = """table ip planted {
    chain mixed_up {
        type filter hook forward priority 0; policy accept;
        icmp type echo-request numgen inc mod 4 0 icmp id set 77
    }
}"""
    (point,) = through_map_t(tmp_path, recipe(tmp_path, "tayga-mapt-br", rules=rules), RELAYED, [2]).points
    requests = 2 * 64 * 11
    assert (point.counts.requests, point.counts.faulty) == ((requests,), (requests // 4,))
    assert point.faults == {"requests: identifier": requests // 4}


def test_a_real_customer_edge_keeps_to_the_identifiers_of_its_set(tmp_path: Path) -> None:
    sides = {
        "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": {**HOSTS, "range": "2-9"}}},
        "right": {
            "address_mode": "nexthop",
            "ipv6": {
                "address": "2001:2:0:6400::c613:2",
                "router": "2001:2:0:8000::2",
                "gateway": "2001:2:0:8000::1",
                "hosts": {**HOSTS, "offset": 14, "range": "2-513"},
            },
        },
    }
    result = through_map_t(tmp_path, "tayga-mapt-ce", sides, [1, 4])
    for point in result.points:
        requests = point.clients * 64 * 11
        assert (point.counts.requests, point.counts.replies) == ((requests,), (requests,))
        assert point.faults == {}


def test_the_tester_alone_is_measured_before(tmp_path: Path) -> None:
    """Its loops of the campaign's own columns are kept with the result, and stand beside the gateway's figures."""
    result, folder = through_recipe(
        tmp_path, "linux-router4", {"clients": [1, 8], "destinations": 64, "count": 100}, "ipv4", report=True
    )
    for point in result.points:
        assert point.tester_loop is not None, point.clients
        assert point.tester_loop.replies_per_second > 0
        assert point.tester_loop.rtt_ns is not None and point.tester_loop.rtt_ns > 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Tester alone, replies/s" in page and "it must reach 4 times the replies/s" in page


@pytest.mark.parametrize("faulty", [False, True])
def test_doctor_asks_where_the_campaign_does(tmp_path: Path, faulty: bool) -> None:
    rules = """table ip planted {
    chain closed {
        type filter hook forward priority 0; policy accept;
        icmp type echo-reply drop
    }
}"""
    name = recipe(tmp_path, "linux-router4", rules=rules) if faulty else "linux-router4"
    findings = {finding.check: finding for finding in check_gateway_path(overload_campaign(name, {"clients": 2}))}
    assert list(findings) == ["gateway path, echo requests", "gateway path, echo replies"]
    requests, replies = findings.values()
    assert (requests.status, requests.observed) == ("ok", "10 of 10 echo requests correct")
    assert (replies.status, replies.observed) == (
        ("failed", "0 of 10 replies correct") if faulty else ("ok", "10 of 10 replies correct")
    )

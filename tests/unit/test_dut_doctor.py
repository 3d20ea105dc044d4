"""Doctor: findings carry a remedy; the outcome of the path trial is put into words."""

import dataclasses
import json
from fractions import Fraction
from ipaddress import IPv4Address
from typing import Any

import pytest
from tests.trial_facts import blank

from gatemark import doctor, preflight
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.config.tables import DirectionTrafficModel, TrafficModel
from gatemark.facts import ONE_WAYS
from gatemark.findings import Finding
from gatemark.packets import Flow, build
from gatemark.trial.report import Counts, DirectionResult, Foreign, KeptFrame, PortFacts, TrialReport
from gatemark.trial.verdict import judge


def campaign(prefix: str = "2001:2:0:6400::/96", kind: str = "ports", port: str | None = None) -> Campaign:
    document = {
        "gateway": {
            "technology": "siit64",
            "prefix": prefix,
            "eam": [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}],
        },
        "testbed": {"kind": kind},
        "left": {"port": port, "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
        "right": {"port": port, "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    }
    return Campaign.model_validate_json(json.dumps(document))


def report(counts: Counts, icmp: dict[str, int] | None = None, **right: Any) -> TrialReport:
    direction = blank(
        DirectionResult,
        direction="forward",
        frames_per_second=20,
        intended_duration_ns=500_000_000,
        sending_ns=500_000_000,
        lateness_max_ns=0,
        gave_up=False,
        foreground=counts,
    )
    ports = {
        "left": blank(PortFacts, link_up=True, foreign=blank(Foreign, icmp=icmp or {})),
        "right": blank(PortFacts, **{"link_up": True, **right}),
    }
    return blank(TrialReport, directions=(direction,), ports=ports)


def test_checks_of_this_machine_never_raise_and_name_remedies() -> None:
    findings = doctor.run_checks()
    assert {"cpus", "clock", "memory", "rights"} <= {finding.check for finding in findings}
    assert all(finding.remedy for finding in findings if finding.status != "ok")
    assert all(set(finding.to_json()) == {"check", "status", "observed", "remedy"} for finding in findings)


def test_clock_watch_sees_steps_and_gaps() -> None:
    smallest, largest = doctor.watch_clock(0.01)
    assert 0 < smallest <= largest


def test_a_port_that_hears_the_other_one_is_named() -> None:
    counts = blank(Counts, intended=10, offered=10, received=10)
    assert list(preflight.judge_domain(report(counts))) == []
    (finding,) = preflight.judge_domain(report(counts, foreign=blank(Foreign, of_other_port=3)))
    assert (finding.check, finding.status) == ("broadcast domain", "warning")
    assert finding.observed == "the right port hears what the left port sends, without the gateway: 3 frames"


def test_whole_path_is_ok() -> None:
    counts = blank(Counts, intended=10, offered=10, received=10)
    (finding,) = preflight.judge_path(campaign(), report(counts))
    assert finding.status == "ok"


@pytest.mark.parametrize(
    ("counts", "icmp", "prefix", "said"),
    [
        (blank(Counts, intended=10), {}, "2001:2:0:6400::/96", "could not send"),
        (blank(Counts, intended=10, offered=10, lost=10), {}, "2001:2:0:6400::/96", "check routes"),
        (blank(Counts, intended=10, offered=10, lost=10), {}, "64:ff9b::/96", "RFC 6052"),
        (
            blank(Counts, intended=10, offered=10, lost=10),
            {"icmpv6 1/3": 4},
            "2001:2:0:6400::/96",
            "neighbour discovery",
        ),
        (
            blank(Counts, intended=10, offered=10, faulty=10, faults={"hop_limit": 10}),
            {},
            "2001:2:0:6400::/96",
            "hop_limit_decrement",
        ),
        (
            blank(Counts, intended=10, offered=10, faulty=10, faults={"fragment": 10, "length": 10}),
            {},
            "2001:2:0:6400::/96",
            "raise the MTU",
        ),
    ],
)
def test_broken_path_names_the_reason(counts: Counts, icmp: dict[str, int], prefix: str, said: str) -> None:
    (finding,) = preflight.judge_path(campaign(prefix), report(counts, icmp))
    assert finding.status == "failed"
    assert finding.remedy
    assert said in finding.observed + finding.remedy


def test_a_wrong_hop_limit_is_told_with_the_right_one() -> None:
    counts = blank(Counts, intended=10, offered=10, faulty=10, faults={"hop_limit": 10})
    source, destination = IPv4Address("198.18.0.2"), IPv4Address("198.19.0.2")
    flow = Flow(kind="udp", source=source, destination=destination, source_port=1, destination_port=2)
    packet = build(flow, bytes(8), hop_limit=7)
    kept = KeptFrame(side="right", reason="hop_limit", octets=(bytes(12) + b"\x08\0" + packet).hex())
    lowered = report(counts).model_copy(update={"kept_frames": (kept,)})
    (finding,) = preflight.judge_path(campaign(), lowered)
    assert "10 x wrong hop limit, hop limit 7 where 9 is due" in finding.observed
    (reason,) = judge(lowered, Fraction(0)).reasons
    assert reason == "forward foreground: 10 of 10 frames were faulty (hop_limit 10: the first have 7)"


@pytest.mark.parametrize(
    ("counts", "status", "observed"),
    [
        (blank(Counts, offered=10, received=10), "ok", "10 of 10 frames correct, and their class kept"),
        (
            blank(Counts, offered=10, faulty=10, faults={"traffic_class": 10}),
            "warning",
            "0 of 10 frames correct; 10 with another class",
        ),
        (blank(Counts, offered=10, received=1, lost=9), "warning", "1 of 10 frames correct; 9 lost"),
        (
            blank(Counts, offered=10, faulty=10, faults={"payload": 10}),
            "warning",
            "0 of 10 frames correct; the others wrong",
        ),
    ],
)
def test_another_traffic_class_is_probed(counts: Counts, status: str, observed: str) -> None:
    (finding,) = preflight.judge_class(report(counts), 0xB8)
    assert (finding.check, finding.status) == ("traffic class 184, forward", status)
    assert finding.observed == observed
    assert bool(finding.remedy) == (status == "warning")


def test_the_probed_class_is_that_of_every_direction() -> None:
    overrides = DirectionTrafficModel.model_validate({"traffic_class": 8, "hop_limit": 9})
    traffic = preflight.with_class(TrafficModel(forward=overrides, reverse=overrides), 0xB8)
    ways = campaign().model_copy(update={"traffic": traffic}).directions
    for way in ONE_WAYS:
        assert ways.traffic_of(way).traffic_class == (0xB8,)
        assert ways.traffic_of(way).hop_limit == 9


ALL_LOST = blank(Counts, intended=10, offered=10, lost=10)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ({"own_drops": {"rx_missed": 9, "tx_errors": 0}}, "Tester's side of the right port (rx_missed 9)"),
        ({"link_losses": 1}, "the link of the right port went down"),
        ({"link_up": False}, "the link of the right port went down"),
    ],
)
def test_frames_lost_here_are_not_the_gateways(right: dict[str, Any], said: str) -> None:
    (finding,) = preflight.judge_path(campaign(), report(ALL_LOST, **right))
    assert (finding.status, said in finding.remedy) == ("failed", True), finding


def test_a_loop_back_has_a_cable_and_no_gateway() -> None:
    (finding,) = preflight.judge_path(campaign(kind="loopback"), report(ALL_LOST))
    assert finding.remedy == "check that a cable joins these two ports, with nothing else in between"


def test_ports_that_a_loop_back_names_are_looked_at() -> None:
    assert not list(doctor.check_ports(campaign(kind="loopback")))
    missing = [row for row in doctor.check_ports(campaign(kind="loopback", port="af_packet:gm-none")) if row.remedy]
    assert [row.check for row in missing] == ["port left", "port right"]


def test_findings_are_frozen() -> None:
    finding = Finding(check="a", status="ok", observed="b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.check = "c"  # type: ignore[misc]


def test_a_host_that_is_reached_by_ssh_needs_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(campaign().model_dump_json(by_alias=True, exclude_none=True))
    document["testbed"] = {"kind": "ports"}
    monkeypatch.setattr("shutil.which", lambda program, path=None: None if program == "ssh" else f"/bin/{program}")
    asked = []
    for control in ({"health": "true"}, {"health": "true", "host": "gw"}):
        document["gateway"]["control"] = control
        wanted = Campaign.model_validate_json(json.dumps(document))
        asked.append([(finding.status, finding.remedy) for finding in doctor.check_tools(wanted)])
    assert asked == [[("ok", "")], [("failed", "apt-get install openssh-client")]]


@pytest.mark.parametrize(("held", "limit", "said"), [(950, 1024, "400 on-link IPv4 hosts and 950 neighbours"),
                                                     (0, 399, "400 on-link IPv4 hosts: the gateway's kernel keeps"),
                                                     (624, 1024, ""), (950, 0, "")])  # fmt: skip
def test_neighbours_of_all_namespaces_share_one_table(
    held: int, limit: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-400"}
    right = {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": hosts}}
    testbed = {"kind": "netns", "recipe": "linux-router4"}
    wanted = campaign_from_dict({"testbed": testbed, "right": right, "throughput": {"maximum": "1k"}})
    monkeypatch.setattr(doctor, "neighbours_held", lambda family: held if family == "ipv4" else 0)
    monkeypatch.setattr(doctor, "_read", lambda _path: str(limit))
    told = list(doctor.check_neighbour_tables(wanted))
    assert [finding.observed.startswith(said) for finding in told] == ([True] if said else [])
    if held and told:
        assert f"gc_thresh3={2 * (400 + held)} " in told[0].remedy

"""Conformity of border relays with tunnels: what is sent, and how relays of every kind are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.border_relays import TunnelFault, TunnelRelay
from tests.unit.test_conformity import case_of, judgements
from tests.unit.translators import CLASS_FAULTS, LARGE, ClassFault, LargeFault

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.conformity.cases import SOFTWIRE_CASES, TUNNEL_RELAY_CASES, Probe, probes
from gatemark.procedures.conformity.report import _due, _seen
from gatemark.procedures.conformity.result import ConformityResult
from gatemark.procedures.conformity.scenes import TunnelRelayScene

RELAY = "2001:2:0:ff::1"
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}
FULL = {"ipv6": "2001:db8:8000::/40", "ipv4": "198.51.100.0/24", "ea_bits": 8}
SOFTWIRES = {"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 6, "exclude": "system_ports"}


def campaign(
    *domains: dict[str, Any], tunnel: dict[str, Any] | None = None, mtu: int = 1500, **conformity: Any
) -> Campaign:
    technology, key = ("lwaftr", "softwires") if SOFTWIRES in domains else ("map_e_br", "domains")
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": technology, "tunnel": {"address": RELAY, "hop_limit": 64, **(tunnel or {})}},
                "testbed": {"kind": "ports"},
                "left": {
                    "port": "af_packet:left",
                    "mtu": mtu,
                    "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
                },
                "right": {"port": "af_packet:right", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
                "map": {key: list(domains or (SHARED,))},
                "conformity": conformity,
            }
        )
    )


def measured(tmp_path: Path, wanted: Campaign, *faults: TunnelFault | ClassFault | LargeFault) -> ConformityResult:
    assert wanted.map is not None
    relay = TunnelRelay(wanted.map.whole_rules, RELAY, faults)
    device = SimulatedDevice(capacity_forward=1, exchange=relay.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


def test_an_end_of_ipv4_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="the tunnels of map_e_br are in IPv6"):
        campaign(tunnel={"address": "198.18.9.1"})


ALL_RIGHT: dict[str, str] = {
    name: "reported" if case.due == "reported" else "conforms" for name, case in TUNNEL_RELAY_CASES.items()
}
FOREIGN = ("foreign_tunnel", "foreign_source_address", "foreign_source_port")
"""What a customer edge may not send from its tunnel."""
NO_RESULT: dict[str, str] = dict.fromkeys(ALL_RIGHT, "no_result")


def test_a_lwaftr_must_support_hairpinning_and_may_answer_what_has_no_binding(tmp_path: Path) -> None:
    """Which differs from what a border relay of MAP-E must do."""
    wanted = campaign(SOFTWIRES)
    tried = list(dict.fromkeys(probe.name for probe in probes(wanted)))
    assert tried == [name for name in SOFTWIRE_CASES if name != "nobodys_port"]
    result = measured(tmp_path, wanted)
    assert judgements(result) == {name: ALL_RIGHT[name] if name == "class_remarked" else "conforms" for name in tried}
    (tmp_path / "answers").mkdir()
    result = measured(tmp_path / "answers", wanted, "answers foreign ports", "drops hairpin")
    assert case_of(result, "foreign_source_port").judgement == "conforms"
    assert case_of(result, "hairpin").judgement == "does_not_conform"


@pytest.mark.parametrize("domain", [SHARED, {**SHARED, "psid_offset": 0}, FULL, {**SHARED, "ea_bits": 6}])
def test_a_relay_that_does_everything_right_conforms(domain: dict[str, Any], tmp_path: Path) -> None:
    wanted = campaign(domain)
    tried = {probe.name for probe in probes(wanted)}
    shared_only = {"foreign_source_port", "nobodys_port"} if domain["ea_bits"] < 16 else set()
    not_tried = {"nobodys_port"} if "psid_offset" in domain else shared_only
    assert tried == set(ALL_RIGHT) - not_tried
    result = measured(tmp_path, wanted)
    assert judgements(result) == {name: ALL_RIGHT[name] for name in ALL_RIGHT if name in tried}
    assert {case.controls_correct for case in result.cases} == {6}
    in_fragments = ("fragments", "small_fragments", "inner_fragments", "outer_fragments", "larger_than_tunnel")
    assert {name: case_of(result, name).correct for name in in_fragments} == dict.fromkeys(in_fragments, 3)
    assert case_of(result, "larger_than_tunnel_with_df").icmp == {"icmpv4 3/4": 3}
    assert case_of(result, "expired_from_inside").icmp == {"icmpv4 11/0": 3}
    assert case_of(result, "expired_from_outside").icmp == {"icmpv4 11/0": 3}
    assert case_of(result, "hairpin").hop_limits_due == (8, 9)


WRONG: list[tuple[TunnelFault | ClassFault | LargeFault, dict[str, str]]] = [
    *CLASS_FAULTS,
    ("forwards nothing", NO_RESULT),
    ("keeps the tunnel", NO_RESULT),
    ("an option in every tunnel", NO_RESULT),
    ("outer hop limit", NO_RESULT),
    ("outer traffic class", NO_RESULT),
    ("takes any tunnel", dict.fromkeys(FOREIGN, "does_not_conform")),
    ("takes nobody's tunnel", {"nobodys_tunnel": "does_not_conform"}),
    ("ends any tunnel", {"foreign_tunnel_destination": "does_not_conform"}),
    ("routes tunnels to others", {}),
    ("takes any address", {"foreign_source_address": "does_not_conform"}),
    ("takes any port", {"foreign_source_port": "does_not_conform"}),
    ("answers foreign ports", dict.fromkeys(FOREIGN, "does_not_conform")),
    ("drops echo", {"echo_from_outside": "differs", "echo_from_inside": "differs"}),
    ("drops hairpin", {}),
    ("hairpin to the sender", {}),
    ("drops fragments", {"fragments": "differs", "small_fragments": "differs"}),
    ("counts padding", {"small_fragments": "differs"}),
    ("keeps fragments", {}),
    ("loses second fragments", {"fragments": "differs", "small_fragments": "differs"}),
    ("drops inner fragments", {}),
    ("drops outer fragments", {"outer_fragments": "does_not_conform"}),
    ("forwards what expired", dict.fromkeys(("expired_from_inside", "expired_from_outside"), "does_not_conform")),
    (
        "never answers",
        {
            **dict.fromkeys(("expired_from_inside", "expired_from_outside"), "does_not_conform"),
            "larger_than_tunnel_with_df": "differs",
        },
    ),
    ("answers once", {}),
    ("drops large packets", {"larger_than_tunnel": "differs"}),
    ("fragments inside", {"larger_than_tunnel": "differs"}),
    ("loses last fragments", {"larger_than_tunnel": "differs"}),
    ("ignores DF", {"larger_than_tunnel_with_df": "does_not_conform"}),
    ("states another MTU", {"larger_than_tunnel_with_df": "differs"}),
    ("answers to another edge", {"expired_from_inside": "does_not_conform"}),
    ("answers in no tunnel", {"expired_from_inside": "does_not_conform"}),
    ("drops errors", {"error_from_tunnel": "differs"}),
    ("passes one error on", {}),
    ("errors to another edge", {}),
    ("quotes another address", {"expired_from_outside": "does_not_conform"}),
]


@pytest.mark.parametrize(("fault", "changed"), WRONG)
def test_each_fault_changes_the_judgement_of_its_cases_alone(
    fault: TunnelFault | ClassFault | LargeFault, changed: dict[str, str], tmp_path: Path
) -> None:
    assert judgements(measured(tmp_path, campaign(), fault)) == ALL_RIGHT | changed


@pytest.mark.parametrize(("fault", "judgement"), [("answers once", "conforms"), ("never answers", "does_not_conform")])
def test_a_limit_on_answers_is_no_fault_of_a_domain(fault: TunnelFault, judgement: str, tmp_path: Path) -> None:
    """RFC 4443 section 2.4 f: a gateway that answers about one domain may have no answer left for the next."""
    result = measured(tmp_path, campaign(SHARED, FULL, cases=["expired_from_outside"]), fault)
    answered = fault == "answers once"
    assert [(case.domain, case.judgement, case.icmp, case.may_be_limited) for case in result.cases] == [
        (0, judgement, {"icmpv4 11/0": 1} if answered else {}, False),
        (1, judgement, {}, answered),
    ]


def test_a_hairpin_into_another_tunnel_is_told_from_a_delivery(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "hairpin to the sender"), "hairpin")
    assert (case.arrived_left, case.correct) == (3, 0)
    assert case.differences[-1] == "in the tunnel of another subscriber"
    assert case.differences[0].startswith(f"in a tunnel from {RELAY} to 2001:db8::c000:200:0 instead of")


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        (
            "answers to another edge",
            "expired_from_inside",
            f"answer in a tunnel from {RELAY} to 2001:db8:0:200:0:c000:200:2"
            f" instead of in a tunnel from {RELAY} to 2001:db8::c000:200:0",
        ),
        (
            "quotes another address",
            "expired_from_outside",
            "answered, but quotes 198.19.0.2 port 49151 to 10.0.0.1 port 32770",
        ),
    ],
)
def test_an_answer_that_helps_nobody_is_no_answer(fault: TunnelFault, name: str, words: str, tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), fault), name)
    assert (case.icmp, case.differences) == ({}, (words,))


def test_errors_are_packets_that_arrive_or_do_not(tmp_path: Path) -> None:
    wanted: list[tuple[TunnelFault | None, int, int]] = [
        (None, 3, 3), ("drops errors", 0, 0), ("errors to another edge", 3, 0)
    ]  # fmt: skip
    for fault, arrived, correct in wanted:
        folder = tmp_path / f"{fault}"
        folder.mkdir()
        planted = () if fault is None else (fault,)
        case = case_of(measured(folder, campaign(), *planted), "error_from_outside")
        assert (case.arrived_left, case.correct, case.icmp, case.judgement) == (arrived, correct, {}, "reported")
    assert case.differences[0].startswith(f"in a tunnel from {RELAY} to 2001:db8:0:200:0:c000:200:2 instead of")
    assert case.packet == "an ICMP error about 192.0.2.0 port 32770 to 198.19.0.2 port 49151"


def test_a_limit_of_errors_is_no_difference(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "passes one error on"), "error_from_tunnel")
    assert (case.arrived, case.judgement, _due(case)) == (1, "conforms", "should be delivered at least once")
    assert _seen(case) == "1 of 3 delivered"


def test_what_is_forwarded_in_its_tunnel_was_not_dropped(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "routes tunnels to others"), "foreign_tunnel_destination")
    assert (case.kept_in_tunnel, case.arrived, case.judgement) == (3, 0, "conforms")
    assert (_due(case), _seen(case)) == ("must not be decapsulated", "3 of 3 forwarded in their tunnel")


def test_what_must_be_dropped_silently_says_so(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "answers foreign ports"), "foreign_source_port")
    assert (case.silently, case.icmp, _due(case)) == (True, {"icmpv6 1/5": 3}, "must be dropped silently")


def test_fragments_that_do_not_make_a_packet_are_seen(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "loses second fragments"), "fragments")
    assert (case.arrived_left, case.correct, case.differences) == (3, 0, ("not all of its fragments",))


@pytest.mark.parametrize(
    ("fault", "name", "arrived", "words"),
    [
        ("fragments inside", "larger_than_tunnel", 3, "in fragments of its own, not of the tunnel packet"),
        ("loses last fragments", "larger_than_tunnel", 3, "not all of its fragments"),
        ("states another MTU", "larger_than_tunnel_with_df", 0, "answer states an MTU of 1280 instead of 1460"),
    ],
)
def test_what_is_wrong_with_large_packets_is_described(
    fault: LargeFault, name: str, arrived: int, words: str, tmp_path: Path
) -> None:
    case = case_of(measured(tmp_path, campaign(), fault), name)
    assert (case.arrived, case.correct, case.differences) == (arrived, 0, (words,))


@pytest.mark.parametrize("fault", ["drops large packets", "fragments inside"])
def test_fragments_of_tunnel_packets_are_a_must_for_a_lwaftr(fault: LargeFault, tmp_path: Path) -> None:
    """RFC 7596 section 6.2 asks for RFC 6333 section 6.3; RFC 7597 section 8.3.1 describes what relays do."""
    result = measured(tmp_path, campaign(SOFTWIRES), fault)
    wrong = {case.case for case in result.cases if case.judgement == "does_not_conform"}
    assert wrong == {"larger_than_tunnel"}


def test_where_all_packets_fit_into_tunnels_none_is_too_large() -> None:
    tried = {probe.name for probe in probes(campaign(mtu=1540))}
    assert not tried & set(LARGE)
    with pytest.raises(ConfigError, match="larger_than_tunnel does not apply here: the link with the tunnels carries"):
        campaign(mtu=1540, cases=["larger_than_tunnel"])


def scene_of(probe: Probe) -> TunnelRelayScene:
    assert isinstance(probe.scene, TunnelRelayScene)
    return probe.scene


def test_each_case_differs_from_the_packets_of_the_edge_in_one_thing() -> None:
    wanted = campaign(SHARED, FULL)
    assert wanted.map is not None
    for probe in probes(wanted):
        flow, scene = probe.sending.flow, scene_of(probe)
        upward = scene.upward().flow
        assert upward.tunnel is not None
        match probe.name:
            case "foreign_tunnel" | "nobodys_tunnel":
                assert flow.inside == upward.inside
                assert flow.tunnel is not None
                assert flow.tunnel.destination == upward.tunnel.destination
                assert scene.is_subscriber(flow.tunnel.source) == (probe.name == "foreign_tunnel")
            case "foreign_tunnel_destination":
                assert flow.inside == upward.inside
                assert flow.tunnel is not None
                assert flow.tunnel.source == upward.tunnel.source
                assert not any(flow.tunnel.destination in rule.rule_ipv6 for rule in wanted.map.whole_rules)
                assert str(flow.tunnel.destination) == "2001:2:0:ff::3"
            case "foreign_source_address" | "foreign_source_port":
                assert flow.tunnel == upward.tunnel
                same_port = flow.source_port == upward.source_port
                assert (flow.source == upward.source) != same_port


def test_the_policy_of_outer_headers_is_that_of_the_file(tmp_path: Path) -> None:
    wanted = campaign(tunnel={"hop_limit": "any", "traffic_class": 8})
    result = measured(tmp_path, wanted, "outer hop limit", "outer traffic class")
    assert judgements(result) == ALL_RIGHT
    case = case_of(result, "class_into_tunnel")
    assert (case.classes_due, case.classes, case.outer_class_due) == ((72,), (72,), 8)


def test_the_stated_class_has_the_congestion_field_that_is_stated_apart(tmp_path: Path) -> None:
    """The last two bits of 11 are not due where those of the packet are copied."""
    wanted = campaign(tunnel={"hop_limit": "any", "traffic_class": 11, "ecn": "normal"})
    result = measured(tmp_path, wanted, "outer hop limit", "outer traffic class")
    assert judgements(result) == ALL_RIGHT
    assert case_of(result, "class_into_tunnel").outer_class_due == 8


def test_a_class_is_told_from_the_stated_one_of_tunnels(tmp_path: Path) -> None:
    wanted = campaign(tunnel={"traffic_class": 72}, cases=["class_into_tunnel", "class_remarked"])
    result = measured(tmp_path, wanted)
    assert judgements(result) == {"class_into_tunnel": "no_result", "class_remarked": "no_result"}, "it copies class 0"
    assert case_of(result, "class_into_tunnel").differences == ("outer traffic class 80 instead of 72",)


@pytest.mark.parametrize(
    ("fault", "octets", "words"),
    [
        (None, (72,), "3 of 3 delivered, with traffic class 72, their own"),
        ("takes the class of tunnels", (104,), "3 of 3 delivered, with traffic class 104, that of the outer header"),
        (
            "loses the class from tunnels",
            (0,),
            "of 3 sent, 3 arrived on the right, 0 of them correct, with traffic class 0\n"
            "traffic class 0 instead of 72 or 104",
        ),
    ],
)
def test_which_of_two_classes_comes_out_is_told(
    fault: ClassFault | None, octets: tuple[int, ...], words: str, tmp_path: Path
) -> None:
    planted = () if fault is None else (fault,)
    case = case_of(measured(tmp_path, campaign(cases=["class_remarked"]), *planted), "class_remarked")
    assert (case.judgement, case.classes, case.outer_class_due, _seen(case)) == ("reported", octets, None, words)
    assert case.packet.endswith(", traffic class 72")


def test_a_relay_whose_rfc_says_must_copies_the_class_whatever_the_file_says(tmp_path: Path) -> None:
    """RFC 7596 section 6.2; the border relay of the other tests copies none here."""
    wanted = campaign(SOFTWIRES, tunnel={"traffic_class": 0})
    case = case_of(measured(tmp_path, wanted, "loses the class of tunnels"), "class_into_tunnel")
    assert (case.judgement, case.differences) == ("does_not_conform", ("outer traffic class 0 instead of 72",))


@pytest.mark.parametrize("name", ["port_of_the_set", "outside_dmr"])
def test_cases_of_other_gateways_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} does not apply here: map_e_br has no such case"):
        campaign(cases=[name])

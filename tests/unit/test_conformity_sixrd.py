"""Conformity of 6rd border relays: what is sent, and how relays of every kind are judged."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.sixrd_relays import OTHER, SixrdFault, SixrdRelay
from tests.unit.test_conformity import case_of, judgements
from tests.unit.translators import CLASS_FAULTS, ClassFault

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.conformity.cases import SIXRD_CASES, probes
from gatemark.procedures.conformity.report import _due, _seen
from gatemark.procedures.conformity.result import ConformityResult

RELAY, EDGE = "198.18.0.1", "198.18.0.2"
PREFIX = IPv6Network("2001:db8::/32")
HOST, OTHER_HOST = "2001:db8:c612:2::1", "2001:db8:c612:65::1"
EDGES = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}


def campaign(
    *,
    tunnel: dict[str, Any] | None = None,
    edges: dict[str, Any] | None = None,
    mtu: int = 1500,
    **conformity: Any,
) -> Campaign:
    stated = {"address": RELAY, "prefix": str(PREFIX), "hop_limit": 64, **(tunnel or {})}
    ipv4 = {"address": EDGE, "gateway": RELAY, "hosts": EDGES, **(edges or {})}
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "sixrd_br", "tunnel": stated},
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:left", "mtu": mtu, "ipv4": ipv4},
                "right": {
                    "port": "af_packet:right",
                    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
                },
                "conformity": conformity,
            }
        )
    )


def measured(tmp_path: Path, wanted: Campaign, *faults: SixrdFault | ClassFault) -> ConformityResult:
    relay = SixrdRelay(RELAY, [f"198.18.0.{number}" for number in range(2, 102)], faults)
    device = SimulatedDevice(capacity_forward=1, exchange=relay.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


ALL_RIGHT: dict[str, str] = {
    name: "reported" if case.due == "reported" else "conforms" for name, case in SIXRD_CASES.items()
}
NO_RESULT: dict[str, str] = dict.fromkeys(ALL_RIGHT, "no_result")
CLASSES = ("class_into_tunnel", "class_from_tunnel", "class_remarked")
EXPIRED = ("expired_from_inside", "expired_from_outside")


def test_a_relay_that_does_everything_right_conforms(tmp_path: Path) -> None:
    result = measured(tmp_path, campaign())
    assert judgements(result) == ALL_RIGHT
    assert {case.controls_correct for case in result.cases} == {12}, "of two hosts, both ways"
    assert {case.case: case.correct for case in result.cases if case.arrived} == dict.fromkeys(
        (
            "echo_from_outside",
            "echo_from_inside",
            "to_own_prefix",
            "outer_fragments",
            "small_fragments",
            "error_from_outside",
            *CLASSES,
        ),
        3,
    ) | {"nobodys_address": 0}
    assert {case.case: case.icmp for case in result.cases if case.icmp} == {
        **{name: {"icmpv6 3/0": 3} for name in EXPIRED},
        "larger_than_tunnel": {"icmpv6 2/0": 3},
    }


WRONG: list[tuple[SixrdFault | ClassFault, dict[str, str]]] = [
    *CLASS_FAULTS,
    ("forwards nothing", NO_RESULT),
    ("keeps the tunnel", NO_RESULT),
    ("into another tunnel", NO_RESULT),
    ("outer hop limit", NO_RESULT),
    ("outer traffic class", NO_RESULT),
    ("takes any tunnel", {"foreign_tunnel": "does_not_conform"}),
    ("takes any source", {"foreign_source_address": "does_not_conform"}),
    ("ends any tunnel", {"foreign_tunnel_destination": "does_not_conform"}),
    ("routes tunnels to others", {}),
    ("drops echo", dict.fromkeys(("echo_from_outside", "echo_from_inside", "error_from_outside"), "does_not_conform")),
    ("drops outer fragments", dict.fromkeys(("outer_fragments", "small_fragments"), "does_not_conform")),
    ("counts padding", {"small_fragments": "does_not_conform"}),
    ("forwards what expired", dict.fromkeys(EXPIRED, "does_not_conform")),
    ("never answers", dict.fromkeys((*EXPIRED, "larger_than_tunnel"), "does_not_conform")),
    ("drops large packets", {"larger_than_tunnel": "does_not_conform"}),
    ("ignores the tunnel MTU", {"larger_than_tunnel": "differs"}),
    ("fragments tunnels", {"larger_than_tunnel": "differs"}),
    ("a tunnel MTU of 1280", {}),
    ("a tunnel MTU of 1200", {"larger_than_tunnel": "does_not_conform"}),
    ("a tunnel MTU of 1500", {"larger_than_tunnel": "does_not_conform"}),
    ("answers to another edge", {"expired_from_inside": "does_not_conform"}),
    ("answers in no tunnel", {"expired_from_inside": "does_not_conform"}),
    ("drops errors", {"error_from_outside": "does_not_conform"}),
    ("errors to another edge", {"error_from_outside": "does_not_conform"}),
    ("passes errors of tunnels on", {}),
    ("hairpins", {}),
    ("hairpins to the sender", {}),
    ("returns nothing", {"to_own_prefix": "does_not_conform"}),
    ("has no null route", {"to_relays_prefix": "does_not_conform"}),
    ("drops what is nobody's", {}),
    ("answers in the next exchange", dict.fromkeys(EXPIRED, "does_not_conform")),
]


@pytest.mark.parametrize(("fault", "changed"), WRONG)
def test_each_fault_changes_the_judgement_of_its_cases_alone(
    fault: SixrdFault | ClassFault, changed: dict[str, str], tmp_path: Path
) -> None:
    assert judgements(measured(tmp_path, campaign(), fault)) == ALL_RIGHT | changed


@pytest.mark.parametrize(
    ("fault", "name", "correct", "words"),
    [
        ("hairpins", "hairpin", 3, None),
        ("hairpins to the sender", "hairpin", 0, "in the tunnel of another subscriber"),
        ("passes errors of tunnels on", "error_from_tunnel", 3, None),
        (
            "errors to another edge",
            "error_from_outside",
            0,
            f"in a tunnel from {RELAY} to {OTHER} instead of in a tunnel from {RELAY} to {EDGE}",
        ),
    ],
)
def test_what_arrives_is_described(
    fault: SixrdFault, name: str, correct: int, words: str | None, tmp_path: Path
) -> None:
    case = case_of(measured(tmp_path, campaign(), fault), name)
    assert (case.arrived, case.correct) == (3, correct)
    assert case.differences == () if words is None else words in case.differences


@pytest.mark.parametrize(
    ("fault", "arrived", "words"),
    [
        ("a tunnel MTU of 1200", 0, "answer states an MTU of 1200 instead of 1280 to 1480"),
        (
            "fragments tunnels",
            3,
            f"arrived left: 2001:2:0:8000::2 port 49151 to {HOST} port 40000 in a tunnel from {RELAY} to {EDGE}",
        ),
    ],
)
def test_what_is_wrong_with_large_packets_is_described(
    fault: SixrdFault, arrived: int, words: str, tmp_path: Path
) -> None:
    """Fragments of its tunnel packets are put together, as the customer edge would (RFC 4213 section 3.6)."""
    case = case_of(measured(tmp_path, campaign(), fault), "larger_than_tunnel")
    assert (case.arrived, case.correct, case.differences) == (arrived, 0, (words,))


@pytest.mark.parametrize("mtu", [1299, 1520])
def test_a_link_without_room_for_a_larger_packet_has_no_such_case(mtu: int) -> None:
    """A 6rd tunnel has room for 1280 octets, by fragments of its packets if need be (RFC 4213 section 3.2.2)."""
    assert "larger_than_tunnel" not in {probe.name for probe in probes(campaign(mtu=mtu))}
    with pytest.raises(ConfigError, match="or the tunnel MTU is below 1280"):
        campaign(mtu=mtu, cases=["larger_than_tunnel"])


def test_answers_to_packets_of_another_exchange_are_nobodys(tmp_path: Path) -> None:
    result = measured(tmp_path, campaign(), "answers in the next exchange")
    told = {case.case for case in result.cases if case.icmp or case.differences}
    assert told == {"nobodys_address", "larger_than_tunnel"}, "the one arrives, and the other is answered at once"
    assert not case_of(result, "nobodys_address").icmp


def test_what_is_forwarded_in_its_tunnel_was_not_decapsulated(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "routes tunnels to others"), "foreign_tunnel_destination")
    assert (case.kept_in_tunnel, case.arrived, _due(case)) == (3, 0, "must not be decapsulated")
    assert _seen(case) == "3 of 3 forwarded in their tunnel"


def test_each_case_differs_from_the_packets_of_the_edge_in_one_thing() -> None:
    flows = {probe.name: probe.sending.flow for probe in probes(campaign())}
    upward = f"{HOST} port 40000 to 2001:2:0:8000::2 port 49151"
    assert {
        name: str(flow) for name, flow in flows.items() if name.startswith(("foreign", "hairpin", "nobodys", "to_"))
    } == {
        "foreign_tunnel": f"{upward} in a tunnel from {OTHER} to {RELAY}",
        "foreign_tunnel_destination": f"{upward} in a tunnel from {EDGE} to 198.18.0.129",
        "foreign_source_address": upward.replace("2001:db8", "2001:db9") + f" in a tunnel from {EDGE} to {RELAY}",
        "hairpin": f"{HOST} port 40000 to {OTHER_HOST} port 49151 in a tunnel from {EDGE} to {RELAY}",
        "to_own_prefix": f"{HOST} port 40000 to {HOST} port 49151 in a tunnel from {EDGE} to {RELAY}",
        "to_relays_prefix": "2001:2:0:8000::2 port 49151 to 2001:db8:c612:1::1 port 40000",
        "nobodys_address": "2001:2:0:8000::2 port 49151 to 2001:db8:c612:82::1 port 40000",
    }


@pytest.mark.parametrize(
    ("tunnel", "edges"),
    [
        ({"prefix": "2001:db8:6464::/48", "ipv4_mask_length": 16}, {}),
        ({"ipv4_mask_length": 0}, {"address": "198.18.7.9", "gateway": "198.18.7.1"}),
        ({"prefix": "2001:db8::/40", "ipv4_mask_length": 8}, {"address": "198.18.0.9"}),
    ],
)
def test_foreign_addresses_are_nobodys(tunnel: dict[str, Any], edges: dict[str, Any]) -> None:
    wanted = campaign(tunnel=tunnel, edges=edges)
    stated = wanted.gateway.tunnel
    assert stated is not None and stated.prefix is not None and wanted.left.ipv4 is not None
    flows = {probe.name: probe.sending.flow for probe in probes(wanted)}
    assert flows["foreign_source_address"].source not in stated.prefix
    assert flows["nobodys_address"].destination in stated.prefix
    to, host = flows["foreign_tunnel_destination"].tunnel, flows["nobodys_address"].destination
    used = {wanted.left.ipv4.address, wanted.left.ipv4.gateway, wanted.left.ipv4.router, IPv4Address(RELAY)}
    used |= {IPv4Address(int(wanted.left.ipv4.address) & ~0xFFFF | number) for number in range(2, 102)}
    shift = 128 - stated.prefix.prefixlen - 32 + (stated.ipv4_mask_length or 0)
    mask = (1 << 32 - (stated.ipv4_mask_length or 0)) - 1
    embedded = IPv4Address(int(wanted.left.ipv4.address) & ~mask | int(IPv6Address(host)) >> shift & mask)
    assert to is not None and not {to.destination, embedded} & used
    assert ("to_relays_prefix" in flows) == (wanted.left.ipv4.address in IPv4Network("198.18.0.0/16"))


def test_without_another_edge_two_cases_do_not_apply() -> None:
    alone = campaign(edges={"hosts": {}})
    assert {probe.name for probe in probes(alone)} == set(SIXRD_CASES) - {"foreign_tunnel", "hairpin"}
    with pytest.raises(ConfigError, match="hairpin does not apply here: there is only one customer edge"):
        campaign(edges={"hosts": {}}, cases=["hairpin"])


@pytest.mark.parametrize(
    ("tunnel", "words"),
    [
        ({"address": "2001:2:0:ffff::1"}, "the tunnels of 6rd are in IPv4"),
        ({"prefix": "2001:db8::/64"}, "are a prefix of 96 bits"),
    ],
)
def test_tunnels_of_which_no_cases_can_be_made_are_refused_in_words(tunnel: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        campaign(tunnel=tunnel)

"""Conformity of customer edges at the end of a tunnel: what is sent, and how edges of every kind are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.subscriber_edges import EdgeFault, SubscriberEdge
from tests.unit.test_conformity import case_of, judgements
from tests.unit.translators import CLASS_FAULTS, LARGE, ClassFault, LargeFault

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.conformity.cases import cases_of, probes
from gatemark.procedures.conformity.report import _due, _seen
from gatemark.procedures.conformity.result import ConformityResult
from gatemark.technology import TECHNOLOGIES, TechnologyName

B4_END, RELAY, SERVER = "2001:2:0:ff::1", "2001:2:0:8000::2", "198.19.0.2"
MAP: dict[TechnologyName, dict[str, Any]] = {
    "map_e_ce": {
        "domains": [{"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}],
        "end_user_prefix": "2001:db8:12:3400::/56",
    },
    "lwb4": {
        "softwires": [{"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 8}],
        "end_user_prefix": "2001:db8:1:2:0:c000:212:34/128",
    },
}
"""Both have 192.0.2.18 and the PSID 52."""
FULL = {"domains": [{"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 8}]}
FULL_EDGE = {**FULL, "end_user_prefix": "2001:db8:12::/48"}


def campaign(technology: TechnologyName, *, mtu: int = 1500, mapping: str | None = None, **tables: Any) -> Campaign:
    gateway: dict[str, Any] = {"technology": technology}
    if technology == "b4":
        gateway["tunnel"] = {"address": B4_END, "hop_limit": 64}
    else:
        gateway |= {"tunnel": {"hop_limit": 64}, "control": {"clear_state": "true"}}
        tables = {"map": MAP[technology], **tables}
    gateway |= {} if mapping is None else {"mapping": mapping}
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
    left = {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": hosts}
    ipv6 = {"address": RELAY, "gateway": "2001:2:0:8000::1"}
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": gateway,
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:left", "ipv4": left},
                "right": {"port": "af_packet:right", "mtu": mtu, "ipv6": ipv6, "ipv4": {"address": SERVER}},
                "conformity": {},
                **tables,
            }
        )
    )


def measured(tmp_path: Path, wanted: Campaign, *faults: EdgeFault | ClassFault | LargeFault) -> ConformityResult:
    end = str(wanted.forwarding.tunnel_end)
    edge = SubscriberEdge(end, RELAY, wanted.edges.gateway, 1460, *faults)
    device = SimulatedDevice(capacity_forward=1, exchange=edge.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


EDGES: tuple[TechnologyName, ...] = ("map_e_ce", "lwb4", "b4")
ALL_RIGHT: dict[TechnologyName, dict[str, str]] = {
    technology: {
        name: "reported" if case.due == "reported" else "conforms"
        for name, case in cases_of(TECHNOLOGIES[technology]).items()
    }
    for technology in EDGES
}
EXPIRED = ("expired_from_outside", "expired_from_inside")


@pytest.mark.parametrize("mapping", ["endpoint_independent", "endpoint_dependent"])
@pytest.mark.parametrize("technology", EDGES)
def test_an_edge_that_does_everything_right_conforms(technology: TechnologyName, mapping: str, tmp_path: Path) -> None:
    wanted = campaign(technology, mapping=None if technology == "b4" else mapping)
    result = measured(tmp_path, wanted)
    assert judgements(result) == ALL_RIGHT[technology]
    delivered = {case.case: case.correct for case in result.cases if case.due in ("delivered", "translated")}
    assert delivered == dict.fromkeys(delivered, 3)
    icmp = {case.case: case.icmp for case in result.cases if case.icmp}
    assert icmp == {**{name: {"icmpv4 11/0": 3} for name in EXPIRED}, "larger_than_tunnel_with_df": {"icmpv4 3/4": 3}}
    assert {case.controls_correct for case in result.cases} == {6 if technology == "b4" else 12}


OF_ALL: list[tuple[EdgeFault | ClassFault | LargeFault, dict[str, str]]] = [
    *CLASS_FAULTS,
    ("never answers", {**dict.fromkeys(EXPIRED, "does_not_conform"), "larger_than_tunnel_with_df": "differs"}),
    ("answers in no tunnel", {"expired_from_outside": "does_not_conform"}),
    ("ignores hop limits", dict.fromkeys(EXPIRED, "does_not_conform")),
    ("ends any tunnel", {"foreign_tunnel_destination": "does_not_conform"}),
    ("routes tunnels to others", {}),
    ("drops outer fragments", {"outer_fragments": "does_not_conform"}),
    ("states another MTU", {"larger_than_tunnel_with_df": "differs"}),
    ("ignores DF", {"larger_than_tunnel_with_df": "does_not_conform"}),
    ("drops errors", {"error_from_outside": "does_not_conform"}),
    ("drops errors of routers", {"error_from_tunnel": "differs"}),
    ("passes one error on", {}),
    *((fault, dict.fromkeys(("all",), "no_result")) for fault in ("forwards nothing", "another relay")),
    *((fault, dict.fromkeys(("all",), "no_result")) for fault in ("an option in every tunnel", "outer hop limit")),
]  # fmt: skip
NO: dict[TechnologyName, str] = {"map_e_ce": "differs", "lwb4": "does_not_conform", "b4": "does_not_conform"}
"""What is wrong with a NAT that does not do as others, or a fragment that is one too many: MAP-E says *should*."""
OF_LEVEL: list[tuple[EdgeFault | LargeFault, tuple[str, ...]]] = [
    ("drops fragments", ("fragments", "small_fragments")),
    ("counts padding", ("small_fragments",)),
    ("drops inner fragments", ("inner_fragments",)),
    ("drops large packets", ("larger_than_tunnel",)),
    ("fragments inside", ("larger_than_tunnel",)),
    ("loses last fragments", ("larger_than_tunnel",)),
]


@pytest.mark.parametrize("technology", EDGES)
@pytest.mark.parametrize(("fault", "changed"), [*OF_ALL, *((fault, names) for fault, names in OF_LEVEL)])
def test_a_fault_of_any_edge_changes_the_judgement_of_its_cases_alone(
    fault: EdgeFault | ClassFault | LargeFault,
    changed: dict[str, str] | tuple[str, ...],
    technology: TechnologyName,
    tmp_path: Path,
) -> None:
    right = ALL_RIGHT[technology]
    expected = changed if isinstance(changed, dict) else dict.fromkeys(changed, NO[technology])
    if "all" in expected:
        expected = dict.fromkeys(right, "no_result")
    frames = 3 if fault == "passes one error on" else 1
    wanted = campaign(technology, conformity={"frames": frames})
    assert judgements(measured(tmp_path, wanted, fault)) == right | expected


ONCE = {"frames": 1}
DROPPED = "does_not_conform"
OF_NATS: list[tuple[EdgeFault, dict[str, str]]] = [
    ("a port of nobody", {"all": "no_result"}),
    ("a port of nobody for the third client", {"port_of_the_set": DROPPED}),
    ("forwards foreign sources as they are", {"foreign_source_address": DROPPED}),
    ("drops foreign sources", {}),
    ("takes any tunnel", dict.fromkeys(("foreign_tunnel", "nobodys_tunnel"), DROPPED)),
    ("takes tunnels of customer edges", {"foreign_tunnel": DROPPED}),
    ("returns other addresses", {"foreign_destination_address": DROPPED}),
    ("takes inner addresses", {"inner_destination_address": DROPPED}),
    ("takes any port", {"foreign_destination_port": DROPPED}),
    ("takes any identifier", {"foreign_identifier": DROPPED}),
    ("errors about the public address", {"error_from_outside": DROPPED, "error_from_tunnel": "differs"}),
]


@pytest.mark.parametrize("technology", ["map_e_ce", "lwb4"])
@pytest.mark.parametrize(("fault", "changed"), OF_NATS)
def test_a_fault_of_a_nat_changes_the_judgement_of_its_cases_alone(
    fault: EdgeFault, changed: dict[str, str], technology: TechnologyName, tmp_path: Path
) -> None:
    right = ALL_RIGHT[technology]
    expected = dict.fromkeys(right, "no_result") if "all" in changed else changed
    assert judgements(measured(tmp_path, campaign(technology, conformity=ONCE), fault)) == right | expected


@pytest.mark.parametrize(
    ("technology", "fault", "changed"),
    [
        ("map_e_ce", "an identifier of nobody", {"echo_from_inside": DROPPED}),
        ("lwb4", "an identifier of nobody", {"echo_from_inside": "differs"}),
        ("map_e_ce", "drops echo", {"echo_from_inside": DROPPED}),
        ("b4", "drops echo", {"echo_from_inside": DROPPED, "echo_from_outside": DROPPED}),
        ("map_e_ce", "drops hairpin", {"hairpin": "differs"}),
        ("lwb4", "drops hairpin", {"hairpin": DROPPED}),
        ("lwb4", "hairpin from inside", {"hairpin": DROPPED}),
        ("map_e_ce", "answers customer edges", {"foreign_tunnel": DROPPED}),
        ("lwb4", "answers customer edges", {}),
        ("b4", "takes any tunnel", {}),
    ],
)
def test_what_the_standards_of_the_edges_do_not_have_in_common(
    technology: TechnologyName, fault: EdgeFault, changed: dict[str, str], tmp_path: Path
) -> None:
    wanted = campaign(technology, conformity=ONCE)
    assert judgements(measured(tmp_path, wanted, fault)) == ALL_RIGHT[technology] | changed


@pytest.mark.parametrize(
    ("fault", "name", "arrived", "words"),
    [
        (
            "fragments inside", "larger_than_tunnel", 3,
            "in fragments of its own, not of the tunnel packet",
        ),
        ("loses last fragments", "larger_than_tunnel", 3, "not all of its fragments"),
        ("states another MTU", "larger_than_tunnel_with_df", 0, "answer states an MTU of 1280 instead of 1460"),
        (
            "an identifier of nobody", "echo_from_inside", 3,
            "source port 10",
        ),
        (
            "returns other addresses", "foreign_destination_address", 3,
            "arrived right: 198.19.0.2 port 49151 to 192.0.2.19 port",
        ),
        (
            "errors about the public address", "error_from_outside", 3,
            "quotes 192.0.2.18 port",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_described(
    fault: EdgeFault | LargeFault, name: str, arrived: int, words: str, tmp_path: Path
) -> None:
    case = case_of(measured(tmp_path, campaign("lwb4"), fault), name)
    assert (case.arrived, case.correct) == (arrived, 0)
    assert any(difference.startswith(words) for difference in case.differences), case.differences


def test_what_may_be_dropped_or_translated_says_so(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign("map_e_ce"), "drops foreign sources"), "foreign_source_address")
    assert (_due(case), _seen(case)) == ("must be dropped or translated", "3 of 3 dropped")


def test_what_is_forwarded_in_its_tunnel_was_not_decapsulated(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign("b4"), "routes tunnels to others"), "foreign_tunnel_destination")
    assert (case.kept_in_tunnel, case.arrived, case.judgement) == (3, 0, "conforms")


def test_each_case_differs_from_the_packets_of_the_relay_in_one_thing() -> None:
    wanted = campaign("lwb4")
    end = wanted.forwarding.tunnel_end
    flows = {probe.name: str(probe.sending.flow) for probe in probes(wanted)}
    port = flows["nobodys_tunnel"].split()[6]
    inside, tunnel = f"{SERVER} port 49151 to 192.0.2.18 port {port}", f" in a tunnel from {RELAY} to {end}"
    assert {
        name: flows[name] for name in flows if "tunnel" in name and not name.startswith(("larger", "error", "class"))
    } == {
        "foreign_tunnel": f"{inside} in a tunnel from 2001:db8:1:2:0:c000:200:0 to {end}",
        "nobodys_tunnel": f"{inside} in a tunnel from 2001:2:0:8000::3 to {end}",
        "foreign_tunnel_destination": f"{inside} in a tunnel from {RELAY} to 2001:db8:1:2:0:c000:212:35",
    }
    assert flows["foreign_destination_address"] == inside.replace("192.0.2.18", "192.0.2.19") + tunnel
    assert flows["inner_destination_address"] == f"{SERVER} port 49151 to 198.18.0.2 port 40000{tunnel}"
    assert flows["foreign_source_address"] == f"70.18.0.2 port 40000 to {SERVER} port 49151"
    foreign = int(flows["foreign_destination_port"].split()[6])
    assert foreign >> 8 == 53
    assert flows["foreign_identifier"] == f"{SERVER} to 192.0.2.18 identifier {foreign}{tunnel}"


@pytest.mark.parametrize("technology", EDGES)
def test_only_what_applies_is_tried(technology: TechnologyName) -> None:
    names = set(ALL_RIGHT[technology])
    assert {probe.name for probe in probes(campaign(technology))} == names
    wide = campaign(technology, mtu=1540)
    assert {probe.name for probe in probes(wide)} == names - set(LARGE)
    with pytest.raises(ConfigError, match="larger_than_tunnel does not apply here: the link with the tunnels carries"):
        campaign(technology, mtu=1540, conformity={"cases": ["larger_than_tunnel"]})


def test_an_edge_with_an_address_of_its_own_has_no_foreign_ports() -> None:
    tried = {probe.name for probe in probes(campaign("map_e_ce", map=FULL_EDGE))}
    assert set(ALL_RIGHT["map_e_ce"]) - tried == {"foreign_destination_port", "foreign_identifier"}


@pytest.mark.parametrize(
    ("technology", "name"), [("b4", "hairpin"), ("map_e_ce", "outside_dmr"), ("b4", "unused_port")]
)
def test_cases_of_other_gateways_are_refused(technology: TechnologyName, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} does not apply here: {technology} has no such case"):
        campaign(technology, conformity={"cases": [name]})

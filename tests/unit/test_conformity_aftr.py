"""Conformity of AFTRs: what is sent, and how AFTRs of every kind are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.aftrs import ANOTHER_B4, PRIVATE, Aftr, AftrFault
from tests.unit.test_conformity import case_of, judgements
from tests.unit.translators import CLASS_FAULTS, ClassFault, LargeFault

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.conformity.cases import cases_of, probes
from gatemark.procedures.conformity.report import _due, _seen
from gatemark.procedures.conformity.result import ConformityResult
from gatemark.technology import TECHNOLOGIES

END, FIRST, LAST, SERVER = "2001:2:0:ff::1", "2001:2::2", "2001:2::65", "198.19.0.2"
B4S = {"offset": 14, "mode": "pseudorandom", "range": "2-101"}


def campaign(
    *,
    b4s: dict[str, Any] | None = None,
    b4: dict[str, Any] | None = None,
    gateway: dict[str, Any] | None = None,
    **conformity: Any,
) -> Campaign:
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {
                    "technology": "aftr",
                    "tunnel": {"address": END, "hop_limit": 64},
                    "pool": ["198.19.0.1/32"],
                    "control": {"clear_state": "true"},
                    **(gateway or {}),
                },
                "testbed": {"kind": "ports"},
                "left": {
                    "port": "af_packet:left",
                    "ipv6": {"address": FIRST, "gateway": "2001:2::1", "hosts": B4S if b4s is None else b4s},
                },
                "right": {"port": "af_packet:right", "ipv4": {"address": SERVER, "gateway": "198.19.0.1"}},
                "b4": b4 or {},
                "conformity": conformity,
            }
        )
    )


def measured(tmp_path: Path, wanted: Campaign, *faults: AftrFault | ClassFault | LargeFault) -> ConformityResult:
    device = SimulatedDevice(capacity_forward=1, exchange=Aftr(END, *faults).exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


NAMES = tuple(cases_of(TECHNOLOGIES["aftr"]))
ALL_RIGHT: dict[str, str] = {**dict.fromkeys(NAMES, "conforms"), "class_remarked": "reported"}
NO_RESULT: dict[str, str] = dict.fromkeys(NAMES, "no_result")
EXPIRED = ("expired_from_inside", "expired_from_outside")
DELIVERED = (
    "echo_from_inside", "hairpin", "same_inner_endpoint", "fragments", "small_fragments", "inner_fragments",
    "outer_fragments", "larger_than_tunnel", "error_from_outside", "class_into_tunnel", "class_from_tunnel",
    "class_remarked",
)  # fmt: skip


@pytest.mark.parametrize("mapping", ["endpoint_independent", "endpoint_dependent"])
@pytest.mark.parametrize("hosts", [{}, {"hosts": {"offset": 2, "mode": "increasing", "range": "1-3"}}])
def test_an_aftr_that_does_everything_right_conforms(mapping: str, hosts: dict[str, Any], tmp_path: Path) -> None:
    result = measured(tmp_path, campaign(gateway={"mapping": mapping}, b4=hosts))
    assert judgements(result) == ALL_RIGHT
    assert {case.case: case.correct for case in result.cases if case.arrived} == dict.fromkeys(DELIVERED, 3)
    assert {case.case: case.icmp for case in result.cases if case.icmp} == {
        **{name: {"icmpv4 11/0": 3} for name in EXPIRED},
        "larger_than_tunnel_with_df": {"icmpv4 3/4": 3},
    }
    controls = {case.case: case.controls_correct for case in result.cases}
    assert controls == dict.fromkeys(NAMES, 12) | {"same_inner_endpoint": 15}, (
        "of two clients, both ways; and what opens"
    )


WRONG: list[tuple[AftrFault | ClassFault | LargeFault, dict[str, str]]] = [
    *CLASS_FAULTS,
    ("forwards nothing", NO_RESULT),
    ("into another tunnel", NO_RESULT),
    ("outer hop limit", NO_RESULT),
    ("drops echo", {"echo_from_inside": "does_not_conform"}),
    (
        "never answers",
        {**dict.fromkeys(EXPIRED, "does_not_conform"), "larger_than_tunnel_with_df": "differs"},
    ),
    ("drops large packets", {"larger_than_tunnel": "does_not_conform"}),
    ("fragments inside", {"larger_than_tunnel": "does_not_conform"}),
    ("loses last fragments", {"larger_than_tunnel": "does_not_conform"}),
    ("ignores DF", {"larger_than_tunnel_with_df": "does_not_conform"}),
    ("states another MTU", {"larger_than_tunnel_with_df": "differs"}),
    ("ignores hop limits", dict.fromkeys(EXPIRED, "does_not_conform")),
    ("answers in no tunnel", {"expired_from_inside": "does_not_conform"}),
    ("answers about another address", {"expired_from_inside": "does_not_conform"}),
    ("drops hairpin", {"hairpin": "does_not_conform"}),
    ("hairpin to the sender", {"hairpin": "does_not_conform"}),
    ("hairpin in no tunnel", {"hairpin": "does_not_conform"}),
    ("takes any address", {"foreign_source_address": "does_not_conform"}),
    ("ends any tunnel", {"foreign_tunnel_destination": "does_not_conform"}),
    ("routes tunnels to others", {}),
    ("the first B4 of an address", {"same_inner_endpoint": "does_not_conform"}),
    ("one B4 of an address", {"same_inner_endpoint": "does_not_conform"}),
    ("drops fragments", dict.fromkeys(("fragments", "small_fragments"), "does_not_conform")),
    ("counts padding", {"small_fragments": "does_not_conform"}),
    ("drops inner fragments", {"inner_fragments": "does_not_conform"}),
    ("drops outer fragments", {"outer_fragments": "does_not_conform"}),
    ("drops errors", {"error_from_outside": "does_not_conform"}),
    ("errors to another B4", {"error_from_outside": "does_not_conform"}),
    ("errors about the public address", {"error_from_outside": "does_not_conform"}),
]


@pytest.mark.parametrize(("fault", "changed"), WRONG)
def test_each_fault_changes_the_judgement_of_its_cases_alone(
    fault: AftrFault | ClassFault | LargeFault, changed: dict[str, str], tmp_path: Path
) -> None:
    assert judgements(measured(tmp_path, campaign(), fault)) == ALL_RIGHT | changed


def test_an_aftr_that_takes_the_last_b4_of_an_address_does_not_conform(tmp_path: Path) -> None:
    """The reply follows the packet of the other B4; a control may go astray as well."""
    case = case_of(measured(tmp_path, campaign(), "the last B4 of an address"), "same_inner_endpoint")
    assert case.correct == 0
    assert "in the tunnel of another subscriber" in case.differences


def test_a_public_endpoint_that_was_not_learned_is_no_fault_of_the_aftr(tmp_path: Path) -> None:
    """The first exchange learns it, and the others begin with a packet that must come from it."""
    aftr, exchanges = Aftr(END), 0

    def lossy(body: Any) -> Any:
        nonlocal exchanges
        exchanges += 1
        arrived = list(aftr.exchange(body))
        twin = len(arrived) // 2 - 1  # last of each turn
        yield from arrived if exchanges > 1 else (each for i, each in enumerate(arrived) if i % (twin + 1) != twin)

    (result,) = simulated_campaigns.measure(
        tmp_path / "journal.jsonl", SimulatedDevice(capacity_forward=1, exchange=lossy), campaign()
    )
    assert isinstance(result, ConformityResult)
    assert judgements(result) == ALL_RIGHT | {"same_inner_endpoint": "no_result"}
    assert case_of(result, "same_inner_endpoint").controls_correct == 12


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        ("hairpin to the sender", "hairpin", "in the tunnel of another subscriber"),
        ("hairpin in no tunnel", "hairpin", f"in no tunnel instead of in a tunnel from {END} to {LAST}"),
        (
            "errors about the public address",
            "error_from_outside",
            f"quotes 198.19.0.1 port 20000 to {SERVER} port 49151",
        ),
        ("one B4 of an address", "same_inner_endpoint", "in the tunnel of another subscriber"),
        (
            "errors to another B4",
            "error_from_outside",
            f"in a tunnel from {END} to {ANOTHER_B4} instead of in a tunnel from {END} to {FIRST}",
        ),
    ],
)
def test_what_arrives_is_described(fault: AftrFault, name: str, words: str, tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), fault), name)
    assert (case.arrived_left, case.correct) == (3, 0)
    assert words in case.differences


def test_an_answer_about_another_address_is_told_but_none(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "answers about another address"), "expired_from_inside")
    assert (case.arrived, case.icmp) == (0, {})
    assert case.differences == (f"answered, but quotes 100.64.0.1 port 40000 to {SERVER} port 49151",)


def test_what_is_forwarded_in_its_tunnel_was_not_decapsulated(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "routes tunnels to others"), "foreign_tunnel_destination")
    assert (case.kept_in_tunnel, case.arrived, _due(case)) == (3, 0, "must not be decapsulated")
    assert _seen(case) == "3 of 3 forwarded in their tunnel"


def test_each_case_differs_from_the_packets_of_the_client_in_one_thing() -> None:
    flows = {probe.name: probe.sending.flow for probe in probes(campaign())}
    upward = f"10.0.0.1 port 40000 to {SERVER} port 49151"
    assert {name: str(flow) for name, flow in flows.items() if name.startswith(("foreign", "hairpin"))} == {
        "foreign_source_address": upward.replace("10.0.0.1", "138.0.0.1") + f" in a tunnel from {FIRST} to {END}",
        "foreign_tunnel_destination": f"{upward} in a tunnel from {FIRST} to 2001:2:0:ff::3",
        "hairpin": f"10.0.0.1 port 40000 to 198.19.0.1 port 1025 in a tunnel from {FIRST} to {END}",
    }
    (twin,) = (probe.sending for probe in probes(campaign()) if probe.name == "same_inner_endpoint")
    assert twin.opening is not None and twin.delivery is not None
    assert str(twin.opening.flow) == f"{upward} in a tunnel from {LAST} to {END}"
    assert str(twin.delivery.flow) == f"{SERVER} port 49151 to 10.0.0.1 port 40000 in a tunnel from {END} to {LAST}"


@pytest.mark.parametrize("address", ["10.0.0.1", "172.16.0.1", "192.168.0.9", "192.0.0.2"])
def test_a_foreign_inner_address_is_no_private_one(address: str) -> None:
    (flow,) = (
        probe.sending.flow
        for probe in probes(campaign(b4={"address": address}))
        if probe.name == "foreign_source_address"
    )
    assert not any(flow.source in network for network in PRIVATE)


def test_with_one_b4_its_hosts_or_ports_are_the_clients() -> None:
    alone = campaign(b4s={})
    assert {probe.name for probe in probes(alone)} == set(NAMES) - {"same_inner_endpoint"}
    (hairpin,) = (probe.sending for probe in probes(alone) if probe.name == "hairpin")
    assert hairpin.delivery is not None
    assert str(hairpin.delivery.flow) == (
        f"198.19.0.1 port 1024 to 10.0.0.1 port 40001 in a tunnel from {END} to {FIRST}"
    )
    with pytest.raises(ConfigError, match="same_inner_endpoint does not apply here: there is only one B4"):
        campaign(b4s={}, cases=["same_inner_endpoint"])


def test_an_end_of_ipv4_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="the tunnels of aftr are in IPv6"):
        campaign(gateway={"tunnel": {"address": "198.18.9.1"}})

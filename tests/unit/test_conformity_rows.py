"""Conformity of two gateways in a row, which are a NAT44 from outside: what is sent, and how they are judged."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.subscriber_edges import EdgeFault, EdgeRow
from tests.unit.test_conformity import case_of, judgements

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.map_domains.domain import MapDomain
from gatemark.procedures.conformity.cases import cases_of, probes
from gatemark.procedures.conformity.result import CaseName, ConformityResult
from gatemark.technology import TECHNOLOGIES, TechnologyName

DMR = "2001:db8:ffff::/64"
RULE = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}
EDGE = "2001:db8:12:3400::/56"
MAP: dict[TechnologyName, dict[str, Any]] = {
    "map_e": {"domains": [RULE], "end_user_prefix": EDGE},
    "map_t": {"domains": [{**RULE, "dmr": DMR}], "end_user_prefix": EDGE},
    "lw4o6": {
        "softwires": [{"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 8}],
        "end_user_prefix": "2001:db8:1:2:0:c000:212:34/128",
    },
}
POOL = MapDomain(rule_ipv6=IPv6Network("2001:db8::/64"), rule_ipv4=IPv4Network("192.0.2.18/32"), ea_bits=0).edge(0)
"""Whose ports are all of an address."""
ROWS: tuple[TechnologyName, ...] = ("map_e", "map_t", "lw4o6", "ds_lite", "464xlat")


def campaign(technology: TechnologyName, **tables: Any) -> Campaign:
    gateway: dict[str, Any] = {"technology": technology, "middle_mtu": 1540, "control": {"clear_state": "true"}}
    if technology in MAP:
        tables = {"map": MAP[technology], **tables}
    else:
        gateway["pool"] = ["192.0.2.18/32"]
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
    left = {"address": "10.0.0.2", "gateway": "10.0.0.1", "hosts": hosts}
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": gateway,
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:left", "ipv4": left},
                "right": {"port": "af_packet:right", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
                "conformity": {},
                **tables,
            }
        )
    )


def measured(tmp_path: Path, technology: TechnologyName, *faults: EdgeFault) -> ConformityResult:
    wanted = campaign(technology)
    of_aftr: tuple[EdgeFault, ...] = ("drops foreign sources",) if technology == "ds_lite" else ()
    row = EdgeRow(wanted.edges.gateway or POOL, *of_aftr, *faults)
    device = SimulatedDevice(capacity_forward=1, exchange=row.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


ALL_RIGHT: dict[TechnologyName, dict[str, str]] = {
    technology: {
        name: "reported" if case.due == "reported" else "conforms"
        for name, case in cases_of(TECHNOLOGIES[technology]).items()
    }
    for technology in ROWS
}
EXPIRED: tuple[CaseName, ...] = ("expired_from_outside", "expired_from_inside")


@pytest.mark.parametrize("technology", ROWS)
def test_a_row_that_does_everything_right_conforms(technology: TechnologyName, tmp_path: Path) -> None:
    result = measured(tmp_path, technology)
    assert judgements(result) == ALL_RIGHT[technology]
    delivered = {case.case: case.correct for case in result.cases if case.due in ("delivered", "translated")}
    assert delivered == dict.fromkeys(delivered, 3)
    assert {case.case: case.icmp for case in result.cases if case.icmp} == {
        name: {"icmpv4 11/0": 3} for name in EXPIRED
    }
    assert case_of(result, "hairpin").hop_limits_due == (6, 9), "each gateway may be crossed once or twice"


WRONG: list[tuple[EdgeFault, dict[str, str]]] = [
    ("never answers", dict.fromkeys(EXPIRED, "does_not_conform")),
    ("ignores hop limits", dict.fromkeys(EXPIRED, "does_not_conform")),
    ("drops echo", {"echo_from_inside": "does_not_conform"}),
    ("drops errors", {"error_from_outside": "does_not_conform"}),
    ("errors about the public address", {"error_from_outside": "does_not_conform"}),
]
OF_LEVEL: list[tuple[TechnologyName, EdgeFault, dict[str, str]]] = [
    ("map_e", "drops hairpin", {"hairpin": "differs"}),
    ("map_t", "drops hairpin", {"hairpin": "differs"}),
    ("map_t", "drops errors", {"error_from_outside": "differs"}),
    ("lw4o6", "drops hairpin", {"hairpin": "does_not_conform"}),
    ("ds_lite", "hairpin from inside", {"hairpin": "does_not_conform"}),
    ("464xlat", "hairpin from inside", {"hairpin": "does_not_conform"}),
    ("map_e", "drops fragments", {"fragments": "differs", "small_fragments": "differs"}),
    ("map_e", "counts padding", {"small_fragments": "differs"}),
    ("lw4o6", "drops fragments", dict.fromkeys(("fragments", "small_fragments"), "does_not_conform")),
    ("ds_lite", "drops inner fragments", dict.fromkeys(("fragments", "small_fragments"), "does_not_conform")),
    ("map_t", "an identifier of nobody", {"echo_from_inside": "does_not_conform"}),
    ("lw4o6", "an identifier of nobody", {"echo_from_inside": "differs"}),
]
WRONG_PORTS: list[tuple[EdgeFault, dict[str, str]]] = [
    ("a port of nobody for the third client", {"port_of_the_set": "does_not_conform"}),
    ("takes any port", {"foreign_destination_port": "does_not_conform"}),
    ("takes any identifier", {"foreign_identifier": "does_not_conform"}),
]


@pytest.mark.parametrize(
    ("technology", "fault", "changed"),
    [
        *((technology, *wrong) for technology in ("map_e", "ds_lite") for wrong in WRONG),
        *((technology, *wrong) for technology in ("map_t", "lw4o6") for wrong in WRONG_PORTS),
        *OF_LEVEL,
    ],
)
def test_each_fault_changes_the_judgement_of_its_cases_alone(
    technology: TechnologyName, fault: EdgeFault, changed: dict[str, str], tmp_path: Path
) -> None:
    assert judgements(measured(tmp_path, technology, fault)) == ALL_RIGHT[technology] | changed


def test_what_expires_is_answered_by_the_rfc_of_the_second_gateway() -> None:
    for row in ROWS:
        section = "RFC 7915 section 5.1" if row in ("464xlat", "map_t") else "RFC 1812 section 5.3.1"
        assert {cases_of(TECHNOLOGIES[row])[name].section for name in EXPIRED} == {section}


@pytest.mark.parametrize("technology", ROWS)
def test_each_case_applies(technology: TechnologyName) -> None:
    assert {probe.name for probe in probes(campaign(technology))} == set(ALL_RIGHT[technology])


def test_what_is_between_both_gateways_is_not_tried() -> None:
    with pytest.raises(ConfigError, match="foreign_tunnel does not apply here: map_e has no such case"):
        campaign("map_e", conformity={"cases": ["foreign_tunnel"]})

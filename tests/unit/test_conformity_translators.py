"""Conformity of translators without state and with it: what each fault changes, and between whom packets go."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet6 import IPv6
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.translators import CLAT, PREFIX, Clat, Gateway, Nat, NatFault, Translator, TranslatorFault

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.hosts import represented
from gatemark.config.model import Campaign
from gatemark.config.tables import EamEntry
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.conformity.cases import cases_of, probes
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.procedures.conformity.run import batches, exchange_of, sent_of
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.technology import TECHNOLOGIES, TechnologyName

HOSTS: dict[str, dict[str, str]] = {
    "ipv4": {"left": "198.18.0.2", "right": "198.19.0.2"},
    "ipv6": {"left": "2001:2::2", "right": "2001:2:0:8000::2"},
}
EAM = [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}]
SERVER_OF_CLAT = "2001:2:0:6400::c613:2"
EXPIRED = ("expired_from_outside", "expired_from_inside")
TWO = {"offset": 14, "mode": "increasing", "range": "2-9"}


def campaign(technology: TechnologyName, *, hosts: dict[str, Any] | None = None, **gateway: Any) -> Campaign:
    row = TECHNOLOGIES[technology]
    document: dict[str, Any] = {
        "gateway": {"technology": technology, **gateway},
        "testbed": {"kind": "ports"},
        "conformity": {},
    }
    if row.is_stateful:
        pool = f"{CLAT}/128" if technology == "nat46" else "198.19.0.1/32"
        document["gateway"] = {"pool": [pool], "control": {"clear_state": "true"}} | document["gateway"]
    if row.translates_by_prefix:
        document["gateway"] = {"prefix": str(PREFIX)} | document["gateway"]
    if not row.is_stateful and row.is_translation:
        document["gateway"] = {"eam": EAM} | document["gateway"]
    for side, family in zip(("left", "right"), row.families, strict=True):
        address = SERVER_OF_CLAT if (technology, side) == ("nat46", "right") else HOSTS[family][side]
        played: dict[str, Any] = {"address": address, "gateway": address[:-1] + "1"}
        if side == "left":
            played["hosts"] = TWO | ({"offset": 2} if family == "ipv4" else {}) if hosts is None else hosts
        document[side] = {"port": f"af_packet:{side}", family: played}
    return complete_campaign(campaign_from_dict(document))


def measured(tmp_path: Path, wanted: Campaign, gateway: Gateway) -> ConformityResult:
    device = SimulatedDevice(capacity_forward=1, exchange=gateway.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    return result


def judgements(result: ConformityResult) -> dict[str, str]:
    return {case.case: case.judgement for case in result.cases}


def hairpin_of(result: ConformityResult) -> CaseResult:
    (case,) = (case for case in result.cases if case.case == "hairpin")
    return case


def all_right(technology: TechnologyName) -> dict[str, str]:
    return dict.fromkeys(cases_of(TECHNOLOGIES[technology]), "conforms")


class TestTranslator:
    def test_one_that_does_everything_right_conforms(self, tmp_path: Path) -> None:
        result = measured(tmp_path, campaign("siit64"), Translator())
        assert judgements(result) == all_right("siit64")
        assert {case.controls_correct for case in result.cases} == {12}, "of two hosts, both ways"
        hairpin = hairpin_of(result)
        assert hairpin.packet == "2001:2::2 port 40000 to 2001:2:0:6400::c612:9 port 40001"
        assert hairpin.due_packet == "2001:2:0:6400::c612:2 port 40000 to 2001:2::9 port 40001"
        assert (hairpin.hop_limits_due, hairpin.hop_limits) == ((8, 9), (8,))

    @pytest.mark.parametrize(
        ("fault", "changed", "difference"),
        [
            ("forwards nothing", dict.fromkeys(all_right("siit64"), "no_result"), None),
            ("drops echo", dict.fromkeys(("echo_from_outside", "echo_from_inside"), "does_not_conform"), None),
            ("never answers", dict.fromkeys(EXPIRED, "does_not_conform"), None),
            ("ignores hop limits", dict.fromkeys(EXPIRED, "does_not_conform"), None),
            ("drops hairpin", {"hairpin": "differs"}, None),
            ("hairpins to the other side", {"hairpin": "differs"}, "arrived right"),
            ("keeps the mapped source", {"hairpin": "differs"}, "source 2001:2::2 instead of 2001:2:0:6400::c612:2"),
            ("hairpins without a hop", {"hairpin": "differs"}, "hop limit 10 instead of 8 to 9"),
            ("hairpins with too many hops", {"hairpin": "differs"}, "hop limit 7 instead of 8 to 9"),
        ],
    )
    def test_each_fault_changes_the_judgement_of_its_cases_alone(
        self, tmp_path: Path, fault: TranslatorFault, changed: dict[str, str], difference: str | None
    ) -> None:
        result = measured(tmp_path, campaign("siit64"), Translator(fault))
        assert judgements(result) == all_right("siit64") | changed
        if difference is not None:
            assert difference in hairpin_of(result).differences

    def test_hosts_that_are_known_by_the_prefix_alone_meet_without_the_gateway(self) -> None:
        wanted = campaign("siit64", eam=[], prefix="2001:2::/96")
        assert {probe.name for probe in probes(wanted)} == set(all_right("siit64")) - {"hairpin"}

    def test_one_host_sends_to_another_port_of_its_own(self) -> None:
        (flow,) = (probe.sending.flow for probe in probes(campaign("siit64", hosts={})) if probe.name == "hairpin")
        assert str(flow) == "2001:2::2 port 40000 to 2001:2:0:6400::c612:2 port 40001"

    def test_a_packet_that_crosses_twice_has_hops_enough(self) -> None:
        """A hop limit of 10 would end at the second of two crossings that take off 6 each."""
        wanted = campaign("siit64", hop_limit_decrement=6)
        (batch,) = (batch for batch in batches(wanted) if batch[0].name == "hairpin")
        exchange = exchange_of(wanted, wanted.table(ConformityTable), sent_of(batch))
        limits = [IPv6(bytes.fromhex(packet)).hlim for packet in exchange.left]
        assert sorted(set(limits)) == [10, 13] and limits.count(13) == 3

    def test_the_sides_may_be_the_other_way_round(self) -> None:
        wanted = campaign("siit46", eam=[{"ipv4": "198.19.0.0/16", "ipv6": "2001:2:0:8000::/112"}])
        (sending,) = (probe.sending for probe in probes(wanted) if probe.name == "hairpin")
        assert (sending.side, sending.flow.source) == ("right", ip_address("2001:2:0:8000::2"))


class TestNat:
    @pytest.mark.parametrize("technology", ["nat44", "nat64"])
    @pytest.mark.parametrize("mapping", ["endpoint_independent", "endpoint_dependent"])
    @pytest.mark.parametrize("faults", [(), ("filters by address",)])
    def test_one_that_does_everything_right_conforms(
        self, tmp_path: Path, technology: TechnologyName, mapping: str, faults: tuple[NatFault, ...]
    ) -> None:
        """One that filters lets a packet pass once its receiver has sent to the sender (RFC 4787 section 5)."""
        prefix = PREFIX if technology == "nat64" else None
        result = measured(tmp_path, campaign(technology, mapping=mapping), Nat(*faults, prefix=prefix))
        assert judgements(result) == all_right(technology)
        assert hairpin_of(result).hop_limits == (8,)

    @pytest.mark.parametrize("technology", ["nat44", "nat64"])
    @pytest.mark.parametrize(
        ("fault", "changed"),
        [
            ("forwards nothing", None),
            ("drops echo", {"echo_from_inside": "does_not_conform"}),
            ("never answers", dict.fromkeys(EXPIRED, "does_not_conform")),
            ("ignores hop limits", dict.fromkeys(EXPIRED, "does_not_conform")),
            ("drops hairpin", {"hairpin": "does_not_conform"}),
            ("keeps the inside source", {"hairpin": "does_not_conform"}),
            ("another source port", {"hairpin": "does_not_conform"}),
            ("a source outside the pool", {"hairpin": "does_not_conform"}),
            ("symmetric", {"hairpin": "does_not_conform"}),
        ],
    )
    def test_each_fault_changes_the_judgement_of_its_cases_alone(
        self, tmp_path: Path, technology: TechnologyName, fault: NatFault, changed: dict[str, str] | None
    ) -> None:
        prefix = PREFIX if technology == "nat64" else None
        wanted = campaign(technology, mapping="endpoint_independent")
        result = measured(tmp_path, wanted, Nat(fault, prefix=prefix))
        right = all_right(technology)
        assert judgements(result) == right | (dict.fromkeys(right, "no_result") if changed is None else changed)

    def test_where_the_mapping_depends_on_the_destination_any_public_port_will_do(self, tmp_path: Path) -> None:
        result = measured(tmp_path, campaign("nat44", mapping="endpoint_dependent"), Nat("another source port"))
        assert judgements(result) == all_right("nat44")

    def test_what_is_due_is_said_in_words(self, tmp_path: Path) -> None:
        result = measured(tmp_path, campaign("nat44"), Nat("keeps the inside source"))
        hairpin = hairpin_of(result)
        assert hairpin.due_packet == "any public address and port to 198.18.0.9 port 40001"
        assert hairpin.differences == ("source 198.18.0.2 is not a public address of the gateway",)
        assert hairpin.packet == "198.18.0.2 port 40000 to 198.19.0.1 port 20001"


class TestClat:
    @pytest.mark.parametrize(
        ("faults", "changed"),
        [
            ((), {}),
            (("forwards nothing",), dict.fromkeys(all_right("nat46"), "no_result")),
            (("drops echo",), {"echo_from_inside": "does_not_conform"}),
            (("never answers",), dict.fromkeys(EXPIRED, "does_not_conform")),
            (("ignores hop limits",), dict.fromkeys(EXPIRED, "does_not_conform")),
        ],
    )
    def test_one_with_a_single_address_is_tried_but_for_hairpins(
        self, tmp_path: Path, faults: tuple[NatFault, ...], changed: dict[str, str]
    ) -> None:
        """Its public address is of the IPv6 side: the hosts behind it have no name for it."""
        result = measured(tmp_path, campaign("nat46"), Clat(*faults))
        assert judgements(result) == all_right("nat46") | changed
        assert set(all_right("nat46")) == set(all_right("nat64")) - {"hairpin"}
        (section,) = (case.section for case in result.cases if case.case == "expired_from_inside")
        assert section == "RFC 7915 section 4.1"


@pytest.mark.parametrize(
    ("address", "other"),
    [
        ("198.18.0.9", "2001:2::9"),
        ("198.18.1.9", "2001:db8:109::"),
        ("198.19.0.2", "2001:2:0:6400::c613:2"),
    ],
)
def test_an_address_is_represented_by_the_longest_mapping_else_by_the_prefix(address: str, other: str) -> None:
    eam = (
        EamEntry.model_validate({"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}),
        EamEntry.model_validate({"ipv4": "198.18.1.0/24", "ipv6": "2001:db8:100::/40"}),
    )
    assert represented(ip_address(address), PREFIX, eam) == ip_address(other)
    assert represented(ip_address(other), PREFIX, eam) == ip_address(address)


@pytest.mark.parametrize("technology", ["router44", "nat66"])
def test_gateways_of_which_no_rfc_says_what_they_do_have_no_cases(technology: TechnologyName) -> None:
    assert not cases_of(TECHNOLOGIES[technology])


def test_a_router_has_nothing_to_conform_to() -> None:
    with pytest.raises(ConfigError, match=r"does not apply to router44, of which no RFC says (?s:.)+ or map_t$"):
        campaign("router44")

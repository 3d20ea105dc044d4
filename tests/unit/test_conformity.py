"""Conformity: what is sent, and how border relays of every kind are judged."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns
from tests.unit.border_relays import BorderRelay, CustomerEdge, EdgeFault, Fault

from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.preflight import with_few_connections
from gatemark.procedures.conformity.cases import EDGE_CASES, RELAY_CASES, probes
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.procedures.conformity.run import batches, exchange_of, observed, sent_of
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.trial.connection_request import shown_connections
from gatemark.trial.exchange import ArrivedFrame, ExchangeFacts

DMR = "2001:db8:ffff::/64"
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": DMR}
FULL = {"ipv6": "2001:db8:8000::/40", "ipv4": "198.51.100.0/24", "ea_bits": 8, "dmr": DMR}
NO_OFFSET = {**SHARED, "psid_offset": 0}


def campaign(*domains: dict[str, Any], conformity: dict[str, Any] | None = None, **tables: Any) -> Campaign:
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "map_t_br"},
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:left", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
                "right": {"port": "af_packet:right", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
                "map": {"domains": list(domains or (SHARED,)), **tables.pop("map", {})},
                "conformity": conformity or {},
                **tables,
            }
        )
    )


@pytest.mark.parametrize("technology", ["map_t_br", "map_t_ce", "map_e_br"])
@pytest.mark.parametrize("change", [{"dmr": None}, {"ea_bits": 48}], ids=["no dmr", "too many EA bits"])
def test_rules_of_which_no_cases_can_be_made_are_refused_in_words(technology: str, change: dict[str, Any]) -> None:
    domain = {key: value for key, value in (SHARED | change).items() if value is not None}
    with pytest.raises(ConfigError):
        campaign(domain, gateway={"technology": technology})


@pytest.mark.parametrize("technology", ["map_t_br", "map_t_ce"])
def test_a_gateway_without_rules_is_refused_in_words(technology: str) -> None:
    with pytest.raises(ConfigError, match="domains"):
        campaign(map={"domains": []}, gateway={"technology": technology})


def measured(tmp_path: Path, wanted: Campaign, *faults: Fault, events: list[Event] | None = None) -> ConformityResult:
    assert wanted.map is not None
    relay = BorderRelay(wanted.map.whole_rules, faults)
    device = SimulatedDevice(capacity_forward=1, exchange=relay.exchange)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted, events=events)
    assert isinstance(result, ConformityResult)
    return result


def judgements(result: ConformityResult) -> dict[str, str]:
    return {case.case: case.judgement for case in result.cases}


def case_of(result: ConformityResult, name: str) -> CaseResult:
    (case,) = (case for case in result.cases if case.case == name)
    return case


ALL_RIGHT = {name: "reported" if case.due == "reported" else "conforms" for name, case in RELAY_CASES.items()}


def test_a_border_relay_that_does_everything_right_conforms(tmp_path: Path) -> None:
    result = measured(tmp_path, campaign())
    assert judgements(result) == ALL_RIGHT
    assert {case.controls_correct for case in result.cases} == {6}
    assert case_of(result, "foreign_source_port").icmp == {"icmpv6 1/5": 3}
    assert case_of(result, "fragments").correct == 3
    headline, *_ = result.quantities()
    assert (headline.name, headline.unit, headline.median) == ("cases that conform", "cases", 5)


WRONG: list[tuple[Fault, dict[str, str]]] = [
    ("forwards nothing", dict.fromkeys(RELAY_CASES, "no_result")),
    ("forwards upward only", dict.fromkeys(RELAY_CASES, "no_result")),
    ("wrong hop limit", dict.fromkeys(RELAY_CASES, "no_result")),
    ("wrong checksum", dict.fromkeys(RELAY_CASES, "no_result")),
    ("other data", dict.fromkeys(RELAY_CASES, "no_result")),
    ("takes any port", {"foreign_source_port": "does_not_conform"}),
    ("takes any source", {"foreign_source_address": "does_not_conform"}),
    ("never answers", {"foreign_source_port": "differs"}),
    ("drops echo", {"echo_from_outside": "differs", "echo_from_inside": "differs"}),
    ("drops hairpin", {}),
    ("drops fragments", {"fragments": "differs"}),
    ("keeps fragments", {"fragments": "differs"}),
    ("returns what is nobody's", {}),
    ("late for the next exchange", {}),
]


@pytest.mark.parametrize(("fault", "changed"), WRONG)
def test_each_fault_changes_the_judgement_of_its_case_alone(
    tmp_path: Path, fault: Fault, changed: dict[str, str]
) -> None:
    assert judgements(measured(tmp_path, campaign(), fault)) == ALL_RIGHT | changed


def test_what_arrives_is_counted_by_side_and_described(tmp_path: Path) -> None:
    passed = case_of(measured(tmp_path / "a", campaign(), "takes any port"), "foreign_source_port")
    assert (passed.arrived_left, passed.arrived_right, passed.correct) == (0, 3, 0)
    assert passed.differences == (f"arrived right: 192.0.2.0 port {passed.packet.split()[2]} to 198.19.0.2 port 49151",)
    returned = case_of(measured(tmp_path / "b", campaign(), "returns what is nobody's"), "nobodys_port")
    assert (returned.arrived_left, returned.arrived_right, returned.judgement) == (0, 3, "reported")


def test_fragments_that_are_not_reassembled_are_no_packets_that_were_dropped(tmp_path: Path) -> None:
    case = case_of(measured(tmp_path, campaign(), "keeps fragments"), "fragments")
    assert (case.arrived_left, case.correct, case.differences) == (6, 0, ("still in fragments",))


def test_fragments_of_very_many_domains_have_identifications_of_their_own() -> None:
    domains = [{**FULL, "ipv6": f"2001:db8:{i:x}00::/40", "ipv4": f"192.{i}.2.0/24"} for i in range(1, 120)]
    wanted = campaign(*domains, conformity={"frames": 1, "cases": ["fragments"]}, map={"edges": 119})
    for batch in batches(wanted):
        packets = exchange_of(wanted, wanted.table(ConformityTable), sent_of(batch)).right
        fragments = [packet for packet in packets if packet[12:16] != "0000"]
        assert len({packet[8:12] for packet in fragments}) * 3 >= len(fragments) > 0


@pytest.mark.parametrize("way", ["upward", "downward"])
def test_the_smallest_packets_are_whole_and_their_frames_padded(way: str) -> None:
    """An IPv4 packet of 44 octets is two short of Ethernet's minimum; its sender may pad it or not."""
    wanted = campaign()
    probe = next(probe for probe in probes(wanted) if probe.name == "echo_from_inside")
    small = replace(getattr(probe.scene, way)(), octets=44)
    batch = (replace(probe, sending=small),)
    sent = sent_of(batch)
    exchange = exchange_of(wanted, wanted.table(ConformityTable), sent)
    packets = [bytes.fromhex(packet) for packet in (*exchange.left, *exchange.right)]
    of_case = [packet for packet in packets if sent[-1].mark in packet]
    assert {len(packet) for packet in of_case} == ({44} if way == "downward" else {64})
    assert way == "upward" or {packet[4:6] for packet in of_case} == {bytes(2)}, "none is to be fragmented"
    assert wanted.map is not None
    arrived = BorderRelay(wanted.map.whole_rules).exchange(exchange.body)
    padded = [{**frame, "octets": frame["octets"].ljust(2 * 60, "0")} for frame in arrived]
    assert any(len(bytes.fromhex(frame["octets"])) == 60 for frame in padded) == (way == "upward")
    facts = ExchangeFacts(sent={}, arrived=tuple(ArrivedFrame(**frame) for frame in padded))
    (case,) = observed(wanted, 3, batch, sent, facts)
    assert (case.correct, case.differences) == (3, ())


def test_the_last_packet_of_each_side_is_a_control() -> None:
    """Where the last packets come too late, the case is not the only one that is missing."""
    wanted = campaign()
    for batch in batches(wanted):
        sent = sent_of(batch)
        exchange = exchange_of(wanted, wanted.table(ConformityTable), sent)
        marks = {item.mark.hex(): item.role for item in sent}
        for side in ("left", "right"):
            packets = getattr(exchange, side)
            roles = [next((role for mark, role in marks.items() if mark in packet), None) for packet in packets]
            assert roles[-1] == "control", (batch[0].name, side)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()


def test_packets_that_arrive_twice_are_not_as_they_should_be(tmp_path: Path) -> None:
    result = measured(tmp_path, campaign(), "everything twice")
    assert case_of(result, "echo_from_inside").judgement == "differs"
    assert case_of(result, "hairpin").judgement == "reported"
    assert case_of(result, "hairpin").differences == ("arrived more than once",)
    assert case_of(result, "hairpin").correct == 3


def test_octets_that_are_no_packets_are_nobodys(tmp_path: Path) -> None:
    wanted = campaign()
    assert wanted.map is not None
    relay, generator = BorderRelay(wanted.map.whole_rules), random.Random(5)

    def noisy(body: Any) -> Any:
        for arrived in relay.exchange(body):
            octets = bytearray.fromhex(arrived["octets"])
            yield arrived
            for _ in range(3):
                octets[generator.randrange(12, 50)] = generator.randrange(256)
            yield {**arrived, "octets": octets[: generator.randrange(1, 60)].hex()}

    device = SimulatedDevice(capacity_forward=1, exchange=noisy)
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
    assert isinstance(result, ConformityResult)
    assert judgements(result) == ALL_RIGHT


def test_only_what_a_rule_has_is_tried(tmp_path: Path) -> None:
    assert {probe.name for probe in probes(campaign(FULL))} == set(RELAY_CASES) - {
        "foreign_source_port",
        "nobodys_port",
    }
    assert "nobodys_port" not in {probe.name for probe in probes(campaign(NO_OFFSET))}
    alone = campaign({**SHARED, "ipv4": "192.0.2.1/32", "ea_bits": 0})
    assert "hairpin" not in {probe.name for probe in probes(alone)}
    two = measured(tmp_path, campaign(SHARED, FULL))
    assert [case.domain for case in two.cases if case.case == "echo_from_inside"] == [0, 1]
    assert {case.judgement for case in two.cases} == {"conforms", "reported"}


def test_foreign_addresses_are_in_no_rule() -> None:
    wanted = campaign(SHARED, {**SHARED, "ipv6": "2001:db9::/40", "ipv4": "192.0.3.0/24"})
    assert wanted.map is not None
    for probe in probes(wanted):
        flow = probe.sending.flow
        if probe.name == "foreign_source_address":
            assert not any(flow.source in rule.rule_ipv6 for rule in wanted.map.whole_rules)
        if probe.name == "nobodys_address":
            assert not any(flow.destination in rule.rule_ipv4 for rule in wanted.map.whole_rules)


def test_many_domains_are_tried_in_several_exchanges() -> None:
    domains = [{**SHARED, "ipv6": f"2001:db8:{n:x}00::/40", "ipv4": f"192.0.{n}.0/24"} for n in range(70)]
    several = [batch for batch in batches(campaign(*domains)) if batch[0].name == "echo_from_inside"]
    assert [len(batch) for batch in several] == [51, 19]


def test_a_resumed_campaign_takes_its_exchanges_from_the_journal(tmp_path: Path) -> None:
    first = measured(tmp_path, campaign())
    events: list[Event] = []
    assert measured(tmp_path, campaign(), "forwards nothing", events=events) == first
    assert all(event.replayed for event in events if isinstance(event, TrialFinished))


def test_packets_that_the_port_did_not_take_are_no_fault_of_the_gateway(tmp_path: Path) -> None:
    wanted = campaign(conformity={"cases": ["hairpin"]}, validity={"retries": 1})
    assert wanted.map is not None
    relay = BorderRelay(wanted.map.whole_rules)
    device = SimulatedDevice(capacity_forward=1, exchange=relay.exchange, packets_sent_max=5)
    events: list[Event] = []
    (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted, events=events)
    assert isinstance(result, ConformityResult)
    assert (judgements(result), result.limited_by) == ({"hairpin": "no_result"}, "tester")
    trials = [event.record for event in events if isinstance(event, TrialFinished)]
    assert {trial.validity.reasons for trial in trials} == {("left port: 5 of 7 packets were sent",)}
    assert len(trials) > 1, "an invalid exchange is made again"


@pytest.mark.parametrize(
    ("document", "where", "words"),
    [
        ({"conformity": {"cases": ["nobodys_port"]}, "domains": [NO_OFFSET]}, "conformity.cases", "nobodys_port"),
        ({"conformity": {"frames": 0}}, "conformity.frames", "greater than or equal to 1"),
        ({"conformity": {"cases": ["loopback"]}}, "conformity.cases", "foreign_source_port"),
        ({"map": {"onlink": True, "edges": 100}}, "map.order", "increasing"),
        ({"kind": "loopback"}, "conformity", "kind = loopback"),
    ],
)
def test_contradictions_are_told(document: dict[str, Any], where: str, words: str) -> None:
    kind, domains = document.get("kind", "ports"), document.get("domains", [SHARED])
    left = {"ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}}
    right = {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}}
    ports = {"left": {"port": "af_packet:l", **left}, "right": {"port": "af_packet:r", **right}}
    with pytest.raises(ConfigError) as refused:
        campaign_from_dict(
            {
                "gateway": {"technology": "map_t_br"},
                "testbed": {"kind": kind},
                **(ports if kind == "ports" else {}),
                "map": {"domains": domains, **document.get("map", {})},
                "conformity": document.get("conformity", {}),
            }
        )
    told = [(problem.where, str(problem)) for problem in refused.value.problems]
    assert any(where in place and words in text for place, text in told), told


EDGE_RIGHT = {name: "reported" if case.due == "reported" else "conforms" for name, case in EDGE_CASES.items()}


class TestCustomerEdge:
    def edge_campaign(self, *, conformity: dict[str, Any] | None = None, **rule: Any) -> Campaign:
        server = {
            "address": "2001:db8:ffff:0:c6:1300:200:0",
            "router": "2001:2:0:8000::2",
            "gateway": "2001:2:0:8000::1",
        }
        return complete_campaign(
            campaign_from_dict(
                {
                    "gateway": {"technology": "map_t_ce", "control": {"clear_state": "true"}},
                    "testbed": {"kind": "ports"},
                    "left": {"port": "af_packet:left", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
                    "right": {"port": "af_packet:right", "address_mode": "nexthop", "ipv6": server},
                    "map": {"end_user_prefix": "2001:db8:12:3400::/56", "domains": [{**SHARED, **rule}]},
                    "conformity": conformity or {},
                }
            )
        )

    def measured(self, tmp_path: Path, *faults: EdgeFault) -> ConformityResult:
        wanted = self.edge_campaign()
        assert wanted.edges.gateway is not None
        device = SimulatedDevice(capacity_forward=1, exchange=CustomerEdge(wanted.edges.gateway, faults).exchange)
        (result,) = simulated_campaigns.measure(tmp_path / "journal.jsonl", device, wanted)
        assert isinstance(result, ConformityResult)
        return result

    def test_one_that_does_everything_right_conforms(self, tmp_path: Path) -> None:
        result = self.measured(tmp_path)
        assert judgements(result) == EDGE_RIGHT
        assert {case.controls_correct for case in result.cases} == {6}

    @pytest.mark.parametrize(
        ("fault", "changed"),
        [
            ("forwards nothing", dict.fromkeys(EDGE_CASES, "no_result")),
            ("keeps the port", dict.fromkeys(EDGE_CASES, "no_result")),
            ("forgets connections", {}),
            ("drops echo", {"echo_from_inside": "differs"}),
            ("takes any source", {"outside_dmr": "does_not_conform"}),
            ("takes any port", {"foreign_destination_port": "does_not_conform"}),
            ("takes any address", {}),
            ("answers foreign ports", {"foreign_destination_port": "does_not_conform"}),
        ],
    )
    def test_each_fault_changes_the_judgement_of_its_case_alone(
        self, tmp_path: Path, fault: EdgeFault, changed: dict[str, str]
    ) -> None:
        assert judgements(self.measured(tmp_path, fault)) == EDGE_RIGHT | changed

    def test_the_exchange_that_learns_the_port_is_replayed_too(self, tmp_path: Path) -> None:
        first = self.measured(tmp_path)
        assert self.measured(tmp_path, "forwards nothing") == first

    def test_a_file_with_nothing_else_is_fit_for_every_command(self) -> None:
        """It names no connections, and its own packets need none; a trial, frames to show and the doctor do."""
        wanted = self.edge_campaign()
        cell, *_ = cells_of(wanted)
        assert cell.connections == 10
        assert shown_connections(wanted, cell) == 10
        few, cell = with_few_connections(wanted, cell)
        assert (few.connections_model.count, cell.connections) == ((10,), 10)
        (run,) = plan_of(wanted).runs
        assert run.cell.connections is None
        assert {cell.connections for cell in cells_of(campaign())} == {None}, "of a relay"

    def test_only_what_its_rule_has_is_tried(self) -> None:
        assert {probe.name for probe in probes(self.edge_campaign())} == set(EDGE_CASES)
        with pytest.raises(ConfigError, match="hairpin does not apply here: map_t_ce has no such case"):
            self.edge_campaign(conformity={"cases": ["hairpin"]})

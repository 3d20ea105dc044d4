"""Overload by echo requests: checks before anything is sent, figures, judgement, and what the report says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway
from tests.trial_facts import changed, record_of
from tests.unit import echo_facts, overload_columns, simulated_campaigns
from tests.unit.echo_facts import client
from tests.unit.overload_columns import PF, TAYGA, Column, figure, point

from gatemark.campaign.estimate import estimate
from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.compare.judge import why_not
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, TestBedError
from gatemark.facts import EchoLoop
from gatemark.procedures.measured import Measured
from gatemark.procedures.overload.report import (
    _consistency_notes,
    _tables,
    _tester_notes,
    judgement_words,
    own_round_trip,
    verdict_words,
)
from gatemark.procedures.overload.result import OverloadResult, OwnLoop
from gatemark.procedures.overload.run import Load, deviations, form_of, loads_of, point_of
from gatemark.procedures.overload.table import DESTINATIONS, OverloadTable
from gatemark.results.part import Figure
from gatemark.results.tester_parts import SelfTestPart
from gatemark.search.goal import Observation, Outcome
from gatemark.trial.echo_request import echo_request
from gatemark.trial.telemetry import Level, SpanFacts, TelemetryFacts

SECOND = 10**9
DOMAIN = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": "2001:db8:ffff::/64"}


def campaign(
    overload: dict[str, Any] | None = None, *, technology: str = "nat64", hosts: str = "2-513", **tables: Any
) -> Campaign:
    gateway: dict[str, Any] = {"technology": technology}
    if technology == "nat64":
        gateway |= {
            "prefix": "2001:2:0:6400::/96",
            "pool": ["198.19.0.1"],
            "control": {"clear_state": "conntrack -F"},
        }
    left_hosts = {"mode": "increasing", "range": "2-9"}
    left = {
        "port": "af_packet:left",
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": {"offset": 2, **left_hosts}},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1", "hosts": {"offset": 14, **left_hosts}},
    }
    right_hosts = {"offset": 2, "mode": "increasing", "range": hosts}
    right: dict[str, Any] = {
        "port": "af_packet:right",
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": right_hosts},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1", "hosts": {**right_hosts, "offset": 14}},
    }
    gateway |= tables.pop("gateway", {})
    left, right = left | tables.pop("left", {}), right | tables.pop("right", {})
    return complete_campaign(
        campaign_from_dict(
            {
                "repetitions": 2,
                "gateway": gateway,
                "testbed": {"kind": "ports"},
                "left": left,
                "right": right,
                "trial": {"settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"},
                "overload": overload or {},
                **tables,
            }
        )
    )


def table_of(wanted: Campaign) -> OverloadTable:
    return wanted.table(OverloadTable)


class TestTable:
    def test_destinations_follow_from_the_hosts_and_the_most_clients(self) -> None:
        assert table_of(wanted := campaign()).destinations_of(wanted) == 64
        assert table_of(wanted := campaign({"clients": 3, "window": 5})).destinations_of(wanted) == 170
        many = campaign({"clients": [1, 2]}, hosts="2-65535")
        assert table_of(many).destinations_of(many) == DESTINATIONS

    def test_destinations_follow_from_the_size_of_the_table(self) -> None:
        wanted = campaign(gateway={"table": {"size": 100}})
        assert table_of(wanted).destinations_of(wanted) == 12

    def test_a_campaign_is_planned_as_one_run_of_its_own_frames(self) -> None:
        (run,) = plan_of(campaign()).runs
        sizes = run.cell.frame_sizes
        assert (run.cell.direction, sizes.ipv4, sizes.ipv6, run.cell.connections) == ("forward", 102, 122, None)
        (run,) = plan_of(campaign({"data": 1000}, technology="router44")).runs
        assert (run.cell.frame_sizes.ipv4, run.cell.frame_sizes.ipv6) == (1046, None)

    def test_what_has_no_effect_is_not_written(self) -> None:
        wanted = campaign({"mode": "constant_rate", "rates": ["1k"]})
        document = wanted.to_document()["overload"]
        assert ("pace_without_reply" in document, document["rates"]) == (False, [1000])
        assert complete_campaign(campaign_from_dict(wanted.to_document())) == wanted
        assert "rates" not in campaign().to_document()["overload"]

    @pytest.mark.parametrize(
        ("overload", "tables", "where", "words"),
        [
            ({"clients": [1, 1]}, {}, "overload.clients", "lists a number twice"),
            ({"rates": [1000]}, {}, "overload.rates", 'applies only with mode = "constant_rate": in a closed loop'),
            ({"mode": "constant_rate"}, {}, "overload.rates", "is missing"),
            (
                {"mode": "constant_rate", "rates": [1000], "pace_without_reply": "1ms"},
                {},
                "overload.pace_without_reply",
                "waits for no reply",
            ),
            ({"destinations": 10}, {}, "overload.destinations", "cannot share evenly"),
            ({"clients": 9}, {}, "left.ipv6.hosts", "9 clients need as many hosts, the left side has 8"),
            ({}, {"hosts": "2-9"}, "right.ipv4.hosts", "the right side has 8 hosts, fewer than the 32 destinations"),
            ({"destinations": 516}, {}, "right.ipv4.hosts", "the right side has 512 hosts, fewer than the 516"),
            (
                {},
                {"traffic": {"trailer_octets": 4}},
                "traffic.trailer_octets",
                "does not apply to [overload], whose frames are echo requests",
            ),
            ({"data": 1460}, {}, "overload.data", "packets of 1508 octets on the left side, more than its MTU of 1500"),
            (
                {"destinations": 64},
                {"gateway": {"table": {"size": 500}}},
                "overload.destinations",
                "makes 512 entries in the gateway's table with 8 clients, gateway.table.size is 500",
            ),
            (
                {"destinations": 10_000},
                {"hosts": "2-65535", "gateway": {"mapping": "endpoint_independent"}},
                "overload.destinations",
                "needs 80000 identifiers of the pool, which has 65536",
            ),
            (
                {"mode": "constant_rate", "rates": [1], "clients": 8},
                {},
                "overload.rates",
                "an identifier is used each 32s, and the gateway forgets it after 30s",
            ),
            (
                {"mode": "constant_rate", "rates": [100], "clients": 8, "duration": "120s"},
                {},
                "overload.rates",
                "an identifier is used again 56.32s later, and the gateway forgets it after 30s",
            ),
            (
                {},
                {"gateway": {"inside": "right"}, "technology": "nat46"},
                "gateway.inside",
                "the clients of echo requests are on the left",
            ),
        ],
    )
    def test_what_cannot_be_measured_is_said_at_once(
        self, overload: dict[str, Any], tables: dict[str, Any], where: str, words: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            campaign(overload, **tables)
        (told,) = [problem for problem in caught.value.problems if problem.where.endswith(where)]
        assert words in told.what

    def test_a_table_with_fewer_entries_holds_them_up_to_some_rate_if_it_is_known_when_it_forgets(self) -> None:
        gateway = {"table": {"size": 400}}
        wanted = campaign({"destinations": 64, "state_timeout": "20s"}, gateway=gateway)
        assert table_of(wanted).fitting_rate(wanted, 8) == 400 * 11 // 20
        assert table_of(wanted).fitting_rate(wanted, 4) is None
        sentence = [deviation.sentence for deviation in deviations(wanted)][-1]
        assert sentence.startswith("The gateway's table has 400 entries, 512 are made with 8 clients")
        rates = {"mode": "constant_rate", "rates": [200, 300], "duration": "1s", "destinations": 64}
        with pytest.raises(ConfigError) as caught:
            campaign({**rates, "state_timeout": "20s"}, gateway=gateway)
        (told,) = caught.value.problems
        assert told.what.startswith("is above 220 requests/s")

    def test_neighbours_that_a_gateway_would_forget_are_told(self) -> None:
        control = {"commands": "linux", "host": "root@gateway"}
        with pytest.raises(ConfigError) as caught:
            campaign(technology="router44", gateway={"settings": {"neighbours": 256}, "control": control})
        (told,) = [problem for problem in caught.value.problems if "neighbours" in problem.where]
        assert told.what == "is 256, fewer than the 512 on-link hosts that are asked on the right side"

    def test_the_first_customer_edges_are_the_clients_of_a_border_relay(self) -> None:
        wanted = campaign({"clients": [3]}, technology="map_t_br", map={"domains": [DOMAIN], "choice": "pseudorandom"})
        (run,) = plan_of(wanted).runs
        body: Any = echo_request(
            wanted,
            run.cell,
            frames_per_second=0,
            duration_ns=SECOND,
            trial_number=1,
            form=form_of(wanted, Load(clients=3, frames_per_second=None)),
        )
        stream = body["directions"][0]["foreground"]
        edges = stream["source"]["edges"]
        assert (edges["count"], edges["choice"], edges["domains"][0]["ea_bits"]) == (3, "cycle", 16)
        assert stream["source_ports"] is None
        assert stream["destination"]["address"] == "198.19.0.2"
        assert (body["echo"]["pool"], "edge" in body["echo"]) == (None, False)

    def test_a_border_relay_needs_a_customer_edge_for_each_client(self) -> None:
        with pytest.raises(ConfigError) as caught:
            campaign({"clients": 9}, technology="map_t_br", map={"domains": [DOMAIN], "edges": 8})
        (told,) = [problem for problem in caught.value.problems if problem.where.endswith("map.edges")]
        assert told.what == "9 clients need as many customer edges, there are 8"

    def customer_edge(self, overload: dict[str, Any], mapping: str = "endpoint_dependent") -> Campaign:
        return campaign(
            overload,
            technology="map_t_ce",
            gateway={"control": {"clear_state": "conntrack -F"}, "mapping": mapping},
            map={"domains": [DOMAIN], "end_user_prefix": "2001:db8:12:3400::/56"},
            right={
                "address_mode": "nexthop",
                "ipv4": {"address": "198.19.0.2", "router": "198.19.0.3", "gateway": "198.19.0.1"},
                "ipv6": {
                    "address": "2001:db8:ffff:0:c6:1300:200::",
                    "router": "2001:2:0:8000::2",
                    "gateway": "2001:2:0:8000::1",
                    "hosts": {"offset": 11, "mode": "increasing", "range": "2-513"},
                },
            },
        )

    def test_a_customer_edge_may_use_the_identifiers_of_its_set(self) -> None:
        wanted = self.customer_edge({"clients": [2]})
        (run,) = plan_of(wanted).runs
        form = form_of(wanted, Load(clients=2, frames_per_second=None))
        body: Any = echo_request(wanted, run.cell, frames_per_second=0, duration_ns=SECOND, trial_number=1, form=form)
        echo = body["echo"]
        assert echo["pool"] == ["2001:db8:12:3400:0:c000:212:34/128"]
        assert (echo["edge"]["ea"], echo["edge"]["psid_offset"]) == (0x1234, 6)
        with pytest.raises(ConfigError) as caught:
            self.customer_edge({"clients": [8], "destinations": 64}, "endpoint_independent")
        (told,) = [problem for problem in caught.value.problems if problem.where.endswith("overload.destinations")]
        assert told.what == "needs 512 identifiers of the pool, which has 252"

    @pytest.mark.parametrize("technology", ["router44", "router66", "nat44", "nat66", "siit64"])
    def test_every_other_technology_is_measured(self, technology: str) -> None:
        gateway: dict[str, Any] = {}
        if technology.startswith("nat"):
            pool = "198.19.128.0" if technology == "nat44" else "2001:2:0:8000::ffff:1"
            gateway = {"pool": [pool], "control": {"clear_state": "conntrack -F"}}
        if technology == "siit64":
            eam = [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}]
            gateway = {"prefix": "2001:2:0:6400::/96", "eam": eam}
        (run,) = plan_of(campaign(technology=technology, gateway=gateway)).runs
        assert run.procedure == "overload"

    def test_every_rate_is_measured_with_every_number_of_clients(self) -> None:
        table = table_of(campaign({"mode": "constant_rate", "rates": ["1k", "2k"], "clients": [2, 4]}))
        assert loads_of(table) == tuple(
            Load(clients=clients, frames_per_second=rate) for clients in (2, 4) for rate in (1000, 2000)
        )

    def test_a_trial_waits_for_late_replies(self) -> None:
        form = form_of(campaign({"timeout": "3s"}), Load(clients=2, frames_per_second=None))
        assert (form.drain_ns, form.echo and form.echo.destinations) == (3 * SECOND, 64)

    def test_the_estimate_lies_between_a_fast_gateway_and_the_duration(self) -> None:
        wanted = campaign({"duration": "10s", "clients": [1, 2]})
        needed = estimate(wanted)
        assert (needed.trials_min, needed.trials_max) == (4, 4)
        quick_s = 4 + 2 * (281_600 + 563_200) / SECOND  # 10M replies/s
        assert (needed.seconds_min, needed.seconds_max) == (math.ceil(quick_s), 4 * 11)

    def test_deviations_say_how_many_destinations_there_are(self) -> None:
        sentences = [deviation.sentence for deviation in deviations(campaign())]
        assert sentences[1].startswith("Each client asks 64 destinations, not 16384")
        wanted = campaign({"mode": "constant_rate", "rates": [10_000], "duration": "1s", "destinations": 64})
        assert "are asked again after the last one" in [deviation.sentence for deviation in deviations(wanted)][-1]


def measured(
    path: Path, device: SimulatedDevice, wanted: Campaign | None = None, events: list[Event] | None = None
) -> OverloadResult:
    (result,) = simulated_campaigns.measure(path / "journal.jsonl", device, wanted or campaign(), events=events)
    assert isinstance(result, OverloadResult)
    return result


class TestClosedLoop:
    def test_delay_sets_the_pace_until_the_capacity_does(self, tmp_path: Path) -> None:
        """A loop of W slots a client with a delay of 1 ms: min(8000, clients x 4 / 1 ms) packets/s."""
        result = measured(tmp_path, SimulatedDevice(capacity_forward=8000, delays_ns=(1_000_000,)))
        assert [point.median(point.replies_per_second) for point in result.points] == [4000, 8000, 8000, 8000]
        assert [point.median(point.rtt_ns["mean"]) for point in result.points] == [10**6, 10**6, 2 * 10**6, 4 * 10**6]
        assert [point.counts.requests for point in result.points] == [(704 * n, 704 * n) for n in (1, 2, 4, 8)]
        assert result.judgement.graceful and result.judgement.saturated_at == 2
        assert [entry.percent for entry in result.degradations if entry.clients == 8] == [-100, 300, 300]
        assert (result.limited_by, result.destinations, result.shared_destinations) == ("gateway", 64, False)

    def test_loss_is_measured_and_never_repeated(self, tmp_path: Path) -> None:
        events: list[Event] = []
        result = measured(tmp_path, SimulatedDevice(capacity_forward=8000, loss_ratio=0.125), events=events)
        assert {value for point in result.points for value in point.loss_percent.values} == {12.5}
        assert sum(isinstance(event, TrialFinished) for event in events) == 8
        assert result.judgement.graceful is False

    def test_a_collapse_has_its_column_and_the_next_one_is_measured(self, tmp_path: Path) -> None:
        wanted = campaign({"clients": [1, 4, 2]})
        result = measured(tmp_path, SimulatedDevice(capacity_forward=8000, collapses_at_clients=4), wanted)
        works, collapsed, later = result.points
        assert (works.repetitions, collapsed.repetitions, later.repetitions) == (2, 0, 2)
        assert collapsed.collapses == ("the gateway does not answer",) * 2
        assert collapsed.loss_percent == Figure(values=(), summary=None)
        assert result.judgement.graceful is False
        assert [(check.rule, check.clients) for check in result.judgement.checks] == [("health", 4)]
        assert verdict_words(result) == "Degradation is not graceful: with 4 clients the gateway collapsed."

    def test_a_campaign_that_was_stopped_goes_on(self, tmp_path: Path) -> None:
        device = SimulatedDevice(capacity_forward=8000, collapses_at_clients=8)
        whole = measured(tmp_path, device)
        journal = tmp_path / "journal.jsonl"
        lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
        journal.write_text("".join(lines[:5]), encoding="utf-8")
        assert measured(tmp_path, device) == whole

    def test_the_table_is_cleared_before_each_trial(self, tmp_path: Path) -> None:
        events: list[Event] = []
        measured(tmp_path, SimulatedDevice(capacity_forward=8000), events=events)
        assert sum(type(event).__name__ == "TableClearing" for event in events) == 8


class Reluctant(SimulatedGateway):
    """Stops working again after its first restart, until its state is cleared and it is started once more."""

    def restart(self) -> None:
        super().restart()
        self._alive = self.restarts > 1

    def clear_state(self) -> None:
        self.cleared += 1

    def count_connections(self) -> int:
        return 0


class Stillborn(Reluctant):
    """Does not even start with the state that it still finds."""

    def restart(self) -> None:
        super().restart()
        self.check()


class Dead(Reluctant):
    """Never works again."""

    def restart(self) -> None:
        super().restart()
        self._alive = False


class TestAfterACollapse:
    def measured(self, folder: Path, gateway: SimulatedGateway) -> OverloadResult:
        wanted = campaign({"clients": [8, 1]})
        engine = SimulatedEngine(gateway.device, gateway=gateway)
        with Journal(folder / "journal.jsonl") as journal:
            (result,) = run_campaign(wanted, plan_of(wanted), engine, journal, can=gateway.can)
        assert isinstance(result, OverloadResult)
        return result

    @pytest.mark.parametrize("kind", [Reluctant, Stillborn])
    def test_a_gateway_that_falls_over_its_own_state_is_started_without_it(
        self, kind: type[Reluctant], tmp_path: Path
    ) -> None:
        result = self.measured(tmp_path, kind(SimulatedDevice(capacity_forward=8000, collapses_at_clients=8)))
        assert [(point.repetitions, len(point.collapses)) for point in result.points] == [(0, 2), (2, 0)]

    def test_one_that_does_not_work_again_is_an_error_and_no_collapse_of_the_next_column(self, tmp_path: Path) -> None:
        with pytest.raises(TestBedError, match="does not answer"):
            self.measured(tmp_path, Dead(SimulatedDevice(capacity_forward=8000, collapses_at_clients=8)))


class TestConstantRate:
    def test_what_is_beyond_the_capacity_is_lost(self, tmp_path: Path) -> None:
        wanted = campaign(
            {"mode": "constant_rate", "rates": [1000, 4000], "clients": [2], "duration": "2s", "state_timeout": "60s"}
        )
        result = measured(tmp_path, SimulatedDevice(capacity_forward=3000), wanted)
        assert [point.frames_per_second for point in result.points] == [1000, 4000]
        assert [point.median(point.loss_percent) for point in result.points] == [0, 25]
        assert [point.median(point.requests_per_second) for point in result.points] == [1000, 4000]
        assert result.judgement.graceful is None
        assert "only a closed loop is judged" in str(result.judgement.reason)
        losses = [quantity for quantity in result.own_quantities() if quantity.name == "echo loss"]
        assert [quantity.coordinates["load_frames_per_second"] for quantity in losses] == [1000, 4000]


def trial(*clients: Any, **changes: Any) -> Measured:
    report = echo_facts.report(*clients)
    observation = Observation(frames_per_second=0, duration_ns=SECOND, outcome=Outcome.PASSED)
    return Measured(observation=observation, record=changed(record_of(report), **changes))


LOAD = Load(clients=2, frames_per_second=None)


class TestPoint:
    @given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=2))
    def test_every_request_is_one_of_reply_late_lost_and_loss_is_all_but_replies(
        self, drawn: list[tuple[int, float, float]]
    ) -> None:
        clients = []
        for number, (requests, lost_share, late_share) in enumerate(drawn):
            lost = int(requests * lost_share)
            late = int((requests - lost) * late_share)
            clients.append(client(number, requests=requests, lost=lost, late=late))
        counts = (column := point_of(LOAD, [trial(*clients)])).counts
        assert counts.requests[0] == counts.replies[0] + counts.late[0] + counts.lost[0] + counts.faulty[0]
        (loss,) = column.loss_percent.values
        assert loss == pytest.approx(100 * (counts.late[0] + counts.lost[0]) / counts.requests[0])

    @given(requests=st.integers(1, 10**6), mean_ns=st.integers(1, 10**9))
    def test_requests_under_way_are_those_of_littles_law(self, requests: int, mean_ns: int) -> None:
        report = echo_facts.report(client(0, requests=requests), client(1, requests=requests), mean_ns=mean_ns)
        assert report.echo is not None
        observation = Observation(frames_per_second=0, duration_ns=SECOND, outcome=Outcome.PASSED)
        found_point = point_of(LOAD, [Measured(observation=observation, record=record_of(report))])
        assert found_point.outstanding.values[0] == pytest.approx(2 * requests * mean_ns / 10**9)
        assert found_point.tester_share_percent.values[0] == pytest.approx(100 * 2000 / mean_ns)

    def test_a_repetition_of_the_tester_is_counted_and_has_no_figure(self) -> None:
        report = echo_facts.report(client(0), client(1))
        invalid = record_of(report, validity={"valid": False, "reasons": ("late",)}, verdict=None)
        observation = Observation(frames_per_second=0, duration_ns=SECOND, outcome=Outcome.TESTER_LIMITED)
        found_point = point_of(
            LOAD, [Measured(observation=observation, record=invalid), trial(client(0), client(1, mean_ns=3 * 10**6))]
        )
        assert (found_point.repetitions, found_point.tester_limited, found_point.limited_by) == (1, 1, "tester")
        assert found_point.median(found_point.loss_percent) is None
        assert found_point.clients_apart[1].rtt_ns["mean"].values == (3 * 10**6,)

    def test_without_a_time_in_which_all_ask_there_are_no_packets_per_second(self) -> None:
        report = echo_facts.report(client(0), client(1))
        assert report.echo is not None
        record = record_of(changed(report, echo=changed(report.echo, steady=None)))
        observation = Observation(frames_per_second=0, duration_ns=SECOND, outcome=Outcome.PASSED)
        found_point = point_of(LOAD, [Measured(observation=observation, record=record)])
        assert (found_point.replies_per_second.summary, found_point.outstanding.summary) == (None, None)
        assert found_point.rtt_ns["p99.9"].values == (1_099_900,)

    def test_a_request_without_a_reply_ranks_above_every_round_trip(self) -> None:
        """0.5 % of the requests have no reply: p99 is known, p99.9 is theirs."""
        lossy = client(0, requests=1000, lost=3, late=2)
        found_point = point_of(LOAD, [trial(lossy, client(1, requests=1000)), trial(client(0), client(1))])
        assert found_point.rtt_ns["p99"].values == (1_099_000, 1_099_000)
        assert found_point.rtt_ns["p99.9"].values == (None, 1_099_900)
        assert found_point.rtt_ns["p99.9"].summary is None
        first, second = found_point.clients_apart
        assert first.rtt_ns["p99.9"].values[0] is None
        assert second.rtt_ns["p99.9"].values[0] == 1_099_900

    def test_faults_of_requests_and_replies_stay_apart(self) -> None:
        report = echo_facts.report(client(0), client(1))
        forward, reverse = report.directions
        forward = changed(forward, foreground=changed(forward.foreground, faults={"identifier": 2, "sequence": 0}))
        reverse = changed(reverse, foreground=changed(reverse.foreground, faults={"wrong_client": 3}))
        found_point = point_of(
            LOAD, [trial(client(0), client(1), report=changed(report, directions=(forward, reverse)))]
        )
        assert found_point.faults == {"replies: wrong_client": 3, "requests: identifier": 2}

    def test_memory_is_counted_from_the_mean_before_the_first_request(self) -> None:
        def level(mean: float, low: float, high: float) -> Level:
            return Level(samples=3, mean=mean, sd=1.5, minimum=low, maximum=high)

        def span(name: Any, **levels: Level) -> SpanFacts:
            return SpanFacts(span=name, covered_ns=1, intervals=1, error_ns=0, busiest_cpu=0, levels=levels)

        process = "process.tayga.memory"
        before = span("before", memory_available=level(5000, 4990, 5010), **{process: level(100, 99, 101)})
        sending = span(
            "sending",
            busy=level(70, 60, 80),
            memory_available=level(4000, 3900, 4100),
            **{process: level(120, 110, 130)},
        )
        found_point = point_of(LOAD, [trial(client(0), client(1), telemetry=TelemetryFacts(spans=(before, sending)))])
        host = {sampled.series: sampled for sampled in found_point.host}
        assert (host["busy"].values.values, host["busy"].deviation.values) == ((70,), (1.5,))
        assert host["busy"].above_baseline is None
        of_memory = (host["memory_available"], host[process])
        assert [sampled.values.values for sampled in of_memory] == [(3900,), (130,)]
        assert [sampled.above_baseline and sampled.above_baseline.values for sampled in of_memory] == [(1100,), (30,)]


def run_of(*columns: Column, **given_fields: Any) -> OverloadResult:
    return overload_columns.result([point(column) for column in columns], **given_fields)


class TestJudgement:
    def test_the_first_experiment_found_tayga_graceful(self) -> None:
        judgement = run_of(*TAYGA).judgement
        assert (judgement.graceful, judgement.saturated_at) == (True, 2)
        limits = {(check.rule, check.clients): check.limit for check in judgement.checks}
        assert limits["rate", 8] == pytest.approx(0.9 * 7085)
        assert limits["rtt", 8] == pytest.approx(1.25 * 4 * 957_000)
        assert sum(check.rule == "loss" for check in judgement.checks) == 4

    def test_pf_was_not_saturated_before_the_most_clients(self) -> None:
        result = run_of(*PF)
        assert (result.judgement.graceful, result.judgement.saturated_at) == (True, 8)
        assert "fewer than 8 clients do not saturate the gateway" in verdict_words(result)

    @pytest.mark.parametrize(
        ("last", "rule", "words"),
        [
            (Column(8, 6000, 4_406_000), "rate", "with 8 clients 6,000 replies/s, at least 6,376 are due"),
            (
                Column(8, 6890, 5_000_000),
                "rtt",
                "with 8 clients a mean round trip of 5 ms, at most 4.79 ms are allowed",
            ),
            (
                Column(8, 6890, 4_406_000, 0.2),
                "loss",
                "with 8 clients 0.20 % lost, at most 0.10 % are allowed",
            ),
        ],
    )
    def test_what_fails_is_named_with_its_figures(self, last: Column, rule: str, words: str) -> None:
        result = run_of(*TAYGA[:3], last)
        assert [check.rule for check in result.judgement.checks if not check.holds] == [rule]
        assert verdict_words(result) == f"Degradation is not graceful: {words}."

    def test_the_rules_are_printed_with_the_judgement(self) -> None:
        (words,) = judgement_words(run_of(*TAYGA))
        assert words.startswith("Degradation is graceful: with 4 clients 7,085 replies/s, at least 6,376 are due;")
        assert "at least 90 % of the most that it reaches" in words
        assert "at most 125 % of one that grows like the number of clients" in words

    def test_a_figure_that_the_tester_limited_is_not_judged(self) -> None:
        limited = point(TAYGA[3], tester_share_percent=figure(11.0))
        result = overload_columns.result([*(point(column) for column in TAYGA[:3]), limited])
        assert (limited.is_of_tester, limited.limited_by) == (True, "tester")
        assert (result.judgement.graceful, result.judgement.reason) == (
            None,
            "with 8 clients, the most, the Tester was the limit",
        )
        assert all(entry.clients != 8 for entry in result.degradations)
        (note,) = _tester_notes(result)
        assert note.startswith("With 8 clients the Tester, not the gateway, was the limit")

    def test_few_clients_with_which_the_tester_was_the_limit_are_left_out_and_named(self) -> None:
        """What came with them was reached at least, so it counts for the most replies; their round trips do not."""
        limited = point(TAYGA[0], tester_share_percent=figure(11.0))
        result = overload_columns.result([limited, *(point(column) for column in TAYGA[1:])])
        assert (result.judgement.graceful, result.judgement.left_out) == (True, (1,))
        assert verdict_words(result).endswith("left out: 1 client, where the Tester was the limit.")
        fast = point(Column(1, 9000, 447_000), tester_share_percent=figure(11.0))
        result = overload_columns.result([fast, *(point(column) for column in TAYGA[1:])])
        assert result.judgement.graceful is None
        assert "the most replies came with a number of clients" in str(result.judgement.reason)

    def test_one_number_of_clients_is_no_degradation(self) -> None:
        assert run_of(TAYGA[0]).judgement.reason == "one number of clients shows no degradation"

    def test_xpd_is_that_of_the_flows(self) -> None:
        percents = {(entry.clients, entry.quantity): entry.percent for entry in run_of(*TAYGA).degradations}
        assert percents[8, "echo replies"] == pytest.approx((5721 - 6890) / 5721 * 100)
        assert percents[8, "round-trip time mean"] == pytest.approx((4406 - 447) / 447 * 100)

    @given(st.lists(st.integers(1, 64), min_size=2, max_size=6, unique=True), st.integers(1, 64))
    def test_a_gateway_with_delay_and_capacity_alone_is_always_graceful(
        self, clients: list[int], saturating: int
    ) -> None:
        """Round trips of such a gateway grow exactly like the clients, and its packets/s never fall."""
        columns = [
            Column(number, min(number, saturating) * 4000, 1_000_000 * max(1.0, number / saturating))
            for number in clients
        ]
        assert run_of(*columns).judgement.graceful

    def test_a_result_is_read_as_it_was_written(self) -> None:
        result = run_of(*TAYGA)
        text = result.model_dump_json(by_alias=True)
        assert OverloadResult.model_validate_json(text) == result
        assert json.loads(text)["judgement"]["graceful"] is True


class TestQuantities:
    def test_the_most_replies_come_first(self) -> None:
        first, *others = run_of(*TAYGA).own_quantities()
        assert (first.name, first.unit, first.median, first.is_headline) == ("most replies", "packets/s", 7085, True)
        assert not any(quantity.is_headline for quantity in others)
        assert {quantity.coordinates["clients"] for quantity in others} == {1, 2, 4, 8}

    def test_the_most_replies_of_a_column_that_the_tester_limited_are_not_the_gateways(self) -> None:
        """A lower column of the gateway's own is not the most that it reaches."""
        limited = point(Column(16, 90_000, 170_000), tester_busy_percent=figure(95.0))
        points = [point(Column(8, 60_000, 130_000)), limited, point(Column(32, 55_000, 580_000))]
        first = next(overload_columns.result(points).own_quantities())
        assert (first.name, first.median, first.limited_by) == ("most replies", 90_000, "tester")
        assert why_not(first) == "the Tester was the limit"

    def test_memory_and_cpu_are_quantities_of_each_number_of_clients(self) -> None:
        rows = {(q.name, q.coordinates.get("clients")): q for q in run_of(*TAYGA).own_quantities()}
        assert rows["busy share, mean of the cores under echo requests", 4].median == 50
        assert rows["memory available, more in use than before", 4].median == 2048


class TestReport:
    def test_the_table_has_a_column_for_each_number_of_clients(self) -> None:
        table, clients = _tables(run_of(*TAYGA))
        assert [column.heading for column in table.columns] == ["", "1 client", "2 clients", "4 clients", "8 clients"]
        rows = {row[0]: row[1:] for row in table.rows if len(row) > 1}
        assert rows["echo loss"] == ("0.01 %", "0.01 %", "0.03 %", "0.03 %")
        assert rows["mean, ms"] == ("0.4470", "0.9570", "1.986", "4.406")
        assert rows["requests, packets/s"] == ("5,721", "6,614", "7,085", "6,890")
        assert rows["memory available, in use above baseline, MB"] == ("2.0",) * 4
        assert rows["busy share, mean of the cores, standard deviation"] == ("3.00",) * 4
        assert rows["slots"] == ("4", "8", "16", "32")
        assert len(clients.rows) == 2 + 4 + 8

    def test_a_collapsed_column_stays_in_the_table(self) -> None:
        collapsed = point(TAYGA[3], collapses=("tayga ended",), loss_percent=Figure(values=(), summary=None))
        table = next(_tables(overload_columns.result([point(TAYGA[0]), collapsed])))
        assert table.rows[0] == ("gateway", "works", "collapsed")
        assert table.rows[1] == ("echo loss", "0.01 %", "\u2013")

    def test_a_percentile_without_a_reply_says_in_how_many_repetitions(self) -> None:
        some, all_of_them = point(TAYGA[0]), point(TAYGA[3])
        unknown = {"p99.9": Figure(values=(None, 5), summary=None), "p99": Figure(values=(None, None), summary=None)}
        some = some.model_copy(update={"rtt_ns": some.rtt_ns | unknown})
        table = next(_tables(overload_columns.result([some, all_of_them])))
        cells = {row[0]: row[1] for row in table.rows if len(row) > 1}
        assert cells["99.9 %, ms"] == "no reply\nin 1 of 2"
        assert cells["99 %, ms"] == "no reply"

    def test_figures_that_contradict_each_other_are_named(self) -> None:
        (fine,) = _consistency_notes(run_of(*TAYGA))
        assert fine.startswith("Replies/s x mean round trip is never more than the slots")
        (wrong,) = _consistency_notes(run_of(Column(1, 5000, 1_000_000)))
        assert wrong.startswith("With 1 client replies/s x mean round trip is 5.0, more than the 4 slots: 200 requests")
        clean = point(Column(1, 5000, 1_000_000))
        clean = clean.model_copy(update={"counts": clean.counts.model_copy(update={"lost": (0,), "late": (0,)})})
        (contradiction,) = _consistency_notes(overload_columns.result([clean]))
        assert contradiction.endswith("so these figures contradict each other.")
        slow = clean.model_copy(update={"rtt_ns": {**clean.rtt_ns, "maximum": figure(12_000_000)}})
        (explained,) = _consistency_notes(overload_columns.result([slow]))
        assert "the longest round trip took 12 ms; a slot continues after 10ms without a reply" in explained

    def test_the_testers_own_round_trip_is_unknown_without_a_self_test(self) -> None:
        assert "are unknown: run `gatemark selftest` with the campaign file" in own_round_trip(run_of(*TAYGA))


def loop(clients: int, per_second: int, rate: int | None = None, mean_ns: int = 20_000, **given: Any) -> EchoLoop:
    fields: dict[str, Any] = {"family": "ipv6", "frame_octets": 122, "window": 4, "samples": 1000}
    times = dict.fromkeys(("minimum_ns", "mean_ns", "p50_ns", "p999_ns", "maximum_ns"), mean_ns)
    return EchoLoop(clients=clients, replies_per_second=per_second, frames_per_second=rate, **(fields | times | given))


def self_test(*loops: EchoLoop) -> SelfTestPart:
    return SelfTestPart(
        machine="m",
        port_kind="netns-af_packet",
        measured_at="2026-11-24T00:00:00Z",
        lateness_max_ns=1,
        entries=(),
        self_latency=(),
        echo_loops=loops,
    )


class TestTesterAlone:
    """The Tester's clients ask its own host that answers; with one client tayga makes 5,721 replies/s."""

    def test_a_column_is_the_testers_below_four_times_its_rate(self) -> None:
        for per_second, is_of_tester in ((4 * 5721, False), (4 * 5721 - 1, True)):
            run = run_of(*TAYGA).beside(self_test(loop(1, per_second), loop(2, 10**6), loop(4, 10**6), loop(8, 10**6)))
            assert [point.is_of_tester for point in run.points] == [is_of_tester, False, False, False]
            assert run.limited_by == "gateway", "4 clients get the most replies"
            words = [note for note in _tester_notes(run) if "22,883 replies/s, less than 4 times that" in note]
            assert len(words) == is_of_tester
        assert run.judgement.left_out == (1,)
        most = run_of(*TAYGA).beside(self_test(loop(1, 10**6), loop(2, 10**6), loop(4, 4 * 7000), loop(8, 10**6)))
        assert (most.points[2].is_of_tester, most.limited_by) == (True, "tester")

    def test_a_column_has_its_own_loop_and_the_nearest_higher_rate(self) -> None:
        timed = [loop(8, 1000 * rate, 1000 * rate, 10_000 + rate) for rate in (1, 6, 100)]
        other = loop(1, 77, frame_octets=84), loop(1, 78, window=8), loop(1, 79, family="ipv4")
        run = run_of(*TAYGA).beside(self_test(*timed, *other, loop(1, 10**5), loop(8, 2 * 10**5)))
        loops = [point.tester_loop for point in run.points]
        assert loops[1:3] == [None, None]
        assert loops[0] == OwnLoop(replies_per_second=10**5, rtt_ns=10_006, rtt_frames_per_second=6000)
        assert loops[3] == OwnLoop(replies_per_second=2 * 10**5, rtt_ns=10_100, rtt_frames_per_second=100_000)
        rows = {row[0]: row[1:] for table in _tables(run) for row in table.rows}
        assert rows["Tester alone, replies/s"] == ("100,000", "\u2013", "\u2013", "200,000")
        assert rows["Tester alone, round trip, median, \u00b5s"][0] == "10.01\nat 6,000/s"
        assert own_round_trip(run).startswith("Tester alone: its clients ask its own host")

    def test_at_a_constant_rate_the_fastest_loop_counts(self) -> None:
        column = point(Column(2, 1000, 10_000), frames_per_second=1000)
        run = overload_columns.result([column], mode="constant_rate")
        run = run.beside(self_test(loop(1, 10**6), loop(8, 5000, window=64)))
        assert run.points[0].tester_loop == OwnLoop(replies_per_second=5000, rtt_ns=None, rtt_frames_per_second=None)

    def test_the_campaign_says_which_loops_it_needs(self) -> None:
        asked = table_of(wanted := campaign({"clients": [1, 8]})).asked_echo(wanted)
        assert (asked.family, asked.frame_octets, asked.shapes) == ("ipv6", 122, ((1, 4), (8, 4)))
        rates = campaign({"mode": "constant_rate", "rates": ["1k"], "clients": [2, 4]}, technology="router44")
        asked = table_of(rates).asked_echo(rates)
        assert (asked.family, asked.frame_octets, asked.shapes) == ("ipv4", 102, ((4, 64),))

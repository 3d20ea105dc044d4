"""Stateful campaigns from campaign to report, single trials and their words, on simulated gateways."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedGateway
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment
from tests.trial_facts import blank, record_of

from gatemark import preflight
from gatemark.campaign.events import Event, PhaseStarted
from gatemark.campaign.journal import line_of
from gatemark.campaign.plan import cells_of
from gatemark.campaign.progress import ProgressState, live_view, phase_words, progress_display
from gatemark.cli.trial import in_words
from gatemark.config.model import Campaign
from gatemark.errors import ConfigError, GatewayCollapsed, HostConnectionError, TestBedError, TesterPortError
from gatemark.session import measure, single_trial
from gatemark.stored import open_result
from gatemark.tester import Equipment
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import PortFacts, TrialReport

NatCampaign = Callable[..., Campaign]
DEVICE = SimulatedDevice(capacity_forward=500_000, establishment_rate=20_000, noise=0.01)
ALL: dict[str, Any] = {
    "connections": {"count": [500, 1000], "rate": "50%"},
    "repetitions": 2,
    "connection_establishment_rate": {"maximum": "100k", "resolution": 1000, "validated": [False, True]},
    "frame_loss": {"rates": [1000]},
    "connection_tear_down_rate": {},
    "connection_tracking_table_capacity": {"start": 100, "maximum": 400, "maximum_rate": "10k"},
}


def test_every_record_of_a_stateful_campaign_is_read_as_it_was_written(
    nat_campaign: NatCampaign, tmp_path: Path
) -> None:
    result = measure(nat_campaign(**ALL), output=tmp_path / "out", equipment=simulated_equipment(DEVICE), report=False)
    file = result.folder / "trials.jsonl"
    records = read_journal(file)
    assert b"".join(line_of(record) for record in records) == file.read_bytes()
    assert [TrialRecord.model_validate_json(record.model_dump_json()) for record in records] == list(records)
    assert {record.order.connections for record in records if record.connections} >= {0, 500, 1000, 100, 200, 400}
    assert any(record.order.step.alpha is not None for record in records)
    assert any(record.connections and record.connections.tear_down_ns for record in records)
    asked: dict[int, list[int]] = {}
    for record in records:
        if record.connections and record.connections.behaviour:
            asked.setdefault(record.order.run.number, []).append(record.order.connections or 0)
    assert all(counts == sorted(set(counts)) for counts in asked.values()), "each is larger than those before"
    assert max(len(counts) for counts in asked.values()) > 1


def test_a_gateway_that_stops_working_has_collapsed_and_is_started_again(
    nat_campaign: NatCampaign, tmp_path: Path
) -> None:
    campaign = nat_campaign(connections={"count": [500, 1000]}, frame_loss={"rates": [1000]})
    beds: list[SimulatedTestBed] = []
    device = replace(DEVICE, collapses_beyond=700)
    with pytest.raises(GatewayCollapsed, match="the gateway does not answer"):
        measure(campaign, output=tmp_path / "out", equipment=simulated_equipment(device, beds=beds))
    assert beds[-1].gateway.restarts == 1
    assert len(open_result(tmp_path / "out").runs) == 1


def test_a_gateway_that_still_works_has_not_collapsed(nat_campaign: NatCampaign, tmp_path: Path) -> None:
    lossy = replace(DEVICE, drops_every_nth_connection=10)
    with pytest.raises(TestBedError, match="test phase 1 failed in every attempt") as caught:
        measure(nat_campaign(), output=tmp_path / "out", equipment=simulated_equipment(lossy))
    assert not isinstance(caught.value, GatewayCollapsed)


@pytest.mark.parametrize(
    "error",
    [
        HostConnectionError(what="the connection was lost", where="gateway", fix="see the network", began=True),
        TesterPortError(what="the interface is gone", where="left.port", fix="see the cable"),
    ],
    ids=["host that no command reaches", "port of the Tester"],
)
def test_what_failed_beside_the_gateway_says_nothing_of_it(
    nat_campaign: NatCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: TestBedError
) -> None:
    def lost(self: SimulatedGateway) -> None:
        raise error

    monkeypatch.setattr(SimulatedGateway, "check", lost)
    with pytest.raises(TestBedError) as caught:
        measure(nat_campaign(), output=tmp_path / "out", equipment=simulated_equipment(DEVICE))
    assert not isinstance(caught.value, GatewayCollapsed)


def test_progress_names_phases_and_connections(nat_campaign: NatCampaign, tmp_path: Path) -> None:
    out = io.StringIO()
    state, views, phases = ProgressState(), [], []
    with progress_display(Console(file=out, force_terminal=False, width=200)) as watcher:

        def on_event(event: Event) -> None:
            watcher.on_event(event)
            state.update(event)
            if isinstance(event, PhaseStarted):
                phases.append(phase_words(event))
                console = Console(file=io.StringIO(), width=120)
                with console.capture() as captured:
                    console.print(live_view(state))
                views.append(captured.get())

        measure(
            nat_campaign(**ALL),
            output=tmp_path / "out",
            equipment=simulated_equipment(DEVICE),
            on_event=on_event,
            on_plan=watcher.on_plan,
            report=False,
        )
    lines = out.getvalue().splitlines()
    assert any(line.endswith("forward, 1,000 connections") for line in lines if line.startswith("run "))
    assert any("connections/s for" in line and ", 1,000 connections (search): " in line for line in lines)
    assert any("frames/s for 1s, 500 connections (load): passed" in line for line in lines)
    assert any("tear-down of 1,000 connections in " in line for line in lines)
    assert any("tear-down of 0 connections in 200ms: passed" in line for line in lines)
    assert phases[0] == "phase 1, 500 connections at 100.0k connections/s"
    assert {words.partition(",")[0] for words in phases} == {"phase 1", "phase 2", "validation", "tear-down"}
    assert "phase 2, 500 connections at 1.000k frames/s" in phases
    assert all(words in " ".join(view.split()) for words, view in zip(phases, views, strict=True))


def test_a_repeated_phase_1_is_shown_with_its_attempt() -> None:
    event = PhaseStarted(trial_number=1, phase="phase 1", connections=10**6, per_second=50_000, attempt=1)
    assert phase_words(event) == "phase 1, 1,000,000 connections at 50.00k connections/s, attempt 2"


def one_trial(campaign: Campaign, device: SimulatedDevice, **more: Any) -> TrialRecord:
    cell = cells_of(campaign)[0]
    equipment = simulated_equipment(device)
    return single_trial(campaign, cell, frames_per_second=1000, equipment=equipment, **more)


class TestSingleTrial:
    def test_both_phases_are_told(self, nat_campaign: NatCampaign) -> None:
        words = in_words(one_trial(nat_campaign(), DEVICE)).splitlines()
        assert words[0] == "phase 1: 1000 connections at 10000 connections/s:"
        assert (
            "connections: 1000 of 1000 established; the gateway counts 1000 after phase 1, 1000 after phase 2" in words
        )
        assert "phase 2:" in words
        assert words[-1] == "verdict: passed"
        gateway = [line for line in words if line.startswith("gateway: ")]
        assert "1000 of 1000 connections keep their source port" in gateway[0]
        assert gateway[1].startswith(
            "gateway: 1000 of 1000 endpoints with several destinations have one public endpoint"
        )

    def test_queues_are_told_where_a_port_has_several(self) -> None:
        queues = {"left": (3, 1), "right": (4,)}
        ports = {side: blank(PortFacts, received_by_queue=received) for side, received in queues.items()}
        words = in_words(record_of(blank(TrialReport, ports=ports))).splitlines()
        assert [line for line in words if "by queue" in line] == ["left port: received by queue: 3, 1"]

    def test_phase_1_that_fails_is_told_with_every_attempt(self, nat_campaign: NatCampaign) -> None:
        device = SimulatedDevice(capacity_forward=500_000, drops_every_nth_connection=2, counts_connections=False)
        record = one_trial(nat_campaign(connections={"retries": 1}), device)
        words = in_words(record).splitlines()
        assert "phase 1: 1000 connections at 5000 connections/s, attempt 2:" in words
        assert "connections: 500 of 1000 established; the gateway cannot count them" in words
        assert "phase 2:" not in words
        assert "the trial is invalid:" in words
        assert not any(line.startswith("verdict") for line in words)

    def test_the_rate_of_phase_1_must_be_known(self, nat_campaign: NatCampaign) -> None:
        campaign = nat_campaign(connections={"rate": "50%"}, connection_establishment_rate={"maximum": "1M"})
        with pytest.raises(ConfigError, match=r"connections\.rate") as caught:
            one_trial(campaign, DEVICE)
        assert "--phase-one-rate" in str(caught.value)
        record = one_trial(campaign, DEVICE, connections_per_second=2000)
        assert record.connections is not None
        assert record.connections.phase_one[0].connections_per_second == 2000


class TestMemory:
    def equipment(self, mebibytes: int) -> Equipment:
        simulated = simulated_equipment(DEVICE)
        return Equipment(
            open_testbed=simulated.open_testbed,
            start_engine=simulated.start_engine,
            available_bytes=lambda: mebibytes << 20,
        )

    def test_more_connections_than_fit_are_refused_before_anything_is_made(
        self, nat_campaign: NatCampaign, tmp_path: Path
    ) -> None:
        campaign = nat_campaign(connections={"count": [1000, "4M"]})
        with pytest.raises(
            ConfigError, match=r"connections\.count.*31 MiB of memory for 4000000 connections"
        ) as caught:
            measure(campaign, output=tmp_path / "out", equipment=self.equipment(30))
        assert "measure at most 3871665 connections" in str(caught.value)
        assert not (tmp_path / "out").exists()

    def test_the_largest_capacity_is_checked_as_well(self, nat_campaign: NatCampaign, tmp_path: Path) -> None:
        campaign = nat_campaign(connection_tracking_table_capacity={"maximum": "8M", "maximum_rate": "1M"})
        with pytest.raises(ConfigError, match=r"connection_tracking_table_capacity\.maximum"):
            measure(campaign, output=tmp_path / "out", equipment=self.equipment(60))


class TestPreflight:
    def findings(self, campaign: Campaign, device: SimulatedDevice) -> list[tuple[str, str, str]]:
        record = one_trial(campaign, device)
        assert record.connections is not None
        result = [*preflight.judge_connections(record), *preflight.judge_path(campaign, record.report)]
        return [(finding.check, finding.status, finding.remedy) for finding in result]

    def test_a_good_gateway(self, nat_campaign: NatCampaign) -> None:
        assert self.findings(nat_campaign(), DEVICE) == [
            ("connections", "ok", ""),
            ("gateway path, forward", "ok", ""),
            ("gateway path, reverse", "ok", ""),
        ]

    def test_one_that_does_not_translate(self, nat_campaign: NatCampaign) -> None:
        device = SimulatedDevice(capacity_forward=500_000, table_size=0, overflow="untranslated")
        result = self.findings(nat_campaign(), device)
        assert [status for _, status, _ in result] == ["failed", "failed"]
        assert "without translation" in result[1][2]

    def test_one_that_counts_wrong(self, nat_campaign: NatCampaign) -> None:
        device = SimulatedDevice(capacity_forward=500_000, table_size=1, overflow="evict")
        result = self.findings(nat_campaign(), device)
        assert result[0][1] == "failed"
        assert "count_connections" in result[0][2]

    def test_few_connections_are_tried_each_way(self, nat_campaign: NatCampaign) -> None:
        campaign = nat_campaign(traffic={"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": 84}})
        few, cell = preflight.with_few_connections(campaign, cells_of(campaign)[0])
        assert few.connections_model.count == (10,)
        assert (cell.direction, cell.connections) == ("bidirectional", 10)

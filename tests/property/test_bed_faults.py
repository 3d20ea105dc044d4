"""A test bed and a host that fail or answer late, at every step, from a seed.

Commands at the gateway take too long or lose their connection, a count is missing, a clock is set, the host does not
tell what it has counted, samples are missing or are those of the trial before, a port goes away, Ctrl-C is pressed.
Whatever happens, a session ends with one of the product's own errors, no valid trial says of the gateway what is not
true, nothing is taken for its collapse, and in the end the figures are those of an undisturbed campaign or say that
they are not known.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway
from tests.simulated.equipment import SimulatedHost

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.base import Abilities, FrameDrops, HostReading, HostSample, TelemetryReading, Watch
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import GatemarkError, HostConnectionError, ImpossibleTimeError, TestBedError, TesterPortError
from gatemark.results.run import RunResult
from gatemark.trial.record import TrialRecord

SESSIONS_MAX = 60
CAPACITY, ESTABLISHMENT = 61_000, 23_000
DEVICE = SimulatedDevice(capacity_forward=CAPACITY, establishment_rate=ESTABLISHMENT)
CONTROL = {"clear_state": "clear", "count_connections": "count", "tear_down": "tear down"}
CAMPAIGN: dict[str, Any] = {
    "gateway": {
        "technology": "nat44",
        "pool": ["198.19.0.1"],
        "control": CONTROL | {"host": "root@192.0.2.1"},
        "telemetry": {"interval": "100ms", "required": True},
    },
    "testbed": {"kind": "ports"},
    "left": {"port": "pci:1", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"port": "pci:2", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": [128]}},
    "trial": {"duration": "1s"},
    "validity": {"retries": 1},
    "connections": {"count": [1000], "rate": "10k"},
    "throughput": {"maximum": "100k", "minimum": 100, "resolution": "10k"},
    "connection_establishment_rate": {"maximum": "50k", "minimum": "1k", "resolution": "10k", "validated": True},
    "connection_tear_down_rate": {},
    "repetitions": 1,
}
FAULTS = ("late", "lost", "port gone", "interrupt", "silent", "stale", "clock set")


@dataclass
class FaultyBed:
    """A simulated test bed that fails at a share of its steps."""

    gateway: SimulatedGateway
    rng: random.Random
    share: float
    faults: list[str] = field(default_factory=list)
    _read_before: TelemetryReading = field(default_factory=TelemetryReading)

    @property
    def can(self) -> Abilities:
        return Abilities(
            health=self.check,
            control=self,
            connections=self,
            booter=None,
            host=_Host(self, SimulatedHost(self.gateway)),
            telemetry=_Sampler(self),
            drops=self._drops,
            own_faults=self._own_faults,
        )

    def step(self, *possible: str) -> str | None:
        """Fail, or return how what is asked for is wrong; None if it is right."""
        if self.rng.random() >= self.share:
            return None
        fault = self.rng.choice(("late", "lost", "port gone", "interrupt", *possible))
        self.faults.append(fault)
        if fault == "late":
            raise TestBedError(what="a command took longer than 10 s", where="gateway", fix="look at the host")
        if fault == "lost":
            raise HostConnectionError(what="the connection was lost", where="ssh", fix="look at the host", began=True)
        if fault == "port gone":
            raise TesterPortError(what="the interface is gone", where="left port", fix="put it back")
        if fault == "clock set":
            raise ImpossibleTimeError(what="a time of the tear-down cannot be", where="gateway", fix="")
        if fault == "interrupt":
            raise KeyboardInterrupt
        return fault

    def check(self) -> None:
        """What fails here is never the gateway: that would be its collapse."""
        if self.rng.random() < self.share:
            self.faults.append("lost")
            raise HostConnectionError(what="no command reaches the host", where="ssh", fix="", began=False)
        self.gateway.check()

    def clear_state(self) -> None:
        self.step()
        self.gateway.clear_state()

    def count_connections(self) -> int | None:
        return None if self.step("silent") else self.gateway.count_connections()

    def tear_down(self) -> int:
        self.step(*["clock set"] * 4)
        return self.gateway.tear_down()

    def restart(self) -> None:
        self.step()
        self.gateway.restart()

    def reset(self) -> None:
        self.step()
        self.gateway.reset()

    def commands_since(self, _at_ns: int) -> tuple[str, ...]:
        return ()

    def _drops(self) -> FrameDrops:
        self.step()
        return FrameDrops()

    def _own_faults(self) -> tuple[str, ...]:
        self.step()
        return ()


@dataclass(frozen=True)
class _Host:
    bed: FaultyBed
    host: SimulatedHost

    def read(self) -> HostReading | None:
        return None if self.bed.step("silent") else self.host.read()

    def watched(self) -> AbstractContextManager[Watch | None]:
        return nullcontext() if self.bed.step("silent") else self.host.watched()


@dataclass
class _Sampler:
    bed: FaultyBed

    def start(self, _seconds: float) -> None:
        self.bed.step()

    def read(self) -> TelemetryReading:
        fault = self.bed.step("silent", "stale")
        if fault == "silent":
            return TelemetryReading(reason="the host did not answer in time")
        before, self.bed._read_before = self.bed._read_before, _samples()
        return before if fault == "stale" else self.bed._read_before


def _samples() -> TelemetryReading:
    now_ns = time.monotonic_ns()
    return TelemetryReading(samples=tuple(HostSample(at_ns=now_ns + n, error_ns=0, cpus={0: n // 2}) for n in (0, 10)))


@cache
def campaign() -> Campaign:
    return complete_campaign(campaign_from_dict(CAMPAIGN))


def session(path: Path, bed: FaultyBed) -> tuple[RunResult, ...] | BaseException:
    engine = SimulatedEngine(DEVICE, gateway=bed.gateway)
    with Journal(path) as journal:
        try:
            return run_campaign(campaign(), plan_of(campaign()), engine, journal, can=bed.can)
        except (GatemarkError, KeyboardInterrupt) as error:
            return error


def assert_true_or_unknown(outcome: tuple[RunResult, ...], truth: tuple[RunResult, ...], seed: int) -> int:
    """Compare figures; return how many are known. One that is not known is never blamed on the gateway."""
    known = 0
    for run, true in zip(outcome, truth, strict=True):
        for figure, of_truth in zip(run.own_quantities(), true.own_quantities(), strict=True):
            if figure.limited_by == "tester" or not figure.values:
                assert run.limited_by != "gateway" or run.refused or not of_truth.values, f"seed {seed}: {run}"
                continue
            assert figure.values == of_truth.values, f"seed {seed}: {figure.name}"
            known += 1
    return known


def assert_nothing_untrue(records: Sequence[TrialRecord], seed: int) -> None:
    for record in records:
        assert record.collapse is None, f"seed {seed}"
        assert record.connections is None or record.connections.collapse is None, f"seed {seed}"
        if record.validity.valid and record.connections is None and record.verdict is not None:
            loads = [way.frames_per_second for way in record.report.directions]
            assert record.verdict.passed == (max(loads) <= CAPACITY), f"seed {seed}: {record.order}"


def campaign_with_faults(truth: tuple[RunResult, ...], path: Path, seed: int) -> tuple[list[str], int]:
    """Run a campaign in sessions, each with faults, to its end; return the faults and how many figures are known."""
    rng = random.Random(seed)
    faults: list[str] = []
    for number in range(SESSIONS_MAX):
        share = 0.0 if number == SESSIONS_MAX - 1 else rng.choice((0.002, 0.02, 0.1))
        bed = FaultyBed(SimulatedGateway(DEVICE), rng, share)
        outcome = session(path, bed)
        faults += bed.faults
        assert_nothing_untrue(read_journal(path), seed)
        if not isinstance(outcome, BaseException):
            return faults, assert_true_or_unknown(outcome, truth, seed)
        assert bed.faults, f"seed {seed}: {outcome}"
    raise AssertionError(f"seed {seed}: no end")


@pytest.mark.endure
def test_a_test_bed_that_fails_costs_trials_and_never_gives_a_wrong_number(tmp_path: Path, endures: bool) -> None:
    truth = session(tmp_path / "truth.jsonl", FaultyBed(SimulatedGateway(DEVICE), random.Random(0), 0.0))
    assert not isinstance(truth, BaseException), truth
    assert assert_true_or_unknown(truth, truth, 0) > 3
    faults: set[str] = set()
    known = 0
    for seed in range(10_000 if endures else 180):
        path = tmp_path / f"{seed}.jsonl"
        met, figures = campaign_with_faults(truth, path, seed)
        faults.update(met)
        known += figures
        path.unlink()
    assert faults == set(FAULTS)
    assert known

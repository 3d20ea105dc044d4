"""A connection to the engine that fails in every way a pipe and a process can, at every step, from a seed.

Lines are dropped, cut, doubled and held back; requests are refused; the engine ends, or its report is not the answer
to what was asked; Ctrl-C is pressed. Whatever happens, a session ends after a bounded number of steps with one of the
product's own errors; what it leaves in the journal is what an undisturbed campaign would have written there, less at
most the trial that was under way; and the sessions after it reach the same result. No time passes: a line that never
comes is a time-out at once.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.property.router_campaign import BARE, ROUTER
from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.client import EngineClient
from gatemark.errors import EngineError, GatemarkError, Interrupted
from gatemark.results.run import RunResult
from gatemark.trial.record import TrialRecord

FAULTS = ("drop", "cut", "double", "hold", "end", "interrupt", "refuse", "lie")
Report = dict[str, Any]
SESSIONS_MAX = 60
STEPS_MAX = 2_000
"""More than any session has; a session that waits for ever would take more."""


def stale(report: Report, before: Report) -> None:
    report |= {"trial_number": before["trial_number"] - 1, "directions": deepcopy(before["directions"])}


def another_number(report: Report, _before: Report) -> None:
    report["trial_number"] += 1


def another_rate(report: Report, _before: Report) -> None:
    report["directions"][0]["frames_per_second"] -= 1


def another_length(report: Report, _before: Report) -> None:
    report["directions"][-1]["intended_duration_ns"] *= 2


def swapped(report: Report, _before: Report) -> None:
    for way in report["directions"]:
        way["direction"] = {"forward": "reverse", "reverse": "forward"}[way["direction"]]


def one_direction_less(report: Report, _before: Report) -> None:
    report["directions"].pop()


def doubled_counts(report: Report, _before: Report) -> None:
    counts = report["directions"][0]["foreground"]
    counts |= {name: 2 * value for name, value in counts.items() if isinstance(value, int)}
    counts["received"] += 1  # nothing is twice nothing


def off_by_one(report: Report, _before: Report) -> None:
    report["directions"][0]["foreground"]["received"] += 1


def other_connections(report: Report, _before: Report) -> None:
    report["connections"] = {"count": 7, "established": 7}


def another_size(report: Report, _before: Report) -> None:
    counts = report["directions"][0]["foreground"]
    counts["frame_octets"] = (counts["frame_octets"] or 0) + 1


def another_phase(report: Report, _before: Report) -> None:
    if report["connections"] is None:
        report["phases"].pop()
    else:
        report["connections"]["phase"] = {"establish": "use", "use": "establish"}[report["connections"]["phase"]]


def other_clients(report: Report, _before: Report) -> None:
    if report["echo"] is None:
        trips = {"all": NO_ROUND_TRIPS, "first": NO_ROUND_TRIPS}
        report["echo"] = {"steady": None, "clients": [], "client_busy_ns": 0, "responder_busy_ns": 0, **trips}
    else:
        report["echo"]["clients"].append(report["echo"]["clients"][0])


def one_reply_more(report: Report, before: Report) -> None:
    if report["echo"] is None:
        return off_by_one(report, before)
    report["echo"]["clients"][0]["replies"] += 1


def other_round_trips(report: Report, before: Report) -> None:
    if report["echo"] is None:
        return off_by_one(report, before)
    report["echo"]["clients"][0]["rtt"]["requests"] += 1


NO_ROUND_TRIPS: Report = {
    "requests": 1,
    "samples": 0,
    "percentiles": [],
    **dict.fromkeys(("minimum_ns", "mean_ns", "deviation_ns", "maximum_ns")),
}
LIES = (
    stale, another_number, another_rate, another_length, swapped, one_direction_less, doubled_counts, off_by_one,
    other_connections, another_size, another_phase, other_clients, one_reply_more, other_round_trips,
)  # fmt: skip


class FaultyTransport:
    """Carries lines to a simulated engine and back, and fails: at a share of its steps, or at those that are named."""

    def __init__(self, engine: SimulatedEngine, rng: random.Random, planned: float | dict[int, str]) -> None:
        self.engine = engine
        self.steps = 0
        self.faults: list[str] = []
        self.lies: Sequence[Callable[[Report, Report], None]] = LIES
        self.lied = False
        self._rng = rng
        self._planned = planned
        self._lines: deque[str] = deque()
        self._trial: int | None = None
        self._has_ended = False

    def send(self, line: str) -> None:
        fault = self._step()
        if fault == "interrupt":
            raise KeyboardInterrupt
        if fault == "end" or self._has_ended:
            self._has_ended = True
            raise BrokenPipeError(32, "Broken pipe")
        self._answer(json.loads(line))

    def receive(self, timeout_s: float) -> str | None:
        fault = self._step()
        if fault == "interrupt":
            raise KeyboardInterrupt
        if fault == "end":
            self._has_ended = True
        if self._has_ended:
            return None
        if fault == "hold" or not self._lines:
            raise TimeoutError
        line = self._lines.popleft()
        if fault == "drop":
            return self.receive(timeout_s)
        if fault == "cut":
            return line[: self._rng.randrange(len(line))]
        if fault == "double":
            self._lines.appendleft(line)
        if fault == "lie" and "ports" in (report := json.loads(line)):
            self._rng.choice(self.lies)(report, deepcopy(report))
            self.lied = True
            return json.dumps(report)
        if fault == "refuse":
            return json.dumps({"answer": "error", "id": json.loads(line)["id"], "errors": [{"what": "no memory"}]})
        return line

    def kill(self) -> None:
        self._has_ended = True

    def close(self) -> None:
        self._has_ended = True

    def describe_end(self) -> str:
        return "ended by signal SIGKILL"

    def _step(self) -> str | None:
        self.steps += 1
        assert self.steps < STEPS_MAX, "the session does not end"
        if isinstance(self._planned, dict):
            fault = self._planned.get(self.steps)
        else:
            fault = self._rng.choice(FAULTS) if self._rng.random() < self._planned else None
        if fault is not None:
            self.faults.append(fault)
        return fault

    def _answer(self, request: dict[str, Any]) -> None:
        number, name = request["id"], request["request"]
        if name == "cancel":
            if any(json.loads(line).get("id") == number for line in self._lines):
                last = json.loads(self._lines[-1])
                self._lines[-1] = json.dumps({**last, "cancelled": True})
            return
        if name == "close":
            self._put({"answer": "ok"}, number)
            return
        answer: Mapping[str, Any]
        try:
            if name == "trial":
                answer = self.engine.trial(
                    request, lambda progress: self._put({"answer": "progress", **progress}, number)
                )
            elif name == "connections":
                answer = self.engine.connections()
            elif name == "resolve":
                answer = self.engine.resolve(request)
            elif name == "link":
                answer = self.engine.link()
            else:
                raise AssertionError(name)
        except EngineError as error:
            answer = {"answer": "error", "errors": [problem.to_json() for problem in error.problems]}
        self._put({"answer": "ok", **answer}, number)

    def _put(self, message: Mapping[str, Any], number: int) -> None:
        self._lines.append(json.dumps({**message, "id": number}))


STATELESS: dict[str, Any] = {**ROUTER, "delay": {"load": ["50%"], "duration": "2s", "first_tag": "1s", "tags": 5}}
STATEFUL: dict[str, Any] = {
    **STATELESS,
    "gateway": {
        "technology": "nat44",
        "pool": ["198.19.0.1"],
        "control": {"clear_state": "conntrack -F", "count_connections": "conntrack -C", "tear_down": "conntrack -F"},
    },
    "testbed": {"kind": "ports"},
    "left": {"port": "pci:1", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"port": "pci:2", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": [128]}},
    "connections": {"count": [1000], "rate": "10k"},
    "connection_establishment_rate": {"maximum": "50k", "minimum": "1k", "resolution": "10k", "validated": True},
    "connection_tear_down_rate": {},
    "repetitions": 1,
}
ECHO: dict[str, Any] = {
    **BARE,
    "validity": ROUTER["validity"],
    "left": {"ipv4": {"address": "198.18.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "2-9"}}},
    "right": {"ipv4": {"address": "198.19.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "2-99"}}},
    "overload": {"clients": [1, 2, 5], "count": 20, "window": 4, "destinations": 8},
    "repetitions": 6,
}
CAMPAIGNS = {"stateless": STATELESS, "stateful": STATEFUL, "echo": ECHO}
DEVICE = SimulatedDevice(capacity_forward=61_000, noise=0.05, hiccup_every=5, establishment_rate=23_000)


@cache
def campaign(kind: str) -> Campaign:
    loaded = complete_campaign(campaign_from_dict(CAMPAIGNS[kind]))
    return loaded


def session(kind: str, path: Path, transport: FaultyTransport) -> tuple[RunResult, ...] | GatemarkError:
    wanted = campaign(kind)
    with Journal(path) as journal:
        try:
            with EngineClient(transport) as engine:
                return run_campaign(wanted, plan_of(wanted), engine, journal, can=transport.engine.gateway.can)
        except GatemarkError as error:
            return error
        except KeyboardInterrupt:  # pressed while the engine was closed
            return Interrupted(what="stopped", where="test")


def engine() -> SimulatedEngine:
    return SimulatedEngine(DEVICE, gateway=SimulatedGateway(DEVICE))


def facts(path: Path) -> list[TrialRecord]:
    """What was measured: without when, and without how the gateway maps, which each session asks once for each run."""
    return [
        record.model_copy(
            update={
                "started_at": "",
                "seconds": 0.0,
                "connections": record.connections and record.connections.model_copy(update={"behaviour": None}),
            }
        )
        for record in read_journal(path)
    ]


@pytest.fixture(scope="module", params=list(CAMPAIGNS))
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, tuple[RunResult, ...], list[TrialRecord]]:
    """An undisturbed campaign: its kind, its results, its trials."""
    path = tmp_path_factory.mktemp("whole") / "trials.jsonl"
    results = session(request.param, path, FaultyTransport(engine(), random.Random(0), 0.0))
    assert isinstance(results, tuple)
    return request.param, results, facts(path)


Whole = tuple[str, tuple[RunResult, ...], list[TrialRecord]]


def campaign_with_faults(whole: Whole, path: Path, seed: int) -> list[str]:
    """Run a campaign in sessions, each with faults, to its end; return the faults."""
    kind, results, trials = whole
    rng = random.Random(seed)
    faults: list[str] = []
    for number in range(SESSIONS_MAX):
        is_last = number == SESSIONS_MAX - 1
        before = len(read_journal(path)) if path.exists() else 0
        transport = FaultyTransport(engine(), rng, 0.0 if is_last else rng.choice((0.01, 0.05, 0.2)))
        outcome = session(kind, path, transport)
        kept = facts(path)
        assert kept == trials[: len(kept)], f"seed {seed}: a wrong number"
        phases_max = 4 if kind == "stateful" else 1
        assert transport.engine.trials_made <= (len(kept) - before + 1) * phases_max, f"seed {seed}: trials were lost"
        faults += transport.faults
        if not isinstance(outcome, GatemarkError):
            assert outcome == results, f"seed {seed}"
            return faults
        assert transport.faults, f"seed {seed}: {outcome}"
    raise AssertionError(f"seed {seed}: no end")


@pytest.mark.endure
def test_a_connection_that_fails_costs_at_most_one_trial_and_never_a_wrong_number(
    whole: Whole, tmp_path: Path, endures: bool
) -> None:
    outcomes: set[str] = set()
    for seed in range(10_000 if endures else 10):
        path = tmp_path / f"{seed}.jsonl"
        outcomes.update(campaign_with_faults(whole, path, seed))
        path.unlink()
    assert outcomes == set(FAULTS)


@pytest.mark.endure
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_every_lie_about_every_kind_of_trial_is_an_error_of_the_engine(
    whole: Whole, tmp_path: Path, lie: Any, endures: bool
) -> None:
    """Whichever line of the first few it is in; each lie is in other ones of them."""
    kind, _, trials = whole
    lied = 0
    for step in range(1, 30) if endures else range(1 + LIES.index(lie) % 2, 30, 2):
        path = tmp_path / f"{step}.jsonl"
        transport = FaultyTransport(engine(), random.Random(step), {step: "lie"})
        transport.lies = (lie,)
        outcome = session(kind, path, transport)
        lied += transport.lied
        assert not transport.lied or isinstance(outcome, EngineError), (step, outcome)
        kept = facts(path)
        assert kept == trials[: len(kept)], step
    assert lied > (3 if endures else 1)


@pytest.mark.endure
def test_a_failure_at_every_single_step(whole: Whole, tmp_path: Path, endures: bool) -> None:
    """One fault, of each kind, at each step of the first session; the second one is undisturbed."""
    kind, results, trials = whole
    for number, fault in enumerate(FAULTS):
        for step in range(1, 44) if endures else range(1 + number % 9, 44, 9):
            path = tmp_path / f"{fault}-{step}.jsonl"
            first = FaultyTransport(engine(), random.Random(step), {step: fault})
            session(kind, path, first)
            assert first.faults == [fault]
            kept = facts(path)
            assert kept == trials[: len(kept)], (fault, step)
            assert session(kind, path, FaultyTransport(engine(), random.Random(0), 0.0)) == results, (fault, step)

"""What samples of a host say about a trial: which of them count for which part of it, and what is never told."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journals import read_journal
from tests.simulated.device import SimulatedDevice
from tests.simulated.equipment import SimulatedSampler, SimulatedTestBed, simulated_equipment
from tests.trial_facts import ORDER, record_of

from gatemark.campaign.facts import TrialTally
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import line_of
from gatemark.campaign.telemetry import TrialTimes, samples_text, telemetry_facts
from gatemark.cli.main import main
from gatemark.dut.base import (
    CpuTimes,
    HostReading,
    HostSample,
    InterruptSample,
    ProcessSample,
    TelemetryReading,
)
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.facts import SamplingFacts
from gatemark.results.toml_text import to_toml
from gatemark.series.report import section
from gatemark.series.run import measure_series
from gatemark.session import measure
from gatemark.stored import rebuild_report
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import PhaseTime
from gatemark.trial.telemetry import TelemetryFacts
from gatemark.trial.verdict import Verdict

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

SECOND = 10**9
BEGAN = 100 * SECOND
PHASES = [
    PhaseTime(phase=phase, duration_ns=seconds * SECOND)
    for phase, seconds in (("settle", 2), ("learn", 1), ("send", 10), ("drain", 2), ("rest", 3))
]
TIMES = TrialTimes(began_ns=BEGAN, ended_ns=BEGAN + 18 * SECOND, phases=PHASES)
STEP = 10_000_000


def sample(at_s: float, cpus: dict[int, float], **given: Any) -> HostSample:
    """A sample at a time, in seconds, from the start of sending, with the idle time of each CPU."""
    idle = {cpu: round(seconds * SECOND) for cpu, seconds in cpus.items()}
    return HostSample(at_ns=BEGAN + 3 * SECOND + round(at_s * SECOND), error_ns=STEP, cpus=idle, **given)


def reading(*samples: HostSample, **given: Any) -> TelemetryReading:
    return TelemetryReading(samples=samples, uncertainty_ns=STEP, **given)


def steady(share: float, begin: int, end: int) -> Iterator[HostSample]:
    """One CPU that is busy for a share of each second from `begin` to `end`, and idle before and after."""
    idle = 0.0
    for second in range(-2, 15):
        yield sample(second + 0.5, {0: idle})
        busy = max(0.0, min(second + 1.5, end) - max(second + 0.5, begin))
        idle += 1 - share * busy


def facts_of(read: TelemetryReading, times: TrialTimes = TIMES) -> TelemetryFacts:
    facts = telemetry_facts(read, times)
    assert facts is not None
    return facts


def test_the_share_while_frames_were_sent_is_that_of_the_time_between_samples_inside() -> None:
    facts = facts_of(reading(*steady(0.75, 0, 10)))
    span = facts.span("sending")
    assert span is not None and (span.intervals, span.covered_ns) == (9, 9 * SECOND)
    assert span.levels["busy"].mean == span.levels["cpu.0"].mean == 75.0
    assert span.levels["busy"].sd == 0.0
    before, after = facts.level("before", "busy"), facts.level("after", "busy")
    assert before is not None and before.mean == 0.0
    assert after is not None and after.mean == 0.0
    assert facts.span("whole") is None


@given(st.floats(0, 1), st.floats(-0.9, 0.9))
def test_whatever_the_phase_of_the_samples_no_time_beside_the_frames_counts(share: float, shift: float) -> None:
    moved = [replace(sample_, at_ns=sample_.at_ns) for sample_ in steady(share, 0, 10)]
    times = TrialTimes(began_ns=BEGAN + round(shift * SECOND), ended_ns=TIMES.ended_ns + SECOND, phases=PHASES)
    facts = facts_of(reading(*moved), times)
    span = facts.span("sending")
    assert span is not None
    begin, end = times.spans()["sending"]
    inside = [p for p in facts.points if begin <= p.at_ns + times.began_ns + times.before_ns <= end]
    assert span.intervals <= max(0, len(inside) - 1)


def test_the_busiest_core_is_that_of_the_highest_mean() -> None:
    facts = facts_of(reading(*(sample(s, {0: 0.9 * s, 1: 0.06 * s, 7: 0.5 * s}) for s in range(10))))
    span = facts.span("sending")
    assert span is not None and span.busiest_cpu == 1
    assert span.levels["busiest"].mean == pytest.approx(94.0)
    assert span.levels["busy"].mean == pytest.approx((10 + 94 + 50) / 3, abs=0.01)
    assert [span.levels[f"cpu.{cpu}"].mean for cpu in (0, 1, 7)] == pytest.approx([10, 94, 50])


def test_a_cpu_that_goes_away_has_no_share_for_that_time() -> None:
    cpus: list[dict[int, float]] = [{0: 1, 1: 1}, {0: 2, 1: 2}, {0: 3}, {0: 4, 1: 0.1}, {0: 5, 1: 1.1}]
    facts = facts_of(reading(*(sample(s + 1, cpu) for s, cpu in enumerate(cpus))))
    level = facts.level("sending", "cpu.1")
    assert level is not None and (level.samples, level.mean) == (2, 0.0)
    assert facts.faults == ("CPU 1 was not online all the time",)


@pytest.mark.parametrize("idle", [0.2, 5.0], ids=["backwards", "faster than time"])
def test_a_counter_that_cannot_be_is_told_and_gives_no_share(idle: float) -> None:
    facts = facts_of(reading(sample(1, {0: 1}), sample(2, {0: idle}), sample(3, {0: idle + 0.5})))
    level = facts.level("sending", "busy")
    assert level is not None and (level.samples, level.mean) == (1, 50.0)
    assert facts.faults == ("the idle time of CPU 0 ran backwards or faster than time",)


def test_a_short_trial_has_only_the_share_of_the_whole_of_it() -> None:
    facts = facts_of(reading(sample(-0.5, {0: 0}), sample(11, {0: 4.6})))
    span = facts.span("sending")
    assert span is None or not span.intervals
    whole = facts.span("whole")
    assert whole is not None and whole.covered_ns == 11.5 * SECOND
    assert whole.levels["busy"].mean == pytest.approx(60.0)


def test_what_was_read_around_a_trial_is_two_more_samples() -> None:
    def around(at_ns: int, idle_ns: int) -> HostReading:
        times = {0: CpuTimes(idle_ns=idle_ns, stolen_ns=0)}
        return HostReading(at_ns=at_ns, step_ns=STEP, queue_frames=1, cpus=times, threads={}, all_ran_ns=None)

    ends = around(BEGAN - 1000, 0), around(BEGAN + 18 * SECOND, 9 * SECOND)
    read = reading(sample(-4, {0: 1}, connections=9), sample(5, {0: 4}, connections=7), sample(30, {0: 20}))
    facts = telemetry_facts(read, TIMES, around=ends)
    assert facts is not None
    level = facts.level("whole", "busy")
    assert level is not None and level.mean == 50.0
    assert facts.first == facts.last == {"connections": 7}, "samples before and after the trial are not of it"


def test_fewer_than_two_samples_say_nothing() -> None:
    facts = facts_of(reading(sample(1, {0: 1})))
    assert facts.reason == "fewer than two samples were taken in the trial" and not facts.spans
    assert facts_of(TelemetryReading(reason="no sampler")).reason == "no sampler"
    assert telemetry_facts(None, TIMES) is None


def test_clocks_that_leave_much_open_leave_little_that_counts() -> None:
    samples = tuple(steady(0.5, 0, 10))
    facts = facts_of(TelemetryReading(samples=samples, uncertainty_ns=3 * SECOND))
    span = facts.span("sending")
    assert span is not None and span.intervals == 3
    late = replace(TIMES, ended_ns=TIMES.ended_ns + 2 * SECOND)
    span = facts_of(reading(*samples), late).span("sending")
    assert span is not None and span.intervals == 7, "two seconds in which it may have begun to send later"


def test_processes_of_a_name_count_together_and_a_new_one_is_told() -> None:
    def processes(*ran_s: float) -> dict[int, ProcessSample]:
        return {
            pid: ProcessSample(name="tayga", ran_ns=round(ran * SECOND), resident_kilobytes=100)
            for pid, ran in enumerate(ran_s)
        }

    ran = [(1.0, 1.0), (1.2, 1.3), (1.4, 1.6), (1.5,), (1.6,)]
    read = reading(
        *(sample(s + 1, {0: s}, processes=processes(*of)) for s, of in enumerate(ran)), processes=("tayga", "bird")
    )
    facts = facts_of(read)
    share, memory = facts.level("sending", "process.tayga.cpu"), facts.level("sending", "process.tayga.memory")
    assert share is not None and share.samples == 3
    assert share.mean == pytest.approx(100 * (0.5 + 0.5 + 0.1) / 3, abs=0.01)
    assert memory is not None and (memory.minimum, memory.maximum) == (100, 200)
    assert facts.faults == ("there was no process bird", "processes tayga ended or were started")


def taken(*by_second: dict[int, dict[int, int]] | None, cpus: tuple[int, ...] = (0, 1)) -> list[HostSample]:
    """A sample each second from the start of sending on, with what each CPU has taken of each interrupt."""
    return [
        sample(
            second + 0.5,
            dict.fromkeys(cpus, 0.5 * second),
            interrupts=None if counts is None else InterruptSample(cpus=cpus, taken=counts),
        )
        for second, counts in enumerate(by_second)
    ]


def test_interrupts_are_told_for_each_core_that_is_online() -> None:
    samples = taken(*({24: {0: 100 * s}, 25: {0: 10 * s, 2: 7}} for s in range(5)), cpus=(0, 1, 2))
    facts = facts_of(reading(*samples))
    levels = [facts.level("sending", f"interrupts.{cpu}") for cpu in (0, 1, 2)]
    assert [(level.mean, level.samples) for level in levels if level] == [(110, 4), (0, 4), (0, 4)]
    assert facts.points[0].values.keys() == set() and facts.points[1].values["interrupts.0"] == 110
    assert facts.faults == ()
    assert facts.level("before", "interrupts.0") is None


@pytest.mark.parametrize(
    ("third", "fault"),
    [
        ({24: {0: 2}}, "went backwards"),
        ({24: {}}, "went backwards"),
        ({}, "came or went"),
        ({24: {0: 200}, 25: {}}, "came or went"),
        (None, "some samples do not say"),
    ],
    ids=["wraps", "is set to 0", "goes", "comes", "is not understood"],
)
def test_a_count_of_interrupts_that_cannot_be_leaves_all_unknown(
    third: dict[int, dict[int, int]] | None, fault: str
) -> None:
    """The share of no core is right without that of every other, all the time."""
    facts = facts_of(reading(*taken({24: {0: 50}}, {24: {0: 150}}, third, {24: {0: 350}}, {24: {0: 450}})))
    span = facts.span("sending")
    assert span is not None and span.intervals == 4
    assert not [series for series in span.levels if series.startswith("interrupts")]
    assert [fault in told for told in facts.faults] == [True]
    rates = [point.values.get("interrupts.0") for point in facts.points]
    assert (rates[1], rates[2], rates[4]) == (100, None, 100)


def test_a_cpu_that_goes_off_line_leaves_the_interrupts_of_that_time_unknown() -> None:
    samples = taken({24: {0: 0, 1: 9}}, {24: {0: 100, 1: 9}})
    samples += [
        replace(late, at_ns=late.at_ns + 2 * SECOND) for late in taken({24: {0: 200}}, {24: {0: 300}}, cpus=(0,))
    ]
    facts = facts_of(reading(*samples))
    span = facts.span("sending")
    assert span is not None
    assert not [series for series in span.levels if series.startswith("interrupts")]
    assert any("came or went" in fault for fault in facts.faults)


def test_a_host_without_interrupts_says_nothing_of_them() -> None:
    facts = facts_of(reading(*steady(0.5, 0, 10)))
    assert facts.faults == ()
    assert not [series for span in facts.spans for series in span.levels if series.startswith("interrupts")]


def test_a_command_that_prints_no_number_is_told() -> None:
    facts = facts_of(reading(*(sample(s, {0: s}, printed={"good": float(s), "bad": None}) for s in range(1, 5))))
    level = facts.level("sending", "command.good")
    assert level is not None and level.mean == 2.5
    assert facts.level("sending", "command.bad") is None
    assert facts.faults == ("command bad failed or did not print one number",)


def test_the_journal_keeps_levels_and_the_file_all_samples(tmp_path: Path) -> None:
    facts = facts_of(reading(*steady(0.5, 0, 10)))
    record = record_of(telemetry=facts)
    (tmp_path / "trials.jsonl").write_bytes(line_of(record))
    (read,) = read_journal(tmp_path / "trials.jsonl")
    assert read.telemetry == facts.model_copy(update={"points": ()})
    assert b"at_ns" not in line_of(record)
    lines = samples_text(record).splitlines()
    assert lines[0] == "number,phase,at_s,cpu.0"
    assert lines[1] == "1,measured,-1.500," and lines[5] == "1,measured,2.500,50.0"
    assert samples_text(read) == ""


def test_the_figure_of_a_run_is_that_of_the_highest_load_that_passed() -> None:
    def trial(number: int, repetition: int, load: int, share: float, **given: Any) -> TrialRecord:
        step = replace(ORDER.step, frames_per_second=load)
        order = replace(ORDER, trial_number=number, repetition=repetition, step=step)
        return record_of(order=order, telemetry=facts_of(reading(*steady(share, 0, 10))), **given)

    failed = {"verdict": Verdict(passed=False)}
    trials = [trial(1, 0, 100, 0.1), trial(2, 0, 300, 0.9, **failed), trial(3, 0, 200, 0.4)]
    trials.append(trial(4, 1, 300, 0.8, **failed))
    (busy,) = (level for level in TrialTally(trials).telemetry if level.series == "busy")
    assert busy.values == (40, None) and (busy.phase, busy.unit) == ("measured", "%")
    assert TrialTally([record_of()]).telemetry == ()


def document(**telemetry: Any) -> dict[str, Any]:
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    return {
        "name": "sampled",
        "repetitions": 1,
        "gateway": {"technology": "router44", "control": {"host": "gateway"}, "telemetry": telemetry},
        "testbed": {"kind": "ports"},
        **{name: {"port": "ring", "ipv4": {"address": side, "gateway": far}} for name, (side, far) in sides.items()},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}},
        "trial": {"duration": "10s", "settle": "2s", "learn": "1s", "drain": "2s", "rest": "3s"},
        "throughput": {"maximum": 1000, "resolution": 100, "search_duration": "10s"},
    }


def problems(changed: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(changed)
    return {problem.where.removeprefix("campaign: "): problem.what for problem in caught.value.problems}


def test_a_namespace_is_sampled_by_default_and_a_host_only_if_asked() -> None:
    bed = {"testbed": {"kind": "netns", "recipe": "linux-router4"}, "frame_loss": {"rates": [1000]}}
    assert complete_campaign(campaign_from_dict(bed)).control.telemetry is not None
    assert (
        complete_campaign(campaign_from_dict({**bed, "gateway": {"telemetry": {"enabled": False}}})).control.telemetry
        is None
    )
    asked = document()
    assert complete_campaign(campaign_from_dict(asked)).control.telemetry is not None
    del asked["gateway"]["telemetry"]
    assert complete_campaign(campaign_from_dict(asked)).control.telemetry is None


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = problems(document(interval="50ms", cpus=[1, 1], processes=["a", "a"]))
    assert set(wrong) == {f"gateway.telemetry.{key}" for key in ("interval", "cpus", "processes")}
    assert problems(document(processes=["longer than a kernel keeps"]))
    local = document()
    local["gateway"]["control"] = {"describe": "uname"}
    assert "where the Tester also works" in problems(local)["gateway.telemetry.cpus"]
    del local["gateway"]["control"]
    assert "needs gateway.control" in problems(local)["gateway.telemetry"]


def test_what_will_be_sampled_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = document(interval="2s", processes=["jool"], commands={"load": "echo 1"})
    campaign["gateway"]["telemetry"]["required"] = True
    campaign_file = tmp_path / "campaign.toml"
    campaign_file.write_text(to_toml(campaign))
    assert main(["plan", str(campaign_file)]) == 0
    shown = capsys.readouterr().out
    assert (
        "every 2s on gateway: busy share of each CPU (all of the gateway), memory, connections, interrupts of" in shown
    )
    assert "its network cards by core, process jool" in shown
    assert "- telemetry.load: echo 1" in shown and "a trial without samples is invalid" in shown
    assert main(["plan", str(campaign_file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["telemetry"]["processes"] == ["jool"]


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A simulated test bed whose host is busy for half of the time; the seconds that it was asked to be sampled for."""
    asked: list[float] = []

    def read() -> TelemetryReading:
        start_ns = time.monotonic_ns() + 3 * SECOND
        samples = (
            HostSample(
                at_ns=start_ns + number * SECOND,
                error_ns=STEP,
                cpus={0: number * SECOND // 2},
                available_kilobytes=5000,
            )
            for number in range(-1, 12)
        )
        return TelemetryReading(samples=tuple(samples), uncertainty_ns=STEP)

    monkeypatch.setattr(SimulatedTestBed, "telemetry", SimulatedSampler(read, asked.append))
    describe = SimulatedTestBed.describe
    cost = SamplingFacts(interval_ns=SECOND, samples=50, cpu_ns=1_500_000)
    monkeypatch.setattr(SimulatedTestBed, "describe", lambda bed: replace(describe(bed), sampling=cost))
    return asked


def test_results_csv_and_report_say_what_the_host_did(sampled: list[float], tmp_path: Path) -> None:
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=10_000))
    result = measure(campaign_from_dict(document()), output=tmp_path / "out", equipment=equipment)
    assert set(sampled) == {18.0}
    (run,) = result.document.runs
    busy = {level.series: level for level in run.telemetry}["busy"]
    assert busy.values == (50,)
    told = result.document.telemetry
    assert told is not None and told.trials == told.sampled == told.sending == run.trials
    lines = (tmp_path / "out" / "result.csv").read_text().splitlines()
    assert sum('"busy share, busiest core",%,lower' in line for line in lines) == 1
    assert sum("memory available,kB,higher" in line for line in lines) == 1
    assert sorted(path.name for path in (tmp_path / "out" / "telemetry").iterdir()) == [
        f"trial-{number + 1:06d}.csv" for number in range(run.trials)
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What the gateway&#39;s host did" in page and "1.5 ms of CPU time" in page and "0.15 % of one core" in page
    assert "busy share of the gateway's host over time" in page
    assert "interrupts of" not in page.lower(), "a host without network cards of the gateway"
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert provenance["sessions"][0]["sampling"] == {"interval_ns": SECOND, "samples": 50, "cpu_ns": 1_500_000}


def page_with(counts: dict[int, int], monkeypatch: pytest.MonkeyPatch, folder: Path, cpus: range = range(32)) -> str:
    """The report on a host of 32 cores that each took a number of interrupts a second; `cpus`: those of the gateway."""
    sampler = SimulatedTestBed.telemetry
    assert sampler is not None
    read = sampler.read

    def with_interrupts() -> TelemetryReading:
        reading = read()
        samples = tuple(
            replace(
                sample_,
                cpus=dict.fromkeys(cpus, sample_.cpus[0]),
                interrupts=InterruptSample(
                    cpus=tuple(range(32)), taken={24: {cpu: n * s for cpu, n in counts.items()}, 25: {}}
                ),
            )
            for s, sample_ in enumerate(reading.samples)
        )
        return replace(reading, samples=samples)

    monkeypatch.setattr(SimulatedTestBed, "telemetry", SimulatedSampler(with_interrupts))
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=10_000))
    result = measure(campaign_from_dict(document()), output=folder, equipment=equipment)
    assert sum("interrupts" in line for line in (folder / "result.csv").read_text().splitlines()) == 0
    levels = {level.series: level for level in result.document.runs[0].telemetry}
    assert (levels["interrupts.0"].unit, levels["interrupts.0"].values) == ("1/s", (counts.get(0, 0),))
    head = next((folder / "telemetry").iterdir()).read_text().splitlines()[0]
    assert "interrupts.0" in head.split(",") and "interrupts.31" in head.split(",")
    return " ".join(re.sub("<[^>]*>", " ", (folder / "report.html").read_text()).split())


EVEN_CORES = range(0, 32, 2)


def test_cores_that_take_no_interrupts_are_warned_of(
    sampled: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A study once used only the even ones of 32 cores. Core 1 took some, but a hundredth of an even share is 16."""
    text = page_with({**dict.fromkeys(EVEN_CORES, 3200), 1: 15}, monkeypatch, tmp_path / "out")
    names = ", ".join(str(core) for core in range(1, 32, 2))
    assert (
        "warning: only 16 of 32 cores took interrupts of the network cards;"
        f" cores {names} took none or next to none (busy share in the mean: 50 %)." in text
    )
    assert "Interrupts of its network cards while frames were sent" in text
    assert "17 of 32 0: 6.2, 1: 0.0, 2: 6.2, 3: 0.0" in text


def test_cores_that_all_take_interrupts_are_not_warned_of(
    sampled: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counts = {cpu: 17 if cpu == 7 else 1600 for cpu in range(32)}
    text = page_with(counts, monkeypatch, tmp_path / "out")
    assert "32 of 32" in text and "warning: only" not in text and "not sampled (gateway" not in text


def test_interrupts_beside_the_gateways_cores_are_warned_of(
    sampled: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counts = {**dict.fromkeys(range(8), 750), 20: 1000, 21: 1000}
    text = page_with(counts, monkeypatch, tmp_path / "out", cpus=range(8))
    assert "warning: only" not in text, "all eight that are the gateway's took their share"
    assert "warning: 25 % of the interrupts of the network cards went to cores whose busy share is not sampled" in text
    assert "(gateway.telemetry.cpus): cores 20 to 21." in text


def test_a_host_whose_cards_are_polled_is_not_warned_of(
    sampled: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The few interrupts are of the connection to it."""
    text = page_with({3: 99}, monkeypatch, tmp_path / "out")
    assert "fewer than 100 interrupts of the network cards a second, so they do not show" in text
    assert "warning: only" not in text


def test_a_torn_file_of_samples_costs_the_plot_at_most(sampled: list[float], tmp_path: Path) -> None:
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=10_000))
    result = measure(campaign_from_dict(document()), output=tmp_path / "out", equipment=equipment)
    for file in (tmp_path / "out" / "telemetry").iterdir():
        file.write_bytes(file.read_bytes()[:-7] + b"\x00\xff")
    rebuild_report(result.folder)
    for file in (tmp_path / "out" / "telemetry").iterdir():
        file.unlink()
    rebuild_report(result.folder)


@pytest.mark.parametrize("required", [False, True])
def test_a_trial_without_samples_counts_unless_the_campaign_asks_for_them(
    required: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sampler = SimulatedSampler(lambda: TelemetryReading(reason="the sampler is gone"))
    monkeypatch.setattr(SimulatedTestBed, "telemetry", sampler)
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=10_000))
    result = measure(campaign_from_dict(document(required=required)), output=tmp_path / "out", equipment=equipment)
    told = result.document.telemetry
    assert told is not None and told.sampled == 0 and told.reasons[0].reason == "the sampler is gone"
    validity = result.document.validity
    assert (validity.invalid == validity.trials) is required and (validity.valid == validity.trials) is not required
    if required:
        assert validity.reasons[0].reason == "test bed: the gateway's host was not sampled: the sampler is gone"
    (run,) = result.document.runs
    assert all(value is None for level in run.telemetry for value in level.values)


def test_a_series_has_the_shares_of_its_columns_in_one_table(sampled: list[float], tmp_path: Path) -> None:
    file = tmp_path / "series.toml"
    file.write_text(to_toml(document()) + '\n[[vary]]\n"gateway.cores" = [1, 2]\n')
    result = measure_series(
        file, output=tmp_path / "out", equipment=simulated_equipment(SimulatedDevice(capacity_forward=10_000))
    )
    (busiest,) = (sample_ for sample_ in result.document.metrics if sample_.quantity == "busy share, busiest core")
    assert (busiest.unit, busiest.better, busiest.headline) == ("%", "lower", False)
    assert [figure.median for figure in busiest.figures] == [50, 50]
    assert "busy share, busiest core" in (tmp_path / "out" / "series.csv").read_text()
    assert "busy share, busiest core" in (tmp_path / "out" / "report.html").read_text().lower()


def test_what_the_host_did_is_no_bound_whatever_limited_the_run(sampled: list[float], tmp_path: Path) -> None:
    file = tmp_path / "series.toml"
    file.write_text(to_toml(document()) + '\n[[vary]]\n"gateway.cores" = [1, 2]\n')
    for device, limit in (
        (SimulatedDevice(capacity_forward=10_000), "maximum"),
        (SimulatedDevice(capacity_forward=10_000, tester_limit=500), "tester"),
    ):
        result = measure_series(file, output=tmp_path / limit, equipment=simulated_equipment(device))
        metrics = {metric.quantity: metric for metric in result.document.metrics}
        assert {figure.limited_by for figure in metrics["throughput"].figures} == {limit}
        busy = metrics["busy share, busiest core"]
        assert [(figure.limited_by, figure.median) for figure in busy.figures] == [(None, 50), (None, 50)]
        assert [figure.ratio_to_previous for figure in busy.figures] == [None, 1.0]
        assert result.has_failed is (limit == "tester"), "the host's figures say nothing of what the gateway can do"
        rows = section(result.document).tables[0].rows
        begin = next(number for number, row in enumerate(rows) if row[0].startswith("Busy share, busiest core"))
        block = rows[begin + 1 :]
        block = block[: next((number for number, row in enumerate(block) if len(row) == 1), len(block))]
        assert ("Median", "50.00 %", "50.00 %") in block
        assert not any("≥" in cell or "limited" in cell.lower() for row in block for cell in row)
        with (result.folder / "series.csv").open() as lines:
            told = [row for row in csv.DictReader(lines) if row["quantity"] == "busy share, busiest core"]
        assert [row["limited_by"] for row in told] == ["", ""]


def test_two_samples_that_are_too_near_have_no_share() -> None:
    """The kernel's steps of 10 ms would make 0 or 100 % of a time of 20 ms."""
    facts = facts_of(reading(sample(1, {0: 0}), sample(2, {0: 0.5}), sample(2.02, {0: 0.5}), sample(3.02, {0: 1.0})))
    span = facts.span("sending")
    assert span is not None and (span.intervals, span.covered_ns) == (2, 2 * SECOND)
    assert span.levels["busy"].maximum == 50.0


def test_a_host_that_tells_no_cpus_has_what_its_commands_say() -> None:
    facts = facts_of(reading(*(sample(s, {}, printed={"states": 100.0 * s}) for s in range(-1, 12))))
    level = facts.level("sending", "command.states")
    assert level is not None and (level.minimum, level.maximum) == (100, 900)
    assert facts.span("whole") is None and facts.reason is None


@given(
    st.lists(st.tuples(st.floats(-3, 15), st.dictionaries(st.integers(0, 3), st.floats(0, 20))), max_size=12),
    st.floats(0, 2),
)
def test_whatever_a_host_says_no_share_is_impossible(said: list[tuple[float, dict[int, float]]], open_s: float) -> None:
    samples = tuple(sample(at_s, cpus) for at_s, cpus in sorted(said, key=lambda sample_: sample_[0]))
    facts = facts_of(TelemetryReading(samples=samples, uncertainty_ns=round(open_s * SECOND)))
    for span in facts.spans:
        if span.span in TIMES.spans():
            begin_ns, end_ns = TIMES.spans()[span.span]
            assert span.covered_ns <= end_ns - begin_ns
        shares = [level for series, level in span.levels.items() if series.startswith(("cpu.", "bus"))]
        assert all(0 <= level.minimum <= level.mean <= level.maximum <= 100 for level in shares)

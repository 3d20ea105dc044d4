"""Calibration against netem, without a kernel: what is compared, what is not proven, what is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.calibration_evidence import PATH, SELF, delays

from gatemark.calibrate import netem, run
from gatemark.calibrate.checks import chosen_checks
from gatemark.calibrate.model import Check, Comparison, Evidence, NothingProven, ObservedTrial, Reference, TimerError
from gatemark.calibrate.run import Calibration
from gatemark.calibrate.store import StoredCalibration
from gatemark.calibrate.table import passed, rows_of, to_markdown
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import plan_of
from gatemark.dut.base import MadeGateway
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import CorePlan
from gatemark.trial.record import TrialRecord

MS = 1_000_000
TIMER = TimerError(median_ns=40_000, p90_ns=90_000)
CORES = CorePlan(tester=(1,), gateway=(0,))
NETEM = chosen_checks(["netem"])


def check_named(name: str) -> Check:
    (check,) = chosen_checks([name])
    return check


def delayed(**delays_ns: int) -> dict[str, Comparison]:
    """Compare these delays with 5 ms behind the path of SELF."""
    series = {**PATH, **{name.replace("_", "."): ns for name, ns in delays_ns.items()}}
    evidence = Evidence(
        results=(delays(series),), trials=(), reference=Reference(), self_error=SELF, timer=TIMER
    )  # fmt: skip
    return {row.quantity: row for row in check_named("netem-delay-5ms").compare(evidence)}


def trial(*, dropped: int, offered: int, lost: int, twice: int = 0, **gateway_drops: int) -> ObservedTrial:
    counts = SimpleNamespace(offered=offered, undelivered=lost, duplicate=twice)
    report = SimpleNamespace(directions=(SimpleNamespace(foreground=counts),))
    record = SimpleNamespace(is_decisive=True, gateway_drops=gateway_drops, report=report)
    return ObservedTrial(record=cast(TrialRecord, record), counts={"netem_dropped": dropped})


def compared(name: str, *trials: ObservedTrial) -> list[bool]:
    evidence = Evidence(results=(), trials=trials, reference=Reference())
    return [row.passed for row in check_named(name).compare(evidence)]


@pytest.mark.parametrize(("off_ns", "is_passed"), [
    (0, True), (-2_900, True), (-3_100, False), (TIMER.p90_ns, True), (TIMER.p90_ns + 1_900, True),
    (TIMER.p90_ns + 2_100, False),
])  # fmt: skip
def test_a_timer_is_late_and_never_early(off_ns: int, is_passed: bool) -> None:
    rows = delayed(minimum=5 * MS + 5_000 + off_ns, p50=5 * MS + 5_000 + off_ns)
    assert rows["median delay"].passed is rows["least delay"].passed is is_passed


def test_what_netem_dropped_is_what_the_tester_misses_to_the_frame() -> None:
    assert compared("netem-loss-50000ppm", trial(dropped=500, offered=10_000, lost=500)) == [True, True]
    assert compared("netem-loss-50000ppm", trial(dropped=499, offered=10_000, lost=500)) == [False, True]
    assert compared("netem-loss-50000ppm", trial(dropped=400, offered=10_000, lost=400)) == [True, False]
    assert compared("netem-duplicate-20000ppm", trial(dropped=0, offered=10_000, lost=0, twice=205)) == [True, True]
    assert compared("netem-duplicate-20000ppm", trial(dropped=0, offered=10_000, lost=0)) == [True, False]


@pytest.mark.parametrize(("lost", "is_passed"), [(0, True), (19, True), (20, False)])
def test_few_frames_are_drawn_as_poisson_numbers_are(lost: int, is_passed: bool) -> None:
    """Six of 6,000, on average: 16 or more once in 2,000 times, 20 or more once in 190,000 times."""
    assert compared("netem-loss-1000ppm", trial(dropped=lost, offered=6_000, lost=lost)) == [True, is_passed]


def test_frames_that_the_gateway_lost_elsewhere_prove_nothing() -> None:
    with pytest.raises(NothingProven, match="gateway-left queue full: 3"):
        compared("netem-loss-50000ppm", trial(dropped=497, offered=10_000, lost=500, **{"gateway-left queue full": 3}))


@pytest.mark.parametrize("check", NETEM, ids=lambda check: check.name)
def test_every_check_is_a_campaign_whose_settings_the_recipe_has(check: Check) -> None:
    assert check.netem
    document = netem.netem_campaign(check, check.netem, CORES)
    campaign = complete_campaign(campaign_from_dict(document, where=check.name))
    assert plan_of(campaign).runs
    assert dict(campaign.gateway.settings) == dict(check.netem)


class Kernel:
    """Answers what is asked of the gateway's kernel."""

    interfaces = {"right": "gw-right"}  # noqa: RUF012

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, script: str) -> str:
        self.asked.append(script)
        return self.answer


def test_the_kernel_is_asked_what_it_dropped_and_how_late_its_timers_are() -> None:
    shown: list[dict[str, Any]] = [{"kind": "prio", "drops": 9}, {"kind": "netem", "drops": 7}]
    kernel = Kernel(json.dumps(shown))
    assert netem.netem_drops(cast(MadeGateway, kernel)) == 7
    assert "gw-right" in kernel.asked[0]
    late = Kernel(" ".join(map(str, range(0, 100))))
    assert netem.timer_error(cast(MadeGateway, late), MS) == TimerError(median_ns=50, p90_ns=90)
    assert late.asked[0].endswith(f" {netem.SLEEPS} {MS}")


def test_what_this_machine_lacks_is_told_and_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in netem.unavailable()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("gatemark.dut.choose_kernel.missing_modules", lambda modules: ["sch_netem"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    lacking = netem.unavailable()
    assert "kernel has no sch_netem" in lacking and "gatemark kernel build" in lacking
    checks = chosen_checks(["netem-loss-50000ppm"])
    stored = StoredCalibration.create(tmp_path / "c", checks, ports="memif", quick=False)
    calibration = Calibration(
        ports="memif", output=stored.folder, on_event=print, tell=lambda _: None, keep=stored.write, cores=CORES
    )
    (result,) = calibration.run(checks)
    assert (result.status, result.attempts, result.skipped) == ("skipped", 1, lacking)
    assert not passed([result], 1), "nothing was measured"
    assert [row.outcome for row in rows_of([result])] == ["skipped"]
    assert f"Skipped:\n\n- netem-loss-50000ppm: {lacking}\n" in to_markdown([result], stored.where, None, chosen=1)
    again = StoredCalibration.open(stored.folder)
    assert [(kept.status, kept.skipped) for kept in again.results] == [("skipped", lacking)]
    monkeypatch.setattr(run, "unavailable", lambda: "")
    monkeypatch.setattr(
        run, "measure_netem",
        lambda *_, **__: Evidence(
            results=(), trials=(trial(dropped=500, offered=10_000, lost=500),), reference=Reference()
        ),
    )  # fmt: skip
    (result,) = calibration.run(checks, again.results)
    assert result.status == "passed", "it is measured once the machine has what it needs"
    assert passed([result], 1)

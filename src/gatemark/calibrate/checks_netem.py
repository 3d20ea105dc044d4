"""Delay, loss and duplication against netem of a Linux kernel, which others wrote: an independent known truth. Pure.

A frame's delay through netem is what it is set to, the path without it, and how late the kernel's timer is. The path is
measured with netem set to nothing; the timer is asked in the gateway's kernel by a program that sleeps as long as a
frame waits, of which 9 of 10 times bound a median. A timer is never early, so nothing of it is allowed below. Higher
percentiles are not compared: how late the latest timers of a trial are cannot be known from others.

Loss and duplication are drawn for each frame. How many frames netem dropped it counts itself, and that is compared to
the frame. The share of all frames lies between bounds that chance exceeds at most once in 15,000 times on either side.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from gatemark.calibrate.checks_delays import TOLERANCE_NS, series_of, whole
from gatemark.calibrate.model import Check, Comparison, Evidence, NothingProven, ObservedTrial, equal_frames
from gatemark.trial.loss import RARE, chance_inside

PROCEDURE = "netem"
LOAD = 2_000
"""A guest forwards many times as many, so no frame waits for another one."""
MILLION = 1_000_000
PERCENTILES = {"least": "minimum", "median": "p50"}

NO_RESULT = Comparison(quantity="delay or loss", unit="", true="a result", measured=None)


def netem_checks(*, quick: bool) -> list[Check]:
    """Return the checks of netem; `quick`: one delay and one loss, in shorter trials."""
    duration = "1s" if quick else "3s"
    checks = [_delay(5_000, duration), _loss(50_000, duration)]
    if not quick:
        checks += [_delay(20_000, duration), _loss(1_000, duration), _duplication(20_000, duration)]
    return checks


def _delay(delay_us: int, duration: str) -> Check:
    delay_ns = 1000 * delay_us

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        path, timer, measured = evidence.self_error, evidence.timer, _delays(evidence)
        if path is None or timer is None:
            return (NO_RESULT,)
        early = TOLERANCE_NS + path.median_ns - path.minimum_ns
        late = TOLERANCE_NS + path.p90_ns - path.median_ns + timer.p90_ns
        return tuple(
            Comparison(
                quantity=f"{name} delay",
                unit="ns",
                true=delay_ns + path.median_ns,
                measured=measured.get(percentile),
                allowed_below=early,
                allowed_above=late,
            )
            for name, percentile in PERCENTILES.items()
        )

    return _check(
        f"netem-delay-{delay_us // 1000}ms",
        f"every frame {delay_us} µs",
        {"delay_us": delay_us},
        {"delay": {"load": LOAD, "duration": duration, "tags": 100, "first_tag": "100ms"}},
        compare,
    )


def _loss(loss_ppm: int, duration: str) -> Check:
    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        trial = _decisive(evidence)
        if trial is None:
            return (NO_RESULT,)
        lost, offered = trial.record.report.directions[0].foreground.undelivered, _offered(trial)
        return (
            equal_frames("frames lost, and dropped by netem", trial.counts["netem_dropped"], lost),
            _share("share lost", loss_ppm, lost, offered),
        )

    return _check(
        f"netem-loss-{loss_ppm}ppm",
        f"{loss_ppm} of a million frames lost",
        {"loss_ppm": loss_ppm},
        {"trial": {"duration": duration}, "frame_loss": {"rates": [LOAD]}},
        compare,
    )


def _duplication(duplicate_ppm: int, duration: str) -> Check:
    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        trial = _decisive(evidence)
        if trial is None:
            return (NO_RESULT,)
        counts = trial.record.report.directions[0].foreground
        return (
            equal_frames("frames lost, and dropped by netem", trial.counts["netem_dropped"], counts.undelivered),
            _share("share that came twice", duplicate_ppm, counts.duplicate, _offered(trial)),
        )

    return _check(
        f"netem-duplicate-{duplicate_ppm}ppm",
        f"{duplicate_ppm} of a million frames come twice",
        {"duplicate_ppm": duplicate_ppm},
        {"trial": {"duration": duration}, "frame_loss": {"rates": [LOAD]}},
        compare,
    )


def _check(
    name: str,
    truth: str,
    settings: dict[str, int],
    tables: dict[str, object],
    compare: Callable[[Evidence], tuple[Comparison, ...]],
) -> Check:
    return Check(
        procedure=PROCEDURE,
        name=name,
        truth=truth,
        technology="router44",
        netem=settings,
        tables=tables,
        compare=compare,
        lateness_max="1s",  # delays are counted from when a frame left, not from when it was due
    )


def _share(quantity: str, probability_ppm: int, frames: int, offered: int) -> Comparison:
    probability = probability_ppm / MILLION
    most, least = _most(offered, probability), offered - _most(offered, 1 - probability)
    return Comparison(
        quantity=quantity,
        unit="%",
        true=100 * probability,
        measured=100 * frames / offered,
        allowed_below=100 * (probability - least / offered),
        allowed_above=100 * (most / offered - probability),
    )


def _most(frames: int, share: float) -> int:
    """Return how many frames are drawn of so many; chance draws more at most once in 15,000 times."""
    return next(n for n in count(round(share * frames)) if n >= frames or chance_inside(frames, n + 1, share) <= -RARE)


def _decisive(evidence: Evidence) -> ObservedTrial | None:
    """Return the trial that counts, None if there is none.

    Frames that the gateway lost elsewhere would be in no count of netem: NothingProven.
    """
    trial = next((trial for trial in reversed(evidence.trials) if trial.record.is_decisive), None)
    lost_elsewhere = {} if trial is None else trial.record.gateway_drops
    if drops := {name: count for name, count in lost_elsewhere.items() if count}:
        said = ", ".join(f"{name}: {count}" for name, count in drops.items())
        raise NothingProven(what=f"the gateway lost frames before netem: {said}", where=PROCEDURE, fix="try again")
    return trial


def _offered(trial: ObservedTrial) -> int:
    return trial.record.report.directions[0].foreground.offered


def _delays(evidence: Evidence) -> dict[str, int | None]:
    """Return delays by percentile, nanoseconds; empty without a result."""
    series = series_of(evidence)
    return {} if series is None else {name: whole(figure)[0] for name, figure in series.delay_ns.items()}

"""Losses too rare for any single trial: whether they depend on the load is told by all trials of a run together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp
from random import Random

import pytest

from gatemark.causes.rare import Offered, lost_alike

TOP = 40_000
APART = Fraction(3, 2)


def searched(share: Callable[[int], float], seed: int, repetitions: int = 3) -> list[Offered]:
    """Trials at a gateway that loses single frames, of searches that halve the distance of their bounds."""
    drawn = Random(seed)
    at_loads: dict[int, Offered] = {}
    for _ in range(repetitions):
        passed, failed, load = 0, TOP, TOP
        while failed - passed > TOP // 50:
            events = poisson(drawn, load * share(load))
            offered = at_loads.setdefault(load, Offered(load=load))
            offered.frames += load
            offered.lost += events
            offered.events += events
            offered.failed += events > 0
            passed, failed = (passed, load) if events else (load, failed)
            if passed == TOP:
                break
            load = (passed + failed) // 2
    return list(at_loads.values())


def poisson(drawn: Random, mean: float) -> int:
    """Draw a number of events (Knuth)."""
    count, product, least = 0, drawn.random(), exp(-mean)
    while product > least:
        count, product = count + 1, product * drawn.random()
    return count


def claimed(share: Callable[[int], float]) -> int:
    """Return in how many of 100 runs frames are said to be lost equally often at all loads."""
    return sum(bool(lost_alike(searched(share, seed), APART)) for seed in range(100))


@pytest.mark.parametrize("events", [8, 16, 30])
def test_the_same_share_at_any_load(events: int) -> None:
    """So many frames of the highest load: most runs show it, few as they are in each trial."""
    assert claimed(lambda _: events / TOP) >= 60


@pytest.mark.parametrize("limit", [12_000, 24_000])
@pytest.mark.parametrize("events", [1, 2, 4, 8, 16, 30])
def test_a_gateway_that_loses_few_frames_above_its_limit(events: int, limit: int) -> None:
    """With few events some runs look alike by chance: a search finds what passed below what failed in both cases."""
    assert claimed(lambda load: events / TOP if load > limit else 0) <= 8


def test_a_share_that_grows_with_the_load() -> None:
    assert claimed(lambda load: 16 * load / TOP**2) <= 8


def test_an_overload_at_the_top_hides_nothing() -> None:
    at_loads = [
        *searched(lambda _: 16 / TOP, 1),
        Offered(load=60_000, frames=60_000, lost=20_000, events=9000, failed=1),
    ]
    alike = lost_alike(at_loads, APART)
    assert {offered.load for offered in alike} == {offered.load for offered in at_loads} - {60_000}


def test_a_limit_that_loses_as_large_a_share_at_each_load_is_one() -> None:
    """Of both loads no more passes than is offered at the lower one."""
    assert not lost_alike(
        [Offered(load=load, frames=load, lost=load // 2, events=100, failed=1) for load in (10, 20)], APART
    )


def test_one_row_in_each_trial_is_a_queue_that_was_full() -> None:
    """It is lost at the end of each trial, and is longer the more is offered."""
    failed = [
        Offered(load=load, frames=load, lost=load - 9_000, events=9, failed=9) for load in range(10_000, 20_000, 1000)
    ]
    assert not lost_alike([*failed, Offered(load=9_000, frames=9_000)], APART)


def test_one_frame_in_each_trial_is_not_one_of_so_many() -> None:
    failed = [Offered(load=load, frames=load, lost=9, events=9, failed=9) for load in range(1000, 40_000, 1000)]
    assert not lost_alike(failed, Fraction(20))


def test_nothing_failed() -> None:
    assert not lost_alike([Offered(load=load, frames=load) for load in (1000, 2000)], APART)
    assert not lost_alike([], APART)

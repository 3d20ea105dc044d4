"""Intervals of ratios and differences from ranks: against tables, a slow oracle, and the share that they must hold."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.stats.ranks import (
    EXACT_MAX,
    difference_interval,
    pairs_left_out,
    ratio_interval,
    repetitions_needed,
)

P95 = Fraction(95, 100)


@pytest.mark.parametrize(
    ("repetitions", "critical"),
    [(3, None), (4, 0), (5, 2), (6, 5), (7, 8), (8, 13), (9, 17), (10, 23), (15, 64), (20, 127)],
)
def test_critical_values_are_those_of_the_published_tables(repetitions: int, critical: int | None) -> None:
    assert pairs_left_out(repetitions, repetitions, P95) == critical


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 3), (4, 4), (3, 6), (5, 2)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), P95, Fraction(99, 100)])
def test_counts_are_those_of_all_orders(first: int, second: int, confidence: Fraction) -> None:
    orders = [
        sum(place > other for other in set(range(first + second)) - set(ranks) for place in ranks)
        for ranks in combinations(range(first + second), first)
    ]
    allowed = (1 - confidence) / 2 * len(orders)
    held = [k for k in range(first * second + 1) if sum(u <= k for u in orders) <= allowed]
    assert pairs_left_out(first, second, confidence) == (max(held) if held else None)


def test_counting_and_the_normal_distribution_meet() -> None:
    half = EXACT_MAX // 2
    counted, normal = pairs_left_out(half, half, P95), pairs_left_out(half, half + 1, P95)
    assert counted is not None and normal is not None
    assert counted / half**2 == pytest.approx(normal / (half * (half + 1)), abs=0.002)


def test_how_many_repetitions_are_needed() -> None:
    assert [repetitions_needed(confidence) for confidence in (P95, Fraction(99, 100), 1 - Fraction(5, 2100))] == [
        4,
        5,
        6,
    ]
    assert ratio_interval([1, 2, 3], [1, 2, 3], P95) is None
    assert ratio_interval([1, 2, 3, 4], [1, 2, 3, 4], P95) is not None


def test_a_factor_is_held_and_what_is_far_away_is_not() -> None:
    reference = [100.0, 102, 98, 101, 99, 103, 97]
    interval = ratio_interval(reference, [value / 4 for value in reference], P95)
    assert interval is not None and interval.low < 0.25 < interval.high
    assert interval.low > 0.24 and interval.high < 0.26
    shifted = difference_interval(reference, [value - 100 for value in reference], P95)
    assert shifted is not None and shifted.low < -100 < shifted.high


def test_a_gateway_without_noise_differs_by_no_more_than_the_resolutions() -> None:
    lower, higher = [400_000] * 20, [404_000] * 20  # one capacity of 405,000, found on two grids
    bare = ratio_interval(lower, higher, P95)
    allowed = ratio_interval(lower, higher, P95, resolutions=(8_000, 8_000))
    assert bare is not None and bare.low > 1
    assert allowed is not None and allowed.low <= 1 <= allowed.high
    assert allowed.low == 404_000 / 408_000 and allowed.high == 412_000 / 400_000


def test_values_of_zero_have_no_ratio() -> None:
    with pytest.raises(ValueError, match="above 0"):
        ratio_interval([0, 1, 2, 3], [1, 2, 3, 4], P95)
    interval = difference_interval([0] * 5, [0] * 5, P95)
    assert interval is not None and (interval.low, interval.high) == (0, 0)


@given(
    values=st.lists(st.integers(min_value=1, max_value=10**6), min_size=8, max_size=30),
    resolution=st.integers(min_value=0, max_value=1000),
)
def test_a_side_never_differs_from_itself_and_turns_round_with_the_sides(values: list[int], resolution: int) -> None:
    first, second = values[::2], values[1::2]
    same = ratio_interval(values, values, P95, resolutions=(resolution, resolution))
    assert same is not None and same.low <= 1 <= same.high
    there = ratio_interval(first, second, P95, resolutions=(resolution, 0))
    back = ratio_interval(second, first, P95, resolutions=(0, resolution))
    assert there is not None and back is not None
    assert there.low == pytest.approx(1 / back.high)
    assert there.high == pytest.approx(1 / back.low)


@pytest.mark.parametrize("repetitions", [4, 7, 20])
@pytest.mark.parametrize("draw", ["normal", "skewed", "two peaks"])
def test_the_share_of_intervals_that_hold_the_truth_is_as_stated(repetitions: int, draw: str) -> None:
    source = random.Random(f"{repetitions} {draw}")
    shapes = {
        "normal": lambda: 100 + source.gauss(0, 5),
        "skewed": lambda: 100 - source.expovariate(0.2) % 90,
        "two peaks": lambda: source.choice((60, 100)) + source.random(),
    }

    def values(factor: float) -> list[float]:
        return [factor * shapes[draw]() for _ in range(repetitions)]

    rounds, held = 1000, 0
    for _ in range(rounds):
        interval = ratio_interval(values(1), values(0.9), P95)
        held += interval is not None and interval.low <= 0.9 <= interval.high
    assert held / rounds > 0.95 - 3 * (0.05 * 0.95 / rounds) ** 0.5

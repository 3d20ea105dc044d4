"""The interval of the centre of paired differences, and looks that hold together: against brute force and chance."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from gatemark.stats.looks import error_at, looks_made, pairs_at
from gatemark.stats.signed_ranks import EXACT_MAX, centre, centre_interval, means_left_out

RUNS = 10_000
LOOKS = 15
ERROR = Fraction(1, 20)
SHIFT = math.log(0.95)


@pytest.mark.parametrize("pairs", range(1, 11))
@pytest.mark.parametrize("error", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 50)])
def test_the_critical_value_is_that_of_all_choices_of_signs(pairs: int, error: Fraction) -> None:
    sums = [
        sum(rank for rank, sign in enumerate(signs, start=1) if sign)
        for signs in itertools.product((False, True), repeat=pairs)
    ]
    below = [k for k in range(max(sums) + 1) if Fraction(sum(w <= k for w in sums), len(sums)) <= error / 2]
    assert means_left_out(pairs, error) == (max(below) if below else None)


def test_the_normal_distribution_goes_on_where_counting_ends() -> None:
    for error in (Fraction(1, 20), Fraction(1, 200), Fraction(1, 5_000)):
        counted, assumed = (means_left_out(pairs, error) for pairs in (EXACT_MAX, EXACT_MAX + 1))
        assert counted is not None and assumed is not None
        assert 0 <= assumed - counted <= 30, "a pair more leaves out some 20 means more, whatever says so"


def test_the_interval_holds_what_the_test_does_not_refuse() -> None:
    draws = np.random.default_rng(3)
    for pairs in (10, 17, 40):
        differences = draws.normal(0.1, 0.3, pairs)
        interval = centre_interval([*differences], [*differences], ERROR)
        assert interval is not None
        for shift in np.linspace(-0.4, 0.6, 101):
            ranks = np.argsort(np.argsort(np.abs(differences - shift))) + 1
            positive = int(ranks[differences > shift].sum())
            refused = min(positive, pairs * (pairs + 1) // 2 - positive) <= (means_left_out(pairs, ERROR) or 0)
            assert refused == (not interval.low <= shift <= interval.high)


def test_the_estimate_is_the_median_of_all_means() -> None:
    assert centre([1, 2, 10]) == 3.75
    assert centre([1, 2]) == 1.5
    assert centre([-math.inf, -math.inf, 1]) == -math.inf


def test_a_bound_is_not_taken_for_a_value() -> None:
    measured = [-0.2 + 0.001 * number for number in range(20)]
    bounds = [-math.inf] * 20
    whole = centre_interval(measured, measured, ERROR)
    below = centre_interval([*bounds[:15], *measured[15:]], measured, ERROR)
    assert whole is not None and below is not None
    assert below.low == -math.inf
    assert below.high == whole.high < -0.18


def test_too_few_pairs_have_no_interval() -> None:
    assert centre_interval([0.5] * 5, [0.5] * 5, ERROR) is None
    assert centre_interval([0.5] * 6, [0.5] * 6, ERROR) is not None


def test_the_errors_of_all_looks_are_the_allowed_one() -> None:
    assert sum(error_at(look, ERROR) for look in range(1, 10_000)) == ERROR * (1 - Fraction(5, 10_004))
    assert [pairs_at(look) for look in range(1, 6)] == [10, 13, 16, 20, 25]
    assert [looks_made(pairs) for pairs in (0, 9, 10, 12, 13, 25)] == [0, 0, 1, 1, 2, 5]
    assert means_left_out(pairs_at(1), error_at(1, ERROR)) is not None, "the first look can show something"


def drawn(name: str, draws: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw logarithms of ratios about 0: normal ones, ones with outliers, or those of a machine that drifts."""
    if name == "normal":
        return draws.normal(0, 0.1, shape)
    if name == "outliers":
        return draws.standard_t(1.5, shape) * 0.05
    slow = 0.02 + 0.2 * np.abs(np.sin(np.arange(shape[1]) / 30))
    return draws.choice((-1, 1), shape) * np.abs(draws.normal(slow, 0.05, shape))


@pytest.mark.parametrize("name", ["normal", "outliers", "two humps"])
def test_who_looks_again_and_again_is_not_wrong_more_often(name: str) -> None:
    """Of 10,000 runs of equal gateways, at most 5 % ever show a difference (at 4 standard errors of that number)."""
    values = drawn(name, np.random.default_rng(39), (RUNS, pairs_at(LOOKS)))
    shown = np.zeros(RUNS, dtype=bool)
    naive = np.zeros(RUNS, dtype=bool)
    for look in range(1, LOOKS + 1):
        pairs = pairs_at(look)
        part = values[:, :pairs]
        ranks = np.argsort(np.argsort(np.abs(part), axis=1), axis=1) + 1
        positive = np.where(part > 0, ranks, 0).sum(axis=1)
        smaller = np.minimum(positive, pairs * (pairs + 1) // 2 - positive)
        shown |= smaller <= (means_left_out(pairs, error_at(look, ERROR)) or 0)
        naive |= smaller <= (means_left_out(pairs, ERROR) or 0)
    assert shown.mean() <= float(ERROR)
    assert naive.mean() > 2 * float(ERROR), "the same looks without spending are wrong far more often"


def test_five_percent_are_shown_in_time() -> None:
    """With the scatter that was measured, 0.1, a loss of 5 % is shown by 200 pairs in nearly every run."""
    draws = np.random.default_rng(5)
    needed = (SHIFT / (0.1 / math.sqrt(233))) ** 2
    assert math.sqrt(needed) > NormalDist().inv_cdf(1 - float(error_at(15, ERROR)) / 2) + 3
    shown = 0
    for _ in range(100):
        differences = draws.normal(SHIFT, 0.1, 233)
        interval = centre_interval([*differences], [*differences], error_at(15, ERROR))
        assert interval is not None
        shown += interval.high < 0
    assert shown >= 99

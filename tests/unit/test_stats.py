"""Percentiles, median and dispersion against the vectors of the RFCs and of published measurements."""

from fractions import Fraction

import pytest

from gatemark.stats.percentiles import median, percentile
from gatemark.stats.summary import Summary

RFC_2330_SECTION_11_3 = (-2, 7, 7, 4, 18, -5)


@pytest.mark.parametrize(("percent", "expected"), [(25, -2), (50, 4), (100, 18)])
def test_percentiles_of_the_example_in_rfc_2330(percent: int, expected: int) -> None:
    assert percentile(RFC_2330_SECTION_11_3, percent) == expected


def test_median_of_the_example_in_rfc_2330() -> None:
    assert median(RFC_2330_SECTION_11_3) == Fraction(11, 2)


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (20, 1, 1),
        (20, 99, 20),
        (100, 1, 1),
        (100, 99, 99),
        (500, Fraction(999, 10), 500),
        (1000, Fraction(999, 10), 999),
        (50_000, Fraction(999, 10), 49_950),
    ],
)
def test_rank_is_rounded_up_in_integers(count: int, percent: int | Fraction, expected: int) -> None:
    assert percentile(range(1, count + 1), percent) == expected


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (20, 10.5), (100, 50.5), (50_000, 25_000.5)])
def test_median_of_the_first_integers(count: int, expected: float) -> None:
    assert Summary.of(range(1, count + 1)).median == expected


def test_dispersion_of_a_published_measurement() -> None:
    summary = Summary.of([97_532, 98_540, 100_601])
    assert (summary.median, summary.p1, summary.p99) == (98_540, 97_532, 100_601)
    assert summary.dispersion_percent == pytest.approx(3.114, abs=0.0005)


def test_whole_figures_stay_integers() -> None:
    summary = Summary.of([Fraction(3), Fraction(5)])
    assert (summary.median, summary.p1, summary.p99) == (4, 3, 5)
    assert all(isinstance(figure, int) for figure in (summary.median, summary.p1, summary.p99))


@pytest.mark.parametrize("values", [(0, 0, 0), (-1, 0, 1), (-30, -20, -10), (-30, -20, 10)])
def test_a_median_that_is_not_above_zero_has_no_dispersion(values: tuple[int, ...]) -> None:
    assert Summary.of(values).dispersion_percent is None


def test_nothing_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="no values"):
        median([])
    with pytest.raises(ValueError, match="above 0"):
        percentile([1], 0)

"""Scale-up, ratios and tear-down rates against columns that were published with their medians."""

from fractions import Fraction

import pytest
from tests.unit.stateful_documents import tear_down

from gatemark.stats.series import ratios_to_previous, relative_scale_ups

CORES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("medians", "published"),
    [
        ((907_421, 1_623_045, 3_187_499, 6_249_999, 11_851_562, 12_007_812), (1.79, 1.96, 1.96, 1.90, 1.01)),
        ((208_984, 331_835, 420_653, 454_345, 483_153), (1.59, 1.27, 1.08, 1.06)),
        ((236_717, 371_286, 475_780, 491_794, 497_654), (1.57, 1.28, 1.03, 1.01)),
        ((625_976, 483_153, 356_445), (0.77, 0.74)),
        ((120_214, 85_039, 74_022), (0.71, 0.87)),
        ((102_929, 98_680, 99_218), (0.96, 1.01)),
    ],
)
def test_ratio_to_the_previous_median(medians: tuple[int, ...], published: tuple[float, ...]) -> None:
    first, *later = ratios_to_previous(medians)
    assert first is None
    for ratio, expected in zip(later, published, strict=True):
        assert ratio is not None
        assert float(ratio) == pytest.approx(expected, abs=0.0051)


def test_figures_below_zero_have_no_ratio() -> None:
    assert list(ratios_to_previous((-2, -4, 0, 3, -6, 2, 0))) == [None, None, None, None, None, None, 0]


@pytest.mark.parametrize(
    ("rates", "published"),
    [
        ((223_500, 371_100, 708_700, 1_341_000, 2_383_000), (1, 0.830, 0.793, 0.750, 0.666)),
        ((414_900, 742_300, 1_379_000, 2_336_000, 4_557_000), (1, 0.895, 0.831, 0.704, 0.686)),
        ((910_900, 1_523_000, 3_016_000, 5_920_000, 11_561_000), (1, 0.836, 0.828, 0.812, 0.793)),
        ((228_600, 358_500, 537_400, 569_900, 602_600), (1, 0.784, 0.588, 0.312, 0.165)),
        ((251_800, 405_700, 582_400, 604_100, 612_300), (1, 0.806, 0.578, 0.300, 0.152)),
    ],
)
def test_relative_scale_up(rates: tuple[int, ...], published: tuple[float, ...]) -> None:
    result = relative_scale_ups(dict(zip(CORES, rates, strict=True)))
    assert [float(result[cores]) for cores in CORES] == pytest.approx(list(published), abs=0.001)


@pytest.mark.parametrize(
    ("connections", "full_s", "empty_s", "rate"),
    [
        (1_562_500, "4.33", "0.55", 413_360),
        (6_250_000, "18.05", "1.28", 372_689),
        (25_000_000, "74.47", "4.17", 355_619),
        (100_000_000, "305.33", "15.74", 345_316),
        (4_000_000, "1.365", "0.30", 3_755_869),
        (40_000_000, "71.01", "2.96", 587_803),
        (400_000_000, "1178.3", "31.2", 348_690),
        (800_000_000, "2263.1", "31.2", 358_429),
    ],
)
def test_tear_down_rate_from_unrounded_medians(connections: int, full_s: str, empty_s: str, rate: int) -> None:
    full_ns, empty_ns = (int(Fraction(seconds) * 10**9) for seconds in (full_s, empty_s))
    torn = tear_down(connections, (full_ns,) * 3, (empty_ns,) * 3)
    assert torn.connections_per_second == pytest.approx(rate, rel=1e-4)  # the times were published rounded
    assert torn.reliable


def test_medians_are_not_rounded_before_they_are_subtracted() -> None:
    halves = tear_down(4_000_000, (1_360_000_000, 1_370_000_000), (300_000_000,) * 2)
    assert halves.net_ns == 1_065_000_000
    assert int(halves.connections_per_second or 0) == 3_755_868
    odd = tear_down(1, (1, 2), (0, 1))
    assert odd.net_ns == 1


def test_a_small_difference_is_not_reliable() -> None:
    full_ns = (430_000_000, 460_000_000, 480_000_000)
    torn = tear_down(400_000, full_ns, (290_000_000, 300_000_000, 310_000_000))
    assert torn.net_ns == 160_000_000
    assert not torn.reliable


@pytest.mark.parametrize("empty_ns", [5, 6])
def test_an_empty_table_that_takes_no_less_has_no_rate(empty_ns: int) -> None:
    torn = tear_down(1, (5,), (empty_ns,))
    assert torn.connections_per_second is None
    assert not torn.reliable


def test_edges_of_a_series() -> None:
    assert ratios_to_previous(()) == ()
    assert ratios_to_previous((5,)) == (None,)
    assert ratios_to_previous((0, 5)) == (None, None)
    with pytest.raises(ValueError, match="one core"):
        relative_scale_ups({2: 5})

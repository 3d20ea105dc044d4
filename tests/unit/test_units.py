from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.config.types import write_duration, write_ratio
from gatemark.units import (
    LineShare,
    format_duration_ns,
    format_rate,
    format_ratio,
    parse_duration,
    parse_rate,
    parse_rate_or_share,
    parse_ratio,
    theoretical_maximum,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000),
        (1000, 1000),
        ("10k", 10_000),
        ("1.5M", 1_500_000),
        ("10G", 10**10),
        ("1_000", 1000),
        (" 2 k ", 2000),
    ],
)
def test_rates(text: str | int, value: int) -> None:
    assert parse_rate(text) == value


@pytest.mark.parametrize("text", ["", "k", "10K", "-1", -1, "1.0005k", "10kk", "1e3", True, "0x10", "10%"])
def test_rates_that_are_none(text: str | int) -> None:
    with pytest.raises(ValueError, match=r"rate|negative|whole"):
        parse_rate(text)


@pytest.mark.parametrize(
    "text", ["1" + " " * 1_000_000 + "1", "1" * 4000 + " " * 1_000_000 + "!", "1" + "_" * 1_000_000]
)
def test_a_million_characters_are_soon_refused(text: str) -> None:
    for parse in (parse_rate, parse_duration):
        with pytest.raises(ValueError, match="is not a"):
            parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60s", 60 * 10**9),
        ("100ms", 10**8),
        ("1.5min", 90 * 10**9),
        ("2us", 2000),
        ("2µs", 2000),
        ("5ns", 5),
        ("1h", 3600 * 10**9),
        (0, 0),
        ("0", 0),
    ],
)
def test_durations(text: str | int, value: int) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize("text", ["60", 60, "s", "1 day", "-1s", "0.5ns", False])
def test_durations_that_are_none(text: str | int) -> None:
    with pytest.raises(ValueError, match=r"unit|duration|whole"):
        parse_duration(text)


def test_ratios_are_exact() -> None:
    assert parse_ratio("0.01%") == Fraction(1, 10_000)
    assert parse_ratio("1/3") == Fraction(1, 3)
    assert parse_ratio(0) == 0
    for text in ("0.5", "50", "1/0", "x%", True):
        with pytest.raises(ValueError, match="ratio"):
            parse_ratio(text)


def test_a_share_of_the_line_is_no_rate() -> None:
    share = parse_rate_or_share("50%")
    assert isinstance(share, LineShare)
    assert share.frames_per_second(14_880_952) == 7_440_476
    assert str(share) == "50%"
    assert parse_rate_or_share("50k") == 50_000


@pytest.mark.parametrize(
    ("bits", "octets", "rate"),
    [
        (10**9, 64, 1_488_095),
        (10**10, 84, 12_019_230),
        (10**11, 1538, 8_023_106),
        (10**9, 4096, 30_369),
        (10**7, 1518, 812),
    ],
)
def test_theoretical_maximum_of_rfc_5180_appendix_a(bits: int, octets: int, rate: int) -> None:
    for number in (1, 7, 10**9):
        assert theoretical_maximum(bits, {octets: number}) == rate


@pytest.mark.parametrize(
    ("frames", "rate"),
    [({64: 9, 84: 1}, 14_534_883), ({64: 1, 84: 1}, 13_297_872), ({64: 1, 84: 9}, 12_254_901)],
)
def test_theoretical_maximum_of_a_mix(frames: dict[int, int], rate: int) -> None:
    assert theoretical_maximum(10**10, frames) == rate


def test_formats() -> None:
    assert [format_rate(value) for value in (999, 10_000, 1_488_095, 148_809_523)] == [
        "999",
        "10.00k",
        "1.488M",
        "148.8M",
    ]
    assert format_ratio(Fraction(1, 10_000)) == "0.01%"
    texts = [format_duration_ns(value) for value in (0, 250, 1_500_000, 60 * 10**9, 245 * 10**9, 7380 * 10**9)]
    assert texts == ["0s", "250ns", "1.5ms", "60s", "4min 5s", "2h 3min"]


@given(st.integers(min_value=0, max_value=10**15))
def test_written_durations_read_back(nanoseconds: int) -> None:
    assert parse_duration(write_duration(nanoseconds)) == nanoseconds


@given(st.fractions(min_value=0, max_value=1))
def test_written_ratios_read_back(ratio: Fraction) -> None:
    assert parse_ratio(write_ratio(ratio)) == ratio

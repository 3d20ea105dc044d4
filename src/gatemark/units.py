"""Sizes, rates, durations and ratios as people write them, converted once into integers and exact fractions.

Units inside the program: frames per second in one direction, octets with FCS, nanoseconds, ratios in [0, 1].
Nothing here rounds: a value that has no exact integer form is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

PREAMBLE_AND_GAP_OCTETS = 20
"""Preamble, start of frame delimiter (8 octets) and inter-frame gap (12 octets) of Ethernet (RFC 5180 appendix A.1)."""

NANOSECONDS_PER_SECOND = 1_000_000_000

_MULTIPLES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_DURATIONS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_NUMBER = re.compile(r"([0-9](?:[0-9_]*[0-9])?(?:\.[0-9]+)?)\s*([^\s0-9]*)")


class LineShare(Fraction):
    """A share of the line rate, in [0, 1] for what a line can carry: ``50%`` is ``LineShare(1, 2)``."""

    __slots__ = ()

    def frames_per_second(self, line_rate: int) -> int:
        """Return this share of `line_rate` (frames per second), rounded down."""
        return int(self * line_rate)

    def __str__(self) -> str:
        return format_ratio(self)


def parse_rate(text: str | int) -> int:
    """Return the whole number that ``10k``, ``1.5M``, ``10G`` or ``1000`` stands for (frames or bits per second).

    Raises ValueError with a readable message when the text is no rate or no whole number.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        if text < 0:
            raise ValueError(f"{text} is negative")
        return text
    matched = _NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    if matched is None or matched.group(2) not in _MULTIPLES:
        raise ValueError(f"{text!r} is not a rate; write for example 1000, 10k or 1.5M")
    return _whole(Fraction(matched.group(1).replace("_", "")) * _MULTIPLES[matched.group(2)], text, "a whole number")


def parse_duration(text: str | int) -> int:
    """Return the nanoseconds that ``60s``, ``100ms``, ``1.5min``, ``2us`` or ``5ns`` stand for.

    A bare number is refused, because nothing says whether it means seconds; only 0 needs no unit.
    """
    if text in (0, "0") and not isinstance(text, bool):
        return 0
    if not isinstance(text, str):
        raise ValueError(f"{text!r} has no unit; write for example 60s, 100ms or 5min")
    matched = _NUMBER.fullmatch(text.strip())
    if matched is None or matched.group(2) not in _DURATIONS_NS:
        raise ValueError(f"{text!r} is not a duration; write for example 60s, 100ms or 5min")
    return _whole(Fraction(matched.group(1).replace("_", "")) * _DURATIONS_NS[matched.group(2)], text, "nanoseconds")


def parse_ratio(text: str | int | Fraction) -> Fraction:
    """Return the exact ratio that ``0.01%`` or ``1/10`` stand for; a bare number is a ratio only if it is 0 or 1."""
    if isinstance(text, Fraction):
        return text
    if text in (0, 1) and not isinstance(text, bool):
        return Fraction(text)
    if isinstance(text, str):
        stripped = text.strip()
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?\s*%", stripped):
            return Fraction(stripped.rstrip("% ")) / 100
        if re.fullmatch(r"[0-9]+/[0-9]*[1-9][0-9]*", stripped):
            return Fraction(stripped)
        if stripped in ("0", "1"):
            return Fraction(stripped)
    raise ValueError(f"{text!r} is not a ratio; write for example 0.01% or 0%")


def parse_rate_or_share(text: str | int | LineShare) -> int | LineShare:
    """Return frames per second for ``10k``, or a share of the line rate for ``50%``."""
    if isinstance(text, LineShare):
        return text
    if isinstance(text, str) and text.strip().endswith("%"):
        return LineShare(parse_ratio(text))
    return parse_rate(text)


def format_rate(value: int) -> str:
    """Return a rate with four significant digits and a unit: ``1.488M``, ``10.00k``, ``999``."""
    for unit in ("T", "G", "M", "k"):
        multiple = _MULTIPLES[unit]
        if value >= multiple:
            decimals = 3 if value < 10 * multiple else 2 if value < 100 * multiple else 1
            return f"{value / multiple:.{decimals}f}{unit}"
    return str(value)


def format_ratio(value: Fraction) -> str:
    """Return a ratio as a percentage without rounding where it has few digits: ``0.01%``, ``50%``."""
    percent = value * 100
    if percent.denominator == 1:
        return f"{percent.numerator}%"
    return f"{float(percent):.6f}".rstrip("0").rstrip(".") + "%"


def format_duration_ns(value: int) -> str:
    """Return nanoseconds for people: ``250ns``, ``1.5ms``, ``60s``, ``4min 5s``, ``2h 3min``."""
    if value < NANOSECONDS_PER_SECOND:
        for unit in ("ms", "us"):
            if value >= _DURATIONS_NS[unit]:
                return _short(value, _DURATIONS_NS[unit]) + unit
        return f"{value}ns" if value else "0s"
    if value < 120 * NANOSECONDS_PER_SECOND:
        return _short(value, NANOSECONDS_PER_SECOND) + "s"
    seconds = (value + NANOSECONDS_PER_SECOND // 2) // NANOSECONDS_PER_SECOND
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours}h {minutes}min" if minutes else f"{hours}h"
    return f"{minutes}min {seconds}s" if seconds else f"{minutes}min"


def theoretical_maximum(line_bits_per_second: int, frames: Mapping[int, int]) -> int:
    """Return the highest frame rate that a line can carry, in frames per second, rounded down (RFC 5180 appendix A.1).

    `frames` is what passes again and again: the number of frames of each size, in octets with FCS and VLAN tag.
    """
    octets = sum(number * (size + PREAMBLE_AND_GAP_OCTETS) for size, number in frames.items())
    return line_bits_per_second * sum(frames.values()) // (8 * octets)


def frames_in(frames_per_second: int, duration_ns: int) -> int:
    """Return how many frames are due within a time, rounded down as the engine does."""
    return frames_per_second * duration_ns // NANOSECONDS_PER_SECOND


def frames_before(frames_per_second: int, time_ns: int) -> int:
    """Return the number of the first frame that is due at a time or later: frame i is due at i / rate."""
    return -(-frames_per_second * time_ns // NANOSECONDS_PER_SECOND)


def _whole(value: Fraction, text: object, unit: str) -> int:
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of its smallest unit ({unit})")
    return value.numerator


def _short(value: int, unit: int) -> str:
    return f"{value / unit:.3f}".rstrip("0").rstrip(".")

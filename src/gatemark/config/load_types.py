"""Types of bursts and of loads that are shares of a measured throughput, like those of `gatemark.config.types`."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from gatemark.config.types import (
    A_SHARE,
    FRAMES_PER_SECOND_MAX,
    NEVER_ENDS,
    RATE_OR_SHARE_PATTERN,
    RATE_PATTERN,
    RATIO_PATTERN,
    BadValueError,
    Written,
    positive,
    read_share,
    with_remedy,
    write_rate,
    write_ratio,
    written_as,
)
from gatemark.units import LineShare, parse_rate, parse_rate_or_share, parse_ratio

SHARE_OF_THROUGHPUT_MAX = 10


def _load_of_throughput(value: Any) -> int | Fraction:
    rate = parse_rate_or_share(value)
    if isinstance(rate, LineShare):
        return _share_of_throughput(value)
    return _frame_count(value)


def _share_of_throughput(value: Any) -> Fraction:
    ratio = parse_ratio(value)
    if ratio > SHARE_OF_THROUGHPUT_MAX:
        raise BadValueError(f"{value!r} is more than ten times the throughput", "write at most 1000%")
    return ratio


def _frame_count(value: Any) -> int:
    rate = parse_rate(value)
    if rate > FRAMES_PER_SECOND_MAX:
        raise BadValueError(f"{value!r} is above 1G frames/s", "write frames per second, not bit/s")
    return rate


def _burst_resolution(value: Any) -> int | Fraction:
    if isinstance(parse_rate_or_share(value), LineShare):
        return read_share(value)
    return parse_rate(value)


LoadOfThroughput = Annotated[
    int | Fraction,
    PlainValidator(positive(with_remedy(_load_of_throughput), NEVER_ENDS)),
    PlainSerializer(write_rate),
    written_as(RATE_OR_SHARE_PATTERN, "50%"),
    Written("load", "loads"),
]
"""Frames per second in one direction, or a share of the throughput that the campaign measures."""
ShareOfThroughput = Annotated[
    Fraction,
    PlainValidator(positive(with_remedy(_share_of_throughput), A_SHARE)),
    PlainSerializer(write_ratio),
    written_as(RATIO_PATTERN, "110%"),
    Written("ratio above 0, at most 1000 %"),
]
"""A ratio in (0, 10]."""
FrameCount = Annotated[
    int,
    PlainValidator(positive(with_remedy(_frame_count), NEVER_ENDS)),
    written_as(RATE_PATTERN, "100k"),
    Written("rate", "rates"),
]
"""Frames per second in one direction."""
BurstResolution = Annotated[
    int | Fraction,
    PlainValidator(positive(with_remedy(_burst_resolution), "write frames, or % of the burst that passes")),
    PlainSerializer(write_rate),
    written_as(RATE_OR_SHARE_PATTERN, "1%"),
    Written("number of frames, or share"),
]
"""Frames of a burst, or a share of the one that passes."""

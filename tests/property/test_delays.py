"""Delays by arithmetic and delays frame by frame are the same; percentiles of a histogram are those of its values."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.delays import ClassDelays
from tests.simulated.state import Gaps

from gatemark.stats.percentiles import percentile
from gatemark.trial.delay import percentile_ns


@st.composite
def all_gaps(draw: st.DrawFn) -> Gaps:
    total = draw(st.integers(0, 60))
    head = draw(st.integers(0, total))
    after = draw(st.integers(0, total - head))
    tail = draw(st.integers(0, total - head - after))
    return Gaps(total=total, head=head, tail=tail, after=after, every=draw(st.integers(0, 5)))


def frame_by_frame(gaps: Gaps, pattern: Sequence[int], timeout_ns: int | None) -> list[int | None]:
    """Delay of each frame, None where it has none."""
    delays: list[int | None] = []
    for number in range(gaps.total):
        in_block = gaps.end <= number < gaps.end + gaps.tail
        is_nth = gaps.every > 0 and number < gaps.end and number % gaps.every == gaps.every - 1
        ns = pattern[number % len(pattern)]
        has_none = number < gaps.head or in_block or is_nth or ns < 0 or (timeout_ns is not None and ns > timeout_ns)
        delays.append(None if has_none else ns)
    return delays


@given(
    gaps=all_gaps(),
    pattern=st.lists(st.integers(-2, 9), min_size=1, max_size=5),
    timeout_ns=st.one_of(st.none(), st.integers(0, 9)),
    tags=st.lists(st.integers(0, 59), max_size=12, unique=True),
)
def test_the_report_is_that_of_single_frames(
    gaps: Gaps, pattern: list[int], timeout_ns: int | None, tags: list[int]
) -> None:
    tags = sorted(number for number in tags if number < gaps.total)
    wanted: dict[str, Any] = {"histogram": True, "variation": True, "tags": {}}
    result = ClassDelays(gaps, pattern, timeout_ns).report(wanted, tags)
    delays = frame_by_frame(gaps, pattern, timeout_ns)
    samples = sorted(ns for ns in delays if ns is not None)
    assert result["samples"] == len(samples)
    assert (result["minimum_ns"], result["maximum_ns"]) == ((samples[0], samples[-1]) if samples else (None, None))
    assert [ns for ns, count in result["histogram"] for _ in range(count)] == samples
    steps = sorted(now - before for before, now in pairwise(delays) if now is not None and before is not None)
    assert [ns for ns, count in result["variation"]["histogram"] for _ in range(count)] == steps
    assert result["variation"]["pairs"] + result["variation"]["skipped"] == max(0, gaps.total - 1)
    of_tags = sorted(ns for number in tags if (ns := delays[number]) is not None)
    assert result["tags"]["received"] == len(of_tags)
    worst = [*of_tags, *[10**9] * (len(tags) - len(of_tags))]
    p999 = worst[-1] if worst else None  # of so few tags the last one
    assert result["tags"]["p999_ns"] == (None if p999 == 10**9 else p999)


@given(values=st.lists(st.integers(0, 20), min_size=1, max_size=50), per_100000=st.integers(1, 100_000))
def test_percentiles_are_those_of_rfc_2330(values: list[int], per_100000: int) -> None:
    histogram = sorted((value, values.count(value)) for value in set(values))
    assert percentile_ns(histogram, len(values), per_100000) == percentile(values, Fraction(per_100000, 1000))


@given(values=st.lists(st.integers(0, 20), max_size=50), lost=st.integers(0, 20), per_100000=st.integers(1, 100_000))
def test_a_frame_without_a_delay_ranks_last(values: list[int], lost: int, per_100000: int) -> None:
    """Against the sorted list, the rank computed in integers: sorted[ceil(p * N) - 1]."""
    histogram = sorted((value, values.count(value)) for value in set(values))
    ordered: list[int | None] = [*sorted(values), *[None] * lost]
    rank = (per_100000 * len(ordered) + 99_999) // 100_000
    expected = ordered[rank - 1] if ordered else None
    assert percentile_ns(histogram, len(ordered), per_100000) == expected


@given(count=st.integers(1, 10**13), per_100000=st.integers(1, 100_000))
def test_the_rank_is_exact_however_many_frames_there_are(count: int, per_100000: int) -> None:
    """No rounding of floating point: the rank moves by one where it must, also beyond 2**32 frames."""
    rank = -(-per_100000 * count // 100_000)
    assert percentile_ns([(1, rank - 1), (2, count - rank + 1)], count, per_100000) == 2
    assert percentile_ns([(1, rank), (2, count - rank)], count, per_100000) == 1

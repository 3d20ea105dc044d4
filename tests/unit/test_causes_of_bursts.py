"""A search for the longest burst does not end on a loss that no buffer has to do with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.loss_tables import Frame, frames, lossy
from tests.trial_facts import ORDER, changed, record_of
from tests.unit.test_back_to_back import bursts
from tests.unit.test_causes_of_run import RULES

from gatemark.campaign.facts import TrialTally, blamed
from gatemark.causes.judgement import why_it_failed
from gatemark.procedures.back_to_back.report import no_average
from gatemark.trial.record import TrialRecord
from gatemark.trial.verdict import judge

LINE = 100_000
SENT = frames(20_000, destination_ports=range(1, 401))
FLOWS = frames(4_000, source_ports=range(1024, 1032), destination_ports=range(1, 9))
FIRST_FILTERED = next(frame.index for frame in SENT if frame.destination_port == 161)
BUFFER = 5_000

Loses = Callable[[Frame], bool]


def filtered(frame: Frame) -> bool:
    return frame.destination_port == 161


def overflows(frame: Frame) -> bool:
    """A buffer is full, and half of the line rate leaves it."""
    return frame.index > BUFFER and frame.index % 2 == 1


def nothing(_: Frame) -> bool:
    return False


def burst(length: int, loses: Loses = nothing, *, repetition: int = 0, sent: Sequence[Frame] = SENT) -> TrialRecord:
    report = lossy(sent[:length], loses, frames_per_second=LINE)
    step = replace(ORDER.step, frames_per_second=LINE, duration_ns=length * 10**9 // LINE, is_burst=True)
    record = record_of(
        report, order=replace(ORDER, repetition=repetition, step=step), verdict=judge(report, Fraction(0))
    )
    suspicion, causes = why_it_failed(record, RULES, asks_for_pattern=False)
    return changed(record, suspicion=suspicion, causes=causes)


def said(*trials: TrialRecord) -> str | None:
    return TrialTally(trials).no_limit


def test_a_filter() -> None:
    words = said(
        burst(8_000, filtered), burst(FIRST_FILTERED), burst(4_000, filtered), burst(FIRST_FILTERED + 1, filtered)
    )
    assert words is not None
    assert words.startswith("the bursts end on lost frames that no buffer has to do with")
    assert (
        "in 2 failed bursts of 4,000 to 8,000 frames forward foreground lost frames with destination port 161" in words
    )


def test_a_filter_before_a_full_buffer() -> None:
    longest = burst(20_000, lambda frame: filtered(frame) or overflows(frame))
    assert not any(cause.is_fixed for cause in longest.causes)
    assert said(longest, burst(4_000, filtered)) is not None


def test_a_dead_next_hop() -> None:
    words = said(
        burst(4_000, lambda frame: (frame.source_port, frame.destination_port) in {(1024, 3), (1029, 7)}, sent=FLOWS)
    )
    assert words is not None
    assert "all frames of some flows" in words


@pytest.mark.parametrize("length", [BUFFER + 10, 2 * BUFFER])
def test_a_full_buffer(length: int) -> None:
    assert said(burst(length, overflows), burst(BUFFER)) is None


def test_a_buffer_that_is_smaller_than_where_the_filter_begins() -> None:
    """The shortest burst that lost many frames lost them to the buffer."""

    def small(frame: Frame) -> bool:
        return frame.index > 100 and frame.index % 2 == 1

    assert said(burst(4_000, lambda frame: small(frame) or filtered(frame)), burst(200, small)) is None


def test_no_buffer_at_all() -> None:
    """Every second frame is lost, in turn."""
    trials = [burst(length, lambda frame: frame.index % 2 == 1) for length in (4_000, 400, 40)]
    assert {cause.cause for trial in trials for cause in trial.causes} == {"residue"}
    assert said(*trials, burst(1)) is None


def test_frames_that_arrived_in_a_shorter_burst_are_no_filters() -> None:
    failed = burst(4_000, filtered)
    assert said(failed, burst(3_000)) is None
    assert said(failed, burst(3_000, repetition=1)) is not None


def test_a_run_that_ends_so_has_no_figures() -> None:
    result = bursts(4_000, 4_100, 4_200)
    assert blamed(result, TrialTally([burst(BUFFER + 10, overflows)])) == result
    refused = blamed(result, TrialTally([burst(4_000, filtered)]))
    assert refused.refused is not None and refused.limited_by == "gateway"
    assert isinstance(refused, type(result))
    assert (refused.average_frames, refused.corrected_ns, refused.maximum_frames) == (None, None, None)
    assert no_average(refused) == "the search ended on lost frames that no buffer has to do with"
    assert [quantity.refused for quantity in refused.quantities()] == [refused.refused] * len(refused.quantities())

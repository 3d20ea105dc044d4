"""Frames are lost in rows that begin at random times: a link or a gateway that is bad now and then, for a few frames.

Rule: there are fewer runs of losses than chance makes (Wald and Wolfowitz 1940), so that losses come in rows, and the
rows come as chance would draw them (an alternating renewal process, Cox 1962): the frames between them vary as
exponential numbers do, the parts of the trial differ by their losses as much as that makes them, the longest row is
none that stands out, and the first one and the last one are no earlier or later than chance allows. A queue that
overflows loses in rows too, but at a rate: its rows are more even, or of all lengths where it is seldom emptied. So
nothing is said where the gateway's queues have counted the losses. Error: nothing is blamed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from gatemark.causes.evenness import spread_words
from gatemark.causes.losses import Losses
from gatemark.causes.randomness import (
    DEVIATIONS_MAX,
    Difference,
    chance_of_so_few_runs,
    difference,
    is_by_chance_from_end_to_end,
)
from gatemark.trial.cause import Cause
from gatemark.trial.loss import RARE, LossRun

ROWS_MIN = 20
BETWEEN_MIN = 4
"""Frames that pass between rows on average: where fewer do, an overload has as many rows."""
SPREAD_MIN = 0.35
"""What exponential distances differ by, standard deviation by mean, is 1, and less than this in the fewest that are
looked at but once in 15,000 times; even ones are at 0."""
CLUSTERED_MAX = 4.0
"""Parts of a trial whose losses vary more than so many times what random rows make have more to tell."""
PART_ROWS = 3
"""Parts of a trial that are compared have so many rows at least, on average."""


def explain(losses: Losses) -> Cause | None:
    """Return that frames were lost in rows at random times; None if they were not."""
    loss = losses.counts.loss
    if not losses.is_even or not loss.by_slice or loss.runs < ROWS_MIN or losses.queues_counted_them:
        return None
    if not _are_random_rows(losses):
        return None
    apart = difference_of_parts(losses, of_equal_rows=False)
    if apart.by > DEVIATIONS_MAX and apart.ratio > CLUSTERED_MAX:
        return None
    share = 100 * losses.lost / losses.counts.offered
    clustered = "" if apart.by <= DEVIATIONS_MAX else ", more in some parts of the trial than in others"
    return losses.cause(
        "rows",
        f"{losses.lost:,} of {losses.counts.offered:,} frames ({share:.3g} %) were lost in {loss.runs:,} rows of"
        f" {losses.lost / loss.runs:.2g} on average, which began at random{clustered}, {spread_words(losses)}",
        what="frames in rows that begin at random",
        explained=losses.lost,
        chance=None,
    )


def _are_random_rows(losses: Losses) -> bool:
    loss, runs = losses.counts.loss, losses.counts.loss.runs
    if _passed(losses) < BETWEEN_MIN or chance_of_so_few_runs(losses) > -RARE:
        return False
    longest = losses.lost / runs * (math.log(runs) + RARE)  # of so many exponential lengths, but once in 15,000 times
    if loss.longest_run > longest or not is_by_chance_from_end_to_end(losses, runs):
        return False
    passed = [after.index - before.index - before.length for before, after in pairwise(_known_rows(losses))]
    is_random = bool(passed) and statistics.pstdev(passed) >= SPREAD_MIN * statistics.fmean(passed)
    return is_random and difference_of_parts(losses, of_equal_rows=True).by >= -DEVIATIONS_MAX


def _passed(losses: Losses) -> float:
    """Return how many frames passed between two rows, on average."""
    return (losses.between - losses.lost) / losses.counts.loss.runs


def _known_rows(losses: Losses) -> Sequence[LossRun]:
    """Return all rows if these are known, else the first ones."""
    longest, loss = losses.direction.longest_loss_runs, losses.counts.loss
    return longest if len(longest) == loss.runs else loss.first_runs


def difference_of_parts(losses: Losses, *, of_equal_rows: bool) -> Difference:
    """Return how much parts of the trial differ by their losses from what rows make of it that begin at random.

    The rows are of one length, or of exponential ones, which differ most.
    """
    slices, runs = losses.slices_between, losses.counts.loss.runs
    together = max(1, math.ceil(PART_ROWS * len(slices) / runs))
    parts = [sum(slices[at : at + together]) for at in range(0, len(slices) - together + 1, together)]
    frames = losses.counts.offered * together / len(losses.counts.loss.by_slice)
    length, passed = losses.lost / runs, _passed(losses)
    of_lengths = 0.0 if of_equal_rows else length**2
    variance = frames * (length**2 * (passed**2 - passed) + passed**2 * of_lengths) / (length + passed) ** 3
    return difference(parts, variance, tails=6 / PART_ROWS)

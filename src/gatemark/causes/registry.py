"""Every cause once, in the order in which they are asked, and what they say of a trial."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from gatemark.causes import (
    age,
    counted,
    each,
    end,
    fields,
    first_frames,
    flows,
    gap,
    gateway,
    residue,
    rows,
    spread,
    start,
    too_large,
)
from gatemark.causes.gap import chance_in_rows
from gatemark.causes.losses import CHANCE_MAX, Losses, losses_of
from gatemark.causes.places import place_words
from gatemark.trial.cause import Cause
from gatemark.trial.form import TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.report import TrialReport
from gatemark.trial.verdict import Verdict

SPECIAL: tuple[Callable[[Losses], Cause | None], ...] = (
    fields.explain,
    residue.explain,
    start.explain,
    end.explain,
    gap.explain,
    first_frames.explain,
    age.explain,
    flows.explain,
)
"""What sets lost frames apart. Of several that may be claimed that is told which chance would show least."""

OF_TIME = frozenset(("start", "end", "gap"))
"""Those that say when frames were lost."""

GENERAL: tuple[Callable[[Losses], Cause | None], ...] = (
    too_large.explain,
    counted.explain,
    each.explain,
    spread.uniform,
    spread.spell,
    rows.explain,
    spread.queue,
    gateway.explain,
)
"""What is left where nothing sets them apart; the first is told."""


def causes_of(
    report: TrialReport,
    verdict: Verdict | None,
    form: TrialForm,
    host: HostFacts | None,
    stated_mtus: tuple[int, ...] = (),
) -> tuple[Cause, ...]:
    """Return why frames were lost in a trial of the engine, most losses first.

    Empty if it is invalid or passed, if the gateway has to lose frames, and where nothing can be claimed.
    """
    if verdict is None or verdict.passed or form.expects_loss:
        return ()
    causes = [
        _in_its_place(cause, losses)
        for losses in losses_of(report, form, host, stated_mtus)
        for cause in _causes(losses)
    ]
    return tuple(sorted(causes, key=lambda cause: -cause.lost))


def _causes(losses: Losses) -> Iterator[Cause]:
    claimed = (cause for explain in SPECIAL if (cause := explain(losses)) is not None)
    special = [cause for cause in claimed if cause.cause in OF_TIME or not _follows_time(cause, losses)]
    if special:
        yield min(special, key=lambda cause: cause.chance_log10 or 0.0)  # of equals the first
        return
    general = (cause for explain in GENERAL if (cause := explain(losses)) is not None)
    yield from itertools.islice(general, 1)


def _follows_time(cause: Cause, losses: Losses) -> bool:
    """Whether what sets frames apart may do so only because they were lost in a row.

    Where a field follows time, as ports in turn do, whatever is lost in a row has values of its own. So there chance
    has to show a cause a million times less often than such rows.
    """
    return (cause.chance_log10 or 0.0) > (chance_in_rows(losses) + math.log(CHANCE_MAX)) / math.log(10)


def _in_its_place(cause: Cause, losses: Losses) -> Cause:
    """Return a cause that says in which of two gateways in a row frames were lost, if that is known."""
    if not losses.places or cause.cause == "gateway":
        return cause
    return cause.model_copy(update={"sentence": f"{cause.sentence}; {place_words(losses.places)}"})

"""Pairs as tables, sentences and plots, and as one self-contained page. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gatemark.compare.report import JUDGEMENTS, OUTCOMES, setup_section
from gatemark.pairs.document import Ended, PairDocument, PairLook, PairRow, PairSide, PairTrial
from gatemark.pairs.figure import FIGURES
from gatemark.pairs.pair import LEFT_OUT, Side
from gatemark.report.page import fill
from gatemark.report.plot_style import INK, QUIET, SERIES, Drawing, add_legend
from gatemark.report.table import Column, Plot, Section, plot, table_of
from gatemark.report.words import DASH, capital, format_count
from gatemark.results.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEANING = (
    "The estimate is that of Hodges and Lehmann, the interval that of the Wilcoxon signed-rank test, inverted, both of"
    " the logarithms of the ratios. The interval was examined repeatedly: the errors of all looks together are the"
    " allowed one (alpha spending, Lan and DeMets 1983), so stopping early does not raise the error. It is wider by"
    " 1.5 % at either end, because two test beds of one gateway differ by up to that."
)

ENDS: Mapping[Ended, str] = {
    "precision": "the interval is as narrow as asked",
    "decided": "every condition is decided",
    "time": "the time is over",
    "stopped": "it was stopped",
}


def ratio_words(look: PairLook | None) -> str:
    """Return estimate and interval of a look."""
    if look is None:
        return "too few pairs"
    if look.low is None and look.high is None:
        return "unknown"
    if look.low is None:
        return f"at most {look.high:.3f}"
    if look.high is None:
        return f"at least {look.low:.3f}"
    low, high = look.ratio_low, look.ratio_high
    estimate = "?" if low is None or high is None else f"{low:.3f}"
    if low is not None and high is not None and high - low > 0.0005:
        estimate = f"{low:.3f} {DASH} {high:.3f}"
    return f"{estimate} ({look.low:.3f} {DASH} {look.high:.3f})"


def precision_words(look: PairLook | None) -> str:
    """Return half the width of the interval of a look."""
    if look is None or look.low is None or look.high is None:
        return "±?"
    return f"±{100 * (math.sqrt(look.high / look.low) - 1):.1f} %"


def sides_section(document: PairDocument) -> Section:
    """Return what is measured, and in what both differ."""
    sides = table_of("What is measured", SETUP, document.sides)
    return setup_section(sides, [side.side for side in document.sides], document.differences)


SETUP: tuple[Column[PairSide], ...] = (
    Column("side", lambda side: side.side, names=True, numeric=False),
    Column("file", lambda side: side.file, numeric=False),
    Column("recipe", lambda side: side.recipe, numeric=False),
    Column("gateway", lambda side: side.gateway, numeric=False),
)

SIDES: tuple[Column[PairSide], ...] = (
    Column("side", lambda side: side.side, names=True, numeric=False),
    Column("median", lambda side: DASH if side.value is None else format_count(side.value), strong=True),
    Column("drift", lambda side: DASH if side.drift is None else f"{100 * side.drift:+.1f} %"),
    Column("forwarded\nnearly all", lambda side: str(side.bounds)),
    Column("lost\nframes", lambda side: str(side.lossy)),
    Column("invalid\ntrials", lambda side: str(side.invalid)),
    Column("suspect\ntrials", lambda side: str(side.suspect)),
    Column("CPU time\nwhile idle", lambda side: _idle(side.idle_cpu_share)),
)


def _idle(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.2f} %"


def figures_section(document: PairDocument) -> Section:
    """Return both sides with their figures, what the pairs show, and what else is to be known."""
    figure = FIGURES[document.quantity]
    return Section(
        title="Figures",
        tables=(
            table_of(f"{capital(figure.name)} {figure.load_words}, {figure.unit}", SIDES, document.sides),
            table_of("Ratio", RATIO, (document,)),
        ),
        notes=(*document.findings, f"{document.confidence_percent:g} %: {MEANING}", figure.meaning),
    )


RATIO: tuple[Column[PairDocument], ...] = (
    Column("B / A", lambda document: ratio_words(document.look), strong=True, numeric=False),
    Column("shown", lambda document: JUDGEMENTS[document.judgement], strong=True, numeric=False),
    Column("pairs", lambda document: f"{document.pairs:,}"),
    Column("left out", lambda document: f"{document.pairs_left_out:,}"),
    Column("measured", lambda document: f"{document.measured_s:.0f} s"),
    Column("autocorrelation", lambda document: _number(document.autocorrelation)),
)


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"


def end_lines(document: PairDocument) -> Iterator[str]:
    """Yield each condition with its outcome and why, and what ended the measurement."""
    for condition in document.conditions:
        yield f"{condition.text}: {OUTCOMES[condition.outcome]}"
        yield from (f"  B: {check.reason}" for check in condition.checks)
    open_words = "not decided" if document.conditions else "the interval is still wider than asked"
    undecided = "" if document.decided else f"; {open_words}"
    pairs = f"{document.pairs} pair{'' if document.pairs == 1 else 's'}"
    yield f"ended after {pairs}, {document.measured_s:.0f} s: {ENDS[document.ended]}{undecided}"


def render_pairs(document: PairDocument, provenances: Mapping[Side, Provenance]) -> str:
    """Return the page; the provenances are those of the sides."""
    return fill(
        "pair.html.j2",
        pair=document,
        setup=sides_section(document),
        figures_section=figures_section(document),
        lines=tuple(end_lines(document)),
        plots=tuple(plots(document)),
        provenances=provenances,
    )


def plots(document: PairDocument) -> Iterator[Plot]:
    """Yield the ratio and the figures over time."""
    rows = [row for row in document.rows if not row.search and _is_kept(row)]
    yield from plot(
        _ratio_plot(rows, document.looks),
        "B / A of every pair that counts (points; triangles: the gateway that they point to may be faster), and the"
        " interval at each look. A difference is shown once the interval does not hold 1.",
    )
    yield from plot(
        _figures_plot(rows, document), f"{capital(document.quantity)} of both sides over the time of measuring."
    )


def _is_kept(row: PairRow) -> bool:
    return not any(trial.outcome in LEFT_OUT for trial in (row.a, row.b))


def _ratio_plot(rows: Sequence[PairRow], looks: Sequence[PairLook]) -> Drawing | None:
    shown = [row for row in rows if row.a.value and row.b.value]
    if len(shown) < 2:
        return None
    ends = {place: row.at_s for place, row in enumerate(rows, start=1)}

    def draw(axes: Axes) -> None:
        markers = (("o", lambda row: not _bounds(row)), ("v", lambda row: "A" in _bounds(row)), ("^", _only_b_is_bound))
        for marker, is_so in markers:
            some = [row for row in shown if is_so(row)]
            axes.plot(
                [row.at_s for row in some], [row.b.value / row.a.value for row in some],
                linestyle="none", marker=marker, markersize=3, color=QUIET,
            )  # fmt: skip
        closed = [look for look in looks if look.low is not None and look.high is not None]
        times = [ends[look.pairs] for look in closed]
        for name in ("low", "high"):
            axes.plot(times, [getattr(look, name) for look in closed], color=SERIES[1][0], linewidth=1.3)
        axes.axhline(1, color=INK, linestyle="--", linewidth=1.1)
        axes.set_xlabel("time of measuring, s")
        axes.set_ylabel("B / A")

    return Drawing(name="ratio over time", draw=draw, height=2.9)


def _bounds(row: PairRow) -> tuple[Side, ...]:
    sides: tuple[tuple[Side, PairTrial], ...] = (("A", row.a), ("B", row.b))
    return tuple(side for side, trial in sides if trial.outcome == "bound")


def _only_b_is_bound(row: PairRow) -> bool:
    return _bounds(row) == ("B",)


def _figures_plot(rows: Sequence[PairRow], document: PairDocument) -> Drawing | None:
    if len(rows) < 2:
        return None

    def draw(axes: Axes) -> None:
        for place, (name, rates) in enumerate(
            (("A", [row.a.value for row in rows]), ("B", [row.b.value for row in rows]))
        ):
            colour, marker = SERIES[place]
            axes.plot(
                [row.at_s for row in rows], [rate / 1000 for rate in rates],
                linestyle="none", marker=marker, markersize=3, color=colour, label=name,
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time of measuring, s")
        axes.set_ylabel(f"1,000 {document.unit}")
        add_legend(axes)

    return Drawing(name="figures over time", draw=draw, height=2.9)

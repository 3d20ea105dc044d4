"""A comparison as tables and plots, and as one self-contained page. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gatemark.compare.document import (
    ComparedQuantity,
    ComparedSide,
    Comparison,
    ComparisonDocument,
    Judgement,
    Outcome,
    SetupDifference,
    SideFigure,
)
from gatemark.report.lines import FigureWords
from gatemark.report.page import fill
from gatemark.report.plot_style import INK, QUIET, SERIES, Drawing, few_ticks
from gatemark.report.table import Column, Plot, Section, Table, plot, table_of
from gatemark.report.words import (
    DASH,
    format_count,
)
from gatemark.results.coordinates import place_words, telling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL_MAX = 60
"""Characters of a value in the table of the set-up."""

DIGEST_MAX = 12
"""Characters of a digest."""

PLOTS_MAX = 24
"""Quantities with a plot of their repetitions."""

CONFIGURATION_LINES_MAX = 60
"""Lines of a difference of configurations."""

MEANING = (
    "Each interval is that of the Mann-Whitney test, inverted: it assumes no distribution, only that values are"
    " independent. It allows for the resolution of searches."
)

ONE_CAMPAIGN = (
    "Values are repetitions of a single campaign: they share whatever changes between two campaigns, such as other"
    " work of the machine, and it looks like a difference of the gateways. Campaigns repeated in turn, in a folder for"
    " each side, do not have that error."
)

JUDGEMENTS: Mapping[Judgement, str] = {
    "worse": "worse",
    "better": "better",
    "different": "different",
    "no_difference": "no difference shown",
    "not_judged": "not judged",
}

OUTCOMES: Mapping[Outcome, str] = {
    "met": "met",
    "not_met": "not met",
    "cannot_be_judged": "cannot be judged",
}


def render_comparison(document: ComparisonDocument, configurations: Sequence[str]) -> str:
    """Return the page; `configurations` are those of the gateways of single campaigns, of which two are compared."""
    return fill(
        "compare.html.j2",
        comparison=document,
        title=" / ".join(side.label + " " + side.folder for side in document.sides),
        sides=sides_section(document),
        figures_section=quantities_section(document),
        conditions=tuple(condition_lines(document)),
        plots=tuple(plots(document)),
        configuration=configuration_difference(configurations),
    )


def sides_section(document: ComparisonDocument) -> Section:
    """Return which folder is which side, and in what their set-up differs."""
    sides = table_of("What is compared", SIDES, document.sides)
    return setup_section(sides, [side.label for side in document.sides], document.differences)


def setup_section(sides: Table, labels: Sequence[str], differences: Sequence[SetupDifference]) -> Section:
    """Return a table of sides with these labels, and the facts in which their set-up differs."""
    columns = (SETUP, *(_setup_column(place, label) for place, label in enumerate(labels)))
    why = "A difference of figures may be due to any of them."
    return Section(
        title="Set-up",
        tables=(sides, table_of("Differences of set-up", columns, differences, notes=(why,))),
        notes=() if differences else ("The set-up is the same as far as it is recorded.",),
    )


SIDES: tuple[Column[ComparedSide], ...] = (
    Column("side", lambda side: side.label, names=True, numeric=False),
    Column("folder", lambda side: _folder_words(side), names=True, numeric=False),
    Column("gateway", lambda side: "\n".join(side.gateways), numeric=False),
    Column("measured at", lambda side: side.measured_at or DASH, numeric=False),
    Column("gatemark", lambda side: ", ".join(side.gatemark), numeric=False),
    Column("trials, invalid ones", lambda side: f"{side.trials:,}, {side.invalid_trials:,}", numeric=False),
)


def _folder_words(side: ComparedSide) -> str:
    words = f"{side.folder}{' (incomplete)' if side.incomplete else ''}"
    return f"{words}\n{side.folders} campaigns, one value each" if side.kind == "repeated" else words


def _setup_words(difference: SetupDifference) -> str:
    where = f"\n{'; '.join(difference.where)}" if difference.where else ""
    return f"{difference.topic}: {difference.key}{where}"


SETUP: Column[SetupDifference] = Column("set-up", _setup_words, numeric=False)


def _setup_column(place: int, label: str) -> Column[SetupDifference]:
    return Column(label, lambda difference: _setup_values(difference)[place], numeric=False)


def _setup_values(difference: SetupDifference) -> list[str]:
    words = [_value_words(value) for value in difference.values]
    if difference.key.endswith("sha256"):
        words = [word[:DIGEST_MAX] for word in words]
    if any(len(word) > CELL_MAX for word in words):
        words = [_apart(word, words) for word in words]
    return words


def _value_words(value: object) -> str:
    if value is None:
        return DASH
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _apart(word: str, words: Sequence[str]) -> str:
    """Return a long value from where it differs from the others on."""
    first = next(
        (at for at in range(min(map(len, words))) if len({other[at] for other in words}) > 1), min(map(len, words))
    )
    begin = max(0, first - CELL_MAX // 3)
    cut = word[begin : begin + CELL_MAX].replace("\n", " ")
    return f"{'...' if begin else ''}{cut}{'...' if begin + CELL_MAX < len(word) else ''}"


def quantities_section(document: ComparisonDocument) -> Section:
    """Return every quantity with the figures of all sides, ratio, interval and judgement."""
    first, *others = (side.label for side in document.sides)
    columns = (
        Column("quantity", quantity_words, numeric=False),
        *(_figure_column(place, label) for place, label in enumerate((first, *others))),
        *(_comparison_column(place, f"{label} / {first}") for place, label in enumerate(others)),
    )
    figures = table_of("Quantities", columns, document.quantities)
    return Section(title="Figures", tables=(figures,), notes=tuple(_notes(document)))


def _figure_column(place: int, label: str) -> Column[ComparedQuantity]:
    heading = f"{label}\np1 {DASH} p99\nvalues"
    return Column(heading, lambda quantity: figure_cell(quantity, quantity.figures[place]))


def _comparison_column(place: int, label: str) -> Column[ComparedQuantity]:
    heading = f"{label}\ninterval\njudgement"
    return Column(heading, lambda quantity: comparison_cell(quantity, quantity.comparisons[place]), strong=True)


def _notes(document: ComparisonDocument) -> Iterator[str]:
    yield confidence_words(document)
    yield MEANING
    if any(side.kind != "repeated" for side in document.sides):
        yield ONE_CAMPAIGN
    yield from _reasons(document)


def confidence_words(document: ComparisonDocument) -> str:
    """Say what the intervals together hold."""
    several = f" ({document.intervals} intervals, each the wider for it)" if document.intervals > 1 else ""
    return (
        f"If the values of all sides were alike, {document.confidence_percent:g} % of such comparisons would show"
        f" no difference anywhere{several}."
    )


def _reasons(document: ComparisonDocument) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for quantity in document.quantities:
        for comparison in quantity.comparisons:
            if comparison.reason is not None:
                reasons.setdefault(comparison.reason, []).append(quantity_words(quantity).replace("\n", ", "))
    for reason, names in reasons.items():
        yield f"Not judged: {'; '.join(dict.fromkeys(names))}: {reason}."


def quantity_words(quantity: ComparedQuantity) -> str:
    """Return a quantity with unit and what it was measured with."""
    unit = _words(quantity).unit
    named = ", ".join(place_words(quantity.where, telling(quantity.where)))
    return f"{quantity.quantity}, {unit}" + (f"\n{named}" if named else "")


def _words(quantity: ComparedQuantity) -> FigureWords:
    return FigureWords.of_values(quantity.unit, (figure.p99 or figure.figure for figure in quantity.figures))


def written(quantity: ComparedQuantity, value: float | None) -> str:
    """Return a value in the unit of its quantity, without the unit."""
    return _words(quantity).write(value).removesuffix(" %")


def figure_cell(quantity: ComparedQuantity, figure: SideFigure) -> str:
    """Return what a side has: a figure only where there is one."""
    if figure.reason is not None:
        if figure.at_least is not None:
            return f"at least {written(quantity, figure.at_least)}"
        return "not measured"
    lines = [written(quantity, figure.figure)]
    if figure.p1 is not None:
        lines.append(f"{written(quantity, figure.p1)} {DASH} {written(quantity, figure.p99)}")
    lines.append(str(figure.repetitions))
    if figure.load_frames_per_second is not None:
        lines.append(f"at {format_count(int(figure.load_frames_per_second))} frames/s")
    return "\n".join(lines)


def comparison_cell(quantity: ComparedQuantity, comparison: Comparison) -> str:
    """Return ratio, interval and judgement."""
    lines = [] if comparison.ratio is None else [f"{comparison.ratio:.3f}"]
    if comparison.low is not None and comparison.high is not None:
        if comparison.interval_of == "ratio":
            lines.append(f"{comparison.low:.3f} {DASH} {comparison.high:.3f}")
        else:
            low, high = (written(quantity, value) for value in (comparison.low, comparison.high))
            lines.append(f"difference {low} {DASH} {high}")
    return "\n".join([*lines, JUDGEMENTS[comparison.judgement]])


def condition_lines(document: ComparisonDocument) -> Iterator[str]:
    """Yield each condition with its outcome, and why."""
    for condition in document.conditions:
        yield f"{condition.text}: {OUTCOMES[condition.outcome]}"
        for check in condition.checks:
            row = next(
                quantity
                for quantity in document.quantities
                if (quantity.procedure, quantity.quantity, quantity.where)
                == (check.procedure, check.quantity, check.where)
            )
            words = quantity_words(row).replace("\n", ", ")
            yield f"  {check.side}: {words}: {OUTCOMES[check.outcome]}: {check.reason}"


def configuration_difference(configurations: Sequence[str]) -> list[str]:
    """Return the lines in which the configuration of the second gateway differs from that of the first."""
    if len(configurations) != 2:
        return []
    first, second = (text.splitlines() for text in configurations)
    lines = list(difflib.unified_diff(first, second, "A", "B", n=1, lineterm=""))
    more = len(lines) - CONFIGURATION_LINES_MAX
    return [*lines[:CONFIGURATION_LINES_MAX], f"... {more} lines more"] if more > 0 else lines


def plots(document: ComparisonDocument) -> Iterator[Plot]:
    """Yield the intervals of all ratios, then the repetitions of each quantity."""
    yield from plot(
        _intervals_plot(document),
        "Ratio of the figures (points) with their intervals. Nothing is shown to differ where an interval holds 1.",
    )
    for quantity in document.quantities[:PLOTS_MAX]:
        words = quantity_words(quantity).replace("\n", ", ")
        yield from plot(_values_plot(quantity, words), f"{words}: every value, and the figure as a line.")


def _intervals_plot(document: ComparisonDocument) -> Drawing | None:
    rows = [
        (quantity, comparison)
        for quantity in document.quantities
        for comparison in quantity.comparisons
        if comparison.interval_of == "ratio"
    ][:PLOTS_MAX]
    if not rows:
        return None
    several = len(document.sides) > 2

    def draw(axes: Axes) -> None:
        places = range(len(rows), 0, -1)
        ends = [1.0]
        for at, (_, comparison) in zip(places, rows, strict=True):
            low, high, ratio = (float(value or 0) for value in (comparison.low, comparison.high, comparison.ratio))
            colour = {"worse": SERIES[1][0], "better": SERIES[2][0]}.get(comparison.judgement, INK)
            axes.plot([low, high], [at, at], color=colour, linewidth=1.6, marker="|", markersize=9)
            axes.plot([ratio], [at], color=colour, marker="o", markersize=5.5)
            axes.annotate(
                JUDGEMENTS[comparison.judgement], (max(high, ratio), at), xytext=(7, 0), textcoords="offset points",
                va="center", fontsize=8.5, color=colour,
            )  # fmt: skip
            ends += [low, high, ratio]
        axes.axvline(1, color=QUIET, linestyle="--", linewidth=1.1)
        labels = [_label(quantity, comparison.side if several else "") for quantity, comparison in rows]
        axes.set_yticks(list(places), labels)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(0.4, len(rows) + 0.6)
        span = max(ends) / min(ends)
        axes.set_xscale("log")
        axes.set_xlim(min(ends) / span**0.06, max(ends) * max(span**0.35, 1.02))
        axes.minorticks_off()
        few_ticks(axes.xaxis, span)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.set_xlabel(f"figure / that of {document.sides[0].label}")

    return Drawing(name="intervals of the ratios", draw=draw, height=1.0 + 0.42 * len(rows))


def _label(quantity: ComparedQuantity, side: str) -> str:
    named = ", ".join(place_words(quantity.where, telling(quantity.where)))
    words = f"{quantity.quantity}{f' ({side})' if side else ''}"
    return f"{words}\n{named}" if named else words


def _values_plot(quantity: ComparedQuantity, words: str) -> Drawing | None:
    sides = [
        (figure, [float(value) for value in figure.values if value is not None])
        for figure in quantity.figures
        if figure.reason is None and figure.values
    ]
    if len(sides) < 2:
        return None
    words_of = _words(quantity)
    unit, divisor = words_of.unit, words_of.divisor or 1

    def draw(axes: Axes) -> None:
        for at, (figure, values) in enumerate(sides):
            colour, marker = SERIES[at % len(SERIES)]
            shown: Any = [value / divisor for value in values]
            axes.plot(_spread(at, len(shown)), shown, linestyle="none", marker=marker, markersize=4.5, color=colour)
            middle = float(figure.figure or 0) / divisor
            axes.plot([at - 0.3, at + 0.3], [middle, middle], color=colour, linewidth=1.6)
        axes.set_xticks(range(len(sides)), [figure.side for figure, _ in sides])
        axes.set_xlim(-0.6, len(sides) - 0.4)
        shown_values = [0.0, *(value / divisor for _, values in sides for value in values)]
        lowest, highest = min(shown_values), max(shown_values)
        axes.set_ylim(bottom=lowest, top=highest + 0.06 * (highest - lowest) or 1)  # no mark is cut off at the top
        axes.set_ylabel(unit)

    return Drawing(name=words, draw=draw, height=2.8)


def _spread(at: int, number: int) -> list[float]:
    """Places of repetitions side by side, in the order in which they were made."""
    return [at + 0.24 * (2 * place / max(1, number - 1) - 1) if number > 1 else at for place in range(number)]

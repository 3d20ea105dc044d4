"""A comparison as one self-contained page. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gatemark.compare.document import ComparisonDocument
from gatemark.compare.report import (
    condition_lines,
    configuration_difference,
    plots,
    quantities_section,
    sides_section,
)
from gatemark.report.page import fill


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

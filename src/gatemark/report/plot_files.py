"""The plots of a report as files: each as PDF and SVG, with the figures that it shows as CSV. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gatemark.harmless import csv_text
from gatemark.report.table import Plot

CAPTIONS = "captions.md"
NAME_CHARACTERS_MAX = 60


def plot_files(plots: Iterable[Plot]) -> Mapping[str, bytes]:
    """Return the files by name, in the order of the plots, with a list of the captions."""
    files: dict[str, bytes] = {}
    captions = []
    for number, plot in enumerate(plots, start=1):
        name = f"{number:02d}-{_words(plot.drawing.name)}"
        files[f"{name}.pdf"] = plot.drawing.file("pdf")
        files[f"{name}.svg"] = plot.drawing.file("svg")
        files[f"{name}.csv"] = csv_text(plot.drawing.data()).encode()
        captions.append(f"- `{name}`: {plot.caption}\n")
    return files | {CAPTIONS: "".join(captions).encode()}


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:NAME_CHARACTERS_MAX].strip("-") or "plot"

"""Measures the campaigns of the gallery, or those that are named, and writes its page.

`make gallery` measures all of them, `make gallery ARGS="linux-router4 nft-nat44"` these two, `make gallery ARGS=--page`
none. Each result is an archive, which `gatemark archive --verify` verifies and `gatemark run` measures again.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from gatemark.archive.layout import SUFFIX
from gatemark.archive.read import Unpacked, unpacked
from gatemark.archive.recompute import campaign_folders
from gatemark.archive.write import write_archive
from gatemark.errors import GatemarkError
from gatemark.report.headline import headlines
from gatemark.report.words import limited
from gatemark.results.provenance import Session
from gatemark.results.store import ResultFolder
from gatemark.series.store import SeriesFolder, is_series
from gatemark.stored import provenance_of, read_document, rebuild_report

GALLERY = Path(__file__).resolve().parent
PAGE = GALLERY / "README.md"
PLOT = GALLERY / "throughput.svg"
COMPLETE, NO_FIGURE = 0, 1
"""Exit statuses of `gatemark run`."""
MARK = "<!-- what follows is written by make gallery -->\n"


def names() -> list[str]:
    """All entries of the gallery."""
    return sorted(path.stem for path in GALLERY.glob("*.toml"))


def archive_of(name: str) -> Path:
    """Where the results of an entry lie."""
    return GALLERY / f"{name}{SUFFIX}"


def measure(name: str) -> bool:
    """Measure a campaign and write its archive; one in which nothing is a figure of the gateway replaces none.

    One that was refused, because this machine lacks something, has none; nor has a series without all its columns.
    """
    with tempfile.TemporaryDirectory(prefix="gallery-") as place:
        campaign = Path(place, f"{name}.toml")  # the result names its file: not where this checkout lies
        campaign.write_bytes((GALLERY / campaign.name).read_bytes())
        command = (Path(sys.executable).with_name("gatemark"), "run", campaign, "--output", Path(place, name))
        status = subprocess.run(command, check=False).returncode
        is_first = not archive_of(name).exists() and has_all_results(Path(place, name))
        if status == COMPLETE or (status == NO_FIGURE and is_first):
            archive = write_archive(Path(place, name))
            shutil.copyfile(archive.path, archive_of(name))
    return status == COMPLETE


def has_all_results(result: Path) -> bool:
    """Whether a campaign, or each column of a series, has a result: one whose gateway did not start has none."""
    if not is_series(result):
        return ResultFolder(path=result).has("result.json")
    series = SeriesFolder.open(result)
    document = series.read()
    return len(series.results(document)) == len(document.columns)


def words_of(name: str) -> str:
    """Return what an entry shows: the comment that its campaign begins with."""
    comment = (GALLERY / f"{name}.toml").read_text(encoding="utf-8").partition("\n\n")[0]
    return " ".join(line.removeprefix("#").strip() for line in comment.splitlines())


def entry(name: str) -> str:
    """Return the section of the page about an archive: what is not in its campaign is read from its results."""
    with unpacked(archive_of(name)) as content:
        figures = "".join(f"- {line}\n" for line in figures_of(content))
        circumstances = circumstances_of(next(campaign_folders(content.folder)))
    links = f"[Report]({name}{SUFFIX}), [campaign]({name}.toml); again: `gatemark run gallery/{name}.toml`"
    return f"## {name}\n\n{wrapped(words_of(name))}\n\n{figures}\n{wrapped(circumstances)}\n\n{links}\n"


def wrapped(text: str) -> str:
    """Return a paragraph in lines as all documents have them; what must not be broken is not."""
    return textwrap.fill(text, width=120, break_long_words=False, break_on_hyphens=False)


def figures_of(content: Unpacked) -> Iterator[str]:
    """Yield the figures that the report shows large, of a series those of each column."""
    if not is_series(content.path):
        yield from large(content.folder, "")
        return
    series = SeriesFolder(files=content.folder)
    for column in series.read().columns:
        yield from large(series.column(column.folder), f"{column.title}: ")


def large(folder: ResultFolder, title: str) -> Iterator[str]:
    """Yield the figures of a campaign as the report shows them."""
    for shown in headlines(read_document(folder)):
        figure = f"{shown.figure} {shown.unit}".strip()
        limit = limited(shown.limited_by)
        told = "" if shown.limited_by == "gateway" or limit in figure else f" ({limit})"
        yield f"{title}**{figure}**{told}: {shown.label}"


def circumstances_of(folder: ResultFolder) -> str:
    """Say when, by which programs and on which machine a campaign was measured."""
    record = provenance_of(folder)
    assert record is not None, "an archive in which nothing was measured"
    first: Session = record.sessions[0]
    machine, software, engine = first.machine, first.software, first.engine
    return (
        f"{first.started_at[:10]}, gatemark {software.gatemark}, {engine.dpdk}, {machine.cpu_model} with"
        f" {machine.cpus} CPUs, {machine.kernel.split(' ')[0]} {machine.kernel.split(' ')[1]}."
    )


def page() -> str:
    """Return the page: what is above the mark stays."""
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{PAGE} has no line {MARK}"
    measured = [name for name in names() if archive_of(name).exists()]
    missing = [name for name in names() if name not in measured]
    rest = wrapped(f"Not measured yet, `make gallery ARGS=NAME` measures one: {', '.join(missing)}.") if missing else ""
    return f"{head}{mark}\n" + "\n".join(entry(name) for name in measured) + (f"\n{rest}\n" if rest else "")


def plot() -> None:
    """Write the throughput of all gateways as one plot, as the report of several campaigns has it."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        for name in names():
            if archive_of(name).exists():
                content = stack.enter_context(unpacked(archive_of(name)))
                if not is_series(content.path):
                    shutil.copytree(content.path, Path(place, "all", name))
        rebuild_report(Path(place, "all"), plots=Path(place, "plots"))
        for compared in Path(place, "plots").glob("*-throughput-compared.svg"):
            shutil.copyfile(compared, PLOT)


def main() -> int:
    """Measure what is asked for, then write page and plot. Exit status 1 if a campaign failed."""
    asked = sys.argv[1:] or names()
    chosen = [] if asked == ["--page"] else asked
    if unknown := set(chosen) - set(names()):
        sys.exit(f"not in the gallery: {', '.join(sorted(unknown))}")
    failed = [name for name in chosen if not measure(name)]
    try:
        PAGE.write_text(page(), encoding="utf-8")
        plot()
    except GatemarkError as error:
        sys.exit(f"{error}")
    if failed:
        sys.exit(f"without a figure of the gateway, so results before stay: {', '.join(failed)}")
    return 0


if __name__ == "__main__":
    main()

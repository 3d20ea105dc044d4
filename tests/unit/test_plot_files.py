"""Plots of reports as files: the same figures as in the picture, whole files, for campaigns and series."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.test_series import CORES, equipment, write

from gatemark.cli.main import main
from gatemark.errors import ResultError
from gatemark.report.model import UNBOUNDED_NS
from gatemark.report.plot_files import CAPTIONS, plot_files
from gatemark.report.plot_style import Drawing
from gatemark.report.plots import lateness_plot
from gatemark.report.table import Plot
from gatemark.results.new_file import write_files
from gatemark.series.run import measure_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def silent(draw: Callable[[Axes], object]) -> Callable[[Axes], None]:
    def drawn(axes: Axes) -> None:
        draw(axes)

    return drawn


def data(draw: Callable[[Axes], object]) -> list[tuple[str, ...]]:
    return list(Drawing(name="a plot", draw=silent(draw)).data())


def test_points_have_their_series_and_the_ends_of_their_bars() -> None:
    def draw(axes: Axes) -> None:
        axes.errorbar([1, 2], [10, 20], yerr=[[1, 0], [2, 0]], label="ours")
        axes.plot([1, 2], [30.5, 1 / 3], label="limit")
        axes.plot([1, 2], [7, 7])
        axes.axvline(1.5, label="mark")
        axes.axvline(1.7)
        axes.set_xlabel("load,\nframes/s")
        axes.set_ylabel("ms")

    assert data(draw) == [
        ("series", "load, frames/s", "ms", "low", "high"),
        ("ours", "1", "10", "9", "12"),
        ("ours", "2", "20", "20", "20"),
        ("limit", "1", "30.5", "", ""),
        ("limit", "2", "0.333333333333", "", ""),
        ("mark", "1.5", "", "", ""),
    ]


def test_bars_have_names_and_steps_have_ends() -> None:
    def bars(axes: Axes) -> None:
        axes.barh(1, 5, label="measured")
        axes.barh(2, 9, color="none", label="at least")
        axes.errorbar(5, 1, xerr=[[1], [2]])
        axes.set_yticks([1, 2], ["slow", "fast"])
        axes.set_xlabel("frames/s")

    assert data(bars) == [
        ("series", "frames/s", "name", "low", "high"), ("measured", "5", "slow", "4", "7"),
        ("at least", "9", "fast", "", ""),
    ]  # fmt: skip
    steps = data(lambda axes: axes.stairs([3, float("nan")], [0, 0.5, 1], baseline=None, label="lost"))
    assert steps == [("series", "x", "to", "name"), ("lost", "0", "0.5", "3"), ("lost", "0.5", "1", "")]


def test_classes_of_a_histogram_are_all_named() -> None:
    drawn = lateness_plot([(edge, 1) for edge in range(40)], lambda edge: f"{edge} ns")
    assert drawn is not None
    heading, *rows = drawn.data()
    assert [row[0] for row in rows] == [f"< {edge} ns" for edge in range(40)]
    assert {row[1] for row in rows} == {"1"} and heading[1] == "bursts"


def test_classes_without_a_burst_between_others_are_shown() -> None:
    drawn = lateness_plot([(100, 3), (200, 2), (1601, 1), (UNBOUNDED_NS, 1)], str)
    assert drawn is not None
    rows = [("100", 3), ("200", 2), ("400", 0), ("800", 0), ("1601", 1), (str(UNBOUNDED_NS), 1)]
    assert drawn.data()[1:] == tuple((f"< {edge}", str(bursts)) for edge, bursts in rows)


def test_places_may_stand_for_something_else() -> None:
    drawing = Drawing(name="a", draw=silent(lambda axes: axes.plot([1, 2], [3, 4])), x_value=lambda x: 10 * x)
    assert drawing.data()[1:] == (("10", "3"), ("20", "4"))


def test_files_are_the_same_each_time_and_stand_alone() -> None:
    def plot() -> Plot:
        return Plot(drawing=Drawing(name="µ / a", draw=silent(lambda axes: axes.plot([1], [2]))), caption="What it is.")

    files = plot_files([plot(), plot()])
    assert files == plot_files([plot(), plot()])
    assert list(files) == [f"0{n}-a.{suffix}" for n in (1, 2) for suffix in ("pdf", "svg", "csv")] + [CAPTIONS]
    assert files["01-a.pdf"].startswith(b"%PDF-") and files["01-a.svg"].startswith(b"<?xml")
    assert files[CAPTIONS] == b"- `01-a`: What it is.\n- `02-a`: What it is.\n"


def test_every_plot_of_a_series_and_of_its_columns_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure_series(write(tmp_path, CORES, repetitions=3), output=tmp_path / "s", equipment=equipment())
    for folder in (tmp_path / "s", tmp_path / "s" / "01-one"):
        plots = tmp_path / f"plots of {folder.name}"
        assert main(["report", str(folder), "--plots", str(plots)]) == 0
        page = (folder / "report.html").read_text(encoding="utf-8")
        names = sorted(path.stem for path in plots.glob("*.pdf"))
        assert len(names) == page.count("<figure>") > 0
        assert sorted(path.name for path in plots.iterdir()) == sorted(
            [CAPTIONS, *(f"{name}.{suffix}" for name in names for suffix in ("csv", "pdf", "svg"))]
        )
        captions = (plots / CAPTIONS).read_text(encoding="utf-8")
        assert all(f"`{name}`: " in captions for name in names)
    capsys.readouterr()
    assert main(["report", str(tmp_path / "s"), "--format", "markdown"]) == 0
    (table,) = (path for path in (tmp_path / "plots of s").glob("*throughput-against-cores*.csv"))
    with table.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["series"].startswith("throughput")]
    shown = capsys.readouterr().out
    assert [row["cores of the gateway"] for row in rows] == ["1", "2", "4"]
    for row in rows:
        assert f"{float(row['frames/s in one direction']):,.0f}" in shown


def test_files_that_cannot_all_be_written_are_not_written(tmp_path: Path) -> None:
    target = tmp_path / "plots"
    with pytest.raises(ResultError, match="cannot be written"):
        write_files(target, {"a": b"1", "x" * 250: b"2"})
    assert not target.exists()
    target.mkdir()
    (target / "a").write_text("before", encoding="utf-8")
    with pytest.raises(ResultError):
        write_files(target, {"a": b"1", "x" * 250: b"2"})
    assert os.listdir(target) == ["a"] and (target / "a").read_text(encoding="utf-8") == "before"
    write_files(target, {"a": b"1"})
    assert (target / "a").read_bytes() == b"1"

"""The experiments of examples/papers: each is planned, and each gives back its figures on a simulated gateway.

The gateway of each column has the published medians as its rates and times. So the table of the series must have them
within the resolution of its searches, and what is derived must be what the paper prints, within what its digits allow.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, prod
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment
from tests.unit.published_runs import PAPERS
from tests.unit.test_published_results import last_digit, number

from gatemark import measure
from gatemark.campaign.columns import varies
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.results.quantity import Quantity
from gatemark.results.toml_text import toml_value
from gatemark.series.document import ColumnFigure, Metric, SeriesDocument
from gatemark.series.report import section
from gatemark.series.run import measure_series, rebuild_series
from gatemark.tester import Equipment

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

Vector = dict[str, Any]
FILES = sorted(file for file in PAPERS.glob("*/*.toml") if not file.name.endswith(".published.toml"))
README = (PAPERS / "README.md").read_text(encoding="utf-8")
FAST = 20_000_000
"""Frames/s or connections/s of what no published figure limits."""
ESTABLISHMENT = "connection_establishment_rate"
OTHER_NAMES = {
    (ESTABLISHMENT, True): "connection establishment rate with loss tolerated",
    ("throughput", True): "rate with loss tolerated",
    ("repeated_four_tuples", False): "frame rate with repeated four-tuples",
}
"""What is no connection establishment rate or throughput, by procedure and whether a loss is tolerated."""


def each_file(*, of_series: bool | None = None) -> pytest.MarkDecorator:
    files = [file for file in FILES if of_series is None or varies(file) == of_series]
    return pytest.mark.parametrize("file", files, ids=[f"{file.parent.name[-12:]}-{file.stem}" for file in files])


def published(file: Path) -> dict[str, list[Vector]]:
    """What the paper prints; nothing for a figure without numbers."""
    beside = file.with_suffix("").with_suffix(".published.toml")
    return tomllib.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}


def columns_of(table: Vector) -> list[int]:
    """Number of the campaign's column for each column of a published table."""
    return list(table.get("campaign_columns", range(1, len(table["columns"]) + 1)))


def tolerated_of(table: Vector) -> Fraction:
    """Share of the frames or connections that may be lost."""
    return Fraction(table.get("loss_tolerance", "0%").rstrip("%")) / 100


def procedure_of(table: Vector, place: int) -> str:
    return str(table["columns"][place] if table.get("over") == "procedure" else table["procedure"])


def in_small(file: Path, folder: Path) -> Path:
    """The same file with one repetition and few tags."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    document["repetitions"] = 1
    for vary in document.get("vary", []):
        vary.pop("repetitions", None)
    if "delay" in document:
        document["delay"]["tags"] = 2000
    small = folder / file.name
    small.write_text("".join(f"{key} = {toml_value(value)}\n" for key, value in document.items()))
    return small


def equipment(device: Callable[[Campaign], SimulatedDevice]) -> Equipment:
    return replace(simulated_equipment(device), available_bytes=lambda: 1 << 40)


def limits_of(figures: dict[str, list[Vector]], column: int) -> Vector:
    """What limits the simulated gateway of a column, by the published medians."""
    limits: Vector = {"capacity_forward": FAST, "establishment_rate": None}
    for table in figures.get("rates", []):
        for place, of_campaign in enumerate(columns_of(table)):
            if of_campaign == column:
                limits |= rate_limits(table, place)
    for table in figures.get("tear_downs", []):
        full, empty = (1_000_000 * table[key][column - 1][1] for key in ("full_ms", "empty_ms"))
        limits["tear_down_empty_ns"] = empty
        limits["tear_down_connection_ns"] = Fraction(full - empty, table["columns"][column - 1])
    return limits


def line_rate(table: Vector, place: int) -> int:
    """Return the frames/s of a column that the medium carries, where a table prints more than that."""
    return table["line"] // (8 * (table["columns"][place] + 20)) if "line" in table else FAST


def rate_limits(table: Vector, place: int) -> Vector:
    median = ceil(table["median"][place] * (1 - tolerated_of(table)))  # a little above it, no more is lost than may be
    if procedure_of(table, place) == "throughput":
        direction = table["columns"][place] if table["over"] == "direction" else table.get("direction", "bidirectional")
        if direction == "bidirectional":
            return {"capacity_both": median // 2 if table["unit"] == "sum" else median}
        return {f"capacity_{direction}": median}
    alpha = Fraction(table["alpha"][place]) if "alpha" in table else None
    if alpha is not None and median < max(table["median"]) * 9 // 10:  # the replies are what is too slow
        return {"establishment_rate": max(table["median"]), "capacity_reverse": int(alpha * median)}
    return {"establishment_rate": median}


def gateways(figures: dict[str, list[Vector]], titles: list[str]) -> Callable[[Campaign], SimulatedDevice]:
    """The gateway of each column, which is known by the end of the campaign's name."""

    def device(campaign: Campaign) -> SimulatedDevice:
        (column,) = (n for n, title in enumerate(titles, start=1) if campaign.name.endswith(f": {title}"))
        limits = limits_of(figures, column)
        return SimulatedDevice(table_size=campaign.gateway.table.size, **limits)

    return device


def metric_of(document: SeriesDocument, procedure: str, name: str | None = None) -> list[Metric]:
    return [
        metric
        for metric in document.metrics
        if metric.procedure == procedure and (metric.headline if name is None else metric.quantity == name)
    ]


def figure_of(document: SeriesDocument, procedure: str, column: int, name: str | None = None) -> ColumnFigure:
    """The only figure of a procedure in a column."""
    figures = [metric.of(column) for metric in metric_of(document, procedure, name)]
    (figure,) = [entry for entry in figures if entry is not None and entry.refused is None]
    return figure


def slack_of(figures: list[ColumnFigure]) -> float:
    """By how much the resolution of searches may change a quotient of their results, as a ratio."""
    return sum((figure.resolution or 0) / float(figure.median or 1) for figure in figures)


def check(measured: float | None, printed: str, slack: float, table: Vector) -> None:
    """Compare a derived figure with a printed one: digits may be cut off or rounded, and medians have few of them."""
    assert measured is not None
    digits = max(table.get("digit", [1]))
    printed_error = digits / 2 / min(table["median"]) if "median" in table and "digit" in table else 0
    tolerance = 1.01 * last_digit(printed) + number(printed) * (slack + 2 * printed_error)
    assert abs(measured - number(printed)) <= tolerance, (measured, printed)


@each_file()
def test_each_experiment_is_planned(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), "--json"]) == 0, capsys.readouterr().err
    planned = json.loads(capsys.readouterr().out)
    estimates = [planned["estimate"], *(column["estimate"] for column in planned.get("columns", []))]
    assert all(0 < estimate["seconds_min"] <= estimate["seconds_max"] for estimate in estimates)
    assert main(["plan", str(file)]) == 0
    duration = re.search(r"# Duration\n\n(.+?), not counting", capsys.readouterr().out)
    assert duration is not None
    (row,) = [line for line in README.splitlines() if f"({file.parent.name}/{file.name})" in line]
    assert row.endswith(f"| {duration[1]} |")


def test_every_published_table_is_in_the_readme() -> None:
    for file in PAPERS.glob("*/*.published.toml"):
        assert file.name in README or f"({file.parent.name}/{file.name.replace('.published', '')})" in README
    assert len(FILES) == README.count(".toml) |")


@each_file(of_series=True)
def test_each_series_gives_back_the_published_figures(file: Path, tmp_path: Path) -> None:
    figures = published(file)
    small = in_small(file, tmp_path)
    titles = [column.title for column in _columns(small)]
    gateway_of = gateways(figures, titles)
    result = measure_series(small, output=tmp_path / "out", equipment=equipment(gateway_of), report=False)
    document = result.document
    assert rebuild_series(result.folder).document == document  # its page can be made
    assert [column.outcome for column in document.columns] == ["measured"] * len(titles)
    for table in figures.get("rates", []):
        check_rates(document, table)
        if "drawn_frames" in table:
            check_drawn(document, table)
    for table in figures.get("tear_downs", []):
        check_tear_downs(document, table)
    for table in figures.get("shares", []):
        check_shares(document, table, figures["rates"])
    assert "Limited by" in (row[0] for whole in section(document).tables for row in whole.rows)


def _columns(file: Path) -> Iterator[Any]:
    from gatemark.campaign.columns import load_series

    yield from load_series(file).columns


def check_rates(document: SeriesDocument, table: Vector) -> None:
    """The medians, and what is derived from them."""
    figures = []
    for place, column in enumerate(columns_of(table)):
        procedure = procedure_of(table, place)
        name = OTHER_NAMES.get((procedure, tolerated_of(table) > 0))
        figure = figure_of(document, procedure, column, name)
        expected = min(table["median"][place], line_rate(table, place))
        by_line = expected < table["median"][place]
        assert figure.limited_by == ("maximum" if by_line else "gateway"), (table["source"], figure)
        by_direction = table["unit"] == "sum" and figure.sum_of_directions is not None
        median, error = figure.median, figure.resolution
        if by_direction and figure.sum_of_directions is not None:
            median, error = figure.sum_of_directions.median, figure.sum_of_directions.resolution
        assert median is not None
        assert error is not None
        extra = 10 if "alpha" in table else 2  # rates of validation and of what is lost are rounded
        assert -extra <= expected - median <= error + extra, (table["source"], place, median)
        figures.append(figure)
    slack = slack_of(figures)
    for place, printed in enumerate(table.get("step", []), start=1):
        check(figures[place].ratio_to_previous, printed, slack, table)
    for place, printed in enumerate(table.get("scale_up", []), start=1):
        check(figures[place].scale_up, printed, slack, table)
    for place, printed in enumerate(table.get("relative", []), start=1):
        steps = [entry.ratio_to_previous or 0 for entry in figures[1 : place + 1]]
        check(100 * prod(steps), printed, slack, table)
    if "load" in table:
        (whole,) = section(document).tables
        (row,) = [row[1:] for row in whole.rows if row[0] == "Connections per hash size"]
        shown = [row[column - 1] for column in columns_of(table)]
        for text, printed in zip(shown, table["load"], strict=True):
            check(float(text), printed, 0, {})


def check_drawn(document: SeriesDocument, table: Vector) -> None:
    """Compare the connections of random ports; the paper's ratio is of those it counted, the report's is expected."""
    procedure, count = "repeated_four_tuples", 4_000_000
    for place, column in enumerate(columns_of(table)):
        _, established, _ = table["established"][place]
        printed = table["new_ratio"][place]
        assert abs(100 * (1 - established / count) - number(printed)) <= 0.51 * last_digit(printed)
        expected = figure_of(document, procedure, column, "ratio of new connections at the end").median
        assert float(expected or 0) == pytest.approx(number(printed), abs=0.0025)
        for words in (
            "connections of repeated four-tuples",
            "connections counted by the gateway",
            "expected connections of repeated four-tuples",
        ):
            median = figure_of(document, procedure, column, words).median
            assert float(median or 0) == pytest.approx(established, rel=1e-4)


def check_tear_downs(document: SeriesDocument, table: Vector) -> None:
    procedure = "connection_tear_down_rate"
    for place, count in enumerate(table["columns"]):
        full, empty, net = (
            float(figure_of(document, procedure, place + 1, f"time to delete {words}").median or 0) / 10**9
            for words in ("all connections", "no connection", "the connections alone")
        )
        assert full == pytest.approx(table["full_ms"][place][1] / 1000, abs=1e-6)
        assert empty == pytest.approx(table["empty_ms"][place][1] / 1000, abs=1e-6)
        if table["net_s"][place]:
            assert abs(net - float(table["net_s"][place])) <= 0.501 * last_digit(table["net_s"][place])
        rate = figure_of(document, procedure, place + 1).median
        assert rate is not None
        assert float(rate) == pytest.approx(count / net, rel=1e-6)
        assert abs(float(rate) - number(table["rate"][place])) <= table.get("rate_digit", 1) * 0.51 + float(rate) * 1e-5


def check_shares(document: SeriesDocument, table: Vector, rates: list[Vector]) -> None:
    (what,) = [rate for rate in rates if rate["source"] == table["what"]]
    (of,) = [rate for rate in rates if rate["source"] == table["of"]]
    for place, printed in enumerate(table["printed"]):
        figure = figure_of(document, "throughput", columns_of(what)[place])
        router = figure_of(document, "throughput", columns_of(of)[place])
        share = figure.share_of_plain_forwarding
        assert share is not None
        assert share == pytest.approx(float(figure.median or 0) / float(router.median or 1))
        assert router.share_of_plain_forwarding is None
        check(100 * share, printed, slack_of([figure, router]), what)


def quantities_of(file: Path, device: SimulatedDevice, folder: Path) -> list[Quantity]:
    result = measure(in_small(file, folder), output=folder / "out", equipment=equipment(lambda _: device), report=False)
    assert result.document.status == "complete"
    return [row.quantity for row in result.document.rows()]


def only(file: str) -> Path:
    (path,) = (entry for entry in FILES if entry.stem == file)
    return path


def test_the_capacity_comes_back(tmp_path: Path) -> None:
    file = only("figure-06-iptables-capacity")
    (table,) = published(file)["capacities"]
    device = SimulatedDevice(capacity_forward=FAST, establishment_rate=table["r0"][1], table_size=table["c"][1])
    medians = {quantity.name: quantity.median for quantity in quantities_of(file, device, tmp_path)}
    assert medians["connection tracking table capacity"] == table["c"][1]
    for name in ("R0", "RS"):
        rate = medians[f"validated connection establishment rate {name}"]
        assert 0 <= table["r0"][1] - float(rate or 0) <= 100_000


@pytest.mark.parametrize("name", ["table-01-tayga", "table-02-pf"])
def test_the_packets_of_an_overload_come_back(name: str, tmp_path: Path) -> None:
    """A gateway of this capacity gives a closed loop exactly that, if its own delay leaves the slots waiting."""
    file = only(name)
    (table,) = published(file)["overloads"]
    small = in_small(file, tmp_path)
    for clients, rate, mean_us in zip(table["clients"], table["packets_per_second"], table["rtt_mean_us"], strict=True):
        assert rate * mean_us / 1e6 <= 4 * clients  # no more requests are under way than the clients have slots
        folder = tmp_path / str(clients)
        folder.mkdir()
        document = tomllib.loads(small.read_text(encoding="utf-8"))
        document["overload"]["clients"] = [clients]
        alone = folder / file.name
        alone.write_text("".join(f"{key} = {toml_value(value)}\n" for key, value in document.items()))
        device = SimulatedDevice(capacity_forward=rate, delays_ns=(1000,))
        medians = {quantity.name: quantity.median for quantity in quantities_of(alone, device, folder)}
        assert medians["echo requests"] == pytest.approx(rate, rel=1e-3)
        assert medians["round-trip time mean"] == pytest.approx(4 * clients * 10**9 / rate, rel=1e-3)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("name", ["table-09-10-jool-delays", "table-05-06-jool-delays"])
def test_the_delays_come_back(name: str, direction: str, tmp_path: Path) -> None:
    """Of 1000 frames ten take the worst case and ten the shortest time, which follows from the delay variation."""
    file = only(name)
    figures = {key: value for table in published(file)["delays"] for key, value in table[direction].items()}
    typical, worst, variation = (figures[key][1] for key in ("typical_ns", "worst_case_ns", "pdv_ns"))
    delays = (worst,) * 10 + (worst - variation,) * 10 + (typical,) * 980
    device = SimulatedDevice(capacity_forward=FAST, establishment_rate=FAST, delays_ns=delays)
    values = {
        quantity.name: float(quantity.median or 0)
        for quantity in quantities_of(file, device, tmp_path)
        if quantity.coordinates.get("direction") == direction
    }
    assert values["typical latency"] == pytest.approx(typical, rel=0.001)
    assert values["worst case latency"] == pytest.approx(worst, rel=0.001)
    assert values["PDV"] == pytest.approx(variation, rel=0.002)


def test_the_frame_loss_is_what_the_throughput_leaves(tmp_path: Path) -> None:
    device = SimulatedDevice(capacity_forward=FAST, capacity_both=248_827, establishment_rate=FAST)
    quantities = quantities_of(only("figure-02-jool-frame-loss"), device, tmp_path)
    losses = {
        (quantity.coordinates["frame_size_ipv6"], int(quantity.coordinates["load_frames_per_second"] or 0)): float(
            quantity.value or 0
        )
        for quantity in quantities
        if quantity.unit == "%" and quantity.coordinates["direction"] == "forward"
    }
    assert {size for size, _ in losses} == {84, 1044}
    for (_, load), loss in losses.items():
        assert loss == pytest.approx(max(0, 100 * (1 - 248_827 / load)), abs=0.01)


def test_the_frame_loss_of_a_series_is_what_the_throughput_leaves(tmp_path: Path) -> None:
    small = in_small(only("figure-10-jool-frame-loss"), tmp_path)
    device = SimulatedDevice(capacity_forward=FAST, capacity_both=853_175)
    result = measure_series(small, output=tmp_path / "out", equipment=equipment(lambda _: device), report=False)
    losses = [metric for metric in result.document.metrics if metric.unit == "%"]
    assert losses
    for metric in losses:
        load = int(metric.where["load_frames_per_second"] or 0)
        for figure in (metric.of(1), metric.of(2)):
            if figure is not None:
                assert float(figure.median or 0) == pytest.approx(max(0, 100 * (1 - 853_175 / load)), abs=0.01)

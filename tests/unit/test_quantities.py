"""All results as one tidy table: what each kind of result says in it, and what is made from it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.unit import overload_columns
from tests.unit.stateful_documents import (
    Words,
    all_kinds,
    capacity_run,
    capacity_search,
    document,
    page_of,
    rate_run,
    repeated_run,
    run,
    search,
    sentence,
    tear_down_run,
    terminal_of,
)

from gatemark.compare.judge import why_not
from gatemark.procedures.bursty_traffic.result import BurstSize
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.delay.result import DelayPoint, DelaySeries, DelayVariation, Latency
from gatemark.procedures.frame_loss.result import ClassLoss, LossPoint
from gatemark.procedures.registry import PROCEDURES
from gatemark.procedures.reset.result import ResetSeries
from gatemark.procedures.system_recovery.result import RecoverySeries
from gatemark.report.comparison import comparison_plots, comparison_section, scale_up_tables, share_table
from gatemark.report.headline import headlines
from gatemark.report.table import Section
from gatemark.results.ceiling import ceiling_of
from gatemark.results.coordinates import COORDINATES
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.quantity import COLUMNS, Quantity, Row, to_csv, varying
from gatemark.results.run import Mix, RunResult
from gatemark.results.search import RateResult
from gatemark.results.tester_parts import CeilingPart, SelfTestPart
from gatemark.search.burst import BurstResult
from gatemark.stats.percentiles import DELAY_FIGURES
from gatemark.stored import sections_of

SECOND = 10**9
PLACE = {
    "direction": "bidirectional",
    "frame_size_ipv4": 64,
    "frame_size_ipv6": 84,
    "foreground_m": 1,
    "foreground_n": 1,
    "connections": None,
}
"""Coordinates of a run of the builders below."""


def stateless(procedure: str, rates: Sequence[int] = (), *, number: int = 1, **changes: Any) -> RunResult:
    """A bidirectional run through a gateway without connections."""
    return run(procedure, rates, number=number, direction="bidirectional", changes={"connections": None, **changes})


def gateway(name: str, *runs: RunResult, technology: str = "siit64", cores: int | None = None) -> ResultDocument:
    """A campaign of a stateless gateway; campaign and gateway have the same name."""
    whole = document(runs, name=name, technology=technology, inside=None, table=None, cores=cores)
    return whole.model_copy(update={"name": name})


def table(quantities: Sequence[Quantity], *fields: str) -> list[tuple[object, ...]]:
    return [tuple(getattr(quantity, field) for field in fields) for quantity in quantities]


def places(quantities: Sequence[Quantity]) -> list[dict[str, object]]:
    """Coordinates beside those of the run."""
    return [
        {name: value for name, value in quantity.coordinates.items() if PLACE.get(name, "") != value}
        for quantity in quantities
    ]


def class_loss(direction: str, undelivered: tuple[int, ...], *, kind: str = "foreground") -> ClassLoss:
    none = (0,) * len(undelivered)
    fields = {"direction": direction, "class": kind, "offered": (1000,) * len(undelivered), "lost": none}
    fields |= {"undelivered": undelivered, "faulty": undelivered, "duplicate": none, "reordered": none}
    return ClassLoss.model_validate({**fields, "longest_run": none})


def loss_run(**changes: Any) -> RunResult:
    points = (
        LossPoint(frames_per_second=9000, repetitions=0, tester_limited=2, losses=()),
        LossPoint(
            frames_per_second=8000,
            repetitions=2,
            tester_limited=0,
            losses=(class_loss("forward", (100, 300)), class_loss("reverse", (0, 2), kind="background")),
        ),
        LossPoint(frames_per_second=4000, repetitions=2, tester_limited=0, losses=(class_loss("forward", (0, 0)),)),
    )
    fields = {"duration_ns": SECOND, "maximum": 9000, "points": points}
    return stateless("frame_loss", **{**fields, **changes})


def delay_series(direction: str, typical: tuple[int | None, ...], pdv: tuple[int | None, ...]) -> DelaySeries:
    times = len(typical)
    whole = {key: Figure.of([1000 * place] * times) for place, key in enumerate(DELAY_FIGURES, start=1)}
    none = (0,) * times
    latency = Latency(
        first_tag_ns=0,
        tags=(500,) * times,
        tags_lost=none,
        typical_ns=Figure.of(typical),
        worst_case_ns=Figure.of([9000] * times),
    )
    fields: dict[str, Any] = {"direction": direction, "class": "foreground", "offered": none, "undelivered": none}
    fields |= {"samples": none, "negative": none, "lateness_max_ns": none, "delay_ns": whole, "hdr": ""}
    fields |= {"latency": latency, "ipdv": None}
    fields |= {"pdv": DelayVariation(pdv_ns=Figure.of(pdv), p999_offered_ns=Figure.of([9000] * times))}
    return DelaySeries.model_validate(fields)


def delay_run(typical: tuple[int | None, ...] = (2000, 4000, 3000), **changes: Any) -> RunResult:
    common: dict[str, Any] = {"share": None, "throughput": None, "throughput_limited_by": None}
    series = (delay_series("forward", typical, (70, 80, 90)), delay_series("reverse", (5000, 5000, 5000), (1, 2, 3)))
    points = (
        DelayPoint(frames_per_second=1000, repetitions=3, tester_limited=0, series=series, **common),
        DelayPoint(frames_per_second=5000, repetitions=0, tester_limited=3, series=(), **common),
    )
    return stateless("delay", **{"duration_ns": SECOND, "points": points, **changes})


def burst(frames: int, kind: Any = "found") -> BurstResult:
    return BurstResult(kind=kind, frames=frames, upper_frames=None, trials=1)


def burst_run(*bursts: BurstResult, **changes: Any) -> RunResult:
    fields = {
        "search": "binary",
        "verifications": 0,
        "wait_ns": 2 * SECOND,
        "bursts": bursts,
        "ceiling_frames": 100_000,
        "resolution_frames": 10,
        "line_rate": 1_000_000,
        "throughput": 750_000,
    }
    return stateless("back_to_back", **{**fields, **changes})


def bursty_run() -> RunResult:
    """Two sizes of bursts; of the larger one a repetition reached the maximum and one did not."""
    mixed = (search(1_000_000, "maximum_passed"), search(500_000))
    sizes = (
        BurstSize(frames=16, line_rate=1_000_000, repetitions=(search(500_000), search(500_000))),
        BurstSize(frames=64, line_rate=1_000_000, repetitions=mixed),
    )
    fields: dict[str, Any] = {"line_rate": 1_000_000, "search_duration_ns": SECOND, "duration_ns": 60 * SECOND}
    fields |= {"sizes": sizes}
    return stateless("bursty_traffic", **fields)


def recovery_run(*recovery_ns: int | None) -> RunResult:
    series = RecoverySeries.model_validate(
        {
            "direction": "forward",
            "class": "foreground",
            "offered": (9,) * len(recovery_ns),
            "lost": (1,) * len(recovery_ns),
            "faulty": (0,) * len(recovery_ns),
            "outcomes": tuple("not_recovered" if ns is None else "recovered" for ns in recovery_ns),
            "recovery_ns": recovery_ns,
            "last_loss_before_ns": (None,) * len(recovery_ns),
        }
    )
    fields: dict[str, Any] = {"throughput": 1000, "throughput_measured": True, "overload": 1100}
    fields |= {"overload_ns": 60 * SECOND, "recovery_load": 550, "observe_ns": SECOND}
    fields |= {"repetitions": len(recovery_ns), "series": (series,)}
    return stateless("system_recovery", **fields)


def conformity_run() -> RunResult:
    case = {
        "case": "hairpin",
        "what": "",
        "domain": 0,
        "section": "",
        "due": "delivered",
        "level": "should",
        "packet": "",
    }
    counts = {"sent": 3, "controls_sent": 6, "controls_correct": 6}
    cases = [{**case, **counts, "arrived_left": count, "correct": 3} for count in (3, 4)]
    unknown = {**case, **counts, "controls_correct": 5}
    return stateless("conformity", frames=3, cases=(*cases, unknown))


def reset_run(*outcomes: str) -> RunResult:
    series = ResetSeries.model_validate(
        {
            "direction": "reverse",
            "class": "foreground",
            "sending_ns": 10 * SECOND,
            "offered": (1000,) * len(outcomes),
            "undelivered": tuple(100 + place for place in range(len(outcomes))),
            "faulty": (0,) * len(outcomes),
            "longest_run": (99,) * len(outcomes),
            "first_loss_ns": (SECOND,) * len(outcomes),
            "last_loss_ns": (2 * SECOND,) * len(outcomes),
            "outcomes": outcomes,
            "lost_before": False,
        }
    )
    fields: dict[str, Any] = {"kind": "software", "frames_per_second": 100, "throughput_measured": True}
    fields |= {"before_ns": SECOND, "observe_ns": 9 * SECOND, "repetitions": len(outcomes), "series": (series,)}
    return stateless("reset", **fields)


REFUSED = {
    "limited_by": "gateway",
    "refused": "the gateway forwards the line rate",
    "back_to_back": {"search": "binary", "verifications": 0, "wait_ns": SECOND},
    "system_recovery": {"throughput_measured": True, "overload_ns": SECOND, "observe_ns": SECOND},
    "reset": {"kind": "software", "throughput_measured": True, "before_ns": SECOND, "observe_ns": SECOND},
}
"""Fields of runs that were not made."""


def refused_run(procedure: str) -> RunResult:
    refused = REFUSED[procedure]
    assert isinstance(refused, dict)
    return stateless(procedure, **refused, limited_by=REFUSED["limited_by"], refused=REFUSED["refused"])


SELF_TEST = SelfTestPart(
    machine="m",
    port_kind="veth",
    measured_at="2026-01-01",
    lateness_max_ns=1,
    entries=(
        CeilingPart(
            family="ipv4",
            frame_octets=64,
            direction="bidirectional",
            mode="fixed",
            frames_per_second=8000,
            kind="frames",
        ),
    ),
    self_latency=(),
)


class TestEachKindOfResult:
    def test_throughput(self) -> None:
        (rate,) = stateless("throughput", (5000, 5200, 5100)).quantities()
        assert (rate.run, rate.procedure, rate.name, rate.unit) == (1, "throughput", "throughput", "frames/s")
        assert rate.coordinates == PLACE
        assert (rate.better, rate.is_headline, rate.is_certain) == ("higher", True, True)
        assert (rate.values, rate.repetitions) == ((5000, 5200, 5100), 3)
        assert (rate.median, rate.p1, rate.p99, rate.average, rate.value) == (5100, 5000, 5200, None, 5100)
        assert rate.dispersion_percent == pytest.approx(100 * 200 / 5100)
        assert (rate.lower_bound, rate.upper_bound, rate.resolution) == (5000, 6200, 1000)
        assert (rate.limited_by, rate.tester_limited_at, rate.refused) == ("gateway", None, None)

    def test_a_rate_with_loss_or_a_time_limit_has_it_as_a_coordinate(self) -> None:
        goal = rate_run("throughput", (1,)).goal
        tolerant = goal.model_copy(update={"loss_tolerance": Fraction(1, 1000), "frame_timeout_ns": 10**8})
        (rate,) = stateless("throughput", (5000,), goal=tolerant).quantities()
        assert rate.name == "rate with loss tolerated"
        assert places([rate]) == [{"loss_tolerance": "1/1000", "frame_timeout_ns": 10**8}]

    def test_a_limit_of_the_tester_leaves_no_figure(self) -> None:
        searches = (search(4000), search(3000, "tester_limited", tester_limited_at=3500))
        (rate,) = stateless("throughput", limited_by="tester", repetitions=searches).quantities()
        assert (rate.median, rate.p1, rate.p99, rate.value) == (None, None, None, None)
        assert (rate.lower_bound, rate.tester_limited_at, rate.limited_by) == (3000, 3500, "tester")
        assert not rate.is_measured

    def test_connection_establishment(self) -> None:
        (plain,) = run("connection_establishment_rate", (700, 900), count=50).quantities()
        assert (plain.name, plain.unit, plain.better) == ("connection establishment rate", "connections/s", "higher")
        assert (plain.median, plain.values) == (800, (700, 900))
        assert (plain.coordinates["connections"], "alpha" in plain.coordinates) == (50, False)
        (validated,) = run("validated_connection_establishment_rate", (700,), count=50).quantities()
        assert validated.name == "validated connection establishment rate"
        assert (validated.coordinates["alpha"], validated.is_headline) == ("1", True)

    def test_repeated_four_tuples(self) -> None:
        quantities = repeated_run(4_000_000, (2_371_094, 2_371_096), (2_528_332, 2_528_334)).quantities()
        assert table(quantities, "name", "unit", "better", "is_headline") == [
            ("frame rate with repeated four-tuples", "frames/s", "higher", True),
            ("expected connections of repeated four-tuples", "connections", None, False),
            ("ratio of new connections at the end", "%", None, False),
            ("connections of repeated four-tuples", "connections", None, False),
            ("connections counted by the gateway", "connections", None, False),
        ]
        rate, expected, ratio, established, counted = (quantity.value for quantity in quantities)
        assert (rate, established, counted) == (2_371_095, 2_528_333, 2_528_333)
        assert (round(expected or 0), round(ratio or 0, 2)) == (2_528_482, 36.79)
        assert {quantity.coordinates["drawn_frames"] for quantity in quantities} == {4_000_000}

    def test_connection_tear_down(self) -> None:
        quantities = tear_down_run(1000, (20, 21, 22), (1, 1, 1)).quantities()
        assert table(quantities, "name", "unit", "better", "is_headline", "repetitions") == [
            ("connection tear-down rate", "connections/s", "higher", True, 3),
            ("time to delete all connections", "ns", "lower", False, 3),
            ("time to delete no connection", "ns", "lower", False, 3),
            ("time to delete the connections alone", "ns", "lower", False, 3),
        ]
        rate, full, empty, net = quantities
        assert (net.median, net.values, net.is_certain) == (20_000_000, (), True)
        assert (rate.median, rate.values, rate.is_certain) == (50_000, (), True)
        assert (full.values, full.median) == ((20_000_000, 21_000_000, 22_000_000), 21_000_000)
        assert (empty.median, empty.p1, empty.p99) == (1_000_000, 1_000_000, 1_000_000)
        assert {quantity.coordinates["connections"] for quantity in quantities} == {1000}

    def test_connection_tracking_table_capacity(self) -> None:
        quantities = capacity_run((4_194_300, 4_194_302)).quantities()
        assert table(quantities, "name", "unit", "median", "lower_bound", "upper_bound", "is_headline") == [
            ("connection tracking table capacity", "connections", 4_194_301, 4_194_300, 4_194_303, True),
            ("validated connection establishment rate R0", "connections/s", 2_500_000, None, None, False),
            ("validated connection establishment rate RS", "connections/s", 2_250_945, None, None, False),
        ]
        assert quantities[0].values == (4_194_300, 4_194_302)
        assert {quantity.coordinates["alpha"] for quantity in quantities} == {"1"}
        assert {quantity.coordinates["connections"] for quantity in quantities} == {None}

    def test_frame_loss(self) -> None:
        quantities = loss_run().quantities()
        assert {(quantity.name, quantity.unit, quantity.better) for quantity in quantities} == {
            ("frame loss rate", "%", "lower")
        }
        assert places(quantities) == [
            {"load_frames_per_second": 9000},
            {"direction": "forward", "class": "foreground", "load_frames_per_second": 8000},
            {"direction": "reverse", "class": "background", "load_frames_per_second": 8000},
            {"direction": "forward", "class": "foreground", "load_frames_per_second": 4000},
        ]
        assert table(quantities, "values", "median", "p1", "p99", "limited_by", "tester_limited_at", "is_headline") == [
            ((), None, None, None, "tester", 9000, False),
            ((10.0, 30.0), 20, 10, 30, "gateway", None, True),
            ((0.0, 0.2), 0.1, 0, 0.2, "gateway", None, True),
            ((0.0, 0.0), 0, 0, 0, "gateway", None, False),
        ]

    def test_frame_loss_at_a_load_that_some_repetitions_did_not_try(self) -> None:
        survivors = class_loss("forward", (100, 300)).model_copy(update={"not_tried": 3})
        point = LossPoint(frames_per_second=8000, repetitions=2, tester_limited=0, losses=(survivors,))
        (loss,) = loss_run(points=(point,)).quantities()
        assert (loss.values, loss.median, loss.p99, loss.repetitions) == ((10.0, 30.0), None, None, 2)
        assert why_not(loss) == "nothing was measured, or not in every repetition"

    def test_delay(self) -> None:
        quantities = delay_run().quantities()
        names = ["typical latency", "worst case latency", "PDV"]
        names += [
            f"delay {words}"
            for words in ("minimum", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "maximum")
        ]
        assert [quantity.name for quantity in quantities] == [*names, *names, "delay"]
        assert {(quantity.unit, quantity.better) for quantity in quantities} == {("ns", "lower")}
        typical, _, pdv, *_ = quantities
        assert (typical.values, typical.median, typical.p1, typical.p99) == ((2000, 4000, 3000), 3000, 2000, 4000)
        assert (pdv.median, pdv.is_headline) == (80, False)
        assert [quantity.name for quantity in quantities if quantity.is_headline] == ["typical latency"] * 2
        assert places([quantities[0], quantities[11]]) == [
            {"direction": way, "class": "foreground", "load_frames_per_second": 1000} for way in ("forward", "reverse")
        ]
        not_offered = quantities[-1]
        assert (not_offered.limited_by, not_offered.tester_limited_at, not_offered.value) == ("tester", 5000, None)

    def test_a_delay_that_is_missing_in_one_repetition_has_no_median(self) -> None:
        typical = delay_run((2000, None, 3000)).quantities()[0]
        assert (typical.values, typical.repetitions) == ((2000, None, 3000), 3)
        assert (typical.median, typical.p1, typical.p99) == (None, None, None)

    def test_back_to_back(self) -> None:
        quantities = burst_run(burst(1000), burst(1004)).quantities()
        assert table(quantities, "name", "unit", "average", "median", "value", "repetitions", "is_headline") == [
            ("back-to-back frames", "frames", 1002, None, 1002, 2, True),
            ("implied buffer time", "ns", 1_002_000, None, 1_002_000, 2, False),
            ("corrected buffer time", "ns", 250_500, None, 250_500, 2, False),
        ]
        assert quantities[0].values == (1000, 1004)
        assert [quantity.resolution for quantity in quantities] == [10, 10_000, 2_500]
        assert {quantity.better for quantity in quantities} == {"higher"}
        assert places(quantities) == [{"load_frames_per_second": 1_000_000}] * 3

    @pytest.mark.parametrize("last", [burst(100_000, "ceiling_passed"), burst(99_995), burst(7, "tester_limited")])
    def test_bursts_up_to_the_ceiling_have_no_average(self, last: BurstResult) -> None:
        quantities = burst_run(burst(1000), last).quantities()
        assert [quantity.value for quantity in quantities] == [None, None, None]

    def test_system_recovery(self) -> None:
        (time,) = recovery_run(3000, 5000).quantities()
        assert (time.name, time.unit, time.better) == ("system recovery time", "ns", "lower")
        assert (time.values, time.average, time.median, time.is_headline) == ((3000, 5000), 4000, None, True)
        assert places([time]) == [{"direction": "forward", "class": "foreground", "load_frames_per_second": 1100}]
        (unknown,) = recovery_run(3000, None).quantities()
        assert (unknown.values, unknown.value) == ((3000, None), None)

    def test_reset(self) -> None:
        by_loss, by_gap = reset_run("recovered", "recovered").quantities()
        assert (by_loss.name, by_loss.unit, by_loss.better) == ("software reset time by loss", "ns", "lower")
        assert (by_loss.values, by_loss.average) == ((1_000_000_000, 1_010_000_000), 1_005_000_000)
        assert (by_loss.is_headline, by_gap.is_headline) == (True, False)
        assert (by_gap.name, by_gap.median) == ("software reset time by gap", 1_000_000_000)
        assert places([by_loss]) == [{"direction": "reverse", "class": "foreground", "load_frames_per_second": 100}]
        assert (by_loss.load_share, by_gap.load_share) == ("100% of the throughput",) * 2
        lasting = reset_run("recovered", "not_recovered").quantities()
        assert [quantity.value for quantity in lasting] == [None, None]

    @pytest.mark.parametrize("procedure", ["back_to_back", "system_recovery", "reset"])
    def test_a_run_that_was_not_made_has_one_row_with_the_reason(self, procedure: str) -> None:
        result = refused_run(procedure)
        (row,) = result.quantities()
        assert (row.procedure, row.name, row.unit) == (procedure, procedure.replace("_", " "), "")
        assert (row.refused, row.limited_by) == ("the gateway forwards the line rate", "gateway")
        assert (row.value, row.values, row.repetitions, row.is_measured) == (None, (), 0, False)
        (written,) = csv.DictReader(io.StringIO(to_csv(gateway("one", result).rows())))
        assert (written["refused"], written["median"], written["average"]) == (row.refused, "", "")

    def test_bursty_traffic(self) -> None:
        small, large = bursty_run().quantities()
        assert {(gap.name, gap.unit, gap.better) for gap in (small, large)} == {
            ("smallest gap between bursts", "ns", "lower")
        }
        assert places([small, large]) == [{"burst_frames": 16}, {"burst_frames": 64}]
        # 16 frames at 500,000 frames/s, less 16 frames at 1,000,000 frames/s: 32 µs less 16 µs
        assert (small.values, small.median, small.repetitions) == ((16_000, 16_000), 16_000, 2)
        assert (small.limited_by, small.is_headline, large.is_headline) == ("gateway", False, True)
        assert (large.values, large.median, large.limited_by) == ((), None, "maximum")
        # 501,000 frames/s failed, with a gap of 15,936.1 ns
        assert (small.resolution, large.resolution) == (64, None)

    def test_conformity(self) -> None:
        conform, *cases = conformity_run().quantities()
        assert (conform.name, conform.unit, conform.median, conform.better) == (
            "cases that conform",
            "cases",
            1,
            "higher",
        )
        assert [(row.values, row.unit, row.better, row.is_headline) for row in cases] == [
            ((count,), "packets", None, False) for count in (3, 4, None)
        ]
        assert [row.coordinates["judgement"] for row in cases] == ["conforms", "differs", "no_result"]

    def test_every_procedure_is_here(self) -> None:
        runs = (*all_kinds().runs, loss_run(), delay_run(), burst_run(), recovery_run(1), reset_run("recovered"))
        runs = (*runs, bursty_run(), repeated_run(4_000_000, (2_371_094,), (2_528_332,)), conformity_run())
        runs = (*runs, overload_columns.result([overload_columns.point(column) for column in overload_columns.TAYGA]))
        assert {result.procedure for result in runs} == set(PROCEDURES)


class TestCsv:
    def rows(self, *documents: ResultDocument) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(to_csv(row for document in documents for row in document.rows()))))

    def test_columns(self) -> None:
        heading, *lines = to_csv(gateway("one", stateless("throughput", (5000, 5200))).rows()).splitlines()
        assert heading == (
            "campaign,gateway,run,procedure,quantity,unit,better,direction,class,frame_size_ipv4,frame_size_ipv6,"
            "foreground_m,foreground_n,connections,alpha,loss_tolerance,frame_timeout_ns,load_frames_per_second,"
            "repetitions,median,p1,p99,average,lower_bound,upper_bound,resolution,limited_by,tester_limited_at,"
            "refused,values"
        )
        assert heading.split(",") == list(COLUMNS)
        assert lines == [
            "one,one,1,throughput,throughput,frames/s,higher,bidirectional,,64,84,1,1,,,,,,2,5100,5000,5200,,5000,6200,1000,"
            "gateway,,,5000 5200"
        ]

    def test_an_empty_cell_is_never_a_zero(self) -> None:
        rows = self.rows(gateway("one", loss_run(), delay_run((2000, None, 3000), number=2)))
        not_offered = rows[0]
        assert [not_offered[name] for name in ("median", "p1", "p99", "average", "values")] == [""] * 5
        assert (not_offered["limited_by"], not_offered["tester_limited_at"]) == ("tester", "9000")
        assert (not_offered["repetitions"], not_offered["class"]) == ("0", "")
        no_loss = rows[3]
        assert (no_loss["median"], no_loss["values"]) == ("0", "0.0 0.0")
        typical = next(row for row in rows if row["quantity"] == "typical latency")
        assert (typical["median"], typical["values"], typical["repetitions"]) == ("", "2000 - 3000", "3")

    def test_what_a_campaign_varies_beside_is_a_column_more(self) -> None:
        rows = self.rows(
            gateway("one", stateless("throughput", (5000,)), cores=1), gateway("two", stateless("throughput", (9000,)))
        )
        assert list(rows[0]) == [*COLUMNS, "cores"]
        assert [row["cores"] for row in rows] == ["1", ""]

    def test_each_figure_of_each_run_is_one_row(self) -> None:
        whole = all_kinds()
        rows = self.rows(whole)
        assert len(rows) == sum(len(result.quantities()) for result in whole.runs)
        keys = [(row["run"], row["quantity"], *(row[name] for name in COORDINATES)) for row in rows]
        assert len(set(keys)) == len(keys)


class TestVarying:
    def rows(self, *places_of_rows: dict[str, Any]) -> list[Row]:
        (quantity,) = stateless("throughput", (1,)).quantities()
        return [Row(campaign="c", gateway="g", quantity=quantity, coordinates=place) for place in places_of_rows]

    def test_only_what_differs(self) -> None:
        assert varying([]) == ()
        assert varying(self.rows({}, {})) == ()
        assert varying(self.rows({"cores": 1}, {"cores": 1})) == ()
        assert varying(self.rows({"cores": 1}, {"cores": 2})) == ("cores",)
        assert varying(self.rows({"cores": 1}, {})) == ("cores",)

    def test_known_coordinates_come_first_in_their_order(self) -> None:
        whole = document(
            [
                run("throughput", (1,), count=10),
                run("throughput", (1,), count=20, number=2, direction="reverse", changes={"mix": Mix(m=9, n=10)}),
            ]
        )
        rows = [
            Row(campaign=row.campaign, gateway=row.gateway, quantity=row.quantity, coordinates={"kernel": number})
            for number, row in enumerate(whole.rows())
        ]
        assert varying(rows) == ("direction", "foreground_m", "foreground_n", "connections", "kernel")


class TestHeadlines:
    def shown(self, *runs: RunResult) -> list[tuple[str, str]]:
        return [(large.figure, large.unit) for large in headlines(gateway("one", *runs))]

    def test_the_worst_of_the_directions_and_classes(self) -> None:
        assert self.shown(delay_run()) == [("5.000", "µs")]
        assert self.shown(loss_run()) == [("20.00 % lost", "")]

    def test_one_that_is_not_known_spoils_it(self) -> None:
        assert self.shown(delay_run((2000, None, 3000))) == [("not known", "")]
        assert self.shown(recovery_run(3000, None)) == [("not known", "")]
        assert self.shown(burst_run(burst(5), burst(100_000, "ceiling_passed"))) == [("not known", "")]

    def test_losses_only_where_nothing_else_was_measured(self) -> None:
        rate = stateless("throughput", (5000,))
        assert self.shown(rate, loss_run(number=2)) == [("5,000", "frames/s")]

    def test_a_load_that_the_tester_could_not_offer_is_no_loss_of_the_gateway(self) -> None:
        none = LossPoint(frames_per_second=9000, repetitions=0, tester_limited=2, losses=())
        assert self.shown(loss_run(points=(none,), limited_by="tester")) == [("Tester-limited", "")]

    def test_the_load_of_a_loss_or_a_delay_is_told(self) -> None:
        (loss,) = headlines(gateway("one", loss_run()))
        assert loss.label == (
            "frame loss rate, at 8,000 frames/s, 64 / 84 octets (IPv4 / IPv6), per direction, bidirectional"
        )
        (delay,) = headlines(gateway("one", delay_run()))
        assert delay.label.startswith("typical latency, at 1,000 frames/s, ")

    def test_a_run_that_was_not_made_has_none(self) -> None:
        assert self.shown(refused_run("reset")) == []

    def test_averages_are_shown_where_the_rfc_asks_for_them(self) -> None:
        assert self.shown(burst_run(burst(1000), burst(1005))) == [("1,002.5", "frames")]
        assert self.shown(recovery_run(3_000_000, 5_000_000)) == [("4.000", "ms")]


def mixed_throughput() -> RunResult:
    searches = (search(8000, "maximum_passed"), search(5000), search(8000, "maximum_passed"))
    return stateless("throughput", limited_by="maximum", repetitions=searches)


def mixed_establishment() -> RunResult:
    searches = (search(8000, "maximum_passed"), search(5000))
    return run("connection_establishment_rate", changes={"limited_by": "maximum", "repetitions": searches})


def mixed_capacity() -> CapacityResult:
    searches = (capacity_search(8000, r0=9, rs=9, kind="maximum_passed"), capacity_search(5000, r0=9, rs=9))
    whole = capacity_run((5000,), limited_by="maximum")
    return whole.model_copy(update={"repetitions": searches})


class TestMaximumReached:
    """A repetition that ended at the maximum and one that did not say different things: "at least", and "so much"."""

    @pytest.mark.parametrize(
        ("mixed", "least"),
        [(mixed_throughput(), 5000), (mixed_establishment(), 5000), (mixed_capacity(), 5000)],
        ids=["throughput", "establishment", "capacity"],
    )
    def test_they_are_never_in_one_median(self, mixed: RunResult, least: int) -> None:
        (rate,) = (quantity for quantity in mixed.quantities() if quantity.is_headline)
        assert (rate.median, rate.p1, rate.p99, rate.dispersion_percent, rate.value) == (None,) * 5
        assert (rate.lower_bound, rate.limited_by) == (least, "maximum")
        assert len(rate.values) == rate.repetitions > 1
        whole = document([mixed])
        (large,) = headlines(whole)
        assert large.figure == f"≥ {least:,}"
        assert f"≥ {least:,}" in Words(page_of(whole)).text
        medians = [
            row
            for section in sections_of(whole)
            for table in section.tables
            for row in table.rows
            if row[0] == "median"
        ]
        assert medians == []
        if mixed.procedure != "connection_tracking_table_capacity":
            assert f"≥ {least:,}" in terminal_of(whole)
        assert "median of" not in sentence(whole)
        assert share_table([whole, whole.model_copy(update={"name": "again"})]).rows == ()
        published = mixed.model_dump(mode="json")
        for name in ("rate_per_direction", "rate_sum_of_directions", "connections_per_second", "capacity"):
            assert published.get(name) is None

    def test_all_of_one_kind_have_one(self) -> None:
        searches = (search(8000, "maximum_passed"), search(9000, "maximum_passed"))
        (rate,) = stateless("throughput", limited_by="maximum", repetitions=searches).quantities()
        assert (rate.median, rate.limited_by) == (8500, "maximum")
        (large,) = headlines(gateway("one", stateless("throughput", limited_by="maximum", repetitions=searches)))
        assert (large.figure, large.unit) == ("≥ 8,500", "frames/s")

    def test_one_in_which_nothing_passed_counts_as_zero(self) -> None:
        searches = (search(None, "nothing_passes"), search(5000), search(6000))
        (rate,) = stateless("throughput", repetitions=searches).quantities()
        assert (rate.values, rate.median, rate.lower_bound) == ((0, 5000, 6000), 5000, None)
        (none,) = stateless("throughput", repetitions=searches[:1]).quantities()
        assert (none.median, none.value) == (None, None)

    def test_a_maximum_that_is_the_ceiling_of_the_tester_is_told(self) -> None:
        searches = (search(8000, "maximum_passed"),)
        whole = gateway("one", stateless("throughput", limited_by="maximum", repetitions=searches))
        text = Words(page_of(whole.model_copy(update={"self_test": SELF_TEST}))).text
        assert "8,000 is within 5 % of what the Tester reaches alone (8,000), so it may be the Tester's limit" in text

    def test_the_ceiling_of_customer_edges_is_that_of_nothing_else(self) -> None:
        run = stateless("throughput", (7900,))
        assert isinstance(run, RateResult)
        plain = SELF_TEST.entries[0]
        edges = plain.model_copy(update={"mode": "edges", "frames_per_second": plain.frames_per_second - 1})
        both = SELF_TEST.model_copy(update={"entries": (plain, edges)})
        assert ceiling_of(both, run, run.unit, "router44") == plain
        assert ceiling_of(both, run, run.unit, "siit64") == plain
        assert ceiling_of(both, run, run.unit, "map_t_br") == edges

    def test_the_ceiling_of_tunnels_is_that_of_their_family(self) -> None:
        run = stateless("throughput", (7900,))
        assert isinstance(run, RateResult)
        plain = SELF_TEST.entries[0]
        inside_ipv4, inside_ipv6 = (
            plain.model_copy(update={"mode": mode, "frames_per_second": plain.frames_per_second - less})
            for mode, less in (("tunnels", 2), ("tunnels_6in4", 1))
        )
        all_three = SELF_TEST.model_copy(update={"entries": (plain, inside_ipv4, inside_ipv6)})
        assert ceiling_of(all_three, run, run.unit, "router44") == plain
        assert ceiling_of(all_three, run, run.unit, "map_e_br") == inside_ipv4
        assert ceiling_of(all_three, run, run.unit, "sixrd_br") == inside_ipv6


class TestComparison:
    def test_two_gateways_have_an_overview_plot(self) -> None:
        fast, slow = (gateway(name, stateless("throughput", (rate,))) for name, rate in (("fast", 9000), ("slow", 5)))
        (drawn,) = comparison_plots([fast, slow])
        assert 'aria-label="throughput compared"' in drawn.svg
        assert "9,000" in drawn.svg
        assert "logarithmic scale" in drawn.svg, "an axis that does not begin at 0 says so"
        assert [row[1:3] for row in drawn.drawing.data()[1:]] == [("9000", "fast"), ("5", "slow")]
        assert "fast" in drawn.svg
        assert "slow" in drawn.svg
        assert drawn.caption.startswith("Throughput: median of the repetitions")
        assert drawn.svg in page_of(fast, slow)
        assert list(comparison_plots([fast])) == []

    def test_a_plot_says_how_many_figures_it_leaves_out(self) -> None:
        many = [gateway(f"g{number}", stateless("throughput", (9000,))) for number in range(70)]
        (drawn,) = comparison_plots(many)
        assert "the first 60 of 70 figures" in drawn.svg
        (drawn,) = comparison_plots(many[:60])
        assert "figures" not in drawn.svg

    def test_lower_bounds_are_drawn_as_such_and_a_limit_of_the_tester_without_one_is_not_drawn(self) -> None:
        known = gateway("known", stateless("throughput", (9000,)))
        maximum = stateless("throughput", limited_by="maximum", repetitions=(search(8000, "maximum_passed"),))
        (drawn,) = comparison_plots([known, gateway("least", maximum)])
        assert "≥ 8,000" in drawn.svg
        limited = search(7000, "tester_limited", tester_limited_at=7500)
        spoilt = gateway("spoilt", stateless("throughput", limited_by="tester", repetitions=(limited,)))
        (drawn,) = comparison_plots([known, spoilt])
        assert "≥ 7,000" in drawn.svg
        nothing = search(None, "tester_limited", tester_limited_at=7500)
        silent = gateway("silent", stateless("throughput", limited_by="tester", repetitions=(nothing,)))
        assert list(comparison_plots([known, silent])) == []

    def test_delays_are_compared_as_rates_are(self) -> None:
        first, second = gateway("first", delay_run()), gateway("second", delay_run((20_000, 40_000, 30_000)))
        (drawn,) = comparison_plots([first, second])
        assert 'aria-label="typical latency compared"' in drawn.svg
        section = comparison_section([first, second])
        assert section is not None
        (times,) = section.tables
        assert times.title == "Typical latency, µs"
        assert [(row[0], *row[-4:-1]) for row in times.rows] == [
            ("first", "3.000", "2.000 \u2013 4.000\n66.67 %", "3"),
            ("first", "5.000", "5.000 \u2013 5.000\n0 %", "3"),
            ("second", "30.00", "20.00 \u2013 40.00\n66.67 %", "3"),
            ("second", "5.000", "5.000 \u2013 5.000\n0 %", "3"),
        ]

    def test_a_translator_is_compared_with_a_router_with_as_many_cores(self) -> None:
        routers = [
            gateway(f"router {cores}", stateless("throughput", (rate,)), technology="router44", cores=cores)
            for cores, rate in ((1, 1000), (2, 1800))
        ]
        translators = [
            gateway(f"translator {cores}", stateless("throughput", (rate,)), cores=cores)
            for cores, rate in ((1, 500), (2, 450), (4, 2000))
        ]
        compared = {row[0]: (row[1], row[4], row[5]) for row in share_table([*translators, *routers]).rows}
        what = "throughput, bidirectional, 64 / 84 octets, frames/s"
        assert compared == {
            "translator 1": (what, "50.00 %", "router 1"),
            "translator 2": (what, "25.00 %", "router 2"),
        }

    def test_scale_up_over_cores(self) -> None:
        documents = [
            gateway("same", stateless("throughput", (rate,)), cores=cores)
            for cores, rate in ((1, 1000), (2, 1800), (4, 2700))
        ]
        (scaled,) = scale_up_tables(documents)
        assert scaled.title == "same over its cores"
        assert [column.heading for column in scaled.columns] == ["cores", "1", "2", "4"]
        assert scaled.rows == (
            (
                "throughput, bidirectional, 64 / 84 octets",
                "1,000\n1.000\n\u2013",
                "1,800\n0.900\n1.80",
                "2,700\n0.675\n1.50",
            ),
        )
        over_cores = [drawn for drawn in comparison_plots(with_names(documents)) if "against cores" in drawn.svg]
        assert len(over_cores) == 1

    def test_one_campaign_alone_has_none(self) -> None:
        assert comparison_section([gateway("one", stateless("throughput", (1000,)))]) is None


def with_names(documents: Sequence[ResultDocument]) -> list[ResultDocument]:
    """The same campaigns with a name each."""
    return [whole.model_copy(update={"name": f"campaign {place}"}) for place, whole in enumerate(documents)]


class Tables(HTMLParser):
    """Caption, heading and rows of each table of a page; a line break in a cell is kept."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
        self._heading: list[str] = []
        self._row: list[str] = []
        self._text: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._heading = []
            self.tables.append(((), []))
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._text = []
        elif tag == "br" and self._text is not None:
            self._text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._text is not None:
            (self._row if tag == "td" else self._heading).append("".join(self._text).strip())
            self._text = None
        elif tag == "tr" and self._row:
            self.tables[-1][1].append(tuple(self._row))
        elif tag == "thead":
            self.tables[-1] = (tuple(self._heading), self.tables[-1][1])

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


class TestTerminalAndPage:
    WHOLE = (
        all_kinds(),
        gateway("stateless", stateless("throughput", (5000, 5200)), loss_run(number=2), delay_run(number=3)),
        gateway("events", burst_run(burst(1000)), recovery_run(1000), reset_run("recovered")),
    )

    @pytest.mark.parametrize("whole", WHOLE, ids=["stateful", "stateless", "events"])
    def test_both_show_the_same_tables(self, whole: ResultDocument) -> None:
        numbered = tuple(
            result.model_copy(update={"number": number}) for number, result in enumerate(whole.runs, start=1)
        )
        whole = whole.model_copy(update={"runs": numbered})
        sections = sections_of(whole)
        self.check(sections, page_of(whole), terminal_of(whole, width=300))

    def test_both_show_the_same_comparison(self) -> None:
        documents = with_names(
            [
                gateway("same", stateless("throughput", (1000,)), delay_run(number=2), cores=1),
                gateway("same", stateless("throughput", (1800,)), delay_run(number=2), cores=2),
                gateway("other", stateless("throughput", (900,)), delay_run(number=2), cores=1),
            ]
        )
        section = comparison_section(documents)
        assert section is not None
        assert [table.title for table in section.tables] == [
            "Throughput, frames/s, per direction, bidirectional",
            "Typical latency, µs",
            "same over its cores",
            "Campaigns compared",
            "Gateways",
        ]
        self.check([section], page_of(*documents), terminal_of(*documents, width=300))

    def check(self, sections: Sequence[Section], page: str, terminal: str) -> None:
        """Every cell of every table is on the page where it belongs, and on the terminal in a line of its table."""
        on_page = Tables(page).tables
        lines = [tuple(re.split(r" {2,}", line.strip())) for line in terminal.splitlines()]
        for section in sections:
            for expected in section.tables:
                headings = tuple(column.heading for column in expected.columns)
                assert (headings, list(expected.rows)) in on_page
                if section.in_rate_tables:  # the terminal has the rates of all procedures in tables of their own
                    continue
                for row in expected.rows:
                    first = [cell.split("\n")[0] for cell in row if cell and not cell[:1].isalpha()]
                    assert any(set(first) <= set(line) for line in lines), row
                for note in expected.notes:
                    assert " ".join(note.split()) in " ".join(terminal.split())

    def test_the_rates_of_a_stateless_gateway_are_the_same_on_both(self) -> None:
        whole = gateway("one", stateless("throughput", (5000, 5200)))
        (section,) = sections_of(whole)
        (expected,) = section.tables
        (cells,) = expected.rows
        terminal = terminal_of(whole, width=300)
        for line in (line for cell in cells for line in cell.split("\n")):
            assert all(word in terminal for word in line.split())
        assert expected.columns[0].heading != "gateway"
        assert "one" in terminal

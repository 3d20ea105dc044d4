"""Which figures of several columns are the same metric, and how the table shows what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatemark.report.words import DASH
from gatemark.results.quantity import Quantity
from gatemark.series.document import Metric, Parameters, SeriesColumn, SeriesDocument, VariedKeys
from gatemark.series.join import ColumnRows, joined, metrics_of
from gatemark.series.report import plots, section
from gatemark.series.run import asks_for_more

UNSET = {"direction": "bidirectional", "frame_size_ipv4": 64, "foreground_m": 1, "foreground_n": 1}


def figure(median: float | None, name: str = "throughput", unit: str = "frames/s", **fields: Any) -> Quantity:
    where = {**UNSET, **fields.pop("where", {})}
    whole = {
        "run": 1,
        "procedure": name,
        "name": name,
        "unit": unit,
        "better": "higher",
        "coordinates": where,
        "repetitions": 3,
        "median": median,
        "p1": median,
        "p99": median,
        "resolution": 100,
        "is_headline": True,
        **fields,
    }
    return Quantity(**whole)


def refusal(reason: str, name: str = "throughput", **where: Any) -> Quantity:
    return figure(None, name, "", better=None, refused=reason, where=where, repetitions=0, resolution=None)


def columns(*quantities: Sequence[Quantity], cores: Sequence[int | None] = ()) -> list[ColumnRows]:
    """Columns of one part."""
    return [
        ColumnRows(
            number=number, steps=(number - 1,), cores=cores[number - 1] if cores else None, quantities=tuple(quantity)
        )
        for number, quantity in enumerate(quantities, start=1)
    ]


def figures(metric: Metric) -> list[tuple[int, object]]:
    return [(figure.column, figure.median) for figure in metric.figures]


def test_what_has_one_value_in_each_column_is_of_the_column() -> None:
    (metric,) = metrics_of(
        columns(
            [figure(100, where={"frame_size_ipv4": 64})],
            [figure(90, where={"frame_size_ipv4": 128})],
            [],
            [figure(80, where={"frame_size_ipv4": 256})],
        )
    )
    assert figures(metric) == [(1, 100), (2, 90), (4, 80)]
    assert [figure.where for figure in metric.figures] == [{"frame_size_ipv4": size} for size in (64, 128, 256)]
    assert "frame_size_ipv4" not in metric.where
    assert [figure.ratio_to_previous for figure in metric.figures] == [None, 0.9, None]


def test_connections_of_columns_without_figures_are_known() -> None:
    given = columns([figure(100, where={"connections": 10})], [])
    for connections, where in ((20, {}), (10, {"connections": 10}), (None, {"connections": 10})):
        (metric,) = metrics_of([given[0], replace(given[1], connections=connections)])
        assert metric.where == {**UNSET, **where}, connections


def test_what_a_column_sweeps_itself_keeps_its_metrics_apart() -> None:
    swept = [[figure(100 * n, where={"frame_size_ipv4": size}) for size in (64, 128)] for n in (1, 2)]
    metrics = metrics_of(columns(*swept))
    assert [metric.where["frame_size_ipv4"] for metric in metrics] == [64, 128]
    assert [figures(metric) for metric in metrics] == [[(1, 100), (2, 200)]] * 2


def delays(*loads: int, shares: Sequence[str | None] = (None, None)) -> list[Quantity]:
    return [
        figure(load, "delay", "ns", better="lower", where={"load_frames_per_second": load}, load_share=share)
        for load, share in zip(loads, shares, strict=False)
    ]


def test_figures_at_the_same_share_of_what_was_measured_are_one_metric() -> None:
    shares = ("100% of the throughput", "50% of the throughput")
    high, low = metrics_of(columns(delays(1000, 500, shares=shares), delays(800, 400, shares=shares)))
    assert figures(high) == [(1, 1000), (2, 800)]
    assert figures(low) == [(1, 500), (2, 400)]
    assert [figure.where for figure in low.figures] == [{"load_frames_per_second": load} for load in (500, 400)]
    uneven = metrics_of(columns(delays(1000, 500, shares=shares), delays(800, shares=shares)))
    assert [figures(metric) for metric in uneven] == [[(1, 1000), (2, 800)], [(1, 500)]]


def test_figures_at_other_loads_are_other_metrics() -> None:
    same = metrics_of(columns(delays(1000, 500), delays(1000, 500)))
    assert [metric.where["load_frames_per_second"] for metric in same] == [1000, 500]
    uneven = metrics_of(columns(delays(1000, 500), delays(500)))
    assert [figures(metric) for metric in uneven] == [[(1, 1000)], [(1, 500), (2, 500)]]
    others = metrics_of(columns(delays(1000, 500), delays(800, 500)))
    assert [figures(metric) for metric in others] == [[(1, 1000)], [(1, 500), (2, 500)], [(2, 800)]]
    (varied,) = metrics_of(columns(delays(1000), delays(800)))  # the load is what the columns differ in
    assert [each.where for each in varied.figures] == [{"load_frames_per_second": load} for load in (1000, 800)]


def test_a_refusal_is_a_figure_of_the_metric_that_others_have() -> None:
    metrics = metrics_of(
        columns(
            [figure(100, where={"direction": "forward"}), figure(90, where={"direction": "reverse"})],
            [refusal("no way back", direction="reverse"), figure(80, where={"direction": "forward"})],
            [refusal("nothing passes", direction="forward"), refusal("nothing at all", direction="reverse")],
        )
    )
    assert [metric.where["direction"] for metric in metrics] == ["forward", "reverse"]
    assert [(figure.column, figure.refused) for figure in metrics[0].figures] == [
        (1, None),
        (2, None),
        (3, "nothing passes"),
    ]
    assert [(figure.column, figure.refused) for figure in metrics[1].figures] == [
        (1, None), (2, "no way back"), (3, "nothing at all"),
    ]  # fmt: skip
    (alone,) = metrics_of(columns([refusal("no line rate", "bursty")], [refusal("no line rate", "bursty")]))
    assert (alone.unit, [figure.refused for figure in alone.figures]) == ("", ["no line rate"] * 2)


def test_only_figures_of_the_gateway_are_compared() -> None:
    limits: list[dict[str, Any]] = [
        {},
        {"limited_by": "tester"},
        {"limited_by": "maximum"},
        {"is_certain": False},
        {},
        {},
    ]
    (metric,) = metrics_of(columns(*([figure(100, **limit)] for limit in limits)))
    assert [figure.ratio_to_previous for figure in metric.figures] == [None] * 5 + [1.0]
    assert metric.figures[3].certain is False


def test_a_scale_up_compares_the_same_measurement_with_one_core() -> None:
    (metric,) = metrics_of(columns([figure(100)], [figure(150)], [figure(360)], cores=(1, 2, 4)))
    assert [figure.scale_up for figure in metric.figures] == [1.0, 0.75, 0.9]
    for cores in ((2, 4, 8), (1, 1, 2), (1, None, 2)):
        (metric,) = metrics_of(columns([figure(100)], [figure(150)], [figure(360)], cores=cores))
        assert [figure.scale_up for figure in metric.figures] == [None] * 3, cores
    (metric,) = metrics_of(
        columns([figure(100, where={"connections": 10})], [figure(150, where={"connections": 20})], cores=(1, 2))
    )
    assert [figure.scale_up for figure in metric.figures] == [1.0, None]
    (delays,) = metrics_of(columns([figure(100, unit="ns")], [figure(150, unit="ns")], cores=(1, 2)))
    assert [figure.scale_up for figure in delays.figures] == [None] * 2


PORTS = (1, 2, 3, 4)


def beside_a_router(translator: Quantity, router: Quantity, **of_router: Any) -> list[float | None]:
    """The shares of a translator with one and with two cores, beside a router with one core or what else is said."""
    nat = [figure(500, where={"connections": 7}), replace(translator, median=700)]
    rows = [
        ColumnRows(number=1, steps=(0, 0), cores=1, quantities=(nat[0],), endpoints=PORTS),
        ColumnRows(number=2, steps=(0, 1), cores=2, quantities=(nat[1],), endpoints=PORTS),
        ColumnRows(
            number=3, steps=(1, 0), cores=1, quantities=(figure(1000),), endpoints=PORTS, is_plain_forwarding=True
        ),
    ]
    last = {"number": 4, "steps": (1, 1), "cores": 2, "endpoints": PORTS, "is_plain_forwarding": True, **of_router}
    rows.append(ColumnRows(quantities=(router,), **last))
    return [
        figure.share_of_plain_forwarding
        for result in metrics_of(rows)
        for figure in result.figures
        if figure.column < 3 and result.unit
    ]


def test_a_share_of_plain_forwarding_compares_what_is_alike() -> None:
    nat = figure(700, where={"connections": 7})
    assert beside_a_router(nat, figure(2000)) == [0.5, 0.35]
    for other in (
        figure(2000, limited_by="tester"),
        figure(2000, limited_by="maximum"),
        figure(2000, is_certain=False),
        figure(None, limited_by="gateway"),
        figure(2000, where={"direction": "forward"}),
        figure(2000, where={"frame_size_ipv4": 128}),
        figure(2000, where={"frame_size_ipv4": None, "frame_size_ipv6": 84}),
        figure(2000, where={"loss_tolerance": "1/10000"}),
        figure(2000, where={"frame_timeout_ns": 10**8}),
        figure(2000, where={"foreground_m": 1, "foreground_n": 2}),
        figure(2000, "frame loss", "%"),
    ):
        assert beside_a_router(nat, other)[1] is None, other
    assert beside_a_router(replace(nat, limited_by="tester"), figure(2000)) == [0.5, None]
    for key, value in (("cores", 4), ("endpoints", (1, 2, 3, 5)), ("is_plain_forwarding", False), ("steps", (2, 2))):
        assert beside_a_router(nat, figure(2000), **{key: value})[1] is None, key
    both = figure(700, where={"connections": 7, "frame_size_ipv6": 84})
    assert beside_a_router(both, figure(2000))[1] == 0.35  # a NAT64 and an IPv4 router


def test_what_a_router_does_not_have_is_no_difference_from_it() -> None:
    """One column of a router stands for all numbers of connections of a NAT."""
    nat = [
        ColumnRows(
            number=n, steps=(0, n), cores=1, quantities=(figure(500, where={"connections": n}),), endpoints=PORTS
        )
        for n in (1, 2)
    ]
    router = ColumnRows(
        number=3, steps=(1, 0), cores=1, quantities=(figure(1000),), endpoints=PORTS, is_plain_forwarding=True
    )
    for unvaried, share in ((frozenset[int](), None), (frozenset((1,)), 0.5)):
        rows = [*nat, replace(router, unvaried=unvaried)]
        shares = [each.share_of_plain_forwarding for metric in metrics_of(rows) for each in metric.figures]
        assert [each for each in shares if each is not None] == ([share] * 2 if share else [])


def test_no_share_is_given_where_two_routers_could_be_meant() -> None:
    quantities = [figure(500, where={"connections": 7}), figure(1000), figure(2000)]
    rows = [
        ColumnRows(number=n, steps=(n,), cores=1, quantities=(figure,), endpoints=PORTS, is_plain_forwarding=n > 1)
        for n, figure in enumerate(quantities, start=1)
    ]
    (metric,) = metrics_of(rows)
    assert [figure.share_of_plain_forwarding for figure in metric.figures] == [None] * 3
    (alone,) = metrics_of(rows[:2])
    assert [figure.share_of_plain_forwarding for figure in alone.figures] == [0.5, None]
    assert [figure.ratio_to_previous for figure in alone.figures] == [None, None]  # it is the share


def column(number: int, steps: tuple[int, ...] = (), **parameters: Any) -> SeriesColumn:
    given = {"gateway": "x", "technology": "nat44", "connections": (), "repetitions": 1, **parameters}
    others = {name: given.pop(name, None) for name in Parameters.model_fields if name not in given}
    return SeriesColumn(
        number=number,
        title=f"column {number}",
        folder=f"{number:02}",
        steps=steps or (number - 1,),
        settings={"seed": number},
        campaign_sha256="",
        parameters=Parameters(**given, **others),
        outcome="measured",
        reason=None,
        trials=0,
        invalid_trials=0,
    )


def series(*quantities: Sequence[Quantity]) -> SeriesDocument:
    numbers = range(1, len(quantities) + 1)
    empty = SeriesDocument(
        schema_=1,
        name="s",
        gatemark="0",
        status="incomplete",
        file="s.toml",
        file_sha256="",
        varied=(VariedKeys(keys=("seed",), titles=tuple(f"column {number}" for number in numbers)),),
        columns=tuple(column(number) for number in numbers),
        metrics=(),
    )
    return joined(empty, {}, dict(zip(numbers, quantities, strict=True)))


def cells(document: SeriesDocument) -> dict[str, tuple[str, ...]]:
    (table,) = section(document).tables
    return {row[0]: row[1:] for row in table.rows}


def test_cells_say_what_is_in_the_place_of_a_figure() -> None:
    document = series(
        [figure(1000)],
        [figure(None, limited_by="tester", lower_bound=500)],
        [figure(2000, limited_by="maximum", lower_bound=2000)],
        [figure(3000.4, is_certain=False)],
        [refusal("it forwards nothing.")],
        [],
    )
    rows = cells(document)
    assert rows["Median"] == ("1,000", "Tester-limited", "≥ 2,000", "(3,000)", "not made", "not measured")
    assert rows["Minimum (p1)"][1] == DASH
    assert rows["Sum of both directions, median"] == ("2,000", DASH, "≥ 4,000", "6,000.8", DASH, DASH)
    assert rows["Sum, error"][0] == "200"
    assert rows["seed"] == ("1", "2", "3", "4", "5", "6")
    assert section(document).notes == ("Column 5: throughput not measured: it forwards nothing.",)


def test_average_and_standard_deviation_are_those_of_all_repetitions() -> None:
    """As papers print them beside the median; a bound, a missing or a single value has none."""
    document = series(
        [figure(1000, values=(980, 1000, 1050))],
        [figure(2000, values=(2000, 2000, 2000), limited_by="maximum")],
        [figure(3000, values=(3000, None, 3000))],
        [figure(4000, values=(4000,))],
    )
    rows = cells(document)
    assert rows["Average"] == ("1,010", DASH, DASH, DASH)
    assert rows["Standard deviation"] == ("36", DASH, DASH, DASH)


def test_means_and_times_are_written_as_such() -> None:
    back_to_back = figure(None, "back-to-back frames", "frames", average=12.5, p1=None, p99=None)
    delay = figure(1_500_000, "typical latency", "ns", better="lower")
    rows = cells(series([back_to_back], [back_to_back]))
    assert rows["Mean"] == ("12.5", "12.5")
    assert rows["Mean / previous mean"] == (DASH, "1.00")
    assert "Minimum (p1)" not in rows
    assert cells(series([delay]))["Median"] == ("1.500",)
    assert f"Typical latency, ms, 64 / {DASH} octets" in cells(series([delay]))


def test_many_columns_are_several_tables_on_the_page() -> None:
    document = series(*([figure(number)] for number in range(1, 11)))
    assert [len(table.columns) for table in section(document).tables] == [9, 3]
    assert [len(table.columns) for table in section(document, columns_max=10).tables] == [11]


def test_plots_are_over_numbers_and_bars_without_them() -> None:
    (over_seed,) = plots(series([figure(100)], [figure(90)]))
    assert "Throughput against seed: median" in over_seed.caption
    named = series([figure(100)], [figure(90)])
    changed = tuple(figure.model_copy(update={"settings": {"seed": "abc"[figure.number]}}) for figure in named.columns)
    (bars,) = plots(named.model_copy(update={"columns": changed}))
    assert (
        bars.caption
        == "Throughput: median, whiskers from the 1st to the 99th percentile. A hollow bar is a lower bound."
    )
    assert list(plots(series([figure(100)], []))) == []


def test_more_is_more_connections_or_a_larger_table_and_nothing_else_changed() -> None:
    small, large = column(1, (0, 0), connections=(1000,)), column(2, (0, 1), connections=(2000,))
    assert asks_for_more(large, small)
    assert not asks_for_more(small, large)
    assert not asks_for_more(small, small)
    other = large.model_copy(update={"parameters": large.parameters.model_copy(update={"gateway": "another"})})
    assert not asks_for_more(other, small), "what one gateway does not hold, another may"
    assert not asks_for_more(column(3, (1, 1), connections=(2000,)), small)
    assert not asks_for_more(column(2, (0, 1), connections=(500,)), small)
    assert not asks_for_more(column(2, (0, 1), connections=(1000,)), small)
    assert asks_for_more(column(2, (1,), table_size=2), column(1, (0,), table_size=1))
    assert not asks_for_more(column(2, (1,), cores=2), column(1, (0,), cores=1))

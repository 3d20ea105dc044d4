"""Degradation with the number of flows: how many flows a campaign has, what is compared, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.flows import flow_count
from gatemark.dut.recipe import complete_campaign
from gatemark.report.words import DASH
from gatemark.results.quantity import Better, Quantity, true_range
from gatemark.series.degradation import degradation_plots, degradation_section
from gatemark.series.document import Degradation, Parameters, SeriesColumn, SeriesDocument, VariedKeys
from gatemark.series.join import ColumnRows, joined, metrics_of
from gatemark.stats.series import degradation_error, degradation_percent

ROUTER = ("x", "router44")
SECOND_NS = 1_000_000_000


def figure(value: float | None, name: str = "throughput", unit: str = "frames/s", **fields: Any) -> Quantity:
    where = {"direction": "forward", "frame_size_ipv4": 64, **fields.pop("where", {})}
    whole = {
        "run": 1, "procedure": name, "name": name, "unit": unit, "better": "higher", "coordinates": where,
        "repetitions": 3, "median": value, "p1": value, "p99": value, "resolution": 10, "is_headline": True, **fields,
    }  # fmt: skip
    return Quantity(**whole)


def column(flows: int | None, *quantities: Quantity, steps: tuple[int, ...] = (), **fields: Any) -> ColumnRows:
    whole = {"cores": 1, "gateway": ROUTER, "frames_needed_ns": SECOND_NS, **fields}
    return ColumnRows(number=0, steps=steps, quantities=quantities, flows=flows, **whole)


def degradations(*columns: ColumnRows) -> list[Degradation | None]:
    """The degradation of each figure of the only metric of columns that follow each other."""
    numbered = [
        ColumnRows(**{name: getattr(given, name) for name in ColumnRows.__slots__}
                   | {"number": number, "steps": given.steps or (number,)})
        for number, given in enumerate(columns, 1)
    ]  # fmt: skip
    (metric,) = metrics_of(numbered)
    return [figure.degradation for figure in metric.figures]


class TestFormula:
    def test_by_hand(self) -> None:
        assert degradation_percent(200, 150, higher_is_better=True) == 25
        assert degradation_percent(200, 150, higher_is_better=False) == -25
        assert degradation_percent(200, 500, higher_is_better=False) == 150

    @given(
        st.integers(1, 10**9), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 10**6),
        st.sampled_from(["higher", "lower"]), st.data(),
    )  # fmt: skip
    def test_the_true_degradation_is_within_its_error(
        self, single: int, many: int, single_error: int, many_error: int, better: Better, data: st.DataObject
    ) -> None:
        x1, xn = Fraction(single), Fraction(many)
        ranges = [true_range(value, error, better) for value, error in ((x1, single_error), (xn, many_error))]
        assert all(0 <= low <= high for low, high in ranges)
        error = degradation_error(x1, xn, *ranges)
        assert (error is None) == (ranges[0][0] <= 0)
        if error is not None:
            true_single, true_many = (data.draw(st.integers(int(low), int(high))) for low, high in ranges)
            shown = degradation_percent(x1, xn, higher_is_better=better == "higher")
            true = degradation_percent(true_single, true_many, higher_is_better=better == "higher")
            assert abs(true - shown) <= error

    def test_nothing_is_compared_with_zero(self) -> None:
        with pytest.raises(ValueError, match="above 0"):
            degradation_percent(0, 1, higher_is_better=False)


class TestWhatIsCompared:
    def test_each_number_of_flows_with_one(self) -> None:
        none, few, many = degradations(column(1, figure(1000)), column(10, figure(900)), column(100, figure(500)))
        assert none is None
        assert few is not None and (few.flows, few.single_column, few.percent) == (10, 1, 10.0)
        assert many is not None and (many.flows, many.percent, many.reason) == (100, 50.0, None)
        assert many.error_points == pytest.approx(float(Fraction(10, 1000) * 100))

    def test_lower_is_better(self) -> None:
        latency = [figure(value, "typical latency", "ns", better="lower", resolution=None) for value in (100, 250)]
        (_, many) = degradations(column(1, latency[0]), column(5, latency[1]))
        assert many is not None and (many.percent, many.error_points) == (150.0, None)

    @pytest.mark.parametrize(
        ("single", "many", "words"),
        [
            ({"limited_by": "maximum"}, {}, "with 1 flow it is only a lower bound"),
            ({}, {"limited_by": "maximum"}, "with 7 flows it is only a lower bound"),
            ({}, {"limited_by": "tester"}, "with 7 flows the Tester limited it"),
            ({}, {"limited_by": "host"}, "with 7 flows the gateway's host was not quiet"),
            ({}, {"is_certain": False}, "with 7 flows it is not certain or not measured"),
            ({}, {"median": None}, "with 7 flows it is not certain or not measured"),
            ({"median": 0}, {}, "the figure with 1 flow is not above 0"),
            ({}, {"median": -1}, "the figure with 7 flows is below 0"),
            ({}, {"median": 6}, "a trial has fewer frames than the 7 flows"),
        ],
    )
    def test_a_bound_gives_none(self, single: dict[str, Any], many: dict[str, Any], words: str) -> None:
        (_, second) = degradations(column(1, figure(1000, **single)), column(7, figure(1000, **many)))
        assert second is not None and second.percent is None and second.error_points is None
        assert second.reason == words

    def test_connections_need_no_frame_in_each_trial(self) -> None:
        rows = [column(flows, figure(6, where={"connections": flows}), frames_needed_ns=None) for flows in (1, 7)]
        (_, second) = degradations(*rows)
        assert second is not None and second.percent == 0.0

    @pytest.mark.parametrize(
        "other",
        [{"gateway": ("y", "router44")}, {"cores": 2}, {"flows": 1}, {"flows": None}],
        ids=["gateway", "cores", "as many flows", "flows not known"],
    )
    def test_what_differs_in_more_is_not_compared(self, other: dict[str, Any]) -> None:
        fields = {"flows": 7, **other}
        rows = degradations(column(1, figure(1000)), column(fields.pop("flows"), figure(500), **fields))
        assert rows == [None, None]

    def test_what_is_neither_better_nor_worse_has_none(self) -> None:
        assert degradations(column(1, figure(5, better=None)), column(7, figure(6, better=None))) == [None, None]

    def test_two_parts_are_compared_each_within_itself(self) -> None:
        steps = [(0, 0), (0, 1), (1, 0), (1, 1)]
        rows = [
            column(flows, figure(value), steps=at)
            for flows, value, at in zip((1, 7, 1, 7), (1000, 900, 500, 250), steps, strict=True)
        ]
        given = degradations(*rows)
        assert [None if it is None else (it.single_column, it.percent) for it in given] == [
            None, (1, 10.0), None, (3, 50.0),
        ]  # fmt: skip


def series(flows: Sequence[int], *quantities: Sequence[Quantity]) -> SeriesDocument:
    empty = dict.fromkeys(Parameters.model_fields)
    columns = tuple(
        SeriesColumn(
            number=number, title=f"{count} flows", folder=f"{number}", steps=(number - 1,), settings={},
            campaign_sha256="", outcome="measured", reason=None, trials=0, invalid_trials=0,
            parameters=Parameters(**{**empty, "gateway": "x", "technology": "router44", "connections": (),
                                     "repetitions": 3, "flows": count, "duration_ns": SECOND_NS}),
        )
        for number, count in enumerate(flows, 1)
    )  # fmt: skip
    whole = SeriesDocument(
        schema_=1, name="s", gatemark="0", status="complete", file="s.toml", file_sha256="",
        varied=(VariedKeys(keys=("seed",), titles=tuple(column.title for column in columns)),),
        columns=columns, metrics=(),
    )  # fmt: skip
    return joined(whole, {}, dict(enumerate(quantities, 1)))


def rates(*values: int) -> list[Quantity]:
    """Throughputs of two frame sizes; of the second, half of the first."""
    sizes = {64: 1, 512: 2}
    return [figure(value // part, where={"frame_size_ipv4": size}) for value in values for size, part in sizes.items()]


class TestTables:
    def test_a_benchmark_has_a_column_for_each_frame_size(self) -> None:
        section = degradation_section(series((1, 4, 8), rates(1000), rates(900), rates(500)))
        assert section is not None
        (table,) = section.tables
        assert table.title == "Degradation: throughput, frames/s in one direction, forward"
        assert [column.heading for column in table.columns] == ["flows", f"64 / {DASH} octets", f"512 / {DASH} octets"]
        assert table.rows == (
            ("1 flow", "1,000", "500"),
            ("4 flows", "900", "450"),
            ("Xpd", "10.00 %\n± 1.00", "10.00 %\n± 2.00"),
            ("8 flows", "500", "250"),
            ("Xpd", "50.00 %\n± 1.00", "50.00 %\n± 2.00"),
        )
        assert table.strong_rows == {2, 4}

    def test_values_of_a_benchmark_are_columns_and_the_frame_rate_is_stated(self) -> None:
        def delays(load: int, least: int, most: int) -> list[Quantity]:
            return [
                figure(value, name, "ns", procedure="delay", better=better, resolution=None,
                       where={"load_frames_per_second": load})
                for name, value, better in (
                    ("IPDV minimum", least, "higher"), ("IPDV median", 1, None), ("IPDV maximum", most, "lower"),
                    ("PDV", most, "lower"),
                )
            ]  # fmt: skip

        section = degradation_section(series((1, 4), delays(2000, -50, 100), delays(1000, -60, 300)))
        assert section is not None
        variation, pdv = section.tables
        assert [column.heading for column in variation.columns[1:]] == [
            f"64 / {DASH} octets\nminimum", f"64 / {DASH} octets\nmaximum",
        ]  # fmt: skip
        assert {row[0]: row[1:] for row in variation.rows} == {
            "1 flow": ("\N{MINUS SIGN}0.050", "0.100"),
            "1 flow: frame rate, frames/s": ("2,000", "2,000"),
            "4 flows": ("\N{MINUS SIGN}0.060", "0.300"),
            "4 flows: frame rate, frames/s": ("1,000", "1,000"),
            "Xpd": ("none", "200.00 %"),
        }
        assert variation.notes == (f"No Xpd of 64 / {DASH} octets minimum: the figure with 1 flow is not above 0.",)
        assert pdv.title.startswith("Degradation: PDV, ")

    def test_all_figures_of_a_table_are_in_the_unit_that_it_names(self) -> None:
        def delays(load: int, *times: int) -> list[Quantity]:
            return [
                figure(time, f"delay {place}", "ns", procedure="delay", better="lower", resolution=None,
                       where={"load_frames_per_second": load})
                for place, time in enumerate(times)
            ]  # fmt: skip

        section = degradation_section(series((1, 4), delays(10, 20_000, 1_054_000), delays(10, 40_000, 900_000)))
        assert section is not None
        (table,) = section.tables
        assert table.title.startswith("Degradation: delay, ms")
        assert (table.rows[0], table.rows[2]) == (("1 flow", "0.02000", "1.054"), ("4 flows", "0.04000", "0.9000"))

    def test_a_bound_looks_like_none(self) -> None:
        bound = [figure(1000, limited_by="maximum", lower_bound=1000)]
        section = degradation_section(series((1, 4), bound, [figure(500)]))
        assert section is not None
        (table,) = section.tables
        assert table.rows == (("1 flow", "≥ 1,000"), ("4 flows", "500"), ("Xpd", "none"))
        assert table.notes == (f"No Xpd of 64 / {DASH} octets: with 1 flow it is only a lower bound.",)

    def test_series_over_anything_else_have_no_section(self) -> None:
        assert degradation_section(series((4, 8), rates(1000), rates(900))) is None

    def test_a_plot_needs_two_numbers_of_flows(self) -> None:
        (drawn,) = degradation_plots(series((1, 4, 8), rates(1000), rates(900), rates(500)))
        assert "Xpd of throughput" in drawn.caption
        assert list(degradation_plots(series((1, 4), rates(1000), rates(900)))) == []


HOSTS = {
    "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}, "port": "af_packet:a"},
    "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}, "port": "af_packet:b"},
}


def router(**traffic: Any) -> int | None:
    document = {
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "ports"},
        **HOSTS,
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}, "direction": "forward", **traffic},
        "throughput": {"maximum": 1000},
    }
    return flow_count(complete_campaign(campaign_from_dict(document)))


class TestFlowsOfACampaign:
    def test_what_is_drawn_is_drawn_on_its_own(self) -> None:
        ports = {"source_ports": {"range": "1-10"}, "destination_ports": {"range": "1-7"}}
        assert router(**ports) == 70
        assert router(**ports, destination_networks=4) == 280
        assert router(**ports, direction="bidirectional") == 70

    def test_what_is_taken_in_turn_follows_the_frame(self) -> None:
        turn = {"mode": "increasing", "range": "1-10"}
        assert router(source_ports=turn, destination_ports={"mode": "decreasing", "range": "1-4"}) == 20
        assert router(source_ports=turn, destination_ports={"mode": "fixed", "range": "9"}) == 10
        assert (
            router(source_ports={"mode": "fixed", "range": "5"}, destination_ports={"mode": "fixed", "range": "9"}) == 1
        )

    def test_directions_that_differ_have_no_number(self) -> None:
        fixed = {"mode": "fixed", "range": "9"}
        assert (
            router(direction="bidirectional", destination_ports=fixed, source_ports=fixed,
                   reverse={"source_ports": {"range": "1-2"}})
            is None
        )  # fmt: skip

    def test_connections_and_customer_edges_are_flows(self) -> None:
        nat = {
            "testbed": {"kind": "netns", "recipe": "nft-nat44"},
            "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
            "gateway": {"technology": "nat44", "table": {"udp_timeout": "100s"}},
            "throughput": {"maximum": 1000},
        }
        assert (
            flow_count(complete_campaign(campaign_from_dict({**nat, "connections": {"count": 4000, "rate": "1k"}})))
            == 4000
        )
        assert (
            flow_count(complete_campaign(campaign_from_dict({**nat, "connections": {"count": [1, 4], "rate": "1k"}})))
            is None
        )


def test_figures_are_published() -> None:
    document = series((1, 4), rates(1000), rates(900))
    again = SeriesDocument.model_validate_json(document.to_text())
    assert again == document
    assert again.metrics[0].figures[1].degradation is not None

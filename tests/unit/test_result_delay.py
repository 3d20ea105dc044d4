"""result.json and result.csv of delays, bursts, recovery and reset: from the results of runs to published figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hdrh.histogram import HdrHistogram
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment
from tests.unit.delay_documents import (
    CLOCK,
    both,
    bursts,
    delay_run,
    everything,
    hump,
    point,
    recovery,
    recovery_series,
    reset,
    reset_series,
    self_test,
    series,
    stateless,
)

from gatemark.errors import ResultError
from gatemark.procedures.delay.plots import decoded
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.delay.run import coarse
from gatemark.procedures.registry import PublishedDocument
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import port_fact
from gatemark.results.quantity import to_csv
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.stats.percentiles import DELAY_FIGURES
from gatemark.stored import part_of, self_test_of

pytestmark = pytest.mark.usefixtures("plots_not_rendered")


def rows_of(result_document: ResultDocument) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(result_document.rows()))))


def test_a_delay_says_whether_frames_were_sent_in_its_direction_alone() -> None:
    forward = [way for way in both(100_000) if way.direction == "forward"]
    ways = [("bidirectional", both(100_000)), ("forward", forward)]
    runs = [
        delay_run([point(1000, of_run)], number=number, direction=direction)
        for number, (direction, of_run) in enumerate(ways, start=1)
    ]
    rows = [row for row in rows_of(stateless(runs)) if row["quantity"] == "typical latency"]
    assert [(row["run"], row["direction"], row["offered"]) for row in rows] == [
        ("1", "forward", ""), ("1", "reverse", ""), ("2", "forward", "one way"),
    ]  # fmt: skip


def test_a_document_of_everything_meets_its_schema_and_comes_back() -> None:
    published, _ = everything()
    data = json.loads(published.to_text())
    jsonschema.validate(data, PublishedDocument.model_json_schema(mode="serialization"))
    again = PublishedDocument.model_validate(data)
    assert again.runs == published.runs
    assert again.to_text() == published.to_text()


def test_a_figure_that_one_repetition_lacks_has_no_summary() -> None:
    part = series(latency={"worst_case_ns": (1, None, 3), "tags_lost": (0, 51, 0)})
    assert part.latency is not None
    assert part.latency.worst_case_ns.values == (1, None, 3)
    assert part.latency.worst_case_ns.summary is None
    assert part.latency.worst_case_ns.missing == 1
    assert part.latency.typical_ns.summary is not None
    assert part.latency.tags_lost == (0, 51, 0)
    assert part.latency.first_tag_ns == 60 * 10**9


def test_nothing_came_back() -> None:
    nothing = (None,) * 3
    empty = series(
        delay_ns=dict.fromkeys(DELAY_FIGURES, nothing), pdv_ns=nothing,
        latency={"typical_ns": nothing, "worst_case_ns": nothing},
        ipdv={"minimum_ns": nothing, "median_ns": nothing, "maximum_ns": nothing, "histogram": ()},
        samples=(0,) * 3, undelivered=(1_000_000,) * 3, hdr="",
    )  # fmt: skip
    assert empty.delay_ns["minimum"].summary is None
    assert empty.pdv is not None
    assert empty.pdv.p999_offered_ns.summary is None
    rows = rows_of(stateless([delay_run([point(1000, [empty])], direction="forward")]))
    assert {row["median"] for row in rows} == {""}
    assert {row["values"] for row in rows} == {"- - -"}


def test_wide_buckets_keep_counts_and_signs() -> None:
    fine = [(-1000, 1), (-999, 2), (-1, 3), (0, 4), (1, 5), (1000, 6), (1003, 7), (10_000, 8)]
    wide = coarse(fine)
    assert sum(count for _, count in wide) == sum(count for _, count in fine)
    assert sum(count for ns, count in wide if ns < 0) == 6
    assert dict(wide)[0] == 4
    assert [ns for ns, _ in wide] == sorted(ns for ns, _ in wide)
    assert len(wide) < len(fine)
    for ns, _ in fine:
        assert min(abs(ns - middle) for middle, _ in wide) <= abs(ns) * 0.05


def test_the_hdr_string_is_what_hdrhistogram_reads() -> None:
    histogram = hump(22_900, 1_000_000)
    hdr = series(22_900, frames=1_000_000).hdr
    total = sum(count for _, count in histogram)
    assert HdrHistogram.decode(hdr).total_count == total
    assert sum(count for _, count in decoded(hdr)) == total
    for (ns, count), (shown, shown_count) in zip(histogram, decoded(hdr), strict=True):
        assert count == shown_count
        assert abs(ns - shown) <= ns // 1000 + 1


def test_every_figure_of_delays_has_a_row() -> None:
    points = [point(400_000, both(22_900), share=Fraction(1)), point(900_000, [], repetitions=0, tester_limited=3)]
    rows = rows_of(stateless([delay_run(points)]))
    forward = [row for row in rows if row["direction"] == "forward"]
    assert len(forward) == 2 + 1 + 3 + 8
    assert len({row["quantity"] for row in forward}) == len(forward)
    assert {row["unit"] for row in rows} == {"ns"}
    typical = next(row for row in forward if row["quantity"] == "typical latency")
    assert (typical["median"], typical["p1"], typical["p99"], typical["repetitions"]) == (
        "23129",
        "22900",
        "23358",
        "3",
    )
    assert [row["tester_limited_at"] for row in rows if row["limited_by"] == "tester"] == ["900000"]


def test_events_have_averages_and_refusals_their_reason() -> None:
    runs = [
        bursts(40_120, 41_000, 39_888, number=1),
        recovery(recovery_series((98_000_000, 102_000_000)), number=2),
        reset(reset_series((141_000, 139_000)), number=3),
        reset(number=4, refused="the gateway has no action reset"),
    ]
    rows = rows_of(stateless(runs))
    assert [(row["run"], row["average"]) for row in rows] == [
        ("1", "40336"), ("1", rows[1]["average"]), ("1", rows[2]["average"]), ("2", "100000000"), ("3", "1400000000"),
        ("3", ""), ("4", ""),
    ]  # fmt: skip
    assert float(rows[1]["average"]) == pytest.approx(40_336 / 148_809 * 1e9)
    assert float(rows[2]["average"]) == pytest.approx(40_336 / 148_809 * (1 - 100_000 / 148_809) * 1e9)
    assert rows[6]["refused"] == "the gateway has no action reset"


def test_a_self_test_in_the_folder_is_read_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    folder = ResultFolder(path=tmp_path)
    assert self_test_of(folder) is None
    stored = self_test().model_dump(mode="json") | {"selftest": 2, "quick": False}
    for entry in stored["entries"]:
        entry["limited"] = "a burst was sent late"
    folder.write_json("selftest.json", stored)
    assert self_test_of(folder) == self_test()
    folder.write_json("selftest.json", {"machine": "x"})
    with pytest.raises(ResultError, match=r"selftest\.json is damaged"):
        self_test_of(folder)


def test_a_port_that_says_nothing_of_time_stamps_is_recorded() -> None:
    port = {
        "port": "ring", "driver": "net_ring", "mac": "02:00:00:00:00:01", "numa_node": 0, "link_up": True,
        "link_mbps": 0, "mtu": 1500,
    }  # fmt: skip
    assert port_fact(port).timestamps is None
    assert port_fact({**port, "timestamps": "hardware"}).timestamps == "hardware"
    assert CLOCK.timestamps == "software"


def test_a_measured_campaign_shows_its_delays(write_campaign: Callable[..., Path], tmp_path: Path) -> None:
    extra = '[delay]\nload = ["100%", "10%"]\nduration = "3s"\nfirst_tag = "1s"\ntags = 500\n'
    file = write_campaign(repetitions=2, extra=extra)
    device = SimulatedDevice(capacity_forward=412_345, delays_ns=(40_000, 50_000, 60_000, 250_000))
    result = measure(file, output=tmp_path / "out", equipment=simulated_equipment(device))
    run = next(run for run in result.runs if isinstance(run, DelayResult))
    assert [point.share for point in run.points] == [1, Fraction(1, 10)]
    assert {one_series.direction for one_series in run.points[0].series} == {"forward", "reverse"}
    first = run.points[0].series[0]
    assert first.latency is not None
    assert first.latency.typical_ns.summary is not None
    assert first.latency.typical_ns.summary.median == pytest.approx(55_000, rel=0.15)
    longest = first.delay_ns["maximum"].summary
    assert longest is not None
    assert longest.median == 250_000
    assert result.document.clock is not None
    assert result.document.clock.timestamps == "software"
    page = result.report_file.read_text(encoding="utf-8")
    assert "Latency (RFC 8219 section 7.2)" in page
    assert 'aria-label="histogram of delays"' in page
    assert part_of(ResultFolder.open(result.folder)).document == result.document

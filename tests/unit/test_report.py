"""The report says what was measured and nothing else, in one file that needs nothing from elsewhere."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment
from tests.trial_facts import blank

from gatemark.procedures.frame_loss.result import FrameLossResult, worst_loss
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.report import words
from gatemark.report.plots import lateness_plot, overview_plot, plot_against
from gatemark.report.summary import print_result
from gatemark.report.trial_plots import search_plot
from gatemark.report.trial_table import trial_section
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.stored import CampaignResult, part_of, rebuild_report, report_of, sections_of
from gatemark.trial.host import HostFacts

WriteCampaign = Callable[..., Path]
DEVICE = SimulatedDevice(capacity_forward=412_345, noise=0.01, hiccup_every=9)


class TextOf(HTMLParser):
    """Collects the words of a page, and every address that it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.loaded: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("style", "script")
        self.loaded += [f"{tag} {name}={value}" for name, value in attrs if name == "src" or tag == "link"]
        self.loaded += [
            f"{tag} {value}" for name, value in attrs if name == "href" and value and not value.startswith("#")
        ]

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.words.append(data)


@dataclass
class Shown:
    """A result with its page and its terminal text."""

    result: CampaignResult
    words: str
    page: str
    terminal: str


def show(result: CampaignResult) -> Shown:
    page = result.report_file.read_text(encoding="utf-8")
    parser = TextOf()
    parser.feed(page)
    assert parser.loaded == []
    assert "<script" not in page
    assert "url(http" not in page
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_result([(result.document, sections_of(result.document))], report="report.html", console=console)
    console.file.close()
    return Shown(
        result=result, words=" ".join(" ".join(parser.words).split()), page=page, terminal=console.export_text()
    )


@pytest.fixture(scope="module")
def shown_before() -> dict[str, Shown]:
    """By device and campaign: many tests look at the same."""
    return {}


@pytest.fixture
def shown(write_campaign: WriteCampaign, tmp_path: Path, shown_before: dict[str, Shown]) -> Callable[..., Shown]:
    def make(device: SimulatedDevice, **campaign: object) -> Shown:
        key = repr((device, campaign))
        if key not in shown_before:
            file, used = write_campaign(**campaign), simulated_equipment(device)
            shown_before[key] = show(measure(file, output=tmp_path / "out", equipment=used))
        return shown_before[key]

    return make


def test_a_gateway_limit_is_told_with_everything_that_rfc_2544_asks(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, octets="[64, 1024]", repetitions=2, extra='[line]\nrate = "10G"\n')
    first = report_of(part_of(ResultFolder.open(page.result.folder))).sentences[0]
    for part in (
        "per direction, bidirectional",
        "sum of both directions",
        "64-octet IPv4 / 84-octet IPv6",
        "UDP",
        "theoretical maximum 12,019,230 frames/s",
        "RFC 5180 appendix A.1",
        "loss tolerance 0 %",
        "median of 2 repetitions",
        "Limited by the gateway",
    ):
        assert part in first
        assert part in page.words
    assert "1024 / 1044" in page.terminal
    assert "gateway" in page.terminal
    assert "report.html" in page.terminal
    assert "theoretical maximum" in page.page


def test_a_maximum_of_a_mix_is_told_with_both_sizes(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, recipe="linux-router4", mix='"9/10"', extra='[line]\nrate = "10G"\n')
    assert "theoretical maximum 14,534,883 frames/s per direction (64 and 84 octets at 10 Gbit/s" in page.words
    assert "Dashed: theoretical maximum" in page.words


def test_no_maximum_is_drawn_where_frames_of_one_size_have_several(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, recipe="linux-router4", mix='"9/10", "1/10"', extra='[line]\nrate = "10G"\n')
    assert "No line of the theoretical maximum is drawn: frames of one size have several, see the table." in page.words
    assert "Dashed" not in page.words


def test_invalid_trials_are_neither_passed_nor_failed(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE)
    validity = page.result.document.validity
    assert validity.invalid > 0
    assert validity.valid + validity.invalid == validity.trials
    assert page.words.count("△ invalid") == validity.invalid
    assert page.words.count("● passed") + page.words.count("✕ failed") == validity.valid
    assert "neither a pass nor a fail" in page.words
    assert f"{validity.invalid} of {validity.trials} trials invalid" in page.terminal


def test_below_a_failed_trial_stands_what_the_host_counted(shown: Callable[..., Shown]) -> None:
    part = part_of(ResultFolder.open(shown(DEVICE).result.folder))
    host = blank(HostFacts, counters={"conntrack.drop": 1204})
    (table,) = trial_section(replace(part, trials=tuple(replace(row, host=host) for row in part.trials))).tables
    remarks = [" ".join(map(str, table.rows[place])) for place in table.remark_rows]
    assert len(remarks) == sum(bool(row.reasons) for row in part.trials) < len(part.trials)
    assert all("the gateway's host counted meanwhile: connections: packets dropped" in remark for remark in remarks)


def test_a_tester_limit_is_no_throughput(shown: Callable[..., Shown]) -> None:
    page = shown(SimulatedDevice(capacity_forward=800_000, tester_limit=300_000))
    run = page.result.runs[0]
    assert run.limited_by == "tester"
    assert isinstance(run, ThroughputResult)
    assert run.rate_per_direction is None
    assert run.lower_bound is not None
    limit = f"Tester-limited at {run.tester_limited_at:,} (gateway ≥ {run.lower_bound:,})"
    assert limit in page.words
    assert "not measured" in page.terminal
    assert "Throughput against frame size" not in page.words
    assert not re.search(r"Throughput: [\d≥]", page.words)


def test_a_gateway_that_passes_nothing_has_no_rate(shown: Callable[..., Shown]) -> None:
    page = shown(SimulatedDevice(capacity_forward=800_000, faults={"hop_limit": 3}))
    run = page.result.runs[0]
    assert isinstance(run, ThroughputResult) and run.rate_per_direction is None
    assert "no load from 1,000 frames/s up passed" in page.words
    assert "nothing passed" in page.terminal
    assert "hop_limit" in page.words


def test_the_chosen_maximum_is_told_as_at_least(shown: Callable[..., Shown]) -> None:
    page = shown(SimulatedDevice(capacity_forward=5_000_000))
    assert page.result.runs[0].limited_by == "maximum"
    assert "at least 1,000,000 frames/s" in page.words
    assert "≥ 1,000,000" in page.terminal


def test_a_rate_and_a_lower_bound_have_no_median(shown: Callable[..., Shown]) -> None:
    page = shown(SimulatedDevice(capacity_forward=5_000_000))
    whole, run = page.result.document, page.result.runs[0]
    assert isinstance(run, ThroughputResult)
    measured = run.repetitions[0]
    fell = replace(measured, kind="found", lower_bound=998_000, upper_bound=999_000)
    mixed = run.model_copy(update={"repetitions": (measured, fell)})
    assert (mixed.rate_per_direction, mixed.rate_sum_of_directions) == (None, None)
    (rate,) = mixed.quantities()
    assert (rate.median, rate.p1, rate.p99, rate.lower_bound) == (None, None, None, 998_000)
    assert words.rate_cell(rate) == "≥ 998,000"
    assert words.limit_text(rate) == "the chosen maximum in some repetitions; the gateway may do more"
    part = replace(part_of(ResultFolder.open(page.result.folder)), document=whole.model_copy(update={"runs": (mixed,)}))
    (said,) = report_of(part).sentences
    assert said.startswith("Throughput: ≥ 998,000 frames/s per direction, bidirectional;")
    assert said.endswith("Some repetitions ended at the chosen maximum.")


def test_a_tolerated_loss_is_not_called_throughput(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, tolerance="0.01%")
    assert "not RFC 2544 throughput" in page.words
    assert "loss tolerance 0.01 %" in page.words
    assert "No compliance with RFC 2544 is claimed" in page.words
    assert "Rate with loss tolerated, frames/s in one direction" in page.terminal
    assert "0.01 %" in page.terminal
    assert "hroughput" not in page.terminal


def test_frame_loss_is_told_per_load_direction_and_class(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, frame_loss=True, mix='"9/10"')
    loss = page.result.runs[1]
    assert isinstance(loss, FrameLossResult)
    assert [point.frames_per_second for point in loss.points] == [900_000, 700_000, 500_000, 300_000, 100_000]
    kinds = {(part.direction, part.class_) for part in loss.points[0].losses}
    assert len(kinds) == 4
    assert worst_loss(loss.points[-1].losses) == 0
    assert worst_loss(loss.points[0].losses) == pytest.approx(54, abs=2)
    assert "Frame loss: median up to" in page.words
    assert "forward, background" in page.words
    with (page.result.folder / "result.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1 + 5 * 4
    assert {row["class"] for row in rows} == {"", "foreground", "background"}


def test_the_report_is_a_pure_function_of_the_folder(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE)
    rebuild_report(page.result.folder)
    assert page.result.report_file.read_text(encoding="utf-8") == page.page


def test_campaigns_in_one_folder_share_a_report(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    for name in ("linux-router4", "tayga-siit64"):
        measure(write_campaign(recipe=name), output=tmp_path / "all" / name, equipment=simulated_equipment(DEVICE))
    results, page = rebuild_report(tmp_path / "all")
    assert [result.document.name for result in results] == ["linux-router4", "tayga-siit64"]
    text = page.read_text(encoding="utf-8")
    assert "All gateways" in text
    assert 'href="#part2"' in text


def test_the_campaign_file_is_text_and_not_markup(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE, extra='# <script>alert("x")</script>\n')
    assert "&lt;script&gt;" in page.page


def test_plots_are_deterministic_and_name_what_they_show(shown: Callable[..., Shown]) -> None:
    page = shown(DEVICE)
    trials = part_of(ResultFolder.open(page.result.folder)).trials
    drawn = search_plot(trials, unit="frames/s")
    assert drawn is not None
    again = search_plot(trials, unit="frames/s")
    assert again is not None and again.svg == drawn.svg
    assert drawn.svg.startswith('<svg role="img" aria-label="search path"')
    assert "invalid (neither)" in drawn.svg
    assert search_plot([], unit="frames/s") is None
    assert plot_against([], "frame_size", name="nothing", places_min=1) is None
    assert overview_plot([], name="nothing") is None
    assert lateness_plot([(1000, 0)], str) is None


@pytest.mark.parametrize(
    ("value", "text"), [(None, "\u2013"), (1234, "1,234"), (1234.5, "1,234.5"), (1e6, "1,000,000"), (0, "0")]
)
def test_counts_in_words(value: float | None, text: str) -> None:
    assert words.format_count(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, "0 %"), (0.001, "0.001 %"), (12.345, "12.35 %"), (None, "\u2013")])
def test_percentages_in_words(value: float | None, text: str) -> None:
    assert words.format_percent(value) in (text, text.replace("12.35", "12.34"))


@pytest.mark.parametrize("width", [80, 139, 140, 200])
def test_no_figure_is_cut_at_any_width(shown: Callable[..., Shown], width: int) -> None:
    page = shown(DEVICE, octets="[1024]")
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_result([(page.result.document, sections_of(page.result.document))], report=None, console=console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    run = page.result.runs[0]
    assert isinstance(run, ThroughputResult)
    rate = run.rate_per_direction
    assert rate is not None
    for part in (
        "1024 / 1044",
        f"{rate.p1:,} \u2013 {rate.p99:,}",
        f"{run.lower_bound:,} / {run.upper_bound:,}",
        "gateway",
    ):
        assert part in text
    assert "…" not in text

"""Reports of delays, bursts, recovery and reset: every figure with its unit and the Tester's own error beside it."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from tests.unit.delay_documents import (
    CLOCK,
    US,
    both,
    bursts,
    delay_run,
    everything,
    point,
    recovery,
    recovery_series,
    reset,
    reset_series,
    self_test,
    series,
    sized,
    stateless,
    trial,
)
from tests.unit.stateful_documents import Columns, Words, page_of, part_of, run, sentence, terminal_of

from gatemark.procedures.delay import plots as delay_plots
from gatemark.procedures.delay import report as delay_report
from gatemark.report import trial_plots, words
from gatemark.report.headline import Headline, headlines
from gatemark.report.self_error import ceiling_cell
from gatemark.report.table import Section, Table
from gatemark.results.ceiling import bounded
from gatemark.results.document import ResultDocument
from gatemark.results.run import Mix
from gatemark.search.burst import BurstKind
from gatemark.stored import sections_of
from gatemark.technology import Family

MS = 1000 * US


def table(result_document: ResultDocument, title: str) -> Table:
    return next(
        table for section in sections_of(result_document) for table in section.tables if table.title.startswith(title)
    )


def delay_section(document: ResultDocument) -> Section:
    return next(section for section in sections_of(document) if section.title == "Delays")


def headline(document: ResultDocument) -> Headline:
    (shown,) = headlines(document)
    return shown


def cell(table: Table, heading: str, row: int = 0) -> str:
    place = next(number for number, column in enumerate(table.columns) if column.heading.startswith(heading))
    return table.rows[row][place]


@pytest.mark.parametrize(
    ("ns", "unit_ns", "text"),
    [
        (22_900, MS, "0.02290"),
        (22_900, US, "22.90"),
        (312, US, "0.312"),
        (7, MS, "0.000007"),
        (1_234_567, MS, "1.235"),
        (1_234_567_890, MS, "1,235"),
        (20_315, US, "20.32"),
        (20_315, MS, "0.02032"),
        (0, US, "0"),
        (-312, US, "\u22120.312"),
        (None, US, "\u2013"),
    ],
)
def test_times_have_four_figures_and_never_more_than_the_clock(ns: int | None, unit_ns: int, text: str) -> None:
    assert words.format_in(ns, unit_ns) == text


@pytest.mark.parametrize(("longest_ns", "unit"), [(999_999, "µs"), (1_000_000, "ms"), (-2_000_000, "ms"), (0, "µs")])
def test_the_unit_is_that_of_the_longest_time(longest_ns: int, unit: str) -> None:
    assert words.unit_of_times([12, None, longest_ns])[0] == unit


def test_latency_has_all_its_columns() -> None:
    document_ = stateless([delay_run([point(400_000, both(22_900), share=Fraction(1))])], self_test=self_test())
    latency = table(document_, "Latency")
    assert cell(latency, "IPv4 / IPv6") == "64 / 84"
    assert cell(latency, "load") == "400,000\n100 %"
    assert [row[2] for row in latency.rows] == ["forward", "reverse"]
    assert cell(latency, "typical, µs").startswith("23.13\n22.90 \u2013 23.36\n1.98 %")
    assert cell(latency, "worst case, µs").startswith("150.3\n148.8 \u2013 151.8")
    assert cell(latency, "tags lost") == "0\nof 150,000"
    assert cell(latency, "repe-") == "3"
    assert cell(latency, "self-latency, µs") == "14.00 / 24.00\nat 500,000/s"
    assert cell(latency, "Tester late") == "41 µs"
    for text in (Words(page_of(document_)).text, terminal_of(document_)):
        assert "23.13" in text
        assert "150.3" in text
        assert "14.00 / 24.00" in text


def test_a_lost_worst_case_is_named_and_not_left_out() -> None:
    lossy = series(
        latency={"worst_case_ns": (None, 990_000, None), "tags_lost": (51, 7, 400)}, pdv_ns=(None, 800_000, None),
        undelivered=(1200, 300, 9000), samples=(998_800, 999_700, 991_000),
    )  # fmt: skip
    document_ = stateless([delay_run([point(400_000, [lossy])], direction="forward")])
    assert cell(table(document_, "Latency"), "worst case") == (
        "not measurable in 2 of 3 repetitions: up to 400 of 50,000 tags lost"
    )
    pdv = table(document_, "Packet delay variation")
    assert cell(pdv, "PDV") == "not measurable in 2 of 3 repetitions: 10,500 of 3,000,000 frames without a delay"
    assert cell(pdv, "D 99.9 %") == "not measurable"
    assert cell(pdv, "frames\nundelivered") == "10,500\nof 3,000,000"
    assert "worst case latency not measurable forward (458 tags lost)" in sentence(document_)
    assert "not measurable in 2 of 3 repetitions" in Words(page_of(document_)).text


def test_a_single_repetition_says_how_many_tags_were_lost() -> None:
    lossy = series(repetitions=1, latency={"worst_case_ns": (None,), "tags_lost": (51,)})
    document_ = stateless([delay_run([point(400_000, [lossy], repetitions=1)], direction="forward")])
    assert cell(table(document_, "Latency"), "worst case") == "not measurable: 51 of 50,000 tags lost"


def test_delays_below_zero_are_counted_and_named() -> None:
    odd = series(negative=(3, 0, 0))
    document_ = stateless([delay_run([point(400_000, [odd])], direction="forward")])
    assert cell(table(document_, "Packet delay variation"), "negative") == "3"
    section = delay_section(document_)
    notes = " ".join(section.notes)
    assert "of 3,000,000 frames 3 arrived, by the clock, before they were sent." in notes
    assert "3 arrived, by the clock, before they were sent" in Words(page_of(document_)).text


def test_without_a_self_test_the_report_says_how_to_make_one() -> None:
    document_ = stateless([delay_run([point(400_000, both(22_900))])])
    for text in (Words(page_of(document_)).text, terminal_of(document_, width=400)):
        assert "The Tester's own part of these delays was not measured: to measure it, run gatemark selftest" in text
        assert "The resolution of the Tester's clock was not recorded." in text
        assert "self-latency," not in text


def test_the_clock_is_told_beside_the_delays() -> None:
    document_ = stateless([delay_run([point(400_000, both(22_900))])], clock=CLOCK, self_test=self_test())
    text = Words(page_of(document_)).text
    assert "steps of 1.2 ns, and a reading takes 11.4 ns" in text
    assert "2026-11-21, netns-af_packet ports" in text


@pytest.mark.parametrize(
    ("stamps", "part"),
    [
        ("software", "B just after the poll that returned the frame"),
        ("hardware", "B by the port when the frame arrived"),
        ("mixed", "or just after the poll that returned it where the port cannot"),
    ],
)
def test_what_a_delay_means_is_stated(stamps: str, part: str) -> None:
    clock = CLOCK.model_copy(update={"timestamps": stamps})
    document_ = stateless([delay_run([point(400_000, both(22_900))])], clock=clock)
    assert part in delay_report.delay_meaning(document_)
    assert "RFC 1242 section 3.8" in Words(page_of(document_)).text


def test_self_latency_is_taken_at_the_nearest_load_that_is_not_below() -> None:
    ceilings = self_test()
    at = [ceilings.latency_at({"ipv4": 64}, "forward", load) for load in (1, 10_000, 10_001, 9_000_000)]
    assert [entry.frames_per_second for entry in at if entry is not None] == [10_000, 10_000, 100_000, 500_000]
    other = ceilings.latency_at({"ipv4": 1518, "ipv6": 1538}, "reverse", 10_000)
    assert other is not None
    assert (other.family, other.frame_octets) == ("ipv6", 84)
    document_ = stateless(
        [delay_run([point(400_000, both(22_900))], sizes=(1518, 1538))], self_test=self_test()
    )  # fmt: skip
    assert cell(table(document_, "Latency"), "self-latency").endswith("at 500,000/s\nof 84 octets")


def test_the_tester_s_own_latency_stands_beside_the_gateway_s() -> None:
    told = "reverse (Tester alone: 14.00 µs and 24.00 µs);"
    latency = stateless([delay_run([point(400_000, both(22_900))])])
    assert "Tester alone" not in sentence(latency)
    assert told in sentence(latency.model_copy(update={"self_test": self_test()}))


def test_a_load_that_the_tester_cannot_offer_has_no_delay() -> None:
    points = [point(900_000, [], repetitions=0, tester_limited=3), point(400_000, both(22_900), repetitions=3)]
    document_ = stateless([delay_run(points, limited_by="tester")])
    latency = table(document_, "Latency")
    assert cell(latency, "repe-") == "not offered"
    assert cell(latency, "typical") == ""
    assert "At 400,000 frames/s" in sentence(document_)
    assert headline(document_).label.startswith("typical latency, at 400,000 frames/s")
    assert "1 of 2 loads could not be offered by the Tester" in sentence(document_)


def test_no_load_could_be_offered() -> None:
    document_ = stateless([delay_run([point(900_000, [], repetitions=0, tester_limited=3)], limited_by="tester")])
    assert sentence(document_).startswith("Delays not measured: the Tester could not offer 900,000 frames/s")
    assert headline(document_).figure == "Tester-limited"
    section = delay_section(document_)
    assert section.tables == ()
    assert page_of(document_)


def test_a_refused_run_has_its_reason_and_no_figure() -> None:
    reason = "in the throughput search of a repetition no load passed"
    document_ = stateless([delay_run([], refused=reason), reset(number=2, refused=f"{reason}.")])
    assert sentence(document_).startswith(f"Delay not measured: {reason}; UDP")
    text = Words(page_of(document_)).text
    for number in (1, 2):
        assert f"Run {number}, 64 / 84 octets, per direction, bidirectional: not made, {reason}." in text
    assert f"{reason}.." not in text
    assert headlines(document_) == ()


def test_loads_that_are_no_full_throughput_say_so() -> None:
    share = point(400_000, both(22_900), share=Fraction(1, 2), throughput_limited_by="maximum")
    document_ = stateless([delay_run([share])])
    assert cell(table(document_, "Latency"), "load") == "400,000\n50 %"
    assert "the gateway may do more" in Words(page_of(document_)).text
    assert "(50% of the throughput)" in sentence(document_)


def test_each_metric_that_was_not_measured_has_no_table() -> None:
    plain = series().model_copy(update={"latency": None, "ipdv": None})
    document_ = stateless([delay_run([point(400_000, [plain])], direction="forward")])
    section = delay_section(document_)
    assert [table.title.split(" (")[0] for table in section.tables] == [
        "Packet delay variation", "Delay of all frames that came back correct",
    ]  # fmt: skip
    assert headline(document_).label.startswith("PDV, at 400,000 frames/s")


def test_inter_packet_delay_variation_keeps_its_sign() -> None:
    ipdv = table(stateless([delay_run([point(400_000, [series()])], direction="forward")]), "Inter packet")
    assert cell(ipdv, "D minimum").startswith("\u2212")
    assert cell(ipdv, "D median") == "0"
    assert cell(ipdv, "pairs") == "2,999,997"


def test_all_percentiles_are_in_one_row() -> None:
    frames = table(stateless([delay_run([point(400_000, [series()])], direction="forward")]), "Delay of all")
    assert [column.heading.split(",")[0] for column in frames.columns[4:12]] == [
        "minimum", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "maximum",
    ]  # fmt: skip


def test_bursts_have_buffer_times_and_the_spread_of_the_searches() -> None:
    document_ = stateless([bursts(40_120, 41_000, 39_888)])
    shown = table(document_, "Back-to-back")
    assert cell(shown, "average") == "40,336"
    assert cell(shown, "minimum") == "39,888 \u2013 41,000"
    assert cell(shown, "standard") == "586.6"
    assert cell(shown, "searches") == "3"
    assert cell(shown, "ceiling") == "446,000\n4,460"
    assert (cell(shown, "implied"), cell(shown, "corrected")) == ("271.1", "88.91")
    assert "buffer time 88.91 ms corrected, 271.1 ms implied (RFC 9004 section 6.4)" in sentence(document_)


@pytest.mark.parametrize(
    ("kind", "limited_by", "lengths", "words_of_it"),
    [
        ("found", "maximum", (446_000, 40_000), "no result: the search ended at its ceiling of 446,000 frames"),
        ("tester_limited", "tester", (40_000,), "no result: Tester-limited at 446,000 frames"),
    ],
)
def test_bursts_without_a_limit_of_the_gateway_have_no_average(
    kind: BurstKind, limited_by: str, lengths: tuple[int, ...], words_of_it: str
) -> None:
    document_ = stateless([bursts(*lengths, kind=kind, limited_by=limited_by)])
    assert cell(table(document_, "Back-to-back"), "average") == words_of_it
    assert "Back-to-back frames not measured" in sentence(document_)


def test_recovery_is_told_per_direction() -> None:
    ways = (recovery_series((98_000_000, 101_500_000)), recovery_series((0, None), "reverse"))
    document_ = stateless([recovery(*ways, repetitions=2)])
    shown = table(document_, "System recovery")
    assert cell(shown, "recovery time, ms") == "99.75\n98.00 \u2013 101.5"
    assert cell(shown, "recovery time, ms", 1) == "not known: frames were lost to the end of the observation (1 of 2)"
    assert cell(shown, "overload") == "110,000\n60s"
    assert cell(shown, "then") == "55,000\n60s"
    assert headline(document_).figure == "not known"


def test_a_time_of_the_repetitions_that_the_tester_could_make_is_shown() -> None:
    times = recovery_series((98_000_000, 101_500_000))
    document = stateless([recovery(times, repetitions=2, tester_limited=1, limited_by="tester")])
    shown = headline(document)
    assert (shown.figure, shown.unit, shown.limited_by) == ("99.75", "ms", "tester")
    assert cell(table(document, "System recovery"), "repe-") == "2 of 3"
    assert (
        "Run 1, system recovery: the Tester was the limit in at least one repetition." in Words(page_of(document)).text
    )


def test_reset_has_both_methods_and_names_losses_of_another_cause() -> None:
    early = reset_series((141_900, 139_000), "reverse", first_loss_ns=(1000, 16 * 10**9))
    document_ = stateless([reset(reset_series((141_000, 139_500)), early)])
    shown = table(document_, "Reset")
    assert cell(shown, "reset time by loss").startswith("1,402\n1,395")
    assert cell(shown, "by the gap").startswith("1,403\n")
    assert cell(shown, "trials") == "2"
    text = Words(page_of(document_)).text
    assert "reverse: frames were lost before the reset began" in text
    assert "forward: frames were lost before the reset began" not in text


def test_rates_near_the_self_test_are_lower_bounds() -> None:
    rate = run("throughput", (400_000,), direction="bidirectional", changes={"connections": None})
    # The lowest mode of `self_test` is 1000 below its ceiling; 400,000 is 95 % of 421,052.6.
    far, near = self_test(422_053), self_test(422_052)
    below = stateless([bounded(rate, far, "siit64")], self_test=far)
    above = stateless([bounded(rate, near, "siit64")], self_test=near)
    assert ceiling_cell(below, below.runs[0], "frames/s") == "421,053"
    assert below.runs[0] == rate
    assert "within 5 %" not in Words(page_of(below)).text + terminal_of(below)
    (figure,) = above.runs[0].quantities()
    assert (figure.limited_by, figure.lower_bound, figure.upper_bound, figure.median) == ("tester", 400_000, None, None)
    assert figure.tester_limited_at == 421_052
    assert not figure.is_measured
    page = Words(page_of(above)).text
    assert "421,052 within 5 %" in page
    assert "at least 400,000 frames/s" in page
    assert "Within 5 % of what the Tester reaches alone (421,052), so it is a lower bound of the gateway." in page
    assert "400,000 is within 5 % of what the Tester reaches alone (421,052)" in terminal_of(above, width=300)


def test_only_a_limit_of_the_tester_and_of_its_own_traffic_is_a_ceiling() -> None:
    rate = run("throughput", (400_000,), direction="bidirectional", changes={"connections": None})
    assert bounded(rate, None, "siit64") == rate
    ceilings = self_test(400_000)
    for changes, technology, is_bound in (
        ({}, "siit64", True),
        ({"is_line_rate": True}, "siit64", False),
        ({"mode": "mixed"}, "siit64", False),
        ({"mode": "translated"}, "siit64", True),
        ({"mode": "translated"}, "router44", False),
        ({"kind": "connections"}, "siit64", False),
    ):
        entries = tuple(entry.model_copy(update=changes) for entry in ceilings.entries)
        result = bounded(rate, ceilings.model_copy(update={"entries": entries}), technology)  # type: ignore[arg-type]
        assert (result.limited_by == "tester") is is_bound, changes
    mixed = rate.model_copy(update={"mix": Mix(m=9, n=10)})
    entries = tuple(entry.model_copy(update={"mode": "mixed"}) for entry in ceilings.entries)
    assert bounded(mixed, ceilings.model_copy(update={"entries": entries}), "siit64").limited_by == "tester"
    chosen = run("throughput", (400_000,), changes={"connections": None, "limited_by": "maximum"})
    assert bounded(chosen, ceilings, "siit64") == chosen  # a lower bound already


def test_of_several_numbers_of_connections_the_next_larger_one_counts() -> None:
    first = self_test().entries[0]
    entries = tuple(
        first.model_copy(update={"kind": "connections", "connections": count, "frames_per_second": rate})
        for count, rate in ((10_000, 300), (100_000, 200), (1_000_000, 100))
    )
    settings = self_test().model_copy(update={"entries": entries})
    for count, rate in ((1, 300), (10_000, 300), (10_001, 200), (5_000_000, 100)):
        result = settings.ceiling({"ipv4": 64}, "forward", "connections", connections=count)
        assert result is not None
        assert result.frames_per_second == rate


def test_a_ceiling_found_under_a_weaker_rule_is_told() -> None:
    rates = [run("throughput", (400_000,), changes={"connections": None})]
    ceilings = self_test(900_000)
    told = stateless(rates, self_test=ceilings.model_copy(update={"lateness_max_ns": 5 * 10**6}))
    assert "In the self-test a burst could be 5 ms late, here 1 ms" in Words(page_of(told)).text
    assert "a burst could be" not in Words(page_of(stateless(rates, self_test=ceilings))).text


def test_the_ceiling_of_a_size_is_that_of_the_next_larger_one() -> None:
    ceilings = self_test(900_000)
    sizes: dict[Family, int] = {"ipv4": 500}
    result = ceilings.ceiling(sizes, "reverse")
    assert result is not None
    assert (result.frame_octets, result.frames_per_second, result.direction) == (1064, 898_000, "forward")
    assert ceilings.ceiling(sizes, "forward", "connections") is None
    larger = stateless(
        [run("throughput", (1,), changes={"connections": None, "frame_sizes": sized((500, 520))})], self_test=ceilings
    )
    assert ceiling_cell(larger, larger.runs[0], "frames/s").endswith("octets")


def test_without_a_self_test_no_ceiling_is_claimed() -> None:
    document_ = stateless([run("throughput", (400_000,), changes={"connections": None})])
    assert ceiling_cell(document_, document_.runs[0], "frames/s") == "not measured"
    assert "The rate that the Tester reaches alone was not measured" in Words(page_of(document_)).text


def test_the_page_of_everything_is_whole() -> None:
    published, trials = everything()
    page = page_of(published, trials=trials)
    for columns in Columns(page).tables:
        assert len(set(columns)) == 1
    for name in (
        "latency against load", "delay variation against load", "latency against frame size",
        "delay variation against frame size", "histogram of delays", "histogram of delay variation",
        "delay by percentile", "frames lost over time",
    ):  # fmt: skip
        assert f'aria-label="{name}"' in page
    assert page == page_of(published, trials=trials)


@pytest.mark.parametrize("width", [60, 80, 120, 150, 300])
def test_no_figure_is_cut_at_any_width(width: int) -> None:
    published, _ = everything()
    text = terminal_of(published, width=width)
    for part in ("400,000", "23.90", "39,888 \u2013 41,000", "88.91", "98.00 \u2013 101.5"):
        assert part in text
    assert "…" not in text


def test_plots_need_data() -> None:
    one_load = delay_run([point(400_000, both(22_900))])
    captions = [drawn.caption for drawn in delay_report.plots(part_of(stateless([one_load])), [one_load])]
    assert not [caption for caption in captions if "against" in caption]
    assert len(captions) == 3
    bare = delay_run([point(400_000, [series(hdr="", ipdv={"histogram": ()})])], direction="forward")
    assert delay_plots.delay_histogram_plot(bare, bare.points[0]) is None
    assert delay_plots.ipdv_histogram_plot(bare, bare.points[0]) is None
    assert delay_plots.percentile_plot(bare) is None
    assert trial_plots.loss_over_time_plot(trial(1, 1, "loss", 1000, [0] * 100)) is None


def test_a_histogram_of_one_delay_can_be_drawn() -> None:
    from gatemark.stats.hdr import hdr_string

    same = delay_run([point(400_000, [series(hdr=hdr_string([(22_900, 1000)]))])], direction="forward")
    assert delay_plots.delay_histogram_plot(same, same.points[0]) is not None
    assert delay_plots.percentile_plot(same) is not None


def test_slices_of_a_falling_load_are_laid_out_by_time() -> None:
    row = trial(1, 1, "recovery", 110_000, [1] * 100, seconds=120)
    frames = 110_000 * 60 + 55_000 * 60
    whole = row.directions[0].__class__(
        direction="forward", intended=frames, offered=frames, received=0, faulty=0, duplicate=0, lost=frames,
        lateness_max_ns=0, loss_by_slice=(1,) * 100,
    )  # fmt: skip
    edges = trial_plots.slice_edges(row, whole, (60 * 10**9, 55_000))
    assert edges[0] == 0
    assert edges[-1] == pytest.approx(120)
    steps = [later - earlier for earlier, later in pairwise(edges)]
    assert steps[0] == pytest.approx(0.9)
    assert steps[-1] == pytest.approx(1.8)

"""Reports of stateful gateways (RFC 9693): everything is told once, with its unit, and never as something else."""

from __future__ import annotations

import csv
import io
from typing import Literal

import pytest
from tests.unit.stateful_documents import (
    PRESERVED,
    SECOND,
    Columns,
    Words,
    all_kinds,
    capacity_run,
    cells,
    document,
    page_of,
    part_of,
    repeated_run,
    run,
    search,
    sentence,
    series_of,
    tear_down_run,
    terminal_of,
)

from gatemark.facts import SettingFact
from gatemark.procedures.connection_establishment_rate.result import AlphaTried
from gatemark.procedures.connection_tracking_table_capacity.report import OVERFLOWS, size_words
from gatemark.procedures.connection_tracking_table_capacity.result import NO_CAPACITY, Overflow
from gatemark.procedures.connection_tracking_table_capacity.run import no_capacity
from gatemark.procedures.frame_loss.result import ClassLoss, LossPoint
from gatemark.report import observed, words
from gatemark.report.comparison import share_table
from gatemark.report.headline import headlines
from gatemark.report.model import DirectionRow, TrialRow
from gatemark.report.plot_style import Drawing
from gatemark.report.plots import plot_against
from gatemark.report.series import series_tables
from gatemark.results.connections import Behaviour, GatewayCounts, GatewayTable, PortRange
from gatemark.results.document import EdgePart, HostPart, ResultDocument
from gatemark.results.header_changes import HeaderChanges
from gatemark.results.part import Figure
from gatemark.results.quantity import to_csv
from gatemark.stored import report_of, sections_of
from gatemark.trial.validity import Validity


def headline(whole: ResultDocument) -> tuple[str, str]:
    """The only figure that is shown large, and its unit."""
    (shown,) = headlines(whole)
    return shown.figure, shown.unit


def connections_plot(whole: ResultDocument) -> Drawing | None:
    """The plot of all rates over the numbers of connections."""
    rates = [row for row in whole.rows() if row.quantity.is_headline and row.quantity.unit.endswith("/s")]
    return plot_against(rates, "connections", name="rates against number of connections")


@pytest.mark.parametrize(("count", "is_told"), [(50_000, True), (99_000, False)])
def test_a_short_phase_one_is_told_for_what_queues_hide(count: int, is_told: bool) -> None:
    published = document([run("connection_establishment_rate", (98_000, 98_000), count=count)])
    told = "With 50,000 connections test phase 1 takes less than 1 s at the rate found"
    assert (told in Words(page_of(published)).text) == is_told


@pytest.mark.parametrize(("queue_frames", "is_told"), [(1_000, True), (50_000, False), (None, False)])
def test_what_a_full_queue_adds_to_a_rate_is_told(queue_frames: int | None, is_told: bool) -> None:
    rate = run("connection_establishment_rate", (100_000, 100_000), count=50_000)
    host = HostPart(
        trials=1,
        suspect=0,
        held_up_max_ns=None,
        queue_frames=queue_frames,
        waited_ns_max=0,
        stolen_ns_max=0,
        reasons=(),
    )
    published = document([rate]).model_copy(update={"host": host})
    told = "holds 1,000 frames. If it was full at the end, 100,000 connections/s are 98,000 sustained."
    assert (told in Words(page_of(published)).text) == is_told


def test_rates_of_all_alphas_stand_side_by_side() -> None:
    rates = (("1", 323_534), ("3/5", 429_491), ("1/2", 483_000))
    runs = [
        run(
            "validated_connection_establishment_rate",
            (rate, rate + 2),
            count=4_000_000,
            number=number,
            changes={"alpha": alpha},
        )
        for number, (alpha, rate) in enumerate(rates, start=2)
    ]
    published = document([run("connection_establishment_rate", (484_863, 484_865)), *runs])
    (table,) = (
        table for section in sections_of(published) for table in section.tables if table.title.startswith("Validation")
    )
    headings = [column.heading for column in table.columns[2:]]
    assert headings == ["not\nvalidated", "alpha\n1", "alpha\n0.6", "alpha\n0.5"]
    assert [[cell.split("\n")[0] for cell in row[2:]] for row in table.rows] == [
        ["484,864", "323,535", "429,492", "483,001"]
    ]
    medians = [row for table in series_tables(published) for row in table.rows if row[0] == "Median"]
    assert medians == [("Median", "484,864"), ("Median", "323,535"), ("Median", "429,492"), ("Median", "483,001")]


def test_repeated_four_tuples_are_told_with_what_they_are_not() -> None:
    published = document(
        [
            repeated_run(4_000_000, (2_371_094,), (2_528_332,)),
            repeated_run(40_000_000, (2_337_890, 2_337_892), (3_999_760, None), number=2),
        ]
    )
    for number, said in ((1, "2,528,482 are expected"), (2, "3,999,818 are expected")):
        assert said in sentence(published, number)
        assert "(not a connection establishment rate)" in sentence(published, number)
        assert "aximum connection establishment" not in sentence(published, number)
    page = Words(page_of(published)).text
    assert "36.79 %" in page
    assert "0.0045 %" in page
    assert "2,528,332" in page
    assert "3,999,760" not in page  # one repetition has no count


def test_an_establishment_rate_is_never_called_throughput() -> None:
    published = document([run("connection_establishment_rate", (97_997, 98_680, 99_071))])
    said = sentence(published)
    expected = (
        "Maximum connection establishment rate: 98,680 connections/s with 4,000,000 connections,"
        " median of 3 repetitions, 1st to 99th percentile 97,997 \u2013 99,071"
    )
    assert said.startswith(expected)
    assert "UDP only (RFC 9693 section 8)" in said
    assert "stateful NAT64, IPv6 inside (left), IPv4 outside (right)" in said
    assert headline(published) == ("98,680", "connections/s")
    for text in (Words(page_of(published)).text, terminal_of(published)):
        assert "98,680" in text
        assert "hroughput" not in text


def test_a_validated_rate_has_its_alpha() -> None:
    tried = (AlphaTried(alpha="1", lower_bound=300_000), AlphaTried(alpha="1/2", lower_bound=479_296))
    changes = {"alpha": "1/2", "alphas_tried": tried}
    published = document([run("validated_connection_establishment_rate", (479_296,), changes=changes)])
    assert cells(published, "Alpha") == ("0.5",)
    said = sentence(published)
    assert "Validated maximum connection establishment rate (alpha 0.5): 479,296 connections/s" in said
    assert "1: 300,000 connections/s; 0.5: 479,296 connections/s. 0.5 was chosen." in Words(page_of(published)).text


@pytest.mark.parametrize(
    ("direction", "initiator", "label"),
    [
        ("forward", "left", "upload (Initiator only)"),
        ("reverse", "left", "download (Responder only)"),
        ("forward", "right", "download (Responder only)"),
        ("reverse", "right", "upload (Initiator only)"),
        ("bidirectional", "right", "per direction, bidirectional"),
    ],
)
def test_directions_are_named_for_who_sends(direction: str, initiator: str, label: str) -> None:
    result = run("throughput", (497_654,), direction=direction, initiator=initiator)
    assert words.direction_label(result) == label
    assert label in Words(page_of(document([result]))).text


@pytest.mark.parametrize(
    ("technology", "inside", "expected"),
    [
        ("nat64", "left", "stateful NAT64, IPv6 inside (left), IPv4 outside (right)"),
        ("nat44", "right", "stateful NAT44, IPv4 inside (right), IPv4 outside (left)"),
        ("nat46", "right", "stateful NAT46, IPv4 inside (right), IPv6 outside (left)"),
        ("siit64", None, "stateless translation, IPv6 left and IPv4 right"),
        ("router66", None, "IPv6 router"),
    ],
)
def test_technologies_in_words(technology: str, inside: str | None, expected: str) -> None:
    assert words.technology_words(document([], technology=technology, inside=inside).gateway) == expected


def test_a_tester_limit_is_no_rate_of_connections() -> None:
    limited = search(250_000, "tester_limited", tester_limited_at=300_000)
    changes = {"limited_by": "tester", "repetitions": (limited,)}
    published = document([run("connection_establishment_rate", changes=changes)])
    assert cells(published, "Median") == ("Tester-limited",)
    assert cells(published, "Limited by") == ("Tester-limited at 300,000 (gateway ≥ 250,000)",)
    assert headline(published) == ("Tester-limited", "")
    assert "250,000" not in [word.strip(".,") for word in sentence(published).split(" (gateway ≥ ")[0].split()]
    assert connections_plot(published) is None


def test_one_table_joins_all_rates_of_a_number_of_connections() -> None:
    (table,) = series_tables(all_kinds())
    assert [column.heading for column in table.columns] == ["number of sessions", "400,000", "4,000,000"]
    assert [row[0] for row in table.rows if len(row) == 1] == [
        "Connection establishment rate, connections/s",
        "Validated connection establishment rate, connections/s",
        "Throughput in phase 2, frames/s per direction, bidirectional",
        "Throughput in phase 2, frames/s, upload (Initiator only)",
    ]
    assert {table.rows[place][0] for place in table.strong_rows} == {"Median"}
    assert len(table.strong_rows) == 4
    assert cells(all_kinds(), "Phase 1, connections/s") == ("60,000 \u2013 120,000",) * 2


def test_a_rate_that_was_measured_for_some_numbers_only_leaves_dashes() -> None:
    runs = [
        run("connection_establishment_rate", (100_000,), count=1000),
        run("connection_establishment_rate", (80_000,), count=10_000),
        run("throughput", (50_000,), count=10_000, direction="bidirectional"),
    ]
    (table,) = series_tables(document(runs))
    heading = ("Throughput in phase 2, frames/s per direction, bidirectional",)
    throughput = table.rows[table.rows.index(heading) + 1 :]
    assert next(row[1:] for row in throughput if row[0] == "Median") == ("\u2013", "50,000")
    assert "Median / previous median" not in [row[0] for row in throughput]


def test_the_page_shows_everything_once_and_loads_nothing() -> None:
    trial = TrialRow(
        trial_number=1, run=3, repetition=1, attempt=1, purpose="search", frames_per_second=497_654,
        duration_ns=60 * SECOND, outcome="passed", validity=Validity(valid=True), reasons=(), phase="phase 2",
        connections=400_000,
        phase_one_attempts=2, directions=(
            DirectionRow(direction="forward", intended=9, offered=9, received=9, faulty=0, duplicate=0, lost=0,
                         lateness_max_ns=5),
        ),
    )  # fmt: skip
    empty = TrialRow(
        trial_number=2, run=5, repetition=1, attempt=1, purpose="event", frames_per_second=60_000, duration_ns=0,
        outcome="passed", validity=Validity(valid=True), reasons=(), phase="tear-down, empty table", connections=0,
        directions=(),
    )  # fmt: skip
    page = page_of(all_kinds(), trials=(trial, empty))
    assert "src=" not in page
    text = Words(page).text
    for part in (
        "gateway under test 1.0, stateful NAT64, IPv6 inside (left), IPv4 outside (right).",
        "64-octet IPv4 / 84-octet IPv6 frames (RFC 9693 section 6)",
        "Rates against number of connections",
        "Connection tear-down rate",
        "Connection tracking table capacity",
        "Gateway and Tester counted the same number of connections after test phase 1 in 132 of 132 trials",
        "changed during test phase 2 in 0 of 88 trials",
        "throughput, per direction, bidirectional, 4,000,000 connections: 1 of 9 attempts at test phase 1 failed",
        "8,388,608 connections; 8,388,608 buckets; UDP timeout 3min 20s",
        "198.19.0.1/32, ports 1\u201365535",
        "phase 1 timeout 500ms, gap between the phases 500ms",
        "phase 2 400,000 2 497,654",
        "tear-down, empty table 0",
        "connection establishment rate: binary, from 1 to 12,000,000 connections/s; loss tolerance 0 %",
        "throughput: binary, from 1 to 12,000,000 frames/s; loss tolerance 0 %",
    ):
        assert part in text, part
    assert text.count("Rates against number of connections") == 1
    assert all(len(set(rows)) == 1 for rows in Columns(page).tables)


@pytest.mark.parametrize("width", [80, 100, 150])
def test_no_figure_is_cut_at_any_width(width: int) -> None:
    published = series_of(
        (625_976, 483_153, 356_445, 1_234_567, 2_345_678), (1000, 10_000, 10**6, 4 * 10**8, 16 * 10**8)
    )
    text = terminal_of(published, width=width)
    for figure in ("625,976", "1,600,000,000", "2,345,687", "1.90"):
        assert figure in text
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_many_numbers_of_connections_become_several_tables() -> None:
    counts = [10**5 * number for number in range(1, 12)]
    published = series_of([600_000 - count // 10 for count in counts], counts)
    tables = list(series_tables(published))
    shown = [[column.heading for column in table.columns[1:]] for table in tables]
    assert [len(headings) for headings in shown] == [8, 3]
    assert [heading for headings in shown for heading in headings] == [f"{count:,}" for count in counts]
    assert [row[0] for row in tables[0].rows] == [row[0] for row in tables[1].rows]
    ratios = [next(row[1:] for row in table.rows if row[0] == "Median / previous median") for table in tables]
    assert ratios[0][0] == "\u2013"
    assert ratios[1] == ("0.98", "0.98", "0.98")  # the first of them is to the last column of the table before
    page = page_of(published)
    assert page.count("RFC 9693 section 6)</caption>") == 2
    assert all(len(set(rows)) == 1 for rows in Columns(page).tables)


def behaviour(**changes: int) -> Behaviour:
    return PRESERVED.model_copy(update=changes)


@pytest.mark.parametrize(
    ("seen_behaviour", "expected"),
    [
        (PRESERVED, "Whether mapping depends on the destination cannot be determined: all of 4,096 endpoints"),
        (PRESERVED, "every port was preserved, so that an endpoint-dependent gateway looks the same"),
        (behaviour(port_preserved=0), "Mapping is endpoint-independent: all of 4,096 endpoints"),
        (behaviour(sources_endpoint_independent=0), "Mapping is endpoint-dependent: none of 4,096 endpoints"),
        (behaviour(sources_endpoint_independent=96), "Mapping is endpoint-dependent: 96 of 4,096 endpoints"),
        (behaviour(sources_compared=0), "do not show whether mapping"),
    ],
)
def test_mapping_in_words(seen_behaviour: Behaviour, expected: str) -> None:
    assert expected in observed.mapping_sentence(seen_behaviour)


def test_ports_in_words() -> None:
    seen_behaviour = behaviour(port_preserved=0, parity_preserved=2_000_000, public_addresses=65_536)
    assert observed.port_sentence(seen_behaviour) == (
        "Of 4,000,000 connections examined: source port kept by none, its parity by 2,000,000 (50 %), its side of 1024"
        " by all (RFC 4787 section 4.2). In use: 65,536 or more public addresses, 40,000 public ports from 1 to 40000."
    )


def test_counts_that_differ_are_told_with_their_numbers() -> None:
    counts = GatewayCounts(
        phase_one=10,
        phase_one_equal=7,
        phase_one_minimum=1000,
        phase_one_maximum=1004,
        phase_two=5,
        phase_two_changed=2,
    )
    said = observed.observations(document([run("throughput", (1000,), count=1000, gateway_counts=counts)]))
    assert any("in 7 of 10 trials" in sentence for sentence in said)
    assert "Run 1, 1,000 connections: the gateway counted 1,000 \u2013 1,004." in said
    assert any("changed during test phase 2 in 2 of 5 trials" in sentence for sentence in said)
    silent = observed.observations(document([run("throughput", (1000,), gateway_counts=None)]))
    assert any("does not count its connections" in sentence for sentence in silent)


def test_what_a_gateway_wrote_into_headers_is_told() -> None:
    def said(**changes: int) -> list[str]:
        whole = dict.fromkeys(HeaderChanges.model_fields, 0) | changes
        first = run("throughput", (1000,), changes={"connections": None, "header_changes": HeaderChanges(**whole)})
        published = document([first], technology="siit64", inside=None, table=None)
        sentences = [text for text in observed.observations(published) if text.startswith("Run 1: ")]
        assert all(text in Words(page_of(published)).text for text in sentences)
        return sentences

    assert said(congestion_experienced=1) == [
        "Run 1: the gateway marked 1 frame as congestion experienced (RFC 3168 section 5), which counts as delivered."
    ]
    assert said(congestion_outside=3) == [
        "Run 1: a router marked the tunnel of 3 frames as congestion experienced (RFC 6040 section 4.1), which counts"
        " as delivered."
    ]
    assert said(flow_label_set=2000) == [
        "Run 1: the gateway gave 2,000 frames without flow label one (RFC 6437 section 3), which counts as delivered."
    ]
    assert said(with_trailer=2000) == [
        "Run 1: 2,000 frames had octets behind the IP packet, which are not part of it (RFC 894, RFC 2464 section 3),"
        " and count as delivered."
    ]
    assert said(identifications=256, distinct_identifications=1) == [
        "Run 1: 255 of 256 frames that may be fragmented later have the same IPv4 identification as an earlier one"
        " between the same hosts, so their fragments may be mistaken for each other (RFC 7915 section 5.1, RFC 6864"
        " section 4.1)."
    ]


@pytest.mark.parametrize(
    ("frames", "distinct", "repeated"), [(256, 1, 255), (64, 56, 8), (63, 1, 0), (256, 225, 0), (16384, 16352, 0)]
)
def test_identifications_that_chance_may_repeat_are_not_told(frames: int, distinct: int, repeated: int) -> None:
    """Of 256 random ones for each pair of hosts one in 512 comes again."""
    changes = HeaderChanges(
        congestion_experienced=0,
        flow_label_set=0,
        identifications=frames,
        distinct_identifications=distinct,
    )
    assert changes.repeated_identifications == repeated
    assert bool(changes.told()) == bool(repeated)


def test_accepted_zero_checksums_are_told_also_of_stateless_gateways() -> None:
    accepted = run("throughput", (1000,), changes={"connections": None, "zero_checksum": 3})
    published = document([accepted], technology="siit64", inside=None, table=None, zero_udp_checksum=True)
    sentence = "3 frames came with UDP checksum 0x0000 where 0xffff is due"
    assert sentence in " ".join(observed.observations(published))
    assert sentence in Words(page_of(published)).text
    assert sentence in terminal_of(published).replace("\n", " ")


@pytest.mark.parametrize(
    ("technology", "where"),
    [("nat64", "In the Initiator's direction it is"), ("nat46", "In either direction it may be")],
)
def test_where_zero_checksums_are_due_inside_is_told(technology: str, where: str) -> None:
    published = document(
        [run("throughput", (1000,), changes={"zero_checksum": 3})], technology=technology, zero_udp_checksum=True
    )
    assert f"{where} due in a packet inside the gateway" in " ".join(observed.observations(published))


def test_cores_and_settings_say_how_they_came_about() -> None:
    settings = (
        SettingFact(name="hash", value="8", read="8"),
        SettingFact(name="rss", value="sd", read=None),
        SettingFact(name="table.hash_size", value="1000", read="1008"),
    )
    text = Words(page_of(document([run("throughput", (1,))], cores=4, cores_set_by="hot_plug", settings=settings))).text
    assert "4, the other CPUs taken offline" in text
    assert "8, read back" in text
    assert "sd, not read back" in text
    assert "1000, read back as 1008" in text
    assert "4, not stated" in Words(page_of(document([run("throughput", (1,))], cores=4))).text


def test_several_gateways_are_compared_at_the_top() -> None:
    nat = document([run("connection_establishment_rate", (98_680,)), run("throughput", (64_208,))])
    plain = run("throughput", (7_000_000,), changes={"connections": None})
    router = document([plain], name="router", technology="router44", inside=None, table=None)
    text = Words(page_of(nat, router)).text
    top = text[: text.index("Goal and campaign file")]
    assert "All gateways" in top
    assert "Connection establishment rate, connections/s" in top
    assert "Throughput, frames/s in one direction" in top
    assert "98,680" in top
    assert "7,000,000" in top
    assert all(len(set(rows)) == 1 for rows in Columns(page_of(nat, router)).tables)


def test_the_plot_has_a_line_for_each_rate() -> None:
    drawn = connections_plot(all_kinds())
    assert drawn is not None
    for label in (
        "connection establishment rate, connections/s, forward",
        "validated connection establishment rate, connections/s, forward",
        "throughput, frames/s, bidirectional",
        "throughput, frames/s, forward",
        "connection tear-down rate, connections/s, forward",
        "number of connections",
        "400k",
    ):
        assert label in drawn.svg
    again = connections_plot(all_kinds())
    assert again is not None and again.svg == drawn.svg
    assert connections_plot(document([run("throughput", (1000,))])) is None


def test_frame_loss_in_phase_two_has_its_number_of_connections() -> None:
    lost = ClassLoss(
        direction="reverse", class_="foreground", offered=(200,), undelivered=(50,), lost=(50,), faulty=(0,),
        duplicate=(0,), reordered=(0,), longest_run=(50,),
    )  # fmt: skip
    point = LossPoint(frames_per_second=1000, repetitions=1, tester_limited=0, losses=(lost,))
    changes = {"points": (point,), "duration_ns": SECOND, "maximum": 1000}
    published = document([run("frame_loss", count=10_000, direction="bidirectional", changes=changes)])
    said = sentence(published)
    assert "Frame loss: median up to 25.00 % at 1,000 frames/s" in said
    assert "10,000 connections" in said
    page = page_of(published)
    assert "download" in Words(page).text
    assert "10,000 connections" in Words(page).text
    assert "10,000" in terminal_of(published)


def test_a_load_is_without_loss_only_if_no_repetition_lost_a_frame_at_it() -> None:
    def point(load: int, *undelivered: int, not_tried: int = 0) -> LossPoint:
        none, offered = (0,) * len(undelivered), (1000,) * len(undelivered)
        lost = ClassLoss(
            direction="forward", class_="foreground", offered=offered, undelivered=undelivered, lost=undelivered,
            faulty=none, duplicate=none, reordered=none, longest_run=none, not_tried=not_tried,
        )  # fmt: skip
        return LossPoint(frames_per_second=load, repetitions=len(undelivered), tester_limited=0, losses=(lost,))

    def said(*points: LossPoint) -> str:
        changes = {"points": points, "duration_ns": SECOND, "maximum": 1000}
        return sentence(document([run("frame_loss", count=10_000, direction="forward", changes=changes)]))

    points = (point(1000, 50, 50, 60), point(900, 0, 0, 222), point(600, 0, 0, 0))
    assert "median up to 5.00 % at 1,000 frames/s; none at 600 frames/s" in said(*points)
    assert "no load without loss" in said(*points[:2])
    changes = {"points": (*points, point(500, 100, not_tried=2)), "duration_ns": SECOND, "maximum": 1000}
    shown = page_of(document([run("frame_loss", count=10_000, direction="forward", changes=changes)]))
    assert "2 repetitions had ended" in " ".join(Words(shown).text.split())


def test_headlines_are_the_ends_of_a_series() -> None:
    published = series_of((600_000, 500_000, 400_000), (1000, 10_000, 100_000))
    assert [large.figure for large in headlines(published)] == ["600,000", "400,000"]
    assert len(report_of(part_of(published)).sentences) == 3


def test_the_csv_has_units_and_numbers_of_connections() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(all_kinds().rows()))))
    (rate,) = (row for row in rows if row["procedure"] == "connection_establishment_rate" and row["run"] == "1")
    assert (rate["direction"], rate["class"]) == ("forward", "")
    assert (rate["frame_size_ipv4"], rate["frame_size_ipv6"]) == ("64", "84")
    assert (rate["foreground_m"], rate["foreground_n"], rate["connections"]) == ("1", "1", "400000")
    assert (rate["median"], rate["p1"], rate["p99"], rate["unit"]) == ("486577", "483153", "490001", "connections/s")
    validated = [row for row in rows if row["procedure"] == "validated_connection_establishment_rate"]
    assert [(row["connections"], row["alpha"]) for row in validated] == [("400000", "1"), ("4000000", "1")]
    named = [(row["quantity"], row["unit"], row["repetitions"]) for row in rows]
    assert named.count(("connection tear-down rate", "connections/s", "3")) == 2
    assert named.count(("time to delete all connections", "ns", "3")) == 2
    assert named.count(("time to delete no connection", "ns", "3")) == 2
    (capacity,) = (row for row in rows if row["quantity"] == "connection tracking table capacity")
    assert (capacity["median"], capacity["unit"], capacity["connections"]) == ("4194300.5", "connections", "")


def test_connections_that_a_deletion_left_are_named() -> None:
    whole = tear_down_run(1000, (20, 20, 20), (10, 10, 10))
    assert "left" not in terminal_of(document([whole]))
    partly = document([whole.model_copy(update={"left": Figure.of((400, 400, 400))})])
    assert headline(partly) == ("60,000", "connections/s")
    assert "400 of 1,000 connections were left, the others were deleted in 10 ms net" in sentence(partly)
    assert "left, median" in terminal_of(partly)
    nothing = document([whole.model_copy(update={"left": Figure.of((1000, 1000, 1000))})])
    assert "nothing was deleted" in sentence(nothing)
    uneven = document([whole.model_copy(update={"left": Figure.of((1, 1, 400))})])
    assert "1 (1 \u2013 400) of 1,000 connections were left" in sentence(uneven)
    assert "Uncertain: how many were left differs by more than a tenth of those deleted" in sentence(uneven)


def test_an_uncertain_rate_is_shown_large_in_parentheses_and_not_compared() -> None:
    uncertain = tear_down_run(400_000, (430, 445, 480), (290, 300, 310))
    published = document([uncertain])
    assert headline(published) == ("(2,758,621)", "connections/s")
    assert "Uncertain: the spreads of both times exceed a tenth of their difference" in sentence(published)
    rates = [row for row in published.rows() if row.quantity.is_headline]
    assert plot_against(rates, "connections", name="", places_min=1) is None
    certain = document([tear_down_run(400_000, (4450, 4450, 4450), (300, 300, 300))])
    assert headline(certain) == ("96,386", "connections/s")
    assert share_table([certain, published]).rows == ()
    assert len(share_table([certain, certain.model_copy(update={"name": "again"})]).rows) == 1


CHAIN = "conntrack.chaintoolong"


def stored(capacities: tuple[int, ...], size: int | None, *counted: dict[str, int] | None) -> ResultDocument:
    """A gateway whose table is stated to hold `size` connections; what its host counted in each search."""
    result = capacity_run(capacities, limited_by="gateway")
    searches = zip(result.repetitions, counted, strict=True)
    told = tuple(search.model_copy(update={"counted": counters}) for search, counters in searches)
    table = GatewayTable(size=size, hash_size=None, udp_timeout_ns=None)
    return document([result.model_copy(update={"repetitions": told})], table=table)


def test_a_capacity_far_below_the_stated_size_is_said_with_what_the_host_counted() -> None:
    whole = stored((18_062, 17_950), 200_000, {CHAIN: 31, "conntrack.drop": 2}, {CHAIN: 1204})
    words = (
        "The capacity is far below the 200,000 connections that the gateway's table is stated to hold"
        " (gateway.table.size): 17,950 to 18,062 in 2 repetitions, a median of 9.00 %. With too many connections the"
        " gateway's host counted connections: refused, the hash chain was too long (chaintoolong) +31 to +1,204 (2 of"
        " 2 searches); connections: packets dropped, no room for a connection (drop) +2 (1 of 2 searches)."
    )
    assert sentence(whole).endswith(words)
    assert words in " ".join(terminal_of(whole).split())
    assert Words(page_of(whole)).text.count(words) == 2


@pytest.mark.parametrize(
    ("capacities", "size", "counted", "words"),
    [
        ((18_062,), 200_000, {}, "18,062 in one repetition, a median of 9.03 %. No counter of connections"),
        ((18_062,), 200_000, None, "The gateway's host could not be read, so why is not known."),
        ((111_000, 112_000), 100_000, None, "The capacity is above the 100,000 connections that"),
    ],
)
def test_what_is_said_of_other_sizes(
    capacities: tuple[int, ...], size: int, counted: dict[str, int] | None, words: str
) -> None:
    assert words in sentence(stored(capacities, size, *[counted] * len(capacities)))


@pytest.mark.parametrize(
    ("capacities", "size"),
    [((18_062,), None), ((100_000,), 100_000), ((90_000, 60_000), 100_000), ((110_000, 90_000), 100_000)],
)
def test_nothing_is_said_of_a_size_that_is_nearly_right_in_a_repetition(
    capacities: tuple[int, ...], size: int | None
) -> None:
    assert "stated to hold" not in sentence(stored(capacities, size, *[{CHAIN: 5}] * len(capacities)))


@pytest.mark.parametrize(
    ("held", "ports", "destinations", "mapping", "words"),
    [
        (252, (1232, 64_723), 1, None, ""),
        (252, (1232, 64_723), 2, "endpoint_independent", ""),
        (252, (1232, 64_723), 2, None, "far below the 504 connections that the ports of the customer edge allow"),
        (
            4,
            (1232, 1235),
            1,
            None,
            "Of the 63 ranges of its port set 62 had no connection when 4 were established, the",
        ),
        (4, (1232, 1235), 1, None, " first of them 2256 "),
        (5, (1232, 2256), 1, None, "Of the 63 ranges of its port set 61 had"),
        (400, (1024, 64_723), 1, None, "above the 252 connections that the ports of the customer edge allow"),
        (504, (1024, 64_723), 2, "endpoint_independent", ""),
    ],
)
def test_the_ports_of_a_customer_edge_are_its_size(
    held: int, ports: tuple[int, int], destinations: int, mapping: Literal["endpoint_independent"] | None, words: str
) -> None:
    edge = EdgePart(
        ipv6="2001:db8::/40", ipv4="192.0.2.0/24", ea_bits=16, psid_offset=6, psid_bits=8, dmr="64:ff9b::/96",
        end_user_prefix="2001:db8:12:3400::/56", address="2001:db8:12:3400::c000:212:34", ipv4_address="192.0.2.18",
        psid=52, ports=252,
    )  # fmt: skip
    result = capacity_run((held,), "refused", limited_by="gateway")
    assert result.connections is not None
    behaviour = PRESERVED.model_copy(
        update={"established": held, "public_port_minimum": ports[0], "public_port_maximum": ports[1]}
    )
    responders = {"destination_hosts": destinations, "destination_ports": PortRange(minimum=1, maximum=1)}
    connections = result.connections.model_copy(update={"behaviour": behaviour, **responders})
    table = GatewayTable(size=1 << 20, hash_size=None, udp_timeout_ns=None)
    gateway = document([result], table=table).gateway.model_copy(update={"edge": edge, "mapping": mapping})
    said = size_words(gateway, result.model_copy(update={"connections": connections}))
    assert (words in said) if words else said == ""


@pytest.mark.parametrize(
    ("held", "destinations", "mapping", "words"),
    [
        ((55_849, 56_310), 1, "endpoint_independent", "far below the 64,512 connections that the public addresses and"),
        ((55_849, 56_310), 2, "endpoint_independent", "far below the 64,512 connections that the public addresses and"),
        ((55_849, 56_310), 2, "endpoint_dependent", "far below the 64,512 connections that the public addresses and"),
        ((64_512, 64_512), 2, "endpoint_dependent", ""),
        ((129_000, 129_000), 2, "endpoint_independent", ""),
        ((150_000, 150_000), 2, "endpoint_dependent", "above the 129,024 connections that the public addresses and"),
        ((64_512, 64_512), 1, "endpoint_independent", ""),
        ((64_512, 58_100), 1, "endpoint_independent", ""),
    ],
)
def test_the_ports_of_the_pool_are_a_size(
    held: tuple[int, int], destinations: int, mapping: Literal["endpoint_independent"] | None, words: str
) -> None:
    """Jool, for example, gives up looking for a port long before all of them are in use.

    With two endpoints of the Responder in the largest size, smaller ones may have had one, so that all ports were in
    use; and connections to both may share each port.
    """
    result = capacity_run(held, "refused", limited_by="gateway")
    assert result.connections is not None
    responders = {"destination_hosts": destinations, "destination_ports": PortRange(minimum=1, maximum=1)}
    pool = {"pool": ("198.19.0.1/32", "198.19.0.1/32"), "pool_ports": PortRange(minimum=1024, maximum=65_535)}
    gateway = document([result]).gateway.model_copy(update={**pool, "mapping": mapping, "table": None})
    connections = result.connections.model_copy(update=responders)
    said = size_words(gateway, result.model_copy(update={"connections": connections}))
    assert (words in said) if words else said == ""


def test_no_counter_is_missed_where_the_table_held_all() -> None:
    result = capacity_run((18_062, 17_950), "unusable", limited_by="gateway")
    table = GatewayTable(size=200_000, hash_size=None, udp_timeout_ns=None)
    said = sentence(document([result], table=table))
    assert f"Beyond it {OVERFLOWS['unusable']} (2 of 2 searches)." in said
    assert said.endswith("17,950 to 18,062 in 2 repetitions, a median of 9.00 %.")


@pytest.mark.parametrize("overflow", ["filtered", "expired", "vanished"])
def test_a_size_that_a_timeout_ended_is_no_capacity(overflow: Overflow) -> None:
    result = capacity_run((18_062, 17_950), overflow, limited_by="gateway")
    result = result.model_copy(update={"refused": no_capacity(result.repetitions)})
    said = sentence(published := document([result]))
    held = f"{NO_CAPACITY[overflow]}; 17,950 connections were stored in every search"
    assert said.startswith(f"Connection tracking table capacity not measured: {held}")
    page = Words(page_of(published))
    assert held in page.text
    assert "median" not in said


def test_nothing_is_below_a_size_where_the_search_ended_at_its_maximum() -> None:
    table = GatewayTable(size=1 << 30, hash_size=None, udp_timeout_ns=None)
    assert "stated to hold" not in sentence(document([capacity_run((16_000_000,), limited_by="maximum")], table=table))

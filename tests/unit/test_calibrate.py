"""Calibration without a gateway: truths, comparisons, checks, what is made of them, and the runner on fakes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.calibration_evidence import SECOND, SELF, delays, throughput, throughput_check

from gatemark.calibrate import truth
from gatemark.calibrate.base import PortNames, campaign_of, gateway_of
from gatemark.calibrate.checks import all_checks, chosen_checks
from gatemark.calibrate.checks_delays import self_error_of
from gatemark.calibrate.links import Links, ReferenceTestBed
from gatemark.calibrate.model import (
    Check,
    CheckResult,
    Comparison,
    Evidence,
    NothingProven,
    ObservedTrial,
    Reference,
)
from gatemark.calibrate.run import is_kept, reference_of
from gatemark.calibrate.table import FIGURES, CalibrationDocument, Circumstances, passed, rows_of, to_markdown
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import plan_of
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.report.table import table_of

PORTS = PortNames(tester_left="memif:/t/l", tester_right="memif:/t/r", gateway_left="memif:/t/l,role=server",
                  gateway_right="memif:/t/r,role=server")  # fmt: skip
EVERY = [pytest.param(check, id=check.name) for check in all_checks()]


def lost_by_a_server(load: int, capacity: int, queue: int, frames: int) -> int:
    """The same gateway, frame by frame: each is served for 1 / capacity, `queue` may wait."""
    ends: list[Fraction] = []
    lost = 0
    for number in range(frames):
        now = Fraction(number, load)
        inside = sum(end > now for end in ends[-queue - 2 :])
        if inside > queue:
            lost += 1
            continue
        ends.append(max(now, ends[-1] if ends else now) + Fraction(1, capacity))
    return lost


@pytest.mark.parametrize(("capacity", "queue"), [(2_000, 10), (1_000, 50), (500, 0)])
def test_the_throughput_is_that_of_a_server_with_a_queue(capacity: int, queue: int) -> None:
    true = truth.throughput(capacity, queue, SECOND)
    below, above = int(true) - 1, int(true) + 2
    assert lost_by_a_server(below, capacity, queue, below) == 0
    assert lost_by_a_server(above, capacity, queue, above) > 0


@pytest.mark.parametrize(("load", "capacity", "queue"), [(1_500, 1_000, 20), (2_200, 2_000, 50), (900, 300, 5)])
def test_the_frames_lost_are_those_of_a_server_with_a_queue(load: int, capacity: int, queue: int) -> None:
    true = truth.frames_lost(load, capacity, queue, SECOND)
    assert abs(lost_by_a_server(load, capacity, queue, load) - true) <= 2


@pytest.mark.parametrize(("line", "capacity", "queue"), [(2_000, 1_000, 50), (3_000, 1_000, 20), (1_100, 1_000, 7)])
def test_the_longest_burst_is_that_of_a_server_with_a_queue(line: int, capacity: int, queue: int) -> None:
    true = truth.longest_burst(line, capacity, queue)
    assert lost_by_a_server(line, capacity, queue, int(true)) == 0
    assert lost_by_a_server(line, capacity, queue, int(true) + 1) > 0


@pytest.mark.parametrize(("tokens", "burst", "count"), [(1_000, 20, 500), (5_000, 100, 1_000)])
def test_the_establishment_rate_is_that_of_a_token_bucket(tokens: int, burst: int, count: int) -> None:
    def established(rate: int) -> bool:
        level, before = Fraction(burst), Fraction(0)
        for number in range(count):
            now = Fraction(number, rate)
            level = min(Fraction(burst), level + (now - before) * tokens)
            before = now
            if level < 1:
                return False
            level -= 1
        return True

    true = truth.establishment_rate(tokens, burst, count)
    assert established(int(true) - 1)
    assert not established(int(true) + 2)


@pytest.mark.parametrize("alpha", [Fraction(1), Fraction(1, 2)])
def test_the_validated_rate_is_what_the_way_back_carries(alpha: Fraction) -> None:
    capacity, queue, count = 1_000, 10, 500
    true = truth.validated_rate(capacity, queue, count, alpha)
    assert lost_by_a_server(int(alpha * true), capacity, queue, count) == 0
    assert lost_by_a_server(int(alpha * true) + 1, capacity, queue, count) > 0


def test_percentile_and_median_are_those_of_the_sample() -> None:
    assert truth.percentile(range(1, 501), 99_900) == 500
    assert truth.percentile(range(1, 1001), 99_900) == 999
    assert truth.percentile(range(1, 50_001), 99_900) == 49_950
    assert truth.median(range(1, 21)) == Fraction(21, 2)
    assert truth.median([3, 1, 2]) == 2
    assert truth.variations([10, 30, 25]) == [-15, 20, -5]


@pytest.mark.parametrize(
    ("measured", "is_passed"), [(90, False), (91, True), (100, True), (105, True), (106, False), (None, False)]
)
def test_an_error_is_allowed_on_each_side_by_itself(measured: int | None, is_passed: bool) -> None:
    comparison = Comparison(quantity="q", unit="frames", true=100, measured=measured, allowed_below=9, allowed_above=5)
    assert comparison.passed is is_passed
    assert comparison.error == (None if measured is None else measured - 100)


@pytest.mark.parametrize(("measured", "is_passed"), [("evicted", True), ("refused", False), (None, False)])
def test_words_are_equal_or_wrong(measured: str | None, is_passed: bool) -> None:
    assert Comparison(quantity="q", unit="", true="evicted", measured=measured).passed is is_passed


def test_there_are_checks_of_every_procedure_each_with_its_own_name() -> None:
    checks = all_checks()
    assert {check.procedure for check in checks} == {
        "self_latency", "throughput", "frame_loss", "frame_timeout", "delay", "back_to_back",
        "bursty_traffic", "system_recovery", "reset",
        "connection_establishment_rate", "validated_connection_establishment_rate",
        "connection_tracking_table_capacity", "repeated_four_tuples", "host", "map", "aftr", "conformity", "faults",
        "netem",
    }  # fmt: skip
    assert len({check.name for check in checks}) == len(checks)
    overflows = {check.table.overflow for check in checks if "capacity" in check.procedure and check.table is not None}
    assert overflows == {"refuse", "drop", "evict_oldest", "forward_untranslated"}
    quick = all_checks(quick=True)
    assert {check.procedure for check in quick} == {check.procedure for check in checks}
    assert len(quick) < len(checks)


@pytest.mark.parametrize("check", EVERY)
def test_every_check_is_a_campaign_that_can_be_run(check: Check) -> None:
    configuration = gateway_of(check, PORTS, "/t/control.sock", 0)
    document = campaign_of(check, PORTS, ask="ask /t/control.sock", cores=(1,), configuration=configuration)
    campaign = complete_campaign(campaign_from_dict(document, where=check.name))
    assert plan_of(campaign).runs
    assert campaign.repetitions >= 1
    assert json.dumps(configuration.to_document())


@pytest.mark.parametrize("check", EVERY)
def test_no_check_passes_without_a_result(check: Check) -> None:
    result = check.compare(Evidence(results=(), trials=(), reference=Reference()))
    assert check.gives_self_error or result
    assert not any(comparison.passed for comparison in result)


def test_checks_are_chosen_by_procedure_or_name() -> None:
    assert {check.procedure for check in chosen_checks(["throughput"])} == {"throughput"}
    assert [check.name for check in chosen_checks(["delay-fixed-50us"])] == ["self-latency", "delay-fixed-50us"]
    assert chosen_checks([], quick=True)
    with pytest.raises(ConfigError, match="there is no check nothing"):
        chosen_checks(["throughput", "nothing"])


@pytest.mark.parametrize(("off", "gap_ns", "is_passed"), [
    (0, 0, True), (-100, 0, True), (-110, 0, False), (10, 0, False), (10, 1_000_000, True), (-110, 1_000_000, True),
    (30, 1_000_000, False),
])  # fmt: skip
def test_a_rate_may_be_off_by_resolution_and_unsteadiness(off: int, gap_ns: int, is_passed: bool) -> None:
    check = throughput_check()
    assert check.forward.capacity == 20_000
    true = int(truth.throughput(20_000, check.forward.queue or 0, SECOND))
    evidence_ = Evidence(results=(throughput(true + off),), trials=(), reference=Reference(poll_gap_max_ns=gap_ns))
    assert [comparison.passed for comparison in check.compare(evidence_)] == [is_passed]


def test_the_own_error_is_the_worst_of_the_path_without_delay() -> None:
    evidence_ = Evidence(results=(delays(),), trials=(), reference=Reference())
    assert self_error_of(evidence_) == SELF
    assert SELF.spread_ns == 4_000


@pytest.mark.parametrize(("typical", "worst", "is_passed"), [
    (55_000, 59_000, (True, True)), (52_000, 55_000, (True, True)), (51_900, 59_000, (False, True)),
    (57_000, 60_000, (True, True)), (57_100, 60_100, (False, False)),
])  # fmt: skip
def test_a_delay_may_be_off_by_a_microsecond_and_the_own_error(
    typical: int, worst: int, is_passed: tuple[bool, bool]
) -> None:
    check = next(comparison for comparison in all_checks() if comparison.name == "delay-fixed-50us")
    result = delays(typical_ns=typical, worst_case_ns=worst, pdv_ns=6_000)
    evidence_ = Evidence(results=(result,), trials=(), reference=Reference(), self_error=SELF)
    compared = {comparison.quantity: comparison.passed for comparison in check.compare(evidence_)}
    assert (compared["TL"], compared["WCL"]) == is_passed
    assert compared["PDV"] and compared["IPDV median"]


def test_what_the_gateway_says_about_itself_decides_whether_it_kept_its_truth() -> None:
    delays_ = {
        "poll_gap_max_ns": 5, "late_departure_max_ns": 7, "late": 1, "transmit_full": 1, "hold_full": 2,
        "receive_missed": 3, "polls": 9,
    }  # fmt: skip
    reference = reference_of({"own": delays_})
    assert reference == Reference(poll_gap_max_ns=5, late_departure_max_ns=7, own_drops=6)
    check = throughput_check()
    assert is_kept(check, Reference(poll_gap_max_ns=check.poll_gap_max_ns))
    assert not is_kept(check, Reference(poll_gap_max_ns=check.poll_gap_max_ns + 1))
    assert not is_kept(check, Reference(late_departure_max_ns=check.late_departure_max_ns + 1))
    assert not is_kept(check, Reference(own_drops=1))
    assert reference.worst(Reference(poll_gap_max_ns=9)) == Reference(
        poll_gap_max_ns=9, late_departure_max_ns=7, own_drops=6
    )


class AdmittingGateway:
    """Says of itself what it is told to say: the longest of the hold-ups since its counts were reset."""

    def __init__(self, *gaps_ns: int) -> None:
        self.gaps_ns = list(gaps_ns)
        self.worst_ns = 0

    def counts(self) -> dict[str, Any]:
        self.worst_ns = max(self.worst_ns, self.gaps_ns.pop(0))
        return {"own": {"poll_gap_max_ns": self.worst_ns, "late_departure_max_ns": 10**9}}

    def reset_counts(self) -> None:
        self.worst_ns = 0


def test_what_the_gateway_admits_beyond_the_limit_spoils_each_trial_that_it_met(tmp_path: Path) -> None:
    """Nobody resets the counts of a campaign between its trials; a later hold-up may be shorter than one before."""
    document = campaign_of(throughput_check(), PORTS, ask="ask", cores=(1,),
                           configuration=gateway_of(throughput_check(), PORTS, "/t/c", 0))  # fmt: skip
    links = Links(ports=PORTS, folder=tmp_path)
    gateway: Any = AdmittingGateway(5_000_000, 9_000_000, 1_000_000, 7_000_000, 7_000_000, 6_000_000, 2_000_000)
    noted: list[int] = []
    campaign = complete_campaign(campaign_from_dict(document, where="t"))
    bed = ReferenceTestBed(campaign, links, gateway, poll_gap_max_ns=5_000_000,
                           note=lambda counts: noted.append(counts["own"]["poll_gap_max_ns"]))  # fmt: skip
    assert bed.can.drops is None
    assert bed.can.own_faults is not None
    assert bed.can.own_faults() == ()
    (fault,) = bed.can.own_faults()
    assert fault == "the reference gateway did not look at its ports for 9ms, 5ms is allowed"
    assert [len(bed.can.own_faults()) for _ in range(5)] == [0, 1, 1, 1, 0]
    assert noted == [5_000_000, 9_000_000, 1_000_000, 7_000_000, 7_000_000, 6_000_000, 2_000_000]


def test_a_damage_that_met_no_frame_proves_nothing() -> None:
    """The Tester was held up while it lasted: that is no wrong count."""
    check = next(check for check in all_checks() if check.name == "faults-router44")
    planted = dict.fromkeys((reason for reason, _ in check.forward.corrupt), 100)
    faults = {reason: count for reason, count in planted.items() if reason != "trailer"}
    counts = SimpleNamespace(faults=faults, with_trailer=planted["trailer"])
    way = SimpleNamespace(direction="forward", foreground=counts)
    record: Any = SimpleNamespace(report=SimpleNamespace(directions=(way,)))

    def compared() -> tuple[Comparison, ...]:
        trial = ObservedTrial(record=record, counts={"forward": {"reasons": planted}, "reverse": {"reasons": {}}})
        return check.compare(Evidence(results=(), trials=(trial,), reference=Reference()))

    assert all(comparison.passed for comparison in compared())
    counts.faults["payload"] += 1
    assert [comparison.quantity for comparison in compared() if not comparison.passed] == ["payload, forward"]
    counts.faults["payload"] -= 1
    counts.with_trailer -= 1
    assert [comparison.quantity for comparison in compared() if not comparison.passed] == ["trailer, forward"]
    del planted["payload"], counts.faults["payload"]
    with pytest.raises(NothingProven, match=r"no frame came while payload was damaged \(forward\)"):
        compared()


def result_of(check: Check, *comparisons: Comparison, kept: bool = True) -> CheckResult:
    return CheckResult(
        procedure=check.procedure, name=check.name, truth=check.truth, technology=check.technology,
        comparisons=comparisons, reference=Reference(), attempts=1, kept=kept, seconds=1.25, folder="x",
    )  # fmt: skip


def test_the_table_has_a_row_for_each_figure_and_nothing_passes_unmeasured() -> None:
    good = Comparison(quantity="TL", unit="ns", true=1_500, measured=1_600, allowed_below=200, allowed_above=200)
    bad = Comparison(quantity="loss", unit="%", true=Fraction(1, 3), measured=Fraction(1, 2))
    word = Comparison(quantity="overflow", unit="", true="evicted", measured="evicted")
    check = throughput_check()
    results = [result_of(check, good, bad), result_of(check, word), result_of(check, good, kept=False)]
    assert [*table_of("", FIGURES, rows_of(results)).rows] == [
        ("TL", "1.50 µs", "1.60 µs", "+0.10", "-0.20 to +0.20", "passed"),
        ("loss", "0.3333 %", "0.5000 %", "+0.1667", "0", "failed"),
        ("overflow", "evicted", "evicted", "", "", "passed"),
        ("", "", "", "", "", "reference not kept"),
    ]
    assert passed([results[1]], 1)
    assert not passed(results, 3)
    assert not passed([results[1]], 2), "one of two was not made"
    assert not passed([], 0)
    where = Circumstances(measured_at="2025-01-01", machine="m", gatemark="1", programs="0", ports="memif", quick=True)
    page = to_markdown(results, where, SELF, chosen=4)
    assert "3 of 4 checks with 3 figures: 1 failed, 1 passed, 1 reference not kept" in page
    assert page.count("\n| throughput |") == 4
    assert "median 5 µs" in page
    document = CalibrationDocument(
        **where.model_dump(), chosen=("a", "b", "c"), self_error=SELF, checks=tuple(results)
    ).model_dump(mode="json")
    assert document["passed"] is False
    assert document["checks"][0]["comparisons"][0]["error"] == 100
    assert document["self_error"]["p999_ns"] == 9_000


def test_keys_of_the_file_stand_in_their_order() -> None:
    row = Comparison(quantity="TL", unit="ns", true=Fraction(3, 2), measured=None, allowed_below=Fraction(4, 2))
    where = Circumstances(measured_at="2025-01-01", machine="m", gatemark="1", programs="0", ports="memif", quick=True)
    check = result_of(throughput_check(), row)
    document = CalibrationDocument(**where.model_dump(), chosen=("a",), self_error=None, checks=(check,))
    written = document.model_dump(mode="json")
    assert list(written) == [
        "calibration", "measured_at", "machine", "gatemark", "programs", "ports", "quick", "passed", "chosen",
        "self_error", "checks",
    ]  # fmt: skip
    assert list(written["checks"][0]) == [
        "procedure", "name", "truth", "technology", "status", "problem", "skipped", "attempts", "kept", "made_at",
        "seconds", "folder", "reference", "comparisons",
    ]  # fmt: skip
    assert json.dumps(written["checks"][0]["comparisons"]) == (
        '[{"quantity": "TL", "unit": "ns", "true": 1.5, "measured": null, "error": null, "allowed_below": 2,'
        ' "allowed_above": 0, "passed": false}]'
    )

"""Trials of echo requests: what is asked of the engine, and when its report is believed."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from tests.trial_facts import ORDER, blank, changed, record_of
from tests.unit import echo_facts
from tests.unit.echo_facts import FORM, RATE_FORM, client

from gatemark.campaign.file import campaign_from_dict
from gatemark.causes.judgement import is_judged_alike
from gatemark.config.model import Campaign
from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.dut.recipe import complete_campaign
from gatemark.search.goal import Measure
from gatemark.trial.cell import Cell
from gatemark.trial.echo import EchoForm, sums_of
from gatemark.trial.echo_request import echo_request
from gatemark.trial.form import TrialForm
from gatemark.trial.host import HoldUp, HostFacts, ThreadFacts
from gatemark.trial.judgement import Evidence, Rules
from gatemark.trial.kinds import judged, suspicion_of
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport, read_report
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict

CELL = Cell(direction="forward", frame_sizes=FrameSizes(ipv4=102, ipv6=122), mix=Mix(1, 1))
SIDES: dict[str, Any] = {
    "left": {
        "port": "af_packet:left",
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        "ipv6": {
            "address": "2001:2::2",
            "gateway": "2001:2::1",
            "hosts": {"offset": 14, "mode": "pseudorandom", "range": "2-9"},
        },
    },
    "right": {
        "port": "af_packet:right",
        "ipv4": {
            "address": "198.19.0.2",
            "gateway": "198.19.0.1",
            "hosts": {"offset": 2, "mode": "decreasing", "range": "2-65"},
        },
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
}


def campaign(technology: str, **gateway: Any) -> Campaign:
    if technology in ("siit64", "nat64"):
        gateway["prefix"] = "2001:2:0:6400::/96"
    if technology == "siit64":
        gateway["eam"] = [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}]
    tables: dict[str, Any] = {}
    if technology == "nat64":
        gateway["control"] = {"clear_state": "conntrack -F"}
        tables = {"connections": {"count": [10], "rate": 10}}
    return complete_campaign(
        campaign_from_dict(
            {"gateway": {"technology": technology, **gateway}, "testbed": {"kind": "ports"}, **SIDES, **tables}
        )
    )


def asked(wanted: Campaign, form: EchoForm = FORM, **given: Any) -> Any:
    values: dict[str, Any] = {"frames_per_second": 1000, "duration_ns": 10**9, "trial_number": 7}
    return echo_request(wanted, CELL, form=TrialForm(echo=form, drain_ns=10**9), **(values | given))


def test_a_closed_loop_has_no_rate_and_goes_forward_alone() -> None:
    body = asked(campaign("nat64", pool=["198.19.0.1", "198.19.128.0/24"]))
    (direction,) = body["directions"]
    assert (direction["direction"], direction["frames_per_second"]) == ("forward", None)
    assert (direction["step"], direction["bursts"], direction["flow_start"], direction["background"]) == (None,) * 4
    assert (body["connections"], body["delays"], body["waits"]["drain_ns"]) == (None, None, 10**9)
    assert body["echo"] == {
        "clients": 2,
        "window": 4,
        "count": 11,
        "destinations": 8,
        "pool": ["198.19.0.1/32", "198.19.128.0/24"],
        "closed_loop": {"pace_without_reply_ns": 10_000_000},
        "timeout_ns": 1_000_000_000,
    }


def test_a_constant_rate_is_that_of_all_clients() -> None:
    body = asked(campaign("router66"), RATE_FORM, frames_per_second=12_345)
    assert body["directions"][0]["frames_per_second"] == 12_345
    assert (body["echo"]["closed_loop"], body["echo"]["pool"]) == (None, None)


def test_clients_and_destinations_are_hosts_in_turn_whatever_the_file_says_of_other_frames() -> None:
    foreground = asked(campaign("siit64"))["directions"][0]["foreground"]
    assert (foreground["source_ports"], foreground["destination_ports"]) == (None, None)
    source, destination = foreground["source"], foreground["destination"]
    assert (source["address"], source["mode"], source["minimum"], source["maximum"]) == (
        "2001:2::2",
        "increasing",
        2,
        9,
    )
    assert (destination["address"], destination["mode"], destination["maximum"]) == ("198.19.0.2", "increasing", 65)
    assert (foreground["frame_octets"], foreground["hop_limit_decrement"]) == (122, 1)
    assert foreground["translation"]["prefix"] == "2001:2:0:6400::/96"


def test_one_host_stays_as_it_is() -> None:
    foreground = asked(campaign("router44"))["directions"][0]["foreground"]
    assert foreground["source"]["mode"] == "fixed"
    assert foreground["frame_octets"] == 102


def test_in_a_loop_back_public_addresses_are_those_of_the_clients() -> None:
    wanted = complete_campaign(
        campaign_from_dict(
            {"gateway": {"technology": "nat44"}, "testbed": {"kind": "loopback"}, "connections": {"count": [10]}}
        )
    )
    body = asked(wanted)
    assert body["echo"]["pool"] == ["198.18.0.2/32"]
    assert body["directions"][0]["foreground"]["expect"] == "as_sent"


def test_a_form_knows_its_requests() -> None:
    assert (FORM.requests, FORM.outstanding_max, FORM.is_closed_loop, RATE_FORM.is_closed_loop) == (176, 8, True, False)


RULES = Rules(lateness_max_ns=1_000_000, held_up_max_ns=None, loss_tolerance=Fraction(0))


def reasons(report: TrialReport, form: EchoForm = FORM) -> tuple[str, ...]:
    return judged(Evidence(order=order(form), report=report), RULES)[0].reasons


def test_loss_and_an_early_end_are_no_fault_of_the_tester() -> None:
    assert reasons(echo_facts.report(client(0, lost=3, late=2), client(1, requests=40))) == ()


def test_a_report_without_echo_is_a_fault_of_the_engine() -> None:
    report = changed(echo_facts.report(client(0), client(1)), echo=None)
    assert reasons(report) == ("the report says nothing about echo requests: a fault of the engine",)


def test_each_client_is_in_the_report() -> None:
    (reason,) = reasons(echo_facts.report(client(0)))
    assert reason == "the report is of 1 clients, not of 2: a fault of the engine"


@pytest.mark.parametrize("name", ["requests", "arrived", "replies", "late"])
def test_what_the_clients_count_is_what_the_ports_count(name: str) -> None:
    report = echo_facts.report(client(0), client(1))
    assert report.echo is not None
    first, second = report.echo.clients
    wrong = changed(report.echo, clients=(changed(first, **{name: getattr(first, name) + 1}), second))
    (reason,) = reasons(changed(report, echo=wrong))
    total = sums_of(wrong)[name]
    assert reason == f"the clients have {total} {name}, the ports {total - 1}: a fault of the engine"


def test_a_constant_rate_is_kept_by_requests_and_not_by_replies() -> None:
    clients = client(0, lost=10), client(1)
    assert reasons(echo_facts.report(*clients, frames_per_second=176), RATE_FORM) == ()
    assert reasons(echo_facts.report(*clients, frames_per_second=200), RATE_FORM) == (
        "forward: 176 frames were intended, load times duration is 200",
    )


def test_a_trial_without_any_request_says_nothing() -> None:
    report = echo_facts.report(client(0, requests=0), client(1, requests=0))
    assert reasons(report) == ("no echo request was sent",)


def test_a_worker_that_was_held_up_spoils_round_trips() -> None:
    report = changed(echo_facts.report(client(0), client(1)), worker_pause_max_ns=5_000_000)
    assert reasons(report) == ("a worker was held up for 5ms while frames waited for it, 1ms is allowed",)


def order(form: EchoForm = FORM) -> TrialOrder:
    step = Measure(frames_per_second=0, duration_ns=10**9, purpose="load", may_collapse=True)
    return TrialOrder(run=ORDER.run, trial_number=1, repetition=0, attempt=0, step=step, form=TrialForm(echo=form))


def record(report: TrialReport, **given: Any) -> TrialRecord:
    return record_of(report, order=order(), **given)


def test_loss_is_a_value_and_passes() -> None:
    trial = record(echo_facts.report(client(0, lost=80), client(1, lost=88)))
    assert judged(Evidence.of(trial), RULES) == (Validity(valid=True), Verdict(passed=True))
    assert is_judged_alike(trial, RULES, asks_for_pattern=True)


def test_a_collapse_fails_and_counts() -> None:
    trial = record(TrialReport.none(1), collapse="tayga was killed")
    validity, verdict = judged(Evidence.of(trial), RULES)
    assert validity.valid
    assert verdict == Verdict(passed=False, reasons=("the gateway collapsed: tayga was killed",))
    assert suspicion_of(Evidence.of(trial), verdict, RULES, asks_for_pattern=True) is None


def held_up(waited_ns: int, queue_frames: int = 0) -> HostFacts:
    thread = ThreadFacts(name="tayga", cpu=0, waited_ns=waited_ns)
    return blank(HostFacts, threads=(thread,), queue_frames=queue_frames)


def hold_up(held_up_ns: int) -> HoldUp:
    return HoldUp(begin_ns=0, end_ns=held_up_ns, held_up_ns=held_up_ns)


@pytest.mark.parametrize(
    ("lost", "waited_ns", "suspect"),
    [(0, 10**9, False), (3, 0, False), (3, 10_000_000, True), (20, 10_000_000, False), (20, 100_000_000, True)],
)
def test_loss_that_a_hold_up_of_the_host_explains_is_suspect(lost: int, waited_ns: int, *, suspect: bool) -> None:
    """At 176 requests/s, 10 ms hold up 1 request and the 8 that were under way, 100 ms hold up 17 and these."""
    trial = record(echo_facts.report(client(0, lost=lost), client(1)), host=held_up(waited_ns))
    found_suspicion = suspicion_of(Evidence.of(trial), Verdict(passed=True), RULES, asks_for_pattern=True)
    assert (found_suspicion is not None) is suspect


def test_a_hold_up_that_the_queue_outlasts_excuses_nothing() -> None:
    trial = record(echo_facts.report(client(0, lost=3), client(1)), host=held_up(10_000_000, queue_frames=1000))
    assert suspicion_of(Evidence.of(trial), Verdict(passed=True), RULES, asks_for_pattern=True) is None


def test_in_a_watched_host_hold_ups_that_the_queue_outlasts_excuse_nothing_together() -> None:
    watched = changed(held_up(100_000_000), hold_ups=tuple(hold_up(10_000_000) for _ in range(10)), queue_frames=4)
    trial = record(echo_facts.report(client(0, lost=3), client(1)), host=watched)
    assert suspicion_of(Evidence.of(trial), Verdict(passed=True), RULES, asks_for_pattern=True) is None
    long = changed(trial, host=changed(watched, hold_ups=(hold_up(50_000_000),)))
    said = suspicion_of(Evidence.of(long), Verdict(passed=True), RULES, asks_for_pattern=True)
    assert said is not None and "once, at 0s for 50ms, and no more echo requests" in said.reason


def test_a_record_is_read_from_the_journal_as_it_was_written() -> None:
    trial = record(echo_facts.report(client(0, lost=1), client(1)))
    assert TrialRecord.model_validate_json(trial.model_dump_json()) == trial
    answer = {"answer": "ok", "id": 4, **json.loads(trial.report.model_dump_json())}
    assert read_report(answer) == trial.report

"""A short trial finds out which of two gateways in a row damaged frames; the trial before stays as it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.simulated.state import SimulatedGateway
from tests.trial_facts import record_of
from tests.unit.calibration_evidence import throughput
from tests.unit.stateful_documents import document

from gatemark.campaign.engine_trial import Demands
from gatemark.campaign.events import DamageAsked, Event, TrialFinished
from gatemark.campaign.facts import TrialTally
from gatemark.campaign.inquiry import INQUIRIES_MAX, KEPT_FRAMES, MISSED, short_requests
from gatemark.campaign.journal import Journal
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.cli.trial import in_words
from gatemark.config.model import Campaign
from gatemark.config.recipe import Standing
from gatemark.damage.decide import INCOMPLETE
from gatemark.dut.base import Abilities, CapturedFrames
from gatemark.dut.recipe import load_recipe
from gatemark.engine.client import JsonObject, ProgressCallback
from gatemark.errors import TestBedError
from gatemark.preflight import judge_damages
from gatemark.report.damages import damages_section, damages_sentences
from gatemark.results.store import bad_frame_files
from gatemark.search.goal import Measure, bounds_of
from gatemark.stored import bad_frames
from gatemark.trial.cell import Run
from gatemark.trial.damage import Damage, DamagedFrame
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord

NatCampaign = Callable[..., Campaign]
TABLES = {"throughput": {"maximum": "1M"}}


class Damaging(SimulatedEngine):
    """Its gateway damages some frames of each phase that it is to."""

    def __init__(self, reasons: Mapping[tuple[str, str], int]) -> None:
        """`reasons`: frames by phase and kind of fault."""
        super().__init__(SimulatedDevice(capacity_forward=1_000_000))
        self.reasons = reasons
        self.missed_in_short = 0
        """Connections that are not established in short trials."""
        self.asked: list[Mapping[str, Any]] = []

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        self.asked.append(body)
        answer = super().trial(body, on_progress)
        phase = body["connections"]["phase"]
        counts = answer["directions"][0]["foreground"]
        for (where, reason), count in self.reasons.items():
            if where == phase:
                counts["faults"] = {**counts["faults"], reason: count}
                counts["received"] -= count
                counts["faulty"] += count
                answer["ports"]["right"]["received_by_queue"][0] -= count
        if phase == "establish" and body["kept_frames_max"] == KEPT_FRAMES:
            answer["connections"]["established"] -= self.missed_in_short
        return answer


class Middle:
    """The link between two gateways, of which nothing is captured."""

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.captures = self.lost = 0

    @property
    def standings(self) -> tuple[Standing, ...]:
        recipe = load_recipe("tayga-mapt")
        return recipe.standings({"left": recipe.side("left"), "right": recipe.side("right")})

    @contextlib.contextmanager
    def captured(self) -> Iterator[Middle]:
        self.captures += 1
        if self.error:
            raise TestBedError(what=self.error, where="here", fix="nothing")
        yield self

    def frames(self) -> CapturedFrames:
        return CapturedFrames(links={"left": (), "middle": (), "right": ()}, lost=self.lost)


class Bed:
    """The test bed of the simulated gateway with a link between two gateways."""

    def __init__(self, gateway: SimulatedGateway, middle: Middle | None) -> None:
        self.gateway = gateway
        self.middle = middle

    @property
    def can(self) -> Abilities:
        return replace(self.gateway.can, middle=self.middle)


class Bench:
    """Trials of one campaign."""

    def __init__(self, campaign: Campaign, engine: Damaging, middle: Middle | None) -> None:
        self.events: list[Event] = []
        self.engine = engine
        self.cell = cells_of(campaign)[0]
        self.maker = TrialMaker(
            campaign=campaign, engine=engine, can=Bed(engine.gateway, middle).can, on_event=self.events.append
        )

    def order(self, number: int = 1, **changes: Any) -> TrialOrder:
        step = Measure(frames_per_second=20_000, duration_ns=10**9, purpose="search")
        return TrialOrder(
            run=Run(number=1, procedure="throughput", cell=self.cell),
            trial_number=number,
            repetition=0,
            attempt=0,
            step=replace(step, **changes),
            connections_per_second=10_000,
        )

    def make(self, number: int = 1) -> TrialRecord:
        demands = Demands(needs_link=False)
        order, bounds = self.order(number), bounds_of(())
        return self.maker.make(order, loss_tolerance=Fraction(0), bounds=bounds, demands=demands)


@pytest.fixture
def campaign(nat_campaign: NatCampaign) -> Campaign:
    return nat_campaign(throughput={"maximum": "1M"})


def test_a_kind_is_asked_for_once(campaign: Campaign) -> None:
    engine, middle = Damaging({("use", "hop_limit"): 30}), Middle()
    bench = Bench(campaign, engine, middle)
    record = bench.make()
    (damage,) = record.damages
    assert (damage.direction, damage.reason, damage.faulty, damage.again) == ("forward", "hop_limit", 30, 30)
    assert (damage.undecided, damage.why) == (30, "not all of these frames were kept")
    assert [event for event in bench.events if isinstance(event, DamageAsked)] == [DamageAsked(trial_number=1)]
    asked = [(body["trial_number"], body["kept_frames_max"]) for body in engine.asked]
    assert asked == [(16, 4), (17, 4), (30, KEPT_FRAMES), (31, KEPT_FRAMES)]
    assert bench.make(2).damages == ()
    assert middle.captures == 1
    engine.reasons = {("use", "hop_limit"): 30, ("use", "payload"): 3}
    assert [damage.reason for damage in bench.make(3).damages] == ["payload"]
    assert middle.captures == 2


def test_the_trial_before_stays_as_it_is(campaign: Campaign) -> None:
    reasons = {("use", "hop_limit"): 30}
    asked, alone = (Bench(campaign, Damaging(reasons), middle).make() for middle in (Middle(), None))
    changing = {"damages": (), "started_at": "", "seconds": 0.0}
    assert asked.damages and not alone.damages
    assert asked.model_copy(update=changing) == alone.model_copy(update=changing)
    assert TrialRecord.model_validate_json(asked.model_dump_json()) == asked
    assert "damages" not in alone.model_dump(mode="json")


def test_without_faults_nothing_is_captured(campaign: Campaign) -> None:
    middle = Middle()
    bench = Bench(campaign, Damaging({}), middle)
    assert bench.make().damages == ()
    assert (middle.captures, len(bench.engine.asked)) == (0, 2)


def test_phase_two_is_not_made_over_connections_that_are_missing(campaign: Campaign) -> None:
    engine = Damaging({("establish", "payload"): 7})
    bench = Bench(campaign, engine, Middle())
    record = bench.make()
    before = [body for body in engine.asked if body["kept_frames_max"] != KEPT_FRAMES]
    (damage,) = record.damages
    assert damage.faulty == 7 * len([body for body in before if body["connections"]["phase"] == "establish"])
    assert damage.again == 7
    (told,) = bench.maker.inquiries.told(record)
    assert told == f"forward foreground, fault payload: {damage.sentence}"


def test_a_short_trial_that_missed_connections_itself_is_made_again(campaign: Campaign) -> None:
    engine, middle = Damaging({("use", "hop_limit"): 30}), Middle()
    bench = Bench(campaign, engine, middle)
    engine.missed_in_short = 1
    (damage,) = bench.make().damages
    assert (damage.why, damage.again) == (MISSED, 0)
    engine.missed_in_short = 0
    (damage,) = bench.make(2).damages
    assert damage.again == 30
    assert (bench.make(3).damages, middle.captures) == ((), 2)


def test_a_short_trial_whose_capture_lost_frames_is_made_again(campaign: Campaign) -> None:
    engine, middle = Damaging({("use", "hop_limit"): 30}), Middle()
    bench = Bench(campaign, engine, middle)
    middle.lost = 1
    (damage,) = bench.make().damages
    assert (damage.why, damage.undecided) == (INCOMPLETE, 30)
    middle.lost = 0
    (damage,) = bench.make(2).damages
    assert damage.why != INCOMPLETE
    assert (bench.make(3).damages, middle.captures) == ((), 2)


def test_why_a_short_trial_failed_is_told(campaign: Campaign) -> None:
    middle = Middle("frames cannot be captured: no permission")
    bench = Bench(campaign, Damaging({("use", "hop_limit"): 1}), middle)
    record = bench.make()
    (damage,) = record.damages
    assert damage.told == (
        "forward foreground, 1 frame with fault hop_limit: it is not known which of the two gateways damaged them: the"
        " short trial to find out failed: frames cannot be captured: no permission"
    )
    state = ProgressState()
    state.update(TrialFinished(record=record, bounds=bounds_of(()), replayed=False))
    assert state.lines[-1] == f"    {damage.told}"


def test_there_are_no_more_short_trials_than_are_allowed(campaign: Campaign) -> None:
    engine, middle = Damaging({}), Middle()
    bench = Bench(campaign, engine, middle)
    reasons = ["hop_limit", "payload", "length", "vlan", "family", "mark", "fragment", "udp_checksum", "headers"]
    for number, reason in enumerate(reasons, start=1):
        engine.reasons = {("use", reason): 1}
        assert len(bench.make(number).damages) == (number <= INQUIRIES_MAX)
    assert middle.captures == INQUIRIES_MAX == len(reasons) - 1


def test_what_the_journal_has_answered_is_not_asked_again(campaign: Campaign) -> None:
    reasons = {("use", "hop_limit"): 1}
    record = Bench(campaign, Damaging(reasons), Middle()).make()
    middle = Middle()
    bench = Bench(campaign, Damaging(reasons), middle)
    bench.maker.inquiries.note(record)
    assert bench.make(2).damages == ()
    assert middle.captures == 0


@pytest.mark.parametrize(
    ("changes", "phases"),
    [
        ({}, [("establish", 500), ("use", 500)]),
        ({"frames_per_second": 100}, [("establish", 500), ("use", 100)]),
        ({"connections": 2000, "alpha": Fraction(1)}, [("establish", 500), ("use", 500)]),
        ({"connections": 30, "tears_down": True}, [("establish", 500)]),
    ],
)
def test_a_short_trial_is_short(campaign: Campaign, changes: dict[str, Any], phases: list[tuple[str, int]]) -> None:
    bench = Bench(campaign, Damaging({}), Middle())
    bodies: list[Any] = list(short_requests(campaign, bench.order(3, **changes)))
    assert [(body["connections"]["phase"], body["directions"][0]["frames_per_second"]) for body in bodies] == phases
    assert [body["trial_number"] for body in bodies] == [62, 63][: len(phases)]
    assert all(body["connections"]["count"] <= 500 and body["duration_ns"] <= 2 * 10**9 for body in bodies)


class TestPublished:
    def damaged(self) -> TrialRecord:
        octets = {"entered": "45aa", "middle": "60bb", "arrived": "45cc"}
        damage = Damage(
            direction="forward",
            traffic_class="foreground",
            reason="hop_limit",
            faulty=30,
            again=2,
            provider=2,
            frames=(DamagedFrame(**octets, by="provider"), DamagedFrame(**{**octets, "middle": ""}, by="provider")),
        )
        return record_of(damages=(damage,))

    def test_the_run_the_report_and_the_terminal_tell_it(self) -> None:
        (published,) = TrialTally([self.damaged()]).damages
        assert (published.trial, published.reason, published.provider, published.customer) == (1, "hop_limit", 2, 0)
        run = throughput(25_000)
        assert "damages" not in run.model_dump()
        whole = document([run.model_copy(update={"damages": (published,)})])
        assert damages_section(whole).tables[0].rows[0][3:5] == ("hop_limit", "30")
        (sentence,) = damages_sentences(whole)
        assert sentence == (
            "run 1: forward foreground, fault hop_limit: damaged in the provider's gateway: still right on the link"
            " between both, all 2 frames of a short trial made to find out"
        )
        assert damages_section(document([run])).tables == ()

    def test_the_frames_are_kept_as_they_were_on_each_link(self) -> None:
        kept = bad_frames(self.damaged())
        assert kept == {
            ("forward-foreground-entered", "hop_limit"): [b"\x45\xaa"] * 2,
            ("forward-foreground-middle", "hop_limit"): [b"\x60\xbb"],
            ("forward-foreground-arrived", "hop_limit"): [b"\x45\xcc"] * 2,
        }
        assert "trial-000001-forward-foreground-middle-hop_limit.pcap" in bad_frame_files(1, kept)

    def test_doctor_tells_it(self) -> None:
        (finding,) = judge_damages(self.damaged())
        assert finding.status == "failed"
        assert "damaged in the provider's gateway" in finding.observed
        assert list(judge_damages(record_of())) == []

    def test_one_trial_tells_it(self) -> None:
        assert in_words(self.damaged()).splitlines()[-2:] == [
            "which gateway damaged frames:",
            "  forward foreground, 30 frames with fault hop_limit: damaged in the provider's gateway: still right on"
            " the link between both, all 2 frames of a short trial made to find out",
        ]


def test_a_campaign_that_ends_in_test_phase_one_says_which_gateway_it_was(campaign: Campaign, tmp_path: Path) -> None:
    engine = Damaging({("establish", "payload"): 7})
    bed = Bed(engine.gateway, Middle("not here"))
    with Journal(tmp_path / "trials.jsonl") as journal, pytest.raises(TestBedError) as caught:
        run_campaign(campaign, plan_of(campaign), engine, journal, can=bed.can)
    said = (
        "forward foreground, fault payload: it is not known which of the two gateways damaged them: the short trial to"
        " find out failed:"
    )
    assert f"{said} not here" in str(caught.value)
    again = Bed(engine.gateway, middle := Middle())
    with Journal(tmp_path / "trials.jsonl") as journal, pytest.raises(TestBedError) as caught:
        run_campaign(campaign, plan_of(campaign), engine, journal, can=again.can)
    assert f"{said} not here" in str(caught.value)
    assert middle.captures == 0  # the journal has the answer

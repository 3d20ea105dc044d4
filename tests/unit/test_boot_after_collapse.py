"""A gateway that stops working in a trial: its host is booted, and the trial counts neither way."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedGateway
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment
from tests.unit.collapsing_gateways import CAPACITY, COLLAPSE, LOST, Killing, campaign, loads, run

from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.events import Event, HostBooting
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.causes.judgement import is_judged_alike
from gatemark.errors import GatewayCollapsed, HostBootError, HostConnectionError, TestBedError
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.search.goal import Measure, bounds_of
from gatemark.session import measure
from gatemark.trial.form import TrialForm
from gatemark.trial.judgement import Rules
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord

pytestmark = pytest.mark.usefixtures("plots_not_rendered")


@pytest.mark.parametrize("stateful", [False, True])
def test_the_trial_counts_neither_way_and_the_search_goes_on(tmp_path: Path, stateful: bool) -> None:
    """A stateful gateway dies in test phase 1 of it: no frame of the load was offered."""
    wanted, per_trial = campaign(stateful=stateful), 16 if stateful else 1
    run(tmp_path / "calm", wanted, Killing((), per_trial=per_trial))
    calm = read_journal(tmp_path / "calm")
    engine, events = Killing((1, 3), per_trial=per_trial), list[Event]()
    run(tmp_path / "j", wanted, engine, events)
    records = read_journal(tmp_path / "j")
    assert loads(records) == loads(calm)
    assert len(records) == len(calm) + 2
    booted = [record for record in records if record.boot is not None]
    assert [record.order.trial_number for record in booted] == [1, 3]
    told = [(event.trial_number, event.why) for event in events if isinstance(event, HostBooting)]
    assert told == [(1, "the gateway collapsed: it is gone"), (3, "the gateway collapsed: it is gone")]
    assert engine.mortal.boots == 2
    assert engine.mortal.restarts == 0
    for record in booted:
        assert record.validity.reasons == ("the gateway collapsed: it is gone; its host was booted",)
        assert record.verdict is None
        assert record.report.directions == ()
        again = records[record.order.trial_number]
        assert again.order.step == record.order.step
        assert again.order.attempt == record.order.attempt + 1


def test_without_the_key_it_is_an_error(tmp_path: Path) -> None:
    engine = Killing((2,))
    with pytest.raises(TestBedError, match="it is gone"):
        run(tmp_path / "j", campaign(boots=False), engine)
    assert engine.mortal.boots == 0
    assert len(read_journal(tmp_path / "j")) == 1


def test_a_load_at_which_it_always_collapses_ends_the_campaign(tmp_path: Path) -> None:
    """Nor does the report blame the Tester, and a resumed run may try once more."""
    wanted, engine = campaign(), Killing(range(2, 100))
    with pytest.raises(TestBedError, match="it is gone"):
        run(tmp_path / "j", wanted, engine)
    assert engine.mortal.boots == 3
    assert [record.boot is not None for record in read_journal(tmp_path / "j")] == [False, True, True, True]
    engine = Killing((5,))
    with pytest.raises(TestBedError, match="it is gone"):
        run(tmp_path / "j", wanted, engine)
    assert engine.mortal.boots == 0
    run(tmp_path / "j", wanted, Killing(()))
    assert all(record.verdict is not None for record in read_journal(tmp_path / "j")[4:])


def test_three_boots_are_allowed_at_each_load(tmp_path: Path) -> None:
    engine = Killing((1, 2, 3, 5, 6, 7))
    run(tmp_path / "j", campaign(), engine)
    assert engine.mortal.boots == 6


def test_a_line_that_makes_a_failure_of_it_is_refused(tmp_path: Path) -> None:
    wanted = campaign()
    run(tmp_path / "j", wanted, Killing((2,)))
    record = next(record for record in read_journal(tmp_path / "j") if record.boot is not None)
    rules = Rules.of(wanted.validity, Fraction(0))
    assert is_judged_alike(record, rules, asks_for_pattern=True)
    other = next(record for record in read_journal(tmp_path / "j") if record.verdict is not None)
    forged = other.model_copy(update={"boot": record.boot})
    assert not is_judged_alike(forged, rules, asks_for_pattern=True)


@pytest.mark.parametrize("way", ["power_cycle", "reboot"])
def test_a_host_that_no_command_reaches_is_booted_by_its_power(tmp_path: Path, way: str) -> None:
    engine = Killing((2,), dies_of=LOST)
    if way == "reboot":
        with pytest.raises(HostConnectionError, match="no route"):
            run(tmp_path / "j", campaign(), engine)
        assert engine.mortal.boots == 0
        return
    run(tmp_path / "j", campaign(power_cycle="ipmitool"), engine)
    (record,) = (record for record in read_journal(tmp_path / "j") if record.boot is not None)
    assert record.validity.reasons == ("no command reached the gateway's host: no route; its host was booted",)


def test_a_boot_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    engine = Killing((2,))
    engine.mortal.boots_fail = True
    with pytest.raises(HostBootError, match="did not boot"):
        run(tmp_path / "j", campaign(), engine)
    assert engine.mortal.boots == 1
    assert len(read_journal(tmp_path / "j")) == 1


def test_a_boot_that_empties_the_table_and_fails_is_no_collapse(tmp_path: Path) -> None:
    engine = Killing((), per_trial=16)
    engine.mortal.boots_fail = True
    engine.mortal.dead = COLLAPSE
    with pytest.raises(HostBootError):
        run(tmp_path / "j", campaign(stateful=True, occasion="trial"), engine)
    assert engine.mortal.boots == 1


def test_a_collapse_is_the_answer_while_the_capacity_is_measured(tmp_path: Path) -> None:
    """Its host is booted in place of a restart, and the report tells it."""
    beds: list[SimulatedTestBed] = []
    device = SimulatedDevice(capacity_forward=10**6, collapses_beyond=250)
    wanted = campaign(stateful=True, tables=CAPACITY)
    result = measure(wanted, output=tmp_path / "out", equipment=simulated_equipment(device, beds=beds))
    (capacity,) = result.runs
    assert isinstance(capacity, CapacityResult)
    assert {repetition.overflow for repetition in capacity.repetitions} == {"collapsed"}
    assert all(240 <= (repetition.lower_bound or 0) <= 250 for repetition in capacity.repetitions)
    records = read_journal(tmp_path / "out" / "trials.jsonl")
    collapsed = [record for record in records if record.connections and record.connections.collapse]
    assert all(record.verdict is not None and not record.verdict.passed for record in collapsed)
    assert [record.boot is not None for record in records] == [record in collapsed for record in records]
    assert beds[-1].gateway.boots == len(collapsed) > 0
    assert beds[-1].gateway.restarts == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for record in collapsed:
        assert record.boot is not None
        assert record.boot.began_at in page
    assert "When did the gateway stop working?" in page


def test_while_the_capacity_is_measured_a_lost_host_is_no_answer(tmp_path: Path) -> None:
    engine = Killing((2,), dies_of=LOST, per_trial=16)
    wanted = campaign(stateful=True, tables=CAPACITY, power_cycle="ipmitool")
    (result,) = run(tmp_path / "j", wanted, engine)
    assert isinstance(result, CapacityResult)
    assert {repetition.overflow for repetition in result.repetitions} == {None}
    (record,) = (record for record in read_journal(tmp_path / "j") if record.boot is not None)
    assert not record.validity.valid
    assert record.connections is None


@pytest.mark.parametrize("boots", [False, True])
def test_the_next_campaign_of_a_series_gets_a_gateway_that_works(tmp_path: Path, boots: bool) -> None:
    """Where a load always makes it collapse, the run ends; then it is started again or its host is booted."""
    beds: list[SimulatedTestBed] = []
    device = SimulatedDevice(capacity_forward=10**6, collapses_beyond=50)
    wanted = campaign(boots=boots, stateful=True)
    with pytest.raises(GatewayCollapsed, match="the gateway does not answer"):
        measure(wanted, output=tmp_path / "out", equipment=simulated_equipment(device, beds=beds))
    assert (beds[-1].gateway.boots, beds[-1].gateway.restarts) == ((4, 0) if boots else (0, 1))


def test_a_host_that_did_not_boot_is_not_booted_for_the_next_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots: list[SimulatedTestBed] = []

    def fail(self: SimulatedTestBed) -> None:
        boots.append(self)
        raise TestBedError(what="the host did not boot", where="boot", fix="")

    monkeypatch.setattr(SimulatedGateway, "boot", fail)
    device = SimulatedDevice(capacity_forward=10**6, collapses_beyond=50)
    with pytest.raises(GatewayCollapsed, match="did not boot"):
        measure(campaign(stateful=True), output=tmp_path / "out", equipment=simulated_equipment(device))
    assert len(boots) == 1


@pytest.mark.parametrize("resets", [False, True])
def test_a_gateway_that_does_not_come_back_from_a_reset_is_not_booted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resets: bool
) -> None:
    """The reset is what is measured: made again after a boot, it would look as if it had recovered."""
    engine, wanted = Killing(()), campaign()

    def die(*_: object, **__: object) -> None:
        engine.mortal.dead = COLLAPSE
        raise COLLAPSE

    monkeypatch.setattr(EngineTrials, "make", die)
    maker = TrialMaker(campaign=wanted, engine=engine, can=engine.gateway.can, on_event=lambda _: None)
    order = TrialOrder(
        run=plan_of(wanted).runs[0],
        trial_number=1,
        repetition=0,
        attempt=0,
        step=Measure(frames_per_second=1000, duration_ns=10**9, purpose="event"),
        form=TrialForm(reset_after_ns=10**8 if resets else None),
    )

    def make() -> TrialRecord:
        return maker.make(
            order, loss_tolerance=Fraction(0), bounds=bounds_of([]), demands=Demands(needs_link=False), may_boot=True
        )

    if resets:
        with pytest.raises(TestBedError, match="it is gone"):
            make()
    else:
        assert not make().validity.valid
    assert engine.mortal.boots == (not resets)


def test_progress_says_why() -> None:
    state = ProgressState(now=lambda: 5.0)
    state.update(HostBooting(trial_number=7, why="the gateway collapsed: it is gone"))
    assert state.lines[-1] == "  trial 7: the gateway collapsed: it is gone; its host is booted"
    assert state.waiting_words == "its host boots, 0:00 so far"

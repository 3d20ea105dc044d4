"""The gateway's Ethernet address changes, or it no longer answers for it: said, repeated, and no throughput of 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit.simulated_campaigns import nat44

from gatemark.campaign.events import AddressesAsked, Event, RunFinished, TrialProgress
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.answers import Link, Resolved
from gatemark.errors import EngineError, TestBedError

STATELESS: dict[str, Any] = {"gateway": {"technology": "router44"}}
THROUGHPUT: dict[str, Any] = {
    "throughput": {"maximum": "1M", "minimum": 1000, "resolution": 1000, "search_duration": "1s"}
}
LEFT_CHANGED = "the gateway's Ethernet address on the left changed from 02:00:00:00:01:01 to 02:00:00:00:02:01"
RIGHT_CHANGED = "the gateway's Ethernet address on the right changed from 02:00:00:00:01:02 to 02:00:00:00:02:02"
CHANGED = (f"test bed: {LEFT_CHANGED}", f"test bed: {RIGHT_CHANGED}")


def campaign(*, sizes: tuple[int, ...] = (64,), **tables: Any) -> Campaign:
    traffic = {"frame_sizes": {"family": "ipv4", "octets": list(sizes)}}
    document = {**nat44(), **STATELESS, "repetitions": 2, "traffic": traffic, **(tables or THROUGHPUT)}
    return complete_campaign(campaign_from_dict(document))


def measured(
    path: Path,
    engine: SimulatedEngine,
    wanted: Campaign | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
) -> tuple[Any, ...]:
    loaded = wanted or campaign()
    with Journal(path) as journal:
        return run_campaign(loaded, plan_of(loaded), engine, journal, on_event=on_event, can=engine.gateway.can)


def engine_of(**device: Any) -> SimulatedEngine:
    return SimulatedEngine(SimulatedDevice(**{"capacity_forward": 432_100, **device}))


def reasons_of_invalid(path: Path) -> list[tuple[int, tuple[str, ...]]]:
    records = read_journal(path)
    return [(record.order.trial_number, record.validity.reasons) for record in records if not record.validity.valid]


@pytest.mark.parametrize("number", [3, 20])
def test_a_new_address_is_said_and_the_trial_is_repeated(tmp_path: Path, number: int) -> None:
    (undisturbed,) = measured(tmp_path / "undisturbed", engine_of())
    (moved,) = measured(tmp_path / "moved", engine_of(moves_at_trials=(number,)))
    assert reasons_of_invalid(tmp_path / "moved") == [(number, CHANGED)]
    assert moved.repetitions == undisturbed.repetitions
    assert moved.limited_by == "gateway"


def test_a_stateful_trial_is_repeated_too(tmp_path: Path) -> None:
    loaded = complete_campaign(
        campaign_from_dict({**nat44(), "connections": {"count": 1000, "rate": "10k"}, **THROUGHPUT})
    )
    (undisturbed,) = measured(tmp_path / "undisturbed", engine_of(), loaded)
    (moved,) = measured(tmp_path / "moved", engine_of(moves_at_trials=(3,)), loaded)
    assert moved.repetitions == undisturbed.repetitions
    facts = read_journal(tmp_path / "moved")[2].connections
    assert facts is not None
    assert [attempt.validity.reasons for attempt in facts.phase_one] == [CHANGED, ()]


def test_a_change_while_frames_are_sent_is_said(tmp_path: Path) -> None:
    """Its first frames arrive, and the last ones do not."""
    engine, progressed = engine_of(), [0]

    def move(event: Event) -> None:
        if isinstance(event, TrialProgress):
            progressed[0] += 1
            if progressed[0] == 1:
                engine.move()

    measured(tmp_path / "j", engine, on_event=move)
    first = read_journal(tmp_path / "j")[0]
    assert 0 < first.report.directions[0].received < first.report.directions[0].offered
    assert reasons_of_invalid(tmp_path / "j") == [(1, CHANGED)]


def test_the_address_is_asked_again_before_each_run(tmp_path: Path) -> None:
    engine, events = engine_of(), list[Event]()
    loaded = campaign(sizes=(64, 128))

    def move(event: Event) -> None:
        events.append(event)
        if isinstance(event, RunFinished) and event.run.number == 1:
            engine.move()

    measured(tmp_path / "j", engine, loaded, on_event=move)
    assert reasons_of_invalid(tmp_path / "j") == []
    (asked,) = (event for event in events if isinstance(event, AddressesAsked))
    assert (asked.run.number, asked.news) == (2, (LEFT_CHANGED, RIGHT_CHANGED))
    state = ProgressState(expected_ns=(1, 1))
    state.update(asked)
    assert state.lines == [f"run 2 of 2: {LEFT_CHANGED}", f"run 2 of 2: {RIGHT_CHANGED}"]


def test_a_gateway_that_has_no_address_any_more_is_no_throughput_of_0(tmp_path: Path) -> None:
    with pytest.raises(TestBedError, match=r"198\.18\.0\.1 did not answer ARP on port simulated") as raised:
        measured(tmp_path / "j", engine_of(silent_from_trial=3))
    assert len(raised.value.problems) == 2  # one for each side
    (number, reasons), *_ = reasons_of_invalid(tmp_path / "j")
    assert (number, reasons[0]) == (
        3,
        "test bed: the gateway no longer answers for its address on the left: 198.18.0.1 did not answer ARP on port"
        " simulated:left",
    )
    (result,) = measured(tmp_path / "j", engine_of())  # its address is back
    assert result.limited_by == "gateway"


def test_a_link_that_goes_down_just_after_a_trial_is_told_instead_of_the_silence(tmp_path: Path) -> None:
    class Unplugged(SimulatedEngine):
        """Its report was written while the right link was still up."""

        def link(self) -> Link:
            answer = super().link()
            return {**answer, "right": {**answer["right"], "link_up": self.trials_made < 3}}

    with pytest.raises(TestBedError, match=r"^right port: the link went down and did not come back"):
        measured(tmp_path / "j", Unplugged(SimulatedDevice(capacity_forward=432_100, silent_from_trial=3)))
    assert reasons_of_invalid(tmp_path / "j")[0] == (
        3,
        ("test bed: right port: the link went down and did not come back",),
    )


def test_silence_before_a_run_is_said_and_no_error_as_long_as_frames_pass(tmp_path: Path) -> None:
    class Shy(SimulatedEngine):
        """Answers nobody after the first run."""

        asked = 0

        def resolve(self, body: Any) -> Resolved:
            self.asked += 1
            if self.asked > 2:
                raise EngineError(what="198.18.0.1 did not answer ARP on port simulated", where=body["side"], fix="")
            return super().resolve(body)

    events = list[Event]()
    engine = Shy(SimulatedDevice(capacity_forward=10**9))
    measured(tmp_path / "j", engine, campaign(sizes=(64, 128)), on_event=events.append)
    assert reasons_of_invalid(tmp_path / "j") == []
    (asked,) = (event for event in events if isinstance(event, AddressesAsked))
    assert asked.news[0] == (
        "the gateway no longer answers for its address on the left: 198.18.0.1 did not answer ARP on port simulated"
    )


def test_an_engine_that_dies_meanwhile_is_no_silent_gateway(tmp_path: Path) -> None:
    class Dying(SimulatedEngine):
        """Ends when it is asked for an address again."""

        dead = False

        def resolve(self, body: Any) -> Resolved:
            self.dead = self.trials_made > 0
            self._check()
            return super().resolve(body)

        def link(self) -> Link:
            self._check()
            return super().link()

        def _check(self) -> None:
            if self.dead:
                raise EngineError(what="it died", where="gatemark-engine", fix="")

    with pytest.raises(EngineError, match="it died"):
        measured(tmp_path / "j", Dying(SimulatedDevice(capacity_forward=0)))
    assert read_journal(tmp_path / "j") == ()


def test_a_static_address_is_never_asked_for(tmp_path: Path) -> None:
    static = {name: {**nat44()[name], "gateway_mac": "02:00:00:00:00:09"} for name in ("left", "right")}
    wanted = complete_campaign(campaign_from_dict({**nat44(), **STATELESS, **static, **THROUGHPUT}))
    (result,) = measured(tmp_path / "j", engine_of(capacity_forward=0), wanted)
    assert set(result.lower_bounds) == {0}
    assert reasons_of_invalid(tmp_path / "j") == []


def test_results_made_again_are_equal(tmp_path: Path) -> None:
    """From the whole journal, and from one that ends with the trial in which the address changed."""
    path = tmp_path / "j"
    whole = measured(path, engine_of(moves_at_trials=(3,)))
    lines = path.read_bytes().splitlines(keepends=True)
    replayed = engine_of()
    assert measured(path, replayed) == whole
    assert replayed.trials_made == 0
    path.write_bytes(b"".join(lines[:3]))
    assert measured(path, engine_of()) == whole

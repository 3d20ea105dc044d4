"""A gateway's host that boots by itself ends the measurement: what was set up there may be gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit import test_conformity
from tests.unit.border_relays import BorderRelay
from tests.unit.collapsing_gateways import DEVICE, Killing, Mortal, campaign, loads, run
from tests.unit.test_host_counters import reading

from gatemark.campaign.engine_trial import HostBoots
from gatemark.campaign.events import Event, HostBooting
from gatemark.dut.base import Abilities, HostReading, KernelCounts, Watch
from gatemark.engine.client import JsonObject, ProgressCallback
from gatemark.errors import HostBootedError


def in_boots(*boot_ids: str) -> HostReading:
    """A reading of hosts in these boots; an empty text is of one that does not tell."""
    return replace(reading({}, {}), counted=KernelCounts(counters={"ip.InReceives": 1}, boot_ids=boot_ids))


class Rebooting(Mortal):
    """Its host boots just before a reading that is `readings_left` away."""

    number = 0
    readings_left = 0

    @property
    def can(self) -> Abilities:
        return replace(super().can, host=self)

    def read(self) -> HostReading:
        self.readings_left -= 1
        self.number += self.readings_left == 0
        return in_boots(str(self.number))

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watch | None]:
        yield None

    def boot(self) -> None:
        super().boot()
        self.number += 1

    def restart(self) -> None:
        super().restart()
        self.number += 1


class Losing(Killing):
    """Its host boots in a trial (1 reading later) or behind it (2), by numbers of trials."""

    def __init__(self, boots: Mapping[int, int], deadly: tuple[int, ...] = ()) -> None:
        super().__init__(deadly)
        self.mortal = self.gateway = self.host = Rebooting(DEVICE)
        self._boots = boots

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        answer = super().trial(body, on_progress)
        self.host.readings_left = self._boots.get(body["trial_number"], 0)
        return answer


class LosingInExchange(SimulatedEngine):
    """A border relay whose host boots in the third exchange (1 reading later) or behind it (2)."""

    def __init__(self, relay: BorderRelay, later: int) -> None:
        device = SimulatedDevice(capacity_forward=1, exchange=relay.exchange)
        self.host = Rebooting(device)
        super().__init__(device, gateway=self.host)
        self._later = later
        self._exchanges = 0

    def exchange(self, body: Mapping[str, Any]) -> JsonObject:
        self._exchanges += 1
        if self._exchanges == 3:
            self.host.readings_left = self._later
        return super().exchange(body)


@pytest.mark.parametrize(
    ("later", "when", "kept"), [(1, "in trial 3", 2), (2, "before frames of trial 4 were sent", 3)]
)
def test_the_measurement_ends_and_keeps_no_trial_of_it(tmp_path: Path, later: int, when: str, kept: int) -> None:
    wanted = campaign(boots=False)
    with pytest.raises(HostBootedError, match=f"the gateway's host booted by itself {when}"):
        run(tmp_path / "j", wanted, Losing({3: later}))
    assert len(read_journal(tmp_path / "j")) == kept
    run(tmp_path / "j", wanted, Losing({}))
    run(tmp_path / "calm", wanted, Losing({}))
    assert loads(read_journal(tmp_path / "j")) == loads(read_journal(tmp_path / "calm"))


@pytest.mark.parametrize(
    ("later", "when", "kept"), [(1, "in trial 3", 2), (2, "before packets of trial 4 were sent", 3)]
)
def test_no_case_of_conformity_is_judged_behind_a_boot(tmp_path: Path, later: int, when: str, kept: int) -> None:
    wanted = test_conformity.campaign()
    assert wanted.map is not None
    relay = BorderRelay(wanted.map.whole_rules)
    with pytest.raises(HostBootedError, match=f"the gateway's host booted by itself {when}"):
        run(tmp_path / "j", wanted, LosingInExchange(relay, later))
    assert len(read_journal(tmp_path / "j")) == kept


@pytest.mark.parametrize("later", [1, 2])
def test_it_is_booted_once_more_where_that_is_asked(tmp_path: Path, later: int) -> None:
    events = list[Event]()
    run(tmp_path / "j", campaign(), Losing({3: later}), events)
    (why,) = (event.why for event in events if isinstance(event, HostBooting))
    assert why is not None and why.startswith("the gateway's host booted by itself")
    (record,) = (record for record in read_journal(tmp_path / "j") if record.boot is not None)
    assert record.verdict is None and not record.validity.valid


def test_boots_that_are_asked_for_are_none_by_itself(tmp_path: Path) -> None:
    """Before each trial, and after a collapse."""
    engine = Losing({}, deadly=(3,))
    run(tmp_path / "collapse", campaign(), engine)
    assert engine.mortal.boots == 1
    engine = Losing({})
    run(tmp_path / "trial", campaign(occasion="trial"), engine)
    assert engine.mortal.boots > 2


def test_each_host_is_compared_with_itself_as_far_as_it_tells() -> None:
    boots = HostBoots()
    for told in (None, in_boots("a", "b"), in_boots("", "b"), in_boots(""), in_boots("a", ""), in_boots("a", "b")):
        boots.check(told, "now")
    with pytest.raises(HostBootedError, match=r"the other gateway's host booted by itself now"):
        boots.check(in_boots("a", "c"), "now")
    boots.check(in_boots("a", "c"), "later")
    boots.forget()
    boots.check(in_boots("d", "e"), "later")
    with pytest.raises(HostBootedError, match=r"the gateway's host booted"):
        boots.check(in_boots("f", "e"), "later")

"""Boots of the gateway's host: waited for, before what the campaign says, and never taken for the old system."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.simulated.equipment import simulated_equipment

from gatemark import tester
from gatemark.campaign import reach
from gatemark.campaign.events import Event, HostBooting, TableClearing
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.reach import GatewayAddresses
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayControlModel, GatewayTableModel
from gatemark.dut import boot
from gatemark.dut.boot import HostBoot
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.shell import Shell, shell_at
from gatemark.engine.answers import Link, Opened, Resolved
from gatemark.errors import ConfigError, EngineError, HostConnectionError, TestBedError
from gatemark.trial.request import resolve_requests


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(reach, "POLL_S", 0.0)


class Host:
    """A host made of files: which boot it is, whether it is healthy, and what was done to it."""

    def __init__(self, folder: Path, shell: Shell, **more: Any) -> None:
        self.folder = folder
        (folder / "boot_id").write_text("first")
        (folder / "healthy").touch()
        after = f"sleep 0.2; echo second > {folder}/boot_id; sleep 0.2; touch {folder}/healthy"
        document = {
            "boot": "column",
            "reboot": f"echo reboot >> {folder}/log; rm {folder}/healthy; ({after}) > /dev/null 2>&1 &",
            "boot_id": f"cat {folder}/boot_id",
            "after_boot": f"echo after_boot >> {folder}/log",
            "health": f"test -e {folder}/healthy",
            "set": {
                "cores": {"apply": f"echo cores >> {folder}/log {{value}}", "read": "echo 4", "at_boot": True},
                "rss": {"apply": f"echo rss >> {folder}/log {{value}}"},
            },
            "limits": {"boot": "60s"},
            **more,
        }
        commands = GatewayControlModel.model_validate(document)
        settings = GatewaySettings(table=GatewayTableModel(), named={"cores": 4, "rss": "sd"})
        self.control = GatewayControl(shell, commands, where="gateway.control", settings=settings)
        self.booter = HostBoot(shell, commands, self.control)

    def log(self) -> list[str]:
        """What was done, in order."""
        return (self.folder / "log").read_text().splitlines()


HERE = shell_at(None, ["sh", "-s"])


def test_a_boot_is_waited_for_and_what_it_forgets_is_done_again(tmp_path: Path) -> None:
    host = Host(tmp_path, HERE)
    host.booter.boot()
    assert (tmp_path / "boot_id").read_text() == "second\n"
    assert (tmp_path / "healthy").exists()
    assert host.log() == ["cores 4", "reboot", "after_boot", "rss sd"]
    assert [setting.read for setting in host.control.made] == ["4", None]


def test_power_is_cycled_from_here(tmp_path: Path) -> None:
    Host(
        tmp_path, HERE, reboot=[], power_cycle=f"echo cycle >> {tmp_path}/log; echo x > {tmp_path}/boot_id"
    ).booter.boot()
    assert (tmp_path / "log").read_text().splitlines() == ["cores 4", "cycle", "after_boot", "rss sd"]


def test_the_old_system_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    host = Host(tmp_path, HERE, reboot="true", limits={"boot": "1500ms"})
    with pytest.raises(TestBedError, match=r"did not boot within 1\.5 s: the boot has not changed") as caught:
        host.booter.boot()
    assert "gateway.control.limits.boot" in caught.value.fix


class Flaky(Shell):
    """Loses the connection in the command that reboots, and is not reached for a while after it."""

    def __init__(self, *, began: bool) -> None:
        super().__init__(lambda: ["sh", "-s"])
        self._began = began
        self.gone = 0

    def _run(self, script: str, where: str, fix: str, seconds_max: float) -> str:
        if where.endswith("reboot"):
            if self._began:
                super()._run(script, where, fix, seconds_max)
            self.gone = 3
            raise HostConnectionError(what="lost", where=where, fix="", began=self._began)
        if self.gone:
            self.gone -= 1
            raise HostConnectionError(what="refused", where=where, fix="", began=False)
        return super()._run(script, where, fix, seconds_max)


def test_a_reboot_may_take_its_connection_with_it(tmp_path: Path) -> None:
    """And the reboot, whose end nobody saw, runs no longer: it spoils no trial."""
    shell = Flaky(began=True)
    Host(tmp_path, shell).booter.boot()
    assert shell.gone == 0
    assert shell.ran_since(time.monotonic_ns()) == ()


def test_a_reboot_that_never_began_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostConnectionError, match="lost"):
        Host(tmp_path, Flaky(began=False)).booter.boot()


def test_a_host_that_hangs_is_booted_by_its_power(tmp_path: Path) -> None:
    """It cannot say which boot it is; that of the last boot is remembered."""
    boot_id = f"test ! -e {tmp_path}/hangs && cat {tmp_path}/boot_id"
    cycle = (
        f"echo cycle >> {tmp_path}/log; rm -f {tmp_path}/hangs; ("
        f"sleep 0.3; echo $(wc -l < {tmp_path}/log) > {tmp_path}/boot_id) > /dev/null 2>&1 &"
    )
    host = Host(tmp_path, HERE, reboot=[], power_cycle=cycle, boot_id=boot_id)
    host.booter.boot()
    before = (tmp_path / "boot_id").read_text()
    (tmp_path / "hangs").touch()
    (tmp_path / "log").unlink()
    (tmp_path / "log").write_text("more\n" * 7)
    host.booter.boot()
    assert (tmp_path / "boot_id").read_text() != before
    assert host.log()[7:] == ["cycle", "after_boot", "rss sd"]  # not the settings that only a host that answers takes


@pytest.mark.parametrize("way", ["reboot", "power_cycle"])
def test_a_host_that_hangs_is_not_booted_if_nothing_would_tell(tmp_path: Path, way: str) -> None:
    """By `reboot`, which runs there; or for the first time, when nobody knows which boot it is."""
    ways = {"reboot": [], "power_cycle": [], way: f"echo {way} >> {tmp_path}/log; echo x > {tmp_path}/boot_id"}
    boot_id = f"test ! -e {tmp_path}/hangs && cat {tmp_path}/boot_id"
    host = Host(tmp_path, HERE, **ways, boot_id=boot_id)
    if way == "reboot":
        host.booter.boot()
        (tmp_path / "log").unlink()
    (tmp_path / "hangs").touch()
    with pytest.raises(TestBedError, match="failed with status 1"):
        host.booter.boot()
    assert not (tmp_path / "log").exists()


def test_a_host_that_booted_by_itself_is_not_taken_for_one_that_was_booted(tmp_path: Path) -> None:
    """It lost the connection by that: the first question fails, and the last boot is not the one before."""

    class Stale(Shell):
        lost = False

        def disconnect(self) -> None:
            self.lost = False

        def _run(self, script: str, where: str, fix: str, seconds_max: float) -> str:
            if self.lost:
                raise HostConnectionError(what="lost", where=where, fix="", began=False)
            return super()._run(script, where, fix, seconds_max)

    shell = Stale(lambda: ["sh", "-s"])
    cycle = f"(sleep 0.2; echo $(date +%N)x > {tmp_path}/boot_id) > /dev/null 2>&1 &"
    host = Host(tmp_path, shell, reboot=[], power_cycle=cycle)
    host.booter.boot()
    (tmp_path / "boot_id").write_text("by itself")
    shell.lost = True
    host.booter.boot()
    assert (tmp_path / "boot_id").read_text() != "by itself"


def document(occasion: str, *, stateful: bool = False, **more: Any) -> dict[str, Any]:
    control = {"host": "gw", "boot": occasion, "reboot": "reboot", **more}
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    gateway: dict[str, Any] = {"technology": "router44", "control": control}
    if stateful:
        gateway |= {"technology": "nat44", "pool": ["198.19.0.1"]}
    return {
        "repetitions": 3,
        "gateway": gateway,
        "testbed": {"kind": "ports"},
        **{
            name: {"port": f"pci:{name}", "ipv4": {"address": address, "gateway": router}}
            for name, (address, router) in sides.items()
        },
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "trial": {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"},
        "throughput": {"maximum": 8000, "minimum": 1000, "resolution": 1000, "search_duration": "1s"},
        **({"connections": {"count": [100], "rate": 1000}} if stateful else {}),
    }


def measured(path: Path, wanted: Campaign, engine: SimulatedEngine) -> list[Event]:
    events: list[Event] = []
    with Journal(path) as journal:
        run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can, on_event=events.append)
    return events


@pytest.mark.parametrize("occasion", ["never", "column", "repetition", "trial"])
def test_a_host_boots_before_what_the_campaign_says(tmp_path: Path, occasion: str) -> None:
    """The test bed boots it before the first trial."""
    more: dict[str, Any] = {"reboot": []} if occasion == "never" else {}
    engine = SimulatedEngine(SimulatedDevice(capacity_forward=5000))
    events = measured(tmp_path / "j", complete_campaign(campaign_from_dict(document(occasion, **more))), engine)
    trials = len(read_journal(tmp_path / "j"))
    wanted = {"never": 0, "column": 0, "repetition": 2, "trial": trials - 1}[occasion]
    assert engine.gateway.boots == wanted
    assert sum(isinstance(event, HostBooting) for event in events) == wanted
    assert all(record.validity.valid for record in read_journal(tmp_path / "j"))


def test_a_campaign_that_goes_on_boots_only_for_what_it_makes(tmp_path: Path) -> None:
    wanted = complete_campaign(campaign_from_dict(document("repetition")))
    whole = tmp_path / "whole"
    measured(whole, wanted, SimulatedEngine(SimulatedDevice(capacity_forward=5000)))
    lines = whole.read_text().splitlines(keepends=True)
    first_of_last = next(number for number, record in enumerate(read_journal(whole)) if record.order.repetition == 2)
    for kept, boots in ((len(lines), 0), (first_of_last, 0), (first_of_last - 1, 1), (first_of_last + 1, 0)):
        part = tmp_path / f"part-{kept}"
        part.write_text("".join(lines[:kept]))
        engine = SimulatedEngine(SimulatedDevice(capacity_forward=5000))
        measured(part, wanted, engine)
        assert engine.gateway.boots == boots


def test_a_boot_before_each_trial_empties_the_table(tmp_path: Path) -> None:
    engine = SimulatedEngine(SimulatedDevice(capacity_forward=5000))
    events = measured(tmp_path / "j", complete_campaign(campaign_from_dict(document("trial", stateful=True))), engine)
    attempts = [len(record.connections.phase_one) for record in read_journal(tmp_path / "j") if record.connections]
    assert engine.gateway.boots == sum(attempts) > 3
    assert engine.gateway.cleared == 0
    assert not any(isinstance(event, TableClearing) for event in events)


class FlappingEngine(SimulatedEngine):
    """Its links come up late, and the gateway answers later still."""

    def __init__(self, *, down: int, silent: int) -> None:
        super().__init__(SimulatedDevice(capacity_forward=1))
        self.down, self.silent = down, silent

    def link(self) -> Link:
        self.down -= 1
        answer = super().link()
        return answer if self.down < 0 else {**answer, "right": {**answer["right"], "link_up": False}}

    def resolve(self, body: Any) -> Resolved:
        self.silent -= 1
        if self.silent >= 0:
            raise EngineError(what="the gateway does not answer", where="left", fix="")
        return super().resolve(body)


def test_links_that_are_down_after_a_boot_are_waited_for() -> None:
    wanted = complete_campaign(campaign_from_dict(document("column")))
    engine = FlappingEngine(down=120, silent=7)
    GatewayAddresses(engine, resolve_requests(wanted)).reach(wait_s=60)
    assert engine.down < 0 > engine.silent
    with pytest.raises(TestBedError, match="right port: the link did not come up again"):
        GatewayAddresses(FlappingEngine(down=10**9, silent=0), resolve_requests(wanted)).reach(wait_s=0.05)
    with pytest.raises(EngineError, match="does not answer"):
        GatewayAddresses(FlappingEngine(down=0, silent=10**9), resolve_requests(wanted)).reach(wait_s=0.05)


class LateEngine(SimulatedEngine):
    """Cannot open its ports, for a reason."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(SimulatedDevice(capacity_forward=1))
        self.reason = reason

    def open(self, body: Any) -> Opened:
        if self.reason is not None:
            raise EngineError(what=self.reason, where="left port", fix="")
        return super().open(body)


@pytest.mark.parametrize(
    ("occasion", "reasons", "error"),
    [
        ("column", ["no link", "no link within 10000 ms"], None),
        ("column", ["no link", "no such device"], "no such device"),
        ("never", ["no link"], "no link"),
    ],
)
def test_ports_without_link_are_opened_again_after_a_boot(
    occasion: str, reasons: list[str], error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time by another engine, because one opens its ports once."""
    monkeypatch.setattr(tester, "POLL_S", 0.0)
    more: dict[str, Any] = {"reboot": []} if occasion == "never" else {}
    wanted = campaign_from_dict(document(occasion, **more))
    started: list[LateEngine] = []
    ended: list[LateEngine] = []
    left: list[str | None] = [*reasons, None]

    @contextlib.contextmanager
    def start(_netns: str | None, _log: Path | None) -> Iterator[LateEngine]:
        engine = LateEngine(left.pop(0))
        started.append(engine)
        yield engine
        ended.append(engine)

    equipment = replace(simulated_equipment(SimulatedDevice(capacity_forward=1)), start_engine=start)
    bed, complete = tester.prepare(wanted, equipment)
    if error is not None:
        with pytest.raises(EngineError, match=error), tester.open_tester(complete, bed, equipment):
            pass
        return
    with tester.open_tester(complete, bed, equipment) as opened:
        assert opened.engine is started[-1]
        assert ended == started[:-1]
    assert ended == started
    assert len(started) == 3


def test_without_a_boot_nothing_is_waited_for() -> None:
    engine = FlappingEngine(down=10**9, silent=1)
    never = complete_campaign(campaign_from_dict(document("never", reboot=[])))
    with pytest.raises(EngineError, match="does not answer"):
        GatewayAddresses(engine, resolve_requests(never)).reach()
    assert engine.down == 10**9


def test_progress_says_that_the_host_boots() -> None:
    state = ProgressState(now=lambda: 5.0)
    state.update(HostBooting(trial_number=1))
    assert state.waiting_words == "its host boots, 0:00 so far"


@pytest.mark.parametrize(
    ("occasion", "more", "key", "words"),
    [
        ("never", {}, "reboot", "nothing boots the host"),
        ("never", {"reboot": [], "after_boot": "true"}, "after_boot", "nothing boots the host"),
        ("never", {"reboot": [], "boot_id": "true"}, "boot_id", "nothing boots the host"),
        ("column", {"reboot": []}, "boot", "needs a command"),
        ("column", {"power_cycle": "ipmitool"}, "boot", "has two ways"),
        ("column", {"host": None}, "boot_id", "on this machine"),
        ("trial", {"clear_state": "true"}, "clear_state", "with a boot in its place"),
        (
            "never",
            {"reboot": [], "boot_after_collapse": True, "health": "true"},
            "boot_after_collapse",
            "before and after that boot",
        ),
        ("column", {"boot_after_collapse": True}, "boot_after_collapse", "has no effect"),
    ],
)
def test_boots_that_make_no_sense_are_refused(occasion: str, more: dict[str, Any], key: str, words: str) -> None:
    wanted = document(occasion, stateful=key == "clear_state", **more)
    wanted["gateway"]["control"] = {
        name: value for name, value in wanted["gateway"]["control"].items() if value is not None
    }
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(wanted)
    (told,) = caught.value.problems
    assert told.where == f"campaign: gateway.control.{key}"
    assert words in told.what


def test_a_setting_at_boot_needs_a_boot() -> None:
    setting = {"cores": {"apply": "x {value}", "at_boot": True}}
    wanted = document("never", reboot=[], set=setting)
    wanted["gateway"]["settings"] = {"cores": 4}
    with pytest.raises(ConfigError, match=r"set\.cores\.at_boot: applies only with gateway\.control\.boot = "):
        campaign_from_dict(wanted)

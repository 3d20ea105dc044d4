"""An opened Tester: test bed made, engine started in it, ports open, gateway resolved; all undone on leaving."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from gatemark.campaign.reach import POLL_S, GatewayAddresses
from gatemark.campaign.tester_memory import available_bytes, check_memory, most_connections
from gatemark.config.model import Campaign, CampaignFile
from gatemark.dut.base import TestBed
from gatemark.dut.cpu_claims import claimed_cpus
from gatemark.dut.machine import unthrottled_real_time
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import keeping_off
from gatemark.engine.answers import Hello, Opened
from gatemark.engine.client import Engine
from gatemark.engine.process import engine_sha256, start_engine
from gatemark.errors import (
    EngineError,
    GatewayCollapsed,
    HostBootError,
    Interrupted,
    OutsideGatewayError,
    TestBedError,
)
from gatemark.results import provenance, this_machine
from gatemark.technology import SIDES
from gatemark.trial.request import open_request, resolve_requests

NO_LINK = "no link"
"""What the engine says of a port that cannot be opened because its other end is down."""


@contextlib.contextmanager
def _start_engine(netns: str | None, log: Path | None) -> Iterator[Engine]:
    """Start the engine on a machine that does not stop its workers."""
    with unthrottled_real_time(), start_engine(netns=netns, log=log) as engine:
        yield engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """How a session gets its test bed and its engine; tests pass others."""

    open_testbed: Callable[[Campaign], TestBed] = open_testbed
    start_engine: Callable[[str | None, Path | None], contextlib.AbstractContextManager[Engine]] = field(
        default=lambda netns, log: _start_engine(netns, log)
    )
    engine_sha256: Callable[[], str] = engine_sha256
    """Digest of the engine's program."""
    available_bytes: Callable[[], int] = available_bytes
    """Memory that the machine can give."""
    self_test: Callable[[Campaign], str | None] = field(default=lambda _: None)
    """The self-test of the Tester that is reported with a campaign, as text; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tester:
    """An opened Tester: ports open, gateway resolved, ready for trials."""

    campaign: Campaign
    """Complete: recipe, ports and line rate filled in."""
    testbed: TestBed
    engine: Engine
    hello: Hello
    opened: Opened
    line_rate_source: str


@contextlib.contextmanager
def open_tester(campaign: Campaign, bed: TestBed, equipment: Equipment, *, log: Path | None = None) -> Iterator[Tester]:
    """Make the test bed, start the engine in it, open the ports and find the gateway; undo all of it on leaving.

    Where the gateway works on this machine, its CPUs and the Tester's are kept from other runs meanwhile.
    """
    with open_testers([(campaign, bed)], equipment, logs=[log]) as (tester,):
        yield tester


@contextlib.contextmanager
def open_testers(
    prepared: Sequence[tuple[Campaign, TestBed]], equipment: Equipment, *, logs: Sequence[Path | None]
) -> Iterator[tuple[Tester, ...]]:
    """Open several Testers, as `open_tester` does, on the same CPUs: each has an engine of its own.

    An engine that is asked nothing waits for its next request, so they may be asked in turn.
    """
    placements = [bed.placement for _, bed in prepared if bed.placement.gateway_cores]
    cpus = {cpu for placement in placements for cpu in (*placement.gateway_cores, *placement.tester_cores)}
    with claimed_cpus(cpus), contextlib.ExitStack() as stack:
        testers = tuple(
            stack.enter_context(_opened(campaign, bed, equipment, log))
            for (campaign, bed), log in zip(prepared, logs, strict=True)
        )
        workers = {worker["cpu"] for tester in testers for worker in tester.opened["workers"]}
        stack.enter_context(keeping_off(workers))  # not before the last engine has started: it inherits the CPUs
        yield testers


@contextlib.contextmanager
def _opened(campaign: Campaign, bed: TestBed, equipment: Equipment, log: Path | None) -> Iterator[Tester]:
    with bed as testbed:
        ported = _with_ports(campaign, testbed.ports)
        with contextlib.ExitStack() as stack:
            engine, hello, opened = _open_ports(stack, ported, testbed, equipment, log)
            GatewayAddresses(engine, resolve_requests(ported)).reach(wait_s=ported.control.boot_wait_s)
            testbed.can.check()
            rate, source = this_machine.medium_rate(
                bed=ported.bed,
                stated=ported.line.rate,
                left=provenance.port_fact(opened["left"]),
                right=provenance.port_fact(opened["right"]),
            )
            known = ported.model_copy(update={"line": ported.line.model_copy(update={"rate": rate})})
            yield Tester(
                campaign=known, testbed=testbed, engine=engine, hello=hello, opened=opened, line_rate_source=source
            )


def _open_ports(
    stack: contextlib.ExitStack, ported: Campaign, testbed: TestBed, equipment: Equipment, log: Path | None
) -> tuple[Engine, Hello, Opened]:
    """Start the engine and open its ports; return it with what it says of itself and of them.

    Where the gateway's host has just booted, the links may still be down. An engine opens its ports once, so each
    attempt has another one. Raises EngineError if the ports cannot be opened.
    """
    until = time.monotonic() + ported.control.boot_wait_s
    while True:
        with contextlib.ExitStack() as attempt:
            engine = attempt.enter_context(equipment.start_engine(testbed.placement.namespace, log))
            hello = engine.hello()
            try:
                opened = engine.open(open_request(ported, testbed.placement.tester_cores))
            except EngineError as error:
                lacks_link = all(NO_LINK in problem.what for problem in error.problems)
                if not lacks_link or time.monotonic() >= until:
                    raise
            else:
                stack.push(attempt.pop_all())
                return engine, hello, opened
        time.sleep(POLL_S)


@contextlib.contextmanager
def telling_collapse(tester: Tester) -> Iterator[None]:
    """Tell a gateway that stopped working while it was measured from other failures of a test bed.

    One that somebody else set up is started again, or its host is booted, if the campaign file says how: the next
    campaign needs it.
    """
    try:
        yield
    except OutsideGatewayError:
        raise  # it says nothing about the gateway
    except TestBedError as error:
        try:
            tester.testbed.can.check()
        except OutsideGatewayError:
            raise error from None
        except TestBedError:
            if tester.campaign.bed.takes_control:
                with contextlib.suppress(TestBedError):
                    _bring_back(tester, error)
            raise GatewayCollapsed(problems=error.problems) from error
        raise


def _bring_back(tester: Tester, error: TestBedError) -> None:
    can = tester.testbed.can
    if not tester.campaign.control.model.boot_after_collapse:
        if can.control is not None:
            can.control.restart()
    elif can.booter is not None and not isinstance(error, HostBootError):  # or another boot would fail as well
        can.booter.boot()


RESUMED_FROM = ("campaign.toml", "series.toml", ".campaigns")
"""Files that make a folder one of a campaign, of a series or of several campaigns, that can be resumed."""


STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def stop_signals(*, resume_hint: str | None) -> Iterator[None]:
    """Let SIGTERM, and SIGHUP of a terminal that is closed, stop like Ctrl-C, and tell how to go on.

    Outside the main thread signals are left alone, and so is one that is ignored, as `nohup` does with SIGHUP.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        taken = (number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)
        before = {number: signal.signal(number, stop) for number in taken}
    try:
        yield
    except (KeyboardInterrupt, Interrupted) as error:
        fix = ""
        if resume_hint is not None and any((Path(resume_hint) / name).exists() for name in RESUMED_FROM):
            fix = f"resume with: gatemark run --resume {resume_hint}"
        raise Interrupted(
            what="stopped; completed trials are kept" if fix else "stopped",
            where=resume_hint if fix and resume_hint else "gatemark",
            fix=fix,
        ) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def prepare(file: CampaignFile, equipment: Equipment) -> tuple[TestBed, Campaign]:
    """Complete a campaign and check all of it before anything is made."""
    campaign = complete_campaign(file)
    bed = equipment.open_testbed(campaign)
    most, key = most_connections(campaign)
    check_memory(most, equipment.available_bytes(), where=f"{campaign.source}: {key}")
    return bed, campaign


def _with_ports(campaign: Campaign, ports: Mapping[str, str]) -> Campaign:
    return campaign.model_copy(
        update={name: campaign.side(name).model_copy(update={"port": ports[name]}) for name in SIDES}
    )

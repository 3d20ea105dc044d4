"""The self-test that goes with a campaign: the stored one, or the delays of the Tester's own path measured for it."""

from __future__ import annotations

from pathlib import Path

from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign, EchoAsked
from gatemark.errors import GatemarkError, Interrupted
from gatemark.selftest.document import (
    CountedLoop,
    SelfTest,
    conditions_of,
    load_self_test,
    self_test_file,
    self_test_kind,
)
from gatemark.selftest.modes import Case
from gatemark.selftest.run import Effort, Step, echo_asked, open_self_tester, subject_of
from gatemark.technology import SIDES, Family
from gatemark.tester import Equipment

RATES = (1_000, 10_000, 50_000)
"""Loads at which the Tester's own delays are measured before a campaign."""
TRIAL_NS = 400_000_000

_measured_here: dict[Path, SelfTest] = {}
"""What this process has measured before, by the file that would hold it: one command may measure several campaigns."""


def self_test_for(campaign: Campaign) -> SelfTest | None:
    """Return the self-test to be reported with a campaign; None if there is none, and none is needed or possible.

    A campaign that measures delays needs those of the Tester's own path for its own frame sizes; one of echo requests
    needs round trips from its own clients to its own host that answers. Where no stored self-test has them, and the
    kind of port can be joined to itself without moving a cable, they are measured now, which takes a second for each
    size or number of clients. A self-test that fails does not stop the campaign.
    """
    kind, conditions = self_test_kind(campaign), conditions_of(campaign, Equipment().engine_sha256())
    file = self_test_file(kind, conditions)
    stored = _measured_here.get(file) or load_self_test(kind, conditions)
    if not _missing(campaign, stored) and _missing_echo(campaign, stored) is None:
        return stored
    try:
        document = _measured(campaign, stored)
    except Interrupted:
        raise
    except GatemarkError:
        return stored
    if document is not None:
        _measured_here[file] = document
    return document


def _measured(campaign: Campaign, stored: SelfTest | None) -> SelfTest | None:
    subject = subject_of(campaign)
    if subject.cable:
        return stored
    effort = Effort(trial_ns=TRIAL_NS)
    sizes, echo = _missing(campaign, stored), _missing_echo(campaign, stored)
    family, octets = (echo.family, echo.frame_octets) if echo is not None else sizes[0]
    first = Case(family=family, frame_octets=octets, direction="bidirectional", mode="fixed")
    with open_self_tester(subject, first, effort, _say_nothing) as tester:
        latencies = [latency for family, octets in sizes for latency in tester.delays(family, octets, RATES)]
        loops: list[CountedLoop] = [] if echo is None else list(tester.echo_loops(echo))
        if stored is None:
            return tester.document((), latencies, loops, quick=True)
        return stored.model_copy(
            update={
                "self_latency": (*stored.self_latency, *latencies),
                "echo_loops": (*stored.echo_loops, *loops),
            }
        )


def _missing_echo(campaign: Campaign, stored: SelfTest | None) -> EchoAsked | None:
    """Return the echo requests of the Tester to itself that a campaign needs; None if it has all that it needs."""
    asked = echo_asked(campaign)
    if asked is None:
        return None
    known = {
        (loop.clients, loop.window)
        for loop in (() if stored is None else stored.echo_loops)
        if (loop.family, loop.frame_octets) == (asked.family, asked.frame_octets)
    }
    return asked if set(asked.shapes) - known else None


def _missing(campaign: Campaign, stored: SelfTest | None) -> list[tuple[Family, int]]:
    """Return the frame sizes of a campaign, by family, of which self-latency is needed and not known."""
    if not any(table.measures_delays for table in campaign.tables):
        return []
    known = {(latency.family, latency.frame_octets) for latency in stored.self_latency} if stored is not None else set()
    needed: dict[tuple[Family, int], None] = {}
    for cell in cells_of(campaign):
        if cell.mix.has_background:
            needed["ipv6", cell.frame_sizes.of("ipv6")] = None
        for side in SIDES:
            needed[campaign.roles.family(side), cell.frame_sizes.of(campaign.roles.frame_kind(side))] = None
    return [size for size in needed if size not in known]


def _say_nothing(_: Step) -> None:
    """Report no progress: this is over before anybody would ask."""

"""The self-test that goes with a campaign: the stored one, or the delays of the Tester's own path measured for it."""

from __future__ import annotations

from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.errors import GatemarkError, Interrupted
from gatemark.selftest.document import SelfTest, load_self_test, self_test_kind
from gatemark.selftest.modes import Case
from gatemark.selftest.run import Effort, Step, open_self_tester, subject_of
from gatemark.technology import Family

RATES = (1_000, 10_000, 50_000)
"""Loads at which the Tester's own delays are measured before a campaign."""
TRIAL_NS = 400_000_000

_measured_here: dict[str, SelfTest] = {}
"""What this process has measured before, by kind of port: one command may measure several campaigns."""


def self_test_for(campaign: Campaign) -> SelfTest | None:
    """Return the self-test to be reported with a campaign; None if there is none, and none is needed or possible.

    A campaign that measures delays needs those of the Tester's own path for its own frame sizes. Where no stored
    self-test has them, and the kind of port can be joined to itself without moving a cable, they are measured now,
    which takes a second for each size. A self-test that fails does not stop the campaign.
    """
    kind = self_test_kind(campaign)
    stored = _measured_here.get(kind) or load_self_test(kind)
    if not any(table.measures_delays for table in campaign.tables) or (
        stored is not None and not _missing(campaign, stored)
    ):
        return stored
    try:
        document = _measured(campaign, stored)
    except Interrupted:
        raise
    except GatemarkError:
        return stored
    if document is not None:
        _measured_here[kind] = document
    return document


def _measured(campaign: Campaign, stored: SelfTest | None) -> SelfTest | None:
    subject = subject_of(campaign)
    if subject.cable:
        return stored
    effort = Effort(trial_ns=TRIAL_NS)
    sizes = _missing(campaign, stored)
    first = Case(family=sizes[0][0], frame_octets=sizes[0][1], direction="bidirectional", mode="fixed")
    with open_self_tester(subject, first, effort, _say_nothing) as tester:
        latencies = [latency for family, octets in sizes for latency in tester.delays(family, octets, RATES)]
        if stored is not None:
            return stored.model_copy(update={"self_latency": (*stored.self_latency, *latencies)})
        return tester.document((), latencies, quick=True)


def _missing(campaign: Campaign, stored: SelfTest | None) -> list[tuple[Family, int]]:
    """Return the frame sizes of a campaign, by family, of which no self-latency is known."""
    known = {(latency.family, latency.frame_octets) for latency in stored.self_latency} if stored is not None else set()
    needed: dict[tuple[Family, int], None] = {}
    for cell in cells_of(campaign):
        families: tuple[Family, ...] = campaign.technology.families
        for family in dict.fromkeys((*families, *(("ipv6",) if cell.mix.has_background else ()))):
            needed[family, cell.frame_sizes.of(family)] = None
    return [size for size in needed if size not in known]


def _say_nothing(_: Step) -> None:
    """Report no progress: this is over before anybody would ask."""

"""B4s of an AFTR, from one to thousands that all share one address (RFC 6333). Pure.

The reference gateway knows connections by address, port and B4. So each reply that arrives in its tunnel is one more
connection that two programs have told from those with the same address and port behind other B4s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatemark.calibrate.checks_stateful import capacity_check
from gatemark.calibrate.model import ONLY_COUNTS, Check, Comparison, Evidence, equal_frames
from gatemark.refdut.document import Flow, Selector, Table

LOAD = 20_000
MS = 1_000_000
LOST_NS, CHANGED_NS = (1200 * MS, 1250 * MS), (1300 * MS, 1350 * MS)
"""When frames are lost and changed: after test phase 1 has ended, and so in test phase 2 only."""
CONNECTIONS = 10_000
TIMEOUT_NS = 300 * 10**9
NUMBERS = (1, 100, 10_000)
CAPACITIES = {1: 1500, 100: 2345}
"""Sizes of the gateway's table, by the number of B4s that fill it."""


def aftr_checks(*, quick: bool) -> list[Check]:
    """Return the checks of B4s."""
    if quick:
        return [_counts(NUMBERS[-1])]
    return [*map(_counts, NUMBERS), *(_capacity(b4s, size) for b4s, size in CAPACITIES.items())]


def _ports(b4s: int) -> str:
    """Return source ports with which CONNECTIONS are all connections to one destination."""
    return f"10000-{10_000 + CONNECTIONS // b4s - 1}"


def _words(b4s: int) -> str:
    return f"{b4s:,} B4{'s' if b4s > 1 else ''}"


def _counts(b4s: int) -> Check:
    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        if not evidence.trials:
            return (Comparison(quantity="frames", unit="frames", true=LOAD, measured=None),)
        last = evidence.trials[-1]
        comparisons = []
        for way in last.record.report.directions:
            counts, gateway = way.foreground, last.counts[way.direction]
            faults = {reason: count for reason, count in counts.faults.items() if count}
            received = counts.offered - gateway["lost"] - counts.faulty
            comparisons += [
                equal_frames(f"frames lost, {way.direction}", gateway["lost"], counts.lost),
                equal_frames(f"frames received, {way.direction}", received, counts.received),
                *(
                    equal_frames(f"{reason}, {way.direction}", gateway["reasons"].get(reason, 0), faults.get(reason, 0))
                    for reason in dict.fromkeys((*_named(gateway["reasons"]), *faults))
                ),
            ]
        return tuple(comparisons)

    return Check(
        procedure="aftr",
        name=f"aftr-{b4s}",
        truth=f"{CONNECTIONS:,} connections of {_words(b4s)} with one address; 50 ms of frames lost, 50 ms changed",
        technology="aftr",
        subscribers=b4s,
        forward=Flow(loss=(Selector(window_ns=LOST_NS),), corrupt=(("udp_checksum", Selector(window_ns=CHANGED_NS)),)),
        reverse=Flow(
            loss=(Selector(window_ns=LOST_NS),),
            corrupt=(("other_subscriber" if b4s > 1 else "tunnel_missing", Selector(window_ns=CHANGED_NS)),),
        ),
        table=Table(size=100_000, udp_timeout_ns=TIMEOUT_NS),
        tables={
            "connections": {"count": CONNECTIONS, "rate": 20_000, "source_ports": _ports(b4s)},
            "trial": {"duration": "1500ms"},
            "traffic": {"direction": "bidirectional"},
            "frame_loss": {"rates": [LOAD]},
        },
        compare=compare,
        **ONLY_COUNTS,
        counts_phase_two=True,
    )


def _named(counts: dict[str, Any]) -> list[str]:
    return [reason for reason, count in counts.items() if count]


def _capacity(b4s: int, size: int) -> Check:
    return replace(
        capacity_check("refuse", "refused", size),
        procedure="aftr",
        name=f"aftr-capacity-{b4s}",
        truth=f"table of {size} connections, {_words(b4s)}",
        technology="aftr",
        subscribers=b4s,
    )

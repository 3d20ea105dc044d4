"""Gateways of this machine's kernel whose truth follows from a mechanism: each figure is found within its resolution.

The reference gateway has known truth as well, but we wrote it. Here the kernel limits, drops, queues and forgets, and
every bound is arithmetic on what it was told. Figures that a busy machine spoils are none of the gateway, and say so.
The records of the trials that count say how late Tester and gateway were, by which a figure may be off. Frames have 64
octets on the wire, 60 where the kernel counts them (no FCS).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.machine import missing, nothing_compared

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.recipe import recipe_text
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "nft", "tc", "conntrack", "ethtool", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]

KERNEL_OCTETS = 60
"""A frame of 64 octets in the kernel's queues."""
JIFFY_NS = 4_000_000
"""Time-outs of nftables are counted in jiffies; 4 ms is the longest one that Debian's and this kernel have."""
LATENESS_MAX_NS = 2_000_000
SECOND_NS = 1_000_000_000

FORWARD = {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": 64}}
"""One direction, from left to right."""
TRIAL_NS = 500_000_000
TRIAL = {"duration": f"{TRIAL_NS}ns", "settle": "0s", "learn": "100ms", "drain": "100ms", "rest": "50ms"}
"""Between two trials buckets of up to 50 frames are full again, and short queues empty."""
VALIDITY = {"retries": 20, "lateness_max": f"{LATENESS_MAX_NS}ns", "held_up_max": "10ms"}
"""A bucket of 25 frames at 2000 a second outlasts a gateway that is held up for so long."""
TO_RIGHT = "meta nfproto ipv4 meta l4proto udp oifname {right}"


def gateway(folder: Path, *, rules: tuple[str, ...] = (), queue: str = "", base: str = "linux-router4") -> Path:
    """Write a recipe of the kernel with rules in a chain at its forward hook, or a queueing discipline to the right."""
    text = recipe_text(base)
    setup = list(tomllib.loads(text)["commands"].get("setup", []))
    if rules:
        setup.append("nft -f {dir}/truth.nft")
    if queue:
        setup.append(f"tc qdisc add dev {{right}} root {queue}")
    lines = [line for line in text.splitlines() if not line.startswith("setup = ")]
    lines[lines.index("[commands]")] = f"[commands]\nsetup = {setup}"
    if rules:
        body = "\n".join(("table inet truth {", *rules, "}"))
        files = f"\"truth.nft\" = '''\n{body}\n'''"
        lines = [f"[files]\n{files}" if line == "[files]" else line for line in lines]
        if "[files]" not in text:
            lines += ["[files]", files]
    path = folder / "gateway.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def chain(*rules: str) -> tuple[str, ...]:
    """Return a chain at the forward hook."""
    return ("chain truth { type filter hook forward priority 0; policy accept;", *rules, "}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a campaign found."""

    rows: Mapping[str, list[Quantity]]
    """Figures by their names."""
    late_ns: int
    """How late Tester or gateway were at most in a trial that counts, by its record."""

    def value(self, name: str) -> float:
        (row,) = self.rows[name]
        assert row.value is not None, row
        return float(row.value)

    def frames(self, rate: int) -> Fraction:
        """Return what a gateway of a rate forwards in addition, if Tester or gateway are that late."""
        return Fraction(rate * self.late_ns, SECOND_NS)


def late_ns(record: TrialRecord) -> int:
    """Return how late a burst was sent at most, and for how long the gateway was held up, together."""
    ways = [way for report in record.reports() for way in report.directions]
    held_up_ns = 0 if record.host is None else record.host.held_up_ns
    return held_up_ns + max((way.lateness_max_ns for way in ways), default=0)


def found(folder: Path, recipe: Path, **tables: Any) -> Found | None:
    """Measure a campaign. None: the machine was busy, so figures are not the gateway's, and none is told as its own."""
    document = {
        "testbed": {"kind": "netns", "recipe": str(recipe)},
        "left": {"mtu": 1500},
        "right": {"mtu": 1500},
        "repetitions": 1,
        "trial": TRIAL,
        "traffic": FORWARD,
        "validity": VALIDITY,
        **tables,
    }
    result = measure(campaign_from_dict(document), output=folder / "result", report=False)
    records = list(read_journal(ResultFolder.open(result.folder).journal_file))
    quantities = [row.quantity for row in result.document.rows()]
    if any(quantity.limited_by in NOT_THE_GATEWAY for quantity in quantities):
        assert any(not record.is_decisive and record.reasons for record in records)
        assert not any(quantity.is_measured for quantity in quantities if quantity.limited_by in NOT_THE_GATEWAY)
        nothing_compared("no figure is the gateway's")
        return None
    by_name: dict[str, list[Quantity]] = {}
    for quantity in quantities:
        assert quantity.refused is None, quantity
        by_name.setdefault(quantity.name, []).append(quantity)
    late = max(late_ns(record) for record in records if record.is_decisive)
    return Found(rows=by_name, late_ns=late)


def test_a_rate(tmp_path: Path) -> None:
    """A bucket of 25 frames that gains 2000 a second passes 25 + 2000 T in the time T of a trial, and no more."""
    rate, bucket, resolution = 2000, 25, 20
    drop = f"{TO_RIGHT} limit rate over {rate}/second burst {bucket} packets drop"
    measured = found(
        tmp_path,
        gateway(tmp_path, rules=chain(drop)),
        throughput={"minimum": "1800", "maximum": "2200", "resolution": resolution},
    )
    if measured is not None:
        highest = rate + (bucket + measured.frames(rate)) * Fraction(SECOND_NS, TRIAL_NS)
        assert rate - resolution <= measured.value("throughput") <= highest


def test_a_loss(tmp_path: Path) -> None:
    """Of 1000 frames every 20th is dropped, whichever is the first."""
    measured = found(
        tmp_path, gateway(tmp_path, rules=chain(f"{TO_RIGHT} numgen inc mod 20 0 drop")), frame_loss={"rates": ["2k"]}
    )
    assert measured is None or measured.value("frame loss rate") == 5.0


def test_a_delay(tmp_path: Path) -> None:
    """A queue that is kept full is as long as its frames take to leave: 20 of them, 2000 a second."""
    rate, frames = 2000, 20
    queue = f"tbf rate {rate * KERNEL_OCTETS * 8}bit burst {5 * KERNEL_OCTETS + 10} limit {frames * KERNEL_OCTETS}"
    measured = found(
        tmp_path,
        gateway(tmp_path, queue=queue),
        delay={"metrics": "latency", "load": 2200, "duration": "1s", "first_tag": "300ms", "tags": 500},
    )
    if measured is not None:
        one_ns = SECOND_NS / rate
        assert (frames - 1) * one_ns <= measured.value("typical latency") <= (frames + 1) * one_ns


def test_an_establishment_rate(tmp_path: Path) -> None:
    """N connections at rate r take N / r, in which a bucket of B that gains R a second gives B + R N / r."""
    rate, bucket, count, resolution = 2000, 25, 1000, 40
    drop = f"ct state new {TO_RIGHT} limit rate over {rate}/second burst {bucket} packets drop"
    measured = found(
        tmp_path,
        gateway(tmp_path, rules=chain(drop), base="nft-nat44"),
        connections={"count": count, "timeout": "200ms", "gap": "100ms"},
        connection_establishment_rate={"minimum": "1800", "maximum": "2400", "resolution": resolution},
    )
    if measured is not None:
        highest = rate / (1 - (bucket + measured.frames(rate)) / count)
        (result,) = [row for rows in measured.rows.values() for row in rows if row.is_headline]
        assert result.value is not None and rate - resolution <= result.value <= highest


def test_a_burst(tmp_path: Path) -> None:
    """A queue of 150 frames behind a bucket of 50 holds a burst at line rate, less what leaves while it comes."""
    rate, bucket, queued, line, resolution = 1000, 50, 150, 20_000, 20
    octets = KERNEL_OCTETS
    queue = f"tbf rate {rate * octets * 8}bit burst {bucket * octets + 10} limit {queued * octets}"
    measured = found(
        tmp_path,
        gateway(tmp_path, queue=queue),
        line={"rate": line * 84 * 8},
        trial={**TRIAL, "rest": "300ms"},  # in which the queue empties
        throughput={"minimum": 500, "maximum": "2k", "resolution": 500},
        back_to_back={"ceiling": "50ms", "resolution": resolution, "bursts": 1, "wait": "300ms"},
    )
    if measured is None:
        return
    held = bucket + queued
    late = resolution * Fraction(SECOND_NS, line) + measured.late_ns
    leaves = rate * late / SECOND_NS
    longest = (held + leaves) / (1 - Fraction(rate, line)) + 1
    assert held - resolution <= measured.value("back-to-back frames") <= longest
    highest = rate + (held + measured.frames(rate)) * Fraction(SECOND_NS, TRIAL_NS)
    assert rate - 500 <= measured.value("throughput") <= highest


def test_a_recovery_time(tmp_path: Path) -> None:
    """An overload puts traffic into a set for 300 ms, again and again; the last time is just before it ends."""
    rate, load, penalty_ns = 1000, 1500, 300_000_000
    limit = f"limit rate over {rate}/second burst 50 packets"
    rules = (
        "set penalty { type inet_proto; flags dynamic,timeout; timeout 300ms; }",
        *chain(
            f"{TO_RIGHT} {limit} update @penalty {{ meta l4proto timeout 300ms }}",
            f"{TO_RIGHT} meta l4proto @penalty drop",
        ),
    )
    measured = found(
        tmp_path,
        gateway(tmp_path, rules=rules),
        repetitions=3,
        system_recovery={"load": rate, "overload": "150%", "duration": "500ms", "observe": "600ms"},
    )
    if measured is None:
        return
    over_ns = SECOND_NS / (load - rate)  # between two frames that are over the limit
    frame_ns = SECOND_NS / (load / 2)
    earliest = penalty_ns - JIFFY_NS - over_ns - frame_ns - measured.late_ns
    (row,) = measured.rows["system recovery time"]
    recovery_ns = median(time_ns for time_ns in row.values if time_ns is not None)
    assert earliest <= recovery_ns <= penalty_ns + measured.late_ns + JIFFY_NS, row

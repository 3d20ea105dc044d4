"""Gateways of this machine's kernel whose truth follows from a mechanism: each figure is found within its resolution.

The reference gateway has known truth as well, but we wrote it. Here the kernel limits, drops, queues and forgets, and
every bound is arithmetic on what it was told. What the machine does beside that is for the product's own handling of
invalid trials. Frames have 64 octets on the wire, 60 where the kernel counts them (no FCS).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fractions import Fraction
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.system.machine import missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.results.quantity import Quantity
from gatemark.session import measure

MISSING = missing("ip", "nft", "tc", "conntrack", "ethtool", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

KERNEL_OCTETS = 60
"""A frame of 64 octets in the kernel's queues."""
JIFFY_NS = 4_000_000
"""Time-outs of nftables are counted in jiffies; 4 ms is the longest one that Debian's and this kernel have."""
LATENESS_MAX_NS = 2_000_000
SECOND_NS = 1_000_000_000

FORWARD = {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": 64}}
"""One direction, from left to right."""
TRIAL = {"duration": "1s", "settle": "0s", "learn": "100ms", "drain": "100ms", "rest": "100ms"}
"""Between two trials buckets of up to 50 frames are full again, and short queues empty."""
VALIDITY = {"retries": 20, "lateness_max": f"{LATENESS_MAX_NS}ns"}
TO_RIGHT = "meta nfproto ipv4 meta l4proto udp oifname {right}"


def gateway(folder: Path, *, rules: tuple[str, ...] = (), queue: str = "", base: str = "linux-router4") -> Path:
    """Write a recipe of the kernel with rules in a chain at its forward hook, or a queueing discipline to the right."""
    text = (resources.files("gatemark.dut") / "recipes" / f"{base}.toml").read_text(encoding="utf-8")
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


def figures(folder: Path, recipe: Path, **tables: Any) -> Mapping[str, list[Quantity]]:
    """Measure a campaign; return its figures by their names. None was limited by the Tester or refused."""
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
    result = measure(campaign_from_dict(document), output=folder / "result")
    by_name: dict[str, list[Quantity]] = {}
    for row in result.document.rows():
        quantity = row.quantity
        assert quantity.refused is None and quantity.limited_by != "tester", quantity
        by_name.setdefault(quantity.name, []).append(quantity)
    return by_name


def value_of(rows: Mapping[str, list[Quantity]], name: str) -> float:
    (row,) = rows[name]
    assert row.value is not None, row
    return float(row.value)


def test_a_rate(tmp_path: Path) -> None:
    """A bucket of 50 frames that gains 2000 a second passes 50 + 2000 T in the time T of a trial, and no more."""
    rate, bucket, resolution = 2000, 50, 20
    drop = f"{TO_RIGHT} limit rate over {rate}/second burst {bucket} packets drop"
    rows = figures(
        tmp_path,
        gateway(tmp_path, rules=chain(drop)),
        throughput={"maximum": "2500", "resolution": resolution},
    )
    assert rate - resolution <= value_of(rows, "throughput") <= rate + bucket


def test_a_loss(tmp_path: Path) -> None:
    """Of 2000 frames every 20th is dropped, whichever is the first."""
    rows = figures(
        tmp_path, gateway(tmp_path, rules=chain(f"{TO_RIGHT} numgen inc mod 20 0 drop")), frame_loss={"rates": ["2k"]}
    )
    assert value_of(rows, "frame loss rate") == 5.0


def test_a_delay(tmp_path: Path) -> None:
    """A queue that is kept full is as long as its frames take to leave: 20 of them, 2000 a second."""
    rate, frames = 2000, 20
    queue = f"tbf rate {rate * KERNEL_OCTETS * 8}bit burst {5 * KERNEL_OCTETS + 10} limit {frames * KERNEL_OCTETS}"
    rows = figures(
        tmp_path,
        gateway(tmp_path, queue=queue),
        delay={"metrics": "latency", "load": 2200, "duration": "2s", "first_tag": "500ms", "tags": 1000},
    )
    one_ns = SECOND_NS / rate
    assert (frames - 1) * one_ns <= value_of(rows, "typical latency") <= (frames + 1) * one_ns


def test_an_establishment_rate(tmp_path: Path) -> None:
    """N connections at rate r take N / r, in which a bucket of B that gains R a second gives B + R N / r."""
    rate, bucket, count, resolution = 2000, 25, 1000, 40
    drop = f"ct state new {TO_RIGHT} limit rate over {rate}/second burst {bucket} packets drop"
    rows = figures(
        tmp_path,
        gateway(tmp_path, rules=chain(drop), base="nft-nat44"),
        connections={"count": count, "timeout": "200ms", "gap": "100ms"},
        connection_establishment_rate={"maximum": "2400", "resolution": resolution},
    )
    highest = Fraction(rate) / (1 - Fraction(bucket, count))
    (result,) = [row for name, rows_ in rows.items() for row in rows_ if row.is_headline]
    assert result.value is not None and rate - resolution <= result.value <= highest


def test_a_burst(tmp_path: Path) -> None:
    """A queue of 150 frames behind a bucket of 50 holds a burst at line rate, less what leaves while it comes."""
    rate, bucket, queued, line, resolution = 1000, 50, 150, 20_000, 20
    octets = KERNEL_OCTETS
    queue = f"tbf rate {rate * octets * 8}bit burst {bucket * octets + 10} limit {queued * octets}"
    rows = figures(
        tmp_path,
        gateway(tmp_path, queue=queue),
        line={"rate": line * 84 * 8},
        trial={**TRIAL, "rest": "300ms"},  # in which the queue empties
        throughput={"maximum": "2k", "resolution": 500},
        back_to_back={"ceiling": "50ms", "resolution": resolution, "bursts": 1, "wait": "300ms"},
    )
    held = bucket + queued
    late_ns = resolution * SECOND_NS // line
    leaves = rate * Fraction(late_ns, SECOND_NS)
    longest = (held + leaves) / (1 - Fraction(rate, line)) + 1
    assert held - resolution <= value_of(rows, "back-to-back frames") <= longest
    assert rate - 500 <= value_of(rows, "throughput") <= rate + held


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
    rows = figures(
        tmp_path,
        gateway(tmp_path, rules=rules),
        repetitions=3,
        system_recovery={"load": rate, "overload": "150%", "duration": "1s", "observe": "800ms"},
    )
    over_ns = SECOND_NS / (load - rate)  # between two frames that are over the limit
    frame_ns = SECOND_NS / (load / 2)
    earliest = penalty_ns - JIFFY_NS - over_ns - frame_ns - LATENESS_MAX_NS
    (row,) = rows["system recovery time"]
    recovery_ns = median(time_ns for time_ns in row.values if time_ns is not None)
    assert earliest <= recovery_ns <= penalty_ns + LATENESS_MAX_NS + JIFFY_NS, row

"""Gateways of many kinds with more to do than they can: nothing but the overload is said of their losses. Needs root.

The long version makes two trials of each of 122 of them, and prints what is said.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from tests.system.beds import ATTEMPTS, LASTING_NS, KeptBed, OpenBed, lost_nothing_itself, netns_campaign
from tests.system.machine import missing, missing_for_guest, nothing_compared
from tests.system.stateful_beds import stateful_campaign

from gatemark.config.model import Campaign
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "tc", "taskset", "setpriv", "nft", "iptables", "conntrack", "tayga", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"overloading gateways needs {', '.join(MISSING)}")

RATE = 10_000
"""About so many frames/s may leave a gateway on a side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A gateway, and the frames that cross it."""

    recipe: str
    octets: int
    direction: str = "forward"
    ports: dict[str, Any] | None = None
    """UDP ports of all frames; None: as RFC 4814 has them, or connections of a stateful gateway."""
    map: dict[str, Any] | None = None
    is_stateful: bool = False
    has_tunnels: bool = False
    """Whether it has a kernel of its own, for packets in tunnels on its left side."""

    @property
    def has_daemon(self) -> bool:
        return self.recipe.startswith("tayga")

    @property
    def family(self) -> str:
        """The one in which the campaign names the size."""
        if self.has_tunnels:
            return "ipv6" if self.recipe == "linux-sixrd-br" else "ipv4"
        return "ipv6" if self.recipe.endswith(("6", "64", "br")) and self.recipe != "tayga-siit46" else "ipv4"


ONE_FLOW = {
    "source_ports": {"mode": "fixed", "range": "1024"},
    "destination_ports": {"mode": "fixed", "range": "7"},
}
IN_TURN = {
    "source_ports": {"mode": "increasing", "range": "1024-1031"},
    "destination_ports": {"mode": "increasing", "range": "1-8"},
}
FEW_FLOWS = {"source_ports": {"range": "1024-1031"}, "destination_ports": {"range": "1-8"}}
RULE = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "psid_offset": 0, "dmr": "2001:db8:ffff::/64"}
EDGES = {"domains": [RULE], "edges": 16}
KINDS: dict[str, Kind] = {
    "router of IPv4": Kind(recipe="linux-router4", octets=64),
    "router of IPv4, both directions": Kind(recipe="linux-router4", octets=64, direction="bidirectional"),
    "router of IPv4, one flow of 512 octets": Kind(recipe="linux-router4", octets=512, ports=ONE_FLOW),
    "router of IPv4, 8 flows in turn": Kind(recipe="linux-router4", octets=128, ports=IN_TURN),
    "router of IPv6, 64 flows": Kind(recipe="linux-router6", octets=84, ports=FEW_FLOWS),
    "SIIT from IPv6, tayga": Kind(recipe="tayga-siit64", octets=128, direction="bidirectional"),
    "SIIT from IPv4, tayga": Kind(recipe="tayga-siit46", octets=128, ports=FEW_FLOWS),
    "MAP-T border relay, tayga": Kind(recipe="tayga-mapt-br", octets=128, map=EDGES),
    "NAT44, nftables": Kind(recipe="nft-nat44", octets=128, is_stateful=True),
    "NAT64, tayga and nftables": Kind(recipe="tayga-nat64", octets=128, direction="bidirectional", is_stateful=True),
    "NAT44, iptables": Kind(recipe="iptables-nat44", octets=64, direction="bidirectional", is_stateful=True),
    "NAT66, nftables": Kind(recipe="nft-nat66", octets=128, is_stateful=True),
    "router of IPv6, 1518 octets, both directions": Kind(
        recipe="linux-router6", octets=1518, direction="bidirectional"
    ),
    "MAP-E border relay": Kind(recipe="linux-mape-br", octets=128, has_tunnels=True),
    "MAP-E border relay, to the customers": Kind(
        recipe="linux-mape-br", octets=128, direction="reverse", has_tunnels=True
    ),
    "lwAFTR": Kind(recipe="linux-lwaftr", octets=512, has_tunnels=True),
    "6rd border relay": Kind(recipe="linux-sixrd-br", octets=128, has_tunnels=True),
    "AFTR": Kind(recipe="linux-aftr", octets=128, is_stateful=True, has_tunnels=True),
}
CONNECTIONS: dict[str, Any] = {"count": 500, "rate": "2k", "timeout": "200ms", "gap": "100ms"}
"""So slow that the overloaded gateway establishes all of them."""


def campaign_of(name: str) -> Campaign:
    kind = KINDS[name]
    traffic: dict[str, Any] = {
        "direction": kind.direction,
        "frame_sizes": {"family": kind.family, "octets": kind.octets},
        **(kind.ports or {}),
    }
    if kind.is_stateful:
        return stateful_campaign(kind.recipe, traffic=traffic, connections=CONNECTIONS)
    tables = {} if kind.map is None else {"map": kind.map}
    return netns_campaign(kind.recipe, traffic=traffic, **tables)


@pytest.fixture(scope="module")
def beds() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


Overload = Callable[[OpenBed, Kind], AbstractContextManager[object]]
"""Leaves a gateway too little of something."""


def shapes(*lines: str) -> Overload:
    """Let about `RATE` frames/s leave on each side that frames leave on, by lines of `tc`, of which the first is root.

    `{rate}` and `{frames[N]}` stand for that rate and for N frames in octets.
    """

    @contextlib.contextmanager
    def plant(bed: OpenBed, kind: Kind) -> Iterator[None]:
        frames = {count: count * kind.octets for count in (10, 14, 60)}
        devices = [bed.interface(side) for side in ("left", "right")[kind.direction == "forward" :]]
        try:
            for device in devices:
                for line in lines:
                    what, rest = line.format(rate=f"{8 * RATE * kind.octets}bit", frames=frames).split(maxsplit=1)
                    bed.in_gateway("tc", what, "add", "dev", device, *rest.split())
            yield
        finally:
            for device in devices:
                bed.in_gateway("tc", "qdisc", "del", "dev", device, "root")

    return plant


def works(rules: int) -> Overload:
    """Let the gateway's CPU look at so many rules for each frame."""
    lines = [f"meta mark {mark} drop" for mark in range(1, rules + 1)]
    return lambda bed, _kind: bed.rules(*lines, hook="prerouting")


def polices(burst: int) -> Overload:
    """Drop what is beyond `RATE` frames/s, with no queue."""
    rule = f"meta l4proto udp limit rate over {RATE}/second burst {burst} packets drop"
    return lambda bed, _kind: bed.rules(rule, hook="forward")


HTB = ("qdisc root handle 1: htb default 1", "class parent 1: classid 1:1 htb rate {rate} burst {frames[10]}")
WORK = "3,000 rules"
OVERLOADS: dict[str, Overload] = {
    WORK: works(3_000),
    "tbf, 4 frames": shapes("qdisc root tbf rate {rate} burst {frames[10]} limit {frames[14]}"),
    "tbf, 50 frames": shapes("qdisc root tbf rate {rate} burst {frames[10]} limit {frames[60]}"),
    "htb over pfifo, 10 frames": shapes(*HTB, "qdisc parent 1:1 pfifo limit 10"),
    "htb over pfifo, 200 frames": shapes(*HTB, "qdisc parent 1:1 pfifo limit 200"),
    "a policer, 5 frames": polices(5),
    "a policer, 50 frames": polices(50),
}
GATEWAYS = [
    (name, overload) for name, overload in product(KINDS, OVERLOADS) if overload != WORK or not KINDS[name].has_daemon
]
"""A daemon that waits while the kernel works may wait for others: such a trial is suspect, and explained by nothing."""
FACTORS = (1.05, 1.3, 2.0, 3.0, 5.0)
"""Of the rate that the gateway forwards when it is overloaded."""
LOAD = 4 * RATE
"""At which that rate is read."""


LATE_MAX_NS = 4_000_000
"""What the Tester sends at once to make up for lateness is a gap of a gateway without a queue."""


def is_usable(record: TrialRecord) -> bool:
    """Whether a trial says something about the gateway, of its phase 2 where it is stateful, and frames were lost."""
    facts = record.connections
    is_phase_one = facts is not None and (not facts.phase_one or record.report == facts.phase_one[-1].report)
    is_late = any(way.lateness_max_ns > LATE_MAX_NS for way in record.report.directions)
    return record.verdict is not None and lost_nothing_itself(record) and not is_phase_one and not is_late


def overloaded(bed: OpenBed, load: int) -> TrialRecord | None:
    """Return a trial at a load that loses frames; where it loses none, the load grows: some gateways forward more of
    less. None if no trial counts, because others want the gateway's CPU."""
    for _ in range(ATTEMPTS):
        record = bed.trial(frames_per_second=load, duration_ns=LASTING_NS)
        if not is_usable(record):
            continue
        if record.report.lost_count:
            return record
        load += load // 4
    nothing_compared("no trial of an overloaded gateway counts")
    return None


def forwarded(record: TrialRecord) -> int:
    """Return how many frames/s a gateway forwarded in each direction on average."""
    ways = record.report.directions
    return sum((way.offered - way.foreground.lost) * way.frames_per_second // way.offered for way in ways) // len(ways)


def overload_of(record: TrialRecord) -> str:
    """Return how many times as many frames were offered as were forwarded."""
    ways = record.report.directions
    offered = sum(way.offered for way in ways)
    arrived = offered - sum(way.foreground.lost for way in ways)
    return f"{offered / arrived:.2f}" if arrived else "-"


def said_of(record: TrialRecord) -> str:
    """Return what is said of the losses, in the words of the table."""
    return "; ".join(cause.told for cause in record.causes) or "nothing"


def is_overload(record: TrialRecord) -> bool:
    """Whether nothing but an overload is said."""
    return all(cause.cause == "queue" for cause in record.causes)


@pytest.mark.alone  # on one CPU no trial of them counts
@pytest.mark.parametrize("overload", [WORK, "tbf, 4 frames"])
def test_of_an_overloaded_gateway_nothing_else_is_said(overload: str, beds: KeptBed) -> None:
    """Twice what it forwards: a load near its capacity overloads it in some moments only, such as those without CPU."""
    name = "router of IPv4"
    bed = beds.get(name)
    with OVERLOADS[overload](bed, KINDS[name]):
        reference = overloaded(bed, LOAD)
        record = None if reference is None else overloaded(bed, 2 * forwarded(reference))
    assert record is None or is_overload(record), record.causes


@pytest.mark.nightly("244 trials of overloaded gateways")
@pytest.mark.endure
def test_of_a_hundred_overloaded_gateways_nothing_else_is_said(
    beds: KeptBed, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for number, (name, overload) in enumerate(GATEWAYS):
        if KINDS[name].has_tunnels and missing_for_guest():
            continue
        bed = beds.get(name)
        with OVERLOADS[overload](bed, KINDS[name]):
            reference = overloaded(bed, LOAD)
            factors = (
                () if reference is None else (FACTORS[number % len(FACTORS)], FACTORS[(number + 2) % len(FACTORS)])
            )
            for factor in factors:
                assert reference is not None
                record = overloaded(bed, int(forwarded(reference) * factor))
                if record is None:
                    continue
                load = f"{record.order.step.frames_per_second:,} | {overload_of(record)}"
                line = f"| {name} | {overload} | {load} | {said_of(record)} |"
                with capsys.disabled():
                    print(line if is_overload(record) else f"**{line}**", flush=True)
                if not is_overload(record):
                    wrong.append(line)
    assert not wrong

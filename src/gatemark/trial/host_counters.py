"""Counters of the gateway's host that say where frames, connections or neighbours were lost: which, and in words. Pure.

The host is asked just before and just after a trial. What a counter grew by meanwhile is kept if it is in this table.
Counters of neighbours and of input queues are those of the whole machine: another program may have moved them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gatemark.technology import FAMILY_WORDS

Subject = Literal["connections", "neighbours", "IPv4", "IPv6", "input queue", "output queue", "interface"]

SEARCH_RESTART = "conntrack.search_restart"
"""Loses nothing: a lookup is begun again, and succeeds."""

QUEUES: tuple[Subject, ...] = ("input queue", "output queue", "interface")
"""What a queue that overflows moves."""

COUNTERS_MAX = 64
"""Of one trial; those that grew most are kept."""
SHOWN_MAX = 8
"""In one line for people."""
ABOUT_DIVISOR, ABOUT_FRAMES = 20, 3
"""A counter grew by about the losses within a twentieth of them, or three frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCounter:
    """A counter that is kept."""

    pattern: str
    """Its name. An asterisk stands for the name of an interface."""
    words: str
    """What it counts, for people. An asterisk stands for the same."""
    speaks_of: Subject
    """What was short of something, or refused something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a counter of the gateway's host grew by in a trial."""

    name: str
    count: int
    counter: HostCounter

    @property
    def what(self) -> str:
        """For people: what it counts."""
        place = _place(self.counter.pattern, self.name) or ""
        return f"{self.counter.speaks_of}: {self.counter.words.replace('*', place)}"

    @property
    def words(self) -> str:
        """For people: what it counts, and by how much it grew."""
        return f"{self.what} +{self.count:,}"


_ROWS: Mapping[Subject, Mapping[str, str]] = {
    "connections": {
        "conntrack.chaintoolong": "refused, the hash chain was too long (chaintoolong)",
        "conntrack.insert_failed": "not inserted (insert_failed)",
        "conntrack.early_drop": "evicted early to make room (early_drop)",
        "conntrack.drop": "packets dropped, no room for a connection (drop)",
        "conntrack.invalid": "packets that belong to none and make none (invalid)",
        SEARCH_RESTART: "lookups begun again (search_restart)",
    },
    "neighbours": {
        "neighbours.ipv4.table_fulls": "the IPv4 table was full",
        "neighbours.ipv6.table_fulls": "the IPv6 table was full",
        "neighbours.ipv4.unresolved_discards": "packets dropped that waited for an answer by ARP",
        "neighbours.ipv6.unresolved_discards": "packets dropped that waited for an answer by neighbour discovery",
        "neighbours.ipv4.res_failed": "did not answer by ARP",
        "neighbours.ipv6.res_failed": "did not answer by neighbour discovery",
    },
    "IPv4": {
        "ip.InHdrErrors": "wrong header or TTL expired",
        "ip.InAddrErrors": "not for this host and not forwarded",
        "ipext.InNoRoutes": "arrived without a route",
        "ip.OutNoRoutes": "sent without a route",
        "ip.InDiscards": "dropped on arrival",
        "ip.OutDiscards": "dropped instead of sent",
        "ip.InUnknownProtos": "of an unknown protocol",
        "ipext.InTruncatedPkts": "shorter than their header says",
        "ip.ReasmFails": "not reassembled",
        "ip.FragFails": "too long, and not to be fragmented",
        "tcpext.IPReversePathFilter": "refused by the reverse path filter",
        "udp.NoPorts": "UDP for a port on which nobody listens",
        "udp.InErrors": "UDP not delivered",
        "udp.RcvbufErrors": "UDP dropped, a receive buffer was full",
        "udp.SndbufErrors": "UDP not sent, a send buffer was full",
        "udp.InCsumErrors": "UDP with a wrong checksum",
        "icmp.OutDestUnreachs": "ICMP destination unreachable sent",
        "icmp.OutTimeExcds": "ICMP time exceeded sent",
        "icmp.OutRateLimitGlobal": "ICMP errors withheld by the rate limit of the host",
        "icmp.OutRateLimitHost": "ICMP errors withheld by the rate limit of a receiver",
    },
    "IPv6": {
        "ip6.InHdrErrors": "wrong header or hop limit expired",
        "ip6.InAddrErrors": "not for this host and not forwarded",
        "ip6.InNoRoutes": "arrived without a route",
        "ip6.OutNoRoutes": "sent without a route",
        "ip6.InTooBigErrors": "too long for the next link",
        "ip6.InDiscards": "dropped on arrival",
        "ip6.OutDiscards": "dropped instead of sent",
        "ip6.InUnknownProtos": "of an unknown protocol",
        "ip6.InTruncatedPkts": "shorter than their header says",
        "ip6.ReasmFails": "not reassembled",
        "ip6.FragFails": "not fragmented",
        "udp6.NoPorts": "UDP for a port on which nobody listens",
        "udp6.InErrors": "UDP not delivered",
        "udp6.RcvbufErrors": "UDP dropped, a receive buffer was full",
        "udp6.SndbufErrors": "UDP not sent, a send buffer was full",
        "udp6.InCsumErrors": "UDP with a wrong checksum",
        "icmp6.OutDestUnreachs": "ICMPv6 destination unreachable sent",
        "icmp6.OutPktTooBigs": "ICMPv6 packet too big sent",
        "icmp6.OutTimeExcds": "ICMPv6 time exceeded sent",
        "icmp6.OutParmProblems": "ICMPv6 parameter problem sent",
        "icmp6.OutRateLimitHost": "ICMPv6 errors withheld by the rate limit",
    },
    "input queue": {"softnet.dropped": "no room at a CPU of the gateway"},
    "output queue": {"qdisc.*.dropped": "dropped by the queueing discipline of *"},
    "interface": {
        "interface.*.rx_dropped": "* dropped on arrival",
        "interface.*.rx_errors": "* received damaged",
        "interface.*.tx_dropped": "* dropped instead of sent",
        "interface.*.tx_errors": "* failed to send",
    },
}

HOST_COUNTERS: tuple[HostCounter, ...] = tuple(
    HostCounter(pattern=pattern, words=words, speaks_of=subject)
    for subject, rows in _ROWS.items()
    for pattern, words in rows.items()
)
"""Those that are kept."""

_BY_NAME = {row.pattern: row for row in HOST_COUNTERS if "*" not in row.pattern}
_PATTERNS = tuple(row for row in HOST_COUNTERS if "*" in row.pattern)
_PLACE = re.compile(r"[A-Za-z0-9_.:@+-]{1,32}")


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return what each counter of the table grew by, the most first, at most `COUNTERS_MAX`; it is in both readings."""
    grown = {name: count - before[name] for name, count in after.items() if name in before}
    kept = [(name, count) for name, count in grown.items() if count > 0 and _row(name) is not None]
    return dict(sorted(kept, key=lambda counted: -counted[1])[:COUNTERS_MAX])


def grown_by_about(counters: Mapping[str, int], lost: int) -> tuple[Growth, ...]:
    """Return which counters grew by about the number of lost frames: within 5 % of it, or 3; none if none were lost.

    Those of what loses nothing are left out.
    """
    margin = max(lost // ABOUT_DIVISOR, ABOUT_FRAMES)
    about = (grown for grown in growths(counters) if lost > 0 and abs(grown.count - lost) <= margin)
    return tuple(grown for grown in about if grown.name != SEARCH_RESTART)


def queue_counts(counters: Mapping[str, int]) -> dict[Subject, int]:
    """Return what was counted as dropped by queues and interfaces: together by each kind of them."""
    counts = dict.fromkeys(QUEUES, 0)
    for grown in growths(counters):
        if grown.counter.speaks_of in counts:
            counts[grown.counter.speaks_of] += grown.count
    return counts


def counts_icmp_errors(counters: Mapping[str, int]) -> bool:
    """Whether ICMP errors were sent: those that a rate limit withheld count under other names."""
    return any(name.startswith(("icmp.Out", "icmp6.Out")) and "RateLimit" not in name for name in counters)


def counter_words(counters: Mapping[str, int], lost: int) -> str:
    """Return a line for people with what the host counted in a trial that lost frames; empty if nothing.

    What grew by about the losses comes first.
    """
    about = grown_by_about(counters, lost)
    rest = [grown for grown in growths(counters) if grown not in about]
    said = [f"{grown.words}, about as many as frames were lost" for grown in about]
    said += [grown.words for grown in rest]
    more = [f"{len(said) - SHOWN_MAX} more"] if len(said) > SHOWN_MAX else []
    return f"the gateway's host counted meanwhile: {'; '.join([*said[:SHOWN_MAX], *more])}" if said else ""


def full_tables(counters: Mapping[str, int], lost: int) -> tuple[str, ...]:
    """Say which neighbour tables of the machine were full in a trial that lost frames, in sentences.

    Linux has one for all network namespaces, so its limit is none of the gateway's.
    """
    counts = {family: counters.get(f"neighbours.{family}.table_fulls", 0) for family in FAMILY_WORDS}
    return tuple(
        f"the {FAMILY_WORDS[family]} neighbour table of this machine, one for all its network namespaces, was full"
        f" {count:,} times while frames were lost: raise net.{family}.neigh.default.gc_thresh3"
        for family, count in counts.items()
        if count and lost
    )


def growths(counters: Mapping[str, int]) -> Iterator[Growth]:
    """Yield what is known of each counter that is kept."""
    for name, count in counters.items():
        if (row := _row(name)) is not None:
            yield Growth(name=name, count=count, counter=row)


def _row(name: str) -> HostCounter | None:
    return _BY_NAME.get(name) or next((row for row in _PATTERNS if _place(row.pattern, name) is not None), None)


def _place(pattern: str, name: str) -> str | None:
    """Return what stands in a name for the asterisk of a pattern; None if it is another name, or not to be shown."""
    begin, _, end = pattern.partition("*")
    place = name[len(begin) : len(name) - len(end)]
    return place if name == f"{begin}{place}{end}" and _PLACE.fullmatch(place) else None

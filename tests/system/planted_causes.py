"""Causes of loss that tests plant on gateways, as data: what each drops, and the words by which it is recognised.

A rule is written for a router of IPv4, and other gateways get it in their addresses. Rules are met by packets as they
are in the forward hook: of a tunnel the packets inside, of a NAT before it translates their source.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.system.beds import LASTING_NS, OpenBed, netns_campaign
from tests.system.stateful_beds import stateful_campaign

from gatemark.config.model import Campaign
from gatemark.units import NANOSECONDS_PER_SECOND

LEFT, RIGHT = "2001:2::", "2001:2:0:8000::"
"""Networks of the hosts of recipes with IPv6 on both sides."""


NETWORKS = {"198.18.0": LEFT, "198.19.0": RIGHT}


def of_ipv6(text: str) -> str:
    """Return rules and words about the hosts of a router of IPv4 for those of a router of IPv6."""

    def address(match: re.Match[str]) -> str:
        return f"{NETWORKS[match[1]]}{int(match[2]):x}"

    text = re.sub(r"(198\.1[89]\.0)\.(\d+)", address, text)
    text = re.sub(r"\bip (saddr|daddr|dscp|planted)\b", r"ip6 \1", text)
    return text.replace("/29", "/125").replace("type ipv4_addr;", "type ipv6_addr;")


PORTS: dict[str, Any] = {"source_ports": {"range": "1024-1535"}, "destination_ports": {"range": "1-400"}}
FLOWS: dict[str, Any] = {"source_ports": {"range": "1024-1031"}, "destination_ports": {"range": "1-8"}}
SHARED = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.0.0/30", "ea_bits": 8, "psid_offset": 6}
"""The rule of the recipe: each of four addresses is shared by 64 customer edges."""
B4S: dict[str, Any] = {
    "left": {"ipv6": {"address": "2001:2::2", "hosts": {"offset": 14, "mode": "pseudorandom", "range": "2-17"}}},
    "b4": {"address": "10.0.0.1"},
}
HOSTS = {"mode": "pseudorandom", "range": "2-33"}


def count_packets(bed: OpenBed) -> None:
    """Let rules read how many packets a connection has had."""
    bed.in_gateway("sysctl", "-q", "net.netfilter.nf_conntrack_acct=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway on which causes are planted."""

    recipe: str
    family: str = "ipv4"
    """Of the hosts on both sides."""
    loads: tuple[int, ...] = (8_000, 16_000, 32_000)
    """Frames/s."""
    is_stateful: bool = False
    is_in_guest: bool = False
    """Whether it has a kernel of its own."""
    tables: Mapping[str, Any] = field(default_factory=dict)
    """Of its campaign, if its left side has tunnels."""
    few: Mapping[str, Any] = field(default_factory=dict)
    """Of its campaign where its frames are in 64 flows."""

    def spelled(self, text: str) -> str:
        """Return rules or words for its addresses."""
        return of_ipv6(text) if self.family == "ipv6" else text

    def met(self, bed: OpenBed) -> str:
        """Return the rule that packets of frames meet; of connections those that do not establish them."""
        if not self.is_stateful:
            return "meta l4proto udp"
        count_packets(bed)
        return "meta l4proto udp ct original packets > 1"

    def words(self, text: str) -> str:
        """Return words of a sentence about a router for its own."""
        if self.is_stateful:
            text = re.sub("flows|pairs of hosts", "connections", text)
        return self.spelled(text)

    @property
    def octets(self) -> int:
        """Of its frames, in the family of its hosts."""
        return 128 if self.is_stateful or self.tables else 64 if self.family == "ipv4" else 84

    @property
    def packet_octets(self) -> int:
        """Of the packets that its rules meet."""
        return self.octets - 18

    def campaign(self, differing: str) -> Campaign:
        """Return a campaign whose frames differ by ports, by flow, by host or by traffic class."""
        traffic = {
            "direction": "forward",
            "frame_sizes": {"family": self.family, "octets": self.octets},
            **({"traffic_class": {"by_flow": [0, 40, 184]}} if differing == "classes" else {}),
        }
        sides = self._hosts() if differing == "hosts" else {}
        ports = FLOWS if differing == "flows" else PORTS
        if not self.is_stateful:
            return netns_campaign(self.recipe, **{**self._tables(differing), **sides}, traffic={**traffic, **ports})
        count = {"flows": 64, "hosts": 512}.get(differing, 4000)
        used = {key: value["range"] for key, value in ports.items()}
        if differing == "hosts":
            used = {"source_ports": "1024-1024", "destination_ports": "7-7"}
        connections = {"count": count, "rate": "4k", "timeout": "200ms", "gap": "100ms", **used}
        return stateful_campaign(
            self.recipe, **{**self._tables(differing), **sides}, traffic=traffic, connections=connections
        )

    def _tables(self, differing: str) -> dict[str, Any]:
        return {**self.tables, **({} if differing != "flows" else self.few)}

    def _hosts(self) -> dict[str, Any]:
        """Return sides with 32 hosts each, but not where the tunnels are."""
        if self.family == "ipv4":
            hosts, left, right = {"offset": 2, **HOSTS}, "198.18.0", "198.19.0"
            both = {"left": f"{left}.", "right": f"{right}."}
        else:
            hosts, both = {"offset": 14, **HOSTS}, {"left": LEFT, "right": RIGHT}
        sides = {
            side: {self.family: {"address": f"{network}2", "gateway": f"{network}1", "hosts": hosts}}
            for side, network in both.items()
        }
        return {"right": sides["right"]} if self.tables else sides


ROUTER, ROUTER6, NAT44, NAT66 = "router of IPv4", "router of IPv6", "NAT44", "NAT66"
RELAY, AFTR = "MAP-E border relay", "AFTR"
GATEWAYS: dict[str, Gateway] = {
    ROUTER: Gateway(recipe="linux-router4"),
    ROUTER6: Gateway(recipe="linux-router6", family="ipv6"),
    NAT44: Gateway(recipe="nft-nat44", is_stateful=True),
    NAT66: Gateway(recipe="nft-nat66", family="ipv6", is_stateful=True),
    RELAY: Gateway(
        recipe="linux-mape-br",
        loads=(6_000, 9_000, 12_000),
        is_in_guest=True,
        tables={"map": {"domains": [SHARED], "edges": 64}},
        few={"map": {"domains": [SHARED], "edges": 8, "forward_ports": "fixed"}},
    ),
    AFTR: Gateway(
        recipe="linux-aftr", loads=(6_000, 9_000, 12_000), is_in_guest=True, is_stateful=True, tables=B4S, few=B4S
    ),
}

STATEFUL = (NAT44, NAT66, AFTR)
"""They lose the frames that establish connections, or nothing is said of losses that no queue counted."""
TUNNELS = (RELAY, AFTR)
"""Other hosts send through them than the packets name."""


Plant = Callable[[OpenBed, int, Gateway], AbstractContextManager[object]]
"""Plants a cause on a gateway for a trial at a load, frames/s."""


FRAMES_MIN = 8_000
"""Of a trial: of fewer frames too few have one of 400 ports."""


def lasting_ns(load: int) -> int:
    """Return how long a trial at a load lasts."""
    return max(LASTING_NS, FRAMES_MIN * NANOSECONDS_PER_SECOND // load)


def frames_of(load: int) -> int:
    """Return how many frames a trial at a load has."""
    return load * lasting_ns(load) // NANOSECONDS_PER_SECOND


def rules(bed: OpenBed, gateway: Gateway, *lines: str) -> AbstractContextManager[None]:
    """Load rules about the packets of frames; of connections those that do not establish them."""
    return bed.rules(*(f"{gateway.met(bed)} {gateway.spelled(line)}" for line in lines), hook="forward")


def drops(*which: str) -> Plant:
    return lambda bed, _load, gateway: rules(bed, gateway, *(f"{rule} drop" for rule in which))


def every_eighth(bed: OpenBed, _load: int, gateway: Gateway) -> AbstractContextManager[None]:
    count_packets(bed)
    return rules(bed, gateway, "ct original packets and 7 == 3 drop")


def filters_and_polices(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[None]:
    return rules(bed, gateway, "udp dport 1-40 drop", f"limit rate over {load * 3 // 5}/second burst 20 packets drop")


def drops_in_table(text: str) -> Plant:
    return lambda bed, _load, gateway: bed.table(gateway.spelled(f"table ip planted {{\n{text}\n}}\n"))


def polices(rule: str, share: float, burst: int = 20) -> Plant:
    """Drop what is beyond a share of the load."""
    return lambda bed, load, gateway: rules(
        bed, gateway, f"{rule} limit rate over {int(load * share)}/second burst {burst} packets drop"
    )


def drops_quota(which: str, share: float) -> Plant:
    """Drop all until a share of the frames of a trial was met, or all later ones."""

    def plant(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[object]:
        frames = int(share * frames_of(load))
        return rules(bed, gateway, f"quota {which} {frames * gateway.packet_octets} bytes drop")

    return plant


def shapes(arguments: str) -> Plant:
    @contextlib.contextmanager
    def plant(bed: OpenBed, load: int, gateway: Gateway) -> Iterator[None]:
        rate = f"{load * gateway.octets * 8 // 2000}kbit"  # of half of the frames, as tc counts them
        device = bed.interface("right")
        bed.in_gateway("tc", "qdisc", "replace", "dev", device, "root", *arguments.format(rate=rate).split())
        try:
            yield
        finally:
            bed.in_gateway("tc", "qdisc", "del", "dev", device, "root")

    return plant


def stops(lasts_ms: int, share: float) -> Plant:
    """Drop everything for a time, after each share of the frames of a trial."""

    def plant(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[None]:
        frames = int(share * frames_of(load))
        return stopped_by(bed, gateway, f"numgen inc mod {frames} {frames - 1}", lasts_ms)

    return plant


def in_bursts(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[None]:
    """Drop everything for a time about four times in a trial: good and bad times, as in the model of Gilbert."""
    return stopped_by(bed, gateway, f"numgen random mod {frames_of(load) // 4} 0", 12)


def with_bad_times(bed: OpenBed, _load: int, gateway: Gateway) -> AbstractContextManager[None]:
    """Drop frames in rows: each frame may begin or end a bad time, as in the model of Gilbert."""
    met = gateway.met(bed)
    return bed.table(f"""table inet planted {{
      set bad {{ type ether_type; size 65535; flags dynamic; }}
      chain forward {{
        type filter hook forward priority -300;
        {met} meta protocol @bad numgen random mod 10 0 delete @bad {{ meta protocol }} accept
        {met} meta protocol @bad drop
        {met} numgen random mod 50 0 add @bad {{ meta protocol }} drop
      }}
    }}
    """)


def half_of_the_time(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[None]:
    """Drop the second half of every quarter of a trial but the last one, which is longer."""
    quarter = frames_of(load) // 17 * 4
    return rules(bed, gateway, f"numgen inc mod {quarter} >= {quarter // 2} drop")


def after_half_of_the_time(bed: OpenBed, load: int, gateway: Gateway) -> AbstractContextManager[None]:
    """Drop what goes to half of the hosts, once they have had their part of half of the trial."""
    octets = frames_of(load) // 4 * gateway.packet_octets
    return rules(bed, gateway, f"ip daddr 198.19.0.18-198.19.0.33 quota over {octets} bytes drop")


def stopped_by(bed: OpenBed, gateway: Gateway, which: str, lasts_ms: int) -> AbstractContextManager[None]:
    """Drop everything from frames on that a rule picks, for a time that the kernel ends."""
    met = gateway.met(bed)
    return bed.table(f"""table inet planted {{
      set stopped {{ type ether_type; size 4; flags dynamic, timeout; timeout {lasts_ms}ms; }}
      chain forward {{
        type filter hook forward priority -300;
        {met} meta protocol @stopped drop
        {met} {which} add @stopped {{ meta protocol }}
      }}
    }}
    """)


def blackhole(*what: str) -> Plant:
    @contextlib.contextmanager
    def plant(bed: OpenBed, _load: int, gateway: Gateway) -> Iterator[None]:
        which, *where = (gateway.spelled(word) for word in what)
        ip = ("ip", "-6") if gateway.family == "ipv6" else ("ip",)
        bed.in_gateway(*ip, which, "add", "blackhole", *where)
        try:
            yield
        finally:
            bed.in_gateway(*ip, which, "del", "blackhole", *where)

    return plant


SEEN = """
  set seen { type inet_service . inet_service; size 65535; flags dynamic, timeout; timeout 5s; }
  chain forward {
    type filter hook forward priority 0;
    udp sport . udp dport @seen accept
    meta l4proto udp add @seen { udp sport . udp dport } drop
  }
"""
"""The first frame of each flow makes a state and does not pass."""
FULL = """
  set seen { type inet_service . inet_service; size 40; flags dynamic, timeout; timeout 5s; }
  chain forward {
    type filter hook forward priority 0;
    udp sport . udp dport @seen accept
    meta l4proto udp add @seen { udp sport . udp dport } accept
    meta l4proto udp drop
  }
"""
"""A table of states has room for 40 flows."""
EACH = """
  set flows { type inet_service . inet_service; size 65535; flags dynamic, timeout; timeout 5s; }
  chain forward {
    type filter hook forward priority 0;
    meta l4proto udp update @flows { udp sport . udp dport limit rate over 30/second burst 5 packets } drop
  }
"""
"""A limit of each flow."""
EACH_HOST = """
  set hosts { type ipv4_addr; size 65535; flags dynamic, timeout; timeout 5s; }
  chain forward {
    type filter hook forward priority 0;
    meta l4proto udp update @hosts { ip daddr limit rate over 50/second burst 5 packets } drop
  }
"""
"""A limit of each host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plant, and how its sentence is recognised."""

    name: str
    bed: str
    plant: Plant
    cause: str
    words: str = ""
    """What the sentence has to contain."""
    quick: tuple[str, ...] = ()
    """Gateways with which the short version makes it, too."""
    lacks: Collection[str] = ()
    """Gateways for which it makes no sense."""


CASES = (
    Case(name="one destination port", bed="ports", plant=drops("udp dport 161"), cause="fields",
         words="destination port 161,", quick=(ROUTER,)),
    Case(name="two destination ports", bed="ports", plant=drops("udp dport { 69, 161 }"), cause="fields",
         words="destination ports "),
    Case(name="one source port", bed="ports", plant=drops("udp sport 1500"), cause="fields", words="source port 1500,",
         lacks=(RELAY,)),
    Case(name="privileged ports", bed="ports", plant=drops("udp dport 1-99"), cause="fields",
         words="destination ports 1 to 99,"),
    Case(name="two ranges of ports", bed="ports", plant=drops("udp dport 100-149", "udp dport 300-349"),
         cause="fields", words="destination ports 100 to 149 and 300 to 349,"),
    Case(name="odd ports", bed="ports", plant=drops("@th,15,1 1"), cause="fields", words="odd source ports,"),
    Case(name="a bit of a port", bed="ports", plant=drops("@th,28,1 1"), cause="fields",
         words="bit 3 set in their destination port,"),
    Case(name="two of three frames of a port", bed="ports",
         plant=drops("udp dport 161 numgen random mod 3 < 2"), cause="fields", words="destination port 161"),
    Case(name="one destination host", bed="hosts", plant=drops("ip daddr 198.19.0.17"), cause="fields",
         words="destination address 198.19.0.17,", quick=(ROUTER,)),
    Case(name="one source host", bed="hosts", plant=drops("ip saddr 198.18.0.9"), cause="fields",
         words="source address 198.18.0.9,",
         lacks=TUNNELS),
    Case(name="one traffic class", bed="classes", plant=drops("ip dscp ef"), cause="fields",
         words="traffic class 184,", quick=(ROUTER,)),
    Case(name="a route to nowhere", bed="hosts", plant=blackhole("route", "198.19.0.16/29"), cause="fields",
         words="destination addresses 198.19.0.16 to 198.19.0.23,", quick=(ROUTER6,)),
    Case(name="a rule for some sources", bed="hosts", plant=blackhole("rule", "from", "198.18.0.24/29"),
         cause="fields", words="source addresses 198.18.0.24 to 198.18.0.31,",
         lacks=TUNNELS),
    Case(name="pairs of hosts, by their hash", bed="hosts", plant=drops("jhash ip saddr . ip daddr mod 7 3"),
         cause="flows", words="pairs of hosts lost everything",
         lacks=TUNNELS),
    Case(name="flows, by their hash", bed="flows",
         plant=drops("jhash ip saddr . ip daddr . udp sport . udp dport mod 4 1"), cause="flows",
         words="of 64 flows lost everything, the others nothing", quick=(ROUTER,)),
    Case(name="the first frame of each flow", bed="flows", plant=drops_in_table(SEEN), cause="first_frames",
         words="the first of the 64 flows",
         lacks=STATEFUL),
    Case(name="every tenth frame", bed="ports", plant=drops("numgen inc mod 10 3"), cause="residue",
         words="of every 10 frames number "),
    Case(name="two of every sixteen frames", bed="ports", plant=drops("numgen inc mod 16 { 3, 9 }"),
         cause="residue", words="of every 16 frames numbers "),
    Case(name="two of a hundred, at random", bed="ports", plant=drops("numgen random mod 50 7"), cause="uniform",
         words="independently of field and time"),
    Case(name="one of three, at random", bed="ports", plant=drops("numgen random mod 3 1"), cause="uniform",
         words="independently of field and time"),
    Case(name="the first frames", bed="ports", plant=drops_quota("until", 0.05), cause="start",
         words="lost frames were sent in the first "),
    Case(name="nothing after so many frames", bed="ports", plant=drops_quota("over", 0.65), cause="end",
         words="on nothing arrived"),
    Case(name="a stop", bed="ports", plant=stops(60, 0.6), cause="gap", words="one gap of "),
    Case(name="several stops", bed="ports", plant=stops(16, 0.13), cause="gap", words="gaps of "),
    Case(name="a policer", bed="ports", plant=polices("meta l4proto udp", 0.6), cause="queue",
         words="a queue overflowed", quick=(ROUTER,),
         lacks=STATEFUL),
    Case(name="a shaper with a short queue", bed="ports", plant=shapes("tbf rate {rate} burst 3000 limit 6000"),
         cause="queue", words="a queue overflowed"),
    Case(name="a shaper with a long queue", bed="ports", plant=shapes("tbf rate {rate} burst 3000 limit 60000"),
         cause="queue", words="a queue overflowed"),
    Case(name="sources, by their hash", bed="hosts", plant=drops("jhash ip saddr mod 4 3"), cause="fields",
         words=" source addresses",
         lacks=TUNNELS, quick=(NAT44,)),
    Case(name="a policer of one class", bed="classes", plant=polices("ip dscp ef", 0.1), cause="fields",
         words="traffic class 184;"),
    Case(name="a policer of one host", bed="hosts", plant=polices("ip daddr 198.19.0.17", 0.005, 5), cause="fields",
         words="destination address 198.19.0.17;"),
    Case(name="half of the odd ports", bed="ports", plant=drops("@th,15,1 1 numgen random mod 2 1"), cause="fields",
         words="odd source ports;"),
    Case(name="odd ports of one class", bed="classes", plant=drops("ip dscp ef @th,15,1 1"), cause="fields",
         words=" odd source ports as well", quick=(ROUTER,)),
    Case(name="odd ports of one host", bed="hosts", plant=drops("ip daddr 198.19.0.17 @th,15,1 1"), cause="fields",
         words=" odd source ports as well", lacks=STATEFUL),
    Case(name="a full table of flows", bed="flows", plant=drops_in_table(FULL), cause="flows",
         words="24 of 64 flows lost everything",
         lacks=STATEFUL),
    Case(name="bursts of losses", bed="ports", plant=in_bursts, cause="gap", words=" that were sent in "),
    Case(name="a limit of each flow", bed="flows", plant=drops_in_table(EACH), cause="each",
         words="each flow has a limit of its own",
         lacks=STATEFUL),
    Case(name="one PSID in eight", bed="ports", plant=drops("@th,6,3 5"), cause="fields", words=" customer edges",
         lacks=(ROUTER, ROUTER6, NAT44, NAT66, AFTR)),
    Case(name="B4s, by the hash of their place", bed="ports", plant=drops("jhash ip saddr mod 4 1"), cause="fields",
         words=" source address", lacks=(ROUTER, ROUTER6, NAT44, NAT66, RELAY)),
    Case(name="checksums", bed="ports", plant=drops("@th,60,4 7"), cause="uniform",
         words="independently of field and time"),
    Case(name="every eighth frame of a flow", bed="flows", plant=every_eighth,
         cause="uniform", words="independently of field and time"),
    Case(name="a policer with a large burst", bed="ports", plant=polices("meta l4proto udp", 0.5, 1500),
         cause="queue", words="a queue overflowed",
         lacks=STATEFUL),
    Case(name="a filter and a policer", bed="ports",
         plant=filters_and_polices, cause="queue", words="not evenly",
         lacks=STATEFUL),
    Case(name="every hundredth frame", bed="ports", plant=drops("numgen inc mod 100 3"), cause="queue",
         words="or one of every 100 frames is lost",
         lacks=STATEFUL),
    Case(name="bad times of some frames", bed="ports", plant=with_bad_times, cause="rows",
         words="on average, which began at random,", quick=(ROUTER,)),
    Case(name="half of the hosts after half of the time", bed="hosts", plant=after_half_of_the_time, cause="spell",
         words="as chance draws them, not evenly over destination addresses: 16 of 32 "),
    Case(name="half of the time", bed="ports", plant=half_of_the_time, cause="gap", words="4 gaps of "),
    Case(name="a limit of each host", bed="hosts", plant=drops_in_table(EACH_HOST), cause="each",
         words="each destination address has a limit of its own",
         lacks=STATEFUL, quick=(ROUTER,)),
    Case(name="half of the flows, by their hash", bed="ports",
         plant=drops("jhash ip saddr . ip daddr . udp sport . udp dport mod 2 1"), cause="flows",
         words=" flows lost everything, the others nothing", lacks=TUNNELS),
    Case(name="all hosts but one", bed="hosts", plant=drops("ip daddr != 198.19.0.9"), cause="fields",
         words="198.19.0.2 to 198.19.0.8 and 198.19.0.10 to 198.19.0.33,"),
    Case(name="ten of a hundred in a row", bed="ports", plant=drops("numgen inc mod 100 < 10"), cause="queue",
         words="or 10 in a row of every 100 frames are lost at any load", lacks=STATEFUL),
)  # fmt: skip

"""Which of two gateways in a row damaged a frame: hand-made frames, for every kind of fault and either gateway."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest

from gatemark.bed_kinds import BED_KINDS
from gatemark.config.tables import EamEntry
from gatemark.config.views import Forwarding
from gatemark.damage.decide import INCOMPLETE, Captured, Kind, Links, answer_for, arrived_of, decide, unanswered
from gatemark.damage.hop_limits import lowered_by
from gatemark.damage.row import Mapping, Row, row_of, stated_row
from gatemark.damage.sighting import read_sighting
from gatemark.damage.steps import FORMS, OF_MARK, OF_WHOLE, RULES
from gatemark.dut.recipe import load_recipe
from gatemark.facts import OneWay, TrafficClass
from gatemark.map_domains.domain import Edge
from gatemark.packets import IpAddress
from gatemark.trial.damage import AT_LAST_LINK, CAME_BACK, CUSTOMER, PROVIDER, Damage
from gatemark.trial.named_counts import FAULTS
from gatemark.trial.report import KeptFrame

ROWS = ("tayga-mapt", "linux-dslite", "tayga-jool-464xlat")
SERVER, HOST = "198.19.0.2", "198.18.0.2"
ETHERNET = bytes.fromhex("020000000101020000000201")


@cache
def row(name: str) -> Row:
    recipe = load_recipe(name)
    return row_of(recipe.standings({"left": recipe.side("left"), "right": recipe.side("right")}))


@cache
def edge_of_row() -> Edge:
    table = load_recipe(ROWS[0]).map
    assert table is not None and table.gateway_edge is not None
    return table.gateway_edge


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A UDP packet by its fields; a sum that is not 0 makes a checksum or a length wrong by that much."""

    version: int
    source: str
    destination: str
    ports: tuple[int, int]
    hop_limit: int = 64
    traffic_class: int = 0
    flow_label: int = 0
    dont_fragment: bool = False
    identification: int = 0
    flags: int = 0
    """Of IPv4 besides DF: 0x8000 is reserved, 0x2000 more fragments."""
    header_sum: int = 0
    length: int = 0
    udp_length: int = 0
    udp_sum: int = 0
    without_sum: bool = False
    extensions: bytes = b""
    """Of IPv6: destination options."""
    fragment: bytes = b""
    protocol: int = 17
    outer: tuple[str, str] | None = None
    """Ends of a tunnel in IPv6."""
    mark: bytes = bytes.fromhex("12345678a0000000002a") + bytes(8)
    data: bytes = field(default=bytes(range(22)))

    def octets(self) -> bytes:
        """Return it as an Ethernet frame."""
        packet = self.packet()
        if self.outer is not None:
            ends = b"".join(ip_address(end).packed for end in self.outer)
            packet = struct.pack("!IHBB", 6 << 28, len(packet), 4, 64) + ends + packet
            return ETHERNET + b"\x86\xdd" + packet
        return ETHERNET + (b"\x08\0" if self.version == 4 else b"\x86\xdd") + packet

    def packet(self) -> bytes:
        ends = ip_address(self.source).packed + ip_address(self.destination).packed
        length = 8 + len(self.mark) + len(self.data)
        udp = struct.pack("!HHHH", *self.ports, length + self.udp_length, 0) + self.mark + self.data
        summed = summed_up(ends + struct.pack("!II", length, 17) + udp) ^ 0xFFFF or 0xFFFF
        checksum = 0 if self.without_sum else (summed + self.udp_sum) & 0xFFFF
        udp = udp[:6] + struct.pack("!H", checksum) + udp[8:]
        if self.version == 6:
            label = 6 << 28 | self.traffic_class << 20 | self.flow_label
            behind = self.fragment + self.extensions
            inside = 44 if self.fragment else 60 if self.extensions else self.protocol
            carried = len(behind) + len(udp) + self.length
            return struct.pack("!IHBB", label, carried, inside, self.hop_limit) + ends + behind + udp
        flags = self.flags | (0x4000 if self.dont_fragment else 0)
        total = 20 + len(udp) + self.length
        start = struct.pack("!BBHHH", 0x45, self.traffic_class, total, self.identification, flags)
        header = start + struct.pack("!BBH", self.hop_limit, self.protocol, 0) + ends
        checksum = (summed_up(header) ^ 0xFFFF) + self.header_sum
        return header[:10] + struct.pack("!H", checksum & 0xFFFF) + header[12:] + udp


def summed_up(data: bytes) -> int:
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass(frozen=True, kw_only=True)
class Way:
    """What becomes of the address pairs and ports in one direction, and what each gateway does to the rest."""

    name: str
    way: OneWay
    traffic_class: TrafficClass

    def entered(self, **changes: Any) -> Frame:
        """Return the frame as the Tester sends it."""
        stream = 0xA0 | (self.way == "reverse") << 1 | (self.traffic_class == "background")
        mark = bytes.fromhex("12345678") + bytes((stream,)) + bytes.fromhex("000000002a") + bytes(range(8))
        frame = self._on("entered", Frame(version=4, source="", destination="", ports=(0, 0), mark=mark))
        return replace(frame, dont_fragment=self.traffic_class == "foreground" and self.name == ROWS[1], **changes)

    def middle(self, before: Frame, **changes: Any) -> Frame:
        """Return what the first gateway makes of it, if it works, with these changes."""
        first, _ = self._decrements()
        frame = self._on("middle", replace(before, hop_limit=before.hop_limit - first))
        if frame.version == 6:
            frame = replace(frame, dont_fragment=False, identification=0, header_sum=0, flags=0)
        return replace(frame, **changes)

    def arrived(self, before: Frame, **changes: Any) -> Frame:
        """Return what the second gateway makes of that, if it works, with these changes."""
        _, second = self._decrements()
        frame = self._on("arrived", replace(before, hop_limit=before.hop_limit - second))
        if before.version == 6 and frame.version == 4:
            frame = replace(frame, dont_fragment=self.name == ROWS[0], extensions=b"", flow_label=0)
            if self.name == ROWS[2]:  # tayga sets DF always, Jool of so short a packet never
                frame = replace(frame, dont_fragment=self.way == "reverse")
        return replace(frame, **changes)

    def _decrements(self) -> tuple[int, int]:
        if self.traffic_class == "background":
            return 1, 1
        both = {ROWS[0]: (3, 3), ROWS[1]: (1, 1), ROWS[2]: (3, 1)}[self.name]
        return both if self.way == "forward" else (both[1], both[0])

    def _on(self, link: str, frame: Frame) -> Frame:
        """Return the frame with addresses, ports, family and tunnel of a link; changes of the middle are not undone."""
        forward = {"entered": "customer", "middle": "middle", "arrived": "server"}
        reverse = {"entered": "server", "middle": "middle", "arrived": "customer"}
        place = (forward if self.way == "forward" else reverse)[link]
        if self.traffic_class == "background":
            ends: dict[str, Any] = {"version": 6, "outer": None}
            pairs = dict.fromkeys(("customer", "middle", "server"), ("2001:2::2", "2001:2:0:8000::2", (1000, 2000)))
        else:
            ends, pairs = self._pairs(place)
        source, destination, ports = pairs[place]
        if self.way == "reverse":
            source, destination, ports = destination, source, ports[::-1]
        return replace(frame, source=source, destination=destination, ports=ports, **ends)

    def _pairs(self, place: str) -> tuple[dict[str, Any], dict[str, tuple[str, str, tuple[int, int]]]]:
        inner: dict[str, Any] = {"version": 4, "outer": None}
        customer, server = (HOST, SERVER, (1000, 2000)), ("198.19.0.1", SERVER, (4000, 2000))
        if self.name == ROWS[1]:
            middle = customer
            if place == "middle":
                ends = ("2001:2:0:f001::1", "2001:2:0:ff::1")
                inner = {"version": 4, "outer": ends if self.way == "forward" else ends[::-1]}
        elif self.name == ROWS[0]:
            edge = edge_of_row()
            server = (str(edge.ipv4), SERVER, (edge.ports.port(3), 2000))
            middle = (str(edge.address), "2001:2:0:6400::c613:2", server[2])
        else:
            middle = ("2001:2:0:4000::c612:2", "2001:2:0:6400::c613:2", (1000, 2000))
        if place == "middle" and self.name != ROWS[1]:
            inner = {"version": 6, "outer": None}
        return inner, {"customer": customer, "middle": middle, "server": server}


FOREGROUND = [Way(name=name, way=way, traffic_class="foreground") for name in ROWS for way in ("forward", "reverse")]
BACKGROUND = [Way(name=ROWS[0], way=way, traffic_class="background") for way in ("forward", "reverse")]
OPTIONS = bytes.fromhex("1100010400000000")


def at_middle(way: Way, version: int) -> bool:
    """Whether the packet itself is of a family on the link in the middle."""
    return way.middle(way.entered()).version == version


def links_of(way: OneWay, entered: Sequence[bytes], middle: Sequence[bytes], lost: int = 0) -> Links:
    """Return what was captured of one direction."""
    left, right = (entered, ()) if way == "forward" else ((), entered)
    return Links(Captured(left=tuple(left), middle=tuple(middle), right=tuple(right), lost=lost))


def passed(name: str, *damaged: str, wrong: int = 0) -> Links:
    """Return what all three links carry of ten frames of each class of a direction, the first `wrong` of them damaged.

    `damaged`: the links on which these have another hop limit.
    """
    carried: dict[str, list[bytes]] = {"left": [], "middle": [], "right": []}
    for way in (way for way in (*FOREGROUND, *BACKGROUND) if way.name == name or way in BACKGROUND):
        for number in range(10):
            change = {"hop_limit": 9} if number < wrong else {}
            mark = way.entered().mark
            entered = way.entered(mark=mark[:9] + bytes((number,)) + mark[10:])
            middle = way.middle(entered, **(change if "middle" in damaged else {}))
            arrived = way.arrived(middle, **(change if "end" in damaged else {}))
            ends = ("left", "right") if way.way == "forward" else ("right", "left")
            for link, frame in zip((ends[0], "middle", ends[1]), (entered, middle, arrived), strict=True):
                carried[link].append(frame.octets())
    at_left, at_middle, at_right = map(tuple, carried.values())
    return Links(Captured(left=at_left, middle=at_middle, right=at_right))


def stated_of(name: str, links: Links, **changes: Any) -> Row:
    """Return what is known of two gateways of the user's own that do as those of a recipe, with these changes."""
    recipe = load_recipe(name)
    edge, model = edge_of_row() if recipe.technology.has_rules else None, recipe.gateway.model_copy(update=changes)
    of_both = Forwarding(model=model, technology=recipe.technology, bed=BED_KINDS["ports"], edge=edge)
    return stated_row(of_both, lowered_by(links, "foreground"), lowered_by(links, "background"))


@pytest.mark.parametrize("damaged", ["middle", "end"])
@pytest.mark.parametrize("name", ROWS)
def test_of_two_gateways_as_much_is_known_as_is_stated_and_seen(name: str, damaged: str) -> None:
    """Hop limits from most of the frames: of some that are damaged nothing is learned."""
    known, stated = row(name), stated_of(name, passed(name, damaged, wrong=4))
    assert stated.middle == known.middle
    for mine, its in ((stated.customer, known.customer), (stated.provider, known.provider)):
        assert mine == replace(its, mapping=its.mapping if name == ROWS[0] else mine.mapping)
    nothing = stated_of(name, passed(name, damaged, wrong=10))
    assert nothing.customer.hop_limit_decrement is nothing.provider.hop_limit_decrement is None


def test_one_rule_of_df_is_that_of_both_translators() -> None:
    rules = {"dont_fragment_rule": "rfc6145", "reverse_dont_fragment_rule": None}
    stated = stated_of(ROWS[2], passed(ROWS[2]), **rules)
    assert (stated.customer.dont_fragment_rule, stated.provider.dont_fragment_rule) == ("rfc6145", "rfc6145")


def test_nobody_is_blamed_for_a_hop_limit_of_which_nothing_is_known() -> None:
    way = FOREGROUND[2]
    links = passed(way.name, "end", wrong=10)
    kind, frame = Kind(way.way, way.traffic_class, "hop_limit"), links.captured.right[0]
    answer, _ = answer_for(kind, frame, links, stated_of(way.name, links))
    assert (answer.by, answer.why) == (None, "it does not follow from what is on the link between both")


def verdict(way: Way, reason: str, entered: Frame, middle: Frame | None, arrived: Frame) -> tuple[str | None, str]:
    """Return who is blamed: "first", "second", "both" or None, and why not."""
    links = links_of(way.way, [entered.octets()], [] if middle is None else [middle.octets()])
    answer, _ = answer_for(Kind(way.way, way.traffic_class, reason), arrived.octets(), links, row(way.name))
    names = {"customer": "first", "provider": "second"}
    if way.way == "reverse":
        names = {"customer": "second", "provider": "first"}
    return (None if answer.by is None else names.get(answer.by, answer.by)), answer.why


CHANGES: dict[str, dict[str, Any]] = {
    "hop_limit": {"hop_limit": 7},
    "traffic_class": {"traffic_class": 4},
    "payload": {"data": bytes(22)},
    "udp_checksum": {"udp_sum": 3},
    "udp_length": {"udp_length": -1},
    "length": {"length": -1},
}
"""Changes of a field that a packet has in both families."""


@pytest.mark.parametrize("reason", CHANGES)
@pytest.mark.parametrize("way", [*FOREGROUND, *BACKGROUND], ids=str)
def test_who_changed_a_field(way: Way, reason: str) -> None:
    change, entered = CHANGES[reason], way.entered()
    middle, wrong = way.middle(entered), way.middle(entered, **change)
    again = {name: 9 for name in change if reason in ("hop_limit", "traffic_class")}
    assert verdict(way, reason, entered, wrong, way.arrived(wrong))[0] == "first"
    assert verdict(way, reason, entered, middle, way.arrived(middle, **change))[0] == "second"
    if again:
        assert verdict(way, reason, entered, wrong, way.arrived(wrong, **again))[0] == "both"
    by, why = verdict(way, reason, entered, middle, way.arrived(middle))
    assert by is None
    assert why == "each gateway did its part, but the campaign expects something else"
    assert verdict(way, reason, entered, None, way.arrived(wrong)) == (
        None,
        "the frame was not captured on the link between both",
    )


ONLY_IPV4: dict[str, dict[str, Any]] = {
    "ipv4_header": {"flags": 0x8000},
    "ipv4_header_checksum": {"header_sum": 1},
    "fragment": {"flags": 0x2000},
}


@pytest.mark.parametrize("reason", ONLY_IPV4)
@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_who_changed_a_header_of_ipv4(way: Way, reason: str) -> None:
    change, entered = ONLY_IPV4[reason], way.entered()
    middle = way.middle(entered)
    assert verdict(way, reason, entered, middle, way.arrived(middle, **change))[0] == "second"
    if at_middle(way, 4):
        wrong = way.middle(entered, **change)
        assert verdict(way, reason, entered, wrong, way.arrived(wrong))[0] == "first"


@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_who_changed_df(way: Way) -> None:
    entered = way.entered()
    middle = way.middle(entered)
    right = way.arrived(middle)
    flipped = replace(right, dont_fragment=not right.dont_fragment)
    assert verdict(way, "dont_fragment", entered, middle, flipped)[0] == "second"
    assert verdict(way, "dont_fragment", entered, middle, right)[0] is None
    if at_middle(way, 4):
        wrong = way.middle(entered, dont_fragment=not middle.dont_fragment)
        assert verdict(way, "dont_fragment", entered, wrong, way.arrived(wrong))[0] == "first"
    else:  # a fragment header stands for DF clear
        stated = way.middle(entered, fragment=bytes.fromhex("1100000000000001"))
        by, why = verdict(way, "dont_fragment", entered, stated, flipped)
        assert (by, why) == (None, "it does not follow from what is on the link between both")


@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_who_changed_the_identification(way: Way) -> None:
    entered = way.entered()
    middle = way.middle(entered)
    by = verdict(way, "identification", entered, middle, way.arrived(middle, identification=5))[0]
    assert by == ("second" if at_middle(way, 4) else None)  # a translator makes a new one
    if at_middle(way, 4):
        wrong = way.middle(entered, identification=5)
        assert verdict(way, "identification", entered, wrong, way.arrived(wrong))[0] == "first"


@pytest.mark.parametrize(
    ("reason", "change"), [("flow_label", {"flow_label": 9}), ("extension_headers", {"extensions": OPTIONS})]
)
@pytest.mark.parametrize("way", BACKGROUND, ids=str)
def test_who_changed_a_header_of_ipv6(way: Way, reason: str, change: dict[str, Any]) -> None:
    entered = way.entered(flow_label=77)
    middle, wrong = way.middle(entered), way.middle(entered, **change)
    assert verdict(way, reason, entered, wrong, way.arrived(wrong))[0] == "first"
    assert verdict(way, reason, entered, middle, way.arrived(middle, **change))[0] == "second"


def test_a_router_may_label_a_flow() -> None:
    way = BACKGROUND[0]
    entered = way.entered()
    labelled = way.middle(entered, flow_label=5)
    assert verdict(way, "flow_label", entered, labelled, way.arrived(labelled, flow_label=6))[0] == "second"


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_congestion_may_be_marked_where_it_is_understood(before: int) -> None:
    way = FOREGROUND[0]
    entered = way.entered(traffic_class=before)
    marked = way.middle(entered, traffic_class=3)
    expected = {0: "both", 1: "second", 2: "second", 3: "second"}
    assert verdict(way, "traffic_class", entered, marked, way.arrived(marked, traffic_class=16))[0] == expected[before]


@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_a_frame_without_checksum_gets_one_in_ipv6_alone(way: Way) -> None:
    entered = way.entered(without_sum=True)
    is_ipv4 = at_middle(way, 4)
    right, wrong = (way.middle(entered, without_sum=bare) for bare in (is_ipv4, not is_ipv4))
    assert verdict(way, "udp_checksum", entered, wrong, way.arrived(wrong, udp_sum=0 if is_ipv4 else 3))[0] == "first"
    damaged = way.arrived(right, without_sum=False, udp_sum=3)
    assert verdict(way, "udp_checksum", entered, right, damaged)[0] == "second"


def test_a_checksum_that_a_known_translator_leaves_out_is_right_in_ipv4_where_it_is_due() -> None:
    way = FOREGROUND[1]
    entered = way.entered()
    middle = way.middle(entered)
    assert verdict(way, "udp_checksum", entered, middle, way.arrived(middle, without_sum=True))[0] == "second"
    word = way.arrived(way.middle(way.entered(data=bytes(22)))).packet()[26:28]
    due = way.entered(data=word + bytes(20))  # 0xffff is due in one of 65,536 packets
    middle = way.middle(due)
    assert way.arrived(middle).packet()[26:28] == b"\xff\xff"
    assert verdict(way, "udp_checksum", due, middle, way.arrived(middle, without_sum=True))[0] is None
    word = way.middle(way.entered(data=bytes(22))).packet()[46:48]
    due = way.entered(data=word + bytes(20))
    zero = way.middle(due, without_sum=True)
    assert way.middle(due).packet()[46:48] == b"\xff\xff"
    assert verdict(way, "udp_checksum", due, zero, way.arrived(zero, without_sum=False, udp_sum=1))[0] == "first"


FORM: dict[str, dict[str, Any]] = {
    "family": {"version": 6, "source": "2001:2::7", "destination": "2001:2::8", "outer": None},
    "encapsulated": {"outer": ("2001:2::7", "2001:2::8"), "fragment": b""},
    "headers": {"protocol": 6},
}


@pytest.mark.parametrize("reason", FORM)
@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_who_made_other_headers(way: Way, reason: str) -> None:
    change, entered = FORM[reason], way.entered()
    middle = way.middle(entered)
    damaged = way.arrived(middle, **change)
    assert verdict(way, reason, entered, middle, damaged)[0] == "second"
    if reason == "headers":
        wrong = way.middle(entered, **change)
        assert verdict(way, reason, entered, wrong, damaged)[0] == "both"
        assert verdict(way, "hop_limit", entered, wrong, damaged)[0] is None


@pytest.mark.parametrize("way", FOREGROUND, ids=str)
@pytest.mark.parametrize("end", ["source", "destination"])
@pytest.mark.parametrize("what", ["address", "port"])
def test_who_changed_an_end(way: Way, end: str, what: str) -> None:
    """Of the customer's end the gateway that keeps connections chooses both; the other must leave them alone."""
    reason = f"{end}_{what}"
    entered = way.entered()
    middle = way.middle(entered)

    def changed(frame: Frame) -> Frame:
        if what == "address":
            ends: dict[str, Any] = {end: "198.18.9.9" if frame.version == 4 else "2001:2::99"}
            return replace(frame, **ends)
        return replace(frame, ports=(9, frame.ports[1]) if end == "source" else (frame.ports[0], 9))

    wrong = changed(middle)
    is_customer = (end == "source") == (way.way == "forward")
    keeper_is_first = (way.name == ROWS[0]) == (way.way == "forward")
    spoiled = changed(way.arrived(middle))
    kept = way.arrived(wrong, **({end: getattr(wrong, end)} if wrong.version == 4 else {}))
    if what == "port":
        kept = replace(kept, ports=wrong.ports)
    if not is_customer:
        assert verdict(way, reason, entered, middle, spoiled)[0] == "second"
        assert verdict(way, reason, entered, wrong, kept)[0] in ("first", "both")
    elif keeper_is_first:
        assert verdict(way, reason, entered, middle, way.arrived(middle))[0] == "first"
        assert verdict(way, reason, entered, middle, spoiled)[0] == "second"
    else:
        assert verdict(way, reason, entered, middle, spoiled)[0] == "second"
        assert verdict(way, reason, entered, wrong, spoiled)[0] == "first"


OF_CUSTOMER = sorted(reason for reason, rule in RULES.items() if rule is RULES["mapping_changed"])


@pytest.mark.parametrize("reason", OF_CUSTOMER)
@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_a_wrong_choice_is_that_of_the_gateway_that_keeps_connections(way: Way, reason: str) -> None:
    """Unless the other one changed what was chosen."""
    entered = way.entered()
    middle = way.middle(entered)
    arrived = way.arrived(middle)
    is_source, keeper_is_first = way.way == "forward", (way.name == ROWS[0]) == (way.way == "forward")
    ports = (9, arrived.ports[1]) if is_source else (arrived.ports[0], 9)
    if keeper_is_first:
        assert verdict(way, reason, entered, middle, arrived)[0] == "first"
        assert verdict(way, reason, entered, middle, replace(arrived, ports=ports))[0] == "second"
    else:
        assert verdict(way, reason, entered, middle, arrived)[0] == "second"
        wrong = replace(middle, ports=(9, middle.ports[1]) if is_source else (middle.ports[0], 9))
        assert verdict(way, reason, entered, wrong, arrived)[0] == "first"


@pytest.mark.parametrize("reason", sorted(AT_LAST_LINK))
@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_the_last_gateway_alone_writes_the_header_of_the_last_link(way: Way, reason: str) -> None:
    entered = way.entered()
    middle = way.middle(entered)
    assert verdict(way, reason, entered, middle, way.arrived(middle))[0] == "second"


@pytest.mark.parametrize("reason", sorted(OF_MARK))
@pytest.mark.parametrize("way", FOREGROUND, ids=str)
def test_who_changed_the_mark(way: Way, reason: str) -> None:
    entered = way.entered()
    middle = way.middle(entered)
    mark = middle.mark[:5] + bytes.fromhex("ffffffffff") + middle.mark[10:]
    wrong = replace(middle, mark=mark)
    assert verdict(way, reason, entered, wrong, way.arrived(wrong))[0] == "first"
    assert verdict(way, reason, entered, middle, way.arrived(middle, mark=mark))[0] == "second"
    assert verdict(way, reason, entered, middle, way.arrived(middle)) == (None, "its mark cannot be compared")
    lossy, kind = links_of(way.way, [entered.octets()], [middle.octets()], lost=1), Kind(way.way, "foreground", reason)
    answer, _ = answer_for(kind, way.arrived(middle, mark=mark).octets(), lossy, row(way.name))
    assert (answer.by, answer.why) == (None, "the capture is not complete")


@pytest.mark.parametrize(("times", "by"), [(0, "customer"), (1, None), (2, "provider"), (3, None)])
def test_who_sent_a_frame_back(times: int, by: str | None) -> None:
    way = FOREGROUND[0]
    entered = way.entered()
    middle = way.middle(entered).octets()
    other = replace(way.middle(entered), mark=bytes(18)).octets()
    kind = Kind("forward", "foreground", CAME_BACK)
    links = Links(Captured(left=(entered.octets(),), middle=(middle,) * times + (other,), right=()))
    answer, _ = answer_for(kind, entered.octets(), links, row(way.name))
    assert answer.by == by
    for unseen in (
        Captured(left=(entered.octets(),), middle=(middle, other), right=(), lost=1),
        Captured(left=(entered.octets(),), middle=(), right=()),
    ):
        answer, _ = answer_for(kind, entered.octets(), Links(unseen), row(way.name))
        assert (answer.by, answer.why) == (None, "the capture is not complete")


@pytest.mark.parametrize("reason", sorted(OF_WHOLE))
def test_a_frame_that_was_cut_is_not_compared_with_a_whole_one(reason: str) -> None:
    """The engine keeps 2,048 octets; what the first gateway damaged is no fault of the second one."""
    way = FOREGROUND[0]
    entered = replace(way.entered(), data=bytes(4000))
    middle = replace(way.middle(entered), data=b"x" + bytes(3999))
    arrived = way.arrived(middle).octets()
    links = links_of(way.way, [entered.octets()], [middle.octets()])
    answer, _ = answer_for(Kind(way.way, "foreground", reason), arrived[:2048], links, row(way.name))
    assert answer.by in ("customer", None)
    whole, _ = answer_for(Kind(way.way, "foreground", "payload"), arrived, links, row(way.name))
    assert whole.by == "customer"


def test_the_longest_entry_says_which_address_stands_for_another() -> None:
    entries = [("198.18.0.0/24", "2001:2::a00/120"), ("198.18.0.5/32", "2001:2::b/128")]
    eam = tuple(EamEntry.model_validate({"ipv4": ipv4, "ipv6": ipv6}) for ipv4, ipv6 in entries)
    mapping = Mapping(prefix=None, entries=eam)
    assert mapping.stands_for(IPv6Address("2001:2::b"), IPv4Address("198.18.0.5"))
    assert not mapping.stands_for(IPv6Address("2001:2::a05"), IPv4Address("198.18.0.5"))
    assert mapping.stands_for(IPv6Address("2001:2::a06"), IPv4Address("198.18.0.6"))
    assert mapping.stands_for(IPv6Address("2001:2::a06"), IPv4Address("192.0.2.1")) is None


def test_a_frame_that_is_there_twice_is_not_judged() -> None:
    way = FOREGROUND[0]
    entered = way.entered()
    middle = way.middle(entered)
    links = Links(Captured(left=(entered.octets(),), middle=(middle.octets(),) * 2, right=()))
    kind = Kind("forward", "foreground", "hop_limit")
    answer, _ = answer_for(kind, way.arrived(middle, hop_limit=1).octets(), links, row(way.name))
    assert (answer.by, answer.why) == (None, "the frame was captured more than once")
    stranger = replace(way.arrived(middle), mark=bytes(18))
    assert answer_for(kind, stranger.octets(), links, row(way.name))[0].why == "it is not among the frames captured"


def test_a_capture_that_lost_frames_says_so() -> None:
    """On the link where the frame entered, and on that between both."""
    way = FOREGROUND[0]
    entered = way.entered()
    arrived = way.arrived(way.middle(entered), hop_limit=1).octets()
    kind = Kind("forward", "foreground", "hop_limit")
    for left in ((), (entered.octets(),)):
        links = Links(Captured(left=left, middle=(), right=(), lost=1))
        answer, _ = answer_for(kind, arrived, links, row(way.name))
        assert (answer.by, answer.why) == (None, INCOMPLETE)


def test_every_fault_of_a_row_has_a_rule() -> None:
    """Rows end in IPv4, or in IPv6 in no tunnel, and echo requests are not asked about."""
    of_tunnels = {reason for reason in FAULTS if reason.startswith("tunnel_")}
    of_echo = {reason for reason, words in FAULTS.items() if words.startswith("echo")}
    decided = RULES.keys() | AT_LAST_LINK | OF_MARK | {CAME_BACK}
    assert FAULTS.keys() - decided == (of_tunnels - FORMS) | of_echo
    assert decided <= FAULTS.keys()
    way = FOREGROUND[0]
    entered = way.entered()
    middle = way.middle(entered)
    by, why = verdict(way, "sequence", entered, middle, way.arrived(middle))
    assert (by, why) == (None, "nothing says what this fault must look like on the link between both")


class TestDecide:
    way = FOREGROUND[0]

    def frames(self, number: int, *, is_first: bool) -> tuple[bytes, bytes, bytes]:
        way = self.way
        entered = way.entered()
        entered = replace(entered, mark=entered.mark[:9] + bytes((number,)) + entered.mark[10:])
        middle = way.middle(entered, **({"hop_limit": 9} if is_first else {}))
        return entered.octets(), middle.octets(), way.arrived(middle, **({} if is_first else {"hop_limit": 5})).octets()

    def test_all_frames_count(self) -> None:
        triples = [self.frames(number, is_first=number < 6) for number in range(9)]
        links = links_of("forward", [sent for sent, _, _ in triples], [middle for _, middle, _ in triples[:-1]])
        kind = Kind("forward", "foreground", "hop_limit")
        damage = decide(kind, 100, 10, [arrived for _, _, arrived in triples], links, row(self.way.name))
        assert (damage.customer, damage.provider, damage.both, damage.undecided) == (6, 2, 0, 2)
        assert damage.why == "the frame was not captured on the link between both"
        assert len(damage.frames) == 4
        assert damage.frames[0].by == "customer"
        assert bytes.fromhex(damage.frames[0].middle) == triples[0][1]
        assert damage.told == (
            "forward foreground, 100 frames with fault hop_limit: of 10 damaged frames of a short trial made to find"
            f" out: 6 in {CUSTOMER}, 2 in {PROVIDER}, 2 undecided (the frame was not captured on the link between"
            " both)"
        )

    @pytest.mark.parametrize("is_first", [True, False])
    def test_a_single_culprit_is_named(self, is_first: bool) -> None:
        triples = [self.frames(number, is_first=is_first) for number in range(2)]
        links = links_of("forward", [sent for sent, _, _ in triples], [middle for _, middle, _ in triples])
        kind = Kind("forward", "foreground", "hop_limit")
        damage = decide(kind, 1, 2, [arrived for _, _, arrived in triples], links, row(self.way.name))
        who, at_middle = (CUSTOMER, "already wrong") if is_first else (PROVIDER, "still right")
        assert damage.told == (
            f"forward foreground, 1 frame with fault hop_limit: damaged in {who}: {at_middle} on the link between both,"
            " all 2 frames of a short trial made to find out"
        )

    def test_a_fault_that_does_not_come_again_has_no_culprit(self) -> None:
        links = Links(Captured(left=(), middle=(), right=()))
        damage = decide(Kind("reverse", "foreground", "payload"), 3, 0, (), links, row(self.way.name))
        assert (damage.customer, damage.provider, damage.undecided) == (0, 0, 0)
        assert damage.sentence == (
            "it is not known which of the two gateways damaged them: no frame of a short trial made to find out had"
            " this fault"
        )
        why = unanswered(Kind("reverse", "foreground", "payload"), 3, "it failed").sentence
        assert why == "it is not known which of the two gateways damaged them: it failed"

    def test_no_more_frames_are_judged_than_arrived_with_the_fault(self) -> None:
        """A mark with a damaged direction puts a frame among those of the other one."""
        triples = [self.frames(number, is_first=True) for number in range(3)]
        links = links_of("forward", [sent for sent, _, _ in triples], [middle for _, middle, _ in triples])
        kind = Kind("forward", "foreground", "hop_limit")
        damage = decide(kind, 1, 2, [arrived for _, _, arrived in triples], links, row(self.way.name))
        assert (damage.customer, damage.undecided) == (2, 0)

    def test_nothing_is_said_of_a_link_on_which_the_fault_is_not_seen(self) -> None:
        damage = Damage(
            direction="forward", traffic_class="foreground", reason=CAME_BACK, faulty=1, again=1, customer=1
        )
        assert damage.sentence == f"damaged in {CUSTOMER}, the one frame of a short trial made to find out"

    def test_kept_frames_are_those_of_the_class(self) -> None:
        forward, reverse = (Way(name=ROWS[0], way=way, traffic_class="foreground") for way in ("forward", "reverse"))
        background = BACKGROUND[0]
        entered = [way.entered() for way in (forward, background, reverse)]
        links = Links(
            Captured(left=tuple(frame.octets() for frame in entered[:2]), middle=(), right=(entered[2].octets(),))
        )
        kept = [KeptFrame(side="right", reason="payload", octets=frame.octets().hex()) for frame in entered]
        kept.append(KeptFrame(side="right", reason="length", octets=entered[0].octets().hex()))
        for way, frame in zip((forward, background, reverse), entered, strict=True):
            kind = Kind(way.way, way.traffic_class, "payload")
            assert arrived_of(kind, kept, links, {kind: 1}) == (frame.octets(),)
        marked = [KeptFrame(side="right", reason="mark", octets=entered[0].octets().hex())]
        kinds = [Kind("forward", name, "mark") for name in ("foreground", "background")]
        assert arrived_of(kinds[0], marked, links, {kinds[0]: 1, kinds[1]: 0}) == (entered[0].octets(),)
        assert arrived_of(kinds[0], marked, links, {kinds[0]: 1, kinds[1]: 1}) == ()


@pytest.mark.parametrize("way", [*FOREGROUND, *BACKGROUND], ids=str)
def test_any_octets_are_read(way: Way) -> None:
    octets = way.middle(way.entered(), extensions=b"").octets()
    for end in range(len(octets)):
        read_sighting(octets[:end])
    for place in range(12, len(octets)):
        for value in (0, 4, 41, 44, 60, 0x45, 0xFF):
            read_sighting(octets[:place] + bytes((value,)) + octets[place + 1 :])


def test_addresses_of_both_families_correspond() -> None:
    def same(name: str, ipv4: str, ipv6: str) -> tuple[bool | None, bool | None]:
        facts = row(name)
        pair: tuple[IpAddress, IpAddress] = IPv4Address(ipv4), IPv6Address(ipv6)
        return facts.customer.mapping.is_same(*pair), facts.provider.mapping.is_same(*pair[::-1])

    assert same(ROWS[2], "198.18.0.2", "2001:2:0:4000::c612:2") == (True, False)
    assert same(ROWS[2], SERVER, "2001:2:0:6400::c613:2") == (True, True)
    assert same(ROWS[2], SERVER, "2001:2:0:6400::c613:3") == (False, False)
    assert same(ROWS[1], SERVER, "2001:2:0:6400::c613:2") == (None, None)
    edge = edge_of_row()
    assert same(ROWS[0], str(edge.ipv4), str(edge.address)) == (True, True)
    assert same(ROWS[0], str(edge.ipv4), "2001:2:0:6400::c613:2") == (False, False)

"""Conformity: sends a few packets of each case, with control frames beside them, and looks at all that comes back.

Which port a gateway gives to a client is learned first, where it gives any.

Every frame that arrives is decoded by a library that shares nothing with the engine.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal
from zlib import crc32

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.packets import (
    TOO_LARGE,
    Flow,
    Fragment,
    IcmpError,
    Packet,
    Read,
    Tunnel,
    build,
    differences,
    encapsulated,
    fragmented,
    joined,
    read_frame,
    span_words,
    tunnel_words,
    unreachable,
)
from gatemark.procedures.conformity.cases import Probe, probes
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.procedures.conformity.scenes import Delivery, Endpoint, Sending
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.search.goal import Measure
from gatemark.technology import SideName
from gatemark.trial.cell import Cell
from gatemark.trial.exchange import PACKETS_MAX, ArrivedFrame, Exchange, ExchangeFacts
from gatemark.trial.form import TrialForm

MARK = b"gatemark"
MARK_OCTETS = len(MARK) + 6
DATA_OCTETS = 64
UDP_OCTETS = 8
PACKETS_OF_PROBE = 5
"""Most packets of one side that a round of one probe of a domain needs: its own, in three fragments, and controls."""


PACKET_CLASSES, REMARKED_CLASSES = (0x48, 0x50), (0x68, 0x70)
"""Traffic classes of a packet, and of a tunnel that a router wrote another one into: of both the first that is not the
stated one of tunnels. Their last two bits, which are about congestion, are 0."""

Role = Literal["case", "control", "opening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Traffic classes of a packet and of its tunnel."""

    packet: int
    """0 where it is not compared."""
    outside: int
    """Of the outer header that a gateway makes."""
    sent_outside: int
    """Of the outer header that the Tester makes."""
    due: tuple[int, ...]
    """With which of them the packet may arrive; none where it is not compared."""
    due_outside: int | None
    """Which one the outer header must have with which it arrives; None where it is not compared, or due in none."""

    @classmethod
    def of(cls, campaign: Campaign, sending: Sending) -> Classes:
        """Return those of a packet: that of an outer header is the stated one, or copied where its RFC says MUST."""
        policy, how = campaign.forwarding.tunnel, sending.differentiated
        stated = None if policy is None or policy.traffic_class == "copied" else policy.traffic_class
        packet = 0 if how is None else next(octet for octet in PACKET_CLASSES if octet != stated)
        must_be_copied = packet != 0 and campaign.technology.copied_class_section is not None
        outside = packet if policy is None or must_be_copied else policy.outer_class(packet)
        remarked = next(octet for octet in REMARKED_CLASSES if octet != stated)
        due = None if sending.delivery is None else sending.delivery.flow.tunnel
        return cls(
            packet=packet,
            outside=outside,
            sent_outside=remarked if how == "remarked" else outside,
            due={None: (), "alike": (packet,), "remarked": (packet, remarked)}[how],
            due_outside=outside if how is not None and due is not None else None,
        )

    @property
    def words(self) -> str:
        """Return how a packet with a class of its own is sent, behind what else it is."""
        if not self.packet:
            return ""
        return f", traffic class {self.packet}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One kind of packet of an exchange; all of the campaign are told apart by their data."""

    probe: Probe
    role: Role
    """The packet of the case itself, one that any gateway has to deliver, or what the receiver sends first."""
    sending: Sending
    number: int
    """In the exchange."""
    repetition: int = 0

    @property
    def mark(self) -> bytes:
        """What its data begin with in every turn: a straggler of another exchange is nobody's."""
        exchange = f"{self.probe.name} {self.probe.domain} {self.repetition}"
        return MARK + struct.pack("!IH", crc32(exchange.encode()), self.number)

    def data(self, turn: int) -> bytes:
        """Return the data of the packet that is sent in a turn."""
        octets, is_ipv4 = self.sending.octets, self.sending.flow.source.version == 4
        headers = defaults.HEADER_OCTETS["ipv4" if is_ipv4 else "ipv6"] + UDP_OCTETS
        length = DATA_OCTETS if octets is None else octets - headers
        return (self.mark + struct.pack("!H", turn)).ljust(length, b"\xa5")


def measure(trials: RunTrials) -> ConformityResult:
    """Try every case, those of several domains together."""
    campaign, table = trials.campaign, trials.campaign.table(ConformityTable)
    cases: list[CaseResult] = []
    for repetition in trials.repetitions():
        for batch in batches(campaign, learned(trials, repetition)):
            sent = sent_of(batch, repetition)
            facts = _exchanged(trials, exchange_of(campaign, table, sent))
            cases += observed(campaign, table.frames, batch, sent, facts)
    return ConformityResult(
        **{**trials.facts(), "connections": None},  # a few flows are all that it needs
        limited_by="tester" if any(case.tester_limited for case in cases) else "gateway",
        frames=table.frames,
        cases=tuple(cases),
    )


def _exchanged(trials: RunTrials, exchange: Exchange) -> ExchangeFacts | None:
    """Return what came of an exchange; None if the Tester could not make it."""
    step = Measure(frames_per_second=exchange.frames_per_second, duration_ns=exchange.sending_ns, purpose="exchange")
    trial = trials.steps(0, form=TrialForm(exchange=exchange))(step)
    return None if trial.valid is None else trial.valid.exchange


def learned(trials: RunTrials, repetition: int) -> tuple[Endpoint | None, ...]:
    """Return from where packets of each client arrive at the server, None if none does; nothing without clients."""
    campaign = trials.campaign
    clients = clients_sent(campaign, repetition)
    if not clients:
        return ()
    facts = _exchanged(trials, clients_exchange(campaign, clients))
    public: dict[int, Endpoint] = {}
    for arrived in () if facts is None else facts.arrived:
        read = read_frame(bytes.fromhex(arrived.octets))
        if arrived.side == campaign.roles.inside or not isinstance(read, Packet):
            continue
        for client in clients:
            if read.data.startswith(client.mark):
                public[client.number] = Endpoint(address=read.flow.source, port=read.flow.source_port)
    return tuple(public.get(client.number) for client in clients)


def clients_sent(campaign: Campaign, repetition: int = 0) -> tuple[Sent, ...]:
    """Return the packets that show which public endpoint each client is given, with numbers that no case has."""
    probe = next(probes(campaign))
    return tuple(
        Sent(probe=probe, role="control", sending=sending, number=PACKETS_MAX + i, repetition=repetition)
        for i, sending in enumerate(probe.scene.clients())
    )


def clients_exchange(campaign: Campaign, clients: Sequence[Sent]) -> Exchange:
    """Return the exchange that sends them."""
    turns = [(client, turn) for turn in range(2) for client in clients]
    return _exchange(campaign, campaign.table(ConformityTable), turns)


def batches(campaign: Campaign, public: Sequence[Endpoint | None] = ()) -> Iterator[tuple[Probe, ...]]:
    """Yield the probes of each exchange: those of one case, as many as the engine takes at once."""
    table = campaign.table(ConformityTable)
    chosen = (probe for probe in probes(campaign, public) if not table.cases or probe.name in table.cases)
    at_once = PACKETS_MAX // (PACKETS_OF_PROBE * (table.frames + 1))
    for _, of_case in groupby(chosen, key=lambda probe: probe.name):
        remaining = list(of_case)
        while remaining:
            yield tuple(remaining[:at_once])
            del remaining[:at_once]


def sent_of(batch: Sequence[Probe], repetition: int = 0) -> tuple[Sent, ...]:
    """Return what an exchange sends: for each probe what opens the way for it, its controls, and then itself."""
    sendings: list[tuple[Probe, Role, Sending]] = []
    for probe in batch:
        if (opening := probe.sending.opening) is not None:
            sendings.append((probe, "opening" if opening.delivery is None else "control", opening))
        sendings += [(probe, "control", control) for control in probe.scene.controls()]
        sendings.append((probe, "case", probe.sending))
    return tuple(
        Sent(probe=probe, role=role, sending=sending, number=number, repetition=repetition)
        for number, (probe, role, sending) in enumerate(sendings)
    )


def exchange_of(campaign: Campaign, table: ConformityTable, sent: Sequence[Sent]) -> Exchange:
    """Return the exchange: first once what is no case, so that neighbours are known, then every packet in each turn.

    A control follows each packet of a case on its side: where a machine that stops for a while has the last ones come
    too late, controls are missing as well, and nothing is said of the gateway.
    """
    order = [item for _, of_probe in groupby(sent, key=lambda item: id(item.probe)) for item in _in_turn([*of_probe])]
    turns = ((item, turn) for turn in range(table.frames + 1) for item in order if turn or item.role != "case")
    return _exchange(campaign, table, turns)


def _in_turn(of_probe: Sequence[Sent]) -> Iterator[Sent]:
    """Yield what one probe sends in each turn: what opens the way for its case, that, and its controls."""
    *others, case = of_probe
    openings = 0 if case.sending.opening is None else 1
    yield from (*others[:openings], case, *others[openings:])


def _exchange(campaign: Campaign, table: ConformityTable, turns: Iterable[tuple[Sent, int]]) -> Exchange:
    packets: dict[SideName, list[str]] = {"left": [], "right": []}
    for item, turn in turns:
        packets[item.sending.side] += (packet.hex() for packet in _packets(campaign, item, turn))
    return Exchange(
        left=tuple(packets["left"]),
        right=tuple(packets["right"]),
        interval_ns=table.interval_ns,
        wait_ns=table.timeout_ns,
    )


def _packets(campaign: Campaign, item: Sent, turn: int) -> tuple[bytes, ...]:
    turns = campaign.table(ConformityTable).frames + 1
    sending, identification = item.sending, item.number * turns + turn
    limit, sends_whole = defaults.TUNNEL_HOP_LIMIT, sending.mtus is None or sending.dont_fragment
    classes = Classes.of(campaign, sending)
    packet = build(
        sending.flow,
        item.data(turn),
        hop_limit=_hop_limit(campaign, sending),
        traffic_class=classes.packet,
        dont_fragment=sending.dont_fragment,
        identification=0 if sends_whole else identification,
    )
    packets: tuple[bytes, ...] = (packet,)
    if sending.fragment_octets is not None:
        packets = fragmented(packets[0], octets=sending.fragment_octets, identification=identification)
    packets = _encapsulated(packets, sending.flow.tunnel, classes.sent_outside)
    if sending.tunnel_fragment_octets is not None:
        return fragmented(packets[0], octets=sending.tunnel_fragment_octets, identification=identification)
    if (message := sending.message) is not None:
        error = unreachable(packets[0], source=message.source, destination=message.destination, hop_limit=limit)
        return _encapsulated((error,), message.sent_in, classes.sent_outside)
    return packets


def _encapsulated(packets: tuple[bytes, ...], ends: Tunnel | None, traffic_class: int) -> tuple[bytes, ...]:
    """Return packets in a tunnel with a traffic class of its own; as they are without one."""
    if ends is None:
        return packets
    limit = defaults.TUNNEL_HOP_LIMIT
    return tuple(encapsulated(packet, ends, hop_limit=limit, traffic_class=traffic_class) for packet in packets)


def _hop_limit(campaign: Campaign, sending: Sending) -> int:
    """Return the hop limit of a packet: that of the campaign's frames, or what it needs to come back."""
    if sending.hop_limit is not None:
        return sending.hop_limit
    limit = campaign.directions.traffic_of("forward" if sending.side == "left" else "reverse").hop_limit
    crossings = 0 if sending.delivery is None else sending.delivery.crossings
    return max(limit, crossings * campaign.forwarding.hop_limit_decrement + 1)


def hop_limits_due(campaign: Campaign, sending: Sending, delivery: Delivery) -> range:
    """Return the hop limits that a packet may have where it is due."""
    return delivery.hop_limits(_hop_limit(campaign, sending), campaign.forwarding.hop_limit_decrement)


class _Tally:
    """What arrived of one kind of packet."""

    def __init__(self) -> None:
        self.arrived: Counter[str] = Counter()
        self.turns: set[int] = set()
        self.correct = 0
        self.icmp: Counter[str] = Counter()
        self.differences: dict[str, None] = {}
        self.hop_limits: set[int] = set()
        self.classes: set[int] = set()
        self.kept_in_tunnel = 0


def observed(
    campaign: Campaign, frames: int, batch: Sequence[Probe], sent: Sequence[Sent], facts: ExchangeFacts | None
) -> Iterator[CaseResult]:
    """Yield what became of each probe; `facts` is None if there is no valid exchange."""
    tallies = [_Tally() for _ in sent]
    for side, read in () if facts is None else _read_all(facts.arrived):
        _count(campaign, side, read, sent, tallies)
    answered = any(
        item.probe.case.answer in tally.icmp for item, tally in zip(sent, tallies, strict=True) if item.role == "case"
    )
    for probe in batch:
        of_probe = [(item.role, tally) for item, tally in zip(sent, tallies, strict=True) if item.probe is probe]
        controls = [tally for role, tally in of_probe if role == "control"]
        tally, case, delivery = of_probe[-1][1], probe.case, probe.sending.delivery
        is_message, classes = probe.sending.message is not None, Classes.of(campaign, probe.sending)
        due = None if delivery is None or is_message else hop_limits_due(campaign, probe.sending, delivery)
        yield CaseResult(
            case=probe.name,
            what=case.words,
            domain=probe.domain,
            section=case.section,
            due=case.due,
            level=case.level,
            sent=frames,
            packet=_packet_words(probe.sending, probe.sending.flow) + classes.words,
            due_packet=None if delivery is None else _packet_words(probe.sending, delivery) + classes.words,
            hop_limits_due=None if due is None else (due[0], due[-1]),
            hop_limits=tuple(sorted(tally.hop_limits)),
            classes_due=classes.due,
            outer_class_due=classes.due_outside,
            classes=tuple(sorted(tally.classes)),
            arrived_left=tally.arrived["left"],
            arrived_right=tally.arrived["right"],
            correct=tally.correct,
            differences=tuple(tally.differences),
            icmp=dict(sorted(tally.icmp.items())),
            answer=case.answer,
            answer_level=case.answer_level,
            may_be_limited=answered and case.answer not in tally.icmp,
            silently=case.silently,
            some_suffice=case.some_suffice,
            kept_in_tunnel=tally.kept_in_tunnel,
            controls_sent=len(controls) * frames,
            controls_correct=sum(control.correct for control in controls),
            tester_limited=facts is None,
        )


Arrival = tuple[SideName, Read]


def _read_all(arrived: Iterable[ArrivedFrame]) -> Iterator[Arrival]:
    """Yield what arrived on each side; fragments of tunnel packets, then of IPv4, that make a packet as that packet."""
    read = ((frame.side, read_frame(bytes.fromhex(frame.octets))) for frame in arrived)
    yield from _joined_where(lambda part: not part.is_ipv6, _joined_where(lambda part: part.is_of_tunnel, read))


def _joined_where(is_joined: Callable[[Fragment], bool], read: Iterable[Arrival]) -> Iterator[Arrival]:
    fragments: dict[tuple[Any, ...], list[Fragment]] = {}
    for side, each in read:
        if isinstance(each, Fragment) and is_joined(each):
            ends = (each.source, each.destination, each.tunnel, each.identification)
            fragments.setdefault((side, *ends), []).append(each)
        else:
            yield side, each
    for (side, *_), parts in fragments.items():
        whole = joined(parts)
        yield from ((side, part) for part in parts) if whole is None else ((side, whole),)


def _count(campaign: Campaign, side: SideName, read: Read, sent: Sequence[Sent], tallies: Sequence[_Tally]) -> None:
    """Count a frame for the packet that it is, or that it is about; frames of others are nobody's."""
    if isinstance(read, IcmpError):
        of_message = next((pair for pair in zip(sent, tallies, strict=True) if _is_due(read, pair[0])), None)
        if of_message is None:
            _count_error(read, sent, tallies)
        else:
            _count_message(side, read, *of_message)
    elif isinstance(read, Fragment):
        for item, tally in zip(sent, tallies, strict=True):
            if _may_be_in_fragments(item.sending) and (item.mark in read.data or _is_second(read, item)):
                is_part = read.is_of_tunnel or not read.is_ipv6
                tally.arrived[side] += 1
                tally.differences["not all of its fragments" if is_part else "still in fragments"] = None
    elif isinstance(read, Packet) and len(read.data) >= MARK_OCTETS + 2:
        number, turn = struct.unpack_from("!HH", read.data, MARK_OCTETS - 2)
        if turn and number < len(sent) and read.data.startswith(sent[number].mark):
            _count_packet(campaign, side, read, sent[number], turn, tallies[number])


def _packet_words(sending: Sending, packet: Flow | Delivery) -> str:
    return f"an ICMP error about {packet}" if sending.message is not None else str(packet)


def _is_due(error: IcmpError, item: Sent) -> bool:
    """Whether an error is what becomes of one that was sent, whatever it quotes."""
    delivery = item.sending.delivery
    if item.sending.message is None or delivery is None or error.quoted is None:
        return False
    return item.mark in error.quote or (error.quoted.inside == delivery.flow and _may_quote(error, item))


def _may_quote(error: IcmpError, item: Sent) -> bool:
    """Whether an error may be about a packet: one with a mark is about no other; a short quote has none."""
    return MARK not in error.quote or item.mark in error.quote


def _count_message(side: SideName, error: IcmpError, item: Sent, tally: _Tally) -> None:
    tally.arrived[side] += 1
    message, delivery = item.sending.message, item.sending.delivery
    assert message is not None and delivery is not None, "it is one of these"
    wrong = [] if side == delivery.side else [f"arrived {side}"]
    if error.tunnel != message.due_in:
        wrong.append(f"{tunnel_words(error.tunnel)} instead of {tunnel_words(message.due_in)}")
    if error.quoted != delivery.flow:
        wrong.append(f"quotes {error.quoted}")
    if wrong:
        tally.differences |= dict.fromkeys(wrong)
    else:
        tally.correct += 1


def _count_error(error: IcmpError, sent: Sequence[Sent], tallies: Sequence[_Tally]) -> None:
    """Count an error for the packets that it quotes. One about the packet in a tunnel has to come through that tunnel.

    What it quotes must be what was sent (RFC 1812 section 4.3.2.3).

    Where it quotes none, it may quote what the gateway made of one.
    """
    if error.quoted is None:
        return
    about = [
        (item.sending.flow, item.sending.mtus, tally)
        for item, tally in zip(sent, tallies, strict=True)
        if error.quoted in (item.sending.flow, item.sending.flow.inside) and _may_quote(error, item)
    ]
    for flow, mtus, tally in about:
        due = None
        if flow.tunnel is not None and error.quoted.tunnel is None:
            due = flow.tunnel.back
        if error.tunnel == due and error.name in TOO_LARGE and mtus is not None and error.mtu not in mtus:
            tally.differences[f"answer states an MTU of {error.mtu} instead of {span_words(mtus)}"] = None
        elif error.tunnel == due:
            tally.icmp[error.name] += 1
        else:
            tally.differences[f"answer {tunnel_words(error.tunnel)} instead of {tunnel_words(due)}"] = None
    for item, tally in () if about else zip(sent, tallies, strict=True):
        flow = item.sending.flow
        is_about = replace(error.quoted, destination=flow.destination, tunnel=None) == flow.inside
        if item.mark in error.quote or (is_about and _may_quote(error, item)):
            tally.differences[f"answered, but quotes {error.quoted}"] = None


def _may_be_in_fragments(sending: Sending) -> bool:
    return sending.fragment_octets is not None or sending.mtus is not None


def _is_second(fragment: Fragment, item: Sent) -> bool:
    """Whether a fragment without a mark may be the end of a packet: it goes to the same address."""
    delivery = item.sending.delivery
    if MARK in fragment.data or delivery is None:
        return False
    tunnel = delivery.flow.tunnel if fragment.is_of_tunnel else None
    return fragment.destination == (delivery.flow.destination if tunnel is None else tunnel.destination)


def _count_packet(campaign: Campaign, side: SideName, packet: Packet, item: Sent, turn: int, tally: _Tally) -> None:
    delivery = item.sending.delivery
    if item.probe.case.due == "not_decapsulated" and item.role == "case" and packet.flow == item.sending.flow:
        tally.kept_in_tunnel += 1
        return
    tally.arrived[side] += 1
    if delivery is None:
        tally.differences[f"arrived {side}: {packet.flow}"] = None
        return
    tally.hop_limits.add(packet.hop_limit)
    wrong = [] if side == delivery.side else [f"arrived {side}"]
    flow = delivery.flow
    if delivery.source_fault is not None:  # the gateway chooses one
        source = Endpoint(address=packet.flow.source, port=packet.flow.source_port)
        flow = replace(flow, source=source.address, source_port=source.port)
        fault = delivery.source_fault(source)
        wrong += [] if fault is None else [fault]
    due = hop_limits_due(campaign, item.sending, delivery)
    wrong += differences(packet, flow, hop_limits=due, data=item.data(turn))
    classes = Classes.of(campaign, item.sending)
    if classes.due:
        tally.classes.add(packet.traffic_class)
        if packet.traffic_class not in classes.due:
            wrong.append(f"traffic class {packet.traffic_class} instead of {' or '.join(map(str, classes.due))}")
    wrong += _tunnel_differences(campaign, packet, delivery, classes.outside)
    if packet.was_in_fragments and not delivery.in_fragments:
        wrong.append("in fragments of its own, not of the tunnel packet")
    if turn in tally.turns:
        wrong.append("arrived more than once")
    tally.turns.add(turn)
    if wrong:
        tally.differences |= dict.fromkeys(wrong)
    else:
        tally.correct += 1


def _tunnel_differences(campaign: Campaign, packet: Packet, delivery: Delivery, traffic_class: int) -> Iterator[str]:
    """Yield in words how a tunnel differs from the stated policy, and whether it is that of somebody else."""
    policy, ends, due = campaign.forwarding.tunnel, packet.flow.tunnel, delivery.flow.tunnel
    if policy is None or ends is None or packet.outer is None or due is None:
        return
    is_subscriber = delivery.is_subscriber
    if ends.destination != due.destination and is_subscriber is not None and is_subscriber(ends.destination):
        yield "in the tunnel of another subscriber"
    if policy.hop_limit not in ("any", packet.outer.hop_limit):
        yield f"outer hop limit {packet.outer.hop_limit} instead of {policy.hop_limit}"
    if packet.outer.traffic_class != traffic_class:
        yield f"outer traffic class {packet.outer.traffic_class} instead of {traffic_class}"


def one_cell(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return one cell in both directions, of the smallest size: packets of a case have a size of their own."""
    del campaign
    smallest = min(cells, key=lambda cell: cell.frame_sizes.largest)
    return (replace(smallest, direction="bidirectional", connections=None),)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield nothing: no rate is measured."""
    del campaign
    yield from ()

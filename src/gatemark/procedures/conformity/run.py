"""Conformity: sends a few packets of each case, with control frames beside them, and looks at all that comes back.

Which port a gateway gives to a client is learned first, where it gives any.

Every frame that arrives is decoded by a library that shares nothing with the engine (RFC 7599).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from zlib import crc32

from gatemark.config.model import Campaign
from gatemark.packets import Fragment, IcmpError, Packet, build, differences, fragmented, read_frame
from gatemark.procedures.conformity.cases import Probe, probes
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.procedures.conformity.scenes import Sending
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
FRAGMENT_OCTETS = 40
"""Octets of the payload of IP in the first of two fragments."""
PACKETS_OF_PROBE = 5
"""Most packets of one side that a round of one probe needs: its own, in two fragments, and both controls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One kind of packet of an exchange; all of the campaign are told apart by their data."""

    probe: Probe
    role: int
    """0: the case itself; 1 and 2: the controls upward and downward."""
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
        return (self.mark + struct.pack("!H", turn)).ljust(DATA_OCTETS, b"\xa5")


def measure(trials: RunTrials) -> ConformityResult:
    """Try every case, those of several domains together."""
    campaign, table = trials.campaign, trials.campaign.table(ConformityTable)
    cases: list[CaseResult] = []
    for repetition in trials.repetitions():
        public_port = learned_port(trials, repetition) if campaign.technology.is_edge else None
        for batch in batches(campaign, public_port):
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


def learned_port(trials: RunTrials, repetition: int) -> int | None:
    """Return the port from which packets of the client arrive at the server; None if none does."""
    campaign = trials.campaign
    client = first_sent(campaign, repetition)
    facts = _exchanged(trials, first_exchange(campaign, client))
    for arrived in () if facts is None else facts.arrived:
        read = read_frame(bytes.fromhex(arrived.octets))
        if arrived.side != campaign.roles.inside and isinstance(read, Packet) and read.data.startswith(client.mark):
            return read.flow.source_port
    return None


def first_sent(campaign: Campaign, repetition: int = 0) -> Sent:
    """Return the packet that shows which port a client is given; its number is none that a case has."""
    probe = next(probes(campaign))
    return Sent(probe=probe, role=1, sending=probe.scene.upward(), number=PACKETS_MAX, repetition=repetition)


def first_exchange(campaign: Campaign, client: Sent) -> Exchange:
    """Return the exchange that sends it."""
    return _exchange(campaign, campaign.table(ConformityTable), [(client, turn) for turn in range(2)])


def batches(campaign: Campaign, public_port: int | None = None) -> Iterator[tuple[Probe, ...]]:
    """Yield the probes of each exchange: those of one case, as many as the engine takes at once."""
    table = campaign.table(ConformityTable)
    chosen = (probe for probe in probes(campaign, public_port) if not table.cases or probe.name in table.cases)
    at_once = PACKETS_MAX // (PACKETS_OF_PROBE * (table.frames + 1))
    for _, of_case in groupby(chosen, key=lambda probe: probe.name):
        remaining = list(of_case)
        while remaining:
            yield tuple(remaining[:at_once])
            del remaining[:at_once]


def sent_of(batch: Sequence[Probe], repetition: int = 0) -> tuple[Sent, ...]:
    """Return what an exchange sends: each probe, with its controls."""
    sendings = (
        (probe, role, sending)
        for probe in batch
        for role, sending in enumerate((probe.sending, probe.scene.upward(), probe.scene.downward()))
    )
    return tuple(
        Sent(probe=probe, role=role, sending=sending, number=number, repetition=repetition)
        for number, (probe, role, sending) in enumerate(sendings)
    )


def exchange_of(campaign: Campaign, table: ConformityTable, sent: Sequence[Sent]) -> Exchange:
    """Return the exchange: first the controls once, so that neighbours are known, then every packet in each turn."""
    turns = ((item, turn) for turn in range(table.frames + 1) for item in sent if turn or item.role)
    return _exchange(campaign, table, turns)


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
    packet = build(item.sending.flow, item.data(turn), hop_limit=_hop_limit(campaign, item.sending))
    if not item.sending.in_fragments:
        return (packet,)
    return fragmented(packet, octets=FRAGMENT_OCTETS, identification=item.number << 8 | turn)


def _hop_limit(campaign: Campaign, sending: Sending) -> int:
    return campaign.directions.traffic_of("forward" if sending.side == "left" else "reverse").hop_limit


class _Tally:
    """What arrived of one kind of packet."""

    def __init__(self) -> None:
        self.arrived: Counter[str] = Counter()
        self.turns: set[int] = set()
        self.correct = 0
        self.icmp: Counter[str] = Counter()
        self.differences: dict[str, None] = {}


def observed(
    campaign: Campaign, frames: int, batch: Sequence[Probe], sent: Sequence[Sent], facts: ExchangeFacts | None
) -> Iterator[CaseResult]:
    """Yield what became of each probe; `facts` is None if there is no valid exchange."""
    tallies = [_Tally() for _ in sent]
    for arrived in () if facts is None else facts.arrived:
        _count(campaign, arrived, sent, tallies)
    for probe, first, upward, downward in zip(batch, *(range(role, len(sent), 3) for role in range(3)), strict=True):
        tally, case = tallies[first], probe.case
        yield CaseResult(
            case=probe.name,
            what=case.words,
            domain=probe.domain,
            section=case.section,
            due=case.due,
            level=case.level,
            sent=frames,
            packet=str(probe.sending.flow),
            arrived_left=tally.arrived["left"],
            arrived_right=tally.arrived["right"],
            correct=tally.correct,
            differences=tuple(tally.differences),
            icmp=dict(sorted(tally.icmp.items())),
            answer=case.answer,
            controls_sent=2 * frames,
            controls_correct=tallies[upward].correct + tallies[downward].correct,
            tester_limited=facts is None,
        )


def _count(campaign: Campaign, arrived: ArrivedFrame, sent: Sequence[Sent], tallies: Sequence[_Tally]) -> None:
    """Count a frame for the packet that it is, or that it is about; frames of others are nobody's."""
    read = read_frame(bytes.fromhex(arrived.octets))
    if isinstance(read, IcmpError):
        for item, tally in zip(sent, tallies, strict=True):
            if read.quoted == item.sending.flow:
                tally.icmp[read.name] += 1
    elif isinstance(read, Fragment):
        for item, tally in zip(sent, tallies, strict=True):
            if item.sending.in_fragments and (item.mark in read.data or _is_second(read, item)):
                tally.arrived[arrived.side] += 1
                tally.differences["still in fragments"] = None
    elif isinstance(read, Packet) and len(read.data) >= MARK_OCTETS + 2:
        number, turn = struct.unpack_from("!HH", read.data, MARK_OCTETS - 2)
        if turn and number < len(sent) and read.data.startswith(sent[number].mark):
            _count_packet(campaign, arrived.side, read, sent[number], turn, tallies[number])


def _is_second(fragment: Fragment, item: Sent) -> bool:
    """Whether a fragment without a mark may be the end of a packet: it goes to the same address."""
    delivery = item.sending.delivery
    return MARK not in fragment.data and delivery is not None and fragment.destination == delivery.flow.destination


def _count_packet(campaign: Campaign, side: SideName, packet: Packet, item: Sent, turn: int, tally: _Tally) -> None:
    tally.arrived[side] += 1
    delivery = item.sending.delivery
    if delivery is None:
        tally.differences[f"arrived {side}: {packet.flow}"] = None
        return
    wrong = [] if side == delivery.side else [f"arrived {side}"]
    hop_limit = _hop_limit(campaign, item.sending) - campaign.forwarding.hop_limit_decrement
    due = hop_limit if delivery.keeps_hop_count else packet.hop_limit
    flow, port = delivery.flow, packet.flow.source_port
    if delivery.ports is not None:  # the gateway chooses one
        flow = replace(flow, source_port=port)
        wrong += [] if delivery.ports.index_of(port) is not None else [f"port {port} is not in the port set"]
    wrong += differences(packet, flow, hop_limit=due, data=item.data(turn))
    if turn in tally.turns:
        wrong.append("arrived more than once")
    tally.turns.add(turn)
    if wrong:
        tally.differences |= dict.fromkeys(wrong)
    else:
        tally.correct += 1


def one_cell(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return one cell in both directions, of the smallest size: packets of a case have a size of their own."""
    del campaign
    smallest = min(cells, key=lambda cell: cell.frame_sizes.largest)
    return (replace(smallest, direction="bidirectional", connections=None),)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield nothing: no rate is measured."""
    del campaign
    yield from ()

"""Which of two gateways in a row damaged a frame: its sightings on three links, and what each gateway had to do. Pure.

::

    Tester ── first gateway ── middle ── second gateway ── Tester
        entered             seen here                arrived

The engine says that the frame arrived damaged, and how. If what the first gateway made of it is wrong, the first is to
blame; if that is right and what the second made of it is wrong, the second. Where the part of one gateway cannot be
judged from the frame alone, because it chooses what it writes, the part of the other decides: there are only two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gatemark.config.tables import ENDS
from gatemark.damage.row import IPV4, IPV6, Row
from gatemark.damage.sighting import MARK_OCTETS, Sighting, read_sighting
from gatemark.damage.steps import FORMS, OF_MARK, OF_WHOLE, RULES, Part, Step
from gatemark.facts import ONE_WAYS, TRAFFIC_CLASSES, OneWay, TrafficClass
from gatemark.packets import ETHERNET_OCTETS
from gatemark.trial.damage import AT_LAST_LINK, CAME_BACK, Culprit, Damage, DamagedFrame
from gatemark.trial.report import KeptFrame, arriving_at

FRAMES_KEPT = 4
KEPT_OCTETS = 2048
"""Of a frame that arrived: a longer one was cut by the engine, and not where it was captured."""
KEY_OCTETS, STREAM_OCTETS = 10, 5
"""Of the mark: trial, stream and index; trial and stream."""
INCOMPLETE = "the capture is not complete"
STREAMS = 0xA0
"""Octet 4 of the mark, with the direction in bit 1 and the class in bit 0."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    direction: OneWay
    traffic_class: TrafficClass
    reason: str

    @property
    def stream(self) -> int:
        """The octet of the mark that says direction and class."""
        return STREAMS | (self.direction == "reverse") << 1 | (self.traffic_class == "background")


STREAM_OF: Mapping[int, tuple[OneWay, TrafficClass]] = {
    Kind(way, name, "").stream: (way, name) for way in ONE_WAYS for name in TRAFFIC_CLASSES
}
"""Direction and class by the octet of the mark."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Which gateway damaged a frame; `why` it cannot be decided if it is none."""

    by: Culprit | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What was captured of a frame: a frame of each link."""

    entered: tuple[bytes, ...] = ()
    middle: tuple[bytes, ...] = ()
    leaving: tuple[bytes, ...] = ()
    """As the second gateway sent it, whether the Tester received it or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """All frames that three links carried, without FCS, in the order of their capture."""

    left: tuple[bytes, ...]
    middle: tuple[bytes, ...]
    right: tuple[bytes, ...]
    lost: int = 0
    """Frames for which the capture had no room."""

    @property
    def is_complete(self) -> bool:
        """Whether a frame that is not there did not pass: none was lost, and the link between both was seen at all."""
        return not self.lost and bool(self.middle)

    def where_begins(self, way: OneWay) -> tuple[bytes, ...]:
        """Return those of the link on which frames of a direction enter the first gateway."""
        return self.left if ENDS[way][0] == "left" else self.right

    def where_ends(self, way: OneWay) -> tuple[bytes, ...]:
        """Return those of the link on which they leave the second."""
        return self.left if ENDS[way][1] == "left" else self.right


@dataclass(slots=True)
class Links:
    """What was captured, by the frames of the Tester."""

    captured: Captured
    _streams: frozenset[bytes] = frozenset()
    _passages: dict[bytes, tuple[list[bytes], list[bytes], list[bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the Tester's frames by their marks, which are right where they enter the first gateway."""
        entering = [entered for way in ONE_WAYS for entered in self._entering(way)]
        self._streams = frozenset(mark[:STREAM_OCTETS] for _, mark in entering)
        for frame, mark in entering:
            self._passages.setdefault(mark[:KEY_OCTETS], ([], [], []))[0].append(frame)
        for frame in self.captured.middle:
            key = self.key_of(frame)
            if key in self._passages:
                self._passages[key][1].append(frame)
        for way in ONE_WAYS:
            for frame in self.captured.where_ends(way):
                key = self.key_of(frame)
                if key in self._passages and STREAM_OF[key[STREAM_OCTETS - 1]][0] == way:
                    self._passages[key][2].append(frame)

    def _entering(self, way: OneWay) -> Iterable[tuple[bytes, bytes]]:
        """Yield the frames of a direction where it begins, with their marks."""
        streams = [Kind(way, name, "").stream for name in TRAFFIC_CLASSES]
        for frame in self.captured.where_begins(way):
            sighting = read_sighting(frame)
            mark = b"" if sighting is None else sighting.mark
            if len(mark) == MARK_OCTETS and mark[STREAM_OCTETS - 1] in streams:
                yield frame, mark

    def key_of(self, frame: bytes) -> bytes | None:
        """Return what tells a frame of the Tester from all others, wherever its mark is; None if it has none."""
        places = [place for stream in self._streams if (place := frame.find(stream, ETHERNET_OCTETS)) >= 0]
        key = frame[min(places) : min(places) + KEY_OCTETS] if places else b""
        return key if len(key) == KEY_OCTETS else None

    def passage(self, key: bytes) -> Passage | None:
        """Return what was captured of a frame; None of one that did not enter."""
        if key not in self._passages:
            return None
        entered, middle, leaving = self._passages[key]
        return Passage(entered=tuple(entered), middle=tuple(middle), leaving=tuple(leaving))

    def passages(self, traffic_class: TrafficClass) -> Iterator[tuple[OneWay, Passage]]:
        """Yield what was captured of each frame of a class, with its direction."""
        for key in self._passages:
            way, name = STREAM_OF[key[STREAM_OCTETS - 1]]
            if name == traffic_class and (passage := self.passage(key)) is not None:
                yield way, passage

    def has_mark(self, mark: bytes) -> bool:
        """Whether a frame on the link in the middle has these octets."""
        return any(mark in frame for frame in self.captured.middle)

    def has_sent(self, way: OneWay, mark: bytes) -> bool:
        """Whether a frame that entered has these octets."""
        return any(mark in frame for frame in self.captured.where_begins(way))


def decide(kind: Kind, faulty: int, again: int, arrived: Sequence[bytes], links: Links, row: Row) -> Damage:
    """Return which gateway damaged the frames of a kind that arrived in the short trial.

    `faulty`, `again`: arrivals with the fault in the trial before and in the short one; `arrived`: those of the short
    one, as far as they were kept.
    """
    arrived, counts = arrived[:again], dict[Culprit | None, int]()
    frames, whys = list[DamagedFrame](), list[str]()
    for frame in arrived:
        answer, passage = answer_for(kind, frame, links, row)
        counts[answer.by] = counts.get(answer.by, 0) + 1
        if answer.by is None:
            whys.append(answer.why)
        if len(frames) < FRAMES_KEPT:
            entered, middle = (
                frames_at[0].hex() if frames_at else "" for frames_at in (passage.entered, passage.middle)
            )
            frames.append(DamagedFrame(entered=entered, middle=middle, arrived=frame.hex(), by=answer.by))
    if not again:
        whys.append("no frame of a short trial made to find out had this fault")
    elif len(arrived) < again:
        whys.append(_missing(links, "not all of these frames were kept"))
    return Damage(
        direction=kind.direction,
        traffic_class=kind.traffic_class,
        reason=kind.reason,
        faulty=faulty,
        again=again,
        customer=counts.get("customer", 0),
        provider=counts.get("provider", 0),
        both=counts.get("both", 0),
        undecided=again - sum(count for by, count in counts.items() if by is not None),
        why=whys[0] if whys else None,
        frames=tuple(frames),
    )


def unanswered(kind: Kind, faulty: int, why: str) -> Damage:
    """Return that nothing is known of a kind."""
    return Damage(
        direction=kind.direction,
        traffic_class=kind.traffic_class,
        reason=kind.reason,
        faulty=faulty,
        again=0,
        why=why,
    )


def arrived_of(kind: Kind, kept: Iterable[KeptFrame], links: Links, counts: Mapping[Kind, int]) -> tuple[bytes, ...]:
    """Return the frames of a kind among those that were kept.

    A mark that is not readable does not say whose its frame is: of several classes or directions at once none is
    returned. `counts`: arrivals by kind.
    """
    of_reason = [frame for frame in kept if frame.reason == kind.reason]
    if kind.reason in OF_MARK:
        others = (other for other in counts if other.reason == kind.reason)
        is_alone = all(other == kind or not counts[other] for other in others)
        at_side = (bytes.fromhex(kept.octets) for kept in of_reason if arriving_at(kept.side) == kind.direction)
        return tuple(at_side) if is_alone else ()
    keys = ((frame, links.key_of(frame)) for frame in (bytes.fromhex(kept.octets) for kept in of_reason))
    return tuple(frame for frame, key in keys if key is not None and key[STREAM_OCTETS - 1] == kind.stream)


def answer_for(kind: Kind, frame: bytes, links: Links, row: Row) -> tuple[Answer, Passage]:
    """Return who damaged a frame that arrived, and what was captured of it."""
    first, second = _names(kind)
    none = Passage()
    if kind.reason in OF_MARK:
        return _of_mark(kind, frame, links), none
    key = links.key_of(frame)
    passage = None if key is None else links.passage(key)
    if passage is None:
        by = second if kind.reason in AT_LAST_LINK else None
        return Answer(by, _missing(links, "it is not among the frames captured")), none
    if kind.reason in AT_LAST_LINK:
        return Answer(second), passage
    if kind.reason == CAME_BACK:
        is_complete = links.captured.is_complete
        return _came_back(len(passage.middle), first, second) if is_complete else Answer(None, INCOMPLETE), passage
    if len(passage.entered) != 1 or len(passage.middle) != 1:
        if not passage.middle:
            return Answer(None, _missing(links, "the frame was not captured on the link between both")), passage
        return Answer(None, "the frame was captured more than once"), passage
    entered, middle = read_sighting(passage.entered[0]), read_sighting(passage.middle[0])
    assert entered is not None, "its mark was read"
    return _by_steps(kind, (entered, middle, read_sighting(frame)), row, is_cut=len(frame) >= KEPT_OCTETS), passage


def _missing(links: Links, why: str) -> str:
    """Return why nothing follows where a capture lacks a frame: one that lost some says nothing of it."""
    return INCOMPLETE if links.captured.lost else why


def _names(kind: Kind) -> tuple[Culprit, Culprit]:
    """Return the first and the second gateway on the way."""
    return ("customer", "provider") if kind.direction == "forward" else ("provider", "customer")


def _of_mark(kind: Kind, frame: bytes, links: Links) -> Answer:
    """Look for the whole mark, time stamp included: the link in the middle has carried it, or the second made it."""
    first, second = _names(kind)
    arrived = read_sighting(frame)
    if arrived is None or len(arrived.mark) < MARK_OCTETS or links.has_sent(kind.direction, arrived.mark):
        return Answer(None, "its mark cannot be compared")
    if links.has_mark(arrived.mark):
        return Answer(first)
    return Answer(second) if links.captured.is_complete else Answer(None, INCOMPLETE)


def _came_back(times: int, first: Culprit, second: Culprit) -> Answer:
    """A frame that came back passed the link in the middle there and back, or never."""
    by = {0: first, 2: second}.get(times)
    return Answer(by, "" if by else "it was captured once on the link between both, and came back")


def _by_steps(
    kind: Kind, sightings: tuple[Sighting, Sighting | None, Sighting | None], row: Row, *, is_cut: bool
) -> Answer:
    """Judge what each gateway made of a frame; `is_cut`: of the one that arrived only the beginning is known."""
    entered, middle, arrived = sightings
    is_background, towards_provider = kind.traffic_class == "background", kind.direction == "forward"
    first, second = _names(kind)
    gateways = {"customer": row.customer, "provider": row.provider}
    due = {"middle": IPV6 if is_background else row.middle, "end": IPV6 if is_background else IPV4}
    rule = RULES.get(kind.reason)
    if rule is None:
        return Answer(None, "nothing says what this fault must look like on the link between both")

    def part(name: Culprit, before: Sighting | None, behind: Sighting | None, where: str) -> Part:
        if behind is None:
            return Part.WRONG if kind.reason in FORMS else Part.OPEN
        if kind.reason in OF_WHOLE and (
            (is_cut and behind is arrived) or behind.is_part or (before and before.is_part)
        ):
            return Part.OPEN
        if before is None or (behind.ip.version != due[where][-1] and kind.reason not in FORMS):
            return Part.OPEN
        return rule(
            Step(
                gateway=gateways[name],
                entering=before,
                leaving=behind,
                due=due[where],
                is_background=is_background,
                towards_provider=towards_provider,
            )
        )

    return _judged(part(first, entered, middle, "middle"), part(second, middle, arrived, "end"), first, second)


def _judged(of_first: Part, of_second: Part, first: Culprit, second: Culprit) -> Answer:
    """Return who is to blame for a frame that arrived damaged."""
    match of_first, of_second:
        case Part.WRONG, Part.WRONG:
            return Answer("both")
        case (Part.WRONG, _) | (Part.CHOSEN, Part.RIGHT):
            return Answer(first)
        case (Part.RIGHT, Part.WRONG | Part.CHOSEN) | (Part.CHOSEN, Part.WRONG):
            return Answer(second)
        case Part.RIGHT, Part.RIGHT:
            return Answer(None, "each gateway did its part, but the campaign expects something else")
    return Answer(None, "it does not follow from what is on the link between both")

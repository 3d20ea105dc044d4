"""The published result of a conformity test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.part import Part
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.stats.summary import Summary

CONFORMING = QuantityKind(
    "cases that conform", "cases", "higher", "the RFC of each case; those that are left open are not among them"
)
ARRIVED = QuantityKind("packets that arrived", "packets", None, "the RFC of each case")


CaseName = Literal[
    "foreign_source_port",
    "foreign_source_address",
    "nobodys_port",
    "nobodys_address",
    "echo_from_outside",
    "echo_from_inside",
    "hairpin",
    "fragments",
    "port_of_the_set",
    "foreign_destination_port",
    "outside_dmr",
    "unused_port",
    "wrong_interface_identifier",
    "expired_from_outside",
    "expired_from_inside",
    "foreign_tunnel",
    "nobodys_tunnel",
    "foreign_tunnel_destination",
    "outer_fragments",
    "inner_fragments",
    "error_from_outside",
    "error_from_tunnel",
    "same_inner_endpoint",
    "foreign_destination_address",
    "inner_destination_address",
    "foreign_identifier",
    "larger_than_tunnel",
    "larger_than_tunnel_with_df",
    "to_own_prefix",
    "to_relays_prefix",
    "class_into_tunnel",
    "class_from_tunnel",
    "class_remarked",
    "small_fragments",
]
Due = Literal["dropped", "not_decapsulated", "translated", "delivered", "reported"]
Level = Literal["must", "should", "none"]
"""How strongly the RFC asks for it; ``none``: it leaves it open."""
Judgement = Literal["conforms", "does_not_conform", "differs", "reported", "no_result"]
"""``differs``: from what the RFC says should be, while everything that it says must be is so. ``reported``: the RFC
leaves it open. ``no_result``: the control frames did not all come through, or the Tester made no valid exchange."""


class CaseResult(Part):
    """One case with one domain. Frames that arrived are counted whether or not they are as they should be."""

    case: CaseName
    """Its name, as in the campaign file."""
    what: str
    """What is sent, in words."""
    domain: int
    """Number of the MAP domain in the campaign file, from 0; 0 without any."""
    section: str
    """Where the RFC says what is due."""
    due: Due
    """What a conforming gateway does with the packets; `reported` where the RFC leaves it open. `not_decapsulated`: it
    drops them, or forwards them in the tunnel that they are in. `translated`: it drops them, or delivers them from an
    address and port of its own."""
    level: Level
    """How strongly the RFC asks for it; `none` where it leaves it open."""
    sent: int
    """Packets sent; one in two fragments counts once."""
    packet: str
    """What each packet is."""
    due_packet: str | None = Field(default=None, exclude_if=lambda packet: packet is None)
    """What it is where it is due. Null if it is due nowhere."""
    hop_limits_due: tuple[int, int] | None = Field(default=None, exclude_if=lambda limits: limits is None)
    """Lowest and highest hop limit that it may have there. They differ if it may cross the gateway twice."""
    hop_limits: tuple[int, ...] = Field(default=(), exclude_if=lambda limits: not limits)
    """Hop limits of those packets that are due somewhere and arrived, each once."""
    classes_due: tuple[int, ...] = Field(default=(), exclude_if=lambda octets: not octets)
    """Traffic classes that packets with one other than 0 may arrive with: the first is their own, a second that of the
    outer header that they are sent in. Left out where packets have class 0, as it is not compared then."""
    outer_class_due: int | None = Field(default=None, exclude_if=lambda octet: octet is None)
    """Traffic class of the outer header that such packets are due in. Left out if they are due in none."""
    classes: tuple[int, ...] = Field(default=(), exclude_if=lambda octets: not octets)
    """Traffic classes with which these packets arrived, each once, where one is due."""
    arrived_left: int = 0
    """Frames that arrived on the left, correct or not; ICMP errors are not among them."""
    arrived_right: int = 0
    """The same on the right."""
    correct: int = 0
    """Packets that arrived as a conforming gateway delivers them."""
    differences: tuple[str, ...] = ()
    """How the others differ, each difference once."""
    icmp: Mapping[str, int] = {}
    """ICMP errors that quote these packets, by type and code: `icmpv6 1/5`."""
    answer: str | None = None
    """ICMP error with which the gateway must or should answer. One is enough, as it may limit how many it sends. Null
    if there is none."""
    answer_level: Level = Field(default="should", exclude_if=lambda level: level == "should")
    """How strongly the RFC asks for the answer. Left out if it is `should`, or if there is no such error."""
    may_be_limited: bool = Field(default=False, exclude_if=lambda limited: not limited)
    """Whether packets of the same case with another domain were answered in the same exchange: a limit on how many
    errors the gateway sends (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4) may be why these were not. Left out if
    it is not so."""
    silently: bool = Field(default=False, exclude_if=lambda silently: not silently)
    """Whether the gateway must drop the packets without any ICMP error. Left out if it need not."""
    some_suffice: bool = Field(default=False, exclude_if=lambda suffice: not suffice)
    """Whether it is enough to deliver one of the packets due, because a gateway may limit how many ICMP errors
    it sends. Left out if it is not."""
    kept_in_tunnel: int = Field(default=0, exclude_if=lambda count: not count)
    """Packets that were forwarded in the tunnel that they are in, where they must not be decapsulated. They are not
    among those that arrived. Left out if there are none."""
    controls_sent: int
    """Control frames: packets of the hosts of the case to the server and back, which every gateway has to deliver."""
    controls_correct: int = 0
    """Control frames that came through as they should."""
    tester_limited: bool = False
    """Whether the Tester made no valid exchange."""

    @property
    def words(self) -> str:
        words = self.case.replace("_", " ").replace("nobodys", "nobody's").replace("relays", "relay's")
        words = words.replace("dmr", "the default mapping rule").replace("with df", "with DF")
        words = words.replace("class", "traffic class")
        return words.replace("of the set", "of the port set")

    @property
    def arrived(self) -> int:
        """Return how many packets arrived, on either side."""
        return self.arrived_left + self.arrived_right

    @computed_field
    @property
    def judgement(self) -> Judgement:
        """`conforms`; `does_not_conform`: something that must be is not so; `differs`: something that should be is not
        so; `reported`: the RFC leaves it open; `no_result`: control frames are missing, or there is no valid
        exchange."""
        if self.tester_limited or self.controls_correct < self.controls_sent:
            return "no_result"
        if self.due == "reported":
            return "reported"
        due = self.sent if self.due == "delivered" else 0
        if self.some_suffice:
            due = max(1, min(self.correct, due))
        if self.due == "translated":
            due = min(self.correct, self.sent)
        if not self.arrived == self.correct == due:
            return "does_not_conform" if self.level == "must" else "differs"
        if self.silently and self.icmp:
            return "does_not_conform"
        if self.answer is None or self.answer in self.icmp or self.may_be_limited:
            return "conforms"
        return "does_not_conform" if self.answer_level == "must" else "differs"


class ConformityResult(RunResult):
    """What a gateway drops and delivers, case by case.

    Packets that the RFC leaves open are reported, not judged.
    """

    kinds: ClassVar = (CONFORMING, ARRIVED)
    procedure: Literal["conformity"] = "conformity"
    frames: int
    """Packets of each case."""
    cases: tuple[CaseResult, ...] = ()
    """One entry for each case and domain."""

    @property
    def judged(self) -> tuple[CaseResult, ...]:
        """Return the cases about which the RFC says what is due, and about which something is known."""
        return tuple(case for case in self.cases if case.judgement not in ("reported", "no_result"))

    def own_quantities(self) -> Iterator[Quantity]:
        """Return how many cases conform, and how many packets of each arrived."""
        if self.judged:
            conform = sum(case.judgement == "conforms" for case in self.judged)
            yield self.quantity(
                CONFORMING,
                values=(conform,),
                summary=Summary.of([Fraction(conform)]),
                is_headline=True,
            )
        for case in self.cases:
            known = case.judgement != "no_result"
            yield self.quantity(
                ARRIVED,
                values=(case.arrived if known else None,),
                summary=Summary.of([Fraction(case.arrived)]) if known else None,
                where={"case": case.case, "domain": case.domain, "judgement": case.judgement},
            )

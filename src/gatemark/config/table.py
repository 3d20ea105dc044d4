"""What all tables of a campaign file have in common, and what a procedure's table tells the rest of gatemark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from gatemark.errors import Problem
from gatemark.technology import Family
from gatemark.units import LineShare

if TYPE_CHECKING:
    from gatemark.config.model import Campaign


class Table(BaseModel):
    """A table of the campaign file: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=False, validate_by_alias=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRule:
    """When a trial of frames passes."""

    loss_tolerance: Fraction = Fraction(0)
    """Highest ratio of frames not delivered in each direction and class."""
    frame_timeout_ns: int | None = None
    """A frame that takes longer is not delivered; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoAsked:
    """Echo requests of the Tester to itself, without a gateway, which a procedure needs to know its own part."""

    family: Family
    frame_octets: int
    shapes: tuple[tuple[int, int], ...]
    """Numbers of clients, and slots of each."""


class ProcedureTable(Table):
    """The table of a procedure: the procedure is run if the file has it.

    The checks are methods; each may read `campaign`, of which other tables may be wrong unless `reads` names them.
    """

    key: ClassVar[str]
    """Name of the table in the file."""
    purpose: ClassVar[str]
    """What the table asks for, for the description of the file."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Other tables that `problems` reads; it is left out while one of them has problems of its own."""
    reads_frame_rate: ClassVar[bool] = False
    """Whether `problems` asks if the campaign finds the highest rate of frames: it reads the tables that do."""
    is_stateful_only: ClassVar[bool] = False
    """Whether it makes sense only for a gateway that keeps state (RFC 9693)."""
    finds_frame_rate: ClassVar[bool] = False
    """Whether it finds the highest rate of frames that passes, of which others take shares."""
    finds_connection_rate: ClassVar[bool] = False
    """Whether it finds the rate of connections of which test phase 1 of others takes a share."""
    finds_connection_count: ClassVar[bool] = False
    """Whether it looks for the number of connections itself, so that `connections.count` is not needed."""
    begins_with_full_table: ClassVar[bool] = True
    """Through a stateful gateway: whether its trials begin with test phase 1, at a rate known before."""
    measures_delays: ClassVar[bool] = False
    """Whether it measures delays, of which the Tester's own path has a part."""
    sends_echo: ClassVar[bool] = False
    """Whether it sends echo messages, whose identifiers a MAP-T border relay must then know."""
    lets_flows_start_apart: ClassVar[bool] = False
    """Whether its trials have a constant load, which network flows may join one after another."""
    needs_line_rate: ClassVar[bool] = False
    """Whether it cannot be measured without the line rate of the medium."""

    @property
    def validates(self) -> bool:
        """Whether the Responder checks every connection (RFC 9693 section 4.6)."""
        return False

    @property
    def pass_rule(self) -> PassRule | None:
        """Return when a trial passes by this table, for a single trial; None if it does not say."""
        return None

    @property
    def highest_rate(self) -> int | LineShare | None:
        """Return the highest rate of connections that it tries; None if it is found, or if it tries none."""
        return None

    def asked_echo(self, campaign: Campaign) -> EchoAsked | None:
        """Return the echo requests whose way through the Tester alone it is reported with; None if it sends none."""
        del campaign
        return None

    @property
    def is_open_ended(self) -> bool:
        """Whether a search takes the line rate as its maximum, or finds one where the medium has none."""
        return False

    @property
    def first_count(self) -> int | None:
        """Return the number of connections where the file has none; None if it needs one from there."""
        return None

    @property
    def largest_count(self) -> int | None:
        """Return the most connections that it tries by itself, where the file says it."""
        return None

    def repetitions(self, campaign: Campaign) -> int:
        """Return how often the measurement is repeated."""
        return campaign.repetitions

    def phase_two_ns(self, campaign: Campaign) -> int | None:
        """Return the longest sending time of trials that offer frames, which is test phase 2; None if none does."""
        del campaign
        return None

    def lifetimes(self, campaign: Campaign, count: int) -> Iterator[tuple[int, str]]:
        """Yield for how long `count` connections must live by this table alone (nanoseconds), and for what."""
        del campaign, count
        yield from ()

    def shares_of_line(self) -> Iterator[LineShare]:
        """Yield the loads of the table that are shares of the line rate; a resolution is a share of the maximum."""
        for name in (name for name in type(self).model_fields if not name.endswith("resolution")):
            value = getattr(self, name)
            yield from (item for item in (value if isinstance(value, tuple) else (value,)) if is_line_share(item))

    def estimate_assumptions(self) -> Iterator[str]:
        """Yield what an estimate of its time assumes of the gateway, a sentence each."""
        yield from ()

    def completed(self, campaign: Campaign) -> Self:
        """Return the table with the defaults filled in that depend on other tables."""
        del campaign
        return self

    def left_out_of_documents(self) -> tuple[str, ...]:
        """Return keys that have no effect together with others, and are refused there."""
        return ()

    def problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what its keys must satisfy together, before anything is known from a recipe."""
        del campaign
        yield from ()

    def complete_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what it must satisfy once technology and sides are known."""
        del campaign
        yield from ()

    def stateful_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what it must satisfy with the connections of a stateful gateway, whose hosts are known."""
        del campaign
        yield from ()


def is_line_share(value: object) -> bool:
    """Whether a load is a share of the line rate."""
    return isinstance(value, LineShare)

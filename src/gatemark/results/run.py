"""What the results of all procedures have in common: the traffic of the run, its trials, and what limited it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, computed_field

from gatemark.facts import DamageCounts, Direction, LossCause, OneWay
from gatemark.results.connections import Connections
from gatemark.results.coordinates import OFFERED, ONE_WAY, TUNNEL_SIZE, Coordinate
from gatemark.results.header_changes import HeaderChanges
from gatemark.results.part import LimitedBy, Part
from gatemark.results.quantity import Better, Quantity, QuantityKind, summarised
from gatemark.results.telemetry import HostLevel, is_of_one_core
from gatemark.results.tester_parts import SelfTestPart
from gatemark.stats.summary import Number, Summary
from gatemark.technology import Family
from gatemark.units import theoretical_maximum

Outcome = Literal["recovered", "not_recovered", "no_loss", "unknown"]
"""How a trial ended in which the gateway has to recover, for one class of frames in one direction. ``not_recovered``:
frames were lost up to the end of the observation. ``no_loss``: no frame was lost where frames had to be lost, so there
was nothing to recover from. ``unknown``: frames came back faulty or late; their place in the trial is not recorded, so
the time is not known."""


BETTER_AT_HOST: Mapping[str, Better] = {"busy": "lower", "busiest": "lower", "memory_available": "higher"}
"""Series of the gateway's host of which less or more is better."""


class FrameSizes(Part):
    """Frame size by family: octets with FCS. A family that is not on the path is null."""

    ipv4: int | None
    """Octets of IPv4 frames. Null if the family is not on the path."""
    ipv6: int | None
    """Octets of IPv6 frames. Null if the family is not on the path."""
    tunnel: int | None = Field(default=None, exclude_if=lambda octets: octets is None)
    """Octets of frames with an outer header (RFC 2473). Left out where packets are in no tunnels."""

    def of_families(self, outer: Family) -> dict[Family, int]:
        """Return the largest frame of each family on the path; those in tunnels have an outer header of a family."""
        sizes: dict[Family, int] = {}
        kinds: tuple[tuple[Family, int | None], ...] = (("ipv4", self.ipv4), ("ipv6", self.ipv6), (outer, self.tunnel))
        for family, octets in kinds:
            if octets is not None:
                sizes[family] = max(octets, sizes.get(family, 0))
        return sizes


class Mix(Part):
    """Frame i is foreground if and only if i mod n < m (RFC 8219 section 5.3)."""

    m: int
    """Foreground frames of every `n`."""
    n: int
    """Length of the pattern, frames."""

    @property
    def is_mixed(self) -> bool:
        """Whether there is native background traffic alongside the foreground."""
        return self.m != self.n


class TheoreticalMaximum(Part):
    """Highest frame rate of the medium in one direction (RFC 5180 appendix A.1): for frames of one size floor(bit/s /
    (8 * (octets + 20))), for a mix with the mean of its sizes."""

    line_bits_per_second: int
    """Rate of the medium."""
    frames: dict[int, int]
    """Frames of the link that carries the fewest of them, since translation changes sizes: octets with FCS and VLAN
    tag, and how many frames of a period of `mix` have that size. The link decides in both directions."""

    @computed_field
    @property
    def frames_per_second(self) -> int:
        """floor(bit/s / (8 * (mean of octets + 20))), frames/s in one direction (RFC 5180 appendix A.1)."""
        return theoretical_maximum(self.line_bits_per_second, self.frames)


class FrameDamage(DamageCounts):
    """One kind of fault, in the first trial that met it. Counts but `faulty` are of a short trial made to find out."""

    trial: int
    """Number of the trial."""
    faulty: int
    """Frames that arrived with this fault in it."""
    sentence: str
    """The answer in words, or why there is none."""


class RunResult(Part):
    """One run: a procedure with one kind of traffic, all repetitions.

    Loads and rates are frames/s in one direction, or connections/s where connections are established.
    """

    ends_on_a_loss: ClassVar[bool] = False
    """Whether its figure is where frames begin to be lost, so that a loss which is no limit makes it no figure."""
    kinds: ClassVar[tuple[QuantityKind, ...]] = ()
    """Every figure that such a run may have; those of the gateway's host come on top."""

    number: int
    """Number of the run, from 1, in the order in which runs are measured."""
    procedure: str
    """Name of the procedure, which is the section with the other keys."""
    direction: Direction
    """Direction of the traffic; `forward` is left to right."""
    frame_sizes: FrameSizes
    """Frame size on the side of each family."""
    mix: Mix
    """Frame i is foreground if and only if i mod n < m (RFC 8219 section 5.3)."""
    theoretical_maximum: TheoreticalMaximum | None
    """What the medium carries in one direction. Null if the medium has no rate (veth, rings) or it is not known."""
    limited_by: LimitedBy
    """What limited the run. `tester`: the Tester could not offer a load in some repetition, so only a lower bound of
    the gateway is known. `host`: the same, but at every such load other work held up the gateway's host in all trials.
    The keys that begin with `tester_limited` then say at which load. `maximum`: the highest load allowed passed in some
    repetition (of a frame loss run: no load lost a frame), so the gateway may do more."""
    refused: str | None = None
    """Why the procedure could not be made here, as a sentence. `limited_by` is then `gateway` if the gateway is the
    reason (it forwards nothing, or it forwards the line rate), else `tester` or `host`. Null if it was made."""
    connections: Connections | None
    """The connections of a stateful run. Null for a stateless gateway."""
    zero_checksum: int | None
    """Frames accepted with UDP checksum 0x0000 where 0xffff is due (RFC 768). Null if none would be accepted."""
    trials: int
    """Trials of the run, invalid ones included."""
    invalid_trials: int
    """Trials that say nothing about the gateway."""
    suspect_trials: int = 0
    """Valid trials that failed while the gateway's host was held up: they do not count and were repeated."""
    losses: tuple[LossCause, ...] = Field(default=(), exclude_if=lambda causes: not causes)
    """What the frames lost in failed trials had in common, most trials first, 16 at most. Absent where
    nothing could be claimed."""
    damages: tuple[FrameDamage, ...] = Field(default=(), exclude_if=lambda damages: not damages)
    """Which of two gateways in a row damaged frames: each kind of fault in the trial that met it first, 16 at most.
    Absent where nothing was asked."""
    header_changes: HeaderChanges | None = Field(default=None, exclude_if=lambda changes: changes is None)
    """What the gateway wrote into headers of correct frames. Absent where there is nothing to report."""
    telemetry: tuple[HostLevel, ...] = ()
    """What the gateway's host did while frames were sent, one entry for each thing that was sampled. Empty where it was
    not sampled."""

    @property
    def procedure_words(self) -> str:
        return self.procedure.replace("_", " ")

    @property
    def connection_count(self) -> int | None:
        """Number of connections N; None for stateless gateways and for the capacity."""
        return None if self.connections is None else self.connections.count

    def beside(self, self_test: SelfTestPart) -> Self:
        """Return the run with what the self-test says about its figures beyond the highest rate."""
        del self_test
        return self

    def own_quantities(self) -> Iterable[Quantity]:
        """Return the figures of the run; none if it was refused."""
        raise NotImplementedError

    def quantities(self) -> tuple[Quantity, ...]:
        """Return all figures of the run; a run that was refused has one row with the reason."""
        quantities = tuple(self.own_quantities())
        if quantities or self.refused is None:
            return quantities
        return (self.quantity(QuantityKind(self.procedure_words, ""), is_headline=True),)

    def host_quantities(self) -> Iterable[Quantity]:
        """Return what the gateway's host did while frames were sent, as far as it has a unit and is of all cores."""
        for level in self.telemetry:
            if not level.unit or is_of_one_core(level.series):
                continue
            known = [Fraction(value) for value in level.values if value is not None]
            kind = QuantityKind(
                level.name if level.phase == "measured" else f"{level.name}, {level.phase}",
                level.unit,
                BETTER_AT_HOST.get(level.series),
            )
            yield self.quantity(
                kind,
                values=level.values,
                summary=Summary.of(known) if len(known) == len(level.values) else None,
                limited_by=None,
            )

    def _one_way(self, where: Mapping[str, Coordinate]) -> Mapping[str, Coordinate]:
        """Return coordinates; those of one direction say whether nothing was sent in the other."""
        return {**where, OFFERED: ONE_WAY} if where.get("direction") == self.direction else where

    def quantity(
        self,
        kind: QuantityKind,
        *,
        values: Iterable[Number | None] = (),
        summary: Summary | None = None,
        where: Mapping[str, Coordinate] | None = None,
        **fields: Any,
    ) -> Quantity:
        """Return one figure of this run; `where` has coordinates in addition to those of the run."""
        gathered = tuple(values)
        return Quantity(
            run=self.number,
            procedure=self.procedure,
            name=kind.name,
            unit=kind.unit,
            better=kind.better,
            coordinates={**self.coordinates(), **self._one_way(where or {})},
            values=gathered,
            **{
                "repetitions": len(gathered),
                "limited_by": self.limited_by,
                "refused": self.refused,
                **summarised(summary),
                **fields,
            },
        )

    def coordinates(self) -> dict[str, Coordinate]:
        """Return what the run was measured with."""
        tunnel = self.frame_sizes.tunnel
        return {
            "direction": self.direction,
            "frame_size_ipv4": self.frame_sizes.ipv4,
            "frame_size_ipv6": self.frame_sizes.ipv6,
            **({} if tunnel is None else {TUNNEL_SIZE: tunnel}),
            "foreground_m": self.mix.m,
            "foreground_n": self.mix.n,
            "connections": self.connection_count,
        }

    def way_word(self, direction: OneWay | str) -> str:
        """One direction in words: upload and download where there is an Initiator (RFC 9693 section 4.7)."""
        if self.connections is None or direction == "bidirectional":
            return direction
        return "upload" if (direction == "forward") == (self.connections.initiator == "left") else "download"

"""The published result of the connection tracking table capacity. Its keys are the symbols of RFC 9693 section 4.9."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.part import Part, Ratio
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.results.search import largest_failure, lowest_pass, measured_alike
from gatemark.search.goal import Kind, SearchResult
from gatemark.stats.summary import Summary

CAPACITY = QuantityKind("connection tracking table capacity", "connections", "higher", "RFC 9693 section 4.9")
R0, RS = (
    QuantityKind(f"validated connection establishment rate {name}", "connections/s", "higher", "RFC 9693 section 4.9")
    for name in ("R0", "RS")
)


Overflow = Literal[
    "refused", "filtered", "evicted", "untranslated", "expired", "vanished", "unusable", "collapsed", "other"
]
"""What a gateway did with connections beyond its capacity: refused new ones; refused all with certain addresses or
ports; accepted them and lost established ones; forwarded them untranslated; held them, but not long enough; lost all at
once; held them, but did not pass frames of some; stopped working; anything else."""
NO_CAPACITY: Mapping[Overflow, str] = {
    "filtered": (
        "the table was not full: the gateway refused all connections with certain addresses or ports, whatever the"
        " number of connections (why frames were lost says which; mend that, or leave them out of the traffic)"
    ),
    "expired": "the table was not full: connections expired before they were used again",
    "vanished": (
        "all connections were lost, which a table that makes room for new ones does not do: they may have expired"
        " (state gateway.table.udp_timeout as it is)"
    ),
}
"""What shows no full table, so that the largest size that was stored is not its capacity."""

LostConnections = Literal["oldest", "newest", "spread"]
"""Which established connections were gone, in order of establishment."""


class CapacityStep(Part):
    """One elementary measurement of the capacity: the validated establishment rate for a number of connections."""

    search: Literal["start", "exponential", "binary"]
    """The search that asked for it."""
    connections: int
    """Number of connections of this measurement."""
    rate: int | None
    """Highest validated rate that passed, connections/s. Null if none down to the stop rate passed."""
    stop_rate: int
    """Rate below which the table was taken for full, connections/s."""

    @computed_field
    @property
    def stored(self) -> bool:
        """Whether the gateway held all of these connections."""
        return self.rate is not None


class CapacitySearch(Part):
    """One search for the capacity; CS, RS, CT and RT are those with which the exponential search ended."""

    kind: Kind
    """`found`; `maximum_passed`: the gateway may hold more; `nothing_passes`: not even C0; `tester_limited`."""
    c0: int
    """Connections that the gateway certainly holds: the search began with them."""
    start: SearchResult | None
    """Search for R0, in connections/s, whose resolution is e. Null if the gateway collapsed in it."""
    steps: tuple[CapacityStep, ...]
    """The elementary measurements, in order."""
    overflow: Overflow | None = None
    """What became of connections beyond the capacity. `refused`: the gateway refused new ones. `filtered`: it
    refused all with certain addresses or ports. `evicted`: it accepted them and lost established ones. `untranslated`:
    it forwarded them so. `unusable`: it counted them after
    test phase 1, but passed no frame of some in the validation. `expired`: so it was, and it counted fewer and fewer,
    or their age sets the lost ones apart. `vanished`: all were established, and it passed no frame of any in the
    validation. `collapsed`: it stopped working. Null if the search saw no connections beyond the capacity."""
    lost_connections: LostConnections | None = None
    """Which established connections were gone, in order of establishment. Null if none was gone."""
    counted: Mapping[str, int] | None = Field(default=None, exclude_if=lambda counters: counters is None)
    """Growth of counters of the gateway's host in a trial with too many connections, the one that lost most frames, by
    [name](counters.md#names-of-the-hosts-counters): those that speak of connections, and grew by a twentieth of the
    lost frames or more. Left out where the host was not read, or the search saw no connections beyond the capacity."""

    @property
    def _stored(self) -> list[CapacityStep]:
        return [step for step in self.steps if step.search != "binary" and step.stored]

    @property
    def _full(self) -> CapacityStep | None:
        return next((step for step in self.steps if step.search != "binary" and not step.stored), None)

    @computed_field
    @property
    def r0(self) -> int | None:
        """Validated rate with C0 connections, connections/s. Null if no rate passed."""
        return self.steps[0].rate if self.steps else None

    @computed_field
    @property
    def cs(self) -> int | None:
        """Largest size that the exponential search found to be stored, connections. Null if none was."""
        return self._stored[-1].connections if self._stored else None

    @computed_field
    @property
    def rs(self) -> int | None:
        """Its validated rate, connections/s. Null if none was stored."""
        return self._stored[-1].rate if self._stored else None

    @computed_field
    @property
    def ct(self) -> int | None:
        """First size that the exponential search found not to be stored, connections. Null if there was none up to the
        maximum."""
        return None if self._full is None else self._full.connections

    @computed_field
    @property
    def rt(self) -> int | None:
        """Its validated rate, connections/s. Null because no rate passed."""
        return None if self._full is None else self._full.rate

    @computed_field
    @property
    def lower_bound(self) -> int | None:
        """C: most connections that were stored and validated. Null if none were."""
        return max((step.connections for step in self.steps if step.stored), default=None)

    @computed_field
    @property
    def upper_bound(self) -> int | None:
        """Fewest connections that were not. Null if all were."""
        return min((step.connections for step in self.steps if not step.stored), default=None)


class CapacityResult(RunResult):
    """Most connections that a gateway holds (RFC 9693 section 4.9).

    Keys of two letters are the RFC's symbols.
    """

    kinds: ClassVar = (CAPACITY, R0, RS)
    procedure: Literal["connection_tracking_table_capacity"] = "connection_tracking_table_capacity"
    alpha: Ratio
    """Rate of the validation as a share of the rate under test."""
    beta: Ratio
    """Share of the safe rate below which the exponential search takes the table for full."""
    gamma: Ratio
    """The same in the final binary search."""
    resolution: int
    """E: error of the size, connections."""
    rate_resolution: int | None
    """e: error of the rate, connections/s. Null if the gateway collapsed in every search for R0."""
    maximum: int
    """Number of connections at which the search ends."""
    repetitions: tuple[CapacitySearch, ...]
    """Searches for the capacity."""

    @computed_field
    @property
    def r0(self) -> Summary | None:
        """R0 over the repetitions, connections/s. Null unless known of each."""
        return _summary_of(search.r0 for search in self.repetitions)

    @computed_field
    @property
    def rs(self) -> Summary | None:
        """RS over the repetitions, connections/s. Null unless known of each."""
        return _summary_of(search.rs for search in self.repetitions)

    @computed_field
    @property
    def capacity(self) -> Summary | None:
        """C over the repetitions, connections. Null if a search was limited by the Tester or held not even C0, or if
        the maximum passed in some repetitions and not in others, and if `refused` says why the sizes that were stored
        are not the capacity."""
        if self.refused is not None or not measured_alike(search.kind for search in self.repetitions):
            return None
        return _summary_of(search.lower_bound for search in self.repetitions)

    @computed_field
    @property
    def lower_bound(self) -> int | None:
        """Fewest connections of any repetition that were stored. Null unless some were stored in each."""
        return lowest_pass([search.lower_bound for search in self.repetitions])

    @computed_field
    @property
    def upper_bound(self) -> int | None:
        """Largest of the fewest connections that were not stored in a repetition. Null if all were stored in each."""
        return largest_failure(search.upper_bound for search in self.repetitions)

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the capacity and the safe rates; nothing if the table was never full."""
        if self.refused is not None:
            return
        yield self.quantity(
            CAPACITY,
            values=[search.lower_bound for search in self.repetitions],
            summary=self.capacity,
            where={"alpha": str(self.alpha)},
            lower_bound=self.lower_bound,
            upper_bound=self.upper_bound,
            resolution=self.resolution,
            is_headline=True,
        )
        for kind, symbol, summary in ((R0, "r0", self.r0), (RS, "rs", self.rs)):
            yield self.quantity(
                kind,
                values=[getattr(search, symbol) for search in self.repetitions],
                summary=summary,
                where={"alpha": str(self.alpha)},
                resolution=self.rate_resolution,
            )


def _summary_of(values: Iterable[int | None]) -> Summary | None:
    """Return the summary of the values; None if one is missing."""
    gathered = list(values)
    known = [value for value in gathered if value is not None]
    return Summary.of(known) if known and len(known) == len(gathered) else None

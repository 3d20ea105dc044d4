"""What a simulated gateway and the Tester before it can do. Values only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

SimulatedOverflow = Literal["refuse", "evict", "untranslated"]
"""What happens to a connection for which the table has no room: its frame is dropped; the oldest connection is deleted
for it; its frame is forwarded with the Initiator's own address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevice:
    """A gateway and the Tester before it. Loads and capacities are frames/s in one direction."""

    capacity_forward: int
    """Highest load that is forwarded whole; above it, exactly the capacity is forwarded."""
    capacity_reverse: int | None = None
    """None: as forward."""
    capacity_both: int | None = None
    """Highest load in each direction while frames are sent in both; None: as if the other were not there."""
    buffer_frames: int = 0
    """How many frames of a trial above the capacity are kept and forwarded later, in each direction."""
    noise: float = 0.0
    """Each trial has a capacity of its own, evenly spread over +- this share of the nominal one."""
    loss_ratio: float = 0.0
    """Each frame is lost with this probability, whatever the load; below one expected frame, at random."""
    lossy_windows: tuple[tuple[int, int], ...] = ()
    """Loads (lowest, highest) at which one frame is lost although the capacity suffices: loss inversion."""
    lossless_windows: tuple[tuple[int, int], ...] = ()
    """Loads (lowest, highest) at which nothing is lost although the capacity does not suffice: loss inversion."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Reason -> n: every n-th frame comes back with this fault."""
    duplicate_every: int = 0
    """Every n-th frame arrives twice; 0 is never."""
    zero_checksum_every: int = 0
    """Every n-th frame has UDP checksum 0x0000 where 0xffff is due, as the campaign allows; 0 is never."""
    tester_limit: int | None = None
    """Highest load that the Tester can offer; above it, trials are invalid."""
    tester_fault: Literal["late", "drops", "short"] = "late"
    """What happens above the limit: bursts leave late, the Tester drops what it receives, or it gives up half-way."""
    hiccup_every: int = 0
    """Every n-th trial is invalid whatever the load, as if the Tester's core had been taken away; 0 is never."""
    held_up_every: int = 0
    """In every n-th trial the gateway's CPU is taken away: frames due meanwhile are lost; 0 is never."""
    held_up_ns: int = 5_000_000
    """For how long."""
    held_up_in_slices: bool = False
    """Whether it is taken away in slices that lose no frame, as a watch shows: the gateway itself lost them."""
    link_down_from_trial: int | None = None
    """From this trial number on the links are down."""
    moves_at_trials: tuple[int, ...] = ()
    """When the trials of these numbers begin, the gateway's Ethernet addresses become others."""
    silent_from_trial: int | None = None
    """From this trial number on the gateway has no addresses: all frames are lost, and it does not answer for them."""
    dies_at_trial: int | None = None
    """The engine dies in the trial of this number, once."""
    interrupted_at_trial: int | None = None
    """The user presses Ctrl-C in the trial of this number, once."""

    exchange: Callable[[Mapping[str, Any]], Iterable[dict[str, Any]]] | None = None
    """What arrives after a request `exchange`, as its answer has it; None: nothing."""
    packets_sent_max: int = 1024
    """Most packets of a request `exchange` that each port takes."""

    delays_ns: tuple[int, ...] = (50_000,)
    """Delays of the frames of a class in turn: frame j has number j mod n. One below 0 is an error of the clock."""
    clock_error_ns: int = 0
    """How far the engine says that the times of arriving frames may be off."""
    delay_spread_ns: int = 0
    """All delays of a trial are longer by an amount of its own, evenly drawn from 0 to this."""
    recovery_ns: int = 0
    """How long frames of the lower load are still lost after an overload that lost frames."""
    reset_ns: int = 0
    """How long nothing is forwarded after a reset."""

    collapses_at_clients: int | None = None
    """With so many clients of echo requests or more the gateway stops working until it is restarted."""

    establishment_rate: int | None = None
    """Most connections that a stateful gateway establishes per second; above it, exactly this many. None: no limit."""
    table_size: int | None = None
    """Most connections that its table holds; None: no limit."""
    overflow: SimulatedOverflow = "refuse"
    drops_every_nth_connection: int = 0
    """Every n-th new connection is dropped; 0 is never."""
    collapses_beyond: int | None = None
    """With more connections the gateway stops working until it is restarted."""
    leftover_connections: int = 0
    """Connections that are still there after the table was cleared."""
    counts_connections: bool = True
    """Whether the gateway can tell how many connections it holds."""
    preserves_ports: bool = True
    """Whether a connection keeps the Initiator's source port."""
    tear_down_empty_ns: int = 200_000_000
    """Time to delete an empty table."""
    tear_down_connection_ns: int | Fraction = 250
    """Time to delete one connection."""

    def capacity(self, direction: str, *, in_both: bool = False) -> int:
        """Return the nominal capacity of one direction, while frames are sent in both or in this one alone."""
        if in_both and self.capacity_both is not None:
            return self.capacity_both
        if direction == "reverse" and self.capacity_reverse is not None:
            return self.capacity_reverse
        return self.capacity_forward

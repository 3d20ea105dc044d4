"""The two links between the Tester and the reference gateway, shared memory or veth pairs, and the test bed on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from gatemark.calibrate.base import PortNames
from gatemark.dut import naming
from gatemark.dut.base import FrameDrops, GatewayDescription
from gatemark.dut.gateway_host import GatewayHost
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.steering import CorePlan
from gatemark.dut.wire import End, VethPairs
from gatemark.refdut.process import RefDut
from gatemark.technology import SIDES
from gatemark.units import format_duration_ns

if TYPE_CHECKING:
    from gatemark.config.model import Campaign

LinkKind = Literal["memif", "veth"]
MTU = 1600
"""Of veth pairs: a packet of 1500 octets fits with the header of a tunnel around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Both links, and where each end is."""

    ports: PortNames
    folder: Path
    """Holds sockets, configuration and log; its path is short, because that of a socket must be."""
    tester_namespace: str | None = None
    gateway_namespace: str | None = None
    pairs: VethPairs | None = None

    def lost_by_the_kernel(self) -> int:
        """Return the frames for which the gateway's ends had no room: the reference gateway never saw them."""
        if self.pairs is None:
            return 0
        return sum(self.pairs.dropped(End(owner="gw", side=side) for side in SIDES).values())


@contextlib.contextmanager
def open_links(kind: LinkKind, cores: CorePlan) -> Iterator[Links]:
    """Make the links; nothing of them stays behind, even after an error."""
    with contextlib.ExitStack() as stack:
        if kind != "veth":
            yield _memif(stack.enter_context(naming.claimed()).folder)
            return
        left, right = ((End(owner="gm", side=side), End(owner="gw", side=side)) for side in SIDES)
        pairs = stack.enter_context(VethPairs([left, right], mtu=MTU, cores=cores, delivers_apart=False))
        names = [f"af_packet:{pairs.interface(end)}" for end in (*left, *right)]
        yield Links(
            ports=PortNames(tester_left=names[0], gateway_left=names[1], tester_right=names[2], gateway_right=names[3]),
            folder=pairs.name.folder,
            tester_namespace=pairs.namespace(left[0]),
            gateway_namespace=pairs.namespace(left[1]),
            pairs=pairs,
        )


def _memif(folder: Path) -> Links:
    left, right = (f"memif:{folder / side}.sock" for side in SIDES)
    ports = PortNames(
        tester_left=left,
        tester_right=right,
        gateway_left=f"{left},role=server",
        gateway_right=f"{right},role=server",
    )
    return Links(ports=ports, folder=folder)


ADMITTED = {
    "poll_gap_max_ns": "did not look at its ports for",
    "late_departure_max_ns": "sent a frame late by",
}
"""What the reference gateway counts of its own errors, in words."""


class ReferenceTestBed:
    """Two ports that lead to a running reference gateway, which is asked whether it is still alive.

    If it did not look at its ports for too long in a trial, or sent a frame too late, the truth was not the one to be
    measured. Such a trial is invalid and repeated, like one that the Tester spoiled.
    """

    def __init__(
        self,
        campaign: Campaign,
        links: Links,
        gateway: RefDut,
        *,
        poll_gap_max_ns: int | None = None,
        late_departure_max_ns: int | None = None,
        note: Callable[[dict[str, Any]], None] = lambda _counts: None,
        cores: tuple[int, ...] = (),
        host_queue_frames: int | None = None,
    ) -> None:
        """`note` gets what the gateway counted up to the end of each trial; what it does after that does not matter.

        `cores` are the gateway's, if no other party works there. With `host_queue_frames`, what its queue holds, its
        host is read and failures may be suspect; else the gateway says itself whether it kept its truth.
        """
        self._bed = PortsTestBed(campaign)
        self.ports = self._bed.ports
        self._links = links
        self._gateway = gateway
        self._limits = (poll_gap_max_ns, late_departure_max_ns)
        self._note = note
        self.placement = replace(self._bed.placement, namespace=links.tester_namespace, gateway_cores=cores)
        self._host = None
        if host_queue_frames is not None:
            running = lambda: [] if gateway.pid is None else [gateway.pid]  # noqa: E731
            self._host = GatewayHost(cores, running, queue_frames=host_queue_frames)
        pairs, ends = links.pairs, [End(owner="gm", side=side) for side in SIDES]
        drops = None if pairs is None else lambda: FrameDrops(tester=pairs.dropped(ends))
        self.can = replace(self._bed.can, health=self._check, host=self._host, drops=drops, own_faults=self._own_faults)

    def describe(self) -> GatewayDescription:
        """Repeat what the campaign says about the reference gateway."""
        return self._bed.describe()

    def close(self) -> None:
        """Let go of what was opened to read the host; links and gateway belong to somebody else."""
        if self._host is not None:
            self._host.close()
        self._bed.close()

    def _check(self) -> None:
        """Raise TestBedError if the reference gateway or a link is gone."""
        self._gateway.check()
        if self._links.pairs is not None:
            self._links.pairs.check()

    def _own_faults(self) -> tuple[str, ...]:
        """Say which errors the reference gateway reports beyond what the check allows.

        It keeps the worst until its counts are reset. So they are reset after a trial that it spoiled: the next one is
        not blamed for it, and a shorter hold-up then is not hidden behind it.
        """
        counts = self._gateway.counts()
        self._note(counts)
        errors = counts["own"]
        faults = []
        for (name, words), limit in zip(ADMITTED.items(), self._limits, strict=True):
            worst = int(errors[name])
            if limit is not None and worst > limit:
                allowed = format_duration_ns(limit)
                faults.append(f"the reference gateway {words} {format_duration_ns(worst)}, {allowed} is allowed")
        if faults:
            self._gateway.reset_counts()
        return tuple(faults)

    def __enter__(self) -> Self:
        """The ports were made here, so they need no checks, and the gateway runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

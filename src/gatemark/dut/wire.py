"""Pairs of veth interfaces without a gateway of the kernel: the Tester joined to itself, or to a program.

::

    gatemark-…-tester                          gatemark-…-tester      gatemark-…-gateway
      gm…-left  ──┐                              gm…-left  ── veth ──  gw…-left
      gm…-right ──┘ veth: the Tester alone       gm…-right ── veth ──  gw…-right: joined to a program

The Tester's ends are set up as those of a netns test bed are: offloads off, GRO on. Where the Tester is joined to
itself, what arrives is handed to its socket by a kernel thread on the gateway's cores, if the machine has one to
spare: in a netns test bed they do that work as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gatemark.dut import naming
from gatemark.dut.base import Abilities, FrameDrops, GatewayDescription, Placement
from gatemark.dut.commands import require_program, run_command, try_command
from gatemark.dut.gateway_kernel import MAC_ADDRESSES
from gatemark.dut.guard import CleanupGuard
from gatemark.dut.interface_counters import InterfaceCounters
from gatemark.dut.plumbing import OFFLOADS_OFF, TESTER_SYSCTL, sysctl_script
from gatemark.dut.steering import CorePlan
from gatemark.errors import TestBedError
from gatemark.technology import SIDES

WHERE = "test bed of veth pairs"
LINK_SECONDS_MAX = 5.0
THREAD_NAME_CHARACTERS = 15
"""The kernel cuts the names of its threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a pair."""

    owner: str
    """`gm`: the Tester, `gw`: the program."""
    side: str


class VethPairs:
    """Namespaces and pairs of veth between them, removed when the block ends. Needs root.

    `delivers_apart`: what arrives is delivered on the gateway's cores, else on that of the sender. A program that
    polls there without a pause would keep the kernel's threads from delivering.
    """

    def __init__(
        self, pairs: Sequence[tuple[End, End]], *, mtu: int, cores: CorePlan, delivers_apart: bool = True
    ) -> None:
        self.name = naming.new_name()
        self._pairs = pairs
        self._mtu = mtu
        self._cores = cores
        self._delivers_apart = delivers_apart and not cores.shared
        self._guard = CleanupGuard(self.close)
        self._counters: dict[str, InterfaceCounters] = {}
        self._claim: naming.Claim | None = None
        self._open = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Make namespaces and interfaces; nothing stays behind if that fails."""
        _require_root()
        naming.remove_leftovers()
        self._open = True
        self._guard.install()
        try:
            self._claim = naming.Claim(self.name)
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything that was made; a second call does nothing."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        try:
            # Each step is made whatever becomes of those before it.
            with self._guard.undisturbed(), contextlib.ExitStack() as stack:
                if self._claim is not None:
                    stack.callback(self._claim.release)
                for counters in self._counters.values():
                    stack.callback(counters.close)  # an open one would keep its namespace
        finally:
            self._guard.remove()

    def interface(self, end: End) -> str:
        """Return the name of an end."""
        return self.name.interface(end.owner, end.side)

    def namespace(self, end: End) -> str:
        """Return the namespace of an end."""
        return self.name.tester_namespace if end.owner == "gm" else self.name.gateway_namespace

    def dropped(self, ends: Iterable[End]) -> dict[str, int]:
        """Return for each end the frames that it had no room for: what its other end counts as `tx_dropped`."""
        drops = {}
        others = {end: other for pair in self._pairs for end, other in (pair, pair[::-1])}
        for end in ends:
            other = others[end]
            owner = "tester" if end.owner == "gm" else "gateway"
            drops[f"{owner}-{end.side} queue full"] = self._tx_dropped(other)[self.interface(other)]
        return drops

    def check(self) -> None:
        """Raise TestBedError if an interface is gone."""
        for pair in self._pairs:
            self._tx_dropped(pair[0])

    def _tx_dropped(self, end: End) -> dict[str, int]:
        return self._counters[self.namespace(end)].tx_dropped(ends=[self.interface(end)])

    def _make(self) -> None:
        ends = [end for pair in self._pairs for end in pair]
        for namespace in sorted({self.namespace(end) for end in ends}):
            run_command(["ip", "netns", "add", namespace], where=WHERE)
            script = sysctl_script(TESTER_SYSCTL)  # the kernel answers on neither side: a program does
            run_command(["ip", "netns", "exec", namespace, "sh", "-euc", script], where=WHERE)
            self._counters[namespace] = InterfaceCounters(namespace)
        for end, other in self._pairs:
            peer = ["peer", "name", self.interface(other), "netns", self.namespace(other)]
            add = ["ip", "link", "add", self.interface(end), "netns", self.namespace(end), "type", "veth", *peer]
            run_command(add, where=WHERE)
        for end in ends:
            self._set_up(end)
        for end in ends:
            self._move_delivery(end)
        self._await_links(ends)

    def _await_links(self, ends: Iterable[End]) -> None:
        """Wait until both ends of each pair have noticed that the other one is up, which takes the kernel a moment."""
        until = time.monotonic() + LINK_SECONDS_MAX
        for end in ends:
            show = ["ip", "-n", self.namespace(end), "-j", "link", "show", "dev", self.interface(end)]
            while json.loads(run_command(show, where=WHERE))[0]["operstate"] != "UP":
                if time.monotonic() > until:
                    raise TestBedError(what="the link does not come up", where=WHERE, fix="look at `dmesg`")
                time.sleep(0.01)

    def _set_up(self, end: End) -> None:
        interface, namespace = self.interface(end), self.namespace(end)
        offloads = ["ethtool", "-K", interface, *OFFLOADS_OFF, "gro", "on"]
        run_command(["ip", "netns", "exec", namespace, *offloads], where=WHERE)
        mac = MAC_ADDRESSES[end.owner, end.side]
        link = ["ip", "-n", namespace, "link", "set", interface, "address", mac, "mtu", str(self._mtu), "up"]
        run_command(link, where=WHERE)

    def _move_delivery(self, end: End) -> None:
        """Let the frames that arrive at an end be delivered on the gateway's cores, not on those of the sender."""
        if not self._delivers_apart:
            return
        interface = self.interface(end)
        file = f"/sys/class/net/{interface}/threaded"
        if try_command(["ip", "netns", "exec", self.namespace(end), "sh", "-euc", f"echo 1 > {file}"]) is None:
            return  # an old kernel: the sender's core delivers
        for pid in _threads_of(interface):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(pid, self._cores.gateway)


class WireTestBed:
    """The Tester alone: its two ports are the ends of one veth pair, so that each receives what the other sends."""

    __test__ = False

    def __init__(self, cores: CorePlan, *, port_kind: str = "af_packet", mtu: int = 9236) -> None:
        self._ends = {side: End(owner="gm", side=side) for side in SIDES}
        self._pairs = VethPairs([(self._ends["left"], self._ends["right"])], mtu=mtu, cores=cores)
        self.placement = Placement(
            namespace=self._pairs.name.tester_namespace,
            tester_cores=cores.tester,
            gateway_cores=cores.gateway,  # they deliver frames, as a gateway's would
        )
        self._port_kind = port_kind
        self.can = Abilities(
            health=self._pairs.check, drops=lambda: FrameDrops(tester=self._pairs.dropped(self._ends.values()))
        )

    @property
    def ports(self) -> dict[str, str]:
        """Ports of the engine: both ends."""
        return {side: f"{self._port_kind}:{self._pairs.interface(end)}" for side, end in self._ends.items()}

    def describe(self) -> GatewayDescription:
        """Say that there is no gateway."""
        return GatewayDescription(name="none (one veth pair)", version="", configuration="both ends are the Tester's")

    def close(self) -> None:
        """Remove the pair and its namespace."""
        self._pairs.close()

    def __enter__(self) -> Self:
        """Make the pair."""
        self._pairs.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _threads_of(interface: str) -> Iterator[int]:
    """Yield the kernel threads that deliver what arrives at an interface."""
    prefix = f"napi/{interface}-"[:THREAD_NAME_CHARACTERS]
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text(encoding="utf-8").strip().startswith(prefix):
                yield int(folder.name)


def _require_root() -> None:
    if os.geteuid() != 0:
        raise TestBedError(
            what="network namespaces need root",
            where=WHERE,
            fix='run as root, for example with sudo; as an ordinary user use ports of kind "ring" or "memif"',
        )
    for program in ("ip", "ethtool"):
        require_program(program)

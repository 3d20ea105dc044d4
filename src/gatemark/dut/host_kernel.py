"""A gateway in this machine's kernel: a namespace of its own, joined to the Tester's by two pairs of veth interfaces.

::

    gatemark-…-tester                      gatemark-…-gateway
      gm…-left   ────────── veth ──────────  gw…-left    ┐ forwarding or translation,
      gm…-right  ────────── veth ──────────  gw…-right   ┘ kernel work on the gateway's cores (RPS)

With two gateways in a row each is in a namespace of its own, and a third pair joins them::

      gm…-left ── gw…-left ┐ first ┌ gx…-left ── veth ── gx…-right ┐ second ┌ gw…-right ── gm…-right

Which drop is whose fault. A veth end counts as `tx_dropped` a frame for which its other end had no room.

- The gateway's ends receive through the backlog of the gateway's cores (softnet, `net.core.netdev_max_backlog`
  frames). Without room there the gateway has more to do than it can: its loss (`FrameDrops.gateway`).
- The Tester's ends have GRO on, which gives them a receive queue of their own (NAPI; 256 frames) and, with UDP, merges
  nothing. Without room there the Tester is at fault (`FrameDrops.tester`). With GRO off, frames that the gateway
  forwards would go through the same backlog as those that arrive at it: an overloaded gateway would then lose frames
  that it had already forwarded, and the kernel would count them as `rx_dropped` of the Tester.

The Tester's queue is emptied in soft interrupts of the gateway's core that forwarded the frame, as far as the copy
into the Tester's socket; that is part of what this test bed measures, as a network card's interrupts would be.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gatemark.dut import machine
from gatemark.dut.base import FrameDrops, KernelCounts
from gatemark.dut.commands import require_program, run_command, telling_tester_port
from gatemark.dut.enclosure import Enclosure
from gatemark.dut.gateway_kernel import MAC_ADDRESSES, Links
from gatemark.dut.interface_counters import InterfaceCounters
from gatemark.dut.kernel_counters import KernelCounters
from gatemark.dut.kernel_modules import load_modules
from gatemark.dut.plumbing import OFFLOADS_OFF, TESTER_SYSCTL, sysctl_script
from gatemark.dut.steering import cpu_mask
from gatemark.technology import SIDES

BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
BACKLOG_BY_DEFAULT = 1000


class _End(NamedTuple):
    """One end of a veth pair."""

    namespace: str
    interface: str
    mac: str


class HostKernel:
    """Both namespaces and the links between them."""

    process = None

    def __init__(self, links: Links, modules: Mapping[str, str] = MappingProxyType({})) -> None:
        """`modules`: kernel modules that the recipe needs, with their origins."""
        self._links = links
        self._modules = modules
        self._tester, self._gateways = links.name.tester_namespace, links.gateway_namespaces
        self._stages = links.stages()
        self.places = tuple(Enclosure(stage.namespace, stage.folder) for stage in self._stages)
        self._counters: dict[str, InterfaceCounters] = {}
        self._kernel_counters: KernelCounters | None = None
        """Opened when they are first read: a recipe may load what counts."""

    @property
    def cores(self) -> tuple[int, ...]:
        """Those of this machine."""
        return self._links.cores.gateway

    def require(self, programs: Mapping[str, str]) -> None:
        """Raise TestBedError if a program is missing."""
        for program, package in programs.items():
            require_program(program, package)

    def open(self, settings: Mapping[str, str | int]) -> None:
        """Load modules, make both namespaces and their veth pairs, steer the gateway's input to its cores."""
        links = self._links
        load_modules(self._modules)
        for namespace in (self._tester, *self._gateways):
            links.run(["ip", "netns", "add", namespace])
        links.run_script(self._tester, sysctl_script(TESTER_SYSCTL))
        for namespace in self._gateways:
            links.run_script(namespace, sysctl_script(settings))  # interfaces take theirs from `default` when made
            links.run(["ip", "-n", namespace, "link", "set", "lo", "up"])
        for side in SIDES:
            tester = _End(self._tester, links.tester_end(side), MAC_ADDRESSES["gm", side])
            gateway = _End(links.namespace_of(side), links.gateway_end(side), MAC_ADDRESSES["gw", side])
            self._join(tester, gateway, links.mtus[side])
        if links.middle_mtu is not None:
            near, far = (
                _End(links.namespace_of(side), links.middle_end(side), MAC_ADDRESSES["gx", side]) for side in SIDES
            )
            self._join(near, far, links.middle_mtu)
        for namespace in (self._tester, *self._gateways):
            self._counters[namespace] = InterfaceCounters(namespace)
        for stage, place in zip(self._stages, self.places, strict=True):
            stage.folder.mkdir(mode=0o700, exist_ok=True)
            place.open()

    def _join(self, near: _End, far: _End, mtu: int) -> None:
        """Make a veth pair; a gateway's ends are steered to its cores."""
        links = self._links
        pair = ["type", "veth", "peer", "name", far.interface, "netns", far.namespace]
        links.run(["ip", "link", "add", near.interface, "netns", near.namespace, *pair])
        for namespace, end, mac in (near, far):
            is_tester = namespace == self._tester
            offloads = [*OFFLOADS_OFF, "gro", "on" if is_tester else "off"]
            links.run(["ip", "netns", "exec", namespace, "ethtool", "-K", end, *offloads])
            links.run(["ip", "-n", namespace, "link", "set", end, "address", mac, "mtu", str(mtu), "up"])
            if not is_tester:
                mask = "0" if links.cores.shared else cpu_mask(links.cores.gateway)
                links.run_script(namespace, f"echo {mask} > /sys/class/net/{end}/queues/rx-0/rps_cpus")

    def check(self) -> None:
        """Raise TestBedError if an end is gone, TesterPortError if it is the Tester's."""
        with telling_tester_port():
            self._towards_gateway()
        self._towards_tester()

    def set_machine(self, settings: Mapping[str, str]) -> None:
        """Change settings of the whole machine; they are written back when the test bed is closed."""
        machine.hold(self._links.name, dict(settings))

    def drops(self) -> FrameDrops:
        """Frames for which a queue had no room: the Tester's, one at an input of the gateway or inside of it."""
        links, into, towards = self._links, self._towards_gateway(), self._towards_tester()
        names, ends = links.neutral_names(), {side: links.gateway_end(side) for side in SIDES}
        inside = {
            f"{names.get(name, name)} tx_dropped": count
            for name, count in towards.items()
            if name not in ("lo", *ends.values())
        }
        return FrameDrops(
            tester={f"tester-{side} queue full": towards[end] for side, end in ends.items()},
            gateway={f"gateway-{side} queue full": into[links.tester_end(side)] for side in SIDES} | inside,
        )

    def counts(self) -> KernelCounts:
        """What this machine's kernel has counted of the gateway's namespace, and of all where it counts them as one."""
        if self._kernel_counters is None:
            links = self._links
            cores = links.cores
            tester_cpus = () if cores.shared else cores.tester
            self._kernel_counters = KernelCounters(
                self._gateways, cores.gateway, links.neutral_names(), tester_cpus=tester_cpus
            )
        return self._kernel_counters.read()

    def smallest_queue(self) -> int:
        """Return the frames that the smallest queue of the gateway holds: that of its CPUs, or of an interface.

        Only the first network namespace shows the length of a CPU's queue; in another one the default is taken.
        """
        backlog = int(BACKLOG.read_text(encoding="ascii")) if BACKLOG.exists() else BACKLOG_BY_DEFAULT
        shown = [
            link
            for namespace in self._gateways
            for link in json.loads(run_command(["ip", "-n", namespace, "-j", "link", "show"], where="test bed netns"))
        ]
        lengths = [int(link.get("txqlen", 0)) for link in shown if "UP" in link["flags"]]
        return min(backlog, *(length for length in lengths if length))

    def close(self) -> None:
        """End all processes inside and let go of the namespaces; a second call does nothing."""
        with contextlib.ExitStack() as stack:  # left from its end; each step is made whatever becomes of others
            if self._kernel_counters is not None:
                stack.callback(self._kernel_counters.close)
            for counters in self._counters.values():
                stack.callback(counters.close)  # an open one would keep its namespace
            for place in self.places:
                stack.callback(place.close)

    def _towards_gateway(self) -> dict[str, int]:
        ends = [self._links.tester_end(side) for side in SIDES]
        return self._counters[self._tester].tx_dropped(ends=ends)

    def _towards_tester(self) -> dict[str, int]:
        drops: dict[str, int] = {}
        for stage in self._stages:
            drops |= self._counters[stage.namespace].tx_dropped(ends=stage.ends.values())
        return drops

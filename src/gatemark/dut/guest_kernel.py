"""A gateway in a kernel of its own: User-Mode Linux as a process on the gateway's cores, joined to the Tester by taps.

::

    gatemark-…-tester
      gm…-left   ── tap ──┐                  ┌ gw…-left    ┐ forwarding or translation
                          ├ User-Mode Linux: │             │ in the guest's kernel
      gm…-right  ── tap ──┘                  └ gw…-right   ┘

The guest has one CPU, whatever the gateway's cores are: the driver of its interfaces is not made for several. It is
the enclosure of the gateway: its kernel and all that it starts end with gatemark. Its root is that of this
machine, read-only; `/run` and `/dev` are its own, and the test bed's folder is shared.

The second of two gateways in a row is in a network namespace of the guest, at the other end of a veth pair.

Which drop is whose fault. A tap counts as `tx_dropped` a frame for which its queue towards the guest had no room, so
the guest was too slow: the gateway's loss. In the other direction the guest's own system call puts a frame into the
Tester's socket, whose drops the engine reads; there is no queue between.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Self

from gatemark.dut.asked_counters import AskedCounters
from gatemark.dut.base import FrameDrops, KernelCounts
from gatemark.dut.commands import require_program, run_command, telling_tester_port
from gatemark.dut.enclosure import Enclosure, first_child
from gatemark.dut.gateway_kernel import MAC_ADDRESSES, CommandPlace, Links, Stage
from gatemark.dut.interface_counters import InterfaceCounters
from gatemark.dut.kernel_counters import added
from gatemark.dut.naming import cannot_keep
from gatemark.dut.plumbing import OFFLOADS_OFF, TESTER_SYSCTL, sysctl_script
from gatemark.dut.shell import Shell
from gatemark.errors import TestBedError
from gatemark.kernels.start import START_SECONDS_MAX, kernel_command
from gatemark.kernels.store import Kernel
from gatemark.technology import SIDES

MEGABYTES = 2048
"""Memory of the guest. What it does not touch costs nothing."""
FRAMES_AT_ONCE = 64
"""Frames that the guest takes from a tap before it looks at another one."""
TAP_FRAMES = 1000
"""Frames that the queue of a tap holds: as many as the input queue of a gateway in a namespace."""
PROGRAMS = {"setsid": "util-linux", "stty": "coreutils"}
"""What starts the guest, and its packages."""
TUN = Path("/dev/net/tun")
MODULES_ROOT = "/run/gatemark-modules"
"""Folder of the guest below which `modprobe` looks for modules that do not come with the kernel."""
GUEST_CPUS = (0,)
"""One: the driver of its interfaces is not made for several."""


class Guest(CommandPlace):
    """Where commands run in the guest. Each is a client of the relay in the enclosure."""

    def __init__(self, enclosure: Enclosure, folder: Path) -> None:
        self._enclosure = enclosure
        self._folder = folder

    @property
    def is_open(self) -> bool:
        return self._enclosure.is_open

    def command(self, *command: str) -> list[str]:
        """Return `command` as it runs inside, in the gateway's folder."""
        if not self.is_open:
            raise TestBedError(what="the gateway's kernel is closed", where="gateway's kernel", fix="start again")
        return [str(self._folder / "guest" / "run"), *command]


class GuestNamespace(CommandPlace):
    """Where the commands of a second gateway run: in a network namespace of the guest, and a folder of its own."""

    def __init__(self, guest: Guest, stage: Stage) -> None:
        self._guest = guest
        self._inside = ("ip", "netns", "exec", stage.namespace, "env", f"--chdir={stage.folder}")

    @property
    def is_open(self) -> bool:
        return self._guest.is_open

    def command(self, *command: str) -> list[str]:
        """Return `command` as it runs inside, in its gateway's folder."""
        return self._guest.command(*self._inside, *command)


class GuestKernel:
    """A User-Mode Linux kernel with a tap on each side."""

    def __init__(self, links: Links, kernel: Kernel, modules: Mapping[str, str]) -> None:
        """`modules`: kernel modules that the recipe needs."""
        self._links = links
        self._kernel = kernel
        self._modules = modules
        self._namespace = links.name.tester_namespace
        self._folder = links.name.folder
        self._socket = self._folder / "guest" / "socket"  # where the relay listens
        self._enclosure = Enclosure(self._namespace, self._folder, self._first_process())
        guest = Guest(self._enclosure, self._folder)
        self.places: tuple[CommandPlace, ...] = (guest, *(GuestNamespace(guest, stage) for stage in links.stages()[1:]))
        self._shells = [Shell(partial(place.command, "sh", "-s")) for place in self.places]
        self._counters: InterfaceCounters | None = None
        names = links.neutral_names()
        self._counts = [AskedCounters(shell, names, of_machine=shell is self._shells[0]) for shell in self._shells]

    @property
    def process(self) -> Self:
        """It is one itself."""
        return self

    @property
    def words(self) -> str:
        return self._kernel.words

    @property
    def release(self) -> str:
        facts = self._kernel.facts
        return f"in User-Mode Linux {facts.release}" if facts is not None else "in User-Mode Linux"

    @property
    def cores(self) -> tuple[int, ...]:
        """Those of the guest."""
        return GUEST_CPUS

    def require(self, programs: Mapping[str, str]) -> None:
        """Raise TestBedError if a program or the device of taps is missing."""
        for program, package in programs.items():
            if shutil.which(program, path=guest_path(self._kernel.tools)) is None:
                require_program(program, package)
        for program, package in (PROGRAMS | ({"modprobe": "kmod"} if self._module_commands() else {})).items():
            require_program(program, package)
        if not TUN.exists():
            raise TestBedError(
                what="this machine has no taps, through which a kernel of its own is reached",
                where=str(TUN),
                fix="modprobe tun; in a container, give it the device /dev/net/tun",
            )

    def open(self, settings: Mapping[str, str | int]) -> None:
        """Make the Tester's namespace and both taps, and start the kernel."""
        links = self._links
        links.run(["ip", "netns", "add", self._namespace])
        links.run_script(self._namespace, sysctl_script(TESTER_SYSCTL))
        inside = ["ip", "-n", self._namespace]
        for side in SIDES:
            end, mtu = links.tester_end(side), str(links.mtus[side])
            links.run([*inside, "tuntap", "add", "dev", end, "mode", "tap"])
            mac = MAC_ADDRESSES["gm", side]
            links.run([*inside, "link", "set", end, "address", mac, "mtu", mtu, "txqueuelen", str(TAP_FRAMES), "up"])
        self._start(settings)
        self._counters = InterfaceCounters(self._namespace)

    def revive(self, settings: Mapping[str, str | int]) -> bool:
        """Start the kernel again if it has ended; the taps are still there."""
        if self._enclosure.lives:
            return False
        self._enclosure.close()
        shutil.rmtree(self._folder / "guest", ignore_errors=True)
        self._start(settings)
        return True

    def _start(self, settings: Mapping[str, str | int]) -> None:
        """Start the kernel, name its interfaces and make its settings."""
        self._write_programs()
        self._enclosure.open()
        if not self._enclosure.await_line("started", START_SECONDS_MAX):
            raise self._ended("the gateway's kernel did not start")
        links = self._links
        ends = {f"vec{number}": links.gateway_end(side) for number, side in enumerate(SIDES)}
        lines = [f"ip link set {device} name {end}" for device, end in ends.items()]
        offloads = " ".join(OFFLOADS_OFF)
        lines += [f"ethtool -K {end} {offloads} gro off > /dev/null 2>&1 || true" for end in ends.values()]
        lines += self._second_namespace(settings)
        first, *second = (tuple(stage.ends.values()) for stage in links.stages())
        lines += [sysctl_script(_for_interfaces(settings, first))]
        lines += self._module_commands()
        lines += [f"ip link set {end} up" for end in ("lo", *first)]
        lines += [f"ip -n {links.name.second_namespace} link set {end} up" for ends in second for end in ("lo", *ends)]
        for line in "\n".join(lines).splitlines():
            links.log.append(f"[{links.name.gateway_namespace}] {line}")
        self._shells[0]("\n".join(lines), where="gateway's kernel")

    def _second_namespace(self, settings: Mapping[str, str | int]) -> list[str]:
        """Return commands that make the namespace of a second gateway and the link to it; none for one gateway."""
        links, namespace = self._links, self._links.name.second_namespace
        if links.middle_mtu is None:
            return []
        for stage in links.stages():
            stage.folder.mkdir(mode=0o700, exist_ok=True)
        near, far = (links.middle_end(side) for side in SIDES)
        macs = [MAC_ADDRESSES["gx", side] for side in SIDES]
        pair = f"{near} address {macs[0]} mtu {links.middle_mtu} type veth peer name {far} address {macs[1]}"
        return [
            f"ip netns add {namespace}",
            f"ip netns exec {namespace} sh -euc {shlex.quote(sysctl_script(settings))}",
            f"ip link add {pair} mtu {links.middle_mtu} netns {namespace}",
            f"ip link set {links.gateway_end('right')} netns {namespace}",
            f"ethtool -K {near} {' '.join(OFFLOADS_OFF)} gro off > /dev/null 2>&1 || true",
            f"ip netns exec {namespace} ethtool -K {far} {' '.join(OFFLOADS_OFF)} gro off > /dev/null 2>&1 || true",
        ]

    def check(self) -> None:
        """Raise TestBedError if the kernel has ended, TesterPortError if a tap is gone."""
        if not self._enclosure.lives:
            raise self._ended("the gateway's kernel ended")
        with telling_tester_port():
            self._towards_gateway()

    def set_machine(self, settings: Mapping[str, str]) -> None:
        """Change settings of the guest, which nobody else has."""
        if settings:
            run_command(self.places[0].shell(sysctl_script(settings)), where="gateway's kernel")

    def drops(self) -> FrameDrops:
        """Frames that the guest did not take from the taps in time."""
        into = self._towards_gateway()
        return FrameDrops(gateway={f"gateway-{side} queue full": into[self._links.tester_end(side)] for side in SIDES})

    def counts(self) -> KernelCounts:
        """What the guest's kernel has counted, which takes a command in it for each gateway."""
        first, *second = (counts.read() for counts in self._counts)
        return replace(first, counters=added(first.counters, *(counted.counters for counted in second)))

    def smallest_queue(self) -> int:
        """Return the frames that the queue of a tap holds."""
        return TAP_FRAMES

    def pids(self) -> list[int]:
        """Return the process of the enclosure, whose children the relay and the kernel are."""
        pid = self._enclosure.pid
        child = None if pid is None else first_child(pid)
        return [process for process in (child or pid,) if process is not None]

    def close(self) -> None:
        """End the kernel with all that runs in it; a second call does nothing."""
        try:
            self._enclosure.close()
        finally:
            if self._counters is not None:
                self._counters.close()

    def _first_process(self) -> list[str]:
        links, folder = self._links, self._folder / "guest"
        taps = [
            f"vec{number}:transport=tap,ifname={links.tester_end(side)},mac={MAC_ADDRESSES['gw', side]},"
            f"depth={FRAMES_AT_ONCE},mtu={links.mtus[side]}"
            for number, side in enumerate(SIDES)
        ]
        shared = f"gatemark_folder={self._folder}"
        kernel = kernel_command(
            self._kernel.program,
            folder / "init",
            megabytes=MEGABYTES,
            more=("ssl0=fd:{serial}", *taps, shared),
        )
        cores = ",".join(str(core) for core in links.cores.gateway)
        relay = [sys.executable, "-I", "-S", _program("relay.py"), str(folder), str(self._socket)]
        return ["taskset", "--cpu-list", cores, *relay, *kernel]

    def _write_programs(self) -> None:
        """Write the guest's first process, and the program that runs a command in it."""
        folder = self._folder / "guest"
        try:
            folder.mkdir(mode=0o700)
            agent = (resources.files("gatemark.dut.guest") / "agent.sh").read_text(encoding="utf-8")
            start = f"#!/bin/sh\nexport {' '.join(self._environment())}\n"
            (folder / "init").write_text(start + agent, encoding="utf-8")
            client = shlex.join([sys.executable, "-I", "-S", _program("client.py"), str(self._socket)])
            (folder / "run").write_text(f'#!/bin/sh\nexec {client} "$@"\n', encoding="utf-8")
            for name in ("init", "run"):
                (folder / name).chmod(0o700)
        except OSError as error:
            raise cannot_keep(folder, error) from None

    def _environment(self) -> list[str]:
        """Return variables of all commands inside: where programs, modules and rules of the kernel's own are."""
        libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/xtables:{self._kernel.xtables}"
        variables = {
            "PATH": guest_path(self._kernel.tools),
            "MODPROBE_OPTIONS": f"-d {MODULES_ROOT}",
            "XTABLES_LIBDIR": libraries,
        }
        return [f"{name}={shlex.quote(value)}" for name, value in variables.items()]

    def _module_commands(self) -> list[str]:
        """Return commands that load those modules of the recipe that lie beside the kernel, and know where they are."""
        names = [name for name in self._modules if (self._kernel.modules / f"{name}.ko").is_file()]
        if not names:
            return []
        folder = f"{MODULES_ROOT}/lib/modules/$(uname -r)"
        return [
            f"mkdir -p {folder}",
            f"cp {self._kernel.modules}/*.ko {folder}",
            f"touch {folder}/modules.order {folder}/modules.builtin {folder}/modules.builtin.modinfo",
            f"depmod -b {MODULES_ROOT} $(uname -r)",
            *(f"modprobe {name}" for name in names),
        ]

    def _towards_gateway(self) -> dict[str, int]:
        assert self._counters is not None, "it is open"
        return self._counters.tx_dropped(ends=[self._links.tester_end(side) for side in SIDES])

    def _ended(self, what: str) -> TestBedError:
        try:
            said = (self._folder / "guest" / "console").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            said = ""
        return TestBedError(
            what=f"{what}: {said[-600:] or 'it printed nothing'}",
            where=f"testbed.kernel {self._kernel.program}",
            fix="build another version with `gatemark kernel build VERSION`, or name another kernel",
        )


def guest_path(tools: Path) -> str:
    """Return where programs are looked for in the guest."""
    return ":".join([os.environ.get("PATH", "/usr/bin:/bin"), "/usr/sbin", "/sbin", str(tools)])


def _for_interfaces(settings: Mapping[str, str | int], interfaces: Collection[str]) -> dict[str, str | int]:
    """Return settings with what is the default of interfaces made for those that there are already."""
    made_for = {
        name.replace(".default.", f".{interface}."): value
        for name, value in settings.items()
        if ".default." in name
        for interface in interfaces
    }
    return {**settings, **made_for}


def _program(name: str) -> str:
    return str(resources.files("gatemark.dut.guest") / name)

"""Test traffic stays on the test network (RFC 8219 section 13, RFC 6815).

Two ways lead out of it. A port's wire may be that of a default route, or one that this machine uses (`uplinks`). And
the machine that measures may forward: what arrives at its interfaces is therefore dropped (`ingress`); where that
cannot be, it must not forward. `guard_ports` is the one place where every test bed asks.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gatemark.dut.base import Placement
from gatemark.dut.ingress import IngressDrop, reason
from gatemark.dut.port_name import OTHER_PORT, interfaces_of, makes_interface
from gatemark.dut.uplinks import Uplinks, read_uplinks
from gatemark.errors import ConfigError, Problem
from gatemark.port_kinds import parse_port
from gatemark.technology import SIDES

if TYPE_CHECKING:
    from gatemark.config.model import Campaign

SYSCTL_FOLDER = Path("/proc/sys/net")
STOP_FORWARDING = (
    "run gatemark in a network namespace of its own, or stop forwarding:"
    " sysctl -w net.ipv4.conf.all.forwarding=0 net.ipv6.conf.all.forwarding=0"
)


def port_problems(ports: Mapping[str, str]) -> list[Problem]:
    """Check ports, by where they are named: they exist, it is known what they open, this user may, nobody else uses it.

    Raises TestBedError if the kernel does not tell its routes.
    """
    uplinks = functools.cache(read_uplinks)
    problems = []
    for where, text in ports.items():
        port = parse_port(text)
        if port.kind.needs_root and os.geteuid() != 0:
            what = f"port {text} needs root (CAP_NET_RAW, CAP_NET_ADMIN)"
            problems.append(Problem(what=what, where=where, fix="run as root; ring ports need no root"))
        try:
            interfaces = interfaces_of(port)
        except ConfigError as error:
            problems += [replace(problem, where=where) for problem in error.problems]
            continue
        if interfaces:
            problems += wire_problems(interfaces, where, uplinks())
    return problems or sending_problems(ports, uplinks)


def guard_ports(ports: Mapping[str, str]) -> IngressDrop:
    """Check ports, by where they are named, and keep what arrives at them out of this machine's kernel until closed.

    For every kind of test bed that opens ports which it did not make. Raises ConfigError with all that is wrong.
    """
    problems = port_problems(ports)
    if problems:
        raise ConfigError(problems=problems)
    return isolate(ports)


class NamedPorts:
    """What test beds have in common whose ports the campaign names: two of this machine, in the caller's namespace."""

    unnamed = ""
    """The port of a side that names none."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._ingress = IngressDrop(())
        self.placement = Placement(tester_cores=tuple(campaign.testbed.cores))

    @property
    def ports(self) -> dict[str, str]:
        """Ports as the campaign names them."""
        return {side: self._campaign.side(side).port or self.unnamed for side in SIDES}

    def close(self) -> None:
        """Let frames into this machine's kernel again."""
        self._ingress.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _guard(self) -> None:
        """Guard the ports; raise ConfigError with all that is wrong: the campaign names ports that cannot be used."""
        source = self._campaign.source
        self._ingress = guard_ports({f"{source}: {side}.port": text for side, text in self.ports.items()})


def wire_problems(interfaces: Sequence[str], where: str, uplinks: Uplinks) -> list[Problem]:
    """Say which interfaces of a port lead to a default route, or are in use."""
    problems = []
    for interface in interfaces:
        if (way := uplinks.way_out(interface)) is not None:
            problems.append(Problem(what=f"{interface} {way}", where=where, fix=OTHER_PORT))
        elif uplinks.is_port(interface):
            what, release = "is a port of a bridge, bond or team", f"ip link set {interface} nomaster"
            problems.append(
                Problem(what=f"{interface} {what}", where=where, fix=f"{OTHER_PORT}, or take it out: {release}")
            )
        elif addresses := uplinks.addresses(interface):
            what, release = f"has the address {addresses[0]}, so it is in use", f"ip address flush dev {interface}"
            problems.append(
                Problem(what=f"{interface} {what}", where=where, fix=f"{OTHER_PORT}, or free it: {release}")
            )
    return problems


def sending_problems(ports: Mapping[str, str], uplinks: Callable[[], Uplinks]) -> list[Problem]:
    """Say of which ports the kernel of this machine forwards what they send; `ports` by where they are named.

    It receives what a TAP sends, and what is sent into a veth whose other end lies in the same namespace.
    """
    problems = []
    names = {where: parse_port(text) for where, text in ports.items()}
    opened = {where: interfaces_of(name) for where, name in names.items()}
    testers = {interface for interfaces in opened.values() for interface in interfaces}
    for where, name in names.items():
        ends = [end for interface in opened[where] if (end := uplinks().far_end(interface)) not in (None, *testers)]
        forwarding = [end for end in ends if end is not None and forwards(end)]
        if makes_interface(name) and forwards("default"):
            forwarding.append(name.target)
        if forwarding and uplinks().has_default_route():
            what = f"this machine receives what {ports[where]} sends, forwards, and has a default route"
            problems.append(Problem(what=what, where=where, fix=STOP_FORWARDING))
    return problems


def isolate(ports: Mapping[str, str]) -> IngressDrop:
    """Keep what arrives at the ports out of this machine's IP until the result is closed.

    `ports` by where they are named. Raises ConfigError where frames cannot be dropped and the machine may forward them.
    """
    interfaces = {name: where for where, text in ports.items() for name in interfaces_of(parse_port(text))}
    try:
        return IngressDrop(interfaces)
    except OSError as error:
        problems = [
            Problem(
                what=f"this machine may forward frames from {interface}; gatemark cannot drop them: {reason(error)}",
                where=where,
                fix=STOP_FORWARDING,
            )
            for interface, where in interfaces.items()
            if forwards(interface)
        ]
        if problems:
            raise ConfigError(problems=problems) from error
        return IngressDrop(())


def forwards(interface: str) -> bool:
    """Whether this machine forwards IPv4 or IPv6 packets that arrive at `interface`; what cannot be read counts."""
    off = [_reads_zero(f"ipv4/conf/{interface}/forwarding")]
    if (SYSCTL_FOLDER / "ipv6").exists():
        off += [_reads_zero(f"ipv6/conf/{name}/forwarding") for name in ("all", interface)]
        forced = f"ipv6/conf/{interface}/force_forwarding"
        off.append(not (SYSCTL_FOLDER / forced).exists() or _reads_zero(forced))
    return not all(off)


def _reads_zero(name: str) -> bool:
    try:
        return (SYSCTL_FOLDER / name).read_text(encoding="ascii").strip() == "0"
    except OSError:
        return False

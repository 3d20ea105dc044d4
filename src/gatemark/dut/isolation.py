"""Test traffic stays on the test network (RFC 8219 section 13, RFC 6815).

Two ways lead out of it. A port's wire may be that of a default route (`uplinks`). And the machine that measures may
forward: what arrives at its interfaces is therefore dropped (`ingress`); where that cannot be, it must not forward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gatemark.dut.ingress import IngressDrop, reason
from gatemark.dut.port_name import PortName, parse_port
from gatemark.dut.uplinks import Uplinks
from gatemark.errors import ConfigError, Problem

SYSCTL_FOLDER = Path("/proc/sys/net")
STOP_FORWARDING = (
    "run gatemark in a network namespace of its own, or stop forwarding:"
    " sysctl -w net.ipv4.conf.all.forwarding=0 net.ipv6.conf.all.forwarding=0"
)


def wire_problems(port: PortName, where: str, uplinks: Uplinks) -> list[Problem]:
    """Say which interfaces of a port lead to a default route."""
    fix = "test traffic must not reach a production network (RFC 6815): use another port"
    ways = [(interface, uplinks.way_out(interface)) for interface in port.interfaces]
    return [Problem(what=f"{interface} {way}", where=where, fix=fix) for interface, way in ways if way is not None]


def sending_problems(ports: Mapping[str, str], uplinks: Callable[[], Uplinks]) -> list[Problem]:
    """Say of which ports the kernel of this machine forwards what they send; `ports` by where they are named.

    It receives what a TAP sends, and what is sent into a veth whose other end lies in the same namespace.
    """
    problems = []
    names = {where: parse_port(text) for where, text in ports.items()}
    testers = {interface for name in names.values() for interface in name.interfaces}
    for where, name in names.items():
        ends = [end for interface in name.interfaces if (end := uplinks().far_end(interface)) not in (None, *testers)]
        forwarding = [end for end in ends if end is not None and forwards(end)]
        if name.makes_interface and forwards("default"):
            forwarding.append(name.target)
        if forwarding and uplinks().has_default_route():
            what = f"this machine receives what {ports[where]} sends, forwards, and has a default route"
            problems.append(Problem(what=what, where=where, fix=STOP_FORWARDING))
    return problems


def isolate(ports: Mapping[str, str], uplinks: Callable[[], Uplinks]) -> IngressDrop:
    """Keep what arrives at the ports out of this machine's bridges and IP until the result is closed.

    `ports` by where they are named. Raises ConfigError where frames cannot be dropped and the machine may forward them.
    """
    interfaces = {name: where for where, text in ports.items() for name in parse_port(text).interfaces}
    try:
        return IngressDrop(interfaces)
    except OSError as error:
        problems = [
            Problem(
                what=f"this machine may forward frames from {interface}; gatemark cannot drop them: {reason(error)}",
                where=where,
                fix=f"{STOP_FORWARDING}; take the interface out of its bridge",
            )
            for interface, where in interfaces.items()
            if forwards(interface) or uplinks().is_port(interface)
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

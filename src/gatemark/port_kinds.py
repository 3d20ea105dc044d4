"""What ports of the Tester are: one row for each kind of port, and the short name of a port in its parts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class PortKind:
    """One row: what a port of this kind opens."""

    name: str
    """What its short name begins with."""
    takes_name: bool = True
    """Whether a name follows: an interface, a PCI address, a path or arguments. Without one it leads nowhere."""
    is_of_kernel: bool = False
    """Whether it names a network interface of the kernel."""
    is_card: bool = False
    """Whether it names a card by its PCI address."""
    is_virtual_device: bool = False
    """Whether it names a virtual device of DPDK, with its arguments."""
    makes_interface: bool = False
    """Whether the kernel receives what it sends, by an interface that the port makes."""
    is_joined: bool = False
    """Whether two ports of one process are joined without a cable."""

    @property
    def may_be_card(self) -> bool:
        """Whether it may be a network card: with a line rate, and the same link-layer address each time."""
        return self.is_card or self.is_of_kernel

    @property
    def needs_root(self) -> bool:
        """Whether an ordinary user cannot open it."""
        return self.may_be_card or self.makes_interface

    @property
    def can_be_joined(self) -> bool:
        """Whether one process can send from one port to another, with a cable or without."""
        return self.may_be_card or self.is_joined


_ROWS = (
    PortKind(name="pci", is_card=True),
    PortKind(name="af_xdp", is_of_kernel=True),
    PortKind(name="af_packet", is_of_kernel=True),
    PortKind(name="tap", makes_interface=True),
    PortKind(name="memif"),  # not joined: DPDK's driver cannot use a socket in both roles
    PortKind(name="ring", takes_name=False, is_joined=True),
    PortKind(name="null", takes_name=False),
    PortKind(name="pcap"),
    PortKind(name="vdev", is_virtual_device=True),
)

PORT_KINDS: Mapping[str, PortKind] = MappingProxyType({row.name: row for row in _ROWS})
KERNEL_PORTS = tuple(sorted(row.name for row in _ROWS if row.is_of_kernel))
"""How the engine may open an interface of the kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortName:
    """A port's short name in its two parts, `af_packet:eth1`."""

    kind: PortKind
    target: str
    """Interface, PCI address, path or arguments; empty for kinds without one."""

    @property
    def interface(self) -> str | None:
        """The interface of the kernel that the port is opened on; None for kinds that name none."""
        return self.target.split(",")[0] if self.kind.is_of_kernel else None


def parse_port(text: str) -> PortName:
    """Split a short name; a kind that is not in the table is a row that says nothing."""
    kind, _, target = text.partition(":")
    return PortName(kind=PORT_KINDS.get(kind) or PortKind(name=kind), target=target)

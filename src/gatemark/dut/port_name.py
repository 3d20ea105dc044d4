"""The short name of a port, and the interfaces of the kernel behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KERNEL_PORT_KINDS = ("af_packet", "af_xdp")
"""Kinds of port that name a network interface of the kernel."""
INTERFACE_MAKERS = ("net_tap", "net_virtio_user")
"""Virtual devices of DPDK that make an interface through which the kernel receives what the Tester sends."""
NET_FOLDER = Path("/sys/class/net")

_PCI_ADDRESS = re.compile(r"(?P<domain>[0-9a-f]{4}:)?(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


@dataclass(frozen=True, slots=True, kw_only=True)
class PortName:
    """A port's short name in its two parts, `af_packet:eth1`."""

    kind: str
    target: str
    """Interface, PCI address, path or arguments; empty for kinds without one."""

    @property
    def interface(self) -> str | None:
        """The interface of the kernel that the port is opened on; None for kinds that name none."""
        return self.target.split(",")[0] if self.kind in KERNEL_PORT_KINDS else None

    @property
    def interfaces(self) -> tuple[str, ...]:
        """All interfaces of the kernel that the name may mean.

        One that a driver would take away from the kernel, and each that a word of a virtual device's arguments names:
        whatever key it follows, `iface=eth0` or `slave=0000:01:00.0`.
        """
        if self.interface is not None:
            return (self.interface,)
        if self.kind == "pci":
            return interfaces_of_pci(self.target)
        if self.kind == "tap":
            return tuple(name for name in (self.target,) if (NET_FOLDER / name).exists())
        if self.kind != "vdev":
            return ()
        words = re.split(r"[=,;()\s]+", self.target)
        names = {
            name for name in words if name not in ("", ".", "..") and "/" not in name and (NET_FOLDER / name).exists()
        }
        return tuple(sorted(names.union(*(interfaces_of_pci(word) for word in words))))

    @property
    def makes_interface(self) -> bool:
        """Whether the kernel receives by an interface of its own what the port sends."""
        return self.kind == "tap" or (self.kind == "vdev" and self.target.startswith(INTERFACE_MAKERS))


def parse_port(text: str) -> PortName:
    """Split a short name."""
    kind, _, target = text.partition(":")
    return PortName(kind=kind, target=target)


def interfaces_of_pci(address: str, net_folder: Path | None = None) -> tuple[str, ...]:
    """Return the interfaces that the kernel drives on PCI device `address`, itself or through virtio."""
    match = _PCI_ADDRESS.fullmatch(address.lower())
    if match is None:
        return ()
    device = f"{match['domain'] or '0000:'}{match['rest']}"
    folders = sorted((net_folder or NET_FOLDER).glob("*"))
    return tuple(folder.name for folder in folders if device in (folder / "device").resolve().parts)

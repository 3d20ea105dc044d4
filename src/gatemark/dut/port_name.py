"""The interfaces of the kernel behind a port."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gatemark.errors import ConfigError
from gatemark.port_kinds import PortName

INTERFACE_MAKERS = ("net_tap", "net_virtio_user")
"""Virtual devices of DPDK that make an interface through which the kernel receives what the Tester sends."""
NET_FOLDER = Path("/sys/class/net")
OTHER_PORT = "test traffic must not reach a production network (RFC 6815): use another port"

_PCI_ADDRESS = re.compile(r"(?P<domain>[0-9a-f]{4}:)?(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


def interfaces_of(port: PortName) -> tuple[str, ...]:
    """Return all interfaces of the kernel that a port means, as the kernel lists them.

    One that a driver would take away from the kernel, and each that the arguments of a virtual device name. Raises
    ConfigError if there is none of a name, and if it cannot be told which ones are opened.
    """
    if port.interface is not None:
        (name,) = _present(port.interface)
        if name != port.interface:
            what = f"{port.interface} is another name of the interface {name}"
            raise _unclear(what, fix=f"write {port.kind.name}:{name}")
        return (name,)
    if port.kind.is_card:
        return _of_card(port.target)
    if port.kind.makes_interface:
        return _present_or_made(port.target)
    if not port.kind.is_virtual_device:
        return ()
    return tuple(sorted({name for _, names in _devices(port.target) for name in names}))


def makes_interface(port: PortName) -> bool:
    """Whether the kernel receives by an interface of its own what a port sends. Raises as `interfaces_of` does."""
    if port.kind.is_virtual_device:
        return any(driver in INTERFACE_MAKERS for driver, _ in _devices(port.target))
    return port.kind.makes_interface


def interfaces_of_pci(address: str, net_folder: Path | None = None) -> tuple[str, ...]:
    """Return the interfaces that the kernel drives on PCI device `address`, itself or through virtio."""
    match = _PCI_ADDRESS.fullmatch(address.lower())
    if match is None:
        return ()
    device = f"{match['domain'] or '0000:'}{match['rest']}"
    folders = sorted((net_folder or NET_FOLDER).glob("*"))
    return tuple(folder.name for folder in folders if device in (folder / "device").resolve().parts)


def _unclear(what: str, *, fix: str = OTHER_PORT) -> ConfigError:
    return ConfigError(what=what, where="port", fix=fix)


def _present(interface: str) -> tuple[str, ...]:
    """Return the name by which the kernel lists an interface: it may have others, and all of them open it."""
    try:
        return (socket.if_indextoname(socket.if_nametoindex(interface)),)
    except (OSError, ValueError):
        known = ", ".join(sorted(folder.name for folder in NET_FOLDER.glob("*") if folder.name != "lo"))
        fix = f"interfaces here are {known or 'none'}; `ip link` lists them"
        raise _unclear(f"there is no interface {interface}", fix=fix) from None


def _present_or_made(interface: str) -> tuple[str, ...]:
    """Return an interface that the driver makes if it is not there yet."""
    try:
        return _present(interface)
    except ConfigError:
        return ()


def _of_card(address: str) -> tuple[str, ...]:
    if _PCI_ADDRESS.fullmatch(address.lower()) is None:
        raise _unclear(f"{address} is not a PCI address such as 0000:01:00.0")
    return interfaces_of_pci(address)


def _of_host_kernel(path: str) -> tuple[str, ...]:
    if path != "/dev/vhost-net":
        raise _unclear(f"{path} may be a card: gatemark knows of /dev/vhost-net only where it leads")
    return ()


def _of_nothing(_value: str) -> tuple[str, ...]:
    return ()


Names = Callable[[str], tuple[str, ...]]
"""Returns the interfaces that the value of an argument names."""


def _keys(others: str, **names: Names) -> Mapping[str, Names]:
    return {**dict.fromkeys(others.split(), _of_nothing), **names}


VDEV_KEYS: Mapping[str, Mapping[str, Names]] = {
    "net_af_packet": _keys("qpairs blocksz framesz framecnt qdisc_bypass", iface=_present),
    "net_af_xdp": _keys("start_queue queue_count shared_umem busy_budget force_copy", iface=_present),
    "net_bonding": _keys(
        "mode socket_id mac xmit_policy lsc_poll_period_ms up_delay down_delay agg_mode dedicated_queue",
        **dict.fromkeys(("slave", "member", "primary"), _of_card),
    ),
    "net_failsafe": _keys("mac"),
    "net_memif": _keys(
        "role id bsize rsize socket socket-abstract owner-uid owner-gid mac secret zero-copy pkt_buffer_size"
    ),
    "net_null": _keys("size copy no-rx"),
    "net_pcap": _keys(
        "rx_pcap tx_pcap phy_mac infinite_rx",
        **dict.fromkeys(("iface", "rx_iface", "rx_iface_in", "tx_iface"), _present),
    ),
    "net_ring": _keys("nodeaction"),
    "net_tap": _keys("mac persist", iface=_present_or_made, remote=_present),
    "net_vdev_netvsc": _keys("force", iface=_present),
    "net_virtio_user": _keys(
        "mac cq queues queue_size mrg_rxbuf in_order packed_vq speed vectorized",
        iface=_present_or_made,
        path=_of_host_kernel,
    ),
}
"""Virtual devices of DPDK that gatemark opens, and all their arguments that it passes on, with what each names."""
_WRAPPER = "net_failsafe"
"""Takes other devices, each as an argument `dev(...)`."""
_TAKES_ALL = "net_vdev_netvsc"
"""Takes every interface of its kind where none is named."""
_QUOTES = frozenset("=()[]{}\"'\\")
"""Characters by which DPDK may see another end of a value."""


def _devices(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the drivers of a virtual device and of those in it, each with the interfaces that its arguments name.

    Raises ConfigError for whatever gatemark does not know: it might open any interface.
    """
    name, *arguments = _split(text)
    driver = name.rstrip("0123456789")
    if driver not in VDEV_KEYS:
        raise _unclear(f"gatemark does not know which interfaces {name} opens, only those of {', '.join(VDEV_KEYS)}")
    names: list[str] = []
    for argument in arguments:
        key, _, value = argument.partition("=")
        if driver == _WRAPPER and argument.startswith("dev(") and argument.endswith(")"):
            yield from _wrapped(argument[len("dev(") : -1])
        elif key in VDEV_KEYS[driver] and value and _QUOTES.isdisjoint(value):
            names += VDEV_KEYS[driver][key](value)
        else:
            raise _unclear(f"gatemark does not know which interfaces {driver} opens with {argument!a}")
    if driver == _TAKES_ALL and not names:
        raise _unclear(f"{driver} without iface= takes every interface of its kind")
    yield driver, tuple(names)


def _wrapped(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    if text.startswith(_WRAPPER):
        raise _unclear(f"a {_WRAPPER} in another one")
    if text.startswith("net_"):
        yield from _devices(text)
    else:
        yield "pci", _of_card(text)


def _split(text: str) -> Iterator[str]:
    """Yield what stands between the commas of a text, but for those in parentheses."""
    begin = depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]

"""Where a frame that leaves an interface can go: the interfaces on the same wire, and the default routes among them.

Test traffic must not reach a production network (RFC 6815). An interface leads to one if a default route goes out of
it, or out of another one on its wire: the bridge, bond or VLAN above it, the interface that a VLAN or MACVLAN lies on,
the other ports of a bridge at the far end of a veth, in whatever network namespace. The kernel is asked by netlink.
What it does not tell counts as a way out: the guard fails closed.
"""

from __future__ import annotations

import contextlib
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address
from pathlib import Path
from typing import Any

from gatemark.dut.interface_counters import inside_of
from gatemark.errors import TestBedError

WIDEST_PRIVATE_PREFIX = {4: 8, 6: 7}
"""10.0.0.0/8 and fc00::/7. A wider route leads to the public Internet, whether it is one or made of halves."""
OWN_NAMESPACE = Path("/proc/thread-self/ns/net")
NAMESPACE_PLACES = (("/run/netns", "*"), ("/proc", "[0-9]*/ns/net"))
"""Where network namespaces are found."""

_UNICAST = 1  # RTN_UNICAST
_NO_NUMBER = 0xFFFFFFFF  # NETNSA_NSID_NOT_ASSIGNED

NamespaceKey = tuple[int, int]
"""Device and inode of a namespace's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An interface, and by their numbers those on its wire."""

    name: str
    kind: str = ""
    """`veth`, `bridge`, `macvlan`, ...; empty for hardware."""
    master: int | None = None
    """The bridge, bond or team that it is a port of."""
    lower: int | None = None
    """What it lies on; of a veth the other end."""
    elsewhere: NamespaceKey | None = None
    """The namespace of `lower` if it is another one."""
    lower_has_master: bool | None = None
    """Of a `lower` elsewhere: whether it is a port of something; None if the kernel does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Interfaces of one network namespace by their numbers, and those that carry a default route."""

    links: dict[int, Link]
    default_routes: dict[int, str] = field(default_factory=dict)
    """As `ip route` prints it."""
    addresses: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """IP addresses of each, without those that an interface gives itself (IPv6 link-local)."""


HIDDEN: NamespaceKey = (0, 0)
"""A namespace that is nowhere to be found, such as that of a container's host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """An interface on the wire. `counts`: a default route there leads out; else it is a host's at the far end."""

    namespace: NamespaceKey
    index: int
    counts: bool


class Uplinks:
    """The ways out of this machine. Namespaces are read when an interface leads there, and kept."""

    def __init__(self, here: NamespaceKey, read: Callable[[NamespaceKey], Namespace | None]) -> None:
        self._here = here
        self._read = read
        self._namespaces: dict[NamespaceKey, Namespace | None] = {}

    def has_default_route(self) -> bool:
        """Whether this namespace has a default route at all."""
        return bool(self._own_namespace().default_routes)

    def is_port(self, interface: str) -> bool:
        """Whether the interface is a port of a bridge, bond or team, which takes the frames that arrive."""
        return any(link.name == interface and link.master is not None for link in self._own_namespace().links.values())

    def addresses(self, interface: str) -> tuple[str, ...]:
        """Return the addresses that somebody gave the interface."""
        here = self._own_namespace()
        return next((here.addresses.get(index, ()) for index, link in here.links.items() if link.name == interface), ())

    def far_end(self, interface: str) -> str | None:
        """Return the other end of a veth if it lies in this namespace as well; None else."""
        links = self._own_namespace().links
        ends = (
            link for link in links.values() if link.name == interface and link.kind == "veth" and not link.elsewhere
        )
        return next((links[end.lower].name for end in ends if end.lower in links), None)

    def way_out(self, interface: str) -> str | None:
        """Say through which default route frames of an interface of this namespace can leave; None if through none."""
        links = self._own_namespace().links
        waiting = [
            _Place(namespace=self._here, index=index, counts=True) for index in links if links[index].name == interface
        ]
        reached = set(waiting)
        while waiting:
            place = waiting.pop()
            here = self._namespace(place.namespace)
            link = here.links[place.index]
            if place.counts and place.index in here.default_routes:
                behind = "" if link.name == interface else f" (through {link.name})"
                return f"carries the default route of this machine{behind}: {here.default_routes[place.index]}"
            if link.lower is not None and self._is_hidden(link, place.namespace):
                return f"leads through {link.name} into a network namespace that gatemark cannot inspect"
            further = [other for other in self._neighbours(place, here) if other not in reached]
            reached.update(further)
            waiting += further
        return None

    def _neighbours(self, place: _Place, here: Namespace) -> Iterator[_Place]:
        """Yield what shares the wire with a place.

        At the far end of a veth in another namespace is a host, such as the gateway, and its default route may well
        lead to us. The wire goes on only where that end is a port of something.
        """
        link = here.links[place.index]
        for index, other in here.links.items():
            upper = other.lower == place.index and other.elsewhere is None and other.kind != "veth"
            if index == link.master or other.master == place.index:
                yield replace(place, index=index, counts=True)
            elif upper:
                yield replace(place, index=index)
        if link.lower is None:
            return
        if link.elsewhere is None:
            yield replace(place, index=link.lower)
        elif self._look(link.elsewhere) is not None:  # else the wire ends there
            counts = link.kind != "veth" or link.elsewhere == self._here
            yield _Place(namespace=link.elsewhere, index=link.lower, counts=counts)

    def _is_hidden(self, link: Link, namespace: NamespaceKey) -> bool:
        """Whether it is not known where the wire ends: what the link lies on cannot be seen, and is not its end."""
        there = self._look(link.elsewhere or namespace)
        shown = there is not None and link.lower in there.links
        return not shown and not (link.kind == "veth" and link.lower_has_master is False)

    def _look(self, key: NamespaceKey) -> Namespace | None:
        if key not in self._namespaces:
            self._namespaces[key] = self._read(key)
        return self._namespaces[key]

    def _namespace(self, key: NamespaceKey) -> Namespace:
        namespace = self._look(key)
        assert namespace is not None, "gatemark follows visible links only"
        return namespace

    def _own_namespace(self) -> Namespace:
        return self._namespace(self._here)


def read_uplinks() -> Uplinks:
    """Read interfaces and routes of this network namespace; raise TestBedError if the kernel does not tell them."""
    files = _namespace_files()
    here_key = _key_of(OWN_NAMESPACE)
    here = _read_here(files)

    def read(key: NamespaceKey) -> Namespace | None:
        if key == here_key:
            return here
        with contextlib.suppress(OSError, TestBedError):  # it may not be entered
            return inside_of(files[key], lambda: _read_here(files)) if key in files else None
        return None

    return Uplinks(here_key, read)


def _read_here(files: dict[NamespaceKey, Path]) -> Namespace:
    """Read the calling thread's namespace. Raises TestBedError if the kernel does not tell all."""
    from pyroute2 import IPRoute  # takes 0.3 s
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        with IPRoute() as netlink:
            numbers = _namespace_numbers(netlink, files)
            messages = {message["index"]: message for message in netlink.get_links()}
            links = {index: _link(netlink, message, numbers) for index, message in messages.items()}
            routers = {index for index, link in links.items() if link.kind == "vrf"}  # a routing table, no wire
            for index, link in links.items():
                links[index] = replace(link, master=None if link.master in routers else link.master)
            return Namespace(
                links=links,
                default_routes=default_routes(netlink.get_routes(), links),
                addresses=given_addresses(netlink.get_addr()),
            )
    except (NetlinkError, OSError) as error:
        raise TestBedError(
            what=f"the kernel does not list interfaces and routes: {error}",
            where="guard of the default route",
            fix="without them test traffic might reach a production network (RFC 6815): allow netlink sockets",
        ) from error


def given_addresses(messages: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    """Return the addresses of interfaces by their numbers, but those that IPv6 gives each link (RFC 4291)."""
    addresses: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for message in messages:
        address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        is_own = address is None or (ip_address(address).version == 6 and ip_address(address).is_link_local)
        if not is_own:
            addresses[message["index"]] += (f"{address}/{message['prefixlen']}",)
    return dict(addresses)


def _link(netlink: Any, message: Any, numbers: dict[int, NamespaceKey]) -> Link:
    lower, number = message.get_attr("IFLA_LINK"), message.get_attr("IFLA_LINK_NETNSID")
    kind = message.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") or ""
    if lower is None:  # tunnels tell it among their own settings
        data = message.get_nested("IFLA_LINKINFO", "IFLA_INFO_DATA")
        settings = data["attrs"] if isinstance(data, dict) else []
        lower = next((value for name, value in settings if name.endswith("_LINK")), None)
    link = Link(
        name=message.get_attr("IFLA_IFNAME"), kind=kind, master=message.get_attr("IFLA_MASTER"), lower=lower or None
    )
    if number is None or link.lower is None:
        return link if link.lower != message["index"] else replace(link, lower=None)
    has_master = _has_master(netlink, link.lower, number)
    return replace(link, elsewhere=numbers.get(number, HIDDEN), lower_has_master=has_master)


def _has_master(netlink: Any, index: int, number: int) -> bool | None:
    """Whether an interface of another namespace is a port of something; None if the kernel does not tell."""
    from pyroute2.netlink.exceptions import NetlinkError

    with contextlib.suppress(NetlinkError, OSError):
        for message in netlink.link("get", index=index, if_netnsid=number):
            return message.get_attr("IFLA_MASTER") is not None
    return None


def default_routes(messages: Iterable[Any], links: dict[int, Link]) -> dict[int, str]:
    """Return the interfaces whose routes, taken together, lead to the public Internet.

    `0.0.0.0/1` with `128.0.0.0/1`, and `2000::/3`, are default routes as well. All routing tables count. Raises
    TestBedError for such a route whose interface is not told.
    """
    networks: dict[tuple[int, int], set[IPv4Network | IPv6Network]] = defaultdict(set)
    gateways: dict[int, str] = {}
    for message in messages:
        network = _network(message)
        if message["type"] != _UNICAST or network is None or network.is_multicast:
            continue
        hops = list(_hops(message))
        for index, gateway in hops:
            networks[index, network.version].add(network)
            if network.prefixlen == 0:
                gateways.setdefault(index, gateway)
        if not hops and network.prefixlen < WIDEST_PRIVATE_PREFIX[network.version]:
            raise TestBedError(
                what=f"the kernel does not name the interface of the route to {network}",
                where="guard of the default route",
                fix="sysctl net.ipv4.nexthop_compat_mode=1 shows the interfaces of routes with nexthop objects",
            )
    routes: dict[int, str] = {}
    for (index, version), wanted in sorted(networks.items(), key=lambda item: item[0]):
        widest = min(collapse_addresses(sorted(wanted)), key=lambda network: network.prefixlen)  # type: ignore[type-var]
        if widest.prefixlen < WIDEST_PRIVATE_PREFIX[version] and index in links:
            to = "default" if widest.prefixlen == 0 else str(widest)
            routes.setdefault(index, f"{to} via {gateways.get(index, 'link')} dev {links[index].name}")
    return routes


def _network(message: Any) -> IPv4Network | IPv6Network | None:
    """Return where a route leads; None if it is of neither family."""
    family, told, length = message["family"], message.get_attr("RTA_DST"), message["dst_len"]
    if family == socket.AF_INET:
        return IPv4Network((told or "0.0.0.0", length))
    return IPv6Network((told or "::", length)) if family == socket.AF_INET6 else None


def _hops(message: Any) -> Iterator[tuple[int, str]]:
    """Yield the interface and the next router of each hop of a route."""
    index = message.get_attr("RTA_OIF")
    if index is not None:
        yield index, message.get_attr("RTA_GATEWAY") or "link"
    for hop in message.get_attr("RTA_MULTIPATH") or []:
        told = dict(hop["attrs"])
        yield hop["oif"], told.get("RTA_GATEWAY", "link")


def _namespace_numbers(netlink: Any, files: dict[NamespaceKey, Path]) -> dict[int, NamespaceKey]:
    """Return the namespaces that can be found, by the numbers that the calling thread's namespace has for them.

    A file that is not one yet, or no more, is left out: what leads there then counts as hidden.
    """
    from pyroute2.netlink.exceptions import NetlinkError

    numbers = {}
    for key, file in files.items():
        with contextlib.suppress(OSError, NetlinkError), file.open("rb") as opened:
            number = netlink.get_netnsid(fd=opened.fileno())["nsid"]
            if number != _NO_NUMBER:
                numbers[number] = key
    return numbers


def _namespace_files() -> dict[NamespaceKey, Path]:
    """Return a file of each network namespace that can be found."""
    files: dict[NamespaceKey, Path] = {}
    for folder, pattern in NAMESPACE_PLACES:
        for file in Path(folder).glob(pattern):
            with contextlib.suppress(OSError):
                files.setdefault(_key_of(file), file)
    return files


def _key_of(file: Path) -> NamespaceKey:
    status = file.stat()
    return status.st_dev, status.st_ino

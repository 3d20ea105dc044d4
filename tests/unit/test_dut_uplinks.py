"""Which interfaces lead to a production network: every way that a wire can take, from interfaces made of numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatemark.dut import uplinks as uplinks_module
from gatemark.dut.isolation import wire_problems
from gatemark.dut.uplinks import (
    HIDDEN,
    Link,
    Namespace,
    NamespaceKey,
    Uplinks,
    default_routes,
    given_addresses,
    read_uplinks,
)
from gatemark.errors import TestBedError

OWN: NamespaceKey = (4, 1)
OTHER: NamespaceKey = (4, 2)
ROUTE = "default via 192.0.2.254 dev uplink"


def uplinks(links: dict[int, Link], routes: tuple[int, ...] = (1,), **others: Namespace) -> Uplinks:
    namespaces = {OWN: Namespace(links=links, default_routes=dict.fromkeys(routes, ROUTE)), OTHER: others.get("other")}
    return Uplinks(OWN, namespaces.get)


WIRES: dict[str, dict[int, Link]] = {
    "the uplink itself": {1: Link(name="port")},
    "a VLAN of the uplink": {1: Link(name="eth0"), 2: Link(name="port", kind="vlan", lower=1)},
    "the interface below an uplink on a VLAN": {1: Link(name="port.5", kind="vlan", lower=2), 2: Link(name="port")},
    "a MACVLAN beside the uplink": {
        1: Link(name="macvlan0", kind="macvlan", lower=3),
        2: Link(name="port", kind="macvlan", lower=3),
        3: Link(name="eth0"),
    },
    "a slave of the bond that is the uplink": {1: Link(name="bond0", kind="bond"), 2: Link(name="port", master=1)},
    "the bond over the uplink": {1: Link(name="eth0", master=2), 2: Link(name="port", kind="bond")},
    "a port of the bridge that has the uplink": {
        1: Link(name="eth0", master=3),
        2: Link(name="port", master=3),
        3: Link(name="br0", kind="bridge"),
    },
    "a veth into the bridge that has the uplink": {
        1: Link(name="eth0", master=3),
        2: Link(name="port", kind="veth", lower=4),
        3: Link(name="br0", kind="bridge"),
        4: Link(name="veth1", kind="veth", lower=2, master=3),
    },
    "a VLAN on a slave of a bond in a bridge over two veths": {
        1: Link(name="eth0", master=3),
        3: Link(name="br0", kind="bridge"),
        4: Link(name="veth1", kind="veth", lower=5, master=3),
        5: Link(name="veth0", kind="veth", lower=4, master=6),
        6: Link(name="bond0", kind="bond"),
        7: Link(name="port", kind="vlan", lower=6),
    },
    "a tunnel over the uplink": {1: Link(name="eth0"), 2: Link(name="port", kind="vxlan", lower=1)},
    "the other end of a veth that carries the route": {
        1: Link(name="veth1", kind="veth", lower=2),
        2: Link(name="port", kind="veth", lower=1),
    },
    "something that lies on what is not shown": {2: Link(name="port", kind="macvlan", lower=9)},
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_an_interface_on_the_wire_of_a_default_route_leads_out(wire: dict[int, Link]) -> None:
    assert uplinks(wire).way_out("port") is not None


def far_end(**end: object) -> Link:
    return Link(name="port", kind="veth", lower=7, elsewhere=OTHER, **end)  # type: ignore[arg-type]


BRIDGED = {
    7: Link(name="veth7", kind="veth", master=8),
    8: Link(name="br0", kind="bridge"),
    9: Link(name="eth0", master=8),
}


@pytest.mark.parametrize(
    ("route_at", "leads_out"),
    [(8, True), (9, True), (7, True), (None, False)],
    ids=["the bridge", "the port of the bridge", "the end in the bridge", "no route"],
)
def test_a_bridge_in_another_namespace_is_looked_into(route_at: int | None, leads_out: bool) -> None:
    routes = {} if route_at is None else {route_at: ROUTE}
    result = uplinks({1: far_end()}, (), other=Namespace(links=BRIDGED, default_routes=routes)).way_out("port")
    assert (result is not None) == leads_out


@pytest.mark.parametrize("index", [7, 10])
def test_a_gateway_at_the_far_end_may_have_its_default_route_towards_us(index: int) -> None:
    links = {7: Link(name="gw-left", kind="veth"), 10: Link(name="gw-left.5", kind="vlan", lower=7)}
    gateway = Namespace(links=links, default_routes={index: ROUTE})
    assert uplinks({1: far_end()}, (), other=gateway).way_out("port") is None


@pytest.mark.parametrize(("has_master", "leads_out"), [(True, True), (None, True), (False, False)])
def test_a_namespace_that_cannot_be_seen_counts_unless_the_wire_ends_there(
    has_master: bool | None, leads_out: bool
) -> None:
    hidden = Link(name="port", kind="veth", lower=7, elsewhere=HIDDEN, lower_has_master=has_master)
    result = uplinks({1: hidden}, ()).way_out("port")
    assert (result is not None and "gatemark cannot inspect" in result) == leads_out


def test_a_wire_of_its_own_leads_nowhere() -> None:
    links = {
        1: Link(name="uplink"),
        2: Link(name="port", kind="veth", lower=3),
        3: Link(name="far", kind="veth", lower=2),
        4: Link(name="uplink.5", kind="vlan", lower=1),
    }
    assert uplinks(links).way_out("port") is None
    assert "carries the default route" in (uplinks(links).way_out("uplink.5") or "")


def test_an_address_or_a_bridge_shows_that_others_use_the_interface() -> None:
    links = {
        1: Link(name="free"),
        2: Link(name="used"),
        3: Link(name="bridged", master=4),
        4: Link(name="br0", kind="bridge"),
    }
    known = Uplinks(OWN, {OWN: Namespace(links=links, addresses={2: ("192.0.2.1/24", "2001:db8::1/64")})}.get)
    said = {
        name: [problem.what for problem in wire_problems([name], "left.port", known)]
        for name in ("free", "used", "bridged")
    }
    assert said == {
        "free": [],
        "used": ["used has the address 192.0.2.1/24, so it is in use"],
        "bridged": ["bridged is a port of a bridge, bond or team"],
    }


class Address(dict):  # type: ignore[type-arg]
    """An address as pyroute2 gives it."""

    def get_attr(self, name: str) -> object:
        return self["attrs"].get(name)


def test_an_address_that_every_link_has_is_nobodys() -> None:
    told = [("fe80::1", 64, 1), ("192.0.2.1", 24, 2), ("2001:db8::1", 64, 2), ("169.254.0.5", 16, 3)]
    messages = [Address(index=index, prefixlen=length, attrs={"IFA_ADDRESS": text}) for text, length, index in told]
    assert given_addresses(messages) == {2: ("192.0.2.1/24", "2001:db8::1/64"), 3: ("169.254.0.5/16",)}


class Route(dict):  # type: ignore[type-arg]
    """A route as pyroute2 gives it."""

    def get_attr(self, name: str) -> object:
        return self["attrs"].get(name)


def route(to: str, **attributes: object) -> Route:
    address, _, length = to.partition("/")
    hop: dict[str, object] = attributes or {"RTA_OIF": 1}
    family = 10 if ":" in to else 2
    return Route(family=family, dst_len=int(length), type=1, attrs={"RTA_DST": address} | hop)


@pytest.mark.parametrize(
    ("destinations", "leads_out"),
    [
        (["0.0.0.0/0"], True),
        (["::/0"], True),
        (["0.0.0.0/1", "128.0.0.0/1"], True),
        (["::/1", "8000::/1"], True),
        (["2000::/3"], True),
        (["128.0.0.0/1"], True),
        ([f"{first}.0.0.0/8" for first in range(1, 224)], True),
        (["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15"], False),
        (["fc00::/7", "2001:2::/48", "64:ff9b::/96", "fe80::/64"], False),
        (["224.0.0.0/4", "ff00::/8"], False),
    ],
)
def test_a_default_route_may_be_made_of_parts(destinations: list[str], leads_out: bool) -> None:
    routes = default_routes([route(to) for to in destinations], {1: Link(name="eth0")})
    assert (list(routes) == [1]) == leads_out, routes


def test_every_hop_of_a_default_route_counts() -> None:
    hops = [{"oif": 1, "attrs": [("RTA_GATEWAY", "192.0.2.1")]}, {"oif": 2, "attrs": []}]
    links = {1: Link(name="eth0"), 2: Link(name="eth1")}
    routes = default_routes([route("0.0.0.0/0", RTA_MULTIPATH=hops)], links)
    assert routes == {1: "default via 192.0.2.1 dev eth0", 2: "default via link dev eth1"}


def test_a_default_route_whose_interface_is_not_told_is_an_error() -> None:
    with pytest.raises(TestBedError, match=r"0\.0\.0\.0/1"):
        default_routes([route("0.0.0.0/1", RTA_NH_ID=7)], {1: Link(name="eth0")})


def test_routes_that_the_kernel_does_not_tell_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_words: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pyroute2.IPRoute", refuse)
    with pytest.raises(TestBedError, match=r"does not list|does not name"):
        read_uplinks()


def test_the_file_of_a_namespace_that_is_just_made_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ip netns add` makes an ordinary file first, and mounts the namespace on it a moment later."""
    (tmp_path / "just-made").touch()
    monkeypatch.setattr(uplinks_module, "NAMESPACE_PLACES", ((str(tmp_path), "*"),))
    assert read_uplinks().way_out("nosuch0") is None

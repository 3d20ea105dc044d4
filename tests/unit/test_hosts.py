from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from hypothesis import given
from hypothesis import strategies as st

from gatemark.config.hosts import HostSet, unmapped_host
from gatemark.config.tables import EamEntry
from gatemark.technology import Family


def host_set(family: Family, address: str, offset: int, minimum: int, maximum: int, *, networks: int = 1) -> HostSet:
    number = int(IPv4Address(address) if family == "ipv4" else IPv6Address(address))
    return HostSet(family=family, address=number, offset=offset, minimum=minimum, maximum=maximum, networks=networks)


def members(hosts: HostSet) -> set[int]:
    """The slow and obvious list of all hosts."""
    networks = range(hosts.networks) if hosts.networks > 1 else [None]
    return {
        hosts.address_of(number, network) for number in range(hosts.minimum, hosts.maximum + 1) for network in networks
    }


@st.composite
def host_sets(draw: st.DrawFn) -> HostSet:
    minimum = draw(st.integers(0, 300))
    maximum = draw(st.integers(minimum, minimum + 300))
    network = draw(st.sampled_from(["198.18.0.2", "198.18.1.2", "198.19.0.2"]))
    networks = draw(st.sampled_from([1, 1, 2, 7, 256]))
    result = host_set("ipv4", network, draw(st.sampled_from([1, 2])), minimum, maximum, networks=networks)
    return replace(result, networks=1) if result.network_octet_taken else result


@given(host_sets(), host_sets())
def test_sets_meet_exactly_if_they_share_a_member(host_set: HostSet, other: HostSet) -> None:
    assert host_set.meets(other) == bool(members(host_set) & members(other))


@given(host_sets(), st.integers(0, 0xFFFFFFFF))
def test_membership_is_exact(hosts: HostSet, address: int) -> None:
    inside = members(hosts)
    assert (IPv4Address(address) in hosts) == (address in inside)
    assert all(IPv4Address(member) in hosts for member in sorted(inside)[:3])


def test_there_are_as_many_networks_as_are_said() -> None:
    hosts = host_set("ipv6", "2001:2:0:8000::2", 14, 2, 9, networks=100)
    assert IPv6Address("2001:2:0:8063::9") in hosts
    assert IPv6Address("2001:2:0:8064::9") not in hosts
    assert (hosts.text(hosts.lowest), hosts.text(hosts.highest)) == ("2001:2:0:8000::2", "2001:2:0:8063::9")


def test_networks_free_their_octet() -> None:
    hosts = host_set("ipv4", "198.18.0.2", 2, 2, 254, networks=256)
    assert IPv4Address("198.18.77.9") in hosts
    assert IPv4Address("198.18.77.1") not in hosts
    assert not hosts.network_octet_taken
    assert host_set("ipv4", "198.18.0.2", 2, 2, 256, networks=256).network_octet_taken
    assert host_set("ipv6", "2001:2::2", 6, 0, 1, networks=256).network_octet_taken
    assert not host_set("ipv6", "2001:2::2", 14, 0, 65535, networks=256).network_octet_taken


def test_every_host_is_looked_at() -> None:
    eam = [
        EamEntry.model_validate({"ipv4": "198.18.0.0/25", "ipv6": "2001:2::/121"}),
        EamEntry.model_validate({"ipv4": "198.18.0.128/25", "ipv6": "2001:2::80/121"}),
    ]
    assert unmapped_host(host_set("ipv4", "198.18.0.2", 2, 2, 255), None, eam) is None
    missing = unmapped_host(host_set("ipv4", "198.18.0.2", 2, 2, 256), None, eam)
    assert missing == int(IPv4Address("198.18.1.0"))
    assert unmapped_host(host_set("ipv6", "2001:2::2", 14, 2, 255), None, eam) is None
    prefix = IPv6Network("2001:2:0:6400::/96")
    assert unmapped_host(host_set("ipv4", "198.18.0.2", 2, 2, 256), prefix, []) is None
    assert unmapped_host(host_set("ipv6", "2001:2:0:6400::c612:2", 14, 2, 256), prefix, []) is None
    assert unmapped_host(host_set("ipv6", "2001:2:0:6400::c612:2", 10, 0, 256), prefix, []) is not None


@given(host_sets(), st.integers(8, 32), st.data())
def test_the_numbers_in_a_prefix_are_exact(hosts: HostSet, length: int, data: st.DataObject) -> None:
    near = data.draw(st.sampled_from(sorted(members(hosts))[:40])) ^ data.draw(st.sampled_from([0, 1, 3, 255, 1 << 16]))
    prefix = IPv4Network((near, length), strict=False)
    networks = range(hosts.networks) if hosts.networks > 1 else [None]
    inside = [
        number
        for number in range(hosts.minimum, hosts.maximum + 1)
        if any(IPv4Address(hosts.address_of(number, network)) in prefix for network in networks)
    ]
    assert list(hosts.numbers_in(prefix)) == inside
    assert hosts.meets_prefix(prefix) == bool(inside)
    first = hosts.first_in(prefix)
    assert (first is not None) == bool(inside)
    assert first is None or (first in members(hosts) and IPv4Address(first) in prefix)


def test_no_number_is_in_a_prefix_of_another_family() -> None:
    hosts = host_set("ipv4", "198.18.0.2", 2, 2, 254)
    assert not hosts.meets_prefix(IPv6Network("::/0"))
    assert hosts.meets_prefix(IPv4Network("0.0.0.0/0"))


def test_the_longest_run_outside_of_prefixes() -> None:
    hosts = host_set("ipv4", "198.18.0.2", 2, 0, 255)
    single = [IPv4Network(f"198.18.0.{number}/32") for number in (200, 0, 1)]
    assert hosts.numbers_outside(single) == range(2, 200)
    assert hosts.numbers_outside([IPv4Network("198.18.0.0/25"), *single]) == range(128, 200)
    assert not hosts.numbers_outside([IPv4Network("198.18.0.0/16")])
    assert hosts.numbers_outside([IPv4Network("198.19.0.0/16"), IPv6Network("::/0")]) == range(256)

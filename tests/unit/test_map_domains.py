"""Rules, MAP addresses and port sets: examples of RFC 7597 and vectors of an independent program."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.port_set import PortSet, psid_of_port

DMR = IPv6Network("2001:db8:ffff::/64")


def domain(ipv6: str, ipv4: str, ea_bits: int, psid_offset: int = 6, **others: Any) -> MapDomain:
    return MapDomain(
        rule_ipv6=IPv6Network(ipv6),
        rule_ipv4=IPv4Network(ipv4),
        ea_bits=ea_bits,
        psid_offset=psid_offset,
        **{"dmr": DMR, **others},
    )


@dataclass(frozen=True)
class Vector:
    rule: MapDomain
    ipv4: str
    psid: int
    address: str
    ranges: int
    first: tuple[int, int]
    last: tuple[int, int]
    ports: int


RFC_7597 = domain("2001:db8::/40", "192.0.2.0/24", 16)
SHORT = domain("2001:db8:ce::/51", "192.0.2.0/24", 13, 0)
LONG = domain("2001:db8:ce::/51", "192.0.2.0/24", 20, 0)
ALL = (0, 65535)
PORTS = 65536
VECTORS = [
    Vector(RFC_7597, "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", 63, (1232, 1235), (64720, 64723), 252),
    Vector(RFC_7597, "192.0.2.0", 0, "2001:db8::c000:200:0", 63, (1024, 1027), (64512, 64515), 252),
    Vector(RFC_7597, "192.0.2.255", 0xFF, "2001:db8:ff:ff00:0:c000:2ff:ff", 63, (2044, 2047), (65532, 65535), 252),
    Vector(
        domain("2001:db8:8000::/50", "192.0.2.0/24", 14, 0),
        "192.0.2.200", 10, "2001:db8:8000:320a:0:c000:2c8:a", 1, (10240, 11263), (10240, 11263), 1024,
    ),
    Vector(SHORT, "192.0.2.192", 21, "2001:db8:ce:1815:0:c000:2c0:15", 1, (43008, 45055), (43008, 45055), 2048),
    Vector(
        domain("2001:db8:ce::/51", "192.0.2.0/24", 13, 6),
        "192.0.2.192", 21, "2001:db8:ce:1815:0:c000:2c0:15", 63, (1696, 1727), (65184, 65215), 2016,
    ),
    Vector(LONG, "192.0.2.200", 10, "2001:db8:ce:1900:1400:c000:2c8:a", 1, (160, 175), (160, 175), 16),
    Vector(LONG, "192.0.2.255", 4095, "2001:db8:ce:1fff:fe00:c000:2ff:fff", 1, (65520, 65535), (65520, 65535), 16),
    Vector(
        domain("2001:db8::/32", "10.0.0.0/8", 32, 6),
        "10.18.52.86", 0xAB, "2001:db8:1234:56ab:0:a12:3456:ab", 63, (1708, 1711), (65196, 65199), 252,
    ),
    Vector(  # the EA bits are the PSID
        domain("2001:db8::/32", "203.0.113.77/32", 12, 4),
        "203.0.113.77", 0xABC, "2001:db8:abc0::cb00:714d:abc", 15, (6844, 6844), (64188, 64188), 15,
    ),
    Vector(
        domain("2001:db8::/36", "192.0.2.0/24", 16, 2),
        "192.0.2.9", 0x81, "2001:db8:98:1000:0:c000:209:81", 3, (24640, 24703), (57408, 57471), 192,
    ),
    Vector(
        domain("2001:db8:a0::/44", "198.18.0.0/16", 20, 4),
        "198.18.1.2", 0xF, "2001:db8:a0:102f:0:c612:102:f", 15, (7936, 8191), (65280, 65535), 3840,
    ),
    Vector(  # a port for each customer edge
        domain("2001:db8:1::/48", "0.0.0.0/0", 48, 0),
        "198.51.100.7", 0xBEEF, "2001:db8:1:c633:6407:beef:6407:beef", 1, (48879, 48879), (48879, 48879), 1,
    ),
    Vector(
        domain("2001:db8::/32", "198.51.100.0/24", 6),
        "198.51.100.20", 0, "2001:db8:1400::c633:6414:0", 1, ALL, ALL, PORTS,
    ),
    Vector(
        domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0, psid_bits=8, psid=0x34),
        "192.0.2.18", 0x34, "2001:db8:12:3400:0:c000:212:34", 63, (1232, 1235), (64720, 64723), 252,
    ),
    Vector(
        domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0),
        "192.0.2.18", 0, "2001:db8:12:3400:0:c000:212:0", 1, ALL, ALL, PORTS,
    ),
    Vector(  # softwires
        domain("2001:db8:1:2::/64", "192.0.2.0/24", 14, 0, dmr=None, in_identifier=True),
        "192.0.2.1", 0x12, "2001:db8:1:2:0:c000:201:12", 1, (18432, 19455), (18432, 19455), 1024,
    ),
    Vector(
        domain("2001:db8:1:2::/64", "0.0.0.0/0", 48, 0, dmr=None, in_identifier=True),
        "198.51.100.7", 0xBEEF, "2001:db8:1:2:0:c633:6407:beef", 1, (48879, 48879), (48879, 48879), 1,
    ),
    Vector(
        domain("2001:db8:1:2::/64", "192.0.2.1/32", 0, 0, dmr=None, in_identifier=True),
        "192.0.2.1", 0, "2001:db8:1:2:0:c000:201:0", 1, ALL, ALL, PORTS,
    ),
]  # fmt: skip


def edge_of(rule: MapDomain, ipv4: str, psid: int) -> Edge:
    """The customer edge with an address and a PSID."""
    host_bits = 32 - rule.rule_ipv4.prefixlen - rule.suffix_bits
    suffix = (int(IPv4Address(ipv4)) - int(rule.rule_ipv4.network_address)) >> host_bits
    return Edge(rule, suffix << rule.ea_psid_bits | psid if rule.ea_bits else 0)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.address)
def test_addresses_and_port_sets(vector: Vector) -> None:
    edge = edge_of(vector.rule, vector.ipv4, vector.psid)
    assert (str(edge.ipv4), edge.psid, str(edge.address)) == (vector.ipv4, vector.psid, vector.address)
    assert vector.rule.ea_in(IPv6Address(vector.address)) == edge.ea
    ranges = list(edge.ports.ranges())
    assert (len(ranges), ranges[0], ranges[-1]) == (vector.ranges, vector.first, vector.last)
    assert edge.ports.count == vector.ports == vector.rule.ports_per_edge
    assert [edge.ports.port(0), edge.ports.port(vector.ports - 1)] == [vector.first[0], vector.last[1]]


def test_what_follows_from_a_rule() -> None:
    assert (RFC_7597.suffix_bits, RFC_7597.ea_psid_bits, RFC_7597.psid_length, RFC_7597.contiguous_bits) == (8, 8, 8, 2)
    assert (RFC_7597.sharing_ratio, RFC_7597.ports_per_edge, RFC_7597.edge_count) == (256, 252, 65536)
    assert (RFC_7597.kind, RFC_7597.end_user_prefix_length) == ("shared address", 56)
    full = domain("2001:db8:2::/48", "192.0.2.0/24", 8)
    assert (full.kind, full.psid_length, full.sharing_ratio, full.ports_per_edge) == ("full address", 0, 1, PORTS)
    prefix = domain("2001:db8::/32", "198.51.100.0/24", 6)
    assert (prefix.kind, prefix.suffix_bits, prefix.edge_count) == ("IPv4 prefix", 6, 64)
    assert Edge(prefix, 5).ipv4_network == IPv4Network("198.51.100.20/30")
    single = domain("2001:db8:12:3400::/56", "192.0.2.18/32", 0, psid_bits=8, psid=0x34)
    assert (single.kind, single.psid_length, single.edge_count, single.sharing_ratio) == ("shared address", 8, 1, 256)
    assert domain("2001:db8:a0::/44", "198.18.0.0/16", 20, 4).edge_count == 1_048_576


@pytest.mark.parametrize(
    ("offset", "bits", "ports"),
    [(6, 8, 64512), (4, 6, 61440), (0, 6, 65536), (2, 8, 49152), (4, 12, 61440), (6, 5, 64512)],
)
def test_the_port_sets_of_all_psids_are_a_partition(offset: int, bits: int, ports: int) -> None:
    owners: dict[int, int] = {}
    for psid in range(1 << bits):
        ports_of = PortSet(offset, bits, psid)
        members = [ports_of.port(index) for index in range(ports_of.count)]
        assert (
            members == sorted(members) == [port for first, last in ports_of.ranges() for port in range(first, last + 1)]
        )
        for index, port in enumerate(members):
            assert owners.setdefault(port, psid) == psid
            assert ports_of.index_of(port) == index
    assert len(owners) == ports
    assert set(owners) == set(range(1 << (16 - offset) if offset else 0, PORTS))
    for port in range(PORTS):
        assert psid_of_port(port, psid_offset=offset, psid_bits=bits) == owners.get(port)


def test_a_port_of_another_psid_is_no_member() -> None:
    ports = PortSet(6, 8, 0x34)
    assert 1232 in ports
    assert [port for port in (0, 1023, 1231, 1236, 64724) if port in ports] == []
    with pytest.raises(IndexError, match="252 ports"):
        ports.port(252)


def test_the_general_form_of_appendix_b() -> None:
    # RFC 7597 appendix B: P = R * M * i + M * PSID + j, with R the sharing ratio and M the contiguous ports
    ratio, contiguous = 256, 4
    for psid in (0, 1, 0x34, 255):
        ports = PortSet(6, 8, psid)
        expected = [ratio * contiguous * i + contiguous * psid + j for i in range(1, 64) for j in range(contiguous)]
        assert [ports.port(index) for index in range(ports.count)] == expected


def test_system_ports_are_left_out() -> None:
    rule = domain("2001:db8:ce::/51", "192.0.2.0/24", 20, 0, except_system_ports=True)
    assert (rule.excluded_psids, rule.edge_count) == (64, 256 * (4096 - 64))  # 16 ports each
    assert min(rule.edge(0).ports.ranges()) == (1024, 1039)
    wide = domain("2001:db8:ce::/51", "192.0.2.0/24", 13, 0, except_system_ports=True)
    assert (wide.excluded_psids, wide.edge(0).psid) == (1, 1)  # 2048 ports each


def test_the_first_and_last_suffix_are_left_out() -> None:
    rule = domain("2001:db8:ce::/51", "192.0.2.0/24", 13, 0, except_suffixes=True)
    assert rule.edge_count == (2**8 - 2) * 2**5
    assert [str(rule.edge(number).ipv4) for number in (0, rule.edge_count - 1)] == ["192.0.2.1", "192.0.2.254"]
    assert [rule.edge(number).psid for number in (0, 31, 32, rule.edge_count - 1)] == [0, 31, 0, 31]
    with pytest.raises(IndexError, match="8128 customer edges"):
        rule.edge(8128)


@st.composite
def rules(draw: st.DrawFn, *, ea_bits_max: int = 48) -> MapDomain:
    """Rules without contradictions, of every kind."""
    length4 = draw(st.integers(min_value=0, max_value=32))
    ea_bits = draw(st.integers(min_value=0, max_value=min(ea_bits_max, 48 - length4)))
    length6 = draw(st.integers(min_value=0, max_value=128 - ea_bits))
    bits4 = draw(st.integers(min_value=0, max_value=2**32 - 1))
    bits6 = draw(st.integers(min_value=0, max_value=2**128 - 1))
    suffix_bits = min(ea_bits, 32 - length4)
    psid_bits = draw(st.integers(min_value=0, max_value=16)) if ea_bits == 0 and length4 == 32 else None
    psid_length = psid_bits or ea_bits - suffix_bits
    offset = draw(st.integers(min_value=0, max_value=min(15, 16 - psid_length)))
    return MapDomain(
        rule_ipv6=IPv6Network((bits6, length6), strict=False),
        rule_ipv4=IPv4Network((bits4, length4), strict=False),
        ea_bits=ea_bits,
        dmr=DMR,
        psid_offset=offset,
        psid_bits=psid_bits,
        psid=draw(st.integers(min_value=0, max_value=(1 << psid_bits) - 1)) if psid_bits else 0,
        except_suffixes=suffix_bits >= 2 and draw(st.booleans()),
        except_system_ports=ea_bits > suffix_bits and offset == 0 and draw(st.booleans()),
    )


@given(rule=rules(ea_bits_max=9))
def test_customer_edges_are_told_apart_by_address_and_psid(rule: MapDomain) -> None:
    edges = [rule.edge(number) for number in range(rule.edge_count)]
    networks = list(rule.rule_ipv4.subnets(new_prefix=rule.rule_ipv4.prefixlen + rule.suffix_bits))
    if rule.except_suffixes:
        networks = networks[1:-1]
    psids = list(range(1 << rule.ea_psid_bits)) if rule.ea_bits else [rule.psid]
    if rule.except_system_ports:
        psids = [psid for psid in psids if rule.ports_of(psid).port(0) >= 1024]
    allowed = {(network.network_address, psid) for network in networks for psid in psids}
    assert [edge.ea for edge in edges] == sorted({edge.ea for edge in edges})
    assert {(edge.ipv4, edge.psid) for edge in edges} == allowed
    assert len(edges) == len(allowed) == len({edge.address for edge in edges})


@given(rule=rules(), data=st.data())
def test_addresses_and_numbers_are_read_back(rule: MapDomain, data: st.DataObject) -> None:
    number = data.draw(st.integers(min_value=0, max_value=rule.edge_count - 1))
    edge = rule.edge(number)
    assert rule.numbers.below(edge.ea) == number
    assert rule.ea_in(edge.address) == edge.ea
    assert edge.address in rule.rule_ipv6
    assert edge.ipv4 in rule.rule_ipv4
    assert rule.numbers.below(1 << rule.ea_bits) == rule.edge_count
    flipped = IPv6Address(int(edge.address) ^ 1 << data.draw(st.integers(min_value=0, max_value=127)))
    assert (rule.ea_in(flipped) is None) == (flipped not in rule.rule_ipv6)


@given(rule=rules(), data=st.data())
def test_addresses_hold_what_the_rfc_puts_where(rule: MapDomain, data: st.DataObject) -> None:
    """Written a second time, as bits in a text (RFC 7597 sections 5.2 and 6)."""
    edge = rule.edge(data.draw(st.integers(min_value=0, max_value=rule.edge_count - 1)))
    rule_prefix = f"{int(rule.rule_ipv6.network_address):0128b}"[: rule.rule_ipv6.prefixlen]
    suffix = f"{int(edge.ipv4):032b}"[rule.rule_ipv4.prefixlen :][: rule.suffix_bits]
    psid = f"{edge.psid:016b}"[16 - rule.ea_psid_bits :] if rule.ea_psid_bits else ""
    end_user_prefix = rule_prefix + suffix + psid
    identifier = "0" * 16 + f"{int(edge.ipv4):032b}" + f"{edge.psid:016b}"
    bits = (end_user_prefix.ljust(64, "0") + identifier)[:128]
    if len(end_user_prefix) > 64:
        bits = end_user_prefix + ("0" * 64 + identifier)[len(end_user_prefix) :]
    assert f"{int(edge.address):0128b}" == bits

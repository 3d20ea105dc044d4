"""How customer edges are spread over domains, and which of them a longer rule takes."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.edges import Order, used_numbers
from gatemark.map_domains.nesting import taken_count, taken_ranges
from gatemark.map_domains.spread import Spread

weights = st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=8).map(tuple)


@pytest.mark.parametrize(
    ("each", "pattern"),
    [
        ((1,), (0,)),
        ((5,), (0, 0, 0, 0, 0)),
        ((1, 1, 1), (0, 1, 2)),
        ((5, 1, 1), (0, 0, 1, 0, 2, 0, 0)),  # by hand
        ((1, 2), (1, 0, 1)),
        ((2, 3), (1, 0, 1, 0, 1)),
    ],
)
def test_patterns(each: tuple[int, ...], pattern: tuple[int, ...]) -> None:
    assert Spread(each).pattern == pattern


@given(each=weights)
def test_the_pattern_is_the_one_defined(each: tuple[int, ...]) -> None:
    whole, assigned = sum(each), [0] * len(each)
    for place, domain in enumerate(Spread(each).pattern):
        claims = [(place + 1) * weight - whole * count for weight, count in zip(each, assigned, strict=True)]
        assert domain == claims.index(max(claims))
        assigned[domain] += 1
    assert tuple(assigned) == each


@given(each=weights)
def test_every_beginning_of_the_pattern_is_even(each: tuple[int, ...]) -> None:
    spread = Spread(each)
    for length in range(spread.period + 1):
        for count, weight in zip(spread.counts(length), each, strict=True):
            assert abs(count * spread.period - length * weight) < spread.period * len(each)
        assert sum(spread.counts(length)) == length


@given(each=weights, edges=st.integers(min_value=0, max_value=2000))
def test_local_numbers_have_no_gap(each: tuple[int, ...], edges: int) -> None:
    spread = Spread(each)
    numbers: list[list[int]] = [[] for _ in each]
    for edge in range(edges):
        domain, local = spread.of(edge)
        numbers[domain].append(local)
        assert spread.edge_of(domain, local) == edge
    assert tuple(map(len, numbers)) == spread.counts(edges)
    assert all(list(range(len(local))) == local for local in numbers)


@given(each=weights, edge=st.integers(min_value=0, max_value=2**48))
def test_large_numbers_are_read_back(each: tuple[int, ...], edge: int) -> None:
    spread = Spread(each)
    domain, local = spread.of(edge)
    assert spread.edge_of(domain, local) == edge
    assert spread.counts(edge)[domain] == local


@given(each=weights, data=st.data())
def test_no_domain_needs_more_than_it_has(each: tuple[int, ...], data: st.DataObject) -> None:
    spread = Spread(each)
    sizes = st.lists(st.integers(min_value=1, max_value=1000), min_size=len(each), max_size=len(each))
    capacities = data.draw(sizes)
    most = spread.edges_max(capacities)
    assert all(count <= capacity for count, capacity in zip(spread.counts(most), capacities, strict=True))
    assert any(count > capacity for count, capacity in zip(spread.counts(most + 1), capacities, strict=True))


def test_a_thousand_domains_are_spread() -> None:
    spread = Spread((64,) * 1024)
    assert spread.counts(1 << 40) == (1 << 30,) * 1024


def rule(ipv6: str, ipv4: str, ea_bits: int, **others: Any) -> MapDomain:
    dmr = IPv6Network("2001:db8:ffff::/64")
    return MapDomain(rule_ipv6=IPv6Network(ipv6), rule_ipv4=IPv4Network(ipv4), ea_bits=ea_bits, dmr=dmr, **others)


OUTER = rule("2001:db8::/36", "192.0.2.0/24", 12)


@pytest.mark.parametrize(
    ("inner", "ranges"),
    [
        (rule("2001:db9::/40", "203.0.113.0/24", 8), []),
        (rule("2001:db8:100::/40", "203.0.113.0/24", 8), [range(256, 512)]),
        (rule("2001:db8:123::/48", "203.0.113.0/24", 8), [range(0x123, 0x124)]),
        (rule("2001:db8:123:4000::/52", "203.0.113.0/24", 8), []),  # subnet bits, which are zero in a MAP address
        (rule("2001:db8:123::/52", "203.0.113.0/24", 8), [range(0x123, 0x124)]),
        (rule("2001:db9::/40", "192.0.2.128/25", 8), [range(0x800, 0x1000)]),
        (rule("2001:db9::/40", "192.0.2.18/32", 8), [range(0x120, 0x130)]),
        (rule("2001:db8:800::/37", "192.0.2.128/25", 8), [range(0x800, 0x1000), range(0x800, 0x1000)]),
    ],
)
def test_a_longer_rule_takes_customer_edges(inner: MapDomain, ranges: list[range]) -> None:
    assert list(taken_ranges(OUTER, inner)) == ranges
    assert list(taken_ranges(inner, OUTER)) == []


def test_an_ipv4_prefix_is_taken_with_its_first_address() -> None:
    outer = rule("2001:db8::/32", "198.51.100.0/24", 4)
    assert list(taken_ranges(outer, rule("2001:db9::/40", "198.51.100.32/30", 8))) == [range(2, 3)]
    assert list(taken_ranges(outer, rule("2001:db9::/40", "198.51.100.36/30", 8))) == []


@given(
    bits6=st.integers(min_value=0, max_value=255),
    length6=st.integers(min_value=36, max_value=60),
    bits4=st.integers(min_value=0, max_value=255),
    length4=st.integers(min_value=24, max_value=32),
    exclude=st.booleans(),
    order=st.sampled_from(["increasing", "decreasing", "pseudorandom"]),
    count=st.integers(min_value=0, max_value=4000),
)
def test_what_is_taken_is_what_the_prefixes_hold(
    bits6: int, length6: int, bits4: int, length4: int, exclude: bool, order: Order, count: int
) -> None:
    outer = rule("2001:db8::/36", "192.0.2.0/24", 12, except_first_and_last_suffix=exclude)
    count = min(count, outer.edge_count)
    inner6 = IPv6Network((int(outer.rule_ipv6.network_address) | bits6 << 80, length6), strict=False)
    inner4 = IPv4Network((int(outer.rule_ipv4.network_address) | bits4, length4), strict=False)
    other = rule(str(inner6), "203.0.113.0/24", 8)
    used = used_numbers(outer, count, order)
    edges = [outer.edge(number) for number in used]
    held = sum(edge.address in inner6 for edge in edges) if length6 > 36 else 0
    assert taken_count(outer, [other], used) == held
    other = rule("2001:db9::/40", str(inner4), 8)
    assert taken_count(outer, [other], used) == (sum(edge.ipv4 in inner4 for edge in edges) if length4 > 24 else 0)
    assert len(used) == (count if order != "pseudorandom" or count == 0 else outer.edge_count)

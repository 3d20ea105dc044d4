"""How customer edges are spread over domains, and which of them a longer rule takes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.edge_numbers import EdgeNumbers
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.nesting import nested, taken_ranges
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
    in_tunnel = replace(outer, dmr=None)
    assert list(taken_ranges(in_tunnel, rule("2001:db9::/40", "198.51.100.36/30", 8))) == [range(2, 3)]


@given(
    bits6=st.integers(min_value=0, max_value=255),
    length6=st.integers(min_value=37, max_value=60),
    bits4=st.integers(min_value=0, max_value=255),
    length4=st.integers(min_value=25, max_value=32),
    exclude=st.booleans(),
)
def test_edges_that_longer_rules_hold_are_left_out(
    bits6: int, length6: int, bits4: int, length4: int, exclude: bool
) -> None:
    outer = rule("2001:db8::/36", "192.0.2.0/24", 12, except_suffixes=exclude)
    inner6 = IPv6Network((int(outer.rule_ipv6.network_address) | bits6 << 80, length6), strict=False)
    inner4 = IPv4Network((int(outer.rule_ipv4.network_address) | bits4, length4), strict=False)
    others = [rule(str(inner6), "203.0.113.0/24", 8), rule("2001:db9::/40", str(inner4), 8)]
    left = [
        edge
        for edge in map(outer.edge, range(outer.edge_count))
        if edge.address not in inner6 and edge.ipv4 not in inner4
    ]
    without, *same = nested([outer, *others])
    assert same == others
    assert [without.edge(number).ea for number in range(without.edge_count)] == [edge.ea for edge in left]
    assert nested([without, *others]) == (without, *others)


def test_rules_that_share_an_address_take_it_from_a_shorter_one() -> None:
    outer = rule("2001:db8::/36", "192.0.2.0/24", 12)
    shared = [
        rule(f"2001:db9:{psid:x}::/56", "192.0.2.18/32", 0, psid_bits=8, psid=psid, psid_offset=4) for psid in range(3)
    ]
    assert [domain.edge_count for domain in nested([*shared, outer])] == [1, 1, 1, 255 * 16]


def test_an_edge_is_one_of_the_longest_rule() -> None:
    # of the 2^24 EA values those from 0x100000 to 0x1fffff and those from 0x010000 to 0x01ffff
    rules = [rule("2001:db8::/36", "10.0.0.0/8", 24), rule("2001:db8:100::/40", "10.1.0.0/16", 16)]
    assert [domain.edge_count for domain in nested(rules)] == [2**24 - 2**20 - 2**16, 2**16]


@given(
    psid_bits=st.integers(min_value=0, max_value=4),
    suffix_bits=st.integers(min_value=0, max_value=5),
    data=st.data(),
)
def test_numbers_are_those_of_a_list(psid_bits: int, suffix_bits: int, data: st.DataObject) -> None:
    whole = 1 << psid_bits + suffix_bits
    lowest = data.draw(st.integers(min_value=0, max_value=(1 << psid_bits) - 1))
    ends = st.integers(min_value=0, max_value=whole)
    ranges = data.draw(st.lists(st.tuples(ends, ends).map(lambda pair: range(min(pair), max(pair))), max_size=5))
    numbers = EdgeNumbers(
        ea_bits=psid_bits + suffix_bits, psid_bits=psid_bits, lowest_psid=lowest, left_out=tuple(ranges)
    )
    listed = [
        ea
        for ea in range(whole)
        if ea & ((1 << psid_bits) - 1) >= lowest and not any(ea in left_out for left_out in ranges)
    ]
    assert numbers.count == len(listed)
    assert [numbers.ea_of(number) for number in range(numbers.count)] == listed
    assert [numbers.below(ea) for ea in range(whole)] == [bisect_left(listed, ea) for ea in range(whole)]


def test_which_numbers_are_used() -> None:
    assert used_numbers(OUTER, 10, "increasing") == range(10)
    assert used_numbers(OUTER, 10, "decreasing") == range(4086, 4096)
    assert used_numbers(OUTER, 10, "pseudorandom") == range(4096)
    assert len(used_numbers(OUTER, 0, "pseudorandom")) == 0

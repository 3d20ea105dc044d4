from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.embedded_ipv4 import EMBEDDED_OCTETS, embed_ipv4, embedded_ipv4

EXAMPLES = [  # RFC 6052 section 2.4
    ("2001:db8::/32", "2001:db8:c000:221::"),
    ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
    ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
    ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
]


@pytest.mark.parametrize(("prefix", "address"), EXAMPLES)
def test_embedded_addresses_of_rfc_6052(prefix: str, address: str) -> None:
    assert embed_ipv4(IPv4Address("192.0.2.33"), IPv6Network(prefix)) == IPv6Address(address)
    assert embedded_ipv4(IPv6Address(address), IPv6Network(prefix)) == IPv4Address("192.0.2.33")
    assert embedded_ipv4(IPv6Address("2001:db9::1"), IPv6Network(prefix)) is None


def test_an_address_outside_a_map_domain() -> None:
    embedded = embed_ipv4(IPv4Address("10.2.3.4"), IPv6Network("2001:db8:ffff::/64"))
    assert str(embedded) == "2001:db8:ffff:0:a:203:400:0"


@given(
    number=st.integers(min_value=0, max_value=2**32 - 1),
    network=st.integers(min_value=0, max_value=2**128 - 1),
    length=st.sampled_from(sorted(EMBEDDED_OCTETS)),
    bit=st.integers(min_value=0, max_value=127),
)
def test_what_was_embedded_is_read_back_and_nothing_else_is(number: int, network: int, length: int, bit: int) -> None:
    network &= ~(0xFF << 56)  # octet 8
    prefix = IPv6Network((network, length), strict=False)
    embedded = embed_ipv4(IPv4Address(number), prefix)
    assert embedded_ipv4(embedded, prefix) == IPv4Address(number)
    assert embedded_ipv4(IPv6Address(int(embedded) ^ 1 << bit), prefix) != IPv4Address(number)

"""nftables takes the rulesets of MAP-T gateways: checked by `nft`, without loading them."""

from __future__ import annotations

import subprocess
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path

import pytest
from tests.system.machine import missing

from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.tayga import border_relay, customer_edge

MISSING = missing("nft", root=True, engine=False)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


def domain(ea_bits: int, psid_offset: int) -> MapDomain:
    return MapDomain(
        rule_ipv6=IPv6Network("2001:db8::/40"),
        rule_ipv4=IPv4Network("192.0.2.0/24"),
        ea_bits=ea_bits,
        dmr=IPv6Network("2001:db8:ffff::/64"),
        psid_offset=psid_offset,
    )


@pytest.mark.parametrize(("ea_bits", "psid_offset"), [(8, 6), (13, 0), (13, 6), (16, 2), (20, 4), (24, 0)])
def test_nftables_takes_the_rulesets(ea_bits: int, psid_offset: int, tmp_path: Path) -> None:
    rule = domain(ea_bits, psid_offset)
    relay = border_relay([rule], 256, private=IPv4Network("10.0.0.0/16"))
    edge = customer_edge(rule.edge(rule.edge_count - 1), ipv4=IPv4Address("10.255.0.1"))
    for name, text in (("relay", relay.nftables), ("edge", edge.nftables)):
        file = tmp_path / f"{name}.nft"
        file.write_text(text, encoding="utf-8")
        checked = subprocess.run(["nft", "--check", "--file", file], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")

"""nftables takes the rulesets of gateways made of rules and tunnels: checked by `nft`, without loading them."""

from __future__ import annotations

import subprocess
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import pytest
from tests.system.machine import missing

from gatemark.linux_aftr import aftr_files, nat_rules
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.linux import tunnel_relay
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


@pytest.mark.parametrize(("ea_bits", "psid_offset"), [(8, 6), (13, 0), (13, 6), (16, 2), (20, 4), (24, 0), (6, 0)])
def test_nftables_takes_the_rulesets(ea_bits: int, psid_offset: int, tmp_path: Path) -> None:
    rule = domain(ea_bits, psid_offset)
    count = min(256, rule.edge_count)
    relay = border_relay([rule], count, private=IPv4Network("10.0.0.0/16"))
    edge = customer_edge(rule.edge(rule.edge_count - 1), ipv4=IPv4Address("10.255.0.1"))
    edges = [rule.edge(number) for number in range(count)]
    tunnels = tunnel_relay(
        [rule], edges, relay=IPv6Address("2001:2::1"), private=IPv4Network("10.0.0.0/16"), hop_limit=64
    )
    for name, text in (("relay", relay.nftables), ("edge", edge.nftables), ("tunnels", tunnels.nftables)):
        if not text:
            assert rule.kind != "shared address"
            continue
        assert_taken(text, tmp_path / f"{name}.nft")


@pytest.mark.parametrize("ports", [None, "1024-65535"])
@pytest.mark.parametrize("pool", [["198.51.100.1/32"], ["192.0.2.0/30", "198.51.100.1/32", "203.0.113.0/31"]])
def test_nftables_takes_an_exported_aftr(pool: list[str], ports: str | None, tmp_path: Path) -> None:
    private = IPv4Network("100.64.0.0/10")
    b4s, hosts = [IPv6Address("2001:2::2"), IPv6Address("2001:2::3")], [IPv4Address("10.0.0.1")]
    files = aftr_files(b4s, hosts, end=IPv6Address("2001:2::1"), private=private, hop_limit=64)
    rules = nat_rules(private, [IPv4Network(network) for network in pool], ports)
    assert_taken(files.nftables + rules, tmp_path / "aftr.nft")


def assert_taken(text: str, file: Path) -> None:
    file.write_text(text, encoding="utf-8")
    checked = subprocess.run(["nft", "--check", "--file", file], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")

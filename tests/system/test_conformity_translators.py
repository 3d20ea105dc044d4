"""Conformity of real translators and NATs of Linux: packets between hosts on the same side, and what is planted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import ATTEMPTS, KeptBed, OpenBed, netns_campaign, netns_document, open_bed
from tests.system.machine import gatemark, missing
from tests.system.test_conformity import CONFORMITY, cases_of, seen_of

from gatemark.config.model import Campaign
from gatemark.dut.recipe import load_recipe
from gatemark.procedures.conformity.result import CaseResult
from gatemark.results.toml_text import to_toml

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

IPV6_HOSTS = {"ipv6": {"address": "2001:2::2", "hosts": {"offset": 14, "mode": "increasing", "range": "2-9"}}}
IPV4_HOSTS = {"ipv4": {"address": "198.18.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "2-9"}}}
OF_TAYGA = {
    "echo_from_outside": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "hairpin": ("differs", 0),
    "expired_from_outside": ("conforms", 0),
    "expired_from_inside": ("conforms", 0),
}
OF_A_NAT = {name: judged for name, judged in OF_TAYGA.items() if name != "echo_from_outside"}


def campaign_of(recipe: str) -> Campaign:
    hosts = IPV4_HOSTS if load_recipe(recipe).technology.families[0] == "ipv4" else IPV6_HOSTS
    return netns_campaign(recipe, left=hosts, conformity=CONFORMITY, frame_loss=None)


@pytest.fixture(scope="module")
def beds() -> Iterator[KeptBed]:
    kept = KeptBed(campaign_of)
    yield kept
    kept.close()


@pytest.fixture
def translator(beds: KeptBed) -> OpenBed:
    return beds.get("tayga-siit64")


@pytest.fixture
def nat44(beds: KeptBed) -> OpenBed:
    return beds.get("nft-nat44")


def judged(bed: OpenBed, folder: Path, *names: str) -> dict[str, CaseResult]:
    """Return what `cases_of` does, tried again where the machine was too busy for the control packets."""
    for _ in range(ATTEMPTS):
        cases = cases_of(bed, Path(tempfile.mkdtemp(dir=folder)), *names)
        if all(case.judgement != "no_result" for case in cases.values()):
            return cases
    raise AssertionError(f"control packets never arrived: {cases}")


def judged_case(bed: OpenBed, folder: Path, name: str) -> CaseResult:
    """Return one case, tried alone."""
    return judged(bed, folder, name)[name]


def test_tayga_refuses_what_an_explicit_mapping_represents(translator: OpenBed, tmp_path: Path) -> None:
    cases = judged(translator, tmp_path)
    assert seen_of(cases) == OF_TAYGA
    assert cases["hairpin"].icmp == {"icmpv6 1/0": 3}
    assert cases["expired_from_inside"].icmp.keys() == {"icmpv6 3/0"}
    assert cases["expired_from_outside"].icmp.keys() == {"icmpv4 11/0"}


TO_THE_OTHER = "ip6 daddr 2001:2:0:6400::c612:9 ip6 daddr set 2001:2::9"
UNDER_THE_PREFIX = "ip6 saddr set 2001:2:0:6400::c612:2"


@pytest.mark.parametrize(
    ("rule", "judgement", "difference"),
    [
        (TO_THE_OTHER, "differs", "source 2001:2::2 instead of 2001:2:0:6400::c612:2"),
        (f"{TO_THE_OTHER} {UNDER_THE_PREFIX}", "conforms", None),
        (f"{TO_THE_OTHER} {UNDER_THE_PREFIX} ip6 hoplimit set 11", "differs", "hop limit 10 instead of 4 to 9"),
    ],
)
def test_a_hairpin_with_the_mapped_address_or_without_a_hop_differs(
    rule: str, judgement: str, difference: str | None, translator: OpenBed, tmp_path: Path
) -> None:
    """Linux translates these packets from IPv6 to IPv6, before tayga gets them."""
    with translator.rules(f'iifname "{translator.interface("left")}" {rule}', hook="prerouting"):
        hairpin = judged_case(translator, tmp_path, "hairpin")
    assert (hairpin.judgement, hairpin.arrived_left) == (judgement, 3)
    assert hairpin.differences == (() if difference is None else (difference,))
    assert hairpin.hop_limits_due == (4, 9), "a crossing takes off 3"


def nat_rules(*postrouting: str, prerouting: str) -> str:
    after = "\n".join(f"    {rule}" for rule in postrouting)
    return f"""
table ip hairpin {{
  chain prerouting {{
    type nat hook prerouting priority dstnat;
    {prerouting}
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat - 1;
{after}
  }}
}}
"""


def test_linux_turns_nothing_round_by_itself(nat44: OpenBed, tmp_path: Path) -> None:
    cases = judged(nat44, tmp_path)
    assert seen_of(cases) == OF_A_NAT | {"hairpin": ("does_not_conform", 0)}
    assert cases["hairpin"].icmp == {"icmpv4 3/3": 3}, "its own ports are closed"


@pytest.mark.parametrize(
    ("source", "judgement", "difference"),
    [
        ("snat to 198.19.0.1", "conforms", None),
        ("masquerade", "does_not_conform", "source 198.18.0.1 is not a public address of the gateway"),
        ("accept", "does_not_conform", "source 198.18.0.2 is not a public address of the gateway"),
    ],
)
def test_linux_with_rules_for_hairpins(
    source: str, judgement: str, difference: str | None, nat44: OpenBed, tmp_path: Path
) -> None:
    """Masquerading takes the address of the interface on the inside, and without a rule the client's own stays."""
    left = nat44.interface("left")
    table = nat_rules(
        f'oifname "{left}" ct status dnat {source}',
        prerouting=f'iifname "{left}" ip daddr 198.19.0.1 udp dport 40001 dnat to 198.18.0.9:40001',
    )
    nat44.bed.gateway.keeper.clear_state()
    with nat44.table(table):
        cases = judged(nat44, tmp_path)
    nat44.bed.gateway.keeper.clear_state()
    assert seen_of(cases) == OF_A_NAT | {"hairpin": (judgement, 3)}
    assert cases["hairpin"].differences == (() if difference is None else (difference,))
    assert cases["hairpin"].hop_limits == (9,)


def test_a_nat64_of_tayga_and_nftables(beds: KeptBed, tmp_path: Path) -> None:
    bed = beds.get("tayga-nat64")
    cases = judged(bed, tmp_path)
    assert seen_of(cases) == OF_A_NAT | {"hairpin": ("does_not_conform", 0)}
    assert cases["hairpin"].icmp == {"icmpv6 1/4": 3}
    table = nat_rules(
        'oifname "nat64" ct status dnat snat to 198.19.0.1',
        prerouting='iifname "nat64" ip daddr 198.19.0.1 udp dport 40001 dnat to 198.18.0.9:40001',
    )
    bed.bed.gateway.keeper.clear_state()
    with bed.table(table):
        cases = judged(bed, tmp_path)
    assert seen_of(cases) == OF_A_NAT | {"hairpin": ("conforms", 3)}
    assert cases["hairpin"].hop_limits == (5,), "both ways through tayga, which Linux joins in one hop"


def test_a_clat_with_one_address(beds: KeptBed, tmp_path: Path) -> None:
    """Behind tayga the kernel answers in IPv6; a client gets that only if its source stands for an IPv4 address."""
    right = {name: judged for name, judged in OF_A_NAT.items() if name != "hairpin"}
    assert seen_of(judged(beds.get("tayga-clat-nat44"), tmp_path)) == right | {
        "expired_from_inside": ("does_not_conform", 0)
    }
    beds.close()
    mapping = "map 192.0.0.1 2001:2:0:4000::1\n"
    recipe = changed_recipe(tmp_path, "tayga-clat-nat44", (mapping, f"{mapping}map 192.0.0.3 2001:2::1\n"))
    with open_bed(campaign_of(str(recipe))) as bed:
        cases = judged(bed, tmp_path)
    assert seen_of(cases) == right
    assert cases["expired_from_inside"].icmp.keys() == {"icmpv4 11/0"}


def test_the_command_says_what_came_back_and_what_was_due(beds: KeptBed, tmp_path: Path) -> None:
    beds.close()
    file, output = tmp_path / "conformity.toml", tmp_path / "result"
    file.write_text(
        to_toml(netns_document("nft-nat44", left=IPV4_HOSTS, conformity={**CONFORMITY, "cases": ["hairpin"]}))
    )
    ended = gatemark("run", file, "--output", output)
    assert ended.status == 0, ended
    words = (
        "hairpin does not conform (RFC 4787 section 6): 3 of 3 dropped, answered: 3 x ICMPv4 3/3",
        "each packet was 198.18.0.2 port 40000 to 198.19.0.1 port 40001;"
        " due is any public address and port to 198.18.0.9 port 40001",
    )
    page = (output / "report.html").read_text()
    for sentence in words:
        assert sentence in page

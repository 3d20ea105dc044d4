"""Translation prefixes of every length (RFC 6052 section 2.2): each address that varies over two octets is verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import check_relayed_whole, faults, netns_campaign, open_bed, report_of
from tests.system.machine import missing, nightly_but
from tests.system.test_conformity import CONFORMITY
from tests.system.test_conformity_translators import judged

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FORMATS = ["2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64"]
"""One of each length but 96, which the recipes have; they are those of RFC 6052 section 2.4."""
PREFIXES = nightly_but((0, 2, 4), "tests of the engine have every length", FORMATS)
"""Of every run: no octet of an address behind octet 8, some, and all."""
WITH_96 = "2001:2:0:6400::/96"
RIGHT = {"ipv4": {"address": "198.19.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "250-261"}}}
"""Hosts whose last two octets both vary: under some prefixes octet 8 lies between the two. Few, because Linux has one
neighbour table for all namespaces."""


@pytest.mark.parametrize("prefix", PREFIXES)
def test_tayga_translates_every_host_with_every_length_of_prefix(prefix: str, tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "tayga-siit64", (WITH_96, prefix))
    with open_bed(netns_campaign(recipe, right=RIGHT, conformity=CONFORMITY, frame_loss=None)) as bed:
        report = report_of(bed, frames_per_second=5000)
        cases = judged(bed, tmp_path)
    for _, _, counts in report.counts():
        assert (counts.received, faults(counts)) == (counts.intended, {})
    assert {name: case.judgement for name, case in cases.items()} == {
        "echo_from_outside": "conforms",
        "echo_from_inside": "conforms",
        "hairpin": "differs",
        "expired_from_outside": "conforms",
        "expired_from_inside": "conforms",
    }


def test_a_clat_has_a_prefix_for_its_customer_and_one_for_all_others() -> None:
    """RFC 6877 section 6.3: the Tester is the PLAT, all servers are behind it."""
    hosts = {"mode": "pseudorandom", "range": "2-101"}
    left = {"ipv4": {"address": "198.18.0.2", "hosts": {**hosts, "offset": 2}}}
    right = {"ipv6": {"address": "2001:2:0:6400::c613:2", "hosts": {**hosts, "offset": 14}}}
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 128}, "mix": "1/2"}
    check_relayed_whole(netns_campaign("tayga-clat", left=left, right=right, traffic=traffic))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_nat64_with_every_length_of_prefix(prefix: str, tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "tayga-nat64", (WITH_96, prefix))
    with open_bed(
        netns_campaign(recipe, conformity={**CONFORMITY, "cases": ["echo_from_inside"]}, frame_loss=None)
    ) as bed:
        cases = judged(bed, tmp_path)
    assert [case.judgement for case in cases.values()] == ["conforms"]

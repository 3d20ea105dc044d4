"""Customer edges that reach others of their rule directly (RFC 7597 section 5), and frames that go astray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import PATIENT
from tests.system.machine import missing_for_guest
from tests.system.stateful_beds import stateful_campaign
from tests.system.test_stateful import assert_counts_agree, check_phase_one_faults, measured

MISSING = missing_for_guest("conntrack", "tayga")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a customer edge in a kernel of its own needs {', '.join(MISSING)}"),
]

MAP_T, MAP_E = "tayga-mapt-ce", "linux-mape-ce"
RULE = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.128.0/24", "ea_bits": 12}
HOSTS = {"offset": 2, "mode": "pseudorandom", "range": "32832-32863"}
COUNT = 2000
FULL = {"count": COUNT, "rate": "2k", "timeout": "200ms", "gap": "100ms"}


def tables(recipe: str) -> dict[str, Any]:
    """Return tables of a campaign to 32 customers of PSID 5, 198.18.128.64 to .95; the gateway is .18 with PSID 3."""
    rule = RULE if recipe == MAP_E else {**RULE, "dmr": "2001:2:0:6400::/96"}
    return {
        "map": {"domains": [rule], "end_user_prefix": "2001:2:0:4012:3000::/68", "mesh": {"psid": 5}},
        "right": {"ipv4": {"address": "198.18.128.64", "hosts": HOSTS}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": 128}, "mix": "9/10"},
        "connections": FULL,
    }


@pytest.mark.parametrize("recipe", [MAP_T, MAP_E])
def test_frames_go_to_other_customers_and_come_from_them(recipe: str, tmp_path: Path) -> None:
    """Beside native IPv6, in both phases and directions."""
    campaign = stateful_campaign(recipe, repetitions=1, frame_loss={"rates": ["2k"]}, **tables(recipe))
    result, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    edge = result.document.gateway.edge
    assert edge is not None and (edge.psid, edge.peers_psid) == (3, 5)


START = '"tayga --config {dir}/tayga.conf --mktun"'
OTHER = "ip6 daddr set 2001:2:0:40a0:5000:c612:80a0:5"
"""MAP address of a customer to which there are no connections."""


def planting(rule: str) -> tuple[tuple[str, str], ...]:
    """Return the changes of a recipe that have nftables do this to each packet which leaves on the right."""
    hook = f'type filter hook postrouting priority 300; oifname "{{right}}" {rule}'
    files, load = "[files]", '"nft -f {dir}/edge.nft"'
    table = f"\"planted.nft\" = '''table ip6 planted {{\nchain planted {{\n{hook}\n}}\n}}\n'''"
    return (files, f"{files}\n{table}"), (load, f'{load},\n    "nft -f {{dir}}/planted.nft"')


ASTRAY: dict[str, tuple[str, tuple[tuple[str, str], ...], set[str]]] = {
    "MAP-T, through the border relay": (
        MAP_T,
        ((START, f"\"sed -i '/^map 198.18.128.[6-9][0-9] /d' {{dir}}/tayga.conf\",\n    {START}"),),
        {"destination_address", "outside_rule"},
    ),
    "MAP-E, through the border relay": (MAP_E, (('"ip -batch {dir}/routes"', '"true"'),), {"tunnel_destination"}),
    "MAP-T, to another customer": (
        MAP_T,
        planting(f"meta l4proto udp {OTHER}"),
        {"destination_address", "other_edge_address"},
    ),
    "MAP-E, to another customer": (
        MAP_E,
        planting(f"meta l4proto 4 {OTHER}"),
        {"tunnel_destination", "other_subscriber"},
    ),
}
"""A recipe, changes of its text, and the reasons that must be counted for each frame."""


@pytest.mark.parametrize("fault", ASTRAY)
def test_what_goes_astray_is_named_and_counted(fault: str, tmp_path: Path) -> None:
    recipe, changes, reasons = ASTRAY[fault]
    of_mesh = {key: table for key, table in tables(recipe).items() if key in ("map", "right")}
    changed = changed_recipe(tmp_path, recipe, *changes)
    check_phase_one_faults(changed, PATIENT | {"retries": 2}, reasons, tmp_path / "result", **of_mesh)

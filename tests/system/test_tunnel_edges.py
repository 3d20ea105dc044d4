"""Customer edges of MAP-E and lw4o6 of the Linux kernel, in a kernel of its own: ports, capacity, planted faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import PATIENT
from tests.system.machine import missing_for_guest, nightly_but
from tests.system.stateful_beds import stateful_campaign
from tests.system.test_stateful import (
    assert_counts_agree,
    check_capacity_of_ports,
    check_phase_one_faults,
    measured,
)

MISSING = missing_for_guest("conntrack")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a customer edge in a kernel of its own needs {', '.join(MISSING)}"),
]

MAP_E, LWB4 = "linux-mape-ce", "linux-lwb4"
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}
SINGLE = {"ipv6": "2001:db8:12:3400::/56", "ipv4": "192.0.2.18/32", "ea_bits": 0}
SOFTWIRES = {"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 8}
EDGES: dict[str, tuple[str, dict[str, Any], int, range, int]] = {
    # recipe; [map]; connections; its ports, as the PSID's place in a port; size of that place
    "MAP-E, a = 6, k = 8": (
        MAP_E,
        {"domains": [SHARED], "end_user_prefix": "2001:db8:12:3400::/56"},
        252, range(0x34 << 2, 0x35 << 2), 1024,
    ),
    "MAP-E, an address of its own": (MAP_E, {"domains": [SINGLE]}, 2000, range(65536), 65536),
    "lw4o6, k = 8": (
        LWB4,
        {"softwires": [SOFTWIRES], "end_user_prefix": "2001:db8:1:2:0:c000:212:34/128"},
        256, range(0x3400, 0x3500), 65536,
    ),
}  # fmt: skip
"""Customer edges of 192.0.2.18, with so many connections to one destination as their ports allow."""
FULL = {"rate": "2k", "timeout": "200ms", "gap": "100ms", "destination_ports": "80"}


OTHER_SETS = "one more kernel for another kind of port set, whose ports unit tests count"


@pytest.mark.parametrize("kind", nightly_but((0,), OTHER_SETS, EDGES))
def test_every_port_of_the_set_carries_a_connection(kind: str, tmp_path: Path) -> None:
    """Beside native IPv6, in both phases; the learned ports are those of the set."""
    recipe, table, count, ports, size = EDGES[kind]
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 128}, "mix": "9/10"}
    campaign = stateful_campaign(
        recipe, map=table, repetitions=1, traffic=traffic, connections={**FULL, "count": count},
        frame_loss={"rates": ["2k"]},
    )  # fmt: skip
    result, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, count)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert (behaviour["public_addresses"], behaviour["public_ports"]) == (1, count)
    assert behaviour["public_port_minimum"] % size in ports and behaviour["public_port_maximum"] % size in ports
    gateway = result.document.gateway
    assert gateway.edge is not None and gateway.tunnel is not None
    assert gateway.pool == ("192.0.2.18/32",)
    assert (gateway.tunnel.address, gateway.tunnel.relay) == (gateway.edge.address, "2001:2:0:8000::2")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("lw4o6, k = 8", marks=pytest.mark.nightly("the same search as of a MAP-T customer edge")),
        pytest.param("MAP-E, a = 6, k = 8", marks=pytest.mark.nightly("the same search of 63 ranges")),
    ],
)
def test_the_capacity_is_the_size_of_the_port_set(kind: str, tmp_path: Path) -> None:
    recipe, table, count, _, _ = EDGES[kind]
    check_capacity_of_ports(recipe, {"map": table}, count, tmp_path / "result")


INSIDE, OUTSIDE = 'oifname "softwires" meta l4proto udp', "meta l4proto 4"
PLANTED: dict[str, set[str]] = {
    f"{INSIDE} udp sport set 1231": {"source_port", "outside_port_set"},
    f"{INSIDE} ip saddr set 198.18.128.19": {"source_address", "other_edge_address"},
    f"{INSIDE} ip saddr set 198.18.129.18": {"source_address", "outside_rule"},
    f"{OUTSIDE} ip6 saddr set 2001:2:0:4012:3500:c612:8012:35": {"tunnel_source"},
    f"{OUTSIDE} ip6 dscp set 1": {"tunnel_traffic_class"},
    f"{OUTSIDE} ip6 hoplimit set 3": {"tunnel_header"},
}
"""What nftables does to each frame that leaves the edge of the recipe, and the reasons that must be counted for it."""


EACH_TIME = (0, 3)
"""Of every run: one fault inside of the tunnel, and one of its header."""
OTHER_FIELDS = "one more kernel for another field, which tests of the engine have"


@pytest.mark.parametrize("rule", nightly_but(EACH_TIME, OTHER_FIELDS, PLANTED))
def test_a_planted_fault_is_named_and_counted(rule: str, tmp_path: Path) -> None:
    table = f"table inet planted {{\nchain planted {{\ntype filter hook postrouting priority 300; {rule}\n}}\n}}\n"
    text, load = "[files]", 'setup = [\n    "nft -f {dir}/edge.nft",'
    recipe = changed_recipe(
        tmp_path, MAP_E,
        (text, f"{text}\n\"planted.nft\" = '''{table}'''"),
        (load, f'{load}\n    "nft -f {{dir}}/planted.nft",'),
    )  # fmt: skip
    check_phase_one_faults(recipe, PATIENT | {"retries": 2}, PLANTED[rule], tmp_path / "result")

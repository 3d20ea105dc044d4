"""Conformity of customer edges with tunnels: those of the kernel, with what is planted, and the reference gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import KeptBed, OpenBed, netns_campaign
from tests.system.machine import missing, missing_for_guest
from tests.system.test_conformity import CONFORMITY, cases_of, seen_of
from tests.system.test_conformity_translators import judged
from tests.system.test_conformity_tunnels import CLASSES_KEPT, LARGE, cases_of_the_reference, counts_of

from gatemark.config.model import Campaign
from gatemark.technology import TechnologyName

MISSING = missing_for_guest("conntrack")
needs_kernel = pytest.mark.skipif(bool(MISSING), reason=f"an edge in a kernel of its own needs {', '.join(MISSING)}")
pytestmark = [
    pytest.mark.skipif(bool(missing(root=True)), reason="network namespaces need root"),
]
tries_all_again = pytest.mark.nightly("each tries all cases once more; unit tests do so with simulated gateways")

MAP_E, LWB4, B4 = "linux-mape-ce", "linux-lwb4", "linux-b4"
EDGES = (MAP_E, LWB4, B4)
PUBLIC, RELAY, NOBODY = "198.18.128.18", "2001:2:0:8000::2", "2001:2:0:8000::3"
END = {MAP_E: "2001:2:0:4012:3400:c612:8012:34", LWB4: "2001:2:0:4000:0:c612:8012:34", B4: "2001:2:0:ff::1"}
TUNNEL = {MAP_E: "softwires", LWB4: "softwires", B4: "dslite"}
OF_THE_TUNNEL = {
    "fragments": ("conforms", 3),
    "small_fragments": ("conforms", 3),
    "inner_fragments": ("conforms", 3),
    "foreign_tunnel_destination": ("conforms", 0),
    "outer_fragments": ("conforms", 3),
    "larger_than_tunnel": ("does_not_conform", 0),  # answered with 3/4 although they may be fragmented
    "larger_than_tunnel_with_df": ("conforms", 0),
    "error_from_outside": ("conforms", 3),
    **CLASSES_KEPT,
}
OF_A_NAT = {
    "expired_from_outside": ("conforms", 0),
    "expired_from_inside": ("conforms", 0),
    "port_of_the_set": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "hairpin": ("does_not_conform", 3),  # into the tunnel
    "foreign_source_address": ("conforms", 3),
    "foreign_tunnel": ("conforms", 0),
    "nobodys_tunnel": ("conforms", 0),
    "foreign_destination_address": ("conforms", 0),
    "inner_destination_address": ("conforms", 0),
    "foreign_destination_port": ("conforms", 0),
    "foreign_identifier": ("conforms", 0),
    "unused_port": ("reported", 0),
    **OF_THE_TUNNEL,
    "error_from_tunnel": ("differs", 0),  # about a public address, to which no host answers
}
OF_LINUX = {
    MAP_E: OF_A_NAT | {"hairpin": ("differs", 3), "larger_than_tunnel": ("differs", 0)},
    LWB4: OF_A_NAT,
    B4: {
        "expired_from_outside": ("conforms", 0),
        "expired_from_inside": ("conforms", 0),
        "echo_from_outside": ("conforms", 3),
        "echo_from_inside": ("conforms", 3),
        "nobodys_tunnel": ("reported", 0),
        **OF_THE_TUNNEL,
        "error_from_tunnel": ("conforms", 3),
    },
}


@pytest.fixture(scope="module")
def edges() -> Iterator[KeptBed]:
    def campaign_of(recipe: str) -> Campaign:
        return netns_campaign(recipe, conformity=CONFORMITY, frame_loss=None)

    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


def opened(edges: KeptBed, recipe: str) -> OpenBed:
    bed = edges.get(recipe)
    if recipe != B4:
        bed.bed.gateway.keeper.clear_state()
    return bed


COUNTERS = """
table ip counted {
  chain forward {
    type filter hook forward priority -1;
    iifname "TUNNEL" counter comment "out of the tunnel"
    oifname "TUNNEL" counter comment "into the tunnel"
  }
}
"""


@needs_kernel
@pytest.mark.parametrize("recipe", [pytest.param(MAP_E, marks=tries_all_again), LWB4, B4])
def test_an_edge_of_the_kernel_and_what_it_counts_itself(recipe: str, edges: KeptBed, tmp_path: Path) -> None:
    edge = opened(edges, recipe)
    with edge.table(COUNTERS.replace("TUNNEL", TUNNEL[recipe])):
        cases = judged(edge, tmp_path)
        counts = counts_of(edge)
    assert seen_of(cases) == OF_LINUX[recipe]
    rounds, clients = 3, 1 if recipe == B4 else 2
    controls = clients * (rounds + 1) * len(cases)
    into, out, learned = (6, 6, 0) if recipe == B4 else (13, 10, 2 * clients + rounds + 1)
    """Of a NAT four cases come out of the tunnel and would go back into it, and a client opens the way of a hairpin."""
    fragments, small = (rounds, 2 * rounds) if recipe == B4 else (0, 0)  # a NAT puts them together
    assert counts == {
        "into the tunnel": controls + learned + into * rounds + fragments + small,
        "out of the tunnel": controls + out * rounds + fragments,
    }
    for name in ("expired_from_outside", "expired_from_inside"):
        assert cases[name].icmp == {"icmpv4 11/0": 3}
    for name in ("larger_than_tunnel", "larger_than_tunnel_with_df"):
        assert (cases[name].icmp, cases[name].differences) == ({"icmpv4 3/4": 3}, ()), "each states an MTU of 1460"


@tries_all_again
@needs_kernel
@pytest.mark.parametrize("recipe", EDGES)
def test_a_tunnel_with_the_mtu_of_its_link_fragments_what_is_inside(
    recipe: str, edges: KeptBed, tmp_path: Path
) -> None:
    edge, tunnel = opened(edges, recipe), TUNNEL[recipe]
    edge.in_gateway("ip", "link", "set", tunnel, "mtu", "1460")
    try:
        cases = judged(edge, tmp_path)
    finally:
        edge.in_gateway("ip", "link", "set", tunnel, "mtu", "9196")
    judgement, _ = OF_LINUX[recipe]["larger_than_tunnel"]
    assert seen_of(cases) == OF_LINUX[recipe] | {"larger_than_tunnel": (judgement, 3)}
    case = cases["larger_than_tunnel"]
    assert (case.icmp, case.differences) == ({}, ("in fragments of its own, not of the tunnel packet",))


def before(rule: str, *, family: str = "ip", priority: int = -450) -> str:
    """Return a table that does something to packets before the kernel follows their connections."""
    chain = f"type filter hook prerouting priority {priority};\n    {rule}"
    return f"table {family} planted {{\n  chain before {{\n    {chain}\n  }}\n}}\n"


def before_tunnel(rule: str) -> str:
    return before(rule, family="ip6")


LOST = ("does_not_conform", 0)
DELIVERED = ("does_not_conform", 3)
OF_ANY: dict[str, tuple[str, dict[str, tuple[str, int]]]] = {
    "drops ICMP errors": (
        before('iifname "TUNNEL" icmp type destination-unreachable drop'),
        {"error_from_outside": LOST},
    ),
    "drops fragments of tunnels": (
        before_tunnel("exthdr frag exists drop"),
        {"outer_fragments": LOST},
    ),
    "takes a foreign end for its own": (
        before_tunnel("ip6 daddr FOREIGN ip6 daddr set END"),
        {"foreign_tunnel_destination": DELIVERED},
    ),
    "keeps what expires": (
        before("ip ttl 1 ip ttl set 2"),
        dict.fromkeys(("expired_from_outside", "expired_from_inside"), DELIVERED),
    ),
}
OF_NATS: dict[str, tuple[str, dict[str, tuple[str, int]]]] = {
    "takes the tunnel of nobody": (
        before_tunnel(f"ip6 saddr {NOBODY} ip6 saddr set {RELAY}"),
        {"nobodys_tunnel": DELIVERED},
    ),
    "takes the tunnel of another edge": (
        before_tunnel(f"ip6 saddr 2001:2:0:4000:0:c612:8000:0 ip6 saddr set {RELAY}"),
        {"foreign_tunnel": DELIVERED},
    ),
    "does not translate a foreign source": (
        before("ip saddr 70.18.0.2 notrack", priority=-300),
        {"foreign_source_address": DELIVERED},
    ),
    "a port outside of the set": (
        "table ip planted {\n  chain before {\n    type filter hook prerouting priority -450;\n"
        "    udp sport 40002 meta mark set 7\n  }\n"
        "  chain behind {\n    type filter hook postrouting priority 300;\n"
        "    meta mark 7 udp sport set 1231\n  }\n}\n",
        {"port_of_the_set": DELIVERED},
    ),
    "an identifier outside of the set": (
        "table ip planted {\n  chain behind {\n    type filter hook postrouting priority 300;\n"
        "    icmp type echo-request icmp id set 1231\n  }\n}\n",
        {"echo_from_inside": DELIVERED},
    ),
}
PLANTED = [
    *((recipe, name) for recipe in EDGES for name in OF_ANY),
    *((recipe, name) for recipe in (MAP_E, LWB4) for name in OF_NATS),
]
FOREIGN = {MAP_E: "2001:2:0:4012:3400:c612:8012:35", LWB4: "2001:2:0:4000:0:c612:8012:35", B4: "2001:2:0:ff::3"}
SHOULD = {(LWB4, "an identifier outside of the set")}
"""What a standard says should be, not must be."""


@tries_all_again
@needs_kernel
@pytest.mark.parametrize(("recipe", "name"), PLANTED)
def test_what_is_planted_changes_the_judgement_of_its_cases_alone(
    recipe: str, name: str, edges: KeptBed, tmp_path: Path
) -> None:
    text, changed = (OF_ANY | OF_NATS)[name]
    for word, value in (("TUNNEL", TUNNEL), ("FOREIGN", FOREIGN), ("END", END)):
        text = text.replace(word, value[recipe])
    edge = opened(edges, recipe)
    with edge.table(text):
        outcomes = seen_of(judged(edge, tmp_path))
    if (recipe, name) in SHOULD:
        changed = {case: ("differs", count) for case, (_, count) in changed.items()}
    assert outcomes == OF_LINUX[recipe] | changed


FORWARDED = ("foreign_destination_address", "inner_destination_address", "foreign_destination_port")
OTHERS = ("foreign_identifier", "unused_port", "foreign_tunnel", "hairpin")


@needs_kernel
@pytest.mark.parametrize("recipe", [LWB4, pytest.param(MAP_E, marks=tries_all_again)])
def test_an_edge_that_forwards_what_no_host_asked_for_does_not_conform(
    recipe: str, edges: KeptBed, tmp_path: Path
) -> None:
    """Without the recipe's filter the kernel takes its public address for one in the tunnel, and sends packets back."""
    edge = opened(edges, recipe)
    listed = edge.in_gateway("nft", "list", "chain", "ip", "edge", "forward")
    rules = [line.strip() for line in listed.splitlines() if line.strip().endswith("drop")]
    edge.in_gateway("nft", "flush", "chain", "ip", "edge", "forward")
    try:
        cases = judged(edge, tmp_path, *FORWARDED, *OTHERS)
    finally:
        for rule in rules:
            edge.in_gateway("nft", "add", "rule", "ip", "edge", "forward", rule)
    assert len(rules) == 2
    assert seen_of(cases) == {name: OF_LINUX[recipe][name] for name in cases} | {
        **dict.fromkeys((*FORWARDED, "foreign_identifier"), DELIVERED),
        "unused_port": ("reported", 3),
    }
    sides = {name: (cases[name].arrived_left, cases[name].arrived_right) for name in (*FORWARDED, "foreign_identifier")}
    assert sides == dict.fromkeys(sides, (0, 3)) | {"inner_destination_address": (3, 0)}


@tries_all_again
@needs_kernel
@pytest.mark.parametrize("recipe", EDGES)
def test_without_its_control_frames_no_case_has_a_result(recipe: str, edges: KeptBed, tmp_path: Path) -> None:
    edge = opened(edges, recipe)
    with edge.rules("meta l4proto 4 ip6 hoplimit set 9"):
        cases = cases_of(edge, tmp_path, "foreign_tunnel", "hairpin", "fragments")
    assert {case.judgement for case in cases.values()} == {"no_result"}


OF_THE_REFERENCE: dict[TechnologyName, dict[str, tuple[str, int]]] = {
    "map_e_ce": {
        "hairpin": ("differs", 3),
        "fragments": ("differs", 0),
        "small_fragments": ("differs", 0),
        "inner_fragments": ("differs", 0),
        "error_from_outside": ("does_not_conform", 0),
    },
    "lwb4": {
        "fragments": ("does_not_conform", 0),
        "small_fragments": ("does_not_conform", 0),
        "inner_fragments": ("does_not_conform", 0),
        "error_from_outside": ("does_not_conform", 0),
    },
    "b4": {"error_from_tunnel": ("differs", 0)},
}
RECIPE: dict[TechnologyName, str] = {"map_e_ce": MAP_E, "lwb4": LWB4, "b4": B4}


@pytest.mark.parametrize(
    "technology", [*(pytest.param(name, marks=tries_all_again) for name in ("map_e_ce", "lwb4")), "b4"]
)
def test_the_reference_gateway(technology: TechnologyName, tmp_path: Path) -> None:
    """It puts nothing together, answers nothing that expires, and turns nothing round; its link carries all packets."""
    expected = OF_LINUX[RECIPE[technology]] | {
        **dict.fromkeys(("expired_from_outside", "expired_from_inside"), ("does_not_conform", 0)),
        "outer_fragments": ("does_not_conform", 0),
        **OF_THE_REFERENCE[technology],
    }
    assert seen_of(cases_of_the_reference(technology, tmp_path)) == {
        name: outcome for name, outcome in expected.items() if name not in LARGE
    }

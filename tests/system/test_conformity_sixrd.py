"""Conformity of real 6rd border relays: one of the kernel, with what is planted, and the reference gateway."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from tests.system.beds import OpenBed, netns_campaign, open_bed
from tests.system.machine import missing, missing_for_guest
from tests.system.test_conformity import CONFORMITY, cases_of, seen_of
from tests.system.test_conformity_translators import judged, judged_case
from tests.system.test_conformity_tunnels import CLASSES_KEPT, LARGE, cases_of_the_reference, counts_of

MISSING = missing_for_guest()
needs_kernel = pytest.mark.skipif(bool(MISSING), reason=f"a relay in a kernel of its own needs {', '.join(MISSING)}")
pytestmark = [
    pytest.mark.skipif(bool(missing(root=True)), reason="network namespaces need root"),
]
tries_all_again = pytest.mark.nightly("each tries all cases once more; unit tests do so with simulated gateways")

RELAY, EDGE, OTHER = "198.18.0.1", "198.18.0.2", "198.18.0.101"
HOST = "2001:db8:6464:2::1"
OF_LINUX = {
    "expired_from_outside": ("conforms", 0),
    "expired_from_inside": ("conforms", 0),
    "foreign_tunnel": ("conforms", 0),
    "foreign_tunnel_destination": ("conforms", 0),
    "foreign_source_address": ("does_not_conform", 3),
    "echo_from_outside": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "hairpin": ("reported", 0),
    "to_own_prefix": ("does_not_conform", 0),  # an error of its tunnel device: it compares the destination as well
    "to_relays_prefix": ("conforms", 0),
    "outer_fragments": ("conforms", 3),
    "small_fragments": ("conforms", 3),
    "larger_than_tunnel": ("conforms", 0),
    "error_from_outside": ("conforms", 3),
    "error_from_tunnel": ("reported", 0),
    "nobodys_address": ("reported", 0),
    **CLASSES_KEPT,
}


@pytest.fixture(scope="module")
def relay() -> Iterator[OpenBed]:
    with open_bed(netns_campaign("linux-sixrd-br", conformity=CONFORMITY, frame_loss=None)) as bed:
        yield bed


COUNTERS = """
table ip6 counted {
  chain forward {
    type filter hook forward priority 0;
    iifname "sixrd" oifname != "sixrd" counter comment "out of tunnels"
    oifname "sixrd" counter comment "into tunnels"
  }
}
"""


@needs_kernel
def test_a_relay_of_the_kernel_and_what_it_counts_itself(relay: OpenBed, tmp_path: Path) -> None:
    with relay.table(COUNTERS):
        cases = judged(relay, tmp_path)
        counts = counts_of(relay)
    assert seen_of(cases) == OF_LINUX
    rounds, exchanges = 3, len(cases)
    controls = 2 * (rounds + 1) * exchanges  # of two customer edges
    assert counts == {
        "out of tunnels": controls
        + 6 * rounds,  # echo requests, both of fragments put together, from a foreign address, two of classes
        "into tunnels": controls
        + 6 * rounds,  # echo requests, errors, what nobody gets, large ones, what it sends to itself, and classes
    }
    assert cases["expired_from_inside"].icmp.keys() == {"icmpv6 3/0"}
    assert cases["expired_from_outside"].icmp.keys() == {"icmpv6 3/0"}
    assert cases["larger_than_tunnel"].icmp == {"icmpv6 2/0": 3}, "with an MTU that may be"


def before(rule: str) -> str:
    """Return a table that changes what comes in tunnels before the kernel looks at it."""
    chain = f"type filter hook prerouting priority -500;\n    ip protocol 41 {rule}"
    return f"table ip planted {{\n  chain before {{\n    {chain}\n  }}\n}}\n"


@tries_all_again
@needs_kernel
@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        (f"ip saddr {OTHER} @nh,224,128 {int(IPv6Address(HOST)):#x} ip saddr set {EDGE}",
         {"foreign_tunnel": ("does_not_conform", 3)}),
        (f"ip daddr 198.18.0.129 ip daddr set {RELAY}", {"foreign_tunnel_destination": ("does_not_conform", 3)}),
        ("ip frag-off & 0x1fff != 0 drop",
         dict.fromkeys(("outer_fragments", "small_fragments"), ("does_not_conform", 0))),
        ("@nh,224,48 != 0x20010db86464 ip frag-off & 0x3fff == 0 drop", {"foreign_source_address": ("conforms", 0)}),
    ],
)  # fmt: skip
def test_what_is_planted_changes_the_judgement_of_its_case_alone(
    rule: str, changed: dict[str, tuple[str, int]], relay: OpenBed, tmp_path: Path
) -> None:
    with relay.table(before(rule)):
        assert seen_of(judged(relay, tmp_path)) == OF_LINUX | changed


@needs_kernel
def test_an_error_in_the_tunnel_of_another_customer_edge_is_not_delivered(relay: OpenBed, tmp_path: Path) -> None:
    with relay.rules(f"meta l4proto 41 ip daddr {EDGE} @nh,208,8 58 @nh,480,8 1 ip daddr set {OTHER}"):
        case = judged_case(relay, tmp_path, "error_from_outside")
    assert (case.judgement, case.arrived_left, case.correct) == ("does_not_conform", 3, 0)
    assert case.differences == (
        f"in a tunnel from {RELAY} to {OTHER} instead of in a tunnel from {RELAY} to {EDGE}",
    )  # fmt: skip


@tries_all_again
@needs_kernel
def test_without_its_control_frames_no_case_has_a_result(relay: OpenBed, tmp_path: Path) -> None:
    with relay.rules("meta l4proto 41 ip ttl set 9"):
        cases = cases_of(relay, tmp_path, "foreign_tunnel", "hairpin", "outer_fragments")
    assert {case.judgement for case in cases.values()} == {"no_result"}


OF_THE_REFERENCE = {name: outcome for name, outcome in OF_LINUX.items() if name not in LARGE} | {
    "expired_from_outside": ("does_not_conform", 0),
    "expired_from_inside": ("does_not_conform", 0),
    "foreign_source_address": ("conforms", 0),
    "hairpin": ("reported", 3),
    "to_own_prefix": ("conforms", 3),
    "outer_fragments": ("does_not_conform", 0),
    "small_fragments": ("does_not_conform", 0),
    "nobodys_address": ("reported", 3),
}


@tries_all_again
def test_the_reference_gateway(tmp_path: Path) -> None:
    """It puts nothing together and answers nothing that expires; customer edges reach each other through it."""
    cases = cases_of_the_reference("sixrd_br", tmp_path, subscribers=10)
    assert seen_of(cases) == OF_THE_REFERENCE
    assert cases["hairpin"].correct == 3

"""Conformity of real AFTRs: one of the kernel, with what is planted, and the reference gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import OpenBed, netns_campaign, open_bed
from tests.system.machine import missing, missing_for_guest
from tests.system.test_conformity import CONFORMITY, cases_of, seen_of
from tests.system.test_conformity_translators import judged, judged_case, nat_rules
from tests.system.test_conformity_tunnels import (
    CLASSES_KEPT,
    LARGE,
    cases_of_the_reference,
    counts_of,
    remove_first_rule,
)

MISSING = missing_for_guest("conntrack")
needs_kernel = pytest.mark.skipif(bool(MISSING), reason=f"an AFTR in a kernel of its own needs {', '.join(MISSING)}")
pytestmark = [
    pytest.mark.skipif(bool(missing(root=True)), reason="network namespaces need root"),
]
tries_all_again = pytest.mark.nightly("each tries all cases once more; unit tests do so with simulated gateways")

END, FIRST, LAST = "2001:2:0:ff::1", "2001:2::2", "2001:2::65"
PRIVATE = "100.64.0.1"
"""What the AFTR takes the host behind the first B4 for."""
OF_LINUX = {
    "echo_from_inside": ("conforms", 3),
    "hairpin": ("does_not_conform", 0),
    "expired_from_outside": ("conforms", 0),
    "expired_from_inside": ("does_not_conform", 0),  # its answer quotes an address that the host does not have
    "foreign_source_address": ("conforms", 0),
    "foreign_tunnel_destination": ("conforms", 0),
    "same_inner_endpoint": ("conforms", 3),
    "fragments": ("conforms", 3),
    "small_fragments": ("conforms", 3),
    "inner_fragments": ("conforms", 3),
    "outer_fragments": ("does_not_conform", 0),
    "larger_than_tunnel": ("does_not_conform", 0),  # answered with 3/4 although they may be fragmented
    "larger_than_tunnel_with_df": ("conforms", 0),
    "error_from_outside": ("does_not_conform", 3),  # so does this one
    **CLASSES_KEPT,
    "class_into_tunnel": ("does_not_conform", 3),  # its outer headers have class 0
}


@pytest.fixture(scope="module")
def bed() -> Iterator[OpenBed]:
    with open_bed(netns_campaign("linux-aftr", conformity=CONFORMITY, frame_loss=None)) as opened:
        yield opened


@pytest.fixture
def aftr(bed: OpenBed) -> OpenBed:
    bed.bed.gateway.keeper.clear_state()
    return bed


COUNTERS = """
table ip counted {
  chain forward {
    type filter hook forward priority 0;
    iifname "dslite" counter comment "out of tunnels"
    oifname "dslite" counter comment "into tunnels"
  }
}
"""


@needs_kernel
def test_an_aftr_of_the_kernel_and_what_it_counts_itself(aftr: OpenBed, tmp_path: Path) -> None:
    with aftr.table(COUNTERS):
        cases = judged(aftr, tmp_path)
        counts = counts_of(aftr)
    assert seen_of(cases) == OF_LINUX
    rounds, exchanges = 3, len(cases)
    controls, learned, opening = 2 * (rounds + 1) * exchanges, 2 * 3, rounds + 1
    assert counts == {
        "out of tunnels": controls
        + learned
        + opening
        + 4 * rounds,  # echo requests, fragments put together, and two of classes
        "into tunnels": controls
        + 7
        * rounds,  # to the other B4 of an address, both of fragments put together, errors, of a class, and large ones
    }
    assert {name: cases[name].icmp for name in LARGE} == {name: {"icmpv4 3/4": 3} for name in LARGE}, "of 1460"
    assert cases["expired_from_outside"].icmp.keys() == {"icmpv4 11/0"}
    (quoted,) = cases["expired_from_inside"].differences
    assert quoted.startswith(f"answered, but quotes {PRIVATE} port 40000")
    (quoted,) = cases["error_from_outside"].differences
    assert quoted.startswith(f"quotes {PRIVATE} port 40000")


def before(rule: str, priority: int) -> str:
    """Return a table that does something to packets in tunnels before the kernel takes them out."""
    chain = f"type filter hook prerouting priority {priority};\n    {rule}"
    return f"table ip6 planted {{\n  chain before {{\n    {chain}\n  }}\n}}\n"


@tries_all_again
@needs_kernel
@pytest.mark.parametrize(
    ("priority", "rule", "changed"),
    [
        (
            -500,
            f"ip6 daddr 2001:2:0:ff::3 ip6 daddr set {END}",
            {"foreign_tunnel_destination": ("does_not_conform", 3)},
        ),
        (0, "ct state invalid drop", {"outer_fragments": ("conforms", 3)}),
    ],
)
def test_what_is_planted_changes_the_judgement_of_its_case_alone(
    priority: int, rule: str, changed: dict[str, tuple[str, int]], aftr: OpenBed, tmp_path: Path
) -> None:
    """A kernel that follows connections of IPv6 puts the fragments of a packet together before anything else."""
    with aftr.table(before(rule, priority)):
        assert seen_of(judged(aftr, tmp_path)) == OF_LINUX | changed


OF_SOURCES = {
    name: OF_LINUX[name] for name in ("foreign_source_address", "same_inner_endpoint", "foreign_tunnel_destination")
}


@needs_kernel
def test_an_aftr_that_takes_a_public_inner_address_does_not_conform(aftr: OpenBed, tmp_path: Path) -> None:
    element = f"{FIRST} . 0x8a000001"
    aftr.in_gateway("nft", f"add element ip6 dslite marks {{ {element} : 1 }}")
    try:
        cases = judged(aftr, tmp_path, *OF_SOURCES)
    finally:
        aftr.in_gateway("nft", f"delete element ip6 dslite marks {{ {element} }}")
    assert seen_of(cases) == OF_SOURCES | {"foreign_source_address": ("does_not_conform", 3)}


@needs_kernel
def test_a_reply_in_the_tunnel_of_the_other_b4_of_an_address_does_not_conform(aftr: OpenBed, tmp_path: Path) -> None:
    """The AFTR takes the host behind the last B4 for the one behind the first, if it sends from the same port."""
    rule = f"ip6 saddr {LAST} @nh,480,16 40000 meta mark set 1 accept"
    assert not aftr.in_gateway("nft", "insert", "rule", "ip6", "dslite", "inward", rule)
    try:
        cases = judged(aftr, tmp_path, *OF_SOURCES)
    finally:
        remove_first_rule(aftr, "dslite")
    assert seen_of(cases) == OF_SOURCES | {"same_inner_endpoint": ("does_not_conform", 3)}
    assert cases["same_inner_endpoint"].differences == (
        f"in a tunnel from {END} to {FIRST} instead of in a tunnel from {END} to {LAST}",
        "in the tunnel of another subscriber",
    )


@tries_all_again
@needs_kernel
def test_an_error_in_the_tunnel_of_another_b4_is_not_delivered(aftr: OpenBed, tmp_path: Path) -> None:
    with aftr.rules(f"meta l4proto 4 ip6 daddr {FIRST} @nh,392,8 1 @nh,480,8 3 ip6 daddr set {LAST}"):
        case = judged_case(aftr, tmp_path, "error_from_outside")
    assert (case.judgement, case.arrived_left, case.correct) == ("does_not_conform", 3, 0)
    assert case.differences[0] == f"in a tunnel from {END} to {LAST} instead of in a tunnel from {END} to {FIRST}"


@tries_all_again
@needs_kernel
@pytest.mark.parametrize(
    ("source", "judgement", "difference"),
    [
        ("snat to 198.19.0.1", "conforms", None),
        ("accept", "does_not_conform", f"source {PRIVATE} is not a public address of the gateway"),
    ],
)
def test_an_aftr_with_rules_for_hairpins(
    source: str, judgement: str, difference: str | None, aftr: OpenBed, tmp_path: Path
) -> None:
    table = nat_rules(
        f'oifname "dslite" ct status dnat {source}',
        prerouting='iifname "dslite" ip daddr 198.19.0.1 udp dport 40001 dnat to 100.64.0.100:40001',
    )
    with aftr.table(table):
        cases = judged(aftr, tmp_path)
    assert seen_of(cases) == OF_LINUX | {"hairpin": (judgement, 3)}
    assert cases["hairpin"].differences == (() if difference is None else (difference,))
    assert cases["hairpin"].hop_limits == (9,)


@tries_all_again
@needs_kernel
def test_without_its_control_frames_no_case_has_a_result(aftr: OpenBed, tmp_path: Path) -> None:
    with aftr.rules("meta l4proto 4 ip6 hoplimit set 9"):
        cases = cases_of(aftr, tmp_path, "same_inner_endpoint", "hairpin", "fragments")
    assert {case.judgement for case in cases.values()} == {"no_result"}


OF_THE_REFERENCE = {name: outcome for name, outcome in OF_LINUX.items() if name not in LARGE} | {
    "expired_from_outside": ("does_not_conform", 0),
    "fragments": ("does_not_conform", 0),
    "small_fragments": ("does_not_conform", 0),
    "inner_fragments": ("does_not_conform", 0),
    "error_from_outside": ("does_not_conform", 0),
    **CLASSES_KEPT,
}


@tries_all_again
def test_the_reference_gateway(tmp_path: Path) -> None:
    """It puts nothing together, turns nothing round, answers nothing that expires, and passes no errors on."""
    assert seen_of(cases_of_the_reference("aftr", tmp_path, subscribers=10)) == OF_THE_REFERENCE

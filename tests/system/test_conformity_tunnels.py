"""Conformity of real border relays with tunnels: one of the kernel, with what is planted, and the reference gateway."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import KeptBed, OpenBed, netns_campaign, netns_document
from tests.system.machine import gatemark, missing, missing_for_guest
from tests.system.test_conformity import CONFORMITY, cases_of, seen_of
from tests.system.test_conformity_translators import judged, judged_case
from tests.system.test_reference_gateway import opened

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.map_preflight import map_findings
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.results.toml_text import to_toml
from gatemark.technology import TechnologyName

MISSING = missing_for_guest()
needs_kernel = pytest.mark.skipif(bool(MISSING), reason=f"a relay in a kernel of its own needs {', '.join(MISSING)}")
pytestmark = [
    pytest.mark.skipif(bool(missing(root=True)), reason="network namespaces need root"),
]

RECIPE = "linux-mape-br"
RULE = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.0.0/30", "ea_bits": 8}
TABLE = {"domains": [RULE], "edges": 256, "order": "increasing"}
FIRST, PRIVATE = "2001:2:0:4000:0:c612::", "10.0.0.1"
"""The first customer edge of the recipe's rule, and its place in the recipe's routes."""
CLASSES_KEPT = {
    "class_into_tunnel": ("conforms", 3),
    "class_from_tunnel": ("conforms", 3),
    "class_remarked": ("reported", 3),
}
LARGE = ("larger_than_tunnel", "larger_than_tunnel_with_df")
"""Not tried of the reference gateway, whose link with tunnels carries all packets."""
OF_LINUX = {
    "foreign_tunnel": ("conforms", 0),
    "nobodys_tunnel": ("conforms", 0),
    "foreign_tunnel_destination": ("conforms", 0),
    "foreign_source_address": ("conforms", 0),
    "foreign_source_port": ("conforms", 0),
    "nobodys_port": ("reported", 0),
    "nobodys_address": ("reported", 0),
    "echo_from_outside": ("differs", 0),  # of shared addresses it carries TCP and UDP only
    "echo_from_inside": ("differs", 0),
    "hairpin": ("reported", 3),
    "fragments": ("differs", 3),  # the first of each
    "small_fragments": ("differs", 3),
    "inner_fragments": ("reported", 0),
    "outer_fragments": ("does_not_conform", 0),
    "larger_than_tunnel": ("differs", 0),  # answered with 3/4 although they may be fragmented
    "larger_than_tunnel_with_df": ("conforms", 0),
    "error_from_outside": ("reported", 0),
    "error_from_tunnel": ("differs", 0),
    **CLASSES_KEPT,
    "expired_from_outside": ("does_not_conform", 0),  # its answer quotes an address that nobody sent to
    "expired_from_inside": ("does_not_conform", 0),
}


@needs_kernel
def test_the_command_prints_and_publishes_the_table(tmp_path: Path) -> None:
    file, output = tmp_path / "conformity.toml", tmp_path / "result"
    wanted = {**CONFORMITY, "cases": ["foreign_tunnel", "hairpin"]}
    file.write_text(to_toml(netns_document(RECIPE, map=TABLE, conformity=wanted)))
    ended = gatemark("run", file, "--output", output)
    assert ended.status == 0, ended
    (run,) = json.loads((output / "result.json").read_text())["runs"]
    assert [(case["case"], case["judgement"]) for case in run["cases"]] == [
        ("foreign_tunnel", "conforms"), ("hairpin", "reported")
    ]  # fmt: skip
    assert "must be dropped silently" in (output / "report.html").read_text()


FULL = {"domains": [{"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.0.0/24", "ea_bits": 8}]}


def campaign_of(rule: str) -> Campaign:
    table = FULL if rule == "full addresses" else TABLE
    return netns_campaign(RECIPE, map=table, conformity=CONFORMITY, frame_loss=None)


@pytest.fixture(scope="module")
def relays() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


@pytest.fixture
def relay(relays: KeptBed) -> OpenBed:
    return relays.get("shared addresses")


COUNTERS = """
table ip6 seen {
  chain before {
    type filter hook prerouting priority -500;
    iifname "LEFT" exthdr frag exists counter comment "outer fragments"
    iifname "LEFT" ip6 daddr 2001:2:0:ff::3 counter comment "to another end"
  }
  chain behind {
    type filter hook prerouting priority raw + 1;
    iifname "LEFT" exthdr frag exists counter comment "outer fragments that pass"
    iifname "LEFT" ip6 daddr 2001:2:0:ff::1 ip6 nexthdr 4 counter comment "tunnels that pass"
  }
}
table ip counted {
  chain leaving {
    type filter hook postrouting priority raw + 1;
    oifname "softwires" counter comment "into tunnels"
  }
}
"""


def counts_of(bed: OpenBed) -> dict[str, int]:
    """Return the packets that each rule of COUNTERS counted."""
    listed = bed.in_gateway("nft", "list", "ruleset")
    return {
        what: int(count) for count, what in re.findall(r'counter packets (\d+) bytes \d+ comment "([^"]+)"', listed)
    }


@needs_kernel
def test_a_relay_of_the_kernel_and_what_it_counts_itself(relay: OpenBed, tmp_path: Path) -> None:
    with relay.table(COUNTERS.replace("LEFT", relay.interface("left"))):
        cases = judged(relay, tmp_path)
        counts = counts_of(relay)
    assert seen_of(cases) == OF_LINUX
    rounds, exchanges = 3, len(cases)
    assert counts["outer fragments"] == 2 * rounds
    assert counts["outer fragments that pass"] == 0
    assert counts["to another end"] == rounds
    controls, hairpins, expired = (rounds + 1) * exchanges, rounds, rounds
    classes = 2 * rounds
    assert counts["tunnels that pass"] == controls + hairpins + expired + classes, "nothing else passed its checks"
    first_fragments, class_into_tunnel, large = 2 * rounds, rounds, 2 * rounds
    assert counts["into tunnels"] == controls + hairpins + first_fragments + class_into_tunnel + large
    assert {name: cases[name].icmp for name in LARGE} == {name: {"icmpv4 3/4": 3} for name in LARGE}, "of 1460"
    assert cases["hairpin"].hop_limits == (9,)
    (quoted,) = cases["expired_from_outside"].differences
    assert quoted.startswith("answered, but quotes 198.19.0.2") and f"to {PRIVATE} " in quoted


@needs_kernel
@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("ip6 nexthdr 4", ("foreign_tunnel", "foreign_source_address", "foreign_source_port", "nobodys_tunnel")),
        (f"ip6 saddr {FIRST} ip6 nexthdr 4 @nh,416,32 0xc6120000", ("foreign_source_port",)),
    ],
)
def test_a_relay_that_checks_less_does_not_conform(
    rule: str, changed: tuple[str, ...], relay: OpenBed, tmp_path: Path
) -> None:
    handle = relay.in_gateway("nft", "insert", "rule", "ip6", "softwires", "inward", rule, "accept")
    assert not handle
    try:
        outcomes = seen_of(judged(relay, tmp_path, *changed, "outer_fragments", "foreign_tunnel_destination"))
    finally:
        remove_first_rule(relay, "softwires")
    assert {name for name, (judgement, _) in outcomes.items() if judgement == "does_not_conform"} == {
        *changed, "outer_fragments"
    }  # fmt: skip
    assert {outcomes[name][1] for name in changed} == {3}


@needs_kernel
def test_a_relay_that_takes_fragments_of_tunnels_conforms(relay: OpenBed, tmp_path: Path) -> None:
    """The kernel puts them together, as any host does; the recipe drops them before."""
    relay.in_gateway("nft", "insert", "rule", "ip6", "softwires", "inward", "exthdr", "frag", "exists", "accept")
    try:
        outcomes = seen_of(judged(relay, tmp_path, "fragments", "inner_fragments", "outer_fragments"))
    finally:
        remove_first_rule(relay, "softwires")
    assert outcomes == {name: OF_LINUX[name] for name in outcomes} | {"outer_fragments": ("conforms", 3)}


@needs_kernel
def test_a_relay_that_fragments_what_is_inside_differs(relay: OpenBed, tmp_path: Path) -> None:
    """As the kernel does with a tunnel of the MTU of its link; an answer quotes an address that its own rules use."""
    relay.in_gateway("ip", "link", "set", "softwires", "mtu", "1460")
    try:
        cases = judged(relay, tmp_path, *LARGE)
    finally:
        relay.in_gateway("ip", "link", "set", "softwires", "mtu", "9196")
    assert seen_of(cases) == {"larger_than_tunnel": ("differs", 3), "larger_than_tunnel_with_df": ("differs", 0)}
    case = cases["larger_than_tunnel"]
    assert (case.icmp, case.differences) == ({}, ("in fragments of its own, not of the tunnel packet",))


@needs_kernel
def test_a_tunnel_to_another_end_that_is_forwarded_was_not_decapsulated(relay: OpenBed, tmp_path: Path) -> None:
    relay.in_gateway("ip", "-6", "route", "add", "2001:2:0:ff::3/128", "via", "2001:2::2")
    try:
        case = judged_case(relay, tmp_path, "foreign_tunnel_destination")
    finally:
        relay.in_gateway("ip", "-6", "route", "del", "2001:2:0:ff::3/128")
    assert (case.judgement, case.arrived, case.kept_in_tunnel) == ("conforms", 0, 3)


@needs_kernel
def test_a_relay_that_takes_any_end_of_tunnels_for_its_own_does_not_conform(relay: OpenBed, tmp_path: Path) -> None:
    relay.in_gateway("ip", "-6", "address", "add", "2001:2:0:ff::3/128", "dev", "lo")
    try:
        case = judged_case(relay, tmp_path, "foreign_tunnel_destination")
    finally:
        relay.in_gateway("ip", "-6", "address", "del", "2001:2:0:ff::3/128", "dev", "lo")
    assert (case.judgement, case.arrived_right) == ("does_not_conform", 3)


@needs_kernel
@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("2001:2:0:4001:0:c612:0:1", "in the tunnel of another subscriber"),
        ("2001:2::2", "in a tunnel from 2001:2:0:ff::1 to 2001:2::2 instead of"),
    ],
)
def test_a_hairpin_in_a_wrong_tunnel_is_none(to: str, words: str, relay: OpenBed, tmp_path: Path) -> None:
    with relay.rules(f"ip6 saddr 2001:2:0:ff::1 ip6 daddr 2001:2:0:40ff::/64 ip6 daddr set {to}"):
        case = judged_case(relay, tmp_path, "hairpin")
    assert (case.judgement, case.arrived_left, case.correct) == ("reported", 3, 0)
    assert any(words in difference for difference in case.differences)


@needs_kernel
def test_without_its_control_frames_no_case_has_a_result(relay: OpenBed, tmp_path: Path) -> None:
    with relay.rules("meta l4proto 4 ip6 hoplimit set 9"):
        cases = cases_of(relay, tmp_path, "foreign_tunnel", "hairpin", "fragments")
    assert {case.judgement for case in cases.values()} == {"no_result"}


WITHOUT = ("foreign_source_port", "nobodys_port", "error_from_tunnel")
OF_FULL_ADDRESSES = {
    **{name: outcome for name, outcome in OF_LINUX.items() if name not in WITHOUT},
    "echo_from_outside": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "fragments": ("conforms", 3),
    "small_fragments": ("conforms", 3),
    "inner_fragments": ("reported", 3),
    "error_from_outside": ("reported", 3),
    "expired_from_outside": ("conforms", 0),
    "expired_from_inside": ("conforms", 0),
}


@needs_kernel
def test_a_relay_of_addresses_that_nobody_shares_carries_all_protocols(relays: KeptBed, tmp_path: Path) -> None:
    cases = judged(relays.get("full addresses"), tmp_path)
    outcomes = seen_of(cases)
    assert outcomes.pop("error_from_tunnel") in {("conforms", count) for count in (1, 2, 3)}, "the kernel limits them"
    assert outcomes == OF_FULL_ADDRESSES
    for name in ("fragments", "inner_fragments", "error_from_outside", "error_from_tunnel"):
        assert (cases[name].correct, cases[name].differences) == (cases[name].arrived, ())
    for name in ("expired_from_outside", "expired_from_inside"):
        assert cases[name].icmp.keys() == {"icmpv4 11/0"}


def remove_first_rule(bed: OpenBed, table: str) -> None:
    listed = bed.in_gateway("nft", "--handle", "--terse", "list", "chain", "ip6", table, "inward")
    handle = re.findall(r"accept # handle (\d+)", listed)[0]
    bed.in_gateway("nft", "delete", "rule", "ip6", table, "inward", "handle", handle)


OF_THE_REFERENCE = {name: outcome for name, outcome in OF_LINUX.items() if name not in LARGE} | {
    "foreign_tunnel": ("does_not_conform", 0),  # both are answered
    "foreign_source_port": ("does_not_conform", 0),
    "echo_from_outside": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "fragments": ("differs", 0),
    "small_fragments": ("differs", 0),
}


@needs_kernel
@pytest.mark.parametrize(
    ("believed", "words"),
    [({}, None), ({"psid_offset": 0}, "psid_offset = 6"), ({"ea_bits": 6}, "ea_bits = 8")],
)
def test_the_rule_of_a_relay_is_seen_from_outside(
    believed: dict[str, object], words: str | None, relay: OpenBed
) -> None:
    """The relay knows all customer edges of its own rule."""
    table = {"domains": [{**RULE, **believed}], "order": "increasing"}
    document = netns_document(RECIPE, map=table, conformity=CONFORMITY, frame_loss=None)
    campaign = relay.tester.campaign.model_copy(update={"map": campaign_from_dict(document).map})
    (told,) = map_findings(campaign, relay.tester.engine.exchange)
    assert told.status == ("ok" if words is None else "failed")
    assert words is None or f"with {words}" in told.observed


def cases_of_the_reference(technology: TechnologyName, folder: Path, *, subscribers: int = 1) -> dict[str, CaseResult]:
    with opened(technology, procedure={"conformity": CONFORMITY}, subscribers=subscribers) as bed:
        campaign = bed.tester.campaign
        with Journal(folder / "journal.jsonl") as journal:
            (result,) = run_campaign(campaign, plan_of(campaign), bed.tester.engine, journal, can=bed.testbed.can)
    assert isinstance(result, ConformityResult)
    return {case.case: case for case in result.cases}


def test_the_reference_gateway(tmp_path: Path) -> None:
    """It puts nothing together, answers nothing that expires, and tells a customer edge that a port is foreign."""
    cases = cases_of_the_reference("map_e_br", tmp_path)
    assert seen_of(cases) == OF_THE_REFERENCE
    for name in ("foreign_tunnel", "foreign_source_port"):
        assert cases[name].icmp.keys() == {"icmpv6 1/5"}

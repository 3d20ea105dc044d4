"""Conformity of a real border relay: what it drops and delivers, and what is planted into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import OpenBed, netns_campaign, netns_document, open_bed
from tests.system.machine import gatemark, missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.map_preflight import map_findings
from gatemark.procedures.conformity.result import CaseResult, ConformityResult
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.results.toml_text import to_toml

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "nft", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": "2001:db8:ffff::/64"}
TABLE = {"domains": [SHARED], "edges": 256, "order": "increasing"}
CONFORMITY = {"interval": "5ms", "timeout": "300ms"}
OF_THE_RELAY = {
    "foreign_source_port": ("differs", 0),  # dropped without an answer
    "foreign_source_address": ("conforms", 0),
    "nobodys_port": ("reported", 0),
    "nobodys_address": ("reported", 0),
    "echo_from_outside": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "hairpin": ("reported", 3),
    "fragments": ("differs", 3),  # the first of each, still a fragment
}


def test_the_command_prints_and_publishes_the_table(tmp_path: Path) -> None:
    file, output = tmp_path / "conformity.toml", tmp_path / "result"
    file.write_text(
        to_toml(netns_document("tayga-mapt-br", map=TABLE, conformity={**CONFORMITY, "cases": ["hairpin"]}))
    )
    ended = gatemark("run", file, "--output", output)
    assert ended.status == 0, ended
    assert "left open" in ended.output and "3 of 3 delivered" in ended.output
    (run,) = json.loads((output / "result.json").read_text())["runs"]
    assert [(case["case"], case["judgement"]) for case in run["cases"]] == [("hairpin", "reported")]
    assert "A few packets of each case" in (output / "report.html").read_text()


OF_THE_EDGE = {
    "port_of_the_set": ("conforms", 3),
    "echo_from_inside": ("conforms", 3),
    "foreign_destination_port": ("conforms", 0),
    "outside_dmr": ("conforms", 0),
    "unused_port": ("reported", 0),
    "wrong_interface_identifier": ("reported", 0),
}


@pytest.mark.skipif(bool(missing("conntrack")), reason="needs conntrack")
def test_a_customer_edge_of_tayga_and_nftables(tmp_path: Path) -> None:
    with open_bed(netns_campaign("tayga-mapt-ce", conformity=CONFORMITY, frame_loss=None)) as bed:
        assert seen_of(cases_of(bed, tmp_path)) == OF_THE_EDGE
        bed.in_gateway("nft", "flush chain ip edge postrouting")  # no NAT44 any more: clients keep address and port
        bed.bed.gateway.keeper.clear_state()
        (tmp_path / "flushed").mkdir()
        cases = cases_of(bed, tmp_path / "flushed")
        assert {case.judgement for case in cases.values()} == {"no_result"}


@pytest.fixture(scope="module")
def relay() -> Iterator[OpenBed]:
    with open_bed(netns_campaign("tayga-mapt-br", map=TABLE, conformity=CONFORMITY, frame_loss=None)) as bed:
        yield bed


def cases_of(bed: OpenBed, folder: Path, *names: str) -> dict[str, CaseResult]:
    """Try the cases of these names on a gateway; without one, those of its campaign."""
    campaign = bed.tester.campaign
    table = campaign.table(ConformityTable)
    if names:
        campaign = campaign.model_copy(update={table.key: table.model_copy(update={"cases": names})})
    with Journal(folder / "journal.jsonl") as journal:
        (result,) = run_campaign(campaign, plan_of(campaign), bed.tester.engine, journal, can=bed.bed.can)
    assert isinstance(result, ConformityResult)
    return {case.case: case for case in result.cases}


def seen_of(cases: dict[str, CaseResult]) -> dict[str, tuple[str, int]]:
    return {name: (case.judgement, case.arrived) for name, case in cases.items()}


def test_a_relay_of_tayga_and_nftables(relay: OpenBed, tmp_path: Path) -> None:
    cases = cases_of(relay, tmp_path)
    assert seen_of(cases) == OF_THE_RELAY
    assert cases["nobodys_address"].icmp, "its kernel has no route to it"


def test_a_relay_that_takes_a_foreign_port_does_not_conform(relay: OpenBed, tmp_path: Path) -> None:
    relay.in_gateway("nft", "add element ip mapt port_sets { 10.0.0.2 . 32772-32775 }")
    try:
        cases = cases_of(relay, tmp_path)
    finally:
        relay.in_gateway("nft", "delete element ip mapt port_sets { 10.0.0.2 . 32772-32775 }")
    assert seen_of(cases) == OF_THE_RELAY | {"foreign_source_port": ("does_not_conform", 3)}
    (difference,) = cases["foreign_source_port"].differences
    assert difference == "arrived right: 192.0.2.0 port 32774 to 198.19.0.2 port 49151"


@pytest.mark.parametrize(
    ("rule", "lost"),
    [("meta l4proto udp drop", 6), ('oifname "{left}" meta l4proto udp drop', 3), ("ip ttl set 9", 3)],
)
def test_without_its_control_frames_no_case_has_a_result(rule: str, lost: int, relay: OpenBed, tmp_path: Path) -> None:
    with relay.rules(rule.format(left=relay.interface("left"))):
        cases = cases_of(relay, tmp_path)
    assert {case.judgement for case in cases.values()} == {"no_result"}
    assert {case.controls_correct for case in cases.values()} == {6 - lost}


def test_a_gateway_that_answers_as_it_should_is_seen_to(relay: OpenBed, tmp_path: Path) -> None:
    rule = f'iifname "{relay.interface("left")}" udp sport 32774 reject with icmpv6 type 5'
    with relay.rules(rule.replace("type 5", "type policy-fail"), hook="forward"):
        cases = cases_of(relay, tmp_path)
    assert seen_of(cases) == OF_THE_RELAY | {"foreign_source_port": ("conforms", 0)}
    assert cases["foreign_source_port"].icmp.keys() == {"icmpv6 1/5"}


@pytest.mark.parametrize(
    ("believed", "words"),
    [
        ({}, None),
        ({"psid_offset": 0}, "psid_offset = 6"),
        ({"ea_bits": 14}, "ea_bits = 16"),
        ({"ipv6": "2001:db8::/36"}, 'ipv6 = "2001:db8::/40"'),
        ({"ipv4": "192.0.2.0/26"}, 'ipv4 = "192.0.2.0/24"'),
        ({"dmr": "2001:db8:ffff::/96"}, 'dmr = "2001:db8:ffff::/64"'),
    ],
)
def test_the_rule_of_a_relay_is_seen_from_outside(
    believed: dict[str, object], words: str | None, relay: OpenBed
) -> None:
    document = netns_document("tayga-mapt-br", map={**TABLE, "domains": [{**SHARED, **believed}]}, conformity={})
    table = campaign_from_dict(document).map
    campaign = relay.tester.campaign.model_copy(update={"map": table})
    (told,) = map_findings(campaign, relay.tester.engine.exchange)
    assert told.status == ("ok" if words is None else "failed")
    assert words is None or f"the gateway behaves as it would with {words}: that explains all" in told.observed

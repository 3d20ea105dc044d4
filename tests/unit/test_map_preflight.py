"""Which rule a border relay follows: relays of scapy with other rules than the campaign's, and what is said of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest
from tests.unit.border_relays import BorderRelay, Fault, TunnelRelay
from tests.unit.test_conformity import FULL, SHARED, campaign
from tests.unit.test_conformity_tunnels import RELAY, SOFTWIRES
from tests.unit.test_conformity_tunnels import SHARED as SHARED_IN_TUNNELS
from tests.unit.test_conformity_tunnels import campaign as of_tunnels

from gatemark.findings import Finding
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.problems import rule_problems
from gatemark.map_preflight import map_findings

RULE = MapDomain(
    rule_ipv6=IPv6Network("2001:db8::/40"),
    rule_ipv4=IPv4Network("192.0.2.0/24"),
    ea_bits=16,
    dmr=IPv6Network("2001:db8:ffff::/64"),
)
"""That of `SHARED`."""


def asked(relay: BorderRelay) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def ask(body: Mapping[str, Any]) -> Mapping[str, Any]:
        sent = {side: len(body[side]) for side in ("left", "right")}
        return {"answer": "ok", "id": 9, "sent": sent, "arrived": list(relay.exchange(body)), "not_kept": 0}

    return ask


def finding(rule: MapDomain, *faults: Fault, document: dict[str, Any] | None = None, **table: Any) -> Finding:
    wanted = campaign(document or SHARED, map=table)
    (only,) = map_findings(wanted, asked(BorderRelay([rule], faults)))
    return only


def test_a_relay_with_the_rule_of_the_campaign_is_right() -> None:
    told = finding(RULE)
    assert (told.status, told.observed) == ("ok", "22 of 22 packets correct: lowest and highest customer edge and port")


CHANGES: dict[str, dict[str, Any]] = {
    "psid_offset = 0": {"psid_offset": 0},
    "psid_offset = 4": {"psid_offset": 4},
    "ea_bits = 14": {"ea_bits": 14},
    "ea_bits = 8": {"ea_bits": 8},
    'ipv6 = "2001:db8::/36"': {"rule_ipv6": IPv6Network("2001:db8::/36")},
    'ipv6 = "2001:db8::/44"': {"rule_ipv6": IPv6Network("2001:db8::/44")},
    'ipv4 = "192.0.2.0/26"': {"rule_ipv4": IPv4Network("192.0.2.0/26")},
    'dmr = "2001:db8:ffff::/96"': {"dmr": IPv6Network("2001:db8:ffff::/96")},
    'dmr = "2001:db8:ffff::/48"': {"dmr": IPv6Network("2001:db8:ffff::/48")},
    "psid_offset = 4 and ea_bits = 12": {"psid_offset": 4, "ea_bits": 12},
}


@pytest.mark.parametrize("words", CHANGES)
def test_another_rule_is_named(words: str) -> None:
    told = finding(replace(RULE, **CHANGES[words]))
    assert told.status == "failed"
    assert f"the gateway behaves as it would with {words}: that explains all" in told.observed
    assert told.remedy == f"correct the gateway's rule, or set {words} in map.domains[0]"


ANOTHER_END = "2001:2:0:ff::2"


def finding_in_tunnels(rule: MapDomain, table: dict[str, Any], relay: str = RELAY) -> Finding:
    """What is said of a relay with tunnels; the campaign has another rule, and perhaps another end."""
    (only,) = map_findings(of_tunnels(table), asked(TunnelRelay([rule], relay)))
    return only


def test_a_relay_with_tunnels_is_right() -> None:
    told = finding_in_tunnels(replace(RULE, dmr=None), SHARED_IN_TUNNELS)
    assert (told.status, told.observed) == ("ok", "22 of 22 packets correct: lowest and highest customer edge and port")


@pytest.mark.parametrize("words", [words for words in CHANGES if "dmr" not in words])
def test_another_rule_of_a_relay_with_tunnels_is_named(words: str) -> None:
    told = finding_in_tunnels(replace(RULE, dmr=None, **CHANGES[words]), SHARED_IN_TUNNELS)
    assert told.status == "failed"
    assert f"the gateway behaves as it would with {words}: that explains all" in told.observed


BINDINGS = MapDomain(
    rule_ipv6=IPv6Network("2001:db8:1:2::/64"),
    rule_ipv4=IPv4Network("192.0.2.0/24"),
    ea_bits=14,
    psid_offset=0,
    in_identifier=True,
)
"""Those of SOFTWIRES."""
OF_BINDINGS: dict[str, dict[str, Any]] = {
    "psid_bits = 5": {"ea_bits": 13},
    "psid_offset = 6": {"psid_offset": 6},
    "psid_offset = 4 and psid_bits = 7": {"psid_offset": 4, "ea_bits": 15},
}


@pytest.mark.parametrize("words", OF_BINDINGS)
def test_other_bindings_are_named(words: str) -> None:
    told = finding_in_tunnels(replace(BINDINGS, **OF_BINDINGS[words]), SOFTWIRES)
    assert (told.check, told.status) == ("softwires 1", "failed")
    assert words in told.observed and told.remedy.endswith(f"set {words} in map.softwires[0]")


def test_another_prefix_shows_in_the_tunnel_of_a_packet() -> None:
    told = finding_in_tunnels(replace(BINDINGS, rule_ipv6=IPv6Network("2001:db8:1:3::/64")), SOFTWIRES)
    assert "one to 192.0.2.0 port 1024 arrived at 2001:db8:1:3:0:c000:200:1" in told.observed


def test_another_end_of_the_tunnels_is_named() -> None:
    told = finding_in_tunnels(BINDINGS, SOFTWIRES, ANOTHER_END)
    assert f"tunnels begin at {ANOTHER_END}, not at {RELAY}" in told.observed
    assert told.remedy == "correct the address in the gateway, or set gateway.tunnel.address"


def test_what_cannot_be_told_apart_is_not_chosen() -> None:
    """A relay that may lack most customer edges, and lets only its first packet through, is one of many."""
    relay = asked(BorderRelay([RULE]))

    def ask(body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = relay(body)
        return {**answer, "arrived": answer["arrived"][:1]}

    (told,) = map_findings(campaign(SHARED, map={"edges": 1, "order": "increasing"}), ask)
    assert told.status == "failed"
    assert " or with " in told.observed
    assert "from outside these look the same" in told.observed
    assert "set " not in told.remedy


@pytest.mark.parametrize(
    ("fault", "words"),
    [("forwards nothing", "none of 39 packets came back"), ("forwards upward only", "no rule that differs")],
)
def test_what_no_rule_explains_is_said(fault: Fault, words: str) -> None:
    told = finding(RULE, fault)
    assert (told.status, words in told.observed) == ("failed", True), told
    assert "gatemark export" in told.remedy


def test_each_domain_has_a_finding_of_its_own() -> None:
    wanted = campaign(SHARED, FULL)
    assert wanted.map is not None
    first, second = wanted.map.whole_rules
    relay = BorderRelay([first, replace(second, rule_ipv6=IPv6Network("2001:db8:8000::/44"))])
    first_told, second_told = map_findings(wanted, asked(relay))
    assert (first_told.check, first_told.status) == ("MAP rule, domain 1", "ok")
    assert (second_told.check, second_told.status) == ("MAP rule, domain 2", "failed")
    assert "map.domains[1]" in second_told.remedy


def random_rule(generator: random.Random) -> MapDomain:
    while True:
        rule = MapDomain(
            rule_ipv6=IPv6Network(("2001:db8::", generator.randint(24, 60)), strict=False),
            rule_ipv4=IPv4Network(("198.51.0.0", generator.randint(20, 32)), strict=False),
            ea_bits=generator.randint(4, 20),
            dmr=IPv6Network(("2001:dbff::", generator.choice((64, 96)))),
            psid_offset=generator.randint(0, 8),
        )
        if not any(rule_problems(rule, "")) and rule.psid_length:
            return rule


@pytest.mark.parametrize("seed", range(20))
def test_the_rule_of_the_relay_is_always_among_those_that_fit(seed: int) -> None:
    generator = random.Random(seed)
    rule, changed = random_rule(generator), None
    while changed in (None, rule) or any(rule_problems(changed, "")):
        key = generator.choice(("psid_offset", "ea_bits", "dmr"))
        change: Any = IPv6Network(("2001:dbff::", 96 if rule.default_rule.prefixlen == 64 else 64))
        if key != "dmr":
            change = generator.randint(0, 20)
        changed = replace(rule, **{key: change})
    assert changed is not None
    document = {
        "ipv6": str(rule.rule_ipv6),
        "ipv4": str(rule.rule_ipv4),
        "ea_bits": rule.ea_bits,
        "dmr": str(rule.dmr),
        "psid_offset": rule.psid_offset,
    }
    told = finding(changed, document=document)
    words = f'dmr = "{change}"' if key == "dmr" else f"{key} = {change}"
    assert told.status == "failed"
    assert words in told.observed or "other rules" in told.observed, told

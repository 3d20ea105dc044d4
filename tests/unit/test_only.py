"""For what a key makes sense stands at its field, and everything that says it takes it from there."""

import json

import pytest

from gatemark.bed_kinds import BED_KINDS
from gatemark.campaign.file import schema_text
from gatemark.config.only import LOCAL, SEEN, STATEFUL, TRANSLATORS, WITH_GATEWAY, WITH_RULES, Only, refusals
from gatemark.config.tables import GatewayModel
from gatemark.technology import TECHNOLOGIES


@pytest.mark.parametrize("rule", [TRANSLATORS, STATEFUL, WITH_RULES])
def test_a_technology_is_refused_exactly_where_the_rule_does_not_hold(rule: Only) -> None:
    assert rule.technology is not None
    for technology in TECHNOLOGIES.values():
        refusal = rule.refusal(technology, None)
        assert (refusal is None) == rule.technology(technology)
        if refusal is not None:
            assert refusal[0] == f"does not apply to {technology.name}, {rule.lack}"
            assert technology.name not in refusal[1].split()


@pytest.mark.parametrize("rule", [WITH_GATEWAY, LOCAL, SEEN])
def test_a_test_bed_is_refused_exactly_where_the_rule_does_not_hold(rule: Only) -> None:
    assert rule.bed is not None
    for kind in BED_KINDS.values():
        refusal = rule.refusal(None, kind)
        assert (refusal is None) == rule.bed(kind)
        assert refusal is None or refusal[0] == f"does not apply to kind = {kind.name}, {rule.lack}"


def test_what_is_not_known_refuses_nothing() -> None:
    gateway = GatewayModel.model_validate({"prefix": "2001:2:0:6400::/96", "table": {"udp_timeout": "5min"}})
    assert list(refusals(gateway, None, None)) == []
    router = [key for key, _, _ in refusals(gateway, TECHNOLOGIES["router44"], None, at="gateway.")]
    assert router == ["gateway.prefix", "gateway.table.udp_timeout"]


def test_a_default_and_a_no_are_no_values() -> None:
    gateway = GatewayModel.model_validate({"zero_udp_checksum": False, "eam": [], "well_known_prefix_allowed": False})
    assert list(refusals(gateway, TECHNOLOGIES["router44"], BED_KINDS["loopback"])) == []


def test_the_schema_says_it_as_well() -> None:
    tables = json.loads(schema_text())["$defs"]
    assert tables["GatewayModel"]["properties"]["prefix"]["description"].endswith(" For translators only.")
    assert tables["GatewayTableModel"]["properties"]["size"]["description"].count("stateful gateways") == 1
    assert tables["TestbedModel"]["properties"]["gateway_cores"]["description"].endswith(" For kind netns only.")

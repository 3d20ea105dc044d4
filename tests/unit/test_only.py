"""For what a key makes sense stands at its field, and everything that says it takes it from there."""

import json

import pytest
from pydantic import BaseModel

from gatemark.bed_kinds import BED_KINDS
from gatemark.campaign.file import schema_text
from gatemark.config.map_tables import MapModel
from gatemark.config.only import (
    CONSTANT_LOAD,
    LOCAL,
    NO_ECHO,
    SEEN,
    STATEFUL,
    TRANSLATORS,
    UDP,
    WITH_GATEWAY,
    WITH_RULES,
    Only,
    refusals,
    without_effect,
)
from gatemark.config.recipe import RecipeCommands
from gatemark.config.tables import DirectionTrafficModel, GatewayControlModel, GatewayModel, SideModel, TrafficModel
from gatemark.procedures.frame_loss.table import FrameLossTable
from gatemark.procedures.registry import PROCEDURES
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


def test_a_key_of_one_direction_has_the_rules_of_that_of_both() -> None:
    def rules(table: type[BaseModel], name: str) -> list[Only]:
        return [rule for rule in table.model_fields[name].metadata if isinstance(rule, Only)]

    for name in DirectionTrafficModel.model_fields:
        assert rules(DirectionTrafficModel, name) == rules(TrafficModel, name), name
    router = TrafficModel.model_validate({"forward": {"dont_fragment": True}})
    told = [key for key, *_ in refusals(router, TECHNOLOGIES["router66"], None, at="traffic.")]
    assert told == ["traffic.forward.dont_fragment"]


def test_a_key_that_needs_another_one_is_told_with_it() -> None:
    side = {"ipv4": {"address": "198.18.0.2", "router": "198.18.0.3", "hosts": {"offset": 0}}, "host_macs": "random"}
    what = 'applies only with left.address_mode = "nexthop": every host is a neighbour of the gateway'
    told = {key: (what, fix) for key, what, fix in refusals(SideModel.model_validate(side), None, None, at="left.")}
    assert told["left.ipv4.router"] == (what, 'leave it out, or write left.address_mode = "nexthop"')
    assert set(told) == {"left.ipv4.router", "left.ipv4.hosts.offset"}
    behind = SideModel.model_validate({**side, "address_mode": "nexthop"})
    assert [key for key, *_ in refusals(behind, None, None)] == ["ipv4.hosts.offset", "host_macs"]
    rates = FrameLossTable.model_validate({"rates": [1000], "step": "5%"})
    assert list(refusals(rates, None, None)) == [
        ("step", "applies only without rates: these are all loads", "leave it out, or leave out rates")
    ]
    assert list(without_effect(rates)) == ["maximum", "step"]


def test_a_rule_about_a_key_that_no_table_has_says_nothing() -> None:
    assert list(refusals(RecipeCommands.model_validate({"clear_state": "true"}), None, None)) == []
    control = GatewayControlModel.model_validate({"boot": "trial", "clear_state": "true"})
    assert [key for key, *_ in refusals(control, None, None)] == ["clear_state"]


def test_the_schema_says_it_as_well() -> None:
    tables = json.loads(schema_text())["$defs"]
    assert tables["GatewayModel"]["properties"]["prefix"]["description"].endswith(
        " For translators without MAP rules only."
    )
    assert tables["GatewayTableModel"]["properties"]["size"]["description"].count("stateful gateways") == 1
    assert tables["GatewayModel"]["properties"]["control"]["description"].endswith(
        " For kind ports only, except `limits`."
    )
    assert tables["DelayTable"]["properties"]["tags"]["description"].endswith(' With `"latency" in metrics` only.')
    assert tables["TestbedModel"]["properties"]["gateway_cores"]["description"].endswith(" For kind netns only.")


@pytest.mark.parametrize("rule", [UDP, NO_ECHO, CONSTANT_LOAD])
def test_a_key_is_refused_beside_exactly_the_procedures_for_which_the_rule_does_not_hold(rule: Only) -> None:
    assert rule.procedure is not None
    tables = [procedure.table.model_construct() for procedure in PROCEDURES.values()]
    refused = [table for table in tables if rule.refusal(None, None, [table]) is not None]
    assert 0 < len(refused) < len(tables)
    assert not any(map(rule.procedure, refused))
    both = rule.refusal(None, None, refused[:2])
    names = " and ".join(f"[{table.key}]" for table in refused[:2])
    assert both == (
        f"does not apply to {names}, {rule.lack}",
        f"leave it out, or measure {names} in a campaign without it",
    )


def test_the_procedures_of_constant_load_are_those_that_the_description_names() -> None:
    apart = [name for name, procedure in PROCEDURES.items() if procedure.table.lets_flows_start_apart]
    assert sorted(apart) == ["delay", "frame_loss", "throughput"]
    assert CONSTANT_LOAD.words == "throughput, frame loss rate and delay"


def test_a_key_in_a_list_of_tables_is_told_with_its_place() -> None:
    domain = {"ipv6": "2001:db8::/32", "ipv4": "192.0.2.0/24", "ea_bits": 16, "weight": 2}
    rules = MapModel.model_validate({"domains": [{**domain, "weight": 1}, domain]})
    assert [key for key, *_ in refusals(rules, TECHNOLOGIES["map_t_ce"], None, at="map.")] == ["map.domains[1].weight"]


def test_one_key_of_a_table_may_be_spared() -> None:
    told = []
    for control in ({"limits": {"reset": "9s"}}, {"limits": {"reset": "9s"}, "sudo": True}):
        gateway = GatewayModel.model_validate({"control": control})
        told.append([(key, fix) for key, _, fix in refusals(gateway, None, BED_KINDS["netns"])])
    assert told == [[], [("control", "leave out all but limits, or set testbed.kind to ports")]]

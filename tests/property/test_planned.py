"""What `plan` accepts the engine accepts: every kind of trial of random campaigns, and every example."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gatemark.campaign.columns import load_series, varies
from gatemark.campaign.file import campaign_from_dict, load_campaign
from gatemark.campaign.plan import plan_of
from gatemark.campaign.requests import preview_requests
from gatemark.config.model import Campaign
from gatemark.dut.recipe import built_in_recipes, complete_campaign
from gatemark.engine.client import Engine
from gatemark.engine.process import find_engine, start_engine
from gatemark.errors import ConfigError, EngineError
from gatemark.technology import TECHNOLOGIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        find_engine()
    except EngineError:
        pytest.skip("needs gatemark-engine")
    with start_engine(log=None) as opened:
        yield opened


def assert_accepted(engine: Engine, campaign: Campaign) -> None:
    asked = 0
    for words, preview in preview_requests(campaign):
        try:
            engine.frames(preview)
        except EngineError as error:
            raise AssertionError(f"{words}: {error}") from error
        asked += 1
    only_packets = all(run.procedure == "conformity" for run in plan_of(campaign).runs)
    assert asked or only_packets


def ranges(most: int) -> st.SearchStrategy[str]:
    return st.tuples(st.integers(1, most), st.integers(1, most)).map(lambda pair: f"{min(pair)}-{max(pair)}")


modes = st.sampled_from(("increasing", "decreasing", "pseudorandom"))
ports = st.one_of(
    st.fixed_dictionaries({"mode": modes, "range": ranges(65535)}),
    st.integers(1, 65535).map(lambda port: {"mode": "fixed", "range": port}),
)
hosts = st.one_of(
    st.none(), st.fixed_dictionaries({"offset": st.just(2), "mode": modes, "range": st.sampled_from(("2-9", "2-254"))})
)
NETWORKS = {"ipv4": ("198.18.0.2", "198.19.0.2"), "ipv6": ("2001:2::2", "2001:2:0:8000::2")}
PROCEDURES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "throughput": st.fixed_dictionaries({"maximum": st.sampled_from(("1k", "100k"))}),
    "frame_loss": st.fixed_dictionaries(
        {"rates": st.lists(st.sampled_from(("1k", "7k", "90k")), min_size=1, unique=True)}
    ),
    "delay": st.fixed_dictionaries(
        {"load": st.integers(1000, 5000), "duration": st.just("61s"), "tags": st.integers(1, 500)}
    ),
    "back_to_back": st.just({}),
    "bursty_traffic": st.fixed_dictionaries(
        {"frames": st.lists(st.integers(2, 300), min_size=1, max_size=3, unique=True)}
    ),
    "system_recovery": st.fixed_dictionaries({"load": st.integers(1000, 9000)}),
    "connection_establishment_rate": st.fixed_dictionaries(
        {"maximum": st.just("100k"), "validated": st.sampled_from((False, True, [False, True]))}
    ),
    "connection_tear_down_rate": st.just({}),
    "connection_tracking_table_capacity": st.fixed_dictionaries(
        {"start": st.integers(10, 2000), "maximum_rate": st.just("100k"), "maximum": st.just(20_000)}
    ),
    "repeated_four_tuples": st.fixed_dictionaries({"frames": st.integers(10, 4000), "maximum": st.just("100k")}),
    "overload": st.fixed_dictionaries(
        {"clients": st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True)},
        optional={
            "window": st.integers(1, 9),
            "count": st.integers(1, 30),
            "destinations": st.integers(1, 80),
            "data": st.integers(20, 300),
        },
    ),
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A campaign of a technology on some test bed, with one or two procedures; many are refused."""
    technology = TECHNOLOGIES[draw(st.sampled_from(sorted(TECHNOLOGIES)))]
    bed = draw(st.sampled_from(("loopback", "ports", "netns")))
    wanted = draw(st.lists(st.sampled_from(sorted(PROCEDURES)), min_size=1, max_size=2, unique=True))
    document: dict[str, Any] = {
        "repetitions": 1,
        "line": {"rate": "1G"},
        "trial": {"duration": draw(st.sampled_from(("1s", "60s")))},
        **{name: draw(PROCEDURES[name]) for name in wanted},
    }
    families = technology.families
    sides: dict[str, dict[str, Any]] = {"left": {}, "right": {}}
    if bed == "netns":
        fitting = [name for name in built_in_recipes() if RECIPES.get(name) == technology.name]
        assume(fitting)
        document["testbed"] = {"kind": "netns", "recipe": draw(st.sampled_from(fitting))}
    else:
        document["testbed"] = {"kind": bed}
        document["gateway"] = {"technology": technology.name}
        for number, side in enumerate(("left", "right")):
            for family in dict.fromkeys((*families, "ipv6") if draw(st.booleans()) else families):
                address = NETWORKS[family][number]
                played: dict[str, Any] = {"address": address}
                chosen = draw(hosts)
                if chosen is not None:
                    played["hosts"] = chosen | {"offset": 2 if family == "ipv4" else 14}
                if bed == "ports":
                    played["gateway"] = address[:-1] + "1"
                sides[side][family] = played
            if bed == "ports":
                sides[side]["port"] = f"af_packet:gm{number}"
    document |= {side: keys for side, keys in sides.items() if keys}
    traffic: dict[str, Any] = {}
    if draw(st.booleans()):
        traffic["mix"] = draw(st.sampled_from(("1/1", "1/2", "9/10")))
    if draw(st.booleans()):
        traffic["frame_sizes"] = {
            "family": draw(st.sampled_from(("ipv4", "ipv6"))),
            "octets": draw(st.integers(64, 1518)),
        }
    if draw(st.booleans()) and not technology.is_stateful:
        traffic |= {"source_ports": draw(ports), "destination_ports": draw(ports)}
    if technology.is_stateful:
        document["connections"] = {
            "count": draw(st.integers(1, 3000)),
            "rate": "1k",
            "source_ports": draw(ranges(65535)),
            "destination_ports": draw(ranges(65535)),
        }
    return document | ({"traffic": traffic} if traffic else {})


def _recipes() -> dict[str, str]:
    campaigns: dict[str, str] = {}
    for name in built_in_recipes():
        try:
            document = {"testbed": {"kind": "netns", "recipe": name}, "frame_loss": {"rates": ["1k"]}}
            campaigns[name] = complete_campaign(campaign_from_dict(document)).technology.name
        except ConfigError:
            continue
    return campaigns


RECIPES = _recipes()


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
@given(document=documents())
def test_what_plan_accepts_the_engine_accepts(engine: Engine, document: dict[str, Any]) -> None:
    try:
        campaign = complete_campaign(campaign_from_dict(document))
        plan_of(campaign)
    except ConfigError:
        assume(False)
    assert_accepted(engine, campaign)


EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").rglob("*.toml"))
    if {"testbed", "connections", "throughput", "frame_loss"} & set(tomllib.loads(path.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_what_the_examples_ask_for_the_engine_can_do(engine: Engine, file: Path) -> None:
    if file.name == "lab.toml" or ("[gateway" not in file.read_text() and "recipe" not in file.read_text()):
        pytest.skip("it is no campaign")
    campaigns = [column.campaign for column in load_series(file).columns][:3] if varies(file) else [load_campaign(file)]
    for campaign in campaigns:
        assert_accepted(engine, complete_campaign(campaign))

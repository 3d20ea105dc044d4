"""Campaign files and recipes that are nearly right: only the product's own errors come out."""

from __future__ import annotations

import itertools
import json
import random
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.property.json_values import ODD_DATES, Values, texts_of

from gatemark.campaign.file import campaign_from_dict, load_campaign
from gatemark.campaign.plan import plan_of
from gatemark.config.load import campaign_of_file
from gatemark.config.recipe import Recipe
from gatemark.config.vary import columns_of, read_vary
from gatemark.dut.recipe import complete_campaign, load_recipe, recipe_from_dict
from gatemark.errors import ConfigError
from gatemark.procedures.registry import CampaignFile
from gatemark.results.toml_text import to_toml
from gatemark.technology import TECHNOLOGIES

ROOT = Path(__file__).parents[2]
RECIPE_FOLDER = Path(str(resources.files("gatemark.dut") / "recipes"))
CAMPAIGNS = [tomllib.loads(file.read_text()) for file in sorted((ROOT / "examples").glob("*.toml"))]
CAMPAIGN_SCHEMA = json.loads((ROOT / "docs/reference/campaign-file.schema.json").read_text())
CAMPAIGN_TEXTS = texts_of(CAMPAIGNS)
RECIPES = [tomllib.loads(file.read_text()) for file in sorted(RECIPE_FOLDER.glob("*.toml"))]
RECIPE_SCHEMA = Recipe.model_json_schema()
RECIPE_TEXTS = texts_of(RECIPES)
FILES = sorted([*(ROOT / "examples").glob("*.toml"), *RECIPE_FOLDER.glob("*.toml")])
SPLINTERS = (
    b"\0",
    b"\xff",
    b"\\u0000",
    b'"',
    b"[",
    b"]",
    b"=",
    b"\n",
    b"\r",
    b"#",
    b"'''",
    b"{",
    b"9" * 5000,
    b"x = " + b"[" * 5000,
)

seeds = st.integers(min_value=0, max_value=2**64 - 1)
shares = st.sampled_from([0.0, 0.01, 0.1])


def assert_told(error: ConfigError) -> None:
    """An error says what is wrong and where."""
    assert error.problems
    assert all(problem.what and problem.where for problem in error.problems)


@examples(150, many=600)
@given(seed=seeds, wrong=shares, by_schema=st.booleans())
def test_a_campaign_is_taken_or_refused_in_words(seed: int, wrong: float, by_schema: bool) -> None:
    values = Values(CAMPAIGN_SCHEMA, seed, wrong=wrong, texts=CAMPAIGN_TEXTS, odd=ODD_DATES)
    document = values.root() if by_schema else values.changed(CAMPAIGNS[seed % len(CAMPAIGNS)])
    if not isinstance(document, dict):
        return  # a TOML file is always a table
    document.pop("vary", None)  # it has a test of its own
    try:
        complete = complete_campaign(campaign_from_dict(document))
    except ConfigError as error:
        assert_told(error)
        return
    again = json.loads(json.dumps(complete.to_document()))
    assert campaign_from_dict(again).to_document() == complete.to_document()
    try:
        plan_of(complete)
    except ConfigError as error:
        assert_told(error)


@examples(100, many=400)
@given(
    of=st.sampled_from(CAMPAIGNS),
    beside=st.sampled_from(CAMPAIGNS),
    technology=st.sampled_from(sorted(TECHNOLOGIES)),
    tunnel=st.sampled_from([None, {"address": "198.18.9.1", "prefix": "2001:db8::/32"}, {"address": "2001:2:0:ff::1"}]),
)
def test_tables_of_two_campaigns_are_taken_or_refused_in_words(
    of: dict[str, Any], beside: dict[str, Any], technology: str, tunnel: dict[str, Any] | None
) -> None:
    document = {key: table for key, table in {**beside, **of}.items() if key != "vary"}
    gateway = {key: value for key, value in document.get("gateway", {}).items() if key != "tunnel"}
    document["gateway"] = {**gateway, "technology": technology, **({} if tunnel is None else {"tunnel": tunnel})}
    try:
        plan_of(complete_campaign(campaign_from_dict(document)))
    except ConfigError as error:
        assert_told(error)


VARIED = {
    "vary": [
        {"titles": ["a", "b"], "traffic.frame_sizes.octets": [64, 512], "trial.rest": ["0s", "1s"]},
        {"repetitions": [1, 2], "gateway": [{"name": "x"}, {}]},
        {"testbed": {"cores": [[0], [1]]}},
    ]
}


@examples(75, many=300)
@given(seed=seeds, wrong=shares)
def test_what_varies_is_taken_or_refused_in_words(seed: int, wrong: float) -> None:
    values = Values(CAMPAIGN_SCHEMA, seed, wrong=wrong, texts=CAMPAIGN_TEXTS, odd=ODD_DATES)
    document = values.changed({**CAMPAIGNS[seed % len(CAMPAIGNS)], **VARIED})
    if not isinstance(document, dict) or "vary" not in document or "null" in json.dumps(document, default=str):
        return  # TOML has no null
    vary, problems = read_vary(document, CampaignFile, "campaign.toml")
    assert all(problem.what and problem.where.startswith("campaign.toml: vary") for problem in problems)
    for column in itertools.islice(columns_of(document, vary), 3):
        assert column.title or not vary
        assert set(column.settings) == {path for table in vary for path in table.values}
        try:
            campaign = campaign_of_file(column.document, CampaignFile, path=Path("campaign.toml"))
        except ConfigError as error:
            assert_told(error)
            continue
        read = tomllib.loads(to_toml(column.document))
        assert campaign_of_file(read, CampaignFile, path=Path("campaign.toml")).to_document() == campaign.to_document()


@examples(100, many=400)
@given(seed=seeds, wrong=shares, by_schema=st.booleans())
def test_a_recipe_is_taken_or_refused_in_words(seed: int, wrong: float, by_schema: bool) -> None:
    values = Values(RECIPE_SCHEMA, seed, wrong=wrong, texts=RECIPE_TEXTS, odd=ODD_DATES)
    table = values.root() if by_schema else values.changed(RECIPES[seed % len(RECIPES)])
    if not isinstance(table, dict):
        return
    try:
        recipe = recipe_from_dict(table)
    except ConfigError as error:
        assert_told(error)
        return
    assert recipe.gateway.technology == recipe.technology.name
    assert len(recipe.parts) == 2 or recipe.mirrored().mirrored() == recipe


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "campaign.toml"


@examples(100, many=400)
@given(seed=seeds)
def test_a_file_of_any_octets_is_taken_or_refused_in_words(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    text = bytearray(chance.choice(FILES).read_bytes())
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(text))
        text[place : place + chance.choice((0, 1, 30))] = chance.choice(SPLINTERS)
    file.write_bytes(text)
    for load in (load_campaign, load_recipe):
        try:
            load(file)
        except ConfigError as error:
            assert_told(error)


@pytest.mark.parametrize("name", ["a/\\u0000", "./" + "9" * 300, "a/" * 3000])
def test_a_recipe_whose_name_no_file_can_have_is_refused_in_words(file: Path, name: str) -> None:
    file.write_text(f'[testbed]\nkind = "netns"\nrecipe = "{name}"\n')
    with pytest.raises(ConfigError) as caught:
        complete_campaign(load_campaign(file))
    assert_told(caught.value)

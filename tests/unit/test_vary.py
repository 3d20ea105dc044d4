"""`[[vary]]`: the columns of a campaign file, and everything that may be wrong with them, at once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from gatemark.campaign.columns import SeriesFile, load_series, of_each, series_of_text, varies
from gatemark.campaign.file import campaign_from_text, load_campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError

WriteCampaign = Callable[..., Path]

NAT = """
name = "nat"
repetitions = 2
[testbed]
kind = "netns"
recipe = "nft-nat44"
[traffic]
frame_sizes = {family = "ipv4", octets = [64]}
[trial]
duration = "2s"
[connections]
rate = "1k"
[throughput]
maximum = "1M"
"""
TOGETHER = """
[[vary]]
"connections.count" = ["10k", "100k"]
"gateway.table.size" = ["20k", "200k"]
"""
CROSSED = """
[[vary]]
"testbed.gateway_cores" = [[0], [0, 1]]
titles = ["one core", "two cores"]
"""


def series(text: str) -> SeriesFile:
    return series_of_text(text, Path("nat.toml"))


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        series(text)
    return str(caught.value)


def test_lists_of_one_table_change_together_and_tables_are_crossed() -> None:
    columns = series(NAT + CROSSED + TOGETHER).columns
    assert [(column.number, column.title, column.steps) for column in columns] == [
        (1, "one core, count 10k", (0, 0)),
        (2, "one core, count 100k", (0, 1)),
        (3, "two cores, count 10k", (1, 0)),
        (4, "two cores, count 100k", (1, 1)),
    ]
    assert [
        (campaign.connections_model.count, campaign.gateway.table.size, campaign.control.core_count)
        for campaign in (complete_campaign(column.campaign) for column in columns)
    ] == [((10_000,), 20_000, 1), ((100_000,), 200_000, 1), ((10_000,), 20_000, 2), ((100_000,), 200_000, 2)]
    assert columns[3].settings == {
        "testbed.gateway_cores": [0, 1],
        "connections.count": "100k",
        "gateway.table.size": "200k",
    }
    assert len({column.campaign.name for column in columns}) == 4


def test_a_column_is_an_ordinary_campaign_file() -> None:
    for column in series(NAT + CROSSED + TOGETHER).columns:
        read = campaign_from_text(column.source.text, Path("nat.toml"))
        assert read.to_document() == column.campaign.to_document()
        assert "vary" not in tomllib.loads(column.source.text)


def test_a_column_can_be_without_keys() -> None:
    text = """
[[vary]]
titles = ["NAT", "router"]
"testbed.recipe" = ["nft-nat44", "linux-router4"]
without = [[], ["connections", "gateway.table.size"]]
"""
    nat, *_, router = series(NAT + text + TOGETHER.replace("100k", "30k")).columns
    assert nat.without == ()
    assert nat.settings["connections.count"] == "10k"
    assert router.without == ("connections", "gateway.table.size")
    assert router.settings == {"testbed.recipe": "linux-router4"}
    assert router.campaign.connections is None
    assert router.campaign.gateway.table.size is None
    assert "connections" not in tomllib.loads(router.source.text)


def test_columns_that_differ_in_nothing_are_measured_once() -> None:
    """The numbers of connections do not apply to the router, which therefore is one column, named without them."""
    text = """
[[vary]]
titles = ["router", "NAT"]
"testbed.recipe" = ["linux-router4", "nft-nat44"]
without = [["connections", "gateway.table.size"], []]
"""
    columns = series(f"{NAT}{text}{TOGETHER}search_from_previous = true\n").columns
    assert [(column.number, column.title, column.steps, column.previous) for column in columns] == [
        (1, "router", (0, 0), None),
        (2, "NAT, count 10k", (1, 0), None),
        (3, "NAT, count 100k", (1, 1), 2),
    ]
    assert columns[0].campaign.name.endswith(": router")


def test_searches_begin_at_the_column_before_along_the_part_that_says_so() -> None:
    both = CROSSED + TOGETHER
    assert [column.previous for column in series(NAT + both).columns] == [None] * 4
    assert [column.previous for column in series(f"{NAT}{both}search_from_previous = true\n").columns] == [
        None, 1, None, 3,
    ]  # fmt: skip
    cores = CROSSED + "search_from_previous = true\n"
    assert [column.previous for column in series(NAT + cores + TOGETHER).columns] == [None, None, 1, 2]


def test_a_column_expects_what_its_file_does_not_expect_itself() -> None:
    _, second = series(NAT + TOGETHER).columns
    begun, used = second.expecting({"throughput": 123_456, "connection_establishment_rate": 7})
    assert used == {"throughput": 123_456}  # the file has no other table
    assert tomllib.loads(begun.source.text)["throughput"]["expected"] == 123_456
    assert begun.campaign.source == second.campaign.source
    assert begun.expecting({"throughput": 5}) == (begun, {})


def test_a_path_may_be_written_without_quotes_and_a_whole_table_may_vary() -> None:
    text = (
        NAT
        + '[[vary]]\nconnections.count = ["10k", "20k"]\n[[vary]]\n"gateway.table" = [{size = "1M"}, {size = "2M"}]\n'
    )
    assert [column.title for column in series(text).columns][:2] == [
        "count 10k, table size 1M",
        "count 10k, table size 2M",
    ]
    assert series(text).columns[3].campaign.gateway.table.size == 2_000_000


def test_a_recipe_is_relative_to_the_file(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    file.write_text(file.read_text() + '[[vary]]\n"testbed.recipe" = ["recipes/a.toml", "tayga-siit64"]\n')
    columns = load_series(file).columns
    assert [column.campaign.testbed.recipe for column in columns] == [f"{tmp_path}/recipes/a.toml", "tayga-siit64"]


def test_a_title_names_what_differs() -> None:
    same_count = '[[vary]]\n"connections.count" = [1000, 1000]\n"gateway.table.size" = ["1M", "2M"]\n'
    assert [column.title for column in series(NAT + same_count).columns] == [
        "count 1000, size 1M",
        "count 1000, size 2M",
    ]
    both = '[[vary]]\n"trial.duration" = ["1s", "2s"]\n[[vary]]\n"reset.duration" = ["1s"]\n'
    message = refused(NAT + both)  # two keys of one name; the second is of another procedure, and unknown
    assert "vary[1].reset.duration: names no key of the campaign file" in message


WRONG = {
    "unknown": (
        '"connections.cuont" = [1]',
        "vary[0].connections.cuont: names no key",
        "did you mean connections.count?",
    ),
    "part of a list": ('"traffic.frame_sizes.octets.0" = [64]', "names no key", ""),
    "no list": ('"connections.count" = "1k"', "vary[0].connections.count: is 1k, not a list", "list the values"),
    "empty": ('"connections.count" = []', "vary[0].connections.count: is an empty list", ""),
    "length": ('"seed" = [1, 2]\n"repetitions" = [1, 2, 3]', "has 3 values, seed has 2", "[[vary]] of its own"),
    "twice": ('"seed" = [1]\n[[vary]]\n"seed" = [2]', "vary[1].seed: is varied twice", ""),
    "inside": ('"trial" = [{}]\n[[vary]]\n"trial.rest" = ["1s"]', "is part of trial, which is varied as well", ""),
    "nothing": ("", "vary[0]: varies nothing", '"connections.count"'),
    "same": ('"seed" = [1, 2, 1]', "values 1 and 3 of every list are the same", "repetitions"),
    "title count": ('"seed" = [1, 2]\ntitles = ["a"]', "vary[0].titles: has 1 names for 2 values", ""),
    "title alike": ('"seed" = [1, 2]\ntitles = ["a", "a"]', "vary[0].titles: names two columns alike", ""),
    "title type": ('"seed" = [1, 2]\ntitles = [1, 2]', "vary[0].titles: is not a list of texts", ""),
    "title long": (f'"seed" = [1]\ntitles = ["{"a" * 61}"]', "more than 60 characters", ""),
    "from previous": (
        '"seed" = [1, 2]\nsearch_from_previous = 1',
        "vary[0].search_from_previous: is neither true nor false",
        "write true",
    ),
    "without unknown": (
        '"seed" = [1, 2]\nwithout = [[], ["conections"]]',
        "vary[0].without: conections names no key",
        "did you mean connections?",
    ),
    "without absent": ('"seed" = [1, 2]\nwithout = [[], ["line"]]', "vary[0].without: the file has no key line", ""),
    "without count": ('"seed" = [1, 2]\nwithout = [[]]', "vary[0].without: has 1 lists for 2 values", "may be empty"),
    "without type": ('"seed" = [1, 2]\nwithout = ["line", "trial"]', "is not a list of lists of texts", "[[], ["),
    "vary itself": ('"vary" = [[1]]', "vary[0].vary: names no key", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_key_and_remedy(name: str) -> None:
    lines, what, fix = WRONG[name]
    message = refused(f"{NAT}[[vary]]\n{lines}\n")
    assert what in message
    assert fix in message
    assert message.startswith("nat.toml: vary[")


def test_all_problems_are_told_at_once() -> None:
    message = refused(NAT.replace("maximum", "maximun") + '[[vary]]\n"sed" = [1]\n"seed" = []\n[[vary]]\n')
    assert message.count("hint:") == 4
    assert "nat.toml: throughput.maximun: unknown key" in message


def test_a_table_in_place_of_a_list_of_tables_is_refused() -> None:
    assert "nat.toml: vary: is not a list of tables" in refused(NAT + "[vary]\nseed = [1]\n")


def test_too_many_columns_are_refused() -> None:
    table = f"[[vary]]\nseed = {list(range(101))}\n[[vary]]\nrepetitions = {list(range(1, 11))}\n"
    assert "vary: gives more than 1000 columns" in refused(NAT + table)
    assert "seed: has more than 1000 values" in refused(NAT + f"[[vary]]\nseed = {list(range(1001))}\n")


@pytest.mark.parametrize(
    ("count", "said"), [(8, "gives more than 1000 columns"), (4_000, "varies more than 1000 keys")]
)
def test_columns_that_are_not_measured_are_not_made(count: int, said: str) -> None:
    """Eight lists of eight values are 16 million columns; the problems of the file itself are told nevertheless."""
    tables = ", ".join(f"{{gateway.settings.s{number} = {list(range(8))}}}" for number in range(count))
    message = refused(f"vary = [{tables}]\n" + NAT.replace("maximum", "maximun"))
    assert f"vary: {said}" in message
    assert "throughput.maximun: unknown key" in message


def test_a_problem_of_some_columns_names_them_and_one_of_all_is_told_once() -> None:
    varied = '[[vary]]\n"connections.count" = ["0", "10k", "0.5"]\n[[vary]]\nseed = [1, 2]\n'
    message = refused(NAT.replace("maximum", "maximun") + varied)
    assert "nat.toml: throughput.maximun: unknown key" in message
    assert "nat.toml, columns 1, 2: connections.count[0]: '0' is nothing" in message
    assert "nat.toml, columns 5, 6: connections.count[0]" in message
    single = refused(NAT + "[[vary]]\nseed = [1, -1]\n")
    assert "nat.toml, column 2 (seed -1): seed" in single


def test_what_only_the_recipe_shows_is_told_of_all_columns_too() -> None:
    told = series(NAT + '[[vary]]\n"connections.count" = ["10k", "20k", "30k"]\n[gateway.table]\nsize = 15000\n')
    with pytest.raises(ConfigError) as caught:
        of_each(told, lambda column: complete_campaign(column.campaign))
    assert str(caught.value).startswith("nat.toml, column 2 (count 20k): gateway.table.size: is 15000")
    assert "nat.toml, column 3 (count 30k): gateway.table.size: is 15000" in str(caught.value)


def test_a_series_is_no_campaign(write_campaign: WriteCampaign) -> None:
    file = write_campaign()
    assert not varies(file)
    file.write_text(file.read_text() + "[[vary]]\nseed = [1, 2]\n")
    assert varies(file)
    with pytest.raises(ConfigError, match="a series, not one campaign"):
        load_campaign(file)

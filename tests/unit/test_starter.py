"""`gatemark init`: every file that it writes is one that `gatemark plan` accepts, and it writes nothing else."""

from __future__ import annotations

import functools
import io
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import load_campaign, schema_text
from gatemark.cli.main import main
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import ConfigError
from gatemark.procedures.registry import PROCEDURES
from gatemark.starter import text as starter_text
from gatemark.starter.text import NAMESPACES, PORTS, Answers, blocks, campaign_text, recipes_for, tables_for
from gatemark.starter.write import first_campaign
from gatemark.technology import TECHNOLOGIES, Technology, TechnologyName

PAIR = ("pci:0000:01:00.0", "pci:0000:01:00.1")
EVERYTHING = ["router.toml", "--technology", "router44", "--place", "namespaces", "--recipe", "linux-router4",
              "--measure", "throughput", "--time", "10min"]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """The recipes and the template are read and compiled for each file that is written; here for the first alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(starter_text, "load_recipe", functools.cache(load_recipe))
        patch.setattr(starter_text, "_template", functools.cache(starter_text._template))
        yield


def answers(technology: Technology, place: str, *tables: str, recipe: str | None = None) -> Answers:
    ports = PAIR if recipe is None else None
    return Answers(technology=technology, place=place, recipe=recipe, ports=ports, tables=tables)


@functools.cache
def every_answer() -> list[Answers]:
    """All tables of every technology at every place, and each table alone between two ports."""
    all_answers = []
    for technology in TECHNOLOGIES.values():
        known = tuple(tables_for(technology))
        all_answers += [answers(technology, NAMESPACES, *known, recipe=name) for name in recipes_for(technology)]
        all_answers += [answers(technology, place, *known) for place in (PORTS, "root@192.0.2.1")]
        all_answers += [answers(technology, PORTS, key) for key in known]
    return all_answers


@pytest.mark.parametrize("technology", TECHNOLOGIES)
def test_every_answer_gives_a_file_that_can_be_planned(technology: TechnologyName, tmp_path: Path) -> None:
    given = [each for each in every_answer() if each.technology.name == technology]
    assert given
    planned, whole = set(), tuple(tables_for(TECHNOLOGIES[technology]))
    for each in given:
        for number, level in enumerate(blocks()["levels"]):
            text = campaign_text(each, level, file="a.toml", name="a")
            (tmp_path / "a.toml").write_text(text, encoding="utf-8")
            campaign = complete_campaign(load_campaign(tmp_path / "a.toml"))
            assert campaign.technology is each.technology
            assert {table.key for table in campaign.tables} >= set(each.tables)
            # Place and recipe change no number of trials; each level of a table is in the file with all of them, too.
            if (number == 0 or each.tables == whole) and (each.tables, number) not in planned:
                assert estimate(campaign).trials_max > 0
                planned.add((each.tables, number))
            assert text.splitlines()[0] == "#:schema ./campaign.schema.json"
            assert all(len(line) <= 120 for line in text.splitlines()) and "{" + "resolution" not in text


def test_what_is_offered_is_every_table_that_needs_no_choice_of_its_own() -> None:
    offered = {key for row in TECHNOLOGIES.values() for key in tables_for(row)}
    assert offered <= {row.table.key for row in PROCEDURES.values()}
    assert set(blocks()["procedures"]) == offered
    assert set(blocks()["technologies"]) == set(TECHNOLOGIES)


def test_more_time_gives_more_trials_and_too_little_is_refused(tmp_path: Path) -> None:
    given = answers(TECHNOLOGIES["router44"], NAMESPACES, "throughput", recipe="linux-router4")
    needed = []
    for minutes in (1, 10, 60, 600, 100_000, None):
        most_ns = None if minutes is None else minutes * 60_000_000_000
        (tmp_path / "a.toml").write_text(first_campaign(given, most_ns, tmp_path / "a.toml"), encoding="utf-8")
        needed.append(estimate(complete_campaign(load_campaign(tmp_path / "a.toml"))).seconds_max)
        assert minutes is None or needed[-1] <= 60 * minutes
    assert needed == sorted(needed) and needed[-1] == needed[-2] > needed[0]
    with pytest.raises(ConfigError, match="too short"):
        first_campaign(given, 1_000_000_000, tmp_path / "a.toml")


def test_options_answer_every_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["init", *EVERYTHING]) == 0
    assert capsys.readouterr().err == ""
    assert main(["plan", "router.toml"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.schema.json", "router.toml"]
    assert (tmp_path / "campaign.schema.json").read_text(encoding="utf-8") == schema_text()
    capsys.readouterr()
    before = (tmp_path / "router.toml").read_text(encoding="utf-8")
    assert main(["init", *EVERYTHING]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert (tmp_path / "router.toml").read_text(encoding="utf-8") == before
    assert main(["init", "b.toml", *EVERYTHING[1:], "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["campaign"] == (tmp_path / "b.toml").read_text(encoding="utf-8")


def test_questions_are_asked_until_they_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        "siit46x",
        "siit64",
        "somewhere",
        "root@192.0.2.1",
        "eth1",
        " ".join(PAIR),
        "speed",
        "throughput, delay",
        "2h",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert main(["init"]) == 0
    asked = capsys.readouterr().err
    assert asked.count("technology [router44]: ") == asked.count("measure [throughput]: ") == 2
    document = tomllib.loads((tmp_path / "campaign.toml").read_text(encoding="utf-8"))
    assert document["gateway"]["technology"] == "siit64" and document["left"]["port"] == PAIR[0]
    assert document["gateway"]["control"]["host"] == "root@192.0.2.1"
    assert {"throughput", "delay"} <= set(document)


@pytest.mark.parametrize("lines", [[], ["nat44"], ["nat44", "namespaces", "", "throughput"]])
def test_the_end_of_input_leaves_nothing(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(["init"]) == 2
    assert "the input ends" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


class Interrupting(io.StringIO):
    def readline(self, size: int | None = -1) -> NoReturn:
        raise KeyboardInterrupt


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", Interrupting())
    assert main(["init"]) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--technology", "nat4"], "--technology: 'nat4' is not one of"),
        (["--technology", "nat44", "--place", "there"], "--place: 'there' is not one of"),
        (["--technology", "router44", "--recipe", "nft-nat44"], "--recipe: 'nft-nat44' is not one of linux-"),
        (["--technology", "router44", "--place", "ports", "--ports", "a", "a"], "two different ports"),
        (["--technology", "router44", "--place", "ports", "--recipe", "linux-router4"], "--recipe: does not apply"),
        (["--technology", "router44", "--place", "namespaces", "--ports", *PAIR], "--ports: does not apply"),
        ([*EVERYTHING[1:7], "--measure", "connection_tear_down_rate"], "--measure: 'connection_tear_down_rate'"),
        ([*EVERYTHING[1:-1], "soon"], "--time: "),
        ([*EVERYTHING[1:-1], "1s"], "time: is too short"),
        (["--technology", "router44", "--place", "ports", "--ports", "x:1", "y:2", *EVERYTHING[7:]], "left.port"),
    ],
)
def test_wrong_options_are_told(
    options: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["init", *options]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

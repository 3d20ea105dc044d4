"""`gatemark run` with several campaign files: one report, one resume, and what fails does not stop the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Self

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedGateway
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment

from gatemark import session
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.errors import TestBedError

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

DEVICE = SimulatedDevice(capacity_forward=412_345)
NAMES = "tayga-siit64", "linux-router4"
"""Not in alphabetical order."""


class Bed(SimulatedTestBed):
    """A test bed that tells when it is entered."""

    def __init__(self, campaign: Campaign, on_entering: Callable[[str], None]) -> None:
        super().__init__(campaign, SimulatedGateway(DEVICE))
        self._on_entering = partial(on_entering, campaign.name)

    def __enter__(self) -> Self:
        self._on_entering()
        return self


@pytest.fixture
def files(tmp_path: Path, write_campaign: Callable[..., Path]) -> list[str]:
    written = [write_campaign(recipe=name).rename(tmp_path / f"{name}.toml") for name in NAMES]
    return list(map(str, written))


@pytest.fixture
def open_in_turn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Simulate what a session works with; return the campaigns whose test bed was entered, as they come."""

    def set_up(failing: Mapping[str, BaseException] = MappingProxyType({})) -> list[str]:
        entered: list[str] = []

        def enter(name: str) -> None:
            entered.append(name)
            if name in failing:
                raise failing[name]

        equipment = replace(simulated_equipment(DEVICE), open_testbed=lambda campaign: Bed(campaign, enter))
        monkeypatch.setattr(session, "own_equipment", lambda: equipment)
        return entered

    return set_up


def statuses(folder: Path) -> dict[str, str]:
    return {path.parent.name: json.loads(path.read_text())["status"] for path in folder.glob("*/result.json")}


def test_each_has_its_folder_and_all_have_one_report(
    files: list[str], tmp_path: Path, open_in_turn: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    entered = open_in_turn()
    folder = tmp_path / "out"
    assert main(["run", *files, "--output", str(folder), "--json"]) == 0
    assert entered == [*NAMES]
    assert {each["name"] for each in json.loads(capsys.readouterr().out)["results"]} == {*NAMES}
    assert "All gateways" in (folder / "report.html").read_text(encoding="utf-8")
    assert not list(folder.glob("*/report.html"))


def test_the_next_is_measured_after_one_that_fails_which_is_tried_again(
    files: list[str], tmp_path: Path, open_in_turn: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    error = TestBedError(what="there is no program tayga", where="tayga", fix="install it")
    open_in_turn({NAMES[0]: error})
    folder = tmp_path / "out"
    assert main(["run", *files, "--output", str(folder)]) == TestBedError.exit_status
    assert statuses(folder) == {NAMES[1]: "complete"}
    told = capsys.readouterr()
    assert "there is no program tayga" in told.err
    assert f"report: {folder / 'report.html'}" in told.out
    entered = open_in_turn()
    assert main(["run", "--resume", str(folder)]) == 0
    assert entered == [NAMES[0]]
    assert statuses(folder) == dict.fromkeys(NAMES, "complete")


def test_if_all_fail_there_is_no_report(
    files: list[str], tmp_path: Path, open_in_turn: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    open_in_turn({name: TestBedError(what=f"no {name}", where="here", fix="") for name in NAMES})
    assert main(["run", *files, "--output", str(tmp_path / "out"), "--json"]) == TestBedError.exit_status
    assert [each["what"] for each in json.loads(capsys.readouterr().out)["errors"]] == [f"no {NAMES[0]}"]
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_stop_ends_all_of_them_and_says_how_to_go_on(
    files: list[str], tmp_path: Path, open_in_turn: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    entered = open_in_turn({NAMES[0]: KeyboardInterrupt()})
    folder = tmp_path / "out"
    assert main(["run", *files, "--output", str(folder)]) == 130
    assert entered == [NAMES[0]]
    told = capsys.readouterr().err
    assert told.endswith(
        f"error: {folder}: stopped; completed trials are kept\n\nhint: resume with: gatemark run --resume {folder}\n"
    )
    entered = open_in_turn()
    assert main(["run", "--resume", str(folder)]) == 0
    assert entered == [*NAMES]


def test_what_cannot_be_one_of_several_is_refused_before_anything_is_made(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    series = tmp_path / "series.toml"
    series.write_text(Path(files[0]).read_text() + '\n[[vary]]\n"seed" = [1, 2]\n')
    folder = tmp_path / "out"
    assert main(["run", *files, str(series), "--output", str(folder)]) == 2
    assert f"gatemark run {series}" in capsys.readouterr().err
    assert not folder.exists()
    folder.mkdir()
    assert main(["run", *files, "--output", str(folder)]) == 2
    assert not list(folder.iterdir())


@pytest.mark.parametrize("text", ["{}", '{"folders": ["../other"]}', '{"folders": [1]}', "[]", ""])
def test_a_damaged_list_leads_nowhere(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".campaigns").write_text(text)
    assert main(["run", "--resume", str(tmp_path)]) == 3
    assert ".campaigns" in capsys.readouterr().err

"""Whatever lies in a result folder or an archive: one error, or a result; never a traceback, and never much memory."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from tests.archives import repacked
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.archive.write import write_archive
from gatemark.cli.main import main
from gatemark.errors import ResultError
from gatemark.results.part import Figure, Part, PerRepetition, Ratio
from gatemark.results.store import ResultFolder, samples_name
from gatemark.session import measure
from gatemark.stored import samples_of

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

DAMAGES = {
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "number": b'{"schema": ' + b"9" * 5000 + b"}",
    "list": b"[]",
    "text": b'"x"',
    "object": b"{}",
    "zeros": b"\0" * 10,
    "no UTF-8": b'{"a": "\xe9"}',
    "surrogate": b'{"name": "\\ud800"}',
    "infinity": b'{"schema": 1e999}',
    "no number": b'{"schema": NaN}',
    "nothing": b"",
    "long": b"0" * (8 << 20),
}
FILES = (
    "result.json", "provenance.json", "campaign.json", "gateway.json", "selftest.json", "campaign.toml", "trials.jsonl",
    "result.csv", ".origin",
)  # fmt: skip
CAMPAIGN = """
name = "router"
repetitions = 1
testbed = {kind = "loopback"}
gateway = {technology = "router44"}
traffic = {frame_sizes = {family = "ipv4", octets = [64]}}
trial = {duration = "1s"}
frame_loss = {rates = ["20k"]}
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    (folder / "campaign.toml").write_text(CAMPAIGN)
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=50_000))
    return measure(folder / "campaign.toml", output=folder / "router", equipment=equipment).folder


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_one_error(
    name: str, damage: bytes, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = shutil.copytree(good, tmp_path / "bad")
    (bad / name).write_bytes(damage)
    for command in (["report", str(bad)], ["compare", str(good), str(bad)], ["run", "--resume", str(bad)]):
        status = main(command)
        said = capsys.readouterr()
        assert status in (0, 1, 2, 3), command
        assert status == 0 or said.err.startswith(("error: ", "warning: ")) or said.out, command


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", [*FILES[:-1], "archive/archive.json"])
def test_a_damaged_file_of_an_archive_is_not_verified(
    name: str, damage: bytes, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(files: dict[str, bytes]) -> None:
        files[name] = damage

    archive = repacked(write_archive(good, tmp_path / "good.tar.gz").path, tmp_path / "bad.tar.gz", edit)
    assert main(["archive", "--verify", str(archive)]) in (1, 2, 3)
    capsys.readouterr()


def _fewer_values(result: Any) -> None:
    result["runs"][0]["points"][0]["losses"][0]["undelivered"] *= 2


def _half_a_character(result: Any) -> None:
    result["name"] = "\ud800"


def _one_port(provenance: Any) -> None:
    provenance["sessions"][-1]["engine"]["queues"] = {"left": 1}


CONTRADICTIONS: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "fewer values": ("result.json", _fewer_values, "different numbers of repetitions"),
    "half a character": ("result.json", _half_a_character, "half of a character"),
    "queues of one port": ("provenance.json", _one_port, "provenance.json is damaged"),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_file_that_contradicts_itself_is_one_error(
    contradiction: tuple[str, Callable[[Any], None], str],
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, edit, words = contradiction
    bad = shutil.copytree(good, tmp_path / "bad")
    document = json.loads((bad / name).read_text())
    edit(document)
    (bad / name).write_text(json.dumps(document))
    assert main(["report", str(bad)]) == 3
    assert words in capsys.readouterr().err


def test_what_nobody_foresaw_is_one_error_too(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gatemark.stored.by_procedure", lambda _name: 1 // 0)
    assert main(["report", str(shutil.copytree(good, tmp_path / "bad"))]) == 3
    said = capsys.readouterr().err
    assert "damaged or contradict each other" in said and "report this as a defect" in said


def test_each_figure_of_a_part_has_a_value_for_each_repetition() -> None:
    class Delays(PerRepetition):
        of_one_repetition: ClassVar = ("histogram",)
        offered: tuple[int, ...]
        delay_ns: dict[str, Figure]
        histogram: tuple[int, ...]

    of_two, of_three = Figure.of([1, 2]), Figure.of([1, 2, 3])
    assert Delays(offered=(5, 5), delay_ns={"p50": of_two, "p99": of_two}, histogram=(1,)).offered == (5, 5)
    with pytest.raises(ValidationError, match="offered 2, delay_ns 3, delay_ns 2"):
        Delays(offered=(5, 5), delay_ns={"p50": of_three, "p99": of_two}, histogram=(1,))


@pytest.mark.parametrize("text", ["1e999999999", "1/0", "-1", "0.5", "\u0661", "9" * 5000, "", None, [1]])
def test_a_ratio_of_others_is_a_short_fraction(text: object) -> None:
    class Shared(Part):
        share: Ratio

    assert Shared.model_validate({"share": "4/5"}).share == Fraction(4, 5)
    with pytest.raises(ValidationError, match="is not a ratio"):
        Shared.model_validate({"share": text})


KINDS: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "folder": Path.mkdir,
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "loose link": lambda path: path.symlink_to("/nowhere"),
}


def test_samples_are_not_read_through_a_link(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "theirs")
    mine, samples = tmp_path / "mine", folder.path / samples_name(1)
    mine.write_text("number,phase,at_s\n1,trial,0.5\n\xe9,trial,1\n", "latin-1")
    samples.parent.mkdir()
    shutil.copy(mine, samples)
    assert samples_of(folder, 1) == ({"number": "1", "phase": "trial", "at_s": "0.5"},)
    samples.unlink()
    samples.symlink_to(mine)
    with pytest.raises(ResultError, match="is a link"):
        samples_of(folder, 1)


@pytest.mark.parametrize("put", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_one_error(
    name: str, put: Callable[[Path], None], good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = shutil.copytree(good, tmp_path / "bad")
    (bad / name).unlink(missing_ok=True)
    put(bad / name)
    for command in (["report", str(bad)], ["compare", str(good), str(bad)], ["run", "--resume", str(bad)]):
        assert main(command) in (0, 1, 2, 3)
    capsys.readouterr()

"""Test beds of a laboratory, campaigns on them as jobs, and what Slurm is asked for."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from gatemark.campaign.columns import SeriesFile
from gatemark.campaign.file import CampaignText
from gatemark.cli.main import main
from gatemark.errors import ConfigError, TestBedError
from gatemark.laboratory import slurm
from gatemark.laboratory.beds import on_bed, read_bed
from gatemark.laboratory.jobs import Job, make_jobs

ROOT = Path(__file__).parents[2]
CAMPAIGN = """repetitions = 1
[gateway]
technology = "router44"
[testbed]
kind = "loopback"
[frame_loss]
rates = ["1k"]
"""
VARY = '\n[[vary]]\n"traffic.frame_sizes.octets" = [64, 512]\n'
SIZES = '[traffic]\nframe_sizes = {family = "ipv4", octets = 64}\n'
LABORATORY = """[beds.one]
node = "bench1"
licence = "first"
[beds.one.campaign]
testbed = {kind = "loopback", cores = [1]}
validity = {retries = 2}
[beds.two]
campaign.gateway.control = {commands = "box.toml"}
campaign.testbed.recipe = "recipes/mine.toml"
"""


@pytest.fixture
def laboratory(tmp_path: Path) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(LABORATORY)
    return path


def written(path: Path, text: str = CAMPAIGN) -> Path:
    path.write_text(text)
    return path


def test_a_test_bed_has_a_node_and_a_licence(laboratory: Path) -> None:
    ports, namespaces = read_bed(laboratory, "one"), read_bed(laboratory, "two")
    assert (ports.node, ports.licence) == ("bench1", "first")
    assert (namespaces.node, namespaces.licence) == (None, "two")
    assert namespaces.campaign["gateway"]["control"]["commands"] == str(laboratory.parent / "box.toml")
    assert namespaces.campaign["testbed"]["recipe"] == str(laboratory.parent / "recipes/mine.toml")


def test_a_campaign_has_the_tables_of_its_test_bed(laboratory: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "c.toml")
    source = on_bed(file, read_bed(laboratory, "one"))
    assert isinstance(source, CampaignText)
    assert source.campaign.testbed.cores == (1,)
    assert source.campaign.validity.retries == 2
    assert source.campaign.testbed.kind == "loopback"
    assert on_bed(written(tmp_path / "again.toml", source.text), None).text == source.text
    assert on_bed(file, None).text == CAMPAIGN


def test_a_series_has_them_in_each_column(laboratory: Path, tmp_path: Path) -> None:
    series = on_bed(written(tmp_path / "s.toml", CAMPAIGN + SIZES + VARY), read_bed(laboratory, "one"))
    assert isinstance(series, SeriesFile)
    assert [column.campaign.testbed.cores for column in series.columns] == [(1,), (1,)]


def test_what_both_say_must_be_alike(laboratory: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "c.toml", CAMPAIGN.replace('"loopback"', '"loopback"\ncores = [0, 1]'))
    with pytest.raises(ConfigError) as caught:
        on_bed(file, read_bed(laboratory, "one"))
    (problem,) = caught.value.problems
    assert problem.what == "is [0, 1], the test bed one says [1]"
    assert problem.where == f"{file}: testbed.cores"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("[beds.a]\nnode = 7\n", "a", "beds.a.node"),
        ("[beds.a]\nlicense = 'x'\n", "a", "unknown key"),
        ("[beds.a]\ncampaign.throughput = {resolution = '5%'}\n", "a", "throughput is not the table of a test bed"),
        ("[beds.a]\n", "b", "there is no test bed 'b'"),
        ("beds = ", "a", "is not TOML"),
        (f"[beds.a]\ncampaign.left{'.a' * 2000} = 1\n", "a", "nested too deeply"),
        ("", "a", "beds"),
    ],
)
def test_a_bad_file_of_test_beds_is_refused(text: str, name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_bed(written(tmp_path / "lab.toml", text), name)
    assert any(said in f"{problem.where} {problem.what}" for problem in caught.value.problems)


def test_each_campaign_and_each_column_is_a_job(laboratory: Path, tmp_path: Path) -> None:
    files = [written(tmp_path / "c.toml"), written(tmp_path / "s.toml", CAMPAIGN + SIZES + VARY)]
    output = tmp_path / "out"
    jobs = make_jobs(files, read_bed(laboratory, "one"), output)
    assert [job.name for job in jobs] == ["c", "s-01-octets_64", "s-02-octets_512", "out-report"]
    assert [job.measures for job in jobs] == [True, True, True, False]
    for job in jobs[:-1]:
        assert job.commands[0][-3:] == ("--resume", str(job.folder), "--trust-commands")
        assert (job.folder / "campaign.toml").exists()
    assert [command[-2:] for command in jobs[-1].commands] == [
        ("report", str(output / "c")),
        ("report", str(output / "s")),
    ]


def test_nothing_is_left_if_a_file_is_bad(laboratory: Path, tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.toml"), written(tmp_path / "bad.toml", CAMPAIGN.replace("router44", "rooter"))
    worse = written(tmp_path / "worse.toml", CAMPAIGN.replace("repetitions = 1", "repetitions = 0"))
    with pytest.raises(ConfigError) as caught:
        make_jobs([good, bad, worse], read_bed(laboratory, "one"), tmp_path / "out")
    assert {problem.where.partition(":")[0] for problem in caught.value.problems} == {str(bad), str(worse)}
    with pytest.raises(ConfigError, match="several campaigns"):
        make_jobs([good, good], None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_script_ends_with_the_first_bad_status(tmp_path: Path) -> None:
    def status_of(*commands: tuple[str, ...]) -> int:
        job = Job(name="j", folder=tmp_path, commands=commands, measures=True)
        return subprocess.run(["sh"], input=slurm.script(job), text=True, check=False).returncode

    assert status_of(("true",), ("true",)) == 0
    assert status_of(("sh", "-c", "exit 3"), ("sh", "-c", "exit 4"), ("true",)) == 3
    assert status_of(("sh", "-c", "exit 5")) == 5


FAKE = """#!/bin/sh
echo "$(basename $0) $@" >> {log}
case "$(basename $0)" in
scontrol) echo "LicenseName=first Total={total} Used=0 Free=1 Reserved=0 Remote=no" ;;
sbatch)
    cat > /dev/null
    n=$(grep -c ^sbatch {log})
    [ $n -le {accepted} ] || {{ echo "sbatch: error: no" >&2; exit 1; }}
    echo "$((100 + n));cluster"
    ;;
esac
"""


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Put programs of Slurm into the path that write down how they were called."""
    log = tmp_path / "calls"
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(*, total: int = 1, accepted: int = 9) -> Path:
        for name in ("scontrol", "sbatch", "scancel"):
            program = folder / name
            program.write_text(FAKE.format(log=log, total=total, accepted=accepted))
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return log

    return make


def submit(laboratory: Path, tmp_path: Path, *more: str) -> int:
    file = written(tmp_path / "c.toml")
    output = str(tmp_path / "out")
    return main(["submit", str(file), "--laboratory", str(laboratory), "--bed", "one", "--output", output, *more])


def test_slurm_is_asked_for_the_licence_and_the_node(  # type: ignore[no-untyped-def]
    laboratory: Path, tmp_path: Path, fake_slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    log = fake_slurm()
    assert submit(laboratory, tmp_path, "--sbatch=--partition=lab", "--json") == 0
    assert [job["number"] for job in json.loads(capsys.readouterr().out)] == [101, 102]
    _, first, last = log.read_text().splitlines()
    for option in ("--licenses=first:1", "--nodelist=bench1", "--requeue", "--partition=lab", "--job-name=c"):
        assert option in first.split()
    assert "--dependency=afterany:101" in last.split()
    assert "--licenses" not in last


def test_a_refused_job_cancels_those_before_it(  # type: ignore[no-untyped-def]
    laboratory: Path, tmp_path: Path, fake_slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    log = fake_slurm(accepted=1)
    assert submit(laboratory, tmp_path) == TestBedError.exit_status
    assert log.read_text().splitlines()[-1] == "scancel 101"
    assert "sbatch: error: no" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_licence_that_slurm_has_twice_is_refused(  # type: ignore[no-untyped-def]
    laboratory: Path, tmp_path: Path, fake_slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_slurm(total=2)
    assert submit(laboratory, tmp_path) == 2
    assert "Slurm has 2 licences first" in capsys.readouterr().err


def test_without_slurm_there_is_one_clear_error(
    laboratory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert submit(laboratory, tmp_path) == 2
    assert "there is no program scontrol" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [
    ["submit", "--engine", "local"], ["submit", "c.toml"], ["submit", "c.toml", "--bed", "one"],
    ["submit", "c.toml", "--engine", "local", "--sbatch=-x"], ["doctor", "--laboratory", "lab.toml", "--bed", "one"],
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(
    arguments: list[str], laboratory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(laboratory.parent)
    written(laboratory.parent / "c.toml")
    assert main(arguments) == 2
    assert "hint:" in capsys.readouterr().err


def test_the_page_shows_the_files_of_the_examples() -> None:
    page = (ROOT / "docs/how-to/laboratory.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```\w+\n(.*?)^```$", page)
    lab = (ROOT / "examples/laboratory/lab.toml").read_text(encoding="utf-8")
    assert blocks[0] in lab
    assert (ROOT / "examples/laboratory/Snakefile").read_text(encoding="utf-8") in blocks
    assert read_bed(ROOT / "examples/laboratory/lab.toml", "bench1").node == "bench1"

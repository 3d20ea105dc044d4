"""Campaigns as jobs of a real Slurm, on two test beds of this machine: in turn, side by side, killed and resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.system.slurm_cluster import Cluster, missing_program

import gatemark
from gatemark.series.run import open_series

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces are made"),
    pytest.mark.skipif(missing_program() is not None, reason=f"there is no {missing_program()}: apt install slurm-wlm"),
    pytest.mark.alone,
]

CAMPAIGN = """repetitions = {repetitions}
[testbed]
kind = "loopback"
[gateway]
technology = "router44"
[traffic]
frame_sizes = {{family = "ipv4", octets = 64}}
[trial]
duration = "{duration}"
settle = "0s"
learn = "10ms"
drain = "10ms"
rest = "10ms"
[validity]
retries = 20
lateness_max = "1s"
[frame_loss]
rates = [1000, 2000]
"""
LABORATORY = """
[beds.one]
node = "beda"
licence = "bed1"
campaign.testbed = {cores = [0]}

[beds.two]
node = "bedb"
licence = "bed2"
campaign.testbed = {cores = [1]}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def laboratory(tmp_path: Path) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(LABORATORY)
    return path


def submitted(cluster: Cluster, laboratory: Path, bed: str, *files: Path) -> list[dict[str, Any]]:
    """Submit files and return the jobs."""
    command = [sys.executable, "-m", "gatemark.cli.main", "submit", *map(str, files), "--laboratory", str(laboratory)]
    command += ["--bed", bed, "--output", str(laboratory.parent / f"results-{bed}"), "--json"]
    done = subprocess.run(
        cluster.inside(*command), env=cluster.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    jobs: list[dict[str, Any]] = json.loads(done.stdout)
    return jobs


def written(path: Path, *, repetitions: int = 1, duration: str = "200ms", more: str = "") -> Path:
    path.write_text(CAMPAIGN.format(repetitions=repetitions, duration=duration) + more)
    return path


def sessions_of(folder: Path) -> list[tuple[str, str]]:
    provenance = json.loads((folder / "provenance.json").read_text())
    return [(session["started_at"], session["finished_at"]) for session in provenance["sessions"]]


def log_of(job: dict[str, Any]) -> str:
    return Path(job["log"]).read_text() if Path(job["log"]).exists() else "no log"


def shown(cluster: Cluster, job: dict[str, Any]) -> dict[str, str]:
    """Return what Slurm says of a job."""
    said = cluster.ask("scontrol", "show", "job", str(job["number"]), "--oneliner")
    return dict(word.split("=", 1) for word in said.split() if "=" in word)


def states_of(cluster: Cluster, jobs: list[dict[str, Any]]) -> list[str]:
    return [shown(cluster, job)["JobState"] for job in jobs]


def times_of(cluster: Cluster, jobs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return when each job of a test bed began and ended."""
    return sorted(
        (row["StartTime"], row["EndTime"]) for row in (shown(cluster, job) for job in jobs if job["measures"])
    )


def test_jobs_never_share_a_test_bed(cluster: Cluster, laboratory: Path, tmp_path: Path, endures: bool) -> None:
    vary = '\n[[vary]]\n"traffic.frame_sizes.octets" = [64, 512]\n'
    jobs = {}
    cluster.ask("scontrol", "update", "nodename=beda,bedb", "state=drain", "reason=all begin together")
    alone = {"one": ["alone-one", "again-one"], "two": ["alone-two"]}
    for bed, names in alone.items():
        files = [written(tmp_path / f"{name}.toml") for name in names]
        if endures:
            files.append(written(tmp_path / f"series-{bed}.toml", more=vary))
        jobs[bed] = submitted(cluster, laboratory, bed, *files)
    cluster.ask("scontrol", "update", "nodename=beda,bedb", "state=resume")
    every = [*jobs["one"], *jobs["two"]]
    cluster.wait_for(lambda: set(states_of(cluster, every)) == {"COMPLETED"}, limit_s=120)
    spans = {bed: times_of(cluster, of_bed) for bed, of_bed in jobs.items()}
    assert {bed: len(of_bed) for bed, of_bed in spans.items()} == {
        bed: len(names) + (2 if endures else 0) for bed, names in alone.items()
    }
    for bed, of_bed in spans.items():
        assert len(jobs[bed]) == len(of_bed) + 1, "the last one makes reports"
        assert all(before[1] <= after[0] for before, after in pairwise(of_bed)), of_bed
    assert any(first[0] < second[1] and second[0] < first[1] for first in spans["one"] for second in spans["two"]), (
        f"both at work: {spans}"
    )
    for bed, names in alone.items():
        folder = tmp_path / f"results-{bed}"
        if endures:
            assert open_series(folder / f"series-{bed}").document.status == "complete"
            assert (folder / f"series-{bed}" / "report.html").exists()
        assert all(gatemark.open_result(folder / name).document.status == "complete" for name in names)
        cores = json.loads((folder / f"alone-{bed}" / "campaign.json").read_text())["testbed"]["cores"]
        assert cores == [{"one": 0, "two": 1}[bed]]


@pytest.mark.nightly("half a minute, in which Slurm notices that a node died")
def test_a_job_whose_node_died_goes_on(cluster: Cluster, laboratory: Path, tmp_path: Path) -> None:
    measuring, last = jobs = submitted(
        cluster, laboratory, "one", written(tmp_path / "long.toml", repetitions=8, duration="500ms")
    )
    journal = Path(measuring["folder"]) / "trials.jsonl"
    cluster.wait_for(lambda: journal.exists() and journal.read_text().count("\n") >= 4)
    cluster.kill("beda")
    before = journal.read_text().splitlines()
    cluster.ask("scontrol", "update", "nodename=beda", "state=down", "reason=killed")
    cluster.wait_for(lambda: states_of(cluster, [measuring]) == ["PENDING"])
    cluster.start_node("beda")
    cluster.wait_for(lambda: cluster.is_back("beda"))
    cluster.ask(
        "scontrol", "update", f"jobid={measuring['number']}", "starttime=now+5"
    )  # the killing of its last run is over then
    cluster.wait_for(lambda: set(states_of(cluster, jobs)) == {"COMPLETED"}, limit_s=120)
    result = gatemark.open_result(Path(measuring["folder"]))
    assert result.document.status == "complete"
    assert result.report_file.exists()
    assert len(sessions_of(Path(measuring["folder"]))) == 2
    after = journal.read_text().splitlines()
    assert after[: len(before) - 1] == before[:-1], "what was measured stays; the last line may have been torn"
    assert "report" in log_of(last)


def test_a_test_bed_that_slurm_does_not_know_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    laboratory = tmp_path / "lab.toml"
    laboratory.write_text('[beds.third]\nnode = "beda"\n')
    file = written(tmp_path / "alone.toml")
    command = [sys.executable, "-m", "gatemark.cli.main", "submit", str(file), "--laboratory", str(laboratory)]
    done = subprocess.run(
        cluster.inside(*command, "--bed", "third", "--output", str(tmp_path / "results")),
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Slurm has no licence third" in done.stderr
    assert not (tmp_path / "results").exists()
    assert cluster.ask("squeue", "-h") == ""

"""`gatemark submit FILE...`: campaigns as jobs, on a test bed of a laboratory."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any, Literal

from gatemark.cli.common import named_bed
from gatemark.cli.output import AsJson, print_json
from gatemark.errors import ConfigError
from gatemark.laboratory.beds import Bed
from gatemark.laboratory.jobs import Job, make_jobs
from gatemark.laboratory.local import run_commands, run_jobs
from gatemark.laboratory.slurm import submit_jobs
from gatemark.results.store import default_folder


def submit(
    *files: Path,
    engine: Literal["slurm", "local"] = "slurm",
    laboratory: Path | None = None,
    bed: str | None = None,
    output: Path | None = None,
    sbatch: tuple[str, ...] = (),
    as_json: AsJson = False,
) -> int:
    """Submit a job for each campaign and for each column of a file with [[vary]]. A last job writes the reports.

    gatemark checks every file and makes its folder before it submits the first job. A job resumes its folder, so a
    requeued or repeated job measures only what is missing.

    Example: gatemark submit nat44.toml nat64.toml --laboratory lab.toml --bed bench1

    Parameters
    ----------
    files
        Campaign files (TOML).
    engine
        slurm: submit to Slurm and return. local: run the jobs here, one after the other.
    laboratory
        Laboratory file of test beds (TOML). Slurm needs it.
    bed
        Test bed in that file to measure everything on.
    output
        Folder for the results; by default a new folder in results/.
    sbatch
        Option to pass to sbatch, for example --sbatch=--partition=lab. Can be repeated.
    as_json
        Print the jobs as JSON instead of text.
    """
    place = _bed(engine, laboratory, bed, sbatch)
    if not files:
        raise ConfigError(
            what="no campaign file is named", where="gatemark submit", fix="gatemark submit campaign.toml"
        )
    path = (output if output is not None else default_folder("jobs")).absolute()
    jobs = make_jobs(files, place, path)
    if engine == "local":
        failed = run_jobs(jobs, _run)
        if as_json:
            print_json([_json(job, None) for job in jobs])
        return 1 if failed else 0
    assert place is not None, "_bed was called"
    try:
        numbers = submit_jobs(jobs, place, sbatch)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    if as_json:
        print_json([_json(job, number) for job, number in zip(jobs, numbers, strict=True)])
        return 0
    for job, number in zip(jobs, numbers, strict=True):
        print(f"job {number}  {job.name}  {job.folder}")
    print(f"test bed {place.name}; squeue --jobs {','.join(map(str, numbers))} shows them; each folder has a job.log")
    return 0


def _bed(engine: str, laboratory: Path | None, name: str | None, sbatch: tuple[str, ...]) -> Bed | None:
    """Return the test bed that is meant; None: what the campaign files say."""
    if engine == "local" and sbatch:
        raise ConfigError(what="applies only to --engine slurm", where="--sbatch", fix="leave it out")
    bed = named_bed(laboratory, name)
    if engine == "slurm" and bed is None:
        raise ConfigError(
            what="a Slurm job needs a test bed, which no other job may use meanwhile",
            where="gatemark submit",
            fix="write --laboratory lab.toml --bed NAME, or --engine local",
        )
    return bed


def _run(job: Job) -> int:
    """Run a job and say so on standard error: JSON may follow."""
    print(f"{job.name}: {job.folder}", file=sys.stderr)
    status = run_commands(job)
    print(f"{job.name}: {'done' if status == 0 else f'exit status {status}, see {job.log}'}", file=sys.stderr)
    return status


def _json(job: Job, number: int | None) -> dict[str, Any]:
    return {
        "name": job.name,
        "folder": str(job.folder),
        "number": number,
        "log": str(job.log),
        "measures": job.measures,
    }

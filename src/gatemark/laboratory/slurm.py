"""Jobs of Slurm: a test bed is a licence, so no two jobs are ever on one; a job that lost its node is requeued.

Slurm must know the licences (`Licenses=` of slurm.conf). gatemark asks for one of them and schedules nothing itself.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Sequence

from gatemark.errors import ConfigError, TestBedError
from gatemark.laboratory.beds import Bed
from gatemark.laboratory.jobs import Job


def submit_jobs(jobs: Sequence[Job], bed: Bed, options: Sequence[str]) -> list[int]:
    """Submit every job and return the numbers that Slurm gave them; the one of the reports waits for the others.

    `options` are passed on to sbatch. If one is refused those before it are cancelled. Raises ConfigError,
    TestBedError.
    """
    _check_licence(bed)
    numbers: list[int] = []
    try:
        for job in jobs:
            numbers.append(_sbatch(job, bed, numbers, options))
    except BaseException:
        if numbers:
            with contextlib.suppress(TestBedError, ConfigError):
                _ask(["scancel", *map(str, numbers)])
        raise
    return numbers


def _check_licence(bed: Bed) -> None:
    """Raise ConfigError if Slurm has no such licence, or several: two jobs would share the test bed."""
    said = _ask(["scontrol", "show", "licenses", "--oneliner"])
    known = {
        words["LicenseName"]: int(words.get("Total", "0"))
        for words in (dict(word.split("=", 1) for word in line.split() if "=" in word) for line in said.splitlines())
        if "LicenseName" in words
    }
    if known.get(bed.licence) != 1:
        there = f"{known[bed.licence]} licences" if bed.licence in known else "no licence"
        raise ConfigError(
            what=f"Slurm has {there} {bed.licence}, so it would not keep two jobs off the test bed {bed.name}",
            where="slurm.conf",
            fix=f"write Licenses={bed.licence}:1 there, or the licence's name into the file of test beds",
        )


def _sbatch(job: Job, bed: Bed, before: Sequence[int], options: Sequence[str]) -> int:
    log = job.log.resolve()
    asked = ["--parsable", f"--job-name={job.name}", "--requeue", "--open-mode=append", f"--output={log}"]
    if job.measures:
        asked += [f"--licenses={bed.licence}:1"]
        asked += [f"--nodelist={bed.node}"] if bed.node is not None else []
    else:  # it joins what there is, also where a job failed
        asked += [f"--dependency=afterany:{':'.join(map(str, before))}"]
    said = _ask(["sbatch", *asked, f"--chdir={os.getcwd()}", *options], script(job))
    return int(said.split(";")[0])


def script(job: Job) -> str:
    """Return what the job runs; it ends with the first exit status that is not 0.

    A single command takes the place of the shell, so that Slurm's signals reach it.
    """
    if len(job.commands) == 1:
        return f"#!/bin/sh\nexec {shlex.join(job.commands[0])}\n"
    lines = ["#!/bin/sh", "status=0"]
    for command in job.commands:
        lines.append(f"{shlex.join(command)} || {{ last=$?; [ $status -ne 0 ] || status=$last; }}")
    return "\n".join([*lines, "exit $status", ""])


def _ask(command: Sequence[str], text: str = "") -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigError(
            what=f"there is no program {command[0]}",
            where="--engine slurm",
            fix="run this where Slurm's commands are (Debian: slurm-client), or write --engine local",
        ) from None
    if done.returncode != 0:
        raise TestBedError(
            what=f"{command[0]} failed: {(done.stderr or done.stdout).strip()}",
            where=shlex.join(command[:4]),
            fix="see what Slurm says: sinfo, scontrol show licenses",
        )
    return done.stdout.strip()

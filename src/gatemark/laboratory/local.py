"""Jobs on this machine, one after the other."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from gatemark.errors import Interrupted
from gatemark.files import open_to_append
from gatemark.laboratory.jobs import Job


def run_jobs(jobs: Sequence[Job], run: Callable[[Job], int]) -> int:
    """Run each job, also after one that failed; return how many failed. `run` returns the exit status of a job.

    A job that was stopped by hand stops all.
    """
    failed = 0
    for job in jobs:
        status = run(job)
        if status == Interrupted.exit_status:
            raise KeyboardInterrupt
        failed += status != 0
    return failed


def run_commands(job: Job) -> int:
    """Run the commands of a job, as a scheduler does; return the first exit status that is not 0, or 0."""
    first = 0
    with open_to_append(job.log) as log:
        for command in job.commands:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode
            first = first or status
    return first

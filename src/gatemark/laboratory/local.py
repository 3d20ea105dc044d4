"""Jobs on this machine, one after the other: where there is no scheduler, or to try what will be submitted."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from gatemark.errors import Interrupted
from gatemark.files import open_to_append
from gatemark.laboratory.jobs import Job

INTERRUPTED = Interrupted.exit_status


def run_jobs(jobs: Sequence[Job], on_job: Callable[[Job, int | None], None]) -> int:
    """Run each job; return how many failed. `on_job` is told when one begins and its exit status when it ends.

    A job that was stopped by hand stops all; the report of what there is can be made with the last job's command.
    """
    failed = 0
    for job in jobs:
        on_job(job, None)
        status = _run(job)
        on_job(job, status)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        failed += status != 0
    return failed


def _run(job: Job) -> int:
    """Return the first exit status that is not 0, or 0."""
    first = 0
    with open_to_append(job.log) as log:
        for command in job.commands:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False).returncode
            first = first or status
    return first

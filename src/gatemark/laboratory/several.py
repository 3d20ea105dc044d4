"""Several campaigns that are measured one after the other, with one report for all.

::

    DIR/.campaigns      names of the folders below, in the order in which they are measured
    DIR/NAME/           the result folder of a campaign, like that of any other
    DIR/report.html     the report of all
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gatemark.errors import ResultError
from gatemark.laboratory.jobs import Job, make_jobs, measuring
from gatemark.results.store import ResultFolder, file_name

CAMPAIGNS_FILE = ".campaigns"


def is_several(path: Path) -> bool:
    """Whether a folder is that of several campaigns, which can be resumed together."""
    return (path / CAMPAIGNS_FILE).is_file()


def begin_several(files: Sequence[Path], output: Path) -> tuple[Job, ...]:
    """Make the folder of each campaign below `output`, which is new, and return the jobs that measure them.

    All files are checked before the first folder is made. Raises GatemarkError.
    """
    jobs = make_jobs(files, None, output)[:-1]
    ResultFolder(path=output).write_json(CAMPAIGNS_FILE, {"folders": [job.folder.name for job in jobs]})
    return jobs


def begun_several(folder: Path) -> tuple[Job, ...]:
    """Return the jobs of a folder that `begin_several` made. Raises ResultError if it is damaged."""
    names = ResultFolder(path=folder).read_json(CAMPAIGNS_FILE).get("folders")
    if not isinstance(names, list) or not all(isinstance(name, str) and file_name(name) == name for name in names):
        raise ResultError(
            what=f"{CAMPAIGNS_FILE} does not list folders", where=str(folder), fix="resume each campaign by itself"
        )
    return tuple(measuring(name, folder / name) for name in names)

"""The jobs of campaign files: one goes on with the folder of a campaign or of a column, the last one makes the reports.

Going on replays what was measured, so a job that ended early is simply run again: by a scheduler that requeues it, or
by hand.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemark.campaign.columns import SeriesFile
from gatemark.campaign.file import CampaignText
from gatemark.errors import ConfigError, Problem
from gatemark.laboratory.beds import Bed, on_bed
from gatemark.results.store import file_name
from gatemark.series.run import begin_series
from gatemark.session import begin

GATEMARK = (sys.executable, "-m", "gatemark.cli.main")
"""This gatemark, wherever a job runs: the machines of a laboratory share their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command of a submission."""

    name: str
    folder: Path
    commands: tuple[tuple[str, ...], ...]
    """Run one after the other; each is run even if the one before it failed."""
    measures: bool
    """Whether it needs its test bed."""

    @property
    def log(self) -> Path:
        """Return the file with what it printed."""
        return self.folder / "job.log"


def make_jobs(files: Sequence[Path], bed: Bed | None, output: Path) -> tuple[Job, ...]:
    """Make the folder of each campaign and series below `output`, and return the jobs, that of the reports last.

    All files are checked before the first folder is made; if anything fails nothing is left. Raises GatemarkError.
    """
    sources = _all_of(files, bed)
    if output.exists():
        raise ConfigError(what="is there already", where=str(output), fix="name a new folder with --output")
    names = [file_name(source.campaign.name if isinstance(source, CampaignText) else source.name) for source in sources]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            what=f"several campaigns have the name {', '.join(repeated)}",
            where=", ".join(str(file) for file, name in zip(files, names, strict=True) if name in repeated),
            fix="give each a name of its own, for its folder",
        )
    jobs: list[Job] = []
    reports: list[tuple[str, ...]] = []
    try:
        for name, source in zip(names, sources, strict=True):
            folder = output / name
            if isinstance(source, CampaignText):
                begin(source, folder)
                jobs.append(measuring(name, folder))
            else:
                columns = begin_series(source, folder)
                jobs += [measuring(f"{name}-{column.name}", column) for column in columns]
            reports.append((*GATEMARK, "report", str(folder.resolve())))
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise
    last = Job(name=f"{output.name}-report", folder=output, commands=tuple(reports), measures=False)
    return (*jobs, last)


def _all_of(files: Sequence[Path], bed: Bed | None) -> list[CampaignText | SeriesFile]:
    """Read every file. Raises ConfigError with the problems of all."""
    sources: list[CampaignText | SeriesFile] = []
    problems: list[Problem] = []
    for file in files:
        try:
            sources.append(on_bed(file, bed))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems=tuple(problems))
    return sources


def measuring(name: str, folder: Path) -> Job:
    """Return the job that measures a campaign whose folder was made, or goes on with it."""
    # The folder comes from the submitter's own file, possibly on another machine, so its commands are trusted.
    command = (*GATEMARK, "run", "--resume", str(folder.resolve()), "--trust-commands")
    return Job(name=name, folder=folder, commands=(command,), measures=True)

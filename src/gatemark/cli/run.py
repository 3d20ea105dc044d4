"""`gatemark run FILE...`: measure campaigns, or go on with what was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gatemark.archive.again import measure_again
from gatemark.archive.read import is_archive
from gatemark.campaign.columns import varies
from gatemark.campaign.progress import progress_display
from gatemark.cli.common import print_campaigns
from gatemark.cli.output import AsJson, print_json, tell_error
from gatemark.errors import ConfigError, EngineError, GatemarkError, TestBedError
from gatemark.laboratory.jobs import Job
from gatemark.laboratory.local import run_jobs
from gatemark.laboratory.several import begin_several, begun_several, is_several
from gatemark.results.store import default_folder
from gatemark.series.run import SeriesResult, measure_series, resume_series
from gatemark.series.store import is_series
from gatemark.series.summary import print_series
from gatemark.session import measure, resume_campaign
from gatemark.stored import CampaignResult, rebuild_report
from gatemark.tester import stop_signals


def run(
    *files: Path,
    output: Path | None = None,
    resume: Path | None = None,
    trust_commands: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure a campaign and write a result folder with report.html.

    A file with [[vary]] is a series: gatemark measures its columns one after the other and joins them in one table and
    report. Several files are measured one after the other, each into a folder of its own, and compared in one report.
    An archive is measured again with its own recipes.

    Parameters
    ----------
    files
        Campaign files (TOML), or an archive that `gatemark archive` made. Of several, none may have [[vary]].
    output
        Folder for the results; by default a new folder in results/. One that holds a campaign is refused, and for
        several files one that exists.
    resume
        Resume the campaign, series or several campaigns in this result folder, with its own copies of their files.
        Campaigns that failed are tried again. gatemark refuses it if anything changed that a figure may depend on.
    trust_commands
        With --resume: continue a folder that came from another user or an archive. With an archive: measure it.
        Campaign and recipe say which commands run here.
    as_json
        Print the result as JSON instead of tables: result.json, series.json, or for several files a list of
        result.json.
    """
    if bool(files) == (resume is not None):
        raise ConfigError(
            what="needs either campaign files or --resume DIR",
            where="gatemark run",
            fix="gatemark run campaign.toml, or gatemark run --resume results/NAME",
        )
    if resume is not None and output is not None:
        raise ConfigError(
            what="--output and --resume cannot be combined",
            where="gatemark run",
            fix="leave --output out: a resumed campaign stays in its folder",
        )
    from_archive = len(files) == 1 and is_archive(files[0])
    if trust_commands and resume is None and not from_archive:
        raise ConfigError(
            what="--trust-commands applies only to the folder of --resume and to archives",
            where="gatemark run",
            fix="leave it out: a campaign file that you name is trusted",
        )
    if len(files) > 1 or (resume is not None and is_several(resume)):
        return _run_several(files, output, resume, trust_commands=trust_commands, as_json=as_json)
    file = next(iter(files), None)
    result: CampaignResult | SeriesResult
    if from_archive:
        begin = partial(measure_again, trust_commands=trust_commands)
        result = _measured(begin, resume_campaign, file, output, None, trust_commands)
    elif (resume is not None and is_series(resume)) or (file is not None and varies(file)):
        result = _measured(measure_series, resume_series, file, output, resume, trust_commands)
    else:
        result = _measured(measure, resume_campaign, file, output, resume, trust_commands)
    return _tell(result, as_json=as_json)


def _tell(result: CampaignResult | SeriesResult, *, as_json: bool) -> int:
    """Print a result; return the exit status."""
    if isinstance(result, SeriesResult):
        if as_json:
            print_json(result.document.model_dump(mode="json", by_alias=True))
        else:
            print_series(result.document, report=str(result.report_file))
        return 1 if result.has_failed else 0
    print_campaigns([result], result.report_file, as_json=as_json, listed=False)
    return 1 if result.tester_limited_everywhere else 0


def _measured(
    begin: Callable[..., Any],
    go_on: Callable[..., Any],
    file: Path | None,
    output: Path | None,
    resume: Path | None,
    trust_commands: bool,
) -> Any:
    """Measure a file, or go on with the folder `resume`, and show how far it is."""
    with progress_display() as watcher:
        if resume is not None:
            return go_on(resume, trust_commands=trust_commands, on_event=watcher.on_event, on_plan=watcher.on_plan)
        return begin(file, output=output, on_event=watcher.on_event, on_plan=watcher.on_plan)


def _run_several(
    files: Sequence[Path], output: Path | None, resume: Path | None, *, trust_commands: bool, as_json: bool
) -> int:
    """Measure several campaigns, or go on with them, each also after one that failed; return the exit status."""
    for file in files:
        if is_archive(file) or varies(file):
            raise ConfigError(
                what="has a report of its own, so it cannot be one of several files",
                where=str(file),
                fix=f"measure it alone: gatemark run {file}",
            )
    folder = resume or output or default_folder("campaigns")
    failures: list[GatemarkError] = []

    def go_on(job: Job) -> int:
        print(f"{job.name}: {job.folder}", file=sys.stderr)
        is_trusted = trust_commands or resume is None
        try:
            with progress_display() as watcher:
                resume_campaign(
                    job.folder,
                    trust_commands=is_trusted,
                    on_event=watcher.on_event,
                    on_plan=watcher.on_plan,
                    report=False,
                )
        except (ConfigError, TestBedError, EngineError) as error:
            tell_error(error, as_json=False)
            failures.append(error)
            return error.exit_status
        return 0

    with stop_signals(resume_hint=str(folder)):
        run_jobs(begin_several(files, folder) if resume is None else begun_several(folder), go_on)
    if not any(folder.glob("*/result.json")):
        if as_json:
            tell_error(failures[0], as_json=True)
        return failures[0].exit_status
    results, page = rebuild_report(folder)
    print_campaigns(results, page, as_json=as_json, listed=True)
    return failures[0].exit_status if failures else int(all(result.tester_limited_everywhere for result in results))

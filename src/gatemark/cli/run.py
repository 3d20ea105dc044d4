"""`gatemark run FILE`: measure a campaign, or go on with one that was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gatemark.archive.again import measure_again
from gatemark.archive.read import is_archive
from gatemark.campaign.columns import varies
from gatemark.campaign.progress import progress_display
from gatemark.cli.common import print_campaigns
from gatemark.cli.output import AsJson, print_json
from gatemark.errors import ConfigError
from gatemark.series.run import SeriesResult, measure_series, resume_series
from gatemark.series.store import is_series
from gatemark.series.summary import print_series
from gatemark.session import CampaignResult, measure, resume_campaign


def run(
    file: Path | None = None,
    /,
    *,
    output: Path | None = None,
    resume: Path | None = None,
    trust_commands: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure a campaign and write a result folder with report.html.

    A file with [[vary]] is a series: gatemark measures its columns one after the other and joins them in one table and
    report. An archive is measured again with its own recipes.

    Parameters
    ----------
    file
        Campaign file (TOML), or an archive that `gatemark archive` made.
    output
        Folder for the results; by default a new folder in results/. One that holds a campaign is refused.
    resume
        Resume the campaign or series in this result folder, with its own copy of the campaign file. In a series,
        columns that failed are tried again. gatemark refuses it if anything changed that a figure may depend on.
    trust_commands
        With --resume: continue a folder that came from another user or an archive. With an archive: measure it.
        Campaign and recipe say which commands run here.
    as_json
        Print the result as JSON instead of tables: result.json, or series.json.
    """
    if (file is None) == (resume is None):
        raise ConfigError(
            what="needs either a campaign file or --resume DIR",
            where="gatemark run",
            fix="gatemark run campaign.toml, or gatemark run --resume results/NAME",
        )
    if resume is not None and output is not None:
        raise ConfigError(
            what="--output and --resume cannot be combined",
            where="gatemark run",
            fix="leave --output out: a resumed campaign stays in its folder",
        )
    from_archive = file is not None and is_archive(file)
    if trust_commands and resume is None and not from_archive:
        raise ConfigError(
            what="--trust-commands applies only to the folder of --resume and to archives",
            where="gatemark run",
            fix="leave it out: a campaign file that you name is trusted",
        )
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

"""Computes again what follows from a campaign and its journal, to compare it with what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from gatemark.archive.inputs import as_packed
from gatemark.archive.layout import InputKind
from gatemark.archive.read import Unpacked
from gatemark.begun import resolved
from gatemark.campaign.events import Event, RunFinished, TrialStarted
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import KeptTrials
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.load import document_of_text
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign, recipe_sha256
from gatemark.engine.client import Engine
from gatemark.errors import ResultError, TestBedError
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.run import RunResult
from gatemark.results.store import ResultFolder
from gatemark.series.store import SeriesFolder, digest, is_series
from gatemark.stored import document_of, provenance_of, trial_rows

Inputs = Mapping[tuple[InputKind, str], Path]
SHOWN_MAX = 5
"""Differences that are told of one file."""


def campaign_folders(result: ResultFolder) -> Iterator[ResultFolder]:
    """Yield the folders of all campaigns that were begun: one, those of the columns of a series, or those below it."""
    if is_series(result.path):
        series = SeriesFolder(files=result)
        yield from (
            folder for column in series.read().columns if (folder := series.column(column.folder)).has("campaign.json")
        )
    elif result.campaign_file.exists():
        yield result
    else:
        yield from (ResultFolder(path=path.parent) for path in sorted(result.path.glob("*/campaign.json")))


def campaign_of(folder: ResultFolder, inputs: Inputs) -> Campaign:
    """Return the completed campaign of a folder, made of its campaign.toml and the files that it names.

    Raises ConfigError if this gatemark cannot read it.
    """
    stored, source = folder.read_campaign()
    document = document_of_text(folder.read_text("campaign.toml"), path=Path(source or "campaign.toml"))
    where = str(folder.campaign_file)
    file = campaign_from_dict(as_packed(document, inputs, where), where=where)
    campaign = complete_campaign(file)
    kept = stored.get("testbed")
    recipe = kept.get("recipe") if isinstance(kept, dict) else None
    testbed = campaign.testbed.model_copy(update={"recipe": recipe if isinstance(recipe, str) else None})
    return campaign.model_copy(update={"testbed": testbed})


def input_faults(folder: ResultFolder, inputs: Inputs) -> Iterator[str]:
    """Say where the campaign, and the files that it names, are not what was measured: a sentence each."""
    provenance = provenance_of(folder)
    text = folder.read_text("campaign.toml")
    if provenance is not None and provenance.campaign_sha256 != digest(text):
        yield "campaign.toml is not the one that was measured"
    campaign = campaign_of(folder, inputs)
    recipe = _recipe(folder, inputs)
    if provenance is not None and recipe is not None and provenance.recipe_sha256 != recipe_sha256(recipe):
        yield f"the recipe {campaign.testbed.recipe} is not the one that was measured"
    (stored, _), now = folder.read_campaign(), resolved(campaign)
    for document in (stored, now):
        gateway = document.get("gateway")
        control = gateway.get("control") if isinstance(gateway, dict) else None
        if isinstance(control, dict):
            control.pop("commands", None)
    yield from (f"campaign.json does not follow from campaign.toml: {words}" for words in differences(stored, now))


def _recipe(folder: ResultFolder, inputs: Inputs) -> Path | None:
    """Return where the recipe of a campaign lies; None without one."""
    document = document_of_text(folder.read_text("campaign.toml"), path=folder.campaign_file)
    name = document.get("testbed", {}).get("recipe")
    return inputs.get(("recipe", name))


def check_inputs(content: Unpacked) -> None:
    """Raise ResultError if a campaign in an archive would be measured otherwise than it was."""
    for folder in campaign_folders(content.folder):
        for fault in input_faults(folder, content.inputs):
            if fault.endswith(ADDED):  # a key that the gatemark which measured had not
                continue
            where = folder.path.relative_to(content.path.parent)
            raise ResultError(what=fault, where=str(where), fix="undo the change: the archive is to be measured again")


class _JournalEndsError(Exception):
    """The next trial is not in the journal."""


def result_of(folder: ResultFolder, campaign: Campaign, record: Provenance) -> ResultDocument:
    """Return what result.json has to be, by campaign, journal and self-test; no trial is made.

    Raises ResultError if the journal is damaged, of another campaign, or would be judged otherwise.
    """
    known = campaign.model_copy(update={"line": campaign.line.model_copy(update={"rate": record.line_bits_per_second})})
    plan = plan_of(known)
    results: list[RunResult] = []

    def watch(event: Event) -> None:
        if isinstance(event, TrialStarted):  # those of the journal do not start
            raise _JournalEndsError
        if isinstance(event, RunFinished):
            results.append(event.result)

    no_engine = cast(Engine, None)
    try:
        with KeptTrials(folder.journal_file) as journal:
            run_campaign(known, plan, no_engine, journal, on_event=watch)
    except (_JournalEndsError, TestBedError):  # where the campaign was interrupted, or ended
        pass
    return document_of(folder, known, record, results, trial_rows(folder), runs_planned=len(plan.runs))


ADDED = " is new"
"""End of what is told of a key that only the second document has."""


def differences(stored: Any, now: Any, path: str = "") -> Iterator[str]:
    """Yield where two JSON documents differ, in words."""
    if isinstance(stored, dict) and isinstance(now, dict):
        for key in {**stored, **now}:
            at = f"{path}.{key}" if path else key
            if key not in stored:
                yield f"{at}{ADDED}"
            elif key not in now:
                yield f"{at} is missing"
            else:
                yield from differences(stored[key], now[key], at)
    elif isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        for number, pair in enumerate(zip(stored, now, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif type(stored) is not type(now) or stored != now:
        yield f"{path} is {_short(stored)}, not {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""Says of an archive whether it is whole, whether its results follow from its journals, and what measured it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gatemark.archive.read import Unpacked, unpacked
from gatemark.archive.recompute import (
    ADDED,
    SHOWN_MAX,
    Inputs,
    campaign_folders,
    campaign_of,
    differences,
    input_faults,
    result_of,
)
from gatemark.errors import GatemarkError
from gatemark.facts import CHECKSUMS
from gatemark.results.document import ResultDocument
from gatemark.results.quantity import to_csv
from gatemark.results.store import ResultFolder
from gatemark.results.this_machine import gatemark_version
from gatemark.series.join import csv_rows
from gatemark.series.run import open_series
from gatemark.series.store import SeriesFolder, is_series
from gatemark.stored import provenance_of, read_document

Outcome = Literal["holds", "differs", "unknown"]
"""``unknown``: this gatemark cannot compute it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    where: str
    """Folder in the archive."""
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found of an archive; its checksums hold, or there is none."""

    archive: str
    sha256: str
    """Of the archive itself: what a paper can print."""
    kind: str
    made_by: tuple[str, ...]
    """Versions of gatemark, as sentences."""
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether everything could be computed again, and is what is stored."""
        return all(finding.outcome == "holds" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the verification as JSON output has it."""
        return {"holds": self.holds, **asdict(self)}


def verify_archive(archive: Path) -> Verification:
    """Check an archive. Raises ConfigError if it is damaged, or no archive."""
    with unpacked(archive) as content:
        sums = f"{content.files} files, each as {CHECKSUMS} says"
        findings = [Finding(what="checksums", where="", outcome="holds", words=sums)]
        folders = list(campaign_folders(content.folder))
        for folder in folders:
            findings += _of_campaign(folder, content)
        if is_series(content.path):
            where, words = content.path.name, "series.json and series.csv follow from the columns"
            findings.append(_found("series", where, lambda: _series_faults(content.folder), words))
        last = f"archived by gatemark {content.description.gatemark}, verified by gatemark {gatemark_version()}"
        return Verification(
            archive=str(archive),
            sha256=content.sha256,
            kind=content.description.kind,
            made_by=(*dict.fromkeys(words for folder in folders for words in _makers(folder)), last),
            findings=tuple(findings),
        )


def _of_campaign(folder: ResultFolder, content: Unpacked) -> Iterator[Finding]:
    where, inputs = str(folder.path.relative_to(content.path.parent)), content.inputs
    words = "campaign, recipe and commands are those that were measured"
    yield _found("campaign", where, lambda: input_faults(folder, inputs), words)
    if folder.has("result.json"):
        trials = read_document(folder).validity.trials
        words = f"result.json and result.csv follow from the {trials} trials of the journal"
        yield _found("result", where, lambda: _result_faults(folder, inputs), words)


def _found(what: str, where: str, faults_of: Callable[[], Iterator[str]], words: str) -> Finding:
    """Return what is wrong with something, or these words if nothing is."""
    try:
        known = sorted(faults_of(), key=lambda fault: fault.endswith(ADDED))
        faults = known[:SHOWN_MAX]
    except GatemarkError as error:
        told = "; ".join(f"{problem.where}: {problem.what}" for problem in error.problems)
        return Finding(what=what, where=where, outcome="unknown", words=f"cannot be computed again: {told}")
    if faults and all(fault.endswith(ADDED) for fault in faults):
        words = f"is of a gatemark that did not compute all of it: {'; '.join(faults)}"
        return Finding(what=what, where=where, outcome="unknown", words=words)
    if faults:
        return Finding(what=what, where=where, outcome="differs", words="; ".join(faults))
    return Finding(what=what, where=where, outcome="holds", words=words)


def _result_faults(folder: ResultFolder, inputs: Inputs) -> Iterator[str]:
    record = provenance_of(folder)
    if record is None:
        yield "provenance.json is missing"
        return
    stored, document = folder.read_json("result.json"), result_of(folder, campaign_of(folder, inputs), record)
    now = json.loads(document.to_text())
    now["gatemark"] = stored.get("gatemark")
    if len(record.sessions) > 1:  # only the first description of the gateway is kept, the result has the last one
        for key in ("configuration", "settings"):
            now["gateway"][key] = stored.get("gateway", {}).get(key)
    yield from (f"result.json: {words}" for words in differences(stored, now))
    yield from _csv_faults(folder, "result.csv", to_csv(document.rows()))


def _series_faults(result: ResultFolder) -> Iterator[str]:
    folder, document = SeriesFolder(files=result), open_series(result.path).document
    stored, now = result.read_json("series.json"), json.loads(document.to_text())
    yield from (f"series.json: {words}" for words in differences(stored, now))
    results: dict[int, ResultDocument] = folder.results(document)
    yield from _csv_faults(result, "series.csv", to_csv(csv_rows(document, results, {})))


def _csv_faults(folder: ResultFolder, name: str, text: str) -> Iterator[str]:
    """Say so if a table is another one; how lines end is no difference."""
    if folder.read_text(name).splitlines() != text.splitlines():
        yield f"{name} is another table than that of its results"


def _makers(folder: ResultFolder) -> Iterator[str]:
    """Say what measured a campaign, once for each that differs."""
    record = provenance_of(folder)
    for session in () if record is None else record.sessions:
        engine, software = session.engine, session.software
        yield (
            f"measured by gatemark {software.gatemark}, engine {engine.version} ({engine.build}, {engine.dpdk},"
            f" SHA-256 {engine.program_sha256})"
        )

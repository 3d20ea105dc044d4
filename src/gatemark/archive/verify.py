"""Says of an archive whether it is whole, whether its results follow from its journals, and what measured it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from gatemark.archive.again import FOLDER
from gatemark.archive.columns import column_faults
from gatemark.archive.inputs import renamed
from gatemark.archive.layout import DESCRIPTION, InputKind, is_safe
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
from gatemark.campaign.journal import KeptTrials, records_of
from gatemark.config.load import document_of_text
from gatemark.errors import GatemarkError
from gatemark.facts import CHECKSUMS
from gatemark.files import sha256_of
from gatemark.harmless import json_of
from gatemark.results.document import ResultDocument
from gatemark.results.quantity import to_csv
from gatemark.results.store import BAD_FRAMES, ResultFolder, bad_frame_files, evaluating, samples_name
from gatemark.results.tester_parts import SELF_TEST_FILE
from gatemark.results.this_machine import gatemark_version
from gatemark.selftest.document import SelfTest
from gatemark.series.join import csv_rows
from gatemark.series.run import open_series, series_page
from gatemark.series.store import SERIES_FILE, SeriesFolder, is_series
from gatemark.stored import bad_frames, gateway_of, page_of, part_of, provenance_of, read_document, reports_of

JOURNAL = "trials.jsonl"
EVIDENCE = ("provenance.json", "gateway.json", SELF_TEST_FILE)
"""What a result is computed from beside the journal."""

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
    files: tuple[str, ...] = ()
    """What is verified if it holds: paths in the archive, below its top folder."""


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
        """Whether every file could be verified or made again, and is what is stored."""
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
            findings += _of_series(content)
        elif content.description.kind == "folder":
            findings += _report(content, content.folder, lambda: _common_page(folders))
        findings.append(_rest(content, findings))
        last = f"archived by gatemark {content.description.gatemark}, verified by gatemark {gatemark_version()}"
        return Verification(
            archive=str(archive),
            sha256=content.sha256,
            kind=content.description.kind,
            made_by=(*dict.fromkeys(words for folder in folders for words in _makers(folder)), last),
            findings=tuple(findings),
        )


def _of_campaign(folder: ResultFolder, content: Unpacked) -> Iterator[Finding]:
    words = "campaign, recipe and commands are those that were measured"
    files = chain(_files(content, folder, "campaign.toml", "campaign.json"), _named_inputs(content, folder))
    yield _found(content, folder, "campaign", lambda: input_faults(folder, content.inputs), words, files)
    if not folder.has("result.json"):
        return
    unread = tuple(_unread_of_journal(content, folder))
    yield from unread
    yield _of_result(content, folder, EVIDENCE if unread else (*EVIDENCE, JOURNAL))
    yield from _of_trials(content, folder)
    yield from _report(content, folder, lambda: page_of(reports_of([part_of(folder)])))


def _of_result(content: Unpacked, folder: ResultFolder, evidence: Sequence[str]) -> Finding:
    try:
        with evaluating(folder.path):
            trials = read_document(folder).validity.trials
    except GatemarkError as error:
        return _not_again("result", _where(content, folder), error)
    words = f"result.json and result.csv follow from the {trials} trials of the journal"
    files = _files(content, folder, *evidence, "result.json", "result.csv")
    return _found(content, folder, "result", lambda: _result_faults(folder, content.inputs), words, files)


def _of_series(content: Unpacked) -> Iterator[Finding]:
    result = content.folder
    words = f"series.json and series.csv follow from {SERIES_FILE} and the columns"
    files = (SERIES_FILE, "series.json", "series.csv")
    yield _found(content, result, "series", lambda: _series_faults(result, content.inputs), words, files)
    yield from _report(content, result, lambda: series_page(SeriesFolder(files=result)))


def _common_page(folders: Sequence[ResultFolder]) -> str:
    return page_of(reports_of([part_of(folder) for folder in folders if folder.has("result.json")]))


def _files(content: Unpacked, folder: ResultFolder, *names: str) -> Iterator[str]:
    """Yield the files of a folder by their paths in the archive."""
    for name in names:
        if folder.has(name):
            yield (folder.path / name).relative_to(content.path).as_posix()


def _named_inputs(content: Unpacked, folder: ResultFolder) -> Iterator[str]:
    """Yield the files that a campaign names, as far as they are the ones of which the archive tells.

    One that was itself measured from an archive also has them in its result folder, or in that of its series.
    """
    named: list[tuple[InputKind, str]] = []
    renamed(
        document_of_text(folder.read_text("campaign.toml"), path=folder.campaign_file),
        lambda kind, name: named.append((kind, name)) or name,  # type: ignore[func-returns-value]
    )
    digests = {(facts.kind, facts.name): facts.sha256 for facts in content.description.inputs}
    for key in named:
        places = [content.inputs[key]] if key in digests else []
        if key[1].startswith(f"{FOLDER}/") and is_safe(key[1]):
            places += [folder.path / key[1], content.path / key[1]]
        for path in places:
            if path.is_file() and sha256_of(path) == digests.get(key):
                yield path.relative_to(content.path).as_posix()


def _unread_of_journal(content: Unpacked, folder: ResultFolder) -> Iterator[Finding]:
    """Say whether a part of the journal is not what its trials are read from."""
    where = _where(content, folder)
    if not folder.has(JOURNAL):
        return
    try:
        with KeptTrials(folder.journal_file) as kept:
            torn = kept.torn_octets
        if torn:
            words = f"the last {torn:,} octets of {JOURNAL} are not a whole line, so not a trial"
            yield Finding(what="journal", where=where, outcome="unknown", words=words)
            return
        with evaluating(folder.path), folder.journal_file.open("rb") as file:
            for line in file:
                json_of(line.decode())
    except GatemarkError as error:
        yield _not_again("journal", where, error)


def _rest(content: Unpacked, findings: Sequence[Finding]) -> Finding:
    """Say which files nothing was found of: their checksums hold, and nobody knows what they should be."""
    known = {CHECKSUMS, DESCRIPTION}
    known.update(name for finding in findings if finding.outcome == "holds" for name in finding.files)
    names = {path.relative_to(content.path).as_posix() for path in content.path.rglob("*") if path.is_file()}
    rest = sorted(names - known)
    if not rest:
        return Finding(what="all", where="", outcome="holds", words="every file was verified or made again")
    shown = ", ".join(rest[:SHOWN_MAX]) + (f" and {len(rest) - SHOWN_MAX} more" if len(rest) > SHOWN_MAX else "")
    return Finding(what="all", where="", outcome="unknown", words=f"not verified: {shown}")


def _report(content: Unpacked, folder: ResultFolder, page: Callable[[], str]) -> Iterator[Finding]:
    """Say whether a report is the page that this gatemark makes."""
    if not folder.has("report.html"):
        return
    where, words = _where(content, folder), "report.html follows from the results"
    try:
        with evaluating(folder.path):
            is_same = folder.read_text("report.html") == page()
    except GatemarkError as error:
        yield _not_again("report", where, error)
        return
    if is_same:
        files = tuple(_files(content, folder, "report.html"))
        yield Finding(what="report", where=where, outcome="holds", words=words, files=files)
        return
    words = "another gatemark made report.html, or somebody changed it; gatemark report makes it again"
    yield Finding(what="report", where=where, outcome="unknown", words=words)


def _of_trials(content: Unpacked, folder: ResultFolder) -> Iterator[Finding]:
    """Say whether the files of single trials and the engine's log are those of journal and provenance."""
    where = _where(content, folder)
    try:
        with evaluating(folder.path):
            wanted = dict(_wanted_files(folder))
    except GatemarkError as error:
        yield _not_again("files", where, error)
        return
    if wanted:
        words = "bad frames, samples and the engine's log are those of journal and provenance"
        files = _files(content, folder, *wanted)
        yield _found(content, folder, "files", lambda: _faults_of_files(folder, wanted), words, files)


def _wanted_files(folder: ResultFolder) -> Iterator[tuple[str, str]]:
    """Yield the names and digests of files as journal and provenance have them."""
    provenance = provenance_of(folder)
    if provenance is not None and (log := provenance.last.engine_log_sha256) is not None:
        yield folder.engine_log.name, log
    for record in records_of(folder.journal_file):
        number = record.order.trial_number
        for name, octets in bad_frame_files(number, bad_frames(record)).items():
            yield f"{BAD_FRAMES}/{name}", hashlib.sha256(octets).hexdigest()
        if record.samples_sha256 is not None:
            yield samples_name(number), record.samples_sha256


def _faults_of_files(folder: ResultFolder, wanted: Mapping[str, str]) -> Iterator[str]:
    for name, digest in sorted(wanted.items()):
        if not folder.has(name):
            yield f"{name} is missing"
        elif sha256_of(folder.path / name) != digest:
            yield f"{name} is not the one that was written"


def _where(content: Unpacked, folder: ResultFolder) -> str:
    return folder.path.relative_to(content.path.parent).as_posix()


def _found(
    content: Unpacked,
    folder: ResultFolder,
    what: str,
    faults_of: Callable[[], Iterator[str]],
    words: str,
    files: Iterable[str],
) -> Finding:
    """Return what is wrong with something, or these words if nothing is: then the files are verified."""
    where = _where(content, folder)
    try:
        with evaluating(folder.path):
            known = sorted(faults_of(), key=lambda fault: fault.endswith(ADDED))
            verified = () if known else tuple(files)
        faults = known[:SHOWN_MAX]
    except GatemarkError as error:
        return _not_again(what, where, error)
    if faults and all(fault.endswith(ADDED) for fault in faults):
        words = f"is of a gatemark that did not compute all of it: {'; '.join(faults)}"
        return Finding(what=what, where=where, outcome="unknown", words=words)
    if faults:
        return Finding(what=what, where=where, outcome="differs", words="; ".join(faults))
    return Finding(what=what, where=where, outcome="holds", words=words, files=verified)


def _not_again(what: str, where: str, error: GatemarkError) -> Finding:
    told = "; ".join(f"{problem.where}: {problem.what}" for problem in error.problems)
    return Finding(what=what, where=where, outcome="unknown", words=f"cannot be computed again: {told}")


def _result_faults(folder: ResultFolder, inputs: Inputs) -> Iterator[str]:
    record = provenance_of(folder)
    if record is None:
        yield "provenance.json is missing"
        return
    stored, document = folder.read_json("result.json"), result_of(folder, campaign_of(folder, inputs), record)
    now = json.loads(document.to_text())
    now["gatemark"] = stored.get("gatemark")
    _check_self_test(folder)
    if gateway_of(folder).settings != record.sessions[0].settings:
        yield "gateway.json has other settings than the first session in provenance.json"
    yield from (f"result.json: {words}" for words in differences(stored, now))
    yield from _csv_faults(folder, "result.csv", to_csv(document.rows()))


def _check_self_test(folder: ResultFolder) -> None:
    """Raise ResultError if a self-test has more than the result needs of it, and than a self-test has."""
    if folder.has(SELF_TEST_FILE):
        folder.valid(SELF_TEST_FILE, folder.read_json(SELF_TEST_FILE), SelfTest.model_validate)


def _series_faults(result: ResultFolder, inputs: Inputs) -> Iterator[str]:
    folder, document = SeriesFolder(files=result), open_series(result.path).document
    yield from column_faults(result, document, inputs)
    stored, now = result.read_json("series.json"), json.loads(document.to_text())
    yield from (f"series.json: {words}" for words in differences(stored, now))
    results: dict[int, ResultDocument] = folder.results(document)
    yield from _csv_faults(result, "series.csv", to_csv(csv_rows(document, results, {})))


def _csv_faults(folder: ResultFolder, name: str, text: str) -> Iterator[str]:
    """Say so if a table is another one; how lines end is no difference."""
    if folder.read_text(name).splitlines() != text.splitlines():
        yield f"{name} is not the table of its results"


def _makers(folder: ResultFolder) -> Iterator[str]:
    """Say what measured a campaign, once for each that differs."""
    record = provenance_of(folder)
    for session in () if record is None else record.sessions:
        engine, software = session.engine, session.software
        yield (
            f"measured by gatemark {software.gatemark}, engine {engine.version} ({engine.build}, {engine.dpdk},"
            f" SHA-256 {engine.program_sha256})"
        )

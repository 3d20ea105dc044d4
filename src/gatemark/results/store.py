"""The folder of one campaign's results: names, lock, atomic writing, and one clear error when the disk is full.

::

    DIR/campaign.toml     the campaign file as it was given
    DIR/campaign.json     what follows from `campaign.toml`: the campaign with the recipe's facts and every default
                          filled in; `file` is the path of the file as it was given, to which the path of a recipe is
                          relative, null if it came from Python
    DIR/gateway.json      the gateway's description at the first session
    DIR/provenance.json   machine, engine, ports and times: [see below](#provenancejson)
    DIR/selftest.json     the self-test of the Tester that was in force, if there was one
    DIR/trials.jsonl      the journal: one trial a line, on disk before the next load is chosen; its keys are those of
                          [counters](counters.md)
    DIR/result.json       the results: [see below](#resultjson-the-envelope); JSON Schema in
                          [result.schema.json](result.schema.json)
    DIR/result.csv        the same figures as one tidy table: [see below](#resultcsv)
    DIR/report.html       the report, made from the files above; `gatemark report DIR` makes it again
    DIR/bad-frames/       the first frames of each reason that came back wrong, as pcap:
                          `trial-000012-right-hop_limit.pcap`; with two gateways in a row also as they were [on each
                          link](../how-to/measure-two-gateways-in-a-row.md#which-of-the-two-damaged-frames)
    DIR/telemetry/        samples of the gateway's host, one CSV for each trial: [how to read
                          it](../how-to/gateway-telemetry.md#the-file-of-a-trial)
    DIR/engine.log        what the engine wrote for people
    DIR/inputs/           for a campaign measured from an [archive](../how-to/archive-results.md): the archive's recipes
                          and files of commands that this gatemark lacks, or has in a different form
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from gatemark.errors import ResultError
from gatemark.facts import CHECKSUMS
from gatemark.files import NotAFileError, open_lock, open_to_read, replace_files
from gatemark.harmless import json_of
from gatemark.results import this_machine

D = TypeVar("D", bound=BaseModel)
T = TypeVar("T")
ResumedBy = Literal["run", "pair"]
"""Command whose option --resume goes on with a folder."""

BAD_FRAMES, TELEMETRY = "bad-frames", "telemetry"
ORIGIN = ".origin"
"""Names of the machine on which a folder was made. It is not archived."""


@contextlib.contextmanager
def writing(where: Path, *, command: ResumedBy = "run") -> Iterator[None]:
    """Turn every failure to write below `where` into one ResultError; a full disk is named as such.

    `command` resumes what was measured there.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = "the disk is full; the trials measured so far are kept in trials.jsonl"
            fix = f"free some space, then continue with: gatemark {command} --resume {where}"
        elif isinstance(error, NotAFileError):
            what, fix = f"not written: {error.strerror}", "find out who put it there, and remove it"
        else:
            what = f"cannot write: {error.strerror or error}"
            fix = "choose a folder that you may write to with --output"
        raise ResultError(what=what, where=str(where), fix=fix) from error


@contextlib.contextmanager
def evaluating(where: object) -> Iterator[None]:
    """Turn what cannot be computed of the files of a folder into one ResultError: they may be anybody's."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ResultError(
            what=f"its files are damaged or contradict each other: {type(error).__name__}: {error}",
            where=str(where),
            fix="restore the folder, or measure again; if it is as gatemark wrote it, report this as a defect",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFolder:
    """The folder of one campaign; a file is written completely or left unchanged."""

    path: Path
    command: ResumedBy = "run"

    @classmethod
    def create(cls, path: Path) -> ResultFolder:
        """Make a new folder; one that already holds a campaign is refused."""
        if (path / "campaign.toml").exists():
            raise ResultError(
                what="the folder already holds a campaign",
                where=str(path),
                fix=f"name another folder with --output, or continue this one with: gatemark run --resume {path}",
            )
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        folder = cls(path=path)
        folder.write_json(ORIGIN, this_machine.names())
        return folder

    @classmethod
    def open(cls, path: Path) -> ResultFolder:
        """Open the folder of a campaign that was started before."""
        if not (path / "campaign.toml").is_file():
            raise ResultError(
                what="this is not a result folder: it holds no campaign.toml",
                where=str(path),
                fix="name the folder that `gatemark run` printed",
            )
        return cls(path=path)

    @classmethod
    def open_below(cls, path: Path) -> list[ResultFolder]:
        """Open all in the folders below that hold results, by name; raise ResultError if there is none."""
        below = sorted(sub.parent for sub in path.glob("*/result.json"))
        if not below:
            raise ResultError(
                what="holds no result.json, neither itself nor in the folders below",
                where=str(path),
                fix="name a folder that `gatemark run` or `gatemark demo` wrote",
            )
        return [cls.open(sub) for sub in below]

    def discard(self) -> None:
        """Remove a folder in which nothing was measured; it stays if it holds files that are not gatemark's."""
        for name in (
            "campaign.toml",
            "campaign.json",
            "gateway.json",
            "selftest.json",
            "engine.log",
            ".lock",
            ".trials",
            ORIGIN,
        ):
            with contextlib.suppress(OSError):
                (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def written_by_others(self) -> list[str]:
        """Return the names of what another user owns or everybody may write to; "." is the folder itself."""
        names = [".", *sorted(entry.name for entry in self.path.iterdir())]
        facts_of = [(name, (self.path / name).lstat()) for name in names]
        return [
            name
            for name, facts in facts_of
            if facts.st_uid != os.geteuid() or (facts.st_mode & stat.S_IWOTH and not stat.S_ISLNK(facts.st_mode))
        ]

    @property
    def was_made_here(self) -> bool:
        """Whether it says that it was made on this machine."""
        return self.has(ORIGIN) and self.read_json(ORIGIN) == this_machine.names()

    @property
    def is_unpacked(self) -> bool:
        """Whether it has the list of checksums of an archive."""
        return os.path.lexists(self.path / CHECKSUMS)

    @property
    def campaign_file(self) -> Path:
        """The campaign file as it was given."""
        return self.path / "campaign.toml"

    @property
    def journal_file(self) -> Path:
        """One trial a line."""
        return self.path / "trials.jsonl"

    @property
    def engine_log(self) -> Path:
        """What the engine wrote on its standard error."""
        return self.path / "engine.log"

    @property
    def report_file(self) -> Path:
        """The report as one self-contained page."""
        return self.path / "report.html"

    def write_text(self, name: str, text: str) -> Path:
        """Replace one file with new text; the old one stays intact if the disk is full."""
        with writing(self.path, command=self.command):
            replace_files(self.path, {name: text.encode()})
        return self.path / name

    def write_json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Replace one JSON file."""
        return self.write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def read_text(self, name: str, *, errors: Literal["strict", "replace"] = "strict") -> str:
        """Text of one file of the folder, with what is no UTF-8 as `errors` says; its absence is a ResultError."""
        try:
            with open_to_read(self.path / name) as file:
                return file.read().decode("utf-8", errors)
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(
                what=f"cannot read {name}: {error}",
                where=str(self.path),
                fix="the folder is damaged or of another program; measure again",
            ) from error

    def read_json(self, name: str) -> dict[str, Any]:
        """One JSON object of the folder."""
        try:
            value = json_of(self.read_text(name))
        except ValueError as error:
            raise ResultError(
                what=f"{name} is not JSON: {error}", where=str(self.path), fix="measure again, or restore the file"
            ) from error
        if not isinstance(value, dict):
            raise ResultError(what=f"{name} is not a JSON object", where=str(self.path), fix="restore the file")
        return value

    def read_campaign(self) -> tuple[dict[str, Any], str | None]:
        """Return campaign.json without the path of the campaign file, and that path; None if there was no file."""
        stored = self.read_json("campaign.json")
        file = stored.pop("file", None)
        if not isinstance(file, str | None):
            what = "campaign.json is damaged at file: it is not text"
            raise ResultError(what=what, where=str(self.path), fix="restore the file, or measure again")
        return stored, file

    def read_published(self, name: str, model: type[D], schema: int) -> D:
        """Return one of the published documents, checked against its model; it has the format `schema`."""
        data = self.read_json(name)
        if data.get("schema") != schema:
            raise ResultError(
                what=f"{name} has format {data.get('schema')!r}, this version reads format {schema}",
                where=str(self.path),
                fix="use the version of gatemark that wrote it",
            )
        return self.valid(name, data, model.model_validate)

    def valid(self, name: str, data: Mapping[str, Any], validate: Callable[[Mapping[str, Any]], T]) -> T:
        """Return what `validate` makes of the JSON of a file; if it refuses that, a ResultError says where."""
        try:
            return validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            raise ResultError(
                what=f"{name} is damaged at {'.'.join(map(str, first['loc']))}: {first['msg']}",
                where=str(self.path),
                fix="restore the file, or measure again",
            ) from error

    def has(self, name: str) -> bool:
        """Whether the folder holds a file of this name."""
        return (self.path / name).is_file()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process: a second run that writes to it is refused."""
        with writing(self.path, command=self.command):
            lock = open_lock(self.path / ".lock")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ResultError(
                    what="another gatemark writes to this folder",
                    where=str(self.path),
                    fix="wait until it ends, or name another folder with --output",
                ) from error
            for torn in self.path.glob(".*.new"):  # of a process that was killed while it wrote
                with contextlib.suppress(OSError):
                    torn.unlink(missing_ok=True)
            yield

    def write_bad_frames(self, trial_number: int, kept: Mapping[tuple[str, str], list[bytes]]) -> list[Path]:
        """Write the files of `bad_frame_files`."""
        files = bad_frame_files(trial_number, kept)
        with writing(self.path, command=self.command):
            replace_files(self.path, files, below=BAD_FRAMES)
        return [self.path / BAD_FRAMES / name for name in files]

    def write_samples(self, trial_number: int, text: str) -> Path:
        """Write the samples of the gateway's host in a trial: telemetry/trial-000012.csv."""
        with writing(self.path, command=self.command):
            replace_files(self.path, {f"trial-{trial_number:06d}.csv": text.encode()}, below=TELEMETRY)
        return self.path / samples_name(trial_number)


def bad_frame_files(trial_number: int, kept: Mapping[tuple[str, str], list[bytes]]) -> dict[str, bytes]:
    """Return kept frames as pcap, one file for each side and reason: trial-000012-right-hop_limit.pcap."""
    import dpkt  # imported where needed: most trials keep no frame

    files: dict[str, bytes] = {}
    for (side, reason), frames in sorted(kept.items()):
        file = io.BytesIO()
        pcap = dpkt.pcap.Writer(file, snaplen=65535)
        for number, octets in enumerate(frames):
            pcap.writepkt(octets, ts=number * 1e-6)
        files[f"trial-{trial_number:06d}-{side}-{file_name(reason)}.pcap"] = file.getvalue()
    return files


def samples_name(trial_number: int) -> str:
    """Return the name of the file with the samples of a trial."""
    return f"{TELEMETRY}/trial-{trial_number:06d}.csv"


def default_folder(campaign_name: str) -> Path:
    """A folder name that no earlier run has: results/NAME-20260131-120000, with -2, -3 if taken."""
    stamp = datetime.now(tz=UTC).strftime("%Y%m%d-%H%M%S")
    base = Path("results") / f"{file_name(campaign_name)}-{stamp}"
    candidate, number = base, 1
    while candidate.exists():
        number += 1
        candidate = base.with_name(f"{base.name}-{number}")
    return candidate


def file_name(text: str) -> str:
    """Text as part of a file name: letters, digits, dot, dash and underscore only."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._") or "unnamed"

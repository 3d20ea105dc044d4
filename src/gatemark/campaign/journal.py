"""The journal of a campaign: one line for each trial, on disk before the next one is chosen.

A campaign that was interrupted is resumed by replay: the searches are pure, so they make the same choices again and
find their answers here. Invalid trials are recorded with their reasons. Cancelled ones are not: they did not happen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gatemark.errors import GatemarkError, ResultError
from gatemark.search.goal import Purpose
from gatemark.trial.result import TrialReport
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial: what was asked, what happened, what we make of it."""

    trial_number: int
    """From 1, over the whole campaign."""
    run: int
    """Number of the run in the plan."""
    repetition: int
    """From 0."""
    attempt: int
    """From 0; the attempts before it at this load were invalid."""
    purpose: Purpose
    frames_per_second: int
    """Intended load of each direction."""
    duration_ns: int
    """Sending time, without waits."""
    validity: Validity
    verdict: Verdict | None
    """None if the trial is invalid."""
    report: TrialReport
    testbed_drops: Mapping[str, int] = field(default_factory=dict)
    """Frames that the test bed's queues towards the Tester dropped during the trial, by place."""
    gateway_drops: Mapping[str, int] = field(default_factory=dict)
    """Frames that the gateway's own queues dropped meanwhile, as far as the test bed can see them, by place."""
    started_at: str
    """Wall time, ISO 8601 with offset."""
    seconds: float
    """How long it took, waits included; with the waits named in the report it shows what the Tester costs."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as a line of the journal holds it."""
        return {
            "trial_number": self.trial_number,
            "run": self.run,
            "repetition": self.repetition,
            "attempt": self.attempt,
            "purpose": self.purpose,
            "frames_per_second": self.frames_per_second,
            "duration_ns": self.duration_ns,
            "validity": self.validity.to_json(),
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "report": self.report.to_json(),
            "testbed_drops": dict(self.testbed_drops),
            "gateway_drops": dict(self.gateway_drops),
            "started_at": self.started_at,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """Read what `to_json` wrote."""
        plain = (
            "trial_number",
            "run",
            "repetition",
            "attempt",
            "purpose",
            "frames_per_second",
            "duration_ns",
            "started_at",
            "seconds",
        )
        verdict = data["verdict"]
        return cls(
            **{name: data[name] for name in plain},
            validity=Validity.from_json(data["validity"]),
            verdict=None if verdict is None else Verdict.from_json(verdict),
            report=TrialReport.from_json(data["report"]),
            testbed_drops=dict(data["testbed_drops"]),
            gateway_drops=dict(data["gateway_drops"]),
        )


class Journal:
    """Appends to a journal file; a context manager.

    What the file holds already is in `records`, for replay. A torn last line, left by a killed process or a full disk,
    is cut off: its trial is made again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        records, whole_octets = _read(path) if path.exists() else ((), 0)
        self.records: tuple[TrialRecord, ...] = records
        """What was in the file when it was opened, in order."""
        try:
            self._file = path.open("ab", buffering=0)
            self._file.truncate(whole_octets)
        except OSError as error:
            raise _disk_error(path, error) from error
        self._octets = whole_octets

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, record: TrialRecord) -> None:
        """Write one record and wait until it is on the disk; raise ResultError if it cannot be kept."""
        line = (json.dumps(record.to_json(), ensure_ascii=False, separators=(",", ":")) + "\n").encode()
        try:
            written = 0
            while written < len(line):  # an unbuffered write may take less, on a disk that fills up for example
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # if this fails too, the torn line is cut off when the journal is read
                self._file.truncate(self._octets)
            raise _disk_error(self.path, error) from error
        self._octets += len(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> tuple[TrialRecord, ...]:
    """Return the records of a journal; a torn last line is left out, the file is not changed.

    Raises ResultError if it cannot be read or something else than its last line is broken.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[tuple[TrialRecord, ...], int]:
    """Return the whole records and how many octets they take."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultError(
            what=f"cannot be read ({error.strerror})", where=str(path), fix="check the path and its permissions"
        ) from error
    whole = content[: content.rfind(b"\n") + 1]
    records = []
    for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
        try:
            records.append(TrialRecord.from_json(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, GatemarkError) as error:
            raise ResultError(
                what=f"line {number} is no record of a trial ({error})",
                where=str(path),
                fix="the journal was changed or belongs to another version; restore it or start a new result folder",
            ) from error
    return tuple(records), len(whole)


def _disk_error(path: Path, error: OSError) -> ResultError:
    return ResultError(
        what=f"the trial cannot be recorded ({error.strerror or error})",
        where=str(path),
        fix="make room or correct the permissions, then continue with --resume; earlier trials are kept",
    )

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
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gatemark.errors import GatemarkError, ResultError
from gatemark.search.goal import Purpose
from gatemark.trial.reset import ResetFacts
from gatemark.trial.result import TrialReport
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOne:
    """One attempt at test phase 1: every connection established once (RFC 9693 section 4.2)."""

    connections_per_second: int
    validity: Validity
    verdict: Verdict | None
    """None if the attempt is invalid; passed if every connection was established."""
    report: TrialReport

    def to_json(self) -> dict[str, Any]:
        """Return it as the journal holds it."""
        return {
            "connections_per_second": self.connections_per_second,
            "validity": self.validity.to_json(),
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "report": self.report.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PhaseOne:
        """Read what `to_json` wrote."""
        return cls(
            connections_per_second=data["connections_per_second"],
            validity=Validity.from_json(data["validity"]),
            verdict=_verdict_from_json(data["verdict"]),
            report=TrialReport.from_json(data["report"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFacts:
    """What a trial knows of the connections that it used."""

    count: int
    """Number of connections N; 0 for the tear-down of an empty table."""
    phase_one: tuple[PhaseOne, ...] = ()
    """Attempts before the phase that the record's own report is about; the last one filled the table, or the trial is
    invalid. Empty where phase 1 is itself what is measured, or where there is none."""
    counted_before: int | None = None
    """Connections that the gateway counted after its table was cleared; None if it cannot count."""
    counted_after_phase_one: int | None = None
    counted_after_phase_two: int | None = None
    tear_down_ns: int | None = None
    """Time that the gateway took to delete all connections, on its own clock (RFC 9693 section 4.8)."""
    collapsed: bool = False
    """The gateway stopped answering and was started anew; the trial counts as failed."""
    behaviour: Mapping[str, Any] | None = None
    """What the state table says about the gateway (answer to `connections` in `protocol/README.md`); once a run."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the journal holds it."""
        return {
            **{name: getattr(self, name) for name in _PLAIN_CONNECTION_FACTS},
            "phase_one": [attempt.to_json() for attempt in self.phase_one],
            "behaviour": None if self.behaviour is None else dict(self.behaviour),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ConnectionFacts:
        """Read what `to_json` wrote."""
        behaviour = data["behaviour"]
        return cls(
            **{name: data[name] for name in _PLAIN_CONNECTION_FACTS},
            phase_one=tuple(PhaseOne.from_json(attempt) for attempt in data["phase_one"]),
            behaviour=None if behaviour is None else dict(behaviour),
        )


_PLAIN_CONNECTION_FACTS = (
    "count",
    "counted_before",
    "counted_after_phase_one",
    "counted_after_phase_two",
    "tear_down_ns",
    "collapsed",
)


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
    connections: ConnectionFacts | None = None
    """Stateful trials only."""
    alpha: Fraction | None = None
    """Validated establishment: `report` is that of the validation, at this share of `frames_per_second`."""
    reset: ResetFacts | None = None
    """When the gateway was reset; None if it was not."""

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
            "connections": None if self.connections is None else self.connections.to_json(),
            "alpha": None
            if self.alpha is None
            else {"numerator": self.alpha.numerator, "denominator": self.alpha.denominator},
            "reset": None if self.reset is None else self.reset.to_json(),
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
        connections, alpha, reset = data["connections"], data["alpha"], data["reset"]
        return cls(
            **{name: data[name] for name in plain},
            validity=Validity.from_json(data["validity"]),
            verdict=_verdict_from_json(data["verdict"]),
            report=TrialReport.from_json(data["report"]),
            testbed_drops=dict(data["testbed_drops"]),
            gateway_drops=dict(data["gateway_drops"]),
            connections=None if connections is None else ConnectionFacts.from_json(connections),
            alpha=None if alpha is None else Fraction(alpha["numerator"], alpha["denominator"]),
            reset=None if reset is None else ResetFacts.from_json(reset),
        )


def _verdict_from_json(data: Mapping[str, Any] | None) -> Verdict | None:
    return None if data is None else Verdict.from_json(data)


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

"""The journal of a campaign: one line for each trial, on disk before the next one is chosen.

A campaign that was interrupted is resumed by replay: the searches are pure, so they make the same choices again and
find their answers here. Invalid trials are recorded with their reasons. Cancelled ones are not: they did not happen.

Line n is trial n. The last key of each line is a CRC32C of all octets before it, so a line is either as it was written
or refused.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Self

import google_crc32c
from pydantic import ValidationError

from gatemark.errors import RESUME, ResultError
from gatemark.files import open_lock, open_to_append, open_to_read, opened_folder
from gatemark.trial.record import TrialRecord

MARK_FILE = ".trials"
"""Beside the journal: how many trials it has held, so that one that loses its end leaves a trace."""
LINE_OCTETS_MAX = 64 << 20
"""A trial with 10,000 clients and samples of a whole hour has less than a tenth of it."""


class KeptTrials:
    """What a journal file holds, for replay; a context manager. The file is not changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self._bytes = 0
        for line in _whole_lines(path) if path.exists() else ():
            self.lines, self._bytes = self.lines + 1, self._bytes + len(line)
        self.torn_octets = path.stat().st_size - self._bytes if path.exists() else 0
        """Length of a last line that a killed process or a full disk left; 0 if there was none."""
        self._reader = records_of(path)
        self.records: Iterator[TrialRecord] = islice(self._reader, self.lines)
        """What was in the file when it was opened, in order; each is read when it is taken."""
        self.removed = max(0, _most_trials(path) - self.lines)
        """Trials that were in the file once and are not any more: somebody has removed them since."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, record: TrialRecord) -> None:
        """Raise ResultError: nothing is added."""
        what = f"trial {record.order.trial_number} is not in the journal"
        raise ResultError(what=what, where=str(self.path), fix="measure it with gatemark run --resume")

    def close(self) -> None:
        """Read no more of the file."""
        self._reader.close()


class Journal(KeptTrials):
    """A journal file to which trials are added. A torn last line is cut off: its trial is made again."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._mark = open_lock(path.with_name(MARK_FILE))
            self._file = open_to_append(path)
            self._file.truncate(self._bytes)
            self._set_mark()
            with opened_folder(path.parent) as folder:
                os.fsync(folder)
        except OSError as error:
            raise _disk_error(path, error) from error

    def append(self, record: TrialRecord) -> None:
        """Write one record and wait until it is on the disk; raise ResultError if it cannot be kept.

        Fields that have their default value are left out of the line.
        """
        line = line_of(record)
        try:
            written = 0
            while written < len(line):  # an unbuffered write may take less, on a disk that fills up for example
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # if this fails too, the torn line is cut off when the journal is read
                self._file.truncate(self._bytes)
            raise _disk_error(self.path, error) from error
        self._bytes += len(line)
        self.lines += 1
        with suppress(OSError):  # a mark that is too low hides nothing but what is removed from here on
            self._set_mark()

    def _set_mark(self) -> None:
        os.pwrite(self._mark.fileno(), f"{self.lines:<20}\n".encode(), 0)

    def close(self) -> None:
        """Close the file; what was not read of it is not read any more."""
        super().close()
        self._file.close()
        self._mark.close()


def records_of(path: Path) -> Generator[TrialRecord, None, None]:
    """Yield the records of a journal, one in memory at a time; a torn last line is left out, the file is not changed.

    Raises ResultError if it cannot be read or a line other than the last one is broken.
    """
    with closing(_whole_lines(path)) as lines:
        for number, line in enumerate(lines, start=1):
            yield _record(line, number, path)


def line_of(record: TrialRecord) -> bytes:
    """Return the line of a record, with its check and its end."""
    content = record.model_dump_json(exclude_defaults=True).encode()[:-1]
    return content + _check(content)


def _most_trials(path: Path) -> int:
    """Return how many trials a journal has held at most; 0 if nobody knows."""
    with suppress(OSError, ValueError), open_to_read(path.with_name(MARK_FILE)) as file:
        return int(file.read(20))
    return 0


def _check(content: bytes) -> bytes:
    """Return the end of a line: the check of what stands before it."""
    return b',"crc32c":"%08x"}\n' % google_crc32c.value(content)


def _whole_lines(path: Path) -> Generator[bytes, None, None]:
    """Yield every line but a torn one at the end."""
    try:
        with open_to_read(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(LINE_OCTETS_MAX + 1), b""), start=1):
                if len(line) > LINE_OCTETS_MAX:
                    raise _damaged(path, number, f"it is longer than {LINE_OCTETS_MAX >> 20} MiB")
                if line.endswith(b"\n"):
                    yield line
    except OSError as error:
        raise ResultError(
            what=f"cannot be read ({error.strerror})", where=str(path), fix="check the path and its permissions"
        ) from error


def _record(line: bytes, number: int, path: Path) -> TrialRecord:
    """Read line `number`, counted from 1."""
    content = line[: -len(_check(b""))]
    if line != content + _check(content):
        raise _damaged(path, number, "its CRC32C is not that of its content: it was changed or damaged")
    try:
        record = TrialRecord.model_validate_json(content + b"}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ResultError(
            what=f"line {number} is not a trial record ({where + ': ' if where else ''}{first['msg']})",
            where=str(path),
            fix="it was written by another version of gatemark: use that one, or measure into a new folder",
        ) from error
    if record.order.trial_number != number:
        raise _damaged(path, number, f"it is trial {record.order.trial_number}: lines were swapped, doubled or removed")
    return record


def _damaged(path: Path, number: int, what: str) -> ResultError:
    before = number - 1
    fix = "restore the file; or measure again into a new folder"
    if before:
        fix = (
            f"restore the file; or keep only what stands before this line (head -n {before}) and make the trials from"
            f" there on again: continue with {RESUME}"
        )
    return ResultError(what=f"line {number}: {what}", where=str(path), fix=fix)


def _disk_error(path: Path, error: OSError) -> ResultError:
    return ResultError(
        what=f"the trial cannot be recorded ({error.strerror or error})",
        where=str(path),
        fix=f"make room or correct the permissions, then continue with {RESUME}; earlier trials are kept",
    )

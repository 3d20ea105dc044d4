"""Files in folders that may have come from anybody: no link is followed, and only ordinary files are read or written.

A symbolic link with the name of a file of results would lead what is written to a file of the reader's; a device or a
FIFO would make the reader wait. So a folder is opened once, and names are taken relative to it. Every function raises
OSError.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, BinaryIO

_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Of every open: a FIFO is not waited for."""


NAMED_OCTETS_MAX = 1 << 20
"""Of a file that a campaign names: four octets a character of the longest that is read."""


class NotAFileError(OSError):
    """Something else has the name of a file that is to be read or written."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.EINVAL, f"{name} is a link, a folder, a FIFO or a device, not an ordinary file")


def replace_files(folder: Path, contents: Mapping[str, bytes], *, below: str | None = None) -> None:
    """Write files by name, in place of those that have the names, and wait until all are on the disk.

    Each is complete or not there, and none gets its name before all are written. `below` names a folder in the folder,
    which is made if it is missing.
    """
    with opened_folder(folder, below) as at:
        hidden = {name: f".{name}.{secrets.token_hex(8)}.new" for name in contents}
        for name in contents:
            _refuse_others(name, at)
        try:
            for name, content in contents.items():
                _write(hidden[name], content, at)
            for name, temporary in hidden.items():
                os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
            os.fsync(at)
        except BaseException:
            for temporary in hidden.values():
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=at)
            raise


def open_to_append(path: Path) -> BinaryIO:
    """Open a file to write at its end, unbuffered; it is made if it is missing."""
    return os.fdopen(_ordinary(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666), "ab", buffering=0)


def open_lock(path: Path) -> IO[bytes]:
    """Open a file to lock it; it is made if it is missing, and nobody else may write to it then."""
    return os.fdopen(_ordinary(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")


def open_to_read(path: Path) -> IO[bytes]:
    """Open a file to read it."""
    return os.fdopen(_ordinary(path, os.O_RDONLY, 0), "rb")


def read_named(path: Path) -> bytes:
    """Return the content of a file that a campaign names, by a link as well. What is no ordinary file is not opened."""
    at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(at).st_mode):
            raise NotAFileError(path.name)
        handle = os.open(f"/proc/self/fd/{at}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(at)
    with os.fdopen(handle, "rb") as file:
        content = file.read(NAMED_OCTETS_MAX + 1) or b""  # None where one of /proc would wait
    if len(content) > NAMED_OCTETS_MAX:
        raise OSError(errno.EFBIG, f"it has more than {NAMED_OCTETS_MAX:,} octets")
    return content


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_to_read(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


@contextlib.contextmanager
def opened_folder(folder: Path, below: str | None = None) -> Iterator[int]:
    """Open a folder, and the one of a name in it, which is made if it is missing and may be no link."""
    with contextlib.ExitStack() as stack:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, at)
        if below is not None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(below, dir_fd=at)
            at = os.open(below, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=at)
            stack.callback(os.close, at)
        yield at


def _refuse_others(name: str, at: int) -> None:
    """Raise NotAFileError if something else has the name of a file."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            raise NotAFileError(name)


def _write(name: str, content: bytes, at: int) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666, dir_fd=at)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)


def _ordinary(path: Path, flags: int, mode: int) -> int:
    """Open a file that is ordinary. One with a second name elsewhere is so only for reading."""
    with opened_folder(path.parent) as at:
        try:
            handle = os.open(path.name, flags | _NO_LINK, mode, dir_fd=at)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise NotAFileError(path.name) from None
            raise
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode) or (facts.st_nlink > 1 and flags & os.O_ACCMODE != os.O_RDONLY):
        os.close(handle)
        raise NotAFileError(path.name)
    return handle

"""Unpacks an archive that may come from anybody: nothing outside its folder, no more than fits, every octet checked."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gatemark.archive.layout import (
    DESCRIPTION,
    INPUTS,
    Description,
    InputKind,
    description_of,
    is_safe,
    read_checksums,
)
from gatemark.errors import ConfigError, Problem, ResultError
from gatemark.facts import CHECKSUMS
from gatemark.results.store import ResultFolder

EXPANSION_MAX = 200
"""How many times larger the content may be than the archive; results are 5 to 15 times as large."""
FREE_OCTETS = 64 << 20
"""Content up to this size is unpacked whatever the size of the archive."""
PIECE_OCTETS = 1 << 20
FILES_MAX = 100_000
AGAIN = "get the archive again from where it comes from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What an archive holds, in a folder; all of it is as its list of checksums says."""

    archive: Path
    path: Path
    """The result folder."""
    description: Description
    files: int
    """Files with a checksum."""
    sha256: str
    """Of the archive itself."""

    @property
    def folder(self) -> ResultFolder:
        return ResultFolder(path=self.path)

    @property
    def inputs(self) -> dict[tuple[InputKind, str], Path]:
        """Where the files lie that the campaign names, by kind and name."""
        return {(facts.kind, facts.name): self.path / INPUTS / facts.file for facts in self.description.inputs}


def is_archive(path: Path) -> bool:
    """Whether a file is compressed like an archive; a campaign file is not."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError:
        return False


@contextlib.contextmanager
def unpacked(archive: Path) -> Iterator[Unpacked]:
    """Unpack an archive into a folder that is removed on leaving. Raises ConfigError if anything is wrong with it."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(archive.open("rb"))
        except OSError as error:
            fix = "name a file that gatemark archive wrote"
            raise ConfigError(what=f"cannot be read: {error.strerror}", where=str(archive), fix=fix) from None
        try:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="gatemark-", ignore_cleanup_errors=True))
            content = unpack(file, archive, Path(place))
        except OSError as error:
            what = f"cannot be unpacked: {error.strerror or error}"
            fix = "make room in the folder for temporary files, or name another one in TMPDIR"
            raise ResultError(what=what, where=str(archive), fix=fix) from error
        yield content


def unpack(file: IO[bytes], archive: Path, place: Path) -> Unpacked:
    """Unpack an open archive into an empty folder and check it. Raises ConfigError if anything is wrong with it."""
    size = os.fstat(file.fileno()).st_size
    room = min(max(FREE_OCTETS, EXPANSION_MAX * size), shutil.disk_usage(place).free // 2)
    reader = _Reader(file, archive, room)
    try:
        digests = dict(_files(reader, place))
        reader.drain()
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, UnicodeError) as error:
        raise _bad(archive, f"is damaged, or not a gatemark archive: {error}") from None
    tops = {path.partition("/")[0] for path in digests}
    top = next(iter(tops), "")
    if len(tops) != 1 or not {f"{top}/{CHECKSUMS}", f"{top}/{DESCRIPTION}"} <= digests.keys():
        raise _bad(archive, f"is not a gatemark archive: it has no folder with {CHECKSUMS} and {DESCRIPTION}")
    path = place / top
    _check(archive, path, {name.partition("/")[2]: digest for name, digest in digests.items()})
    return Unpacked(
        archive=archive,
        path=path,
        description=_description(archive, path),
        files=len(digests) - 1,
        sha256=reader.sha256(),
    )


def _files(reader: _Reader, place: Path) -> Iterator[tuple[str, str]]:
    """Unpack every file; yield its path and its SHA-256.

    Python 3.11.2 of Debian 12 has no filter of its own for what is unpacked. Only ordinary files pass here, and only by
    names that can lead nowhere.
    """
    archive, taken = reader.archive, set[str]()
    with tarfile.open(fileobj=reader, mode="r:") as tar:  # type: ignore[call-overload]
        for member in tar:
            name = member.name
            if not is_safe(name):
                raise _bad(archive, f"holds {name!a}, a path that leads out of its folder or cannot be one")
            if member.type != tarfile.REGTYPE or member.issparse():
                raise _bad(archive, f"holds {name}, which is not an ordinary file")
            if name in taken:
                raise _bad(archive, f"holds {name} twice")
            if len(taken) == FILES_MAX:
                raise _bad(archive, f"holds more than {FILES_MAX} files")
            taken.add(name)
            source = tar.extractfile(member)
            assert source is not None, "an ordinary file has content"
            yield name, _copy(source, place / name, archive)


def _copy(source: IO[bytes], target: Path, archive: Path) -> str:
    """Write a file and return its SHA-256."""
    digest = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            while piece := source.read(PIECE_OCTETS):
                digest.update(piece)
                file.write(piece)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise _bad(archive, f"holds a file and a folder named {target.name}") from None
    return digest.hexdigest()


def _check(archive: Path, path: Path, digests: dict[str, str]) -> None:
    """Raise ConfigError with every file that is not as the list of checksums says."""
    del digests[CHECKSUMS]
    listed = read_checksums((path / CHECKSUMS).read_text(encoding="utf-8", errors="replace"), where=str(archive))
    wrong = [f"{name} has no checksum" for name in digests if name not in listed]
    wrong += [
        f"{name} has changed: its checksum differs"
        for name, digest in digests.items()
        if listed.get(name, digest) != digest
    ]
    wrong += [f"{name} is missing" for name in listed if name not in digests]
    if wrong:
        raise ConfigError(problems=[Problem(what=what, where=str(archive), fix=AGAIN) for what in wrong])


def _description(archive: Path, path: Path) -> Description:
    try:
        description = description_of((path / DESCRIPTION).read_text(encoding="utf-8"))
    except ValueError as error:
        raise _bad(archive, f"{DESCRIPTION} is of another format: {error}") from None
    for facts in description.inputs:
        if not (path / INPUTS / facts.file).is_file():
            raise _bad(archive, f"{DESCRIPTION} names {facts.file!a}, which is not in it")
    return description


def _bad(archive: Path, what: str) -> ConfigError:
    return ConfigError(what=what, where=str(archive), fix=AGAIN)


class _Reader:
    """What a gzip file holds, read forwards up to a size that is given, and never much of it at once."""

    def __init__(self, file: IO[bytes], archive: Path, room: int) -> None:
        self.archive = archive
        self._raw = _Hashed(file)
        self._content = gzip.GzipFile(fileobj=self._raw, mode="rb")  # type: ignore[call-overload]
        self._room, self._position = room, 0

    def tell(self) -> int:
        """Return how many octets were read."""
        return self._position

    def seek(self, position: int) -> int:
        """Read on to a position."""
        if position < self._position:
            raise _bad(self.archive, "is damaged, or not a gatemark archive: its headers point backwards")
        while self._position < position and self.read(min(PIECE_OCTETS, position - self._position)):
            pass
        return self._position

    def read(self, size: int) -> bytes:
        """Return the next octets; fewer at the end only."""
        if size > 16 * PIECE_OCTETS:
            raise _bad(self.archive, "is damaged, or not a gatemark archive: a header has an absurd size")
        content: bytes = self._content.read(size)
        self._position += len(content)
        self._room -= len(content)
        if self._room < 0:
            what = "holds more than fits on the disk, or far more than an archive of its size can"
            fix = "make room below the folder for temporary files (TMPDIR); or do not trust the archive"
            raise ConfigError(what=what, where=str(self.archive), fix=fix)
        return content

    def drain(self) -> None:
        """Read what stands behind the last file, so that the checksum of gzip is checked."""
        while piece := self.read(PIECE_OCTETS):
            if piece.strip(b"\0"):
                raise _bad(self.archive, "is damaged: data follows its end")

    def sha256(self) -> str:
        """Return the digest of all that was read of the file itself."""
        return self._raw.digest.hexdigest()


class _Hashed:
    """A file that is read once from begin to end, with the digest of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Return the next octets."""
        piece = self._file.read(size)
        self.digest.update(piece)
        return piece

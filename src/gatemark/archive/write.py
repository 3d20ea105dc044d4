"""Makes the archive of a result folder: the same folder gives the same octets."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from gatemark.archive.inputs import InputText, inputs_of, kept_inputs
from gatemark.archive.layout import (
    DESCRIPTION,
    FORMAT,
    INPUTS,
    OWN_FOLDER,
    SUFFIX,
    Description,
    InputKind,
    checksums_text,
    description_of,
    is_safe,
)
from gatemark.archive.read import AGAIN, unpack
from gatemark.archive.recompute import campaign_folders, check_inputs
from gatemark.config.load import document_of_text
from gatemark.errors import ConfigError, ResultError
from gatemark.facts import CHECKSUMS
from gatemark.files import open_to_read
from gatemark.results.new_file import new_file
from gatemark.results.store import ResultFolder, file_name
from gatemark.results.this_machine import gatemark_version
from gatemark.series.store import SERIES_FILE, SeriesFolder, is_series

LEVEL = 6
"""Of compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive that was written."""

    path: Path
    octets: int
    files: int
    """Files with a checksum."""
    sha256: str
    """Of the archive itself."""


def write_archive(folder: Path, output: Path | None = None) -> Archive:
    """Write the archive of a result folder (default: beside it), after it was read again.

    Raises ResultError if the folder cannot be archived, ConfigError if the file exists. What is interrupted leaves
    nothing.
    """
    folder = folder.resolve()
    result = ResultFolder(path=folder)
    _check_measured(result)
    target = folder.with_name(f"{file_name(folder.name)}{SUFFIX}") if output is None else output.absolute()
    if target.is_relative_to(folder):
        what = "is inside the folder that it is the archive of"
        raise ConfigError(what=what, where=f"--output {target}", fix="name a file outside of it")
    with _not_written_to(result), new_file(target, where=f"--output {target}") as file:
        description, inputs = _description(result)
        _write(file, result, description, inputs)
        file.flush()
        file.seek(0)
        with tempfile.TemporaryDirectory(prefix="gatemark-", ignore_cleanup_errors=True) as place:
            content = unpack(file, target, Path(place))
            check_inputs(content)
            octets = file.tell()
    return Archive(path=target, octets=octets, files=content.files, sha256=content.sha256)


def _check_measured(result: ResultFolder) -> None:
    """Raise ResultError if it is no folder of results, or of some that are only begun."""
    if _kind(result) == "folder" and not any(folder.has("result.json") for folder in campaign_folders(result)):
        ResultFolder.open(result.path)  # says what is missing
    name = {"series": "series.json", "campaign": "result.json"}.get(_kind(result))
    if name is not None and not result.has(name):
        what = f"nothing is measured yet: it holds no {name}"
        raise ResultError(what=what, where=str(result.path), fix=f"gatemark run --resume {result.path}")


def _kind(result: ResultFolder) -> Literal["campaign", "series", "folder"]:
    if is_series(result.path):
        return "series"
    return "campaign" if result.campaign_file.exists() else "folder"


@contextlib.contextmanager
def _not_written_to(result: ResultFolder) -> Iterator[None]:
    """Hold a folder for reading, and those below it: a campaign that is under way in one is refused."""
    with contextlib.ExitStack() as held:
        for folder in {folder.path: folder for folder in (result, *campaign_folders(result))}.values():
            held.enter_context(_held(folder))
        yield


@contextlib.contextmanager
def _held(result: ResultFolder) -> Iterator[None]:
    try:
        lock = open_to_read(result.path / ".lock")
    except FileNotFoundError:  # a copy of a folder
        yield
        return
    except OSError as error:
        raise _unreadable(str(result.path / ".lock"), error.strerror or str(error)) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            what = "another gatemark writes to this folder"
            raise ResultError(what=what, where=str(result.path), fix="wait until it ends") from error
        yield


def _description(result: ResultFolder) -> tuple[Description, tuple[InputText, ...]]:
    """Return what the archive says of itself, with the files that the campaign names."""
    if result.has(DESCRIPTION):  # it was unpacked from an archive
        try:
            description = description_of(result.read_text(DESCRIPTION))
        except ValueError as error:
            what = f"{DESCRIPTION} is of another format: {error}"
            raise ResultError(what=what, where=str(result.path), fix=AGAIN) from None
        return description, kept_inputs(result, description.inputs)
    inputs: dict[tuple[InputKind, str], InputText] = {}
    taken: set[str] = set()
    for document, place in _campaign_files(result):
        for given in inputs_of(document, place, taken):
            known = inputs.setdefault((given.facts.kind, given.facts.name), given)
            if known.text != given.text:
                what = f"its campaigns name two files {given.facts.name} that differ"
                raise ResultError(what=what, where=str(result.path), fix="archive each of the folders in it")
    description = Description(
        format=FORMAT,
        kind=_kind(result),
        gatemark=gatemark_version(),
        inputs=tuple(given.facts for given in inputs.values()),
    )
    return description, tuple(inputs.values())


def _campaign_files(result: ResultFolder) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield the document of each campaign file, and the folder that its paths start at."""
    if is_series(result.path):
        source = Path(SeriesFolder(files=result).read().file)
        yield document_of_text(result.read_text(SERIES_FILE), path=source), source.parent
        return
    for folder in campaign_folders(result):
        source = Path(folder.read_campaign()[1] or folder.campaign_file)
        yield document_of_text(folder.read_text("campaign.toml"), path=source), source.parent


def _members(result: ResultFolder) -> Iterator[tuple[str, Path]]:
    """Yield the files of a result folder by their paths in it; hidden ones are gatemark's own and left out."""
    if (result.path / OWN_FOLDER).exists() and not result.has(DESCRIPTION):
        what = f"holds something called {OWN_FOLDER} that is not gatemark's"
        raise ResultError(what=what, where=str(result.path), fix="rename it")
    for path in sorted(result.path.rglob("*")):
        relative = path.relative_to(result.path)
        if any(part.startswith(".") for part in relative.parts) or relative.parts[0] in (OWN_FOLDER, CHECKSUMS):
            continue
        if path.is_symlink() or not (path.is_dir() or path.is_file()) or not is_safe(f"folder/{relative.as_posix()}"):
            what = f"holds {str(relative)!a}, which is not an ordinary file of a result folder"
            raise ResultError(what=what, where=str(result.path), fix="move it elsewhere")
        if path.is_file():
            yield relative.as_posix(), path


def _write(file: IO[bytes], result: ResultFolder, description: Description, inputs: tuple[InputText, ...]) -> None:
    top = file_name(result.path.name)
    digests: dict[str, str] = {}
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=file, mtime=0) as content,
        tarfile.open(fileobj=content, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):

        def add(name: str, source: IO[bytes], size: int) -> None:
            hashed = _Hashing(source, name)
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = size
            tar.addfile(member, hashed)  # type: ignore[arg-type]
            digests[name] = hashed.digest.hexdigest()

        for name, path in _members(result):
            with _opened(path) as source:
                add(name, source, path.stat().st_size)
        texts = {DESCRIPTION: description.to_text()} | {f"{INPUTS}/{given.facts.file}": given.text for given in inputs}
        for name, text in texts.items():
            add(name, io.BytesIO(text.encode()), len(text.encode()))
        checksums = checksums_text(digests).encode()
        add(CHECKSUMS, io.BytesIO(checksums), len(checksums))


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_to_read(path)
    except OSError as error:
        raise _unreadable(str(path), error.strerror or str(error)) from error


class _Hashing:
    """A source that is read once, with the digest of what was read."""

    def __init__(self, source: IO[bytes], name: str) -> None:
        self._source, self._name = source, name
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Return the next octets. Raises ResultError if there are fewer."""
        try:
            piece = self._source.read(size)
        except OSError as error:
            raise _unreadable(self._name, error.strerror or str(error)) from error
        if len(piece) < size:
            raise _unreadable(self._name, "it became shorter while it was read")
        self.digest.update(piece)
        return piece


def _unreadable(name: str, why: str) -> ResultError:
    return ResultError(what=f"cannot be read: {why}", where=name, fix="make it readable, and try again")

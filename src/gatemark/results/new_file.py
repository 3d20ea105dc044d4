"""Files outside of result folders: complete or not there, whatever ends the process that writes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from gatemark.errors import ConfigError, ResultError
from gatemark.files import opened_folder, replace_files


@contextlib.contextmanager
def new_file(path: Path, *, where: str) -> Iterator[IO[bytes]]:
    """Open a file that has no name until all of it is on the disk: whatever ends the process leaves nothing.

    On a file system without such files it has a hidden name meanwhile, which only a killed process leaves. `where`
    names the option for the file. Raises ConfigError if the file exists, ResultError if it cannot be written.
    """
    exists = ConfigError(what="exists, and is not overwritten", where=where, fix="name another file, or remove it")
    if os.path.lexists(path):
        raise exists
    try:
        with contextlib.ExitStack() as stack:
            file, source = _open(path, stack)
            yield file
            file.flush()
            os.fsync(file.fileno())
            try:
                # With src_dir_fd Python calls linkat, which follows the link in /proc; the path itself is absolute.
                os.link(source, path, src_dir_fd=file.fileno(), follow_symlinks=True)
            except FileExistsError:
                raise exists from None
            with opened_folder(path.parent) as at:
                os.fsync(at)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        fix = "name a file in a folder that you may write to, on a disk with room"
        raise ResultError(what=what, where=str(path), fix=fix) from error


def _open(path: Path, stack: contextlib.ExitStack) -> tuple[IO[bytes], str]:
    """Return the open file, and what it can be linked from; `stack` closes it, and removes a name that it has."""
    try:
        handle = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
        return stack.enter_context(os.fdopen(handle, "w+b")), f"/proc/self/fd/{handle}"
    except OSError:
        hidden = path.absolute().with_name(f".{path.name}.{os.getpid()}.new")
        file = stack.enter_context(hidden.open("x+b"))
        stack.callback(hidden.unlink, missing_ok=True)
        return file, str(hidden)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is made if it is missing; none takes its name before all are on the disk.

    Files of these names are replaced. Raises ResultError if they cannot be written.
    """
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_files(folder, files)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        fix = "name a folder that you may write to, on a disk with room"
        raise ResultError(what=what, where=str(folder), fix=fix) from error
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # it stays if it holds what was written
                folder.rmdir()

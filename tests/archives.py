"""Archives as a stranger would change them: other files, with checksums that fit."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

from gatemark.archive.layout import checksums_text
from gatemark.facts import CHECKSUMS


def repacked(archive: Path, target: Path, edit: Callable[[dict[str, bytes]], None]) -> Path:
    """Change the files of an archive by their paths below its top folder, and write another one."""
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    top = next(iter(files)).partition("/")[0]
    inside = {name.partition("/")[2]: octets for name, octets in files.items()}
    del inside[CHECKSUMS]
    edit(inside)
    digests = {name: hashlib.sha256(octets).hexdigest() for name, octets in inside.items()}
    inside[CHECKSUMS] = checksums_text(digests).encode()
    with tarfile.open(target, "w:gz") as tar:
        for name, octets in inside.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(octets)
            tar.addfile(member, io.BytesIO(octets))
    return target

"""Names in an archive, its description of itself, and its list of checksums. Values only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import ValidationError, field_validator

from gatemark.errors import ConfigError
from gatemark.facts import CHECKSUMS, Facts
from gatemark.harmless import json_of

OWN_FOLDER = "archive"
"""Folder with what is not of the result folder."""
DESCRIPTION = f"{OWN_FOLDER}/archive.json"
INPUTS = f"{OWN_FOLDER}/inputs"
SUFFIX = ".tar.gz"
FORMAT = 1
"""Format number: changes whenever a name or key changes its meaning."""
DEPTH_MAX = 8
"""Folders below each other, in an archive."""

InputKind = Literal["recipe", "commands"]


class Input(Facts):
    """A file that a campaign names."""

    kind: InputKind
    """A recipe (`testbed.recipe`), or commands (`gateway.control.commands`)."""
    name: str
    """As the campaign file has it: a name of gatemark's own, or a path."""
    file: str
    """Its name in the folder of inputs, out of which it does not lead."""
    sha256: str

    @field_validator("file")
    @classmethod
    def _stays(cls, value: str) -> str:
        if not is_safe(value):
            raise ValueError(f"{value!a} is not the name of a file in {INPUTS}")
        return value


class Description(Facts):
    """All of `archive.json`."""

    format: Literal[1]
    kind: Literal["campaign", "series", "folder"]
    """``folder``: result folders below it, as several campaigns and calibrations leave them."""
    gatemark: str
    """Version that made the archive."""
    inputs: tuple[Input, ...]

    def to_text(self) -> str:
        """Return the file's text."""
        return self.model_dump_json(indent=2) + "\n"


def description_of(text: str) -> Description:
    """Read the text of `archive.json`, which others wrote. Raises ValueError that says what is wrong with it."""
    try:
        return Description.model_validate(json_of(text))
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None


def checksums_text(digests: Mapping[str, str]) -> str:
    """Return the list of checksums, by path."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))


def read_checksums(text: str, *, where: str) -> dict[str, str]:
    """Return digests by path. Raises ConfigError if a line is no checksum."""
    digests: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if match is None or match[2] in digests:
            what = f"line {number} of {CHECKSUMS} is not the checksum of another file"
            raise ConfigError(what=what, where=where, fix="get the archive again from where it comes from")
        digests[match[2]] = match[1]
    return digests


def is_safe(path: str) -> bool:
    """Whether a path stays in the folder that it is unpacked in, whatever lies there, and can be shown."""
    parts = path.split("/")
    return (
        path.isprintable()
        and len(parts) <= DEPTH_MAX
        and all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts)
    )

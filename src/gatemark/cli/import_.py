"""`gatemark import FORMAT FILE`: the configuration file of another tester as a campaign file."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from gatemark.cli.common import AsJson, print_json
from gatemark.config.load import text_of
from gatemark.config.maptperf import MaptperfImport, read_maptperf
from gatemark.errors import ConfigError, ResultError
from gatemark.results.toml_text import to_toml
from gatemark.technology import TECHNOLOGIES

FormatName = Literal["maptperf"]
COLUMNS = 100


def import_(form: FormatName, file: Path, /, *, output: Path | None = None, as_json: AsJson = False) -> int:
    """Make a campaign file of the configuration file of another tester; comments say what could not be taken over.

    Example: gatemark import maptperf Maptperf.conf --output campaign.toml

    Parameters
    ----------
    form
        maptperf.
    file
        Configuration file of that tester.
    output
        Campaign file to write; one that exists is not overwritten. Default: standard output.
    as_json
        Print the campaign and what could not be taken over as JSON in place of the text of a file.
    """
    read = _READERS[form](text_of(file, f"configuration file of {form.capitalize()}"), str(file))
    text = _notes_text(form, file, read) + to_toml(read.document)
    if output is not None:
        _write_new(output, text)
    if as_json:
        print_json({"campaign": read.document, "notes": list(read.notes)})
    elif output is None:
        print(text, end="")
    else:
        print("\n".join([f"{output} is written", *(f"- {note}" for note in read.notes)]))
    return 0


def _notes_text(form: FormatName, file: Path, read: MaptperfImport) -> str:
    lines = [f"# Imported from {file.name}, a configuration file of {form.capitalize()}.", "#"]
    for note in read.notes:
        lines += textwrap.wrap(note, COLUMNS, initial_indent="# - ", subsequent_indent="#   ")
    return "\n".join(lines) + "\n\n"


def _maptperf(text: str, where: str) -> MaptperfImport:
    (technology,) = (row.name for row in TECHNOLOGIES.values() if row.has_edges and not row.is_stateful)
    return read_maptperf(text, where=where, technology=technology)


_READERS: Mapping[FormatName, Callable[[str, str], MaptperfImport]] = {"maptperf": _maptperf}
"""What reads a file of each format, given its text and its name for messages."""


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fix = "name another file, or remove this one"
        raise ConfigError(what="exists, and is not overwritten", where=f"--output {path}", fix=fix) from None
    except OSError as error:
        fix = "name a file in a folder you may write"
        raise ResultError(what=f"cannot be written: {error.strerror}", where=str(path), fix=fix) from None

"""`gatemark import FORMAT FILE`: the configuration file of another tester as a campaign file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from gatemark.cli.output import AsJson, print_json
from gatemark.config.key_value_file import Imported
from gatemark.config.load import text_of
from gatemark.config.maptperf import read_maptperf
from gatemark.config.siitperf import read_siitperf
from gatemark.config.siitperf_script import Script, read_script, with_scripts
from gatemark.errors import ConfigError, GatemarkError, Problem, ResultError
from gatemark.harmless import visible_line
from gatemark.results.toml_text import to_toml
from gatemark.technology import TECHNOLOGIES

FormatName = Literal["maptperf", "siitperf"]
TESTERS: Mapping[FormatName, str] = {"maptperf": "Maptperf", "siitperf": "siitperf"}
COLUMNS = 100


def import_(
    form: FormatName,
    file: Path,
    /,
    *,
    script: tuple[Path, ...] = (),
    left_port: str | None = None,
    right_port: str | None = None,
    output: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Convert the configuration file of another tester to a campaign file. Comments name what could not be converted.

    Example: gatemark import siitperf siitperf.conf --script binary-rate-alg.sh --output campaign.toml

    Parameters
    ----------
    form
        Tester whose configuration it is.
    file
        Configuration file of that tester: siitperf.conf or Maptperf.conf.
    script
        For siitperf: script whose variables define the measurement, such as binary-rate-alg.sh. Can be repeated.
    left_port
        left.port of the campaign, such as pci:0000:01:00.0.
    right_port
        right.port of the campaign.
    output
        Campaign file to write. An existing file is not overwritten. Default: standard output.
    as_json
        Print the campaign and what could not be converted as JSON instead of a campaign file.
    """
    read = _siitperf(file, script) if form == "siitperf" else _maptperf(file, script)
    missing = []
    for side, port in (("left", left_port), ("right", right_port)):
        if port is None:
            missing.append(f"{side}.port")
        else:
            read.document[side] = {"port": port, **read.document[side]}
    missing += [] if script else ["the table of a procedure"]
    notes = [f"Add what the file does not give: {', '.join(missing)}."] if missing else []
    notes += read.notes
    text = _notes_text(form, file, notes) + to_toml(read.document, read.comments)
    if output is not None:
        _write_new(output, text)
    if as_json:
        print_json({"campaign": read.document, "notes": notes})
    elif output is None:
        print(text, end="")
    else:
        print("\n".join([f"wrote {output}", *(f"- {visible_line(note)}" for note in notes)]))
    return 0


def _notes_text(form: FormatName, file: Path, notes: list[str]) -> str:
    lines = [f"# Imported from {visible_line(file.name)}, a configuration file of {TESTERS[form]}.", "#"]
    for note in notes:
        lines += textwrap.wrap(visible_line(note), COLUMNS, initial_indent="# - ", subsequent_indent="#   ")
    return "\n".join(lines) + "\n\n"


def _maptperf(file: Path, scripts: tuple[Path, ...]) -> Imported:
    if scripts:
        raise ConfigError(
            what="does not apply to maptperf, whose scripts are not read", where="--script", fix="leave it out"
        )
    (technology,) = (row.name for row in TECHNOLOGIES.values() if row.has_edges and row.is_translation)
    text = text_of(file, "configuration file of Maptperf")
    return read_maptperf(text, where=str(file), technology=technology)


def _siitperf(file: Path, paths: tuple[Path, ...]) -> Imported:
    """Read the configuration file and all scripts; what is wrong with any of them is told at once."""
    problems: list[Problem] = []
    scripts: list[Script] = []
    for path in paths:
        try:
            scripts.append(read_script(text_of(path, "script of siitperf"), where=str(path)))
        except GatemarkError as error:
            problems += error.problems
    read = None
    try:
        text = text_of(file, "configuration file of siitperf")
        read = read_siitperf(text, where=str(file), mixed=any(script.is_mixed for script in scripts))
    except GatemarkError as error:
        problems = [*error.problems, *problems]
    if read is None or problems:
        raise ConfigError(problems=problems)
    return with_scripts(read, scripts)


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fix = "name another file, or remove this one"
        raise ConfigError(what="exists and is not overwritten", where=f"--output {path}", fix=fix) from None
    except OSError as error:
        fix = "name a file in a folder you may write"
        raise ResultError(what=f"cannot be written: {error.strerror}", where=str(path), fix=fix) from None

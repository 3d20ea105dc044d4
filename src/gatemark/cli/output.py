"""What every command prints when it ends: its document as JSON, or its errors in words."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from gatemark.errors import GatemarkError, Problem
from gatemark.harmless import visible_json

AsJson = Annotated[bool, Parameter(name="--json")]
"""Flag of every command: JSON on standard output instead of text."""

_NUMBERS = re.compile(r"\[\n((?: *(?:-?\d[-+.\deE]*|null),?\n)+) *\]")
"""A list of numbers as `json.dumps` writes it; a text of JSON holds no line end, so nothing else looks like it."""


def print_json(value: Any) -> None:
    """Print a JSON document to standard output, with a list of numbers on one line."""
    can_write = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = visible_json(json.dumps(value, indent=2, ensure_ascii=not can_write))
    print(_NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text))


def tell_error(error: GatemarkError, *, as_json: bool) -> None:
    """Report all problems of an error: words to standard error, or JSON to standard output."""
    with contextlib.suppress(OSError):  # nobody reads it
        if as_json:
            print_json({"errors": [problem.to_json() for problem in error.problems]})
        else:
            print("\n\n".join(_words(problem) for problem in error.problems), file=sys.stderr)
    finish_output()


def finish_output() -> None:
    """Write what is still to be written; drop it where the terminal was closed, or the reader of a pipe has ended.

    Python would try again at its end, and make its failure the exit status.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _words(problem: Problem) -> str:
    text = f"error: {problem.where}: {problem.what}" if problem.where else f"error: {problem.what}"
    return f"{text}\n\nhint: {problem.fix}" if problem.fix else text

"""The manual page, made of the help of the commands: `python -m gatemark.cli.man_page` prints it.

The wheel installs `docs/reference/gatemark.1`, which a test compares with what this gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from cyclopts import App

from gatemark.cli.main import COMMANDS, HELP, function_of, make_app

NAME = "gatemark"
SOURCES = "gatemark.cli"


def man_page() -> str:
    """Return the page in roff, of section 1; it has no date and no version, so that it is the same on every day."""
    app = make_app()
    lines = [f'.TH {NAME.upper()} 1 "" "{NAME}" "User Commands"', ".SH NAME"]
    what, *rest = HELP.strip().split("\n\n")
    lines += [f"{NAME} \\- {_text(what.rstrip('.'))}", ".SH SYNOPSIS", f".B {NAME}", ".I COMMAND", "[...]"]
    lines += [".SH DESCRIPTION", *_paragraphs(rest)]
    lines += [".SH COMMANDS"]
    for command in COMMANDS:
        lines += _command(command, app[command])
    lines += [".SH SEE ALSO", *_paragraphs(["Every command shows its help with --help."])]
    return "\n".join(lines) + "\n"


def _command(command: str, app: App) -> Iterator[str]:
    """Yield what the page says of one command."""
    arguments = list(app.assemble_argument_collection(parse_docstring=True))
    places = [_places(argument) for argument in arguments if not _is_option(argument)]
    yield f'.SS "{_text(" ".join([NAME, command, *places]))} [OPTIONS]"'
    function = getattr(import_module(f"{SOURCES}.{function_of(command)}"), function_of(command))
    yield from _paragraphs((inspect.getdoc(function) or "").partition("\nParameters\n")[0].strip().split("\n\n"))
    for argument in arguments:
        yield ".TP"
        yield (
            f"\\fB{_text(argument.names[0])}\\fR{_value(argument)}"
            if _is_option(argument)
            else (f"\\fI{_text(argument.names[0])}\\fR")
        )
        yield _line(argument.parameter.help or "")


def _is_option(argument: Any) -> bool:
    return bool(argument.names[0].startswith("-"))


def _places(argument: Any) -> str:
    """Return an argument without a name as the synopsis has it."""
    name = f"{argument.names[0]}{'...' if argument.token_count()[1] else ''}"
    return name if argument.required else f"[{name}]"


def _value(argument: Any) -> str:
    """Return what stands behind an option: its choices, or a word for each value."""
    choices = argument.get_choices()
    if argument.hint is bool:
        return ""
    if choices:
        return f" \\fI{_text('|'.join(choices))}\\fR"
    word = "PATH" if argument.hint is Path or Path in _types(argument.hint) else "VALUE"
    return f" \\fI{' '.join([word] * max(1, argument.token_count()[0]))}\\fR"


def _types(hint: Any) -> set[Any]:
    inner = get_args(hint)
    return {hint}.union(*(_types(part) for part in inner if part is not Ellipsis)) if inner else {hint}


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield ".PP"
        yield _line(text)


def _line(text: str) -> str:
    """Return a text as one line that is no request of roff."""
    line = _text(" ".join(text.split()))
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _text(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


if __name__ == "__main__":
    print(man_page(), end="")

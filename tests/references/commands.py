"""The help of the commands, as the manual page and as the tables of the page of the command line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from cyclopts import App
from tests.references.page import table

from gatemark.cli.main import COMMANDS, HELP, function_of, make_app
from gatemark.errors import EXIT_STATUSES

NAME = "gatemark"
SOURCES = "gatemark.cli"


STATUSES = "the exit statuses"


def block(name: str) -> str:
    """Return a block of the page of the command line: the exit statuses, or what the help of a command says."""
    if name == STATUSES:
        return table(("exit status", "meaning"), ((str(status), words) for status, words in EXIT_STATUSES.items()))
    return _help_of(name)


def _help_of(command: str) -> str:
    rows = ((f"`{_name(argument)}{_value(argument)}`", _help(argument)) for argument in _arguments(make_app()[command]))
    lines = (re.sub("^Example: (.+)$", r"Example: `\1`", paragraph) for paragraph in _description(command))
    return "\n\n".join([*lines, table(("argument or option", "meaning"), rows)])


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
    """Yield what the manual page says of one command."""
    places = [_place(argument) for argument in _arguments(app) if not _is_option(argument)]
    yield f'.SS "{_text(" ".join([NAME, command, *places]))} [OPTIONS]"'
    yield from _paragraphs(_description(command))
    for argument in _arguments(app):
        yield ".TP"
        yield (
            f"\\fB{_text(_name(argument))}\\fR{_styled(_value(argument))}"
            if _is_option(argument)
            else f"\\fI{_text(_name(argument))}\\fR"
        )
        yield _line(_help(argument))


def _description(command: str) -> list[str]:
    """Return the paragraphs of a command's help."""
    function = getattr(import_module(f"{SOURCES}.{function_of(command)}"), function_of(command))
    return (inspect.getdoc(function) or "").partition("\nParameters\n")[0].strip().split("\n\n")


def _arguments(app: App) -> list[Any]:
    return list(app.assemble_argument_collection(parse_docstring=True))


def _name(argument: Any) -> str:
    return str(argument.names[0])


def _help(argument: Any) -> str:
    """Return what an argument is, with its choices and its default where the synopsis and the help do not say them."""
    words, default = argument.parameter.help or "", argument.field_info.default
    choices = argument.get_choices() or ()
    if not _is_option(argument) and any(choice not in words for choice in choices):
        words += f" One of {', '.join(choices)}."
    if not isinstance(default, str | int) or isinstance(default, bool) or "efault" in words:
        return words
    return f"{words} Default: {default}."


def _is_option(argument: Any) -> bool:
    return bool(argument.names[0].startswith("-"))


def _place(argument: Any) -> str:
    """Return an argument without a name as the synopsis has it."""
    name = f"{argument.names[0]}{'...' if argument.token_count()[1] else ''}"
    return name if argument.required else f"[{name}]"


def _value(argument: Any) -> str:
    """Return what stands behind an option: its choices, or a word for each value."""
    choices = argument.get_choices()
    if argument.hint is bool or not _is_option(argument):
        return ""
    if choices:
        return f" {'|'.join(choices)}"
    word = "PATH" if argument.hint is Path or Path in _types(argument.hint) else "VALUE"
    return f" {' '.join([word] * max(1, argument.token_count()[0]))}"


def _styled(value: str) -> str:
    return f" \\fI{_text(value.strip())}\\fR" if value else ""


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

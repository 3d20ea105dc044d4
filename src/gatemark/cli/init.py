"""`gatemark init [FILE]`: five questions, and a campaign file of the answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gatemark.cli.output import AsJson, print_json
from gatemark.errors import ConfigError
from gatemark.starter.ask import Given, ask_all
from gatemark.starter.text import PLACES
from gatemark.starter.write import first_campaign, write_first
from gatemark.tester import stop_signals

WHERE = " ".join(f"{place}: {words}." for place, words in PLACES.items())


def init(
    file: Path = Path("campaign.toml"),
    /,
    *,
    technology: str | None = None,
    place: Annotated[str | None, Parameter(help=WHERE)] = None,
    recipe: str | None = None,
    ports: tuple[str, str] | None = None,
    measure: tuple[str, ...] = (),
    time: str | None = None,
    as_json: AsJson = False,
) -> int:
    """Ask five questions and write a commented campaign file that `gatemark plan` accepts.

    Each option answers one question. With all of them, init asks nothing.

    Example: gatemark init campaign.toml --time 10min

    Parameters
    ----------
    file
        Campaign file to write, by default campaign.toml. An existing file is not overwritten.
    technology
        What the gateway does: a value of gateway.technology.
    recipe
        In namespaces: name or path of the recipe.
    ports
        Elsewhere: the Tester's ports, left and right, such as pci:0000:01:00.0 pci:0000:01:00.1.
    measure
        Table of what is measured, such as throughput. Procedures that supply its loads are added. Can be repeated.
    time
        How long it may take, such as 10min; rfc: as long as the RFCs say.
    as_json
        Print the name and the text of the file as JSON in place of words.
    """
    if os.path.lexists(file):
        raise ConfigError(what="exists and is not overwritten", where=str(file), fix="name another file, or remove it")
    given = Given(technology=technology, place=place, recipe=recipe, ports=ports, measure=measure, time=time)
    with stop_signals(resume_hint=None):
        answers, most_ns = ask_all(given)
        text = first_campaign(answers, most_ns, file)
        write_first(text, file)
    if as_json:
        print_json({"file": str(file), "campaign": text})
    else:
        print(f"wrote {file}; read it, then run: gatemark plan {file}")
    return 0

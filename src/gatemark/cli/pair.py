"""`gatemark pair A.toml B.toml`: two gateways measured in pairs of short trials, and what that shows of their ratio."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gatemark.cli.common import narrowed, one_campaign
from gatemark.cli.output import AsJson, print_json
from gatemark.config.control_files import is_path
from gatemark.config.model import Campaign
from gatemark.consoles import stdout_console
from gatemark.errors import ConfigError, GatemarkError, Interrupted, Problem
from gatemark.facts import Direction
from gatemark.pairs.conclude import Wanted
from gatemark.pairs.figure import FIGURES, FORWARDING_RATE
from gatemark.pairs.options import DURATION, PairOptions, wanted_of
from gatemark.pairs.pair import SIDES
from gatemark.pairs.progress import pair_display
from gatemark.pairs.report import end_lines, figures_section, sides_section
from gatemark.pairs.run import (
    Measured,
    PairResult,
    check_measured,
    check_unchanged,
    create_folder,
    measure_pairs,
    open_folder,
    traffic_of,
)
from gatemark.report.terminal import section_text
from gatemark.results.store import default_folder
from gatemark.tester import Equipment
from gatemark.trial.cell import Cell

ONLY_TIME = "only --time, --trust-commands and --json can be combined with it"
PRECISION, TIME, CONFIDENCE = "3%", "5min", "95%"
QUANTITIES = "; ".join(figure.described for figure in FIGURES.values()) + "."
DEFAULTS = (PRECISION, DURATION, CONFIDENCE, 1, FORWARDING_RATE.name)


def pair(
    *files: Path,
    recipe: tuple[str, ...] = (),
    quantity: Annotated[str, Parameter(help=QUANTITIES)] = FORWARDING_RATE.name,
    fail_if: tuple[str, ...] = (),
    precision: str = PRECISION,
    time: str | None = None,
    duration: str = DURATION,
    size: int | None = None,
    direction: Direction | None = None,
    mix: str | None = None,
    confidence: str = CONFIDENCE,
    seed: int = 1,
    output: Path | None = None,
    resume: Path | None = None,
    trust_commands: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure two gateways in pairs of short trials, close together, and show by how much B is slower than A.

    Both test beds are open at once. The exit status is 1 if a condition of --fail-if is met or cannot be judged.

    Example: gatemark pair before.toml after.toml --fail-if "forwarding rate worse than 5%"

    Parameters
    ----------
    files
        Campaign files of A and B; with two --recipe one file for both.
    recipe
        Recipe of A, then that of B, in place of the recipe of the file: a name or a path.
    fail_if
        Condition such as "forwarding rate worse than 5%": met if the pairs show that B is slower by more than that.
        With "may be worse" it is met unless they show the opposite. Can be repeated.
    precision
        Stop when the interval is within plus or minus this; it always includes 1.5% between test beds of one gateway.
    time
        Stop after this time of measuring. Default: 5min.
    duration
        Sending time of a trial; that of connections per second follows from connections.count.
    size
        Frame size in octets, of the family that the file names. Default: the first in the file.
    direction
        Direction of the traffic. Default: the first in the file.
    mix
        Foreground share as m/n. Default: the first in the file.
    confidence
        Confidence of all looks at the pairs together.
    seed
        Decides which trial of a pair is made first.
    output
        Folder for the results; by default a new folder in results/.
    resume
        Continue the pairs in this folder. Of the other options only --time, the total time, is allowed.
    trust_commands
        With --resume: continue a folder that came from another user. A folder from another machine is always refused.
    as_json
        Print pair.json instead of tables.
    """
    if resume is not None:
        given = (*files, *recipe, *fail_if, size, direction, mix, output)
        _check_alone(*given, (precision, duration, confidence, seed, quantity) != DEFAULTS)
        return _tell(_resumed(resume, time, trust_commands=trust_commands), as_json=as_json)
    options = PairOptions(
        files=_files(files, recipe), recipes=_recipes(recipe), size=size, direction=direction, mix=mix,
        duration=duration, precision=precision, time=time or TIME, fail_if=fail_if, confidence=confidence,
        seed=seed, quantity=quantity,
    )  # fmt: skip
    return _tell(_begun(options, output), as_json=as_json)


def _check_alone(*others: object) -> None:
    """Raise ConfigError if an option is given that the folder of --resume holds already."""
    if any(others):
        raise ConfigError(what=ONLY_TIME, where="--resume", fix="leave the others out: the folder holds them")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Options with what they mean."""

    wanted: Wanted
    measured: Measured


def _asked(options: PairOptions) -> _Asked:
    """Read files and options. Raises ConfigError with all that is wrong with any of them."""
    problems: list[Problem] = []
    wanted: Wanted | None = None
    sides: list[tuple[Campaign, Cell]] = []
    try:
        wanted = wanted_of(options)
    except ConfigError as error:
        problems += error.problems
    for file, recipe in zip(options.files, options.recipes, strict=True):
        try:
            sides.append(_side(Path(file), recipe, options))
        except GatemarkError as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if wanted is None or problems:
        raise ConfigError(problems=problems)
    figure = wanted.figure
    measured = {
        side: (campaign, traffic_of(campaign, cell, figure))
        for side, (campaign, cell) in zip(SIDES, sides, strict=True)
    }
    check_measured(measured, figure)
    return _Asked(wanted=wanted, measured=measured)


def _side(file: Path, recipe: str | None, options: PairOptions) -> tuple[Campaign, Cell]:
    campaign = one_campaign(file)
    if recipe is not None:
        testbed = campaign.testbed.model_copy(update={"recipe": recipe})
        campaign = campaign.model_copy(update={"testbed": testbed})
    return narrowed(campaign, size=options.size, direction=options.direction, mix=options.mix)


def _begun(options: PairOptions, output: Path | None) -> PairResult:
    asked, equipment = _asked(options), Equipment()
    folder = create_folder(
        output or default_folder(f"pair-{asked.measured['A'][0].name}"), options, asked.measured, equipment
    )
    with pair_display() as display:
        return measure_pairs(folder, asked.measured, asked.wanted, on_open=display.on_open, on_pair=display.on_pair)


def _resumed(path: Path, time: str | None, *, trust_commands: bool) -> PairResult:
    folder, options = open_folder(path, trust_commands=trust_commands)
    asked = _asked(options if time is None else options.model_copy(update={"time": time}))
    check_unchanged(folder, asked.measured, Equipment())
    with pair_display() as display:
        return measure_pairs(folder, asked.measured, asked.wanted, on_open=display.on_open, on_pair=display.on_pair)


def _files(files: Sequence[Path], recipes: Sequence[str]) -> tuple[str, str]:
    """Return both files as absolute paths."""
    if len(files) == 2 and not recipes:
        return os.path.abspath(files[0]), os.path.abspath(files[1])
    if len(files) == 1 and len(recipes) == 2:
        return os.path.abspath(files[0]), os.path.abspath(files[0])
    raise ConfigError(
        what=f"it needs two campaign files, or one and two recipes; there are {len(files)} and {len(recipes)}",
        where="gatemark pair",
        fix="gatemark pair A.toml B.toml, or gatemark pair campaign.toml --recipe A --recipe B",
    )


def _recipes(recipes: Sequence[str]) -> tuple[str | None, str | None]:
    if not recipes:
        return None, None
    first, second = (os.path.abspath(recipe) if is_path(recipe) else recipe for recipe in recipes)
    return first, second


def _tell(result: PairResult, *, as_json: bool) -> int:
    """Print a result; return the exit status."""
    document = result.document
    if as_json:
        print_json(document.model_dump(mode="json", by_alias=True))
    else:
        console = stdout_console()
        for section in (sides_section(document), figures_section(document)):
            for printed in section_text(section, name="", width=console.width):
                console.print(printed)
        for line in (*end_lines(document), f"report: {result.report_file}"):
            console.print(line, soft_wrap=True, markup=False)
    if result.was_interrupted:
        print(
            f"stopped; every finished trial is kept; resume with: gatemark pair --resume {result.folder}",
            file=sys.stderr,
        )
        return Interrupted.exit_status
    return 0 if document.passes else 1

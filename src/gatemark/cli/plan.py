"""`gatemark plan FILE`: what a campaign sets, what it will run, how long that takes. Sends nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gatemark.archive.again import campaign_in
from gatemark.archive.read import is_archive
from gatemark.bed_kinds import BOOT_WORDS
from gatemark.campaign.columns import Column, SeriesFile, load_series, of_each, varies
from gatemark.campaign.deviations import deviations
from gatemark.campaign.estimate import PlanEstimate, estimate, total
from gatemark.campaign.file import load_campaign
from gatemark.campaign.plan import Plan, plan_of, procedures_of
from gatemark.cli.common import cell_json
from gatemark.cli.output import AsJson, print_json
from gatemark.config.model import Campaign
from gatemark.config.recipe import Recipe
from gatemark.config.stateful import pool_port_count
from gatemark.config.tables import Commands, OtherHostModel
from gatemark.dut.choose_kernel import kernel_of
from gatemark.dut.host_capture import CAPTURE
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.engine.process import start_engine
from gatemark.errors import ConfigError, GatemarkError
from gatemark.map_domains.describe import describe_domains, describe_gateway
from gatemark.port_kinds import parse_port
from gatemark.procedures.assumed import ASSUMED_CONNECTIONS_PER_SECOND, ASSUMED_RATE_MAX
from gatemark.report.table import Column as TableColumn
from gatemark.report.table import Table, table_of
from gatemark.report.terminal import print_table
from gatemark.results.toml_text import to_toml, toml_value
from gatemark.trial.cell import Run
from gatemark.trial.request import layout_request
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, format_rate, format_ratio


def plan(file: Path, /, *, column: int | None = None, as_json: AsJson = False) -> int:
    """Show all settings of a campaign with their defaults, its runs, their duration and its deviations from the RFCs.

    It also shows the layout: the CPU that polls each queue, as this machine's engine would choose it now. Finally it
    shows the commands that the campaign runs, and the user and the machine of each.

    For a file with [[vary]] it shows the columns, the settings and duration of each, and the total duration. plan sends
    nothing and changes nothing.

    Example: gatemark plan campaign.toml

    Parameters
    ----------
    file
        Campaign file (TOML), or an archive that `gatemark archive` made.
    column
        For a file with [[vary]]: show this column, counted from 1, like any other campaign.
    as_json
        Print JSON instead of text.
    """
    if is_archive(file):
        with campaign_in(file) as unpacked:
            return _plan(unpacked, file, column, as_json=as_json)
    return _plan(file, file, column, as_json=as_json)


def _plan(file: Path, named: Path, column: int | None, *, as_json: bool) -> int:
    """Show the plan of a campaign file; `named` is the file that the user gave."""
    if not varies(file):
        if column is not None:
            raise ConfigError(what="the file has no [[vary]]", where="--column", fix="leave --column out")
        return _plan_campaign(complete_campaign(load_campaign(file)), as_json=as_json)
    series = load_series(file)
    if column is None:
        return _plan_series(series, named, as_json=as_json)
    if not 1 <= column <= len(series.columns):
        fix = f"write 1 to {len(series.columns)}"
        raise ConfigError(what=f"there is no column {column}", where="--column", fix=fix)
    return _plan_campaign(complete_campaign(series.columns[column - 1].campaign), as_json=as_json)


def _plan_series(series: SeriesFile, named: Path, *, as_json: bool) -> int:
    """Show the columns of a series, with what each sets and how long it takes."""

    def planned(column: Column) -> tuple[Campaign, PlanEstimate, tuple[str, ...]]:
        campaign = complete_campaign(column.campaign)
        return campaign, estimate(campaign), tuple(deviation.sentence for deviation in deviations(campaign))

    plans = of_each(series, planned)
    whole = total(needed for _, needed, _ in plans)
    if as_json:
        columns = [
            {
                "number": column.number,
                "title": column.title,
                "settings": dict(column.settings),
                "without": list(column.without),
                "search_from": column.previous,
                "commands": commands_of(campaign),
                "estimate": asdict(needed),
            }
            for column, (campaign, needed, _) in zip(series.columns, plans, strict=True)
        ]
        print_json({"name": series.name, "columns": columns, "estimate": asdict(whole)})
        return 0
    print(f"# {len(series.columns)} columns\n")
    for column, (_, needed, _) in zip(series.columns, plans, strict=True):
        print(f"{column.number:>4}  {column.title}: {_amount_text(needed)}")
        told = [f"{path} = {toml_value(value)}" for path, value in column.settings.items()]
        told += [f"without {path}" for path in column.without]
        if column.previous is not None:
            told.append(f"searches start at 1.5 times the results of column {column.previous}")
        print("\n".join(f"      {words}" for words in told))
    print("\n# Deviations\n")
    print("\n".join(f"- {sentence}" for sentence in dict.fromkeys(s for _, _, told in plans for s in told)) or "none")
    print("\n# Commands\n")
    of_columns = {
        column.number: commands_of(campaign) for column, (campaign, _, _) in zip(series.columns, plans, strict=True)
    }
    print(_commands_of_columns(of_columns))
    print("\n# Duration\n")
    print(_estimate_text(plans[0][0], whole))
    if any(column.previous is not None for column in series.columns):
        print("not counting the time that searches save by starting near the results of another column")
    print(f"\ngatemark plan {named} --column N shows all settings of a column")
    return 0


def _plan_campaign(campaign: Campaign, *, as_json: bool) -> int:
    runs, needed, unmet = plan_of(campaign), estimate(campaign), deviations(campaign)
    layout, commands, telemetry = layout_of(campaign), commands_of(campaign), telemetry_of(campaign)
    kernel = gateway_kernel(campaign)
    table, edge = campaign.edges.emulated, campaign.edges.gateway
    edges = () if table is None else describe_domains(table.whole_rules, table.edge_count, table.order)
    of_gateway = None if edge is None else describe_gateway(edge, pool_port_count(campaign), campaign.edges.peers)
    if as_json:
        print_json(
            {
                "campaign": campaign.to_document(),
                "map_domains": [domain.model_dump() for domain in edges],
                "gateway_edge": None if of_gateway is None else of_gateway.model_dump(),
                "runs": [
                    {"number": run.number, "procedure": run.procedure, **cell_json(run.cell)} for run in runs.runs
                ],
                "layout": layout,
                "kernel": kernel,
                "commands": commands,
                "telemetry": telemetry,
                "estimate": asdict(needed),
                "deviations": [deviation.model_dump() for deviation in unmet],
            }
        )
        return 0
    print("# Settings\n")
    print(to_toml(campaign.to_document()).rstrip())
    if edges:
        print("\n# Customer edges\n")
        print("\n".join(line for domain in edges for line in domain.lines()))
    if of_gateway is not None:
        print("\n# Gateway as a customer edge\n")
        print("\n".join(of_gateway.lines()))
    print("\n# Runs\n")
    print_table(runs_table(runs))
    print(_repetitions_text(campaign))
    print("\n# Layout\n")
    print(_layout_text(layout))
    if kernel is not None:
        print("\n# Kernel of the gateway\n")
        print(_unknown_text(kernel) or kernel["words"])
    print("\n# Commands\n")
    print(_commands_text(commands))
    print("\n# Telemetry\n")
    print(_telemetry_text(telemetry))
    print("\n# Deviations\n")
    print("\n".join(f"- {deviation.sentence}" for deviation in unmet) or "none")
    print("\n# Duration\n")
    print(_estimate_text(campaign, needed))
    return 0


def layout_of(campaign: Campaign) -> dict[str, Any]:
    """Ask the engine how it would lay out its work; `unknown` says why it could not be asked, or would refuse."""
    try:
        bed = open_testbed(campaign)
        body = layout_request(campaign, bed.placement.tester_cores, bed.ports)
        with start_engine(log=None) as engine:
            answer = engine.layout(body)
    except GatemarkError as error:
        return {"unknown": [problem.to_json() for problem in error.problems]}
    return {"queues": answer["queues"], "workers": answer["workers"], "why": answer["why"]}


def gateway_kernel(campaign: Campaign) -> dict[str, Any] | None:
    """Return which kernel the gateway gets; `unknown` says why there is none, None that no recipe makes the gateway."""
    try:
        choice = kernel_of(campaign.testbed)
    except GatemarkError as error:
        return {"unknown": [problem.to_json() for problem in error.problems]}
    if choice is None:
        return None
    testbed = campaign.testbed
    cores = len(plan_cores(usable_cpus(), tester=testbed.cores, gateway=testbed.gateway_cores).gateway)
    return {
        "runs_in": "this machine's kernel" if choice.kernel is None else "User-Mode Linux",
        "release": choice.release,
        "program": None if choice.kernel is None else str(choice.kernel.program),
        "cpus": choice.cpus(cores),
        "reason": choice.reason,
        "words": choice.words(cores),
    }


def commands_of(campaign: Campaign) -> dict[str, Any]:
    """Return all that recipe or campaign file do on a machine, by occasion, and as whom and where.

    That is commands, ports, and what is set, loaded and written before the first command.
    """
    recipe, control = campaign.recipe, campaign.gateway.control
    by_occasion = dict(_by_occasion(control))
    for part in () if recipe is None else recipe.parts:
        at = "" if recipe is part else f"{part.name}: "
        by_occasion |= {f"{at}{name}": lines for name, lines in _before_commands(part) if lines}
        by_occasion |= {f"{at}{name}": lines for name, lines in _by_occasion(part.commands)}
    through = None
    if control is not None and (control.host is not None or control.sudo or control.shell != "sh -s"):
        through = shlex.join([*(() if control.host is None else ("ssh", control.host)), *control.words])
    if (other := campaign.gateway.other_host) is not None:
        at = shlex.join([*(() if other.host is None else ("ssh", other.host)), *other.words])
        by_occasion |= {f"other_host: {name}, through `{at}`": lines for name, lines in _by_occasion(other)}
    if campaign.control.telemetry is not None:
        by_occasion |= {f"telemetry.{name}": [line] for name, line in campaign.control.telemetry.commands.items()}
    run = campaign.bed.commands_run
    if control is not None and control.host is not None:
        cycles = f" (power_cycle {run})" if control.power_cycle else ""
        run = f"at {control.host} as the user that ssh logs in as{cycles}"
    sides = (("left", campaign.left.port), ("right", campaign.right.port))
    ports = [f"{side} {port}" for side, port in sides if port is not None and parse_port(port).kind.takes_name]
    ports = [] if campaign.bed.makes_ports else ports
    return {"ports": ports, "run": run if by_occasion else None, "through": through, "by_occasion": by_occasion}


def _by_occasion(source: Commands | OtherHostModel | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a recipe or a campaign file, those that are run first before the others."""
    given = {} if source is None else source.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    for key in ("host", "shell", "limits", "commands", "boot"):  # texts that are no command lines
        given.pop(key, None)
    interfaces = [given.pop(key, None) for key in ("outer_interface", "middle_interface")]
    given["capture"] = [CAPTURE.format(interface=name) for name in interfaces if name is not None]
    given = {"setup": given.pop("setup", []), **given}
    for name, setting in given.pop("set", {}).items():
        given |= {f"set.{name}.{key}": setting[key] for key in ("apply", "read") if key in setting}
    for name in [name for name, lines in given.items() if isinstance(lines, dict)]:
        given |= {f"{name}.{reading}": line for reading, line in given.pop(name).items()}
    for name, lines in given.items():
        if lines and isinstance(lines, str | list):
            yield name, [lines] if isinstance(lines, str) else lines


def _before_commands(recipe: Recipe) -> Iterator[tuple[str, list[str]]]:
    """Yield what is loaded, set and written before the first command runs."""
    yield "modules", [*recipe.modules]
    yield "sysctl", [f"{name} = {value}" for name, value in recipe.sysctl.items()]
    yield "host_sysctl", [f"{name} = {value}" for name, value in recipe.host_sysctl.items()]
    yield from ((f"files.{name}", text.splitlines()) for name, text in recipe.files.items())


def telemetry_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return what is sampled at the gateway's host beside each trial, and how often; None if nothing is."""
    asked, control, other = campaign.control.telemetry, campaign.gateway.control, campaign.gateway.other_host
    if asked is None:
        return None
    return {
        "host": None if control is None else control.host,
        "other_host": None if other is None else other.host,
        "interval_ns": asked.interval_ns,
        "cpus": list(campaign.testbed.gateway_cores or asked.cpus),
        "processes": list(asked.processes),
        "commands": list(asked.commands),
        "required": asked.required,
    }


def _telemetry_text(telemetry: Mapping[str, Any] | None) -> str:
    if telemetry is None:
        return "none: the gateway's host is not sampled"
    where = telemetry["host"] or "this machine, where the gateway is"
    cpus = ", ".join(map(str, telemetry["cpus"])) or "all of the gateway"
    what = [f"busy share of each CPU ({cpus})", "memory", "connections"]
    of_cards = "interrupts of its network cards by core"
    what += [of_cards] if telemetry["host"] else []
    what += [f"process {name}" for name in telemetry["processes"]]
    what += [f"command {name}" for name in telemetry["commands"]]
    other = telemetry["other_host"]
    others = "" if other is None else f"\nand on {other}: busy share of each CPU, memory, connections, {of_cards}"
    lacking = "a trial without samples is invalid" if telemetry["required"] else "a trial without samples still counts"
    return (
        f"every {format_duration_ns(telemetry['interval_ns'])} on {where}: {', '.join(what)}{others}\n"
        "a sample costs the host a millisecond or two of CPU time plus the time of the commands; gatemark measures this"
        f" before the first trial\nno trial waits longer for a sample; {lacking}"
    )


def _commands_text(commands: Mapping[str, Any]) -> str:
    ports = [f"ports of this machine that are opened: {', '.join(commands['ports'])}"] if commands["ports"] else []
    if commands["run"] is None:
        return "\n".join(ports) or "none"
    through = "" if commands["through"] is None else f", through `{commands['through']}`"
    lines = [*ports, f"these run {commands['run']}{through}:"]
    lines += [f"- {name}: {line}" for name, lines_of in commands["by_occasion"].items() for line in lines_of]
    return "\n".join(line.rstrip().replace("\n", "\n    ") for line in lines)


def _commands_of_columns(of_columns: Mapping[int, Mapping[str, Any]]) -> str:
    """Return the commands of a series: each text once, with the columns that it is for."""
    columns: dict[str, list[str]] = {}
    for number, commands in of_columns.items():
        columns.setdefault(_commands_text(commands), []).append(str(number))
    if len(columns) == 1:
        return next(iter(columns))
    return "\n\n".join(f"columns {', '.join(numbers)}: {text}" for text, numbers in columns.items())


def _unknown_text(answer: Mapping[str, Any]) -> str:
    """Say why something is not known; empty if it is."""
    return "\n".join(
        f"not known: {problem['where']}: {problem['what']}; {problem['fix']}" for problem in answer.get("unknown", ())
    )


def _layout_text(layout: Mapping[str, Any]) -> str:
    if unknown := _unknown_text(layout):
        return unknown
    lines = [f"queues: left {layout['queues']['left']}, right {layout['queues']['right']}"]
    lines += [f"CPU {worker['cpu']}: {', '.join(worker['tasks'])}" for worker in layout["workers"]]
    return "\n".join([*lines, *(f"- {reason}" for reason in layout["why"])])


def _connections(run: Run) -> str:
    return "" if run.cell.connections is None else f"{run.cell.connections:,}"


def runs_table(runs: Plan) -> Table:
    """Return the table of the runs; a column that says nothing of any run is left out."""
    columns: tuple[TableColumn[Run], ...] = (
        TableColumn("run", lambda run: str(run.number), names=True),
        TableColumn("procedure", lambda run: run.procedure.replace("_", " "), names=True, numeric=False),
        TableColumn("direction", lambda run: run.cell.direction, numeric=False),
        TableColumn("octets", lambda run: run.cell.frame_sizes.label()),
        TableColumn("foreground", lambda run: str(run.cell.mix)),
        TableColumn("connections", _connections, optional=True),
        TableColumn("alpha", lambda run: "" if run.cell.alpha is None else format_ratio(run.cell.alpha), optional=True),
    )
    return table_of("", columns, runs.runs)


def _repetitions_text(campaign: Campaign) -> str:
    others = {
        procedure.words: often
        for procedure in procedures_of(campaign)
        if (often := campaign.table(procedure.table).repetitions(campaign)) != campaign.repetitions
    }
    but = f" ({', '.join(f'{name} {often} times' for name, often in others.items())})" if others else ""
    times = "once" if campaign.repetitions == 1 else f"{campaign.repetitions} times"
    return f"each measured {times}{but}; sizes are IPv4 / IPv6 frames with FCS"


def _estimate_text(campaign: Campaign, needed: PlanEstimate) -> str:
    retries = campaign.validity.retries + campaign.validity.suspect_retries
    again = f"up to {retries} times as long again"
    text = f"{_amount_text(needed)}, not counting repetitions of invalid or suspect trials ({again})"
    if needed.line_assumed:
        text += "\nloads in % assume a line of 10 Gbit/s, because line.rate is not set"
    for table in campaign.tables:
        text += "".join(f"\n{assumption}" for assumption in table.estimate_assumptions())
    if campaign.control.model.boot != "never":
        text += f"\nnot counting the boots of the gateway's host {BOOT_WORDS[campaign.control.model.boot]}"
    if needed.maximum_assumed:
        rate = format_rate(ASSUMED_RATE_MAX)
        text += f"\nsearches without a maximum double their load; the estimate assumes up to {rate} per second"
    if needed.establishment_assumed:
        rate = format_rate(ASSUMED_CONNECTIONS_PER_SECOND)
        text += f"\nan upper bound if the gateway establishes {rate} connections/s; a slower gateway takes longer"
    return text


def _amount_text(needed: PlanEstimate) -> str:
    """Trials and time in words."""
    shortest, longest = (
        format_duration_ns(seconds * NANOSECONDS_PER_SECOND) for seconds in (needed.seconds_min, needed.seconds_max)
    )
    trials = (
        str(needed.trials_min)
        if needed.trials_min == needed.trials_max
        else f"{needed.trials_min} to {needed.trials_max}"
    )
    time = shortest if shortest == longest else f"{shortest} to {longest}"
    return f"{trials} trials, {time}"

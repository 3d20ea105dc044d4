"""What the control of a gateway must satisfy: its commands, the settings that the user named, its cores. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.config import defaults
from gatemark.config.check import nearest
from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.config.tables import TABLE_SETTINGS, Commands, GatewayControlModel, HostModel
from gatemark.errors import Problem
from gatemark.units import format_duration_ns


def control_problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield what is wrong with the control of the gateway; the recipe is known."""
    control = campaign.gateway.control
    if control is not None:
        yield from _shell(campaign, control, "gateway.control")
        yield from _values(campaign, control)
        yield from _boot(campaign, control)
    if campaign.technology.in_a_row:
        yield from _other_host(campaign)
    yield from _settings(campaign)
    if campaign.gateway.cores_set_by is not None and campaign.gateway.cores is None:
        yield problem(campaign, "gateway.cores_set_by", "says how, but not how many", "write gateway.cores as well")
    yield from _telemetry(campaign)


def _shell(campaign: Campaign, host: HostModel, table: str) -> Iterator[Problem]:
    """The words that start the shell."""
    key = f"{table}.shell"
    try:
        words = host.words
    except ValueError as error:
        yield problem(campaign, key, f"cannot be split: {error}", "close every quote")
        return
    if not words:
        yield problem(campaign, key, "is empty", 'write for example "sh -s"')
    elif any(word.rpartition("/")[2] == "ssh" for word in words):
        yield problem(
            campaign,
            key,
            "calls ssh itself, so a lost connection would look like a failed command",
            f'leave it out, and write where the commands run: {table}.host = "root@192.0.2.1"',
        )
    elif words[-1] == "-c":
        yield problem(
            campaign, key, "ends with -c, but the script comes on standard input", 'write for example "sh -s"'
        )


def _other_host(campaign: Campaign) -> Iterator[Problem]:
    """Commands of the other gateway of a row reach its host; both hosts count and capture frames or none does."""
    other, control, table = campaign.gateway.other_host, campaign.control.model, "gateway.other_host"
    if other is not None:
        yield from _shell(campaign, other, table)
        if other.host is None and other.shell == HostModel().shell:
            what = "is missing: its commands would run on this machine"
            yield problem(campaign, f"{table}.host", what, 'write for example host = "root@192.0.2.2"')
    lacking = [
        key for key, host in (("gateway.control", control), (table, other)) if host is None or host.count_middle is None
    ]
    if len(lacking) == 1:
        what = (
            "is missing: gatemark knows where frames were lost only if both gateways count the frames that they hand"
            " to their link"
        )
        yield problem(campaign, f"{lacking[0]}.count_middle", what, "write it for both, or for none")
    captured = {
        "gateway.control.outer_interface": control.outer_interface,
        "gateway.control.middle_interface": control.middle_interface,
        f"{table}.outer_interface": None if other is None else other.outer_interface,
    }
    for key, interface in captured.items() if any(captured.values()) else ():
        if interface is None:
            what = "is missing: frames are captured on all three links or on none"
            yield problem(campaign, key, what, f"name all of {', '.join(captured)}, or none")


def lost_values(commands: Commands, where: str) -> Iterator[Problem]:
    """Yield commands that set a value without saying where it goes."""
    actions = ((row.action, row.variable, getattr(commands, row.action)) for row in TABLE_SETTINGS.values())
    settings = ((f"set.{name}.apply", "value", setting.apply) for name, setting in commands.settings.items())
    for key, variable, lines in (*actions, *settings):
        if lines and not any(f"{{{variable}}}" in line for line in lines):
            what = f"does not say where the value goes: {{{variable}}} is missing"
            fix = f'write for example "echo {{{variable}}} > /proc/sys/..."'
            yield Problem(what=what, where=f"{where}.{key}", fix=fix)


def _values(campaign: Campaign, control: GatewayControlModel) -> Iterator[Problem]:
    """A command that sets a value says where it goes, and settings have values."""
    yield from lost_values(control, f"{campaign.source}: gateway.control")
    for name in control.settings:
        if name not in campaign.gateway.settings:
            yield problem(
                campaign, f"gateway.settings.{name}", "is missing: the file gives no value for it", "write its value"
            )


def _boot(campaign: Campaign, control: GatewayControlModel) -> Iterator[Problem]:
    """Something boots the host, and it can be told that it has booted."""
    key = "gateway.control"
    if control.boot == "never":
        return
    if bool(control.reboot) == bool(control.power_cycle):
        what = "needs a command that boots the host" if not control.reboot else "has two ways to boot the host"
        yield problem(campaign, f"{key}.boot", what, "write one of reboot and power_cycle")
    if control.host is None and control.boot_id is None:
        yield problem(
            campaign,
            f"{key}.boot_id",
            "is missing: commands run on this machine, not on the gateway's host",
            "write gateway.control.host, or a command whose output changes with each boot",
        )
    if control.boot_after_collapse and not control.health:
        yield problem(
            campaign,
            f"{key}.boot_after_collapse",
            "has no effect: no command says whether the gateway works",
            'write for example health = "ping -c 1 -W 1 198.18.0.2"',
        )


def _settings(campaign: Campaign) -> Iterator[Problem]:
    """Every value has commands that set it."""
    known = campaign.control.setting_names
    for name in campaign.gateway.settings:
        if name in known:
            continue
        guess = nearest(name, known)
        if guess is not None:
            fix = f"did you mean {guess}?"
        elif campaign.bed.takes_control:
            fix = f'add [gateway.control.set.{name}] with apply = "... {{value}}" and read = "..."'
        elif campaign.bed.has_recipe:
            fix = f'copy the recipe and add [commands.set.{name}] with apply = "... {{value}}" and read = "..."'
        else:
            fix = "leave it out"
        yield problem(campaign, f"gateway.settings.{name}", "has no commands that set it", fix)


def _telemetry(campaign: Campaign) -> Iterator[Problem]:
    """The gateway's host can be reached, and what is sampled there is the gateway's."""
    telemetry, key = campaign.control.telemetry, "gateway.telemetry"
    if telemetry is None:
        return
    low, high = defaults.TELEMETRY_INTERVAL_LIMITS_NS
    if not low <= telemetry.interval_ns <= high:
        what = f"{format_duration_ns(telemetry.interval_ns)} is not between {format_duration_ns(low)} and"
        fix = 'write for example interval = "1s": each sample costs the host about a millisecond'
        yield problem(campaign, f"{key}.interval", f"{what} {format_duration_ns(high)}", fix)
    for name, values in (("cpus", telemetry.cpus), ("processes", telemetry.processes)):
        if len(set(values)) < len(values):
            yield problem(campaign, f"{key}.{name}", "names one twice", "name each once")
    if not campaign.bed.takes_control:
        return
    control = campaign.gateway.control
    if control is None:
        what = "needs gateway.control: the file does not say where the gateway's host is"
        fix = 'add [gateway.control] with host = "root@192.0.2.1" for example'
        yield problem(campaign, key, what, fix)
    elif control.host is None and not telemetry.cpus:
        what = "is missing: commands run on this machine, where the Tester also works"
        yield problem(campaign, f"{key}.cpus", what, "name the CPUs that do the gateway's work")

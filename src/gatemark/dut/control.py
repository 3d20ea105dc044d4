"""Control of a gateway by the commands of its recipe or of the campaign file (RFC 9693 section 4.4, RFC 6201).

A command is a line for a shell where the gateway is.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from gatemark.config.recipe import RecipeCommands
from gatemark.config.tables import (
    TABLE_SETTINGS,
    GatewayControlModel,
    GatewayTableModel,
    LimitName,
    LimitsModel,
    SetByRecipe,
    SettingModel,
)
from gatemark.dut.base import await_success
from gatemark.dut.shell import Shell, attempt
from gatemark.errors import ImpossibleTimeError, Problem, TestBedError
from gatemark.facts import SettingFact
from gatemark.harmless import whole_number

POLL_SECONDS = 0.05
VALUE = "gatemark_value"
"""Variable of the shell that holds the value of a setting. A value that were written into the command would be read as
a part of it."""

TEAR_DOWN = """set -eu
up() {{
  read -r up rest 2> /dev/null < /proc/uptime || up=
  case $up in *.??) up=${{up%.*}}${{up#*.}}0000000 ;; *) up=- ;; esac
}}
now() {{
  time=$(date +%s%N)
  case $time in
    *[!0-9]*) time=$(perl -MTime::HiRes=time -e 'printf "%.0f", time * 1e9' 2> /dev/null) || {{
      read -r up rest < /proc/uptime
      time=${{up%.*}}${{up#*.}}0000000
    }} ;;
  esac
}}
up; longest=$up
now; before=$time
up; shortest=$up
{{
{command}
}} > /dev/null
up; shortest="$shortest $up"
now
up; echo "$before $time $shortest $longest $up"
"""
"""Times a command where it runs, so that neither ssh nor our own start of it counts. Not every `date` knows nanoseconds
(busybox, OpenBSD); then perl is used, else the kernel's uptime, which has hundredths of a second. The time of day may
be set meanwhile; uptime may not, so it is read just inside and just outside of the two times."""
TIMES = re.compile(r"([0-9]{1,20}) ([0-9]{1,20})((?: [0-9]{1,20}){4}| - - - -)")
"""What it prints, with no more digits than a kernel counts with."""
UPTIME_ERROR_NS = 20_000_000
"""Of the difference of two readings in hundredths of a second."""


ControlCommands = RecipeCommands | GatewayControlModel
"""Where the commands come from: a recipe or the campaign file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """What the gateway is set to before the first trial."""

    table: GatewayTableModel
    named: Mapping[str, int | str]
    """Values of the settings that the user named."""
    limits: LimitsModel = field(default_factory=LimitsModel)
    """How long the commands of a recipe may take; those of the campaign file bring their own."""


class GatewayControl:
    """Runs the control commands of one gateway."""

    def __init__(
        self,
        shell: Shell,
        commands: ControlCommands,
        *,
        where: str,
        settings: GatewaySettings,
        filled: Callable[[str], str] = str,
        beside: Shell | None = None,
    ) -> None:
        """`filled` puts values in place of what stands in braces in a command.

        `beside`: at the other gateway of a row, where scripts run as well.
        """
        self.shell = shell
        self._shells = (shell,) if beside is None else (shell, beside)
        self._filled = filled
        self._commands = commands
        self._where = where
        self._settings = settings
        self._limits = commands.limits if isinstance(commands, GatewayControlModel) else settings.limits
        self.made: tuple[SettingFact, ...] = ()
        """Settings by name as they were made and read back the last time."""

    def set_up(self) -> list[str]:
        """Make the named settings and read them back, then set up the table; return the commands that were run.

        Raises TestBedError that names every setting which is another one than was asked for.
        """
        done = self.apply(at_boot=False)
        for _, row, number in table_settings(self._settings.table):
            action = row.action
            for command in getattr(self._commands, action):
                done.append(command.replace("{" + row.variable + "}", str(number)))
                self._do(done[-1], "set", action)
        named = [
            SettingFact(name=name, value=str(value), read=self._read_back(name, self._commands.settings[name]))
            for name, value in self._settings.named.items()
        ]
        table = self._read_table()
        self.made = (*named, *table)
        different = [_difference(self._where, setting) for setting in named if not _is_as_asked(setting)]
        different += [_table_difference(self._where, setting) for setting in table if not _is_table_as_asked(setting)]
        if different:
            raise TestBedError(problems=different)
        return done

    def apply(self, *, at_boot: bool) -> list[str]:
        """Make the settings that take effect with the next boot, or all others; return the commands that were run."""
        done = []
        for name, value in self._settings.named.items():
            setting = self._commands.settings[name]
            for command in setting.apply if setting.at_boot == at_boot else ():
                done.append(with_value(command, str(value)))
                self._do(done[-1], "set", f"set.{name}.apply")
        return done

    @property
    def connections(self) -> Self | None:
        """What can be done to its connections; None where there is no command for them."""
        commands = self._commands
        return self if commands.clear_state or commands.count_connections or commands.tear_down else None

    def clear_state(self) -> None:
        """Delete all connections."""
        for command in self._commands.clear_state:
            self._do(command, "clear_state")

    def count_connections(self) -> int | None:
        """Return the number of connections, the last number that the command prints; None without a command."""
        if self._commands.count_connections is None:
            return None
        command = self._commands.count_connections
        return self._last_number(command, "count_connections", "count_connections", "that of the connections")

    def tear_down(self) -> int:
        """Delete all connections; return the nanoseconds that it took where the command ran (RFC 9693 section 4.8).

        Raises ImpossibleTimeError for a time that cannot be, by the uptime there and by the Tester's clock.
        """
        where = f"{self._where}: tear_down"
        if self._commands.tear_down is None:
            raise TestBedError(what="there is no such command", where=where, fix='write for example "conntrack -F"')
        begun_ns = time.monotonic_ns()
        output = self._do(TEAR_DOWN.format(command=self._commands.tear_down), "tear_down")
        own_ns = time.monotonic_ns() - begun_ns
        times = TIMES.fullmatch((output.strip().splitlines() or [""])[-1])
        if times is None:
            raise TestBedError(
                what=f"the gateway's clock was not read: {output.strip()[-200:]!r}",
                where=where,
                fix="the command runs in a POSIX shell with `date`, with `perl` where `date` knows no nanoseconds (%N)",
            )
        took_ns = int(times[2]) - int(times[1])
        if "-" in times[3]:
            shortest_ns, longest_ns = 0, own_ns
        else:
            inside, end_inside, outside, end_outside = map(int, times[3].split())
            shortest_ns, longest_ns = end_inside - inside, min(own_ns, end_outside - outside)
        if not max(0, shortest_ns - UPTIME_ERROR_NS) <= took_ns <= longest_ns + UPTIME_ERROR_NS:
            raise ImpossibleTimeError(
                what=f"the clock of the gateway's host was set: a deletion took {took_ns / 1e6:.3f} ms by it, and"
                f" {shortest_ns / 1e6:.0f} to {longest_ns / 1e6:.0f} ms by clocks that nobody sets",
                where=where,
                fix="let nothing set that clock by steps during a campaign (chronyd or ntpd slew it)",
            )
        return took_ns

    def reset(self) -> None:
        """Reset the gateway (RFC 6201 section 4)."""
        if not self._commands.reset:
            raise TestBedError(
                what="there is no such command",
                where=f"{self._where}: reset",
                fix='write for example "systemctl restart gateway"',
            )
        with self.shell.disturbing():
            for command in self._commands.reset:
                self._do(command, "reset")

    def restart(self) -> None:
        """Stop the gateway, start it again, wait until it is healthy, and set it up again."""
        commands = self._commands
        if not commands.start:
            raise TestBedError(
                what="the gateway collapsed and nothing can restart it",
                where=self._where,
                fix="start it by hand, and give gateway.control.start a command",
            )
        for command in commands.stop:
            attempt(self.shell, command, where=f"{self._where}: stop", seconds_max=self._limits.seconds("stop"))
        for command in commands.start:
            self._do(command, "start")
        self.await_health(self._limits.seconds("start"))
        self.set_up()

    def commands_since(self, at_ns: int) -> tuple[str, ...]:
        """Return which control commands ran at any time since `at_ns`."""
        return tuple(name for shell in self._shells for name in shell.ran_since(at_ns))

    def describe(self) -> list[tuple[str, str]]:
        """Return the commands that describe the gateway, each with what it prints."""
        commands = self._commands.describe if isinstance(self._commands, GatewayControlModel) else ()
        return [(command, self._do(command, "describe")) for command in commands]

    def count_middle(self) -> int | None:
        """Return how many frames it has handed to the link between two gateways in a row; None without a command."""
        command = self._commands.count_middle if isinstance(self._commands, GatewayControlModel) else None
        if command is None:
            return None
        return self._last_number(command, "count_connections", "count_middle", "that of the frames")

    def check_health(self) -> None:
        """Raise TestBedError if a health command fails."""
        for command in self._commands.health:
            self._do(command, "health", fix="the gateway stopped working")

    def await_health(self, seconds_max: float) -> None:
        """Wait until the health commands succeed; raise TestBedError if they do not in time."""
        await_success(self.check_health, seconds_max, poll_s=POLL_SECONDS)

    def _do(self, script: str, limit: LimitName, action: str | None = None, *, fix: str = "") -> str:
        """Run a script within the limit of its action, by which an error names it."""
        seconds_max = self._limits.seconds(limit)
        where = f"{self._where}: {action or limit}"
        return self.shell(self._filled(script), where=where, fix=fix, seconds_max=seconds_max)

    def _read_back(self, name: str, setting: SettingModel) -> str | None:
        """Return what the gateway says that a setting is; None if it is not asked."""
        return None if setting.read is None else self._do(setting.read, "set", f"set.{name}.read").strip()

    def _read_table(self) -> list[SettingFact]:
        """Return the settings of the table that can be read; who made them does not matter."""
        settings = []
        for name, row, number in table_settings(self._settings.table):
            key = row.action.replace("set_", "read_")
            readings: str | Mapping[str, str] | None = getattr(self._commands, key)
            named = (
                {"": readings}
                if isinstance(readings, str)
                else {f".{at}": line for at, line in (readings or {}).items()}
            )
            for at, command in named.items():
                read = self._last_number(command, "set", f"{key}{at}", "the value of the setting")
                settings.append(SettingFact(name=f"table.{name}{at}", value=str(number), read=str(read)))
        return settings

    def _last_number(self, command: str, limit: LimitName, action: str, what: str) -> int:
        """Run a command and return the last number that it prints."""
        output = self._do(command, limit, action)
        number = whole_number((re.findall(r"[0-9]+", output) or [""])[-1])
        if number is None:
            raise TestBedError(
                what=f"printed no number of at most 20 digits: {output.strip()[-200:]!r}",
                where=f"{self._where}: {action}",
                fix=f"the last number that the command prints must be {what}",
            )
        return number


def with_value(command: str, value: str) -> str:
    """Return a command in which `{value}` stands for a value, whatever characters that has."""
    quoted = shlex.quote(value).replace("{", "{''")  # so that no {name} of a recipe is found in it
    return f"export {VALUE}={quoted}\n" + command.replace("{value}", f'"${VALUE}"')


def _is_as_asked(setting: SettingFact) -> bool:
    if setting.read is None or setting.read == setting.value:
        return True
    return whole_number(setting.read) == whole_number(setting.value) is not None


def _difference(where: str, setting: SettingFact) -> Problem:
    return Problem(
        what=f"is {setting.read!r} after it was set to {setting.value!r}",
        where=f"{where}: set.{setting.name}",
        fix="check what `apply` does, that `read` prints only the value, and that the gateway accepts the"
        f" value of gateway.settings.{setting.name}",
    )


def _is_table_as_asked(setting: SettingFact) -> bool:
    """A kernel rounds the buckets up to whole pages of memory: a hundredth more changes no figure."""
    asked, read = int(setting.value), int(setting.read or 0)
    return read == asked or (setting.name == "table.hash_size" and asked < read <= asked + asked // 100)


def _table_difference(where: str, setting: SettingFact) -> Problem:
    table, key, *reading = setting.name.split(".")  # the names of readings have no dots
    return Problem(
        what=" ".join([*reading, f"is {setting.read} at the gateway, not {setting.value}"]),
        where=f"{where}: {table}.{key}",
        fix=f"write gateway.{table}.{key} as the gateway has it, or find out why its command sets another value"
        + (": all of its timeouts must be the same" if reading else ""),
    )


def table_settings(table: GatewayTableModel) -> Iterator[tuple[str, SetByRecipe, int]]:
    """Yield the settings of a table that are known, in their order: the key, how it is set, and its value."""
    for name, row in sorted(TABLE_SETTINGS.items(), key=lambda item: not item[1].goes_first):
        value: int | None = getattr(table, name)
        if value is not None:
            yield GatewayTableModel.model_fields[name].alias or name, row, value // row.unit

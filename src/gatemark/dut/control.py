"""Control of a gateway by the commands of its recipe or of the campaign file (RFC 9693 section 4.4, RFC 6201).

A command is a line for a shell where the gateway is; how it gets there is an argument.
"""

from __future__ import annotations

import re
import time
from typing import Protocol

from gatemark.config import defaults
from gatemark.config.tables import GatewayAction, GatewayControlModel, GatewayTableModel
from gatemark.dut.commands import COMMAND_SECONDS_MAX
from gatemark.dut.recipe import TABLE_VARIABLES, Commands
from gatemark.errors import TestBedError

POLL_SECONDS = 0.05
RESET_SECONDS_MAX = 300.0
"""How long the commands of a reset may take: they may wait for a machine that boots."""
DELETION_SECONDS_MAX = 600
"""How long it may take to delete all connections: a large table takes its time."""

TEAR_DOWN = """set -eu
now() {{
  time=$(date +%s%N)
  case $time in
    *[!0-9]*) time=$(perl -MTime::HiRes=time -e 'printf "%.0f", time * 1e9' 2> /dev/null) || {{
      read -r up rest < /proc/uptime
      time=${{up%.*}}${{up#*.}}0000000
    }} ;;
  esac
}}
now; before=$time
{{
{command}
}} > /dev/null
now; echo "$before $time"
"""
"""Times a command where it runs, so that neither ssh nor our own start of it counts. Not every `date` knows nanoseconds
(busybox, OpenBSD); then perl is used, else the kernel's uptime, which has hundredths of a second."""


ControlCommands = Commands | GatewayControlModel
"""Where the commands come from: a recipe or the campaign file."""


class Run(Protocol):
    """How a command gets to where the gateway is."""

    def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a shell script and return its standard output; raise TestBedError if it fails."""


class GatewayControl:
    """Runs the control commands of one gateway."""

    def __init__(self, run: Run, commands: ControlCommands, *, where: str, table: GatewayTableModel) -> None:
        self._run = run
        self._commands = commands
        self._where = where
        self._table = table

    def set_up_table(self) -> list[str]:
        """Set size, hash size and UDP timeout of the connection tracking table; return the commands that were run."""
        done = []
        for action, value in table_settings(self._table):
            for command in getattr(self._commands, action):
                done.append(command.replace("{" + TABLE_VARIABLES[action] + "}", str(value)))
                self._run(done[-1], where=f"{self._where}: {action}")
        return done

    def clear_state(self) -> None:
        """Delete all connections."""
        for command in self._commands.clear_state:
            self._run(command, where=f"{self._where}: clear_state", seconds_max=DELETION_SECONDS_MAX)

    def count_connections(self) -> int | None:
        """Return the number of connections, the last number that the command prints; None without a command."""
        if self._commands.count_connections is None:
            return None
        where = f"{self._where}: count_connections"
        output = self._run(self._commands.count_connections, where=where)
        numbers = re.findall(r"\d+", output)
        if not numbers:
            raise TestBedError(
                what=f"printed no number: {output.strip()[-200:]!r}",
                where=where,
                fix="the last number that the command prints must be that of the connections",
            )
        return int(numbers[-1])

    def tear_down(self) -> int:
        """Delete all connections; return the nanoseconds that it took where the command ran (RFC 9693 section 4.8)."""
        where = f"{self._where}: tear_down"
        if self._commands.tear_down is None:
            raise TestBedError(what="there is no such command", where=where, fix='write for example "conntrack -F"')
        script = TEAR_DOWN.format(command=self._commands.tear_down)
        output = self._run(script, where=where, seconds_max=DELETION_SECONDS_MAX)
        times = re.fullmatch(r"(\d+) (\d+)", (output.strip().splitlines() or [""])[-1])
        if times is None:
            raise TestBedError(
                what=f"the gateway's clock was not read: {output.strip()[-200:]!r}",
                where=where,
                fix="the command runs in a POSIX shell with `date`, with `perl` where `date` knows no nanoseconds (%N)",
            )
        return int(times[2]) - int(times[1])

    def reset(self) -> None:
        """Reset the gateway (RFC 6201 section 4)."""
        where = f"{self._where}: reset"
        if not self._commands.reset:
            raise TestBedError(
                what="there is no such command", where=where, fix='write for example "systemctl restart gateway"'
            )
        for command in self._commands.reset:
            self._run(command, where=where, seconds_max=RESET_SECONDS_MAX)

    def check_health(self) -> None:
        """Raise TestBedError if a health command fails."""
        for command in self._commands.health:
            self._run(command, where=f"{self._where}: health", fix="the gateway stopped working")

    def await_health(self, seconds_max: float) -> None:
        """Wait until the health commands succeed; raise TestBedError if they do not in time."""
        until = time.monotonic() + seconds_max
        while True:
            try:
                return self.check_health()
            except TestBedError:
                if time.monotonic() > until:
                    raise
                time.sleep(POLL_SECONDS)


def table_settings(table: GatewayTableModel) -> list[tuple[GatewayAction, int]]:
    """Return the settings of a table that are known: the action that makes each, and its value."""
    timeout_ns = table.udp_timeout_ns
    settings: tuple[tuple[GatewayAction, int | None], ...] = (
        ("set_hash_size", table.hash_size),  # before the size, which some gateways derive from it
        ("set_table_size", table.size),
        ("set_udp_timeout", None if timeout_ns is None else timeout_ns // defaults.SECOND_NS),
    )
    return [(action, value) for action, value in settings if value is not None]

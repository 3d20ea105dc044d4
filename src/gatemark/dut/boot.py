"""Boots the gateway's host and waits until it is another boot: the old system must not be taken for the new one."""

from __future__ import annotations

import time

from gatemark.config.tables import GatewayControlModel
from gatemark.dut.control import GatewayControl
from gatemark.dut.shell import Shell, shell_at
from gatemark.errors import HostConnectionError, TestBedError

BOOT_ID = "cat /proc/sys/kernel/random/boot_id 2> /dev/null || sysctl -n kern.boottime"
POLL_SECONDS = 1.0
ASK_SECONDS_MAX = 10.0
"""How long a host that works may take to tell which boot it is."""


class HostBoot:
    """Boots one host by the commands of the campaign file."""

    def __init__(self, run: Shell, commands: GatewayControlModel, control: GatewayControl) -> None:
        self._run = run
        self._commands = commands
        self._control = control
        self._last: str | None = None
        """Which boot the last one made; None before the first."""

    def boot(self) -> None:
        """Boot the host, wait until it has booted and is healthy, then set it up again.

        A host that does not answer, because it hangs for example, is booted as well if its power is cycled and an
        earlier boot told which one it made. Settings that take effect with the boot were made before that one.
        Raises TestBedError if it does not come back in time.
        """
        limit_s = self._commands.limits.seconds("boot")
        until = time.monotonic() + limit_s
        answers, before = self._which_boot()
        if answers:
            self._control.apply(at_boot=True)
        self._act(limit_s)
        self._last = self._await_another(before, until, limit_s)
        self._control.await_health(max(0.0, until - time.monotonic()))
        for command in self._commands.after_boot:
            self._run(command, where="gateway.control: after_boot", seconds_max=limit_s)
        self._control.set_up()

    def _which_boot(self) -> tuple[bool, str]:
        """Return whether the host answers, and which boot it is, by what it says or by the last boot."""
        try:
            return True, self._boot_id()
        except TestBedError:
            self._run.disconnect()  # the host may have lost it by a boot of its own, which must be known
        try:
            return True, self._boot_id()
        except TestBedError:
            if self._last is None or not self._commands.power_cycle:
                raise
            return False, self._last

    def _act(self, limit_s: float) -> None:
        """Run what boots the host. One that reboots may take its connection with it, so that nobody sees its end."""
        for command in self._commands.power_cycle:
            shell_at(None, ["sh", "-s"])(command, where="gateway.control: power_cycle", seconds_max=limit_s)
        for command in self._commands.reboot:
            try:
                self._run(command, where="gateway.control: reboot", seconds_max=limit_s)
            except HostConnectionError as error:
                if not error.began:
                    raise

    def _await_another(self, before: str, until: float, limit_s: float) -> str:
        """Wait until the host tells another boot than that before; return which one."""
        said = "the boot has not changed"
        while time.monotonic() < until:
            self._run.disconnect()  # one to a system that is gone would be waited for
            try:
                if (boot_id := self._boot_id()) != before:
                    self._run.forget()
                    return boot_id
            except TestBedError as error:
                said = error.what
            time.sleep(POLL_SECONDS)
        raise TestBedError(
            what=f"the host did not boot within {limit_s:g} s: {said}",
            where="gateway.control: boot",
            fix="watch its console; if it needs longer, raise gateway.control.limits.boot",
        )

    def _boot_id(self) -> str:
        where, command = "gateway.control: boot_id", self._commands.boot_id or BOOT_ID
        boot_id = self._run(command, where=where, seconds_max=ASK_SECONDS_MAX).strip()
        if not boot_id:
            raise TestBedError(what="printed nothing", where=where, fix="its output must change with each boot")
        return boot_id

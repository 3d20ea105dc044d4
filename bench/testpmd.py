"""DPDK's own testpmd, started once, set going for a moment for each measurement: its start-up is never counted."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.cases import Partner

PROGRAM = "dpdk-testpmd"
START_SECONDS_MAX = 30
WARM_UP_SECONDS = 0.05


def version() -> str | None:
    """Return the version of DPDK, or None where there is no testpmd."""
    if shutil.which(PROGRAM) is None:
        return None
    done = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of an unknown version"


class Testpmd:
    """One testpmd in interactive mode, at rest unless it is measured."""

    def __init__(self, partner: Partner, commands_on: int, forwarding_on: Sequence[int]) -> None:
        """Start it: commands on one CPU, forwarding on each of the others, with a queue of its own."""
        self.partner = partner
        devices = [word for device in partner.devices for word in ("--vdev", device)]
        cores = ",".join(f"{core}@{cpu}" for core, cpu in enumerate([commands_on, *forwarding_on]))
        queues = len(forwarding_on)
        # A terminal to write to, or answers would wait in a buffer; a pipe to read from, or it would edit lines.
        self._terminal, output = pty.openpty()
        self._process = subprocess.Popen(
            [
                PROGRAM, "--no-pci", "--no-huge", "-m", "512", "--no-telemetry", "--no-shconf",
                "--lcores", cores, *devices, "--", "--interactive", f"--forward-mode={partner.mode}",
                f"--nb-cores={queues}", f"--rxq={queues}", f"--txq={queues}", f"--total-num-mbufs={8192 * queues}",
            ],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(output)
        self._text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    def wait_until_ready(self) -> None:
        """Return when it takes commands."""
        self._read_until(r"testpmd> ", 1)

    def frames_per_second(self, seconds: float) -> float:
        """Return what it forwards, by its own counters and clock."""
        self._command(self.partner.start)
        time.sleep(WARM_UP_SECONDS)
        self._rates()  # each answer tells of the time since the one before
        time.sleep(seconds)
        rates = self._rates()
        self._command("stop")
        self._read_until(r"Done\.", 1)
        return float(sum(rates))

    def _rates(self) -> list[int]:
        self._text = ""
        self._command("show port stats all")
        pattern = rf"{self.partner.counts}-pps:\s+(\d+)\s"
        self._read_until(pattern, len(self.partner.devices))
        return [int(rate) for rate in re.findall(pattern, self._text)]

    def _command(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode() + b"\n")
        self._process.stdin.flush()

    def _read_until(self, pattern: str, times: int) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while len(re.findall(pattern, self._text)) < times:
            if not select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"{PROGRAM} {self.partner.mode} does not answer; it said:\n{self._text[-2000:]}")
            try:
                self._text += os.read(self._terminal, 65536).decode(errors="replace")
            except OSError:
                raise RuntimeError(f"{PROGRAM} {self.partner.mode} ended; it said:\n{self._text[-2000:]}") from None

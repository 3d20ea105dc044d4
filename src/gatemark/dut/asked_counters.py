"""What the kernel of a gateway counts where commands alone reach it: over ssh, or in a guest.

One short command prints the files that are read on this machine from where they are (`kernel_counters`), and what `tc`
says of queues. It runs just before and just after a trial, never while frames are sent. A host without such files, or
one that refuses, counts nothing, and no trial fails of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gatemark.dut.base import KernelCounts
from gatemark.dut.cpu_visitors import PROC
from gatemark.dut.kernel_counters import files_of_machine, files_of_namespace, told
from gatemark.dut.queue_counters import parse_shown_queues
from gatemark.dut.shell import Run
from gatemark.errors import TestBedError

WHERE = "reading the gateway's counters"
SECONDS_MAX = 5.0
FAILURES_MAX = 3
"""A host that tells nothing as many times in a row is not asked again."""
BOOT_ID = "sys/kernel/random/boot_id"
ID = re.compile(r"[0-9a-f-]{1,64}\n")
LINE = re.compile(r"/proc/([a-z0-9_/]+):(.*)")
"""Of a file, as grep prints it. All others are those of `tc`."""


class AskedCounters:
    """Counters of one kernel; without `of_machine` those of one namespace alone.

    `run` brings commands there; `names` as of `KernelCounters`.
    """

    def __init__(self, run: Run, names: Mapping[str, str], *, of_machine: bool = True, proc: Path = PROC) -> None:
        self._run = run
        self._names = names
        self._parsers = {**files_of_namespace(names), **(files_of_machine(None) if of_machine else {})}
        self._proc = proc
        self._failures = 0

    def read(self) -> KernelCounts:
        """Return what it has counted, as far as it tells."""
        if self._failures >= FAILURES_MAX:
            return KernelCounts()
        counted = self._read()
        self._failures = 0 if counted.counters else self._failures + 1
        return counted

    def _read(self) -> KernelCounts:
        files = " ".join(f"/proc/{name}" for name in (*self._parsers, BOOT_ID))
        script = f"LC_ALL=C; export LC_ALL; grep -s '' {files} || :; tc -s qdisc show 2> /dev/null || :"
        try:
            texts = _by_file(self._run(script, where=WHERE, seconds_max=SECONDS_MAX))
        except TestBedError:
            return KernelCounts()
        counters = told(texts.get("", ""), lambda text: parse_shown_queues(text, self._names))
        for name, parse in self._parsers.items():
            counters |= told(texts.get(name, ""), parse)
        boot_id = texts.get(BOOT_ID, "")
        return KernelCounts(
            counters=counters,
            boot_ids=(boot_id if ID.fullmatch(boot_id) else "",),
            is_this_machines=boot_id == self._own_boot_id(),
        )

    def _own_boot_id(self) -> str | None:
        """Return that of this machine: a host that ssh reaches may be a namespace of it."""
        path = self._proc / BOOT_ID
        return path.read_text(encoding="ascii") if path.exists() else None


def _by_file(output: str) -> dict[str, str]:
    """Return the text of each file by its name below `/proc`; what is of none has an empty name."""
    texts: dict[str, list[str]] = {}
    for line in output.split("\n"):
        match = LINE.fullmatch(line)
        name, text = ("", line) if match is None else match.groups()
        texts.setdefault(name, []).append(f"{text}\n")
    return {name: "".join(lines) for name, lines in texts.items()}

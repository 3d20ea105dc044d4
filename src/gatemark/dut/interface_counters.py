"""Counters of the interfaces of a network namespace, read from a file that stays open.

They are read several times around each trial. A process of `ip` for each reading would take most of the time
that a trial needs beyond its phases; reading the open file costs next to nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Collection
from pathlib import Path

from gatemark.dut.naming import NETNS_FOLDER
from gatemark.errors import TestBedError

CLONE_NEWNET = 0x40000000
"""Kind of namespace for setns(2)."""
READ_BYTES = 1 << 16
TX_DROPPED_COLUMN = 11
"""Of `/proc/net/dev`, after the name: eight columns of what was received, then bytes, packets, errors, drops."""


class InterfaceCounters:
    """`tx_dropped` of every interface of a namespace. It keeps the namespace alive until it is closed."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._file = _open_inside(NETNS_FOLDER / namespace, "/proc/thread-self/net/dev")

    def tx_dropped(self, *, ends: Collection[str]) -> dict[str, int]:
        """Return the counter of every interface; raise TestBedError if one of `ends` is gone."""
        drops = parse_tx_dropped(_read_whole(self._file))
        for end in ends:
            if end not in drops:
                raise TestBedError(
                    what="the interface no longer exists",
                    where=f"namespace {self._namespace}: {end}",
                    fix="the interface is gone: restart gatemark",
                )
        return drops

    def close(self) -> None:
        """Let go of the namespace; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def parse_tx_dropped(text: str) -> dict[str, int]:
    """Read `/proc/net/dev`: by interface, the frames that it dropped instead of sending them."""
    rows = (line.rpartition(":") for line in text.splitlines()[2:])
    return {name.strip(): int(columns.split()[TX_DROPPED_COLUMN]) for name, _, columns in rows}


def _read_whole(file: int) -> str:
    content = b""
    while part := os.pread(file, READ_BYTES, len(content)):
        content += part
    return content.decode()


def _open_inside(namespace: Path, path: str) -> int:
    """Open a file as a thread inside the namespace sees it; only that thread, which ends here, enters it."""
    opened: list[int] = []
    problems: list[OSError] = []

    def enter_and_open() -> None:
        try:
            inside = os.open(namespace, os.O_RDONLY)
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(inside, CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
                opened.append(os.open(path, os.O_RDONLY))
            finally:
                os.close(inside)
        except OSError as error:
            problems.append(error)

    thread = threading.Thread(target=enter_and_open)
    thread.start()
    thread.join()
    if problems:
        raise TestBedError(
            what=f"cannot be entered ({problems[0].strerror})",
            where=f"namespace {namespace.name}",
            fix="network namespaces need root: run as root, for example with sudo",
        ) from problems[0]
    return opened[0]

"""Counters of the interfaces of a network namespace, read from a file that stays open.

They are read several times around each trial. A process of `ip` for each reading would take most of the time
that a trial needs beyond its phases; reading the open file costs next to nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

from gatemark.dut.naming import NETNS_FOLDER
from gatemark.errors import TestBedError

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
"""Kind of namespace for setns(2)."""
READ_BYTES = 1 << 16
TX_DROPPED_COLUMN = 11
"""Of `/proc/net/dev`, after the name: eight columns of what was received, then bytes, packets, errors, drops."""


class InterfaceCounters:
    """`tx_dropped` of every interface of a namespace. It keeps the namespace alive until it is closed."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._file = inside(namespace, lambda: os.open("/proc/thread-self/net/dev", os.O_RDONLY | os.O_CLOEXEC))

    def tx_dropped(self, *, ends: Collection[str]) -> dict[str, int]:
        """Return the counter of every interface; raise TestBedError if one of `ends` is gone."""
        drops = parse_tx_dropped(read_whole(self._file))
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
    return {name: int(columns[TX_DROPPED_COLUMN]) for name, columns in columns_by_interface(text)}


def columns_by_interface(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each interface of `/proc/net/dev` with its columns."""
    for line in text.splitlines()[2:]:
        name, _, columns = line.rpartition(":")
        yield name.strip(), columns.split()


def read_whole(file: int, octets_max: int | None = None) -> str:
    """Read an open file from its start; of one that is longer than `octets_max`, a little more than that."""
    content = b""
    while octets_max is None or len(content) <= octets_max:
        if not (part := os.pread(file, READ_BYTES, len(content))):
            break
        content += part
    return content.decode(errors="replace")


def inside(namespace: str, act: Callable[[], T]) -> T:
    """Return what a callable returns in a network namespace.

    Raises TestBedError if it cannot be entered, or for an OSError of the callable.
    """
    try:
        return inside_of(NETNS_FOLDER / namespace, act)
    except OSError as error:
        raise TestBedError(
            what=f"cannot be entered ({error.strerror})",
            where=f"namespace {namespace}",
            fix="network namespaces need root: run as root, for example with sudo",
        ) from error


def inside_of(file: Path, act: Callable[[], T]) -> T:
    """Return what a callable returns in the namespace of a file; only a thread enters it, which ends here.

    Raises OSError if it cannot be entered, and what the callable raises.
    """
    returned: list[T] = []
    errors: list[Exception] = []

    def enter_and_act() -> None:
        try:
            entry = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(entry, CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
                returned.append(act())
            finally:
                os.close(entry)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=enter_and_act)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return returned[0]

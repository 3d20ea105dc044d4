"""Kernel settings that Linux keeps once for all namespaces: set while a test bed is open, written back afterwards.

The size of the connection tracking table is such a setting. A file says who set what, and what it was before. So test
beds with the same values share them, one with another value is refused, and what a dead process left is written back by
the next test bed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gatemark.dut import naming
from gatemark.errors import TestBedError

STATE_FILE = Path("/run/gatemark-settings.json")
"""By setting: `before`, `value`, and the names of the test beds that are its `holders`."""
SYSCTL_FOLDER = Path("/proc/sys")

State = dict[str, dict[str, Any]]


def hold(holder: naming.BedName, settings: Mapping[str, str]) -> None:
    """Set `settings` for a test bed. Raises TestBedError, having set nothing, if another one holds other values."""
    if not settings:
        return
    with _state() as state:
        _release(state, _dead_holders(state))
        for name, value in settings.items():
            entry = state.get(name)
            if entry is not None and entry["value"] != value:
                raise TestBedError(
                    what=f"is {entry['value']} for another test bed ({', '.join(entry['holders'])}), and {value} is"
                    " wanted; Linux has one value for the whole machine",
                    where=name,
                    fix="wait until the other campaign has ended, or write the same gateway.table into both",
                )
        before = {name: _read(name) for name in settings}
        for name, value in settings.items():
            entry = state.get(name) or {"before": before[name], "value": value, "holders": []}
            state[name] = entry | {"holders": sorted({*entry["holders"], holder.stem})}
    try:
        for name, value in settings.items():
            if before[name] != value:
                _write(name, value)
    except TestBedError:
        release(holder)
        raise


def release(holder: naming.BedName) -> None:
    """Write back what no other test bed holds; nothing if this one holds nothing."""
    if STATE_FILE.exists():
        with _state() as state:
            _release(state, {holder.stem})


UNTHROTTLED = {"kernel.sched_rt_runtime_us": "-1"}


@contextlib.contextmanager
def unthrottled_real_time() -> Iterator[None]:
    """Let real-time threads run without a pause inside the block; do nothing without permission.

    A kernel with real-time groups stops such a thread for 50 ms of each second, even if nothing else wants its core:
    the Tester would be late in every trial that lasts a second. The engine looks at the setting and makes its workers
    ordinary threads where they would be stopped.
    """
    name, held = naming.new_name(), False
    with contextlib.suppress(TestBedError, OSError):
        hold(name, UNTHROTTLED)
        held = True
    try:
        yield
    finally:
        if held:
            release(name)


def release_leftovers() -> None:
    """Write back what dead processes left behind."""
    if STATE_FILE.exists():
        with _state() as state:
            _release(state, _dead_holders(state))


def _dead_holders(state: State) -> set[str]:
    return {name for entry in state.values() for name in entry["holders"] if not _is_alive(name)}


def _release(state: State, holders: set[str]) -> None:
    for name in list(state):
        entry = state[name]
        entry["holders"] = [holder for holder in entry["holders"] if holder not in holders]
        if not entry["holders"]:
            with contextlib.suppress(TestBedError):
                _write(name, entry["before"])
            del state[name]


@contextlib.contextmanager
def _state() -> Iterator[State]:
    """Read the file, locked against other processes, and write it again at the end."""
    with STATE_FILE.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        state: State = json.loads(text) if text else {}
        try:
            yield state
        finally:
            file.truncate(0)
            file.write(json.dumps(state, indent=2) + "\n" if state else "")


def _is_alive(stem: str) -> bool:
    name = naming.parse_name(stem)
    return name is not None and naming.start_ticks(name.pid) == name.start_ticks


def _read(name: str) -> str:
    try:
        return _path(name).read_text(encoding="ascii").strip()
    except OSError as error:
        raise _failed(name, error) from None


def _write(name: str, value: str) -> None:
    try:
        _path(name).write_text(value, encoding="ascii")
    except OSError as error:
        raise _failed(name, error) from None


def _failed(name: str, error: OSError) -> TestBedError:
    return TestBedError(
        what=f"cannot be set: {error.strerror}",
        where=name,
        fix="the kernel must have it (nf_conntrack settings need the module: modprobe nf_conntrack), and gatemark must"
        " run as root in the machine's own network namespace",
    )


def _path(name: str) -> Path:
    return SYSCTL_FOLDER / name.replace(".", "/")

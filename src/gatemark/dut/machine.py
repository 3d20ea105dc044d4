"""Kernel settings that Linux keeps once for all namespaces: set while a test bed is open, written back afterwards.

The size of the connection tracking table is such a setting, and the nice value of a kernel thread. A file says who set
what, and what it was before. So test beds with the same values share them, one with another value is refused, and what
a dead process left is written back by the next test bed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from gatemark.dut import naming
from gatemark.dut.cpu_visitors import soft_interrupt_threads
from gatemark.errors import TestBedError
from gatemark.files import replace_files

STATE_FILE = naming.ROOT_FOLDER / "settings.json"
"""By setting: `before`, `value`, and the names of the test beds that are its `holders`. It is written before a setting
is changed, and replaced as a whole: on a full disk nothing is changed."""
SYSCTL_FOLDER = Path("/proc/sys")
NICE_VALUE = "nice value of "
"""What the name of a setting begins with that is not one of sysctl; a kernel thread's name follows."""

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
                    fix="wait until the other campaign ends, or write the same gateway.table into both",
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


def nice_values(cpus: Collection[int], nice: int) -> dict[str, str]:
    """Return as settings a nice value of the kernel threads that do the work of soft interrupts on CPUs."""
    return {f"{NICE_VALUE}{thread.name}": str(nice) for thread in soft_interrupt_threads() if thread.cpu in cpus}


def release(holder: naming.BedName) -> None:
    """Write back what no other test bed holds; nothing if this one holds nothing."""
    _release_all(lambda name: name == holder.stem)


def release_leftovers() -> None:
    """Write back what dead processes left behind."""
    _release_all(lambda name: not _is_alive(name))


def leftovers() -> dict[str, dict[str, str]]:
    """Return each setting that dead processes changed, with its value `before` and `now`."""
    try:
        state = _read_state()
    except TestBedError:
        return {str(STATE_FILE): {"before": "unknown", "now": "damaged"}}
    return {
        name: {"before": entry["before"], "now": _read(name)}
        for name, entry in state.items()
        if not any(map(_is_alive, entry["holders"])) and _exists(name)
    }


def _release_all(is_gone: Callable[[str], bool]) -> None:
    """Write back what only holders that are gone hold.

    Where the state cannot be written for lack of room, the values are back all the same: the holders that stay in the
    file will be dead soon, and then the same values are written again.
    """
    if not STATE_FILE.exists():
        return
    with contextlib.suppress(_NoRoomError), _state() as state:
        holders = {name for entry in state.values() for name in entry["holders"]}
        _release(state, {name for name in holders if is_gone(name)})


UNTHROTTLED = {"kernel.sched_rt_runtime_us": "-1"}


@contextlib.contextmanager
def unthrottled_real_time() -> Iterator[None]:
    """Let real-time threads run without a pause inside the block; do nothing without permission.

    A kernel with real-time groups stops such a thread for 50 ms of each second, even if nothing else wants its core:
    the Tester would be late in every trial that lasts a second. The engine looks at the setting and makes its workers
    ordinary threads where they would be stopped.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(TestBedError, OSError):
            name = stack.enter_context(naming.claimed())
            hold(name, UNTHROTTLED)
            stack.callback(release, name)
        yield


def _dead_holders(state: State) -> set[str]:
    return {name for entry in state.values() for name in entry["holders"] if not _is_alive(name)}


def _release(state: State, holders: set[str]) -> None:
    """Let go of settings; one that cannot be written back stays in the state, without holders."""
    for name in list(state):
        entry = state[name]
        entry["holders"] = [holder for holder in entry["holders"] if holder not in holders]
        if not entry["holders"]:
            with contextlib.suppress(TestBedError):
                if _exists(name):  # else its module was removed, and the setting with it
                    _write(name, entry["before"])
                del state[name]


class _NoRoomError(TestBedError):
    """The state could not be replaced; it is what it was."""


@contextlib.contextmanager
def _state() -> Iterator[State]:
    """Read the state, locked against other processes, and replace it at the end."""
    with naming.locked():
        state = _read_state()
        try:
            yield state
        finally:
            _write_state(state)


def _read_state() -> State:
    try:
        text = STATE_FILE.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        state: State = json.loads(text)
        return {name: {key: entry[key] for key in ("before", "value", "holders")} for name, entry in state.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TestBedError(
            what="is damaged, so the value to restore is unknown", where=str(STATE_FILE), fix="delete it, or reboot"
        ) from None


def _write_state(state: State) -> None:
    try:
        if not state:
            return STATE_FILE.unlink(missing_ok=True)
        replace_files(STATE_FILE.parent, {STATE_FILE.name: (json.dumps(state, indent=2) + "\n").encode()})
    except OSError as error:
        problem = naming.cannot_keep(STATE_FILE, error).problems[0]
        raise _NoRoomError(what=problem.what, where=problem.where, fix=problem.fix) from None


def _is_alive(stem: str) -> bool:
    name = naming.parse_name(stem)
    return name is not None and naming.is_owned(name)


def _exists(name: str) -> bool:
    return _path(name).exists() if (thread := _thread(name)) is None else thread != NO_THREAD


def _read(name: str) -> str:
    try:
        if (thread := _thread(name)) is not None:
            return str(os.getpriority(os.PRIO_PROCESS, thread))
        return _path(name).read_text(encoding="ascii").strip()
    except OSError as error:
        raise _failed(name, error) from None


def _write(name: str, value: str) -> None:
    try:
        if (thread := _thread(name)) is not None:
            return os.setpriority(os.PRIO_PROCESS, thread, int(value))
        _path(name).write_text(value, encoding="ascii")
    except OSError as error:
        raise _failed(name, error) from None


NO_THREAD = -1
"""A number that no thread has: the kernel answers that there is no such process."""


def _thread(name: str) -> int | None:
    """Return the thread whose nice value is meant; None if another setting is."""
    if not name.startswith(NICE_VALUE):
        return None
    threads = (thread.pid for thread in soft_interrupt_threads() if thread.name == name.removeprefix(NICE_VALUE))
    return next(threads, NO_THREAD)


def _failed(name: str, error: OSError) -> TestBedError:
    return TestBedError(
        what=f"cannot be set: {error.strerror}",
        where=name,
        fix="the kernel must have it (nf_conntrack settings need the module: modprobe nf_conntrack), and gatemark must"
        " run as root in the machine's own network namespace",
    )


def _path(name: str) -> Path:
    return SYSCTL_FOLDER / name.replace(".", "/")

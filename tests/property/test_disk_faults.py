"""A disk that fails at any place: one clear error, nothing lost, and the campaign goes on to the same result.

`disk_faults.c` stands before the C library in another process and lets the n-th call fail that changes a file of a
folder, or kills the process there: opening, writing, fsync, truncating, linking, renaming, removing, making a folder;
or the n-th call that asks for memory.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.property.disk_actions import ACTIONS, BEFORE

SOURCE = Path(__file__).with_name("disk_faults.c")
KILL = -1
"""In place of an error: the process is killed."""
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

DRIVER = """
import ctypes, json, os, sys, traceback
from pathlib import Path
from gatemark.errors import GatemarkError
from tests.property.disk_actions import ACTIONS, lay_out, prepare

shim = ctypes.CDLL(None)
shim.fault_failed_call.restype = ctypes.c_char_p
prepared = Path(sys.argv[1])

def attempt(name, folder, at, number, stays, of_memory):
    below = str(lay_out(name, Path(folder), prepared))
    finished, told = [], {}
    shim.fault_arm(b"memory" if of_memory else below.encode(), ctypes.c_long(at), number, stays)
    try:
        try:
            told["came_to"] = ACTIONS[name](Path(folder), prepared, finished)
        finally:
            shim.fault_disarm()
    except GatemarkError as error:
        told["error"] = [error.exit_status, str(error)]
    except BaseException:
        told["traceback"] = traceback.format_exc()
    return told | {"finished": finished, "calls": shim.fault_calls(), "failed": shim.fault_failed_call().decode()}

prepare(prepared)  # this imports all, once and not in every child

for line in sys.stdin:
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(into, "w") as pipe:
            json.dump(attempt(*json.loads(line)), pipe)
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        print(pipe.read() or "null", flush=True)
    os.waitpid(pid, 0)
"""

Attempt = Callable[..., dict[str, Any] | None]


@pytest.fixture(scope="module")
def attempt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempt]:
    """A process that acts, each time in a child of its own; returns what became of it, None if it was killed."""
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "disk_faults.so"
    compile_it: list[str | Path] = [
        "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, SOURCE, "-ldl",
    ]  # fmt: skip
    subprocess.run(compile_it, check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LD_PRELOAD": str(library)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, folder / "prepared"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:

        def act(
            action: str, output: Path, at: int = 0, number: int = 0, *, stays: bool = False, of_memory: bool = False
        ) -> dict[str, Any] | None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([action, str(output), at, number, int(stays), of_memory]) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] | None = json.loads(process.stdout.readline())
            return answer

        yield act
        assert process.stdin is not None
        process.stdin.close()


def lines_of(output: Path) -> list[bytes]:
    journal = output / "trials.jsonl"
    return journal.read_bytes().splitlines(keepends=True) if journal.exists() else []


EVERY_NTH = {
    "campaign": 41, "series": 67, "archive": 5, "verify": 31, "report": 73, "self_test": 3, "settings": 17,
    "calibration": 13, "kernel": 23,
}  # fmt: skip
"""Places that are tried before each commit; all of the others."""


CALLS = {"openat", "write", "fsync", "renameat", "ftruncate"}
"""What must have failed, where each place of a campaign was tried."""


def assert_nothing_half_done(output: Path, where: str) -> None:
    assert list(output.rglob(".*.new")) == [], where
    assert list(output.rglob("building-*")) == [], where
    setting = output / "sys" / "kernel" / "setting"
    assert not setting.exists() or setting.read_text() == BEFORE, where


@pytest.mark.endure
@pytest.mark.parametrize("action", ACTIONS)
def test_a_disk_that_fails_at_any_place_loses_nothing(
    action: str, attempt: Attempt, tmp_path: Path, endures: bool
) -> None:
    whole = attempt(action, tmp_path / "whole")
    assert whole is not None and "came_to" in whole, whole
    kinds = [(errno.ENOSPC, True), (errno.EIO, False), (errno.ENOSPC, False)]
    failed: set[str] = set()
    for turn, place in enumerate(range(1, whole["calls"] + 1, 1 if endures else EVERY_NTH.get(action, 1))):
        for number, stays in kinds if endures else [kinds[turn % len(kinds)]]:
            output = tmp_path / f"{place}-{number}-{stays}"
            broken = attempt(action, output, place, number, stays=stays)
            assert broken is not None
            where = f"{broken['failed']} ({errno.errorcode[number]}, place {place})"
            failed.update(broken["failed"].split()[:1])  # fewer calls are made after a failure
            assert "traceback" not in broken, f"{where}: {broken['traceback']}"
            if "error" in broken:
                status, words = broken["error"]
                assert status == (1 if action in ("settings", "kernel") else 3), f"{where}: {words}"
                assert "hint: " in words, f"{where}: {words}"
            else:
                assert broken["came_to"] == whole["came_to"], where
            kept = [line for line in lines_of(output) if line.endswith(b"\n")]
            assert len(kept) >= len(broken["finished"]), f"{where}: a trial that was told is lost"
            mended = attempt(action, output)
            assert mended is not None and mended.get("came_to") == whole["came_to"], f"{where}: {mended}"
            assert lines_of(output)[: len(kept)] == kept, where
            assert_nothing_half_done(output, where)
            shutil.rmtree(output)
    assert failed, "nothing failed"
    if action == "campaign":
        assert failed >= (CALLS if endures else {"openat"})


@pytest.mark.endure
@pytest.mark.parametrize("action", ACTIONS)
def test_a_process_that_is_killed_at_any_write_goes_on(
    action: str, attempt: Attempt, tmp_path: Path, endures: bool
) -> None:
    """`kill -9` just before the n-th call."""
    whole = attempt(action, tmp_path / "whole")
    assert whole is not None and "came_to" in whole, whole
    for place in range(1, whole["calls"] + 1, 1 if endures else 2 * EVERY_NTH.get(action, 1)):
        output = tmp_path / f"{place}"
        assert attempt(action, output, place, KILL) is None, f"place {place}: it was not killed"
        kept = [line for line in lines_of(output) if line.endswith(b"\n")]
        mended = attempt(action, output)
        assert mended is not None and mended.get("came_to") == whole["came_to"], f"place {place}: {mended}"
        assert lines_of(output)[: len(kept)] == kept, f"place {place}"
        assert list(output.rglob("building-*")) == [], f"place {place}"
        shutil.rmtree(output)


@pytest.mark.endure
@pytest.mark.parametrize("action", ACTIONS)
def test_memory_that_is_missing_at_any_place_loses_nothing(
    action: str, attempt: Attempt, tmp_path: Path, endures: bool
) -> None:
    """Some libraries end the process then: that is as if it were killed. No place leads to another result."""
    chance = random.Random(action)
    whole = attempt(action, tmp_path / "whole", of_memory=True)
    assert whole is not None and "came_to" in whole, whole
    ended = 0
    for _ in range(500 if endures else 1):
        place = chance.randint(1, whole["calls"])
        output = tmp_path / f"{place}"
        broken = attempt(action, output, place, errno.ENOMEM, of_memory=True)
        ended += broken is None or "came_to" not in broken
        if broken is not None and "came_to" in broken and broken["came_to"] != whole["came_to"]:
            # a plot that could not be drawn as before: then the archive is not verified
            assert action == "verify" and not broken["came_to"][0], f"place {place}: {broken}"
        kept = [line for line in lines_of(output) if line.endswith(b"\n")]
        assert broken is None or len(kept) >= len(broken["finished"]), f"place {place}: a trial is lost"
        mended = attempt(action, output)
        assert mended is not None and mended.get("came_to") == whole["came_to"], f"place {place}: {mended}"
        assert lines_of(output)[: len(kept)] == kept, f"place {place}"
        shutil.rmtree(output, ignore_errors=True)
    assert ended or not endures, "no place ended it"

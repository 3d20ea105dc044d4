"""A disk that fails at any place: one clear error, nothing lost, and the campaign goes on to the same result.

`disk_faults.c` stands before the C library in another process and lets the n-th call fail that changes a file of the
result folder: opening, writing, fsync, truncating, renaming, removing, making a folder.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("disk_faults.c")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

CAMPAIGN = """
name = "faults"
repetitions = 1
[testbed]
kind = "loopback"
[gateway]
technology = "router44"
[traffic]
frame_sizes = {family = "ipv4", octets = [64]}
[trial]
duration = "1s"
[frame_loss]
rates = ["20k", "40k", "60k", "80k"]
"""

DRIVER = """
import ctypes, json, os, sys, traceback
from pathlib import Path
from gatemark.campaign.events import TrialFinished
from tests.simulated.engine import SimulatedDevice
from gatemark.errors import GatemarkError
from gatemark.session import measure, resume_campaign
from tests.simulated.equipment import simulated_equipment

shim = ctypes.CDLL(None)
shim.fault_failed_call.restype = ctypes.c_char_p
file = sys.argv[1]

def attempt(folder, at, number, stays):
    shim.fault_arm(folder.encode(), ctypes.c_long(at), number, stays)
    finished = []
    watch = lambda event: finished.append(event.record.order.trial_number) if (
        isinstance(event, TrialFinished) and not event.replayed) else None
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=50_000, noise=0.05, faults={"hop_limit": 1000}))
    told = {}
    try:
        if (Path(folder) / "campaign.toml").exists():
            result = resume_campaign(folder, on_event=watch, equipment=equipment)
        else:
            result = measure(file, output=folder, on_event=watch, equipment=equipment)
        told["document"] = result.document.model_dump(mode="json")
    except GatemarkError as error:
        told["error"] = [error.exit_status, str(error)]
    except BaseException:
        told["traceback"] = traceback.format_exc()
    told |= {"finished": finished, "calls": shim.fault_calls(), "failed": shim.fault_failed_call().decode()}
    shim.fault_arm(b"", ctypes.c_long(0), 0, 0)
    return told

# All that is imported, once and not by every child.
measure(file, output=sys.argv[2], equipment=simulated_equipment(SimulatedDevice(capacity_forward=50_000)))

for line in sys.stdin:
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        with os.fdopen(into, "w") as pipe:
            json.dump(attempt(*json.loads(line)), pipe)
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        print(pipe.read(), flush=True)
    os.waitpid(pid, 0)
"""

Attempt = Callable[..., dict[str, Any]]


@contextmanager
def driver(folder: Path) -> Iterator[Attempt]:
    """A process that measures, each time in a child of its own; returns what became of it."""
    library, file = folder / "disk_faults.so", folder / "campaign.toml"
    compile_it: list[str | Path] = [
        "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, SOURCE, "-ldl",
    ]  # fmt: skip
    subprocess.run(compile_it, check=True)
    file.write_text(CAMPAIGN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LD_PRELOAD": str(library)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, file, folder / "first"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:

        def attempt(output: Path, at: int = 0, number: int = 0, *, stays: bool = False) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([str(output), at, number, int(stays)]) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield attempt
        assert process.stdin is not None
        process.stdin.close()


def lines_of(output: Path) -> list[bytes]:
    journal = output / "trials.jsonl"
    return journal.read_bytes().splitlines(keepends=True) if journal.exists() else []


@pytest.mark.endure
def test_a_disk_that_fails_at_any_place_loses_nothing(tmp_path: Path, endures: bool) -> None:
    with driver(tmp_path) as attempt:
        whole = attempt(tmp_path / "whole")
        assert "document" in whole, whole
        kinds = [(errno.ENOSPC, True), (errno.EIO, False), (errno.ENOSPC, False)]
        places = range(1, whole["calls"] + 1, 1 if endures else 12)
        failed: set[str] = set()
        for turn, place in enumerate(places):
            for number, stays in kinds if endures else [kinds[turn % len(kinds)]]:
                output = tmp_path / f"{place}-{number}-{stays}"
                broken = attempt(output, place, number, stays=stays)
                where = f"{broken['failed']} ({errno.errorcode[number]}, place {place})"
                failed.add(broken["failed"].split()[0])
                assert "traceback" not in broken, f"{where}: {broken['traceback']}"
                if "error" in broken:
                    status, words = broken["error"]
                    assert status == 3, f"{where}: {words}"
                    assert "hint: " in words, f"{where}: {words}"
                else:
                    assert broken["document"] == whole["document"], where
                kept = [line for line in lines_of(output) if line.endswith(b"\n")]
                assert len(kept) >= len(broken["finished"]), f"{where}: a trial that was told is lost"
                mended = attempt(output)
                assert mended.get("document") == whole["document"], f"{where}: {mended}"
                assert lines_of(output)[: len(kept)] == kept, where
                assert [path.name for path in output.glob(".*.new")] == [], where
                shutil.rmtree(output)
    assert failed >= ({"openat", "write", "fsync", "renameat", "ftruncate"} if endures else {"openat"})

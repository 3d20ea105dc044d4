"""kill -9 of gatemark, engine and gateway at random moments: a moment later the machine is as before, by itself.

And the campaign goes on to its end. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journals import read_journal
from tests.system.machine import command_line, gatemark, missing

from gatemark.dut import naming
from gatemark.dut.cleanup import remove_leftovers
from gatemark.dut.cpu_visitors import soft_interrupt_threads

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "tayga", "nft", "conntrack", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]

CAMPAIGN = """
name = "killed"
repetitions = 3
[testbed]
kind = "netns"
recipe = "tayga-nat64"
[left]
mtu = 1500
[right]
mtu = 1500
[traffic]
frame_sizes = {family = "ipv4", octets = [128]}
[connections]
count = 200
rate = "2k"
timeout = "100ms"
gap = "100ms"
[gateway.table]
size = 100000
hash_size = 50000
udp_timeout = "60s"
[trial]
duration = "300ms"
settle = "0s"
learn = "50ms"
drain = "100ms"
rest = "0s"
[validity]
retries = 0
lateness_max = "5s"
[frame_loss]
rates = ["500"]
"""
SETTINGS = ("net/netfilter/nf_conntrack_max", "net/netfilter/nf_conntrack_buckets", "kernel/sched_rt_runtime_us")
DELAY_S, DELAY_ENDURED_S = 0.7, 3.0
"""A victim is killed so long after it is there, at most."""
PATIENCE_S = 120
VICTIMS = ("gatemark", "engine", "gateway", "enclosure")


def state_of_the_machine() -> dict[str, object]:
    """All that a test bed changes."""
    folders = {folder: set(os.listdir(folder)) for folder in (naming.NETNS_FOLDER, naming.ROOT_FOLDER, Path("/tmp"))}
    return {
        "settings": [Path("/proc/sys", name).read_text() for name in SETTINGS],
        "nice values": [os.getpriority(os.PRIO_PROCESS, thread.pid) for thread in soft_interrupt_threads()],
        "namespaces": {name for name in folders[naming.NETNS_FOLDER] if name.startswith("gatemark-")},
        "folders": folders[naming.ROOT_FOLDER],
        "temporary files": {name for name in folders[Path("/tmp")] if name.startswith("gatemark")},
        "links": subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout,
    }


def of_bed(process: int) -> Iterator[tuple[int, str]]:
    """Yield the processes in the namespaces of the test bed that a process owns, each with its name."""
    for entry in os.listdir(naming.NETNS_FOLDER):
        name = naming.parse_name(entry)
        if name is not None and name.pid == process:
            for pid in naming.processes_in(entry):
                with contextlib.suppress(OSError):
                    yield pid, Path(f"/proc/{pid}/comm").read_text().strip()


def there(victim: str, process: int) -> list[int]:
    """Return the processes of one party of a run."""
    names = {"engine": "gatemark-engine", "gateway": "tayga", "enclosure": "unshare"}
    wanted = names.get(victim)
    return [process] if wanted is None else [pid for pid, name in of_bed(process) if name == wanted[:15]]


def kill(victim: str, process: int) -> bool:
    """Kill one party of a run; return whether it was there."""
    pids = there(victim, process)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def start_or_go_on(file: Path, output: Path) -> list[str | Path]:
    return ["--resume", output] if (output / "campaign.toml").exists() else [file, "--output", output]


def is_complete(output: Path) -> bool:
    with contextlib.suppress(OSError):
        return bool(json.loads((output / "result.json").read_text())["status"] == "complete")
    return False


@pytest.mark.endure
def test_whatever_is_killed_whenever_the_machine_is_as_before(tmp_path: Path, endures: bool) -> None:
    file, rng = tmp_path / "campaign.toml", random.Random(2)
    file.write_text(CAMPAIGN)
    first = gatemark("run", file, "--output", tmp_path / "first")  # loads kernel modules and makes /run/netns
    assert is_complete(tmp_path / "first"), first
    assert not remove_leftovers()
    before = state_of_the_machine()
    kills, number = 0, 0
    while kills < (200 if endures else len(VICTIMS)):
        output = tmp_path / f"result-{number}"
        arguments = start_or_go_on(file, output)
        victim = VICTIMS[kills % len(VICTIMS)]
        moment = rng.uniform(0, DELAY_ENDURED_S if endures else DELAY_S)
        with subprocess.Popen(
            command_line("run", *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            begins_with = "enclosure" if victim == "gatemark" and not endures else victim
            while process.poll() is None and not there(begins_with, process.pid):
                time.sleep(0.02)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            kills += process.poll() is None and kill(victim, process.pid)
            _, words = process.communicate(timeout=PATIENCE_S)
        where = f"{victim} killed {moment:.2f} s after it was there: status {process.returncode}, {words}"
        assert "Traceback" not in words, where
        until = time.monotonic() + PATIENCE_S
        while (after := state_of_the_machine()) != before:
            assert time.monotonic() < until, f"{where}: {after} and not {before}"
            time.sleep(0.1)
        if is_complete(output):  # it ended before the kill, or in spite of it
            number += 1
    whole = gatemark("run", *start_or_go_on(file, output), "--json")
    assert whole.document["status"] == "complete", whole
    assert [record.order.trial_number for record in read_journal(output / "trials.jsonl")] == list(range(1, 4))

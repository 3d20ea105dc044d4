"""Who keeps a CPU, and who interrupts it: a real process that does nothing else, and a table of the kernel."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from gatemark.dut.cpu_visitors import Visit, read_interrupts, watch_visitors

TABLE = """           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          7      98419 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:     140976     154606   Local timer interrupts
ERR:          0
"""


def test_a_process_that_never_sleeps_is_seen_with_what_it_ran() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            visit = None
            until = time.monotonic() + 60
            while visit is None and time.monotonic() < until:  # on a busy machine it may not have begun
                begun_ns = time.monotonic_ns()
                watched = watch_visitors(0.5)
                took_ns = time.monotonic_ns() - begun_ns
                visit = next((visit for visit in watched.visits if visit.thread == burner.pid), None)
        finally:
            burner.kill()
    assert visit is not None
    assert visit.name.startswith("python")
    assert 0 < visit.ran_ns <= took_ns
    assert list(watched.visits) == sorted(watched.visits, key=lambda visit: -visit.stretch_ns)


def test_a_stretch_is_the_mean_of_the_times() -> None:
    assert Visit(thread=1, name="x", cpu=0, ran_ns=9_000_000, times=3).stretch_ns == 3_000_000
    assert Visit(thread=1, name="x", cpu=0, ran_ns=9_000_000, times=0).stretch_ns == 9_000_000, "it has not let go yet"


def test_interrupts_of_devices_are_read_by_cpu(tmp_path: Path) -> None:
    (tmp_path / "interrupts").write_text(TABLE)
    assert read_interrupts(tmp_path) == {24: ("ACPI:Ged", [1, 0]), 36: ("virtio1-req.0", [7, 98419])}
    assert read_interrupts(tmp_path / "hidden") == {}

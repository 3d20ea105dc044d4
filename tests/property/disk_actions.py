"""What writes to a disk, for `test_disk_faults`: each begins in an empty folder, or goes on with what is there.

An action returns what it came to, which is the same however often it was interrupted before. It runs in a child process
with `disk_faults.c` before the C library.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.property.router_campaign import BARE
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.archive.verify import verify_archive
from gatemark.archive.write import write_archive
from gatemark.calibrate.checks import all_checks
from gatemark.calibrate.store import JSON_FILE, StoredCalibration
from gatemark.campaign.events import TrialFinished
from gatemark.dut import machine, naming
from gatemark.facts import ClockFacts
from gatemark.kernels import build
from gatemark.kernels.packages import Offer
from gatemark.kernels.store import SOURCE_CHANGES
from gatemark.results.toml_text import to_toml
from gatemark.selftest.document import SelfTest, load_self_test, store_self_test, this_machine
from gatemark.series.run import measure_series, resume_series
from gatemark.session import measure, resume_campaign
from gatemark.stored import rebuild_report
from gatemark.tester import Equipment

FRAME_LOSS = {"rates": ["20k", "40k", "60k", "80k"]}
CAMPAIGN = to_toml({**BARE, "name": "faults", "repetitions": 1, "frame_loss": FRAME_LOSS})
SERIES = to_toml(
    {**BARE, "name": "faults", "repetitions": 1, "frame_loss": {"rates": ["20k"]}, "vary": [{"seed": [1, 2]}]}
)
BEFORE = "950000"
"""Of a setting of the kernel, which must never be lost."""
Finished = list[int]
Action = Callable[[Path, Path, Finished], Any]
"""Takes its folder, the folder of what was prepared without faults, and a list for the trials that it tells."""


def _equipment() -> Equipment:
    return simulated_equipment(SimulatedDevice(capacity_forward=50_000, noise=0.05, faults={"hop_limit": 1000}))


def prepare(prepared: Path) -> None:
    """Make, without faults, what actions read."""
    prepared.mkdir()
    (prepared / "campaign.toml").write_text(CAMPAIGN)
    (prepared / "series.toml").write_text(SERIES)
    measure(prepared / "campaign.toml", output=prepared / "measured", equipment=_equipment())
    write_archive(prepared / "measured", prepared / "measured.tar.gz")


def lay_out(name: str, folder: Path, prepared: Path) -> Path:
    """Make what an action finds, without faults; return the folder that is to fail."""
    if name in ("campaign", "series", "calibration"):
        return folder  # it makes its folder
    folder.mkdir(exist_ok=True)
    if name == "report" and not (folder / "campaign.toml").exists():
        shutil.copytree(prepared / "measured", folder, dirs_exist_ok=True)
    setting = folder / "sys" / "kernel" / "setting"
    if name == "settings" and not setting.exists():
        setting.parent.mkdir(parents=True)
        setting.write_text(BEFORE)
    return folder / "run" if name == "settings" else folder


def campaign(folder: Path, prepared: Path, finished: Finished) -> Any:
    """Measure a campaign, with its report."""

    def watch(event: object) -> None:
        if isinstance(event, TrialFinished) and not event.replayed:
            finished.append(event.record.order.trial_number)

    if (folder / "campaign.toml").exists():
        result = resume_campaign(folder, on_event=watch, equipment=_equipment())
    else:
        result = measure(prepared / "campaign.toml", output=folder, on_event=watch, equipment=_equipment())
    return result.document.model_dump(mode="json")


def series(folder: Path, prepared: Path, _finished: Finished) -> Any:
    """Measure a series of two columns, without pages."""
    if (folder / "series.toml").exists():
        result = resume_series(folder, equipment=_equipment())
    else:
        result = measure_series(prepared / "series.toml", output=folder, equipment=_equipment(), report=False)
    return [figure for metric in result.document.metrics for figure in metric.model_dump(mode="json")["figures"]]


def archive(folder: Path, prepared: Path, _finished: Finished) -> Any:
    """Pack a result; what has the name of the archive is whole."""
    target = folder / "packed.tar.gz"
    if not target.exists():
        write_archive(prepared / "measured", target)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def verify(folder: Path, prepared: Path, _finished: Finished) -> Any:
    """Unpack an archive and compute it again."""
    tempfile.tempdir = str(folder)
    verified = verify_archive(prepared / "measured.tar.gz")
    return [verified.holds, str(verified)]


def report(folder: Path, _prepared: Path, _finished: Finished) -> Any:
    """Make a report again, with plots as files."""
    rebuild_report(folder, plots=folder / "plots")
    return sorted(path.name for path in (folder / "plots").glob("[!.]*"))


def self_test(folder: Path, _prepared: Path, _finished: Finished) -> Any:
    """Keep a self-test."""
    os.environ["XDG_STATE_HOME"] = str(folder)
    document = SelfTest(
        selftest=2, machine=this_machine(), port_kind="memif", conditions={}, measured_at="2026-01-01", gatemark="1",
        engine="1", quick=False, trial_ns=1, confirmations=1, lateness_max_ns=10**6, entries=(), self_latency=(),
        clock=ClockFacts(resolution_ps=10_000, read_ps=20_000),
    )  # fmt: skip
    store_self_test(document)
    kept = load_self_test("memif", {})
    return None if kept is None else kept.to_text()


def settings(folder: Path, _prepared: Path, _finished: Finished) -> Any:
    """Change a setting of the kernel and write it back."""
    naming.ROOT_FOLDER = folder / "run"
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    machine.STATE_FILE, machine.SYSCTL_FOLDER = naming.run_folder() / "settings.json", folder / "sys"
    with naming.claimed() as name:
        machine.hold(name, {"kernel.setting": "-1"})
        machine.release(name)
    machine.release_leftovers()
    return (folder / "sys" / "kernel" / "setting").read_text()


def calibration(folder: Path, _prepared: Path, _finished: Finished) -> Any:
    """Begin a calibration and read it again."""
    if not (folder / JSON_FILE).exists():
        StoredCalibration.create(folder, all_checks(quick=True)[:2], ports="veth", quick=True)
    return [check.name for check in StoredCalibration.open(folder).checks]


class _Packages:
    """Sources of a kernel that is made in an instant, and no Jool."""

    def __init__(self, *_given: object) -> None:
        pass

    def offers(self, pattern: str) -> list[Offer]:
        return [Offer("linux-source-7.3", "7.3.1-1")] if re.fullmatch(pattern, "linux-source-7.3") else []

    def unpack(self, _offer: Offer, into: Path) -> None:
        tree = into / "tree" / "linux-source-7.3"
        ((name, text, _other),) = SOURCE_CHANGES
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(text)
        (tree / "Makefile").write_text(KERNEL_MAKEFILE)
        (into / "usr/src").mkdir(parents=True)
        target = into / "usr/src/linux-source-7.3.tar.xz"
        pack = ["tar", "--create", "--xz", "--file", str(target), "-C", str(tree.parent), tree.name]
        subprocess.run(pack, check=True)


KERNEL_MAKEFILE = """
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) .config
linux:
\tprintf '#!/bin/sh\\n' > linux
\tchmod 755 linux
\tmkdir -p include/config
\techo 7.3.1 > include/config/kernel.release
modules:
\techo nothing
"""


def kernel(folder: Path, _prepared: Path, _finished: Finished) -> Any:
    """Build a kernel; all but its sources is real."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    fakes = {"PackageSource": _Packages, "check_start": lambda *_given: None, "PROGRAMS": {"make": "make"}}
    for name, fake in {**fakes, "FREE_BYTES_MIN": 0}.items():
        setattr(build, name, fake)
    built = build.build_kernel("7.3", lambda *_said: None, jobs=1)
    return [str(built.facts), built.is_current, os.access(built.program, os.X_OK)]


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        action.__name__: action
        for action in (campaign, series, archive, verify, report, self_test, settings, calibration, kernel)
    }
)

"""What goes wrong in the middle of a run: one clear error, its documented status, results kept, nothing left behind.

After each, `gatemark run --resume` makes the result whole. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.journals import read_journal
from tests.system.machine import Ended, command_line, gatemark, missing, nightly_but, run

from gatemark.dut import naming
from gatemark.engine.process import find_engine

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "mount", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

TRIALS = 8
PATIENCE_S = 60
CAMPAIGN = """
name = "interrupted"
repetitions = {repetitions}
[testbed]
kind = "netns"
recipe = "{recipe}"
[left]
mtu = 1500
[right]
mtu = 1500
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
[trial]
duration = "250ms"
settle = "0s"
learn = "50ms"
drain = "100ms"
rest = "0s"
[validity]
retries = 0
[frame_loss]
rates = ["2k"]
"""


class Running:
    """A `gatemark run` in the background."""

    def __init__(self, file: Path, output: Path) -> None:
        self.output = output
        self.process = subprocess.Popen(
            command_line("run", file, "--output", output), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def name(self) -> naming.BedName:
        """The test bed of the run: its name holds the process."""
        spaces = [naming.parse_name(entry) for entry in os.listdir(naming.NETNS_FOLDER)]
        return next(name for name in spaces if name is not None and name.pid == self.process.pid)

    def wait_for_trials(self, count: int) -> None:
        """Wait until the journal holds a number of trials."""
        journal = self.output / "trials.jsonl"
        until = time.monotonic() + PATIENCE_S
        while not journal.exists() or journal.read_bytes().count(b"\n") < count:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, "no trial was made in time"
            time.sleep(0.02)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Stop it for a while, so that it makes no further trials, however long this test is held up."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def end(self) -> Ended:
        """Wait for the end."""
        output, words = self.process.communicate(timeout=PATIENCE_S)
        return Ended(status=self.process.returncode, output=output, words=words)

    def gateway_processes(self) -> list[int]:
        """Return the processes in the gateway's namespace."""
        return [int(pid) for pid in run("ip", "netns", "pids", self.name.gateway_namespace).split()]

    def engine(self) -> int:
        """Return the process of the engine."""
        pids = [int(pid) for pid in run("ip", "netns", "pids", self.name.tester_namespace).split()]
        return next(pid for pid in pids if Path(f"/proc/{pid}/exe").resolve() == find_engine())


@contextlib.contextmanager
def running(tmp_path: Path, recipe: str = "linux-router4", output: Path | None = None) -> Iterator[Running]:
    """Start a run of `TRIALS` trials; end it whatever happens."""
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN.format(recipe=recipe, repetitions=TRIALS))
    under_way = Running(file, output or tmp_path / "result")
    try:
        yield under_way
    finally:
        if under_way.process.poll() is None:
            under_way.process.kill()
            under_way.process.communicate()


def errors_of(ended: Ended) -> list[tuple[str, str]]:
    """Return message and hint of each error told."""
    assert "Traceback" not in ended.words, ended.words
    return re.findall(r"^error: (.+?)\n\nhint: (.+?)(?=\n\nerror: |\Z)", ended.words.strip(), re.DOTALL | re.MULTILINE)


def only_error(ended: Ended, status: int) -> tuple[str, str]:
    """Return the one error told; fails if there is another or the status is not the documented one."""
    assert ended.status == status, ended
    ((message, hint),) = errors_of(ended)
    return message, hint


def assert_nothing_stays(name: naming.BedName) -> None:
    """Check that namespaces, folder, interfaces and processes of a test bed are gone."""
    assert not (naming.NETNS_FOLDER / name.tester_namespace).exists()
    assert not (naming.NETNS_FOLDER / name.gateway_namespace).exists()
    assert not name.folder.exists()
    links = run("ip", "-br", "link")
    assert name.interface("gm", "left") not in links
    assert name.interface("gw", "left") not in links
    assert name.stem not in " ".join(_command_lines())


def _command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")


def assert_resumes(output: Path, *, trials_before: int, trials: int = TRIALS) -> None:
    """Continue a run and check that it is whole, with the earlier trials as they were."""
    before = (output / "trials.jsonl").read_bytes().splitlines()[:trials_before]
    ended = gatemark("run", "--resume", output, "--json")
    assert ended.status in (0, 1), ended
    assert ended.document["status"] == "complete"
    after = (output / "trials.jsonl").read_bytes().splitlines()
    assert after[:trials_before] == before
    assert [record.order.trial_number for record in read_journal(output / "trials.jsonl")] == list(range(1, trials + 1))
    assert (output / "report.html").exists()


Break = Callable[[Running], None]


def kill_engine(under_way: Running) -> None:
    os.kill(under_way.engine(), signal.SIGKILL)


def kill_translator(under_way: Running) -> None:
    """Kill tayga, and not a command of the test bed that happens to look into the gateway's namespace."""
    for pid in under_way.gateway_processes():
        with contextlib.suppress(OSError):  # such a command may have ended meanwhile
            if Path(f"/proc/{pid}/comm").read_text().strip() == "tayga":
                os.kill(pid, signal.SIGKILL)


def delete_interface(under_way: Running) -> None:
    name = under_way.name
    run("ip", "-n", name.gateway_namespace, "link", "delete", name.interface("gw", "right"))


def take_link_down(under_way: Running) -> None:
    name = under_way.name
    run("ip", "-n", name.gateway_namespace, "link", "set", name.interface("gw", "right"), "down")


BREAKS: list[tuple[str, Break, str]] = [
    ("linux-router4", kill_engine, r"gatemark-engine: it died .*SIGKILL"),
    ("tayga-siit64", kill_translator, r"the gateway's process ended with status -9"),
    ("linux-router4", delete_interface, r"g[mw]\w+-right: .*(no longer exists|does not exist|Cannot find device)"),
    ("linux-router4", take_link_down, r"link went down"),
]


@pytest.mark.parametrize(
    ("recipe", "break_it", "told"),
    nightly_but({0, 1, 3}, "its link goes down as well", BREAKS),
    ids=[item[1].__name__ for item in BREAKS],
)
def test_what_breaks_in_the_middle_is_told_once(tmp_path: Path, recipe: str, break_it: Break, told: str) -> None:
    with running(tmp_path, recipe) as under_way:
        under_way.wait_for_trials(2)
        with under_way.held():
            name = under_way.name
            break_it(under_way)
        ended = under_way.end()
    message, hint = only_error(ended, 1)
    assert re.search(told, message, re.DOTALL), message
    assert hint
    assert_nothing_stays(name)
    kept = read_journal(under_way.output / "trials.jsonl")
    assert 2 <= len(kept) < TRIALS
    assert_resumes(under_way.output, trials_before=len(kept))


def test_a_gateway_that_forwards_no_more_loses_everything(tmp_path: Path) -> None:
    """It is still there, so this is a result: each frame offered from then on is lost."""
    with running(tmp_path) as under_way:
        under_way.wait_for_trials(2)
        inside = ["ip", "netns", "exec", under_way.name.gateway_namespace]
        run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=0")
        ended = under_way.end()
    assert ended.status in (0, 1), ended
    last = read_journal(under_way.output / "trials.jsonl")[-1]
    assert all(direction.received == 0 for direction in last.report.directions)
    assert last.verdict is None or not last.verdict.passed


@pytest.mark.parametrize("number", nightly_but({0}, "the same handler", [signal.SIGINT, signal.SIGTERM]))
def test_a_stopped_run_resumes_to_a_complete_result(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, "tayga-siit64") as under_way:
        under_way.wait_for_trials(2)
        name = under_way.name
        under_way.process.send_signal(number)
        ended = under_way.end()
    message, hint = only_error(ended, 130)
    assert "stopped" in message
    assert f"gatemark run --resume {under_way.output}" in hint
    assert_nothing_stays(name)
    kept = read_journal(under_way.output / "trials.jsonl")
    assert_resumes(under_way.output, trials_before=len(kept))


def test_a_killed_run_resumes_and_its_leftovers_go(tmp_path: Path) -> None:
    with running(tmp_path, "tayga-siit64") as under_way:
        under_way.wait_for_trials(2)
        name = under_way.name
        under_way.process.kill()
        under_way.end()
    kept = read_journal(under_way.output / "trials.jsonl")
    assert_resumes(under_way.output, trials_before=len(kept))
    assert_nothing_stays(name)


def test_a_second_run_on_the_same_cpus_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    """Two runs on one CPU would measure each other."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with running(folders[0]) as first:
        first.wait_for_trials(1)
        with running(folders[1]) as second:
            message, hint = only_error(second.end(), 1)
        assert "another run of gatemark uses it" in message
        assert f"process {first.process.pid}" in message and str(first.output) in message
        assert "testbed.gateway_cores" in hint
        name = first.name
        first.process.kill()
        first.end()
    with running(folders[1]) as second:
        second.wait_for_trials(1)
        second.process.send_signal(signal.SIGTERM)
        assert second.end().status == 130
    assert_nothing_stays(name)


def test_a_second_run_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as under_way:
        under_way.wait_for_trials(1)
        message, hint = only_error(gatemark("run", "--resume", under_way.output), 3)
        assert "another gatemark writes to this folder" in message
        assert hint


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a file system of a size in kilobytes."""
    folder.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "gm-g-small", folder)
    try:
        yield folder
    finally:
        run("umount", folder)


def test_a_full_disk_keeps_what_was_measured(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 400) as disk:
        with running(tmp_path, output=disk / "result") as under_way:
            under_way.wait_for_trials(2)
            name = under_way.name
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            ended = under_way.end()
        message, hint = only_error(ended, 3)
        assert re.search(r"No space left on device|disk is full", message)
        assert "--resume" in hint
        assert_nothing_stays(name)
        kept = read_journal(under_way.output / "trials.jsonl")
        assert 2 <= len(kept) <= TRIALS
        filler.unlink()
        run("mount", "-o", "remount,size=64m", disk)
        assert_resumes(under_way.output, trials_before=len(kept))

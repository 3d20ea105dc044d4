"""CPUs of a run: nobody else gets them, and they are free again however the run ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatemark.dut import cpu_claims
from gatemark.dut.cpu_claims import claimed_cpus
from gatemark.errors import TestBedError

HOLDER = """
import sys, time
from pathlib import Path
from gatemark.dut import cpu_claims
from gatemark.dut.cpu_claims import claimed_cpus
with claimed_cpus([0, 1], folder=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_cpu_of_another_run_is_refused_with_its_name_and_free_again_when_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path), "a name"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(TestBedError) as refused, claimed_cpus([1, 2], folder=tmp_path):
                pass
            (problem,) = refused.value.problems
            assert problem.where == "CPU 1"
            assert f"process {holder.pid} (`{sys.executable} -c " in problem.what and "'a name'`" in problem.what
            with claimed_cpus([2, 3], folder=tmp_path):  # what was refused keeps nothing
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
    with claimed_cpus([0, 1], folder=tmp_path):
        pass


def test_a_run_may_have_its_cpus_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), claimed_cpus([0], folder=tmp_path):
        raise ZeroDivisionError
    with claimed_cpus([0], folder=tmp_path), pytest.raises(TestBedError), claimed_cpus([0], folder=tmp_path):
        pass


def test_every_user_may_lock_and_only_the_maker_may_write(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with claimed_cpus([0], folder=tmp_path):
            assert (tmp_path / "gatemark-cpu-0.lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_a_file_that_one_may_only_read_is_locked(tmp_path: Path) -> None:
    lock = tmp_path / "gatemark-cpu-0.lock"
    lock.write_text("of another user")
    lock.chmod(0o444)
    with claimed_cpus([0], folder=tmp_path):
        with pytest.raises(TestBedError, match=f"process {os.getpid()} "), claimed_cpus([0], folder=tmp_path):
            pass
        with cpu_claims.LOCKS.open() as locks:
            assert any(f" {os.getpid()} " in line and f":{lock.stat().st_ino} " in line for line in locks)
    assert lock.read_text() == "of another user"


@pytest.mark.parametrize("trap", ["link", "pipe"])
def test_what_is_no_file_is_neither_followed_nor_waited_for(tmp_path: Path, trap: str) -> None:
    lock = tmp_path / "gatemark-cpu-0.lock"
    lock.symlink_to(tmp_path / "elsewhere") if trap == "link" else os.mkfifo(lock)
    with pytest.raises(TestBedError, match="cannot be locked"), claimed_cpus([0], folder=tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_holder_that_has_no_number_here_is_no_reason_to_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").write_text(
        "1: FLOCK  ADVISORY  WRITE 0 00:2b:5 0 EOF\n1: -> FLOCK ADVISORY WRITE 1 00:2b:5 0 EOF\n"
    )
    monkeypatch.setattr(cpu_claims, "LOCKS", tmp_path / "locks")
    with (
        claimed_cpus([0], folder=tmp_path),
        pytest.raises(TestBedError, match="in another container"),
        claimed_cpus([0], folder=tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(TestBedError, match="cannot be locked"), claimed_cpus([0], folder=tmp_path / "absent/lock"):
        pass


def test_the_folder_is_made_for_every_user(tmp_path: Path) -> None:
    """In a container /run may be empty."""
    with claimed_cpus([0], folder=tmp_path / "lock"):
        assert (tmp_path / "lock").stat().st_mode & 0o7777 == 0o1777

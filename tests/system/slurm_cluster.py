"""A Slurm cluster of this machine alone: one controller and two nodes, in a network namespace of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

NAMESPACE = f"gm-slurm-{os.getpid()}"
ADDRESS = "10.9.9.1"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo")
CONFIGURATION = """ClusterName=gatemark
SlurmctldHost={host}({address})
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
MailProg=/bin/true
ReturnToService=2
SchedulerParameters=defer,batch_sched_delay=0,sched_interval=1
JobRequeue=1
Licenses=bed1:1,bed2:1
NodeName=beda NodeHostname={host} NodeAddr={address} Port=17001 CPUs=2 State=UNKNOWN
NodeName=bedb NodeHostname={host} NodeAddr={address} Port=17002 CPUs=2 State=UNKNOWN
PartitionName=lab Nodes=beda,bedb Default=YES MaxTime=INFINITE OverSubscribe=YES:4 State=UP
"""


def missing_program() -> str | None:
    """Return a program of Slurm that this machine lacks."""
    return next((program for program in PROGRAMS if shutil.which(program) is None), None)


class Cluster:
    """Its daemons run in the foreground, as children of this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool-beda", "spool-bedb"):
            (folder / name).mkdir()
        configuration = CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], address=ADDRESS, folder=folder
        )
        (folder / "slurm.conf").write_text(configuration)
        first = any(line.split()[2] == "cgroup" for line in Path("/proc/mounts").read_text().splitlines())
        plugin = (
            "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n" if first else "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
        )
        (folder / "cgroup.conf").write_text(plugin)
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "SLURM_TIMEOUT": "5"}

    def __enter__(self) -> Cluster:
        """Start it, and wait until both nodes are idle."""
        _run("ip", "netns", "add", NAMESPACE)
        try:
            _run("ip", "-n", NAMESPACE, "link", "set", "lo", "up")
            _run("ip", "-n", NAMESPACE, "address", "add", f"{ADDRESS}/32", "dev", "lo")
            self._start("slurmctld", "-D", "-c")
            self.start_node("beda")
            self.start_node("bedb")
            self.wait_for(self._is_up)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Kill everything that belongs to it."""
        for name in list(self._daemons):
            self.kill(name)
        for pid in subprocess.run(
            ["ip", "netns", "pids", NAMESPACE], capture_output=True, text=True, check=False
        ).stdout.split():
            _send(int(pid), signal.SIGKILL)
        _run("ip", "netns", "delete", NAMESPACE)

    def _is_up(self) -> bool:
        """Whether both nodes are idle; a machine on which a daemon of Slurm cannot run is told."""
        for name, daemon in self._daemons.items():
            if daemon.poll() is not None:
                pytest.skip(f"{name} of Slurm does not run on this machine: {self._last_error(name)}")
        return self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"]

    def _last_error(self, name: str) -> str:
        lines = (self._folder / f"{name}.out").read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if "error" in line), "it says nothing")

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        self._start("slurmd", "-D", "-N", name, name=name)

    def is_back(self, name: str) -> bool:
        """Whether a node that was down is idle again; it is asked to be, unless it has come back by itself."""
        if self.ask("sinfo", "-h", "-n", name, "-o", "%T").strip() == "idle":
            return True
        resume = self.inside("scontrol", "update", f"nodename={name}", "state=resume")
        subprocess.run(resume, env=self.environment, capture_output=True, check=False, timeout=60)
        return False

    def _start(self, *command: str, name: str | None = None) -> None:
        with (self._folder / f"{name or command[0]}.out").open("ab") as log:
            self._daemons[name or command[0]] = subprocess.Popen(
                self.inside(*command), env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """Kill a daemon, as if its machine had lost its power: with all that it runs.

        All of it is stopped first, the daemons before what they watch: none of them tells how another one ended.
        """
        daemon = self._daemons.pop(name)
        pids = _descendants(daemon.pid)[::-1]
        if name in ("beda", "bedb"):  # a step's daemon leaves the one of the node
            pids += self._steps_of(name)
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                _send(pid, signal_number)
        daemon.wait()

    def _steps_of(self, node: str) -> list[int]:
        """Return the daemons of a node's steps, then the processes of its jobs.

        A job has the node's name in its environment; its daemon is its parent, which shows its title in place of an
        environment.
        """
        wanted = f"SLURMD_NODENAME={node}".encode()
        said = subprocess.run(["ip", "netns", "pids", NAMESPACE], capture_output=True, text=True, check=False).stdout
        pids = [int(pid) for pid in said.split()]
        jobs = [pid for pid in pids if wanted in _environment(pid).split(b"\0")]
        daemons = {parent for pid in jobs if _name_of(parent := _parent(pid)) == "slurmstepd"}
        return [*daemons, *(pid for pid in jobs if pid not in daemons)]

    def inside(self, *command: str) -> list[str]:
        """Return a command that runs in the namespace of the cluster."""
        return ["ip", "netns", "exec", NAMESPACE, *command]

    def ask(self, *command: str) -> str:
        """Return what a command of Slurm prints."""
        done = subprocess.run(
            self.inside(*command), env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{command}: {done.stderr}{self.logs()}"
        return done.stdout

    def wait_for(self, condition: Callable[[], bool], limit_s: float = 60) -> None:
        """Wait until something is so."""
        until = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < until, self.logs()
            time.sleep(0.2)

    def logs(self) -> str:
        """Return what the daemons said."""
        files = sorted((*self._folder.glob("*.log"), *self._folder.glob("*.out")))
        return "".join(f"\n== {file.name}\n{file.read_text(errors='replace')[-2000:]}" for file in files)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _send(pid: int, signal_number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_number)


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    """Return the process that started another one; 0 if that one has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _descendants(pid: int) -> list[int]:
    """Return a process and all that it started, the last ones first."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, task.read_text().split())
        except OSError:
            continue
    return [*(started for child in children for started in _descendants(child)), pid]

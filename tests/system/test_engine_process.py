"""The engine as a process: its threads' CPUs, and what is left of it when it is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import missing, run

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.steering import usable_cpus
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine
from gatemark.errors import EngineError
from gatemark.trial.request import open_request

MISSING = missing("ip", root=True)


def loop_back(ports: dict[str, str]) -> Campaign:
    sides = {side: {"port": port, "mtu": 1500} for side, port in ports.items()}
    return campaign_from_dict({"gateway": {"technology": "router44"}, "testbed": {"kind": "loopback"}, **sides})


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace with both ends of a veth, gml and gmr."""
    name = f"gm-killed-{os.getpid()}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "add", "gml", "type", "veth", "peer", "name", "gmr")
        for end in ("gml", "gmr"):
            run("ip", "-n", name, "link", "set", end, "up")
        yield name
    finally:
        run("ip", "netns", "del", name)


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
def test_no_xdp_program_stays_on_an_interface(namespace: str) -> None:
    """A program left there would take all frames away from the gateway's kernel, and from the next engine."""
    campaign = loop_back({"left": "af_xdp:gml", "right": "af_xdp:gmr"})

    def programs() -> int:
        return run("ip", "-n", namespace, "link", "show").count("prog/xdp")

    process = EngineProcess(["ip", "netns", "exec", namespace, str(find_engine())], log=None)
    engine = EngineClient(process)
    engine.open(open_request(campaign, []))
    assert programs() == 2
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineError):
        engine.hello()
    deadline = time.monotonic() + 10
    while programs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert programs() == 0


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
@pytest.mark.skipif(len(usable_cpus()) < 2, reason="a single CPU is shared")
def test_no_other_thread_runs_on_a_workers_cpu() -> None:
    """There it would wait behind a thread that never sleeps."""
    campaign = loop_back({"left": "ring", "right": "ring"})
    process = EngineProcess([str(find_engine())], log=None)
    with EngineClient(process) as engine:
        opened = engine.open(open_request(campaign, []))
        workers = {worker["cpu"] for worker in opened["workers"]}
        own = [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        assert sorted(worker for mask in own if mask <= workers for worker in mask) == sorted(workers)
        assert all(not mask & workers for mask in own if not mask <= workers)

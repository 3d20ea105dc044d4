"""The engine as a process: its threads' CPUs, and what is left of it when it is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing, run

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import usable_cpus
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine
from gatemark.errors import EngineError
from gatemark.trial.request import open_request

PROTOCOL = Path(__file__).parents[2] / "protocol"
MISSING = missing("ip", root=True)


def loop_back(ports: dict[str, str]) -> Campaign:
    sides = {side: {"port": port, "mtu": 1500} for side, port in ports.items()}
    return complete_campaign(
        campaign_from_dict({"gateway": {"technology": "router44"}, "testbed": {"kind": "loopback"}, **sides})
    )


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


def next_progress(process: EngineProcess, *, elapsed_ns: int) -> None:
    """Waits until a trial has been sending for that long."""
    while (line := process.receive(10)) is not None:
        message = json.loads(line)
        if message.get("phase") == "send" and message["elapsed_ns"] >= elapsed_ns:
            return
    raise AssertionError(process.describe_end())


@pytest.fixture(name="process")
def in_a_trial() -> Iterator[EngineProcess]:
    """An engine on rings that is sending, for a minute."""
    process = EngineProcess([str(find_engine())], log=None)
    try:
        opening = open_request(loop_back({"left": "ring", "right": "ring"}), [])
        process.send(json.dumps({**opening, "id": 1}))
        assert (answer := process.receive(60)) is not None
        assert json.loads(answer)["answer"] == "ok", answer
        trial = json.loads((PROTOCOL / "examples" / "trial_request.json").read_text(encoding="utf-8"))
        for direction in trial["directions"]:
            direction["frames_per_second"] = 1000
        waits, patience = dict.fromkeys(trial["waits"], 0), {"progress_ns": 10**7, "give_up_lateness_ns": 10**10}
        process.send(json.dumps({**trial, "id": 2, "waits": waits, "delays": None, **patience}))
        next_progress(process, elapsed_ns=0)
        yield process
    finally:
        process.close()


def answers(process: EngineProcess) -> list[dict[str, Any]]:
    """What the engine still says, but for progress; it must end soon."""
    said = []
    while (line := process.receive(10)) is not None:
        said.append(json.loads(line))
    return [message for message in said if message["answer"] != "progress"]


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
def test_close_ends_a_trial_and_is_answered(process: EngineProcess) -> None:
    for request in ("link", "close", "hello"):
        process.send(json.dumps({"request": request, "id": len(request)}))
    trial, link, close = answers(process)
    assert (trial["id"], trial["cancelled"]) == (2, True)
    assert (link["answer"], link["id"]) == ("ok", len("link"))
    assert close == {"answer": "ok", "id": len("close")}
    process.close()
    assert process.describe_end().startswith("exit status 0")


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
def test_a_stop_of_the_engine_is_told(process: EngineProcess) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGCONT)
    next_progress(process, elapsed_ns=600_000_000)
    process.send(json.dumps({"request": "close", "id": 3}))
    trial = answers(process)[0]
    assert trial["worker_pause_max_ns"] > 450_000_000
    clocks = trial["clocks"]
    assert abs(clocks["cycle_counter_ns"] - clocks["monotonic_raw_ns"]) < 10_000_000, "both clocks go on meanwhile"
    process.close()


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_an_engine_that_must_end_cancels_its_trial_and_closes_its_ports(
    process: EngineProcess, number: signal.Signals
) -> None:
    os.kill(process.pid, number)
    (trial,) = answers(process)
    assert trial["cancelled"]
    process.close()
    assert process.describe_end().startswith("exit status 0")


@pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
def test_a_tap_port_and_the_interface_at_its_other_end_are_two_hosts(namespace: str) -> None:
    """A gateway there that sent from the port's own address could not be told from frames that came back."""
    campaign = loop_back({"left": "tap:gmtl", "right": "tap:gmtr"})
    process = EngineProcess(["ip", "netns", "exec", namespace, str(find_engine())], log=None)
    with EngineClient(process) as engine:
        opened = engine.open(open_request(campaign, []))
        for port, interface in ((opened["left"], "gmtl"), (opened["right"], "gmtr")):
            assert port["mac"] not in run("ip", "-n", namespace, "link", "show", interface)


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a nice value is lowered")
def test_on_one_cpu_the_thread_that_ends_a_phase_is_not_behind_the_workers() -> None:
    """Else 500 ms of sending last for seconds."""
    campaign = loop_back({"left": "ring", "right": "ring"})
    process = EngineProcess(["taskset", "-c", str(usable_cpus()[0]), str(find_engine())], log=None)
    with EngineClient(process) as engine:
        opened = engine.open(open_request(campaign, []))
        assert {worker["cpu"] for worker in opened["workers"]} == {usable_cpus()[0]}
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == -20
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        assert [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads].count(-20) > len(opened["workers"])


@pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")
@pytest.mark.cpus(2, "a single one is shared")
def test_no_other_thread_runs_on_a_workers_cpu() -> None:
    """There it would wait behind a thread that never sleeps."""
    campaign = loop_back({"left": "ring", "right": "ring"})
    process = EngineProcess([str(find_engine())], log=None)
    with EngineClient(process) as engine:
        opened = engine.open(open_request(campaign, []))
        workers = {worker["cpu"] for worker in opened["workers"]}
        affinities = [os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        assert sorted(worker for mask in affinities if mask <= workers for worker in mask) == sorted(workers)
        assert all(not mask & workers for mask in affinities if not mask <= workers)

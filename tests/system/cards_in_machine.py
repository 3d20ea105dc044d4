"""Runs in an emulated machine: opens both cards, makes trials, pulls cables; writes what it finds to a file in $OUT.

It judges nothing: the tests that start the machine do.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.campaign.runner import run_single_trial
from gatemark.errors import GatemarkError
from gatemark.tester import Equipment, Tester, open_tester, prepare

Document = dict[str, Any]

CORES = (1, 2)
WAITS = {"settle": "0s", "learn": "100ms", "drain": "4s", "rest": "0s"}
TRIAL_NS = 2_000_000_000


def cable(side: str, state: str) -> None:
    """Pull or plug the cable of a card, as the program `cable` does, which would take longer to start."""
    with open("/run/emulated-machine/wire", "r+b", buffering=0) as line:
        line.write(f"cable {side} {state}\n".encode())
        assert line.readline() == b"done\n"


def campaign_document(*, direction: str = "bidirectional", **side: Any) -> Document:
    """Return a loop-back campaign between both cards.

    Only counts are looked at: the machine's processors are programs, which anything may hold up.
    """
    sides = {}
    for name, address in (("left", "198.18.0.2"), ("right", "198.19.0.2")):
        sides[name] = {"port": f"pci:{os.environ[name.upper()]}", "ipv4": {"address": address}, **side}
    return {
        "gateway": {"technology": "router44", "hop_limit_decrement": 0},
        "testbed": {"kind": "loopback", "cores": list(CORES)},
        **sides,
        "traffic": {"direction": direction, "frame_sizes": {"family": "ipv4", "octets": [64]}},
        "trial": {"duration": "2s", **WAITS},
        "validity": {"retries": 0, "lateness_max": "5s"},
        "frame_loss": {"rates": ["1k"]},
    }


@contextlib.contextmanager
def opened(document: Document) -> Iterator[Tester]:
    """Open a Tester on the cards."""
    equipment = Equipment()
    bed, complete = prepare(campaign_from_dict(document), equipment)
    with open_tester(complete, bed, equipment) as tester:
        yield tester


def trial(tester: Tester, frames_per_second: int = 1_000) -> Document:
    """Make one trial; return its record, or the words of the error that ended it."""
    try:
        record = run_single_trial(
            tester.campaign,
            cells_of(tester.campaign)[0],
            tester.engine,
            frames_per_second=frames_per_second,
            duration_ns=TRIAL_NS,
            can=tester.testbed.can,
        )
    except GatemarkError as error:
        return {"error": str(error)}
    return record.model_dump(mode="json")


HOLD_UP = """
import time
while True:
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass
    time.sleep(0.3)
"""
"""Keeps everything else from a CPU for as long as a ring of 128 is full at 3000 frames/s, again and again."""


def during(seconds: float, *actions: Callable[[], None]) -> threading.Thread:
    """Do something after so many seconds, and the next thing half a second later."""

    def act() -> None:
        for action in actions:
            time.sleep(seconds if action is actions[0] else 0.5)
            action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def cables() -> Document:
    """Return what cards of one queue do with and without their cables."""
    facts: Document = {}
    with opened(campaign_document(queues=1)) as tester:
        facts["opened"] = tester.opened
        facts["trial"] = trial(tester)
        facts["fast"] = trial(tester, 3_000)
        pulls = during(1.0, lambda: cable("right", "off"), lambda: cable("right", "on"))
        facts["pulled for a moment"] = trial(tester)
        pulls.join()
        facts["plugged again"] = trial(tester)
        pulls = during(1.0, lambda: cable("left", "off"))
        facts["pulled"] = trial(tester)
        pulls.join()
        facts["link"] = tester.engine.link()
    try:
        with opened(campaign_document(queues=1)):
            facts["opened without link"] = {}
    except GatemarkError as error:
        facts["opened without link"] = {"error": str(error)}
    cable("left", "on")
    return facts


def several_queues(**side: Any) -> Document:
    """Return what cards do on as many queues as are chosen for them; there are workers for two of each port.

    All frames fit into their rings: QEMU's own RSS holds some back for good where a ring is full, and counts none.
    """
    document = campaign_document(**side)
    document["testbed"]["cores"] = [0, 1, 2, 3]
    try:
        with opened(document) as tester:
            return {"opened": tester.opened, "trial": trial(tester, 500)}
    except GatemarkError as error:
        return {"error": str(error)}


def starve() -> Document:
    """Return a trial whose receiving worker is held up, so that the ring of the card is full."""
    with opened(campaign_document(direction="forward", queues=1, ring_frames=128)) as tester:
        workers = tester.opened["workers"]
        (core,) = {worker["cpu"] for worker in workers if "receive forward 0" in worker["tasks"]}
        spin = ["chrt", "--rr", "1", "taskset", "--cpu-list", str(core), sys.executable, "-c", HOLD_UP]
        spinning = subprocess.Popen(spin)
        try:
            return {"workers": workers, "why": tester.opened["why"], "trial": trial(tester, 3_000)}
        finally:
            spinning.kill()
            spinning.wait()


def without_huge_pages() -> Document:
    """Return what is said where no huge pages are reserved."""
    pages = Path("/proc/sys/vm/nr_hugepages")
    before = pages.read_text()
    pages.write_text("0")
    try:
        with opened(campaign_document()) as tester:
            return trial(tester)
    except GatemarkError as error:
        return {"error": str(error)}
    finally:
        pages.write_text(before)


LOOKS: dict[str, Callable[[], Document]] = {
    "one queue": cables,
    "several queues": several_queues,
    "two queues": lambda: several_queues(queues=2),
    "starved": starve,
    "no huge pages": without_huge_pages,
}
"""What can be looked at, by the name under which it is written."""


def main() -> int:
    """Look at what the command line names."""
    for name in sys.argv[1:]:
        begun = time.monotonic()
        facts = LOOKS[name]()
        print(f"{name}: {time.monotonic() - begun:.1f} s", flush=True)
        (Path(os.environ["OUT"]) / f"{name}.json").write_text(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())

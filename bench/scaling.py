"""Frames that the Tester carries with 1, 2, ... workers, how many times one worker's that is, and why not n times.

Each worker has a CPU and a queue of each port. Far more is offered than can be sent, so every sender is always
busy and the figure is what was really offered, in the time until the last sender had done its share. No limit is
searched for, and no trial is valid: each is late by intent.

    .venv/bin/python -m bench.scaling                       # null ports: senders alone, as many workers as CPUs
    .venv/bin/python -m bench.scaling --ports ring ring     # every frame is received and verified as well
    .venv/bin/python -m bench.scaling --workers 1 2 4 8 16 --direction forward --ports pci:0000:01:00.0 pci:0000:01:00.1

The last one needs two ports of 100 Gbit/s that a cable joins, and shows 148.8 Mframes/s, random and verified.

Two controls tell the engine's part from the machine's, on ports that a process has for itself (null, ring):

- apart    as many engines with one worker each, which share nothing but the machine, send the same frames at the same
           time. What they lack of n times one worker's, the machine took: caches, clock, the hypervisor.
           share = workers' frames/s / theirs: at 1.00 nothing is missing that the engine could give.
- testpmd  txonly with as many CPUs and queues on one null port, to its own with one.

Everything is measured once a round, in turn, so that what else happens on the machine happens to all; ratios are taken
within a round, and the table has medians of the rounds. Two columns tell what disturbed the workers, each as a share of
their time, in trials of the workers and of the engines apart: stolen by the hypervisor, by the kernel's count for these
CPUs; and waited while another program had the CPU, by the kernel's count for the workers' own threads.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

from bench.cases import PARTNERS
from bench.machine import CpuTime
from bench.output import columns, command_line, write_json
from bench.testpmd import Testpmd, version
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import keeping_off, usable_cpus
from gatemark.engine.answers import Opened
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine
from gatemark.trial.request import open_request, trial_request

OFFERED_LOAD = 1_000_000_000
"""Frames/s in each direction: more than any port of 100 Gbit/s carries."""
PILOT_FRAMES = 2_000_000
"""Frames of the first trial in each direction and of each worker: what it reaches says how long the second one is."""
NEVER_NS = 10**12
PRIVATE_PORTS = {"null", "ring"}
"""Several engines can have such ports at the same time, and none knows of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One layout in one round: a number of workers of one engine, or of as many engines."""

    cpus: list[int]
    queues: int
    """Of the left port of each engine."""
    offered: int
    """Frames of all directions and engines together."""
    took_ns: int
    """From the first engine's start until the last sender had sent its last frame."""
    start_spread_ns: int
    """How long after the first engine the last one was asked to send; part of `took_ns`."""
    stolen: float
    """Share of these CPUs' time that the hypervisor took, from 0 to 1."""
    waited: float
    """Share of the workers' time in which another thread had their CPU, from 0 to 1."""
    received: int | None
    """Frames that came back correct; None where the ports return nothing."""
    wrong: int
    """Frames that came back wrong or twice."""

    @property
    def frames_per_second(self) -> float:
        """Frames offered, by the time that all of them took."""
        return self.offered * 1e9 / self.took_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """All that was measured with one number of workers in one round."""

    workers: Measured
    apart: Measured | None
    testpmd: float | None
    """Frames/s."""


def campaign_of(ports: Sequence[str], direction: str, frame_octets: int) -> Campaign:
    """Ports and hosts vary pseudorandomly on both sides, as RFC 4814 has it.

    While it settles, an engine makes its memory ready: engines that are asked at the same time then start together.
    """
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-254"}
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "router44"},
                "testbed": {"kind": "loopback"},
                "left": {"port": ports[0], "ipv4": {"address": "198.18.0.2", "hosts": hosts}},
                "right": {"port": ports[1], "ipv4": {"address": "198.19.0.2", "hosts": hosts}},
                "traffic": {"direction": direction, "frame_sizes": {"family": "ipv4", "octets": frame_octets}},
                "trial": {"duration": "1s", "settle": "200ms", "learn": "0s", "drain": "100ms", "rest": "0s"},
                "frame_loss": {"rates": ["1k"]},
            }
        )
    )


class Engines:
    """Engines that send at the same time. One with n CPUs has n workers, n with one each have nothing in common.

    No worker has real time, whatever the layout: an engine that has all CPUs is not given it either.
    """

    def __init__(self, campaign: Campaign, cpus: Sequence[Sequence[int]]) -> None:
        self._campaign = campaign
        self._cpus = [cpu for group in cpus for cpu in group]
        self._groups = cpus
        self._processes: list[EngineProcess] = []
        self._engines: list[EngineClient] = []
        self._opened: list[Opened] = []
        self._trial_number = 0

    def measure(self, seconds: float) -> Measured:
        """Open the ports, see how fast it goes, then send for about so long."""
        with contextlib.ExitStack() as stack:
            self._processes = [EngineProcess([str(find_engine())], log=None) for _ in self._groups]
            self._engines = [stack.enter_context(EngineClient(process)) for process in self._processes]
            for engine in self._engines:
                engine.hello()
            self._opened = [
                engine.open(open_request(self._campaign, list(group)))
                for engine, group in zip(self._engines, self._groups, strict=True)
            ]
            stack.enter_context(keeping_off(self._cpus))  # only now: the engines would inherit it
            few = PILOT_FRAMES * len(self._cpus)
            pilot = self._send(few)
            return self._send(int(few * seconds * 1e9 / pilot.took_ns))

    def _send(self, frames: int) -> Measured:
        """Offer so many frames in each direction, an equal part from each engine, as fast as they can be sent."""
        self._trial_number += 1
        (cell,) = cells_of(self._campaign)
        duration_ns = max(1, frames // len(self._engines) * 1_000_000_000 // OFFERED_LOAD)
        body = trial_request(
            self._campaign, cell, frames_per_second=OFFERED_LOAD, duration_ns=duration_ns,
            trial_number=self._trial_number,
        )  # fmt: skip
        body = {**body, "give_up_lateness_ns": NEVER_NS, "progress_ns": NEVER_NS}
        all_ready = Barrier(len(self._engines))

        def send(engine: EngineClient) -> tuple[int, dict[str, Any]]:
            all_ready.wait()
            return time.monotonic_ns(), engine.trial(body)

        before, waited_before = CpuTime.now(self._cpus), self._waited_ns()
        with ThreadPoolExecutor(len(self._engines)) as threads:
            answers = list(threads.map(send, self._engines))
        stolen = CpuTime.now(self._cpus).steal_share_since(before)
        return self._together(answers, stolen=stolen, waited_ns=self._waited_ns() - waited_before)

    def _waited_ns(self) -> int:
        """Time in which the workers were ready to run and did not, since they started."""
        return sum(waited_ns(thread) for process in self._processes for thread in worker_threads(process.pid))

    def _together(self, answers: Sequence[tuple[int, dict[str, Any]]], *, stolen: float, waited_ns: int) -> Measured:
        first = min(asked for asked, _ in answers)
        ways = [(asked - first, way) for asked, report in answers for way in report["directions"]]
        counts = [way["foreground"] for _, way in ways]
        ports = {self._opened[0][side]["port"].partition(":")[0] for side in ("left", "right")}
        took_ns = max(later + way["sending_ns"] for later, way in ways)
        return Measured(
            cpus=self._cpus,
            queues=self._opened[0]["queues"]["left"],
            offered=sum(count["offered"] for count in counts),
            took_ns=took_ns,
            start_spread_ns=max(later for later, _ in ways),
            stolen=stolen,
            waited=waited_ns / (took_ns * len(self._cpus)),
            received=None if ports == {"null"} else sum(count["received"] for count in counts),
            wrong=sum(count["faulty"] + count["duplicate"] for count in counts),
        )


def worker_threads(process_id: int) -> Iterator[Path]:
    """Threads of an engine that may run on one CPU only."""
    for thread in Path(f"/proc/{process_id}/task").iterdir():
        only_cpu = re.search(
            r"^Cpus_allowed_list:\s*(\d+)$", (thread / "status").read_text(encoding="ascii"), re.MULTILINE
        )
        if only_cpu is not None:
            yield thread


def waited_ns(thread: Path) -> int:
    """Time that a thread was ready and another one ran; 0 where the kernel does not count it."""
    file = thread / "schedstat"
    return int(file.read_text(encoding="ascii").split()[1]) if file.exists() else 0


def testpmd_rate(cpus: Sequence[int], seconds: float) -> float:
    """Frames/s of txonly on these CPUs; commands are read on the lowest of all, where nothing else is asked."""
    with Testpmd(PARTNERS["txonly"], usable_cpus()[0], cpus) as testpmd:
        testpmd.wait_until_ready()
        return testpmd.frames_per_second(seconds)


def scale(campaign: Campaign, cpus: list[int], *, seconds: float, with_testpmd: bool) -> Scaled:
    """Measure workers and controls on these CPUs."""
    ports = {side.port for side in (campaign.left, campaign.right) if side is not None}
    workers = Engines(campaign, [cpus]).measure(seconds)
    apart = None
    if ports <= PRIVATE_PORTS:
        alone = len(cpus) == 1  # one worker is its own control
        apart = workers if alone else Engines(campaign, [[cpu] for cpu in cpus]).measure(seconds)
    return Scaled(
        workers=workers, apart=apart, testpmd=testpmd_rate(cpus, seconds) if with_testpmd else None
    )  # fmt: skip


def in_order_of_use() -> list[int]:
    """One hardware thread of each core, then the others; the lowest CPU, which has the other work, at the end."""

    def siblings(cpu: int) -> str:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        return path.read_text(encoding="ascii").strip() if path.exists() else str(cpu)

    ranked_of: dict[str, int] = {}
    ranked = []
    lowest, *others = usable_cpus()
    for cpu in others:
        core = siblings(cpu)
        ranked.append((ranked_of.setdefault(core, 0), cpu))
        ranked_of[core] += 1
    return [cpu for _, cpu in sorted(ranked)] + [lowest]


def summary_of(rounds: list[list[Scaled]]) -> list[dict[str, Any]]:
    """Median over the rounds for each number of workers; ratios are to the first number, in the same round."""
    return [
        _row([of_round[column] for of_round in rounds], [of_round[0] for of_round in rounds])
        for column in range(len(rounds[0]))
    ]


def _row(measured: Sequence[Scaled], first: Sequence[Scaled]) -> dict[str, Any]:
    pairs = list(zip(measured, first, strict=True))
    returned = [scaled.workers for scaled in measured if scaled.workers.received is not None]
    apart = [(scaled, scaled.apart, base.apart) for scaled, base in pairs if scaled.apart and base.apart]
    testpmd = [scaled.testpmd / base.testpmd for scaled, base in pairs if scaled.testpmd and base.testpmd]
    return {
        "workers": len(measured[0].workers.cpus),
        "cpus": measured[0].workers.cpus,
        "queues": measured[0].workers.queues,
        "frames_per_second": _spread([scaled.workers.frames_per_second for scaled in measured]),
        "ratio_to": len(first[0].workers.cpus),
        "ratio": _spread([scaled.workers.frames_per_second / base.workers.frames_per_second for scaled, base in pairs]),
        "apart_ratio": _spread([engines.frames_per_second / base.frames_per_second for _, engines, base in apart]),
        "share": _spread(
            [scaled.workers.frames_per_second / control.frames_per_second for scaled, control, _ in apart]
        ),
        "testpmd_ratio": _spread(testpmd),
        "stolen": statistics.mean(scaled.workers.stolen for scaled in measured),
        "waited": statistics.mean(scaled.workers.waited for scaled in measured),
        "apart_stolen": statistics.mean(engines.stolen for _, engines, _ in apart) if apart else None,
        "apart_waited": statistics.mean(engines.waited for _, engines, _ in apart) if apart else None,
        "lost": sum(engines.offered - (engines.received or 0) for engines in returned) if returned else None,
        "wrong": sum(engines.wrong for engines in returned) if returned else None,
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)} if values else None


def table(rows: list[dict[str, Any]]) -> str:
    """Write the summary as a table of words."""
    heads = (
        "workers", "queues", "Mframes/s", "of all rounds", "ratio", "of all rounds", "apart", "share", "testpmd",
        "stolen", "waited", "lost", "wrong",
    )  # fmt: skip

    def median(figure: dict[str, float] | None) -> str:
        return f"{figure['median']:.2f}" if figure else "-"

    def shares(*values: float | None) -> str:
        return ", ".join(f"{value:.1%}" for value in values if value is not None)

    def cells(row: dict[str, Any]) -> tuple[str, ...]:
        rate, ratio = row["frames_per_second"], row["ratio"]
        return (
            str(row["workers"]), str(row["queues"]), f"{rate['median'] / 1e6:.1f}",
            f"{rate['min'] / 1e6:.1f}-{rate['max'] / 1e6:.1f}", median(ratio), f"{ratio['min']:.2f}-{ratio['max']:.2f}",
            median(row["apart_ratio"]), median(row["share"]), median(row["testpmd_ratio"]),
            shares(row["stolen"], row["apart_stolen"]), shares(row["waited"], row["apart_waited"]),
            *("-" if row[key] is None else str(row[key]) for key in ("lost", "wrong")),
        )  # fmt: skip

    return columns(heads, map(cells, rows), numbers_from=0)


def main() -> int:
    """Measure what the command line says."""
    parser = command_line(__doc__, whole=True)
    parser.add_argument("--ports", nargs=2, default=["null", "null"], metavar=("LEFT", "RIGHT"))
    parser.add_argument("--workers", nargs="+", type=int, metavar="N", help="default: 1, 2, 4, ... up to all CPUs")
    parser.add_argument("--cores", nargs="+", type=int, metavar="CPU", help="CPUs, in the order of their use")
    parser.add_argument("--direction", choices=["bidirectional", "forward", "reverse"], default="bidirectional")
    parser.add_argument("--octets", type=int, default=64, help="frame size with FCS")
    parser.add_argument("--seconds", type=float, default=1.5, help="of sending in a trial")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    cores: list[int] = given.cores or in_order_of_use()
    workers = sorted(set(given.workers or [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(cores)]))
    if workers[0] < 1 or workers[-1] > len(cores):
        parser.error(f"there are 1 to {len(cores)} workers on CPUs {cores}")
    campaign = campaign_of(given.ports, given.direction, given.octets)
    with_testpmd = set(given.ports) == {"null"} and version() is not None
    rounds: list[list[Scaled]] = []
    for number in range(given.rounds):
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
        rounds.append(
            [scale(campaign, cores[:n], seconds=given.seconds, with_testpmd=with_testpmd) for n in workers]
        )  # fmt: skip
    rows = summary_of(rounds)
    print(
        f"{given.ports[0]} - {given.ports[1]}, {given.direction}, {given.octets} octets; all directions together; "
        f"median of {given.rounds} rounds of {given.seconds} s"
    )
    print(table(rows))
    machine = {"cpus": os.cpu_count(), "usable": usable_cpus()}
    asked = {"ports": given.ports, "direction": given.direction, "octets": given.octets, "seconds": given.seconds}
    all_rounds = [[asdict(scaled) for scaled in of_round] for of_round in rounds]
    write_json(given.json, {"format": 2, "machine": machine, **asked, "summary": rows, "rounds": all_rounds})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

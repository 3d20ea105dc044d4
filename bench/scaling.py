#!/usr/bin/env python3
"""How many frames the Tester carries with 1, 2, ... workers, and how many times one worker's that is.

Each worker has a processor and a queue of each port. Far more is offered than can be sent, so every sender is always
busy and the figure is what was really offered. No limit is searched for, and no trial is valid: each is late by intent.

    .venv/bin/python bench/scaling.py                       # null ports: senders alone, as many workers as processors
    .venv/bin/python bench/scaling.py --ports ring ring     # every frame is received and verified as well
    .venv/bin/python bench/scaling.py --workers 1 2 4 8 16 --direction forward --ports pci:0000:01:00.0 pci:0000:01:00.1

The last one needs two ports of 100 Gbit/s that a cable joins, and shows 148.8 Mframes/s, random and verified.

Data goes to standard output: a table, or JSON with --json. Every number of workers is measured once a round, in turn,
so that what else happens on the machine happens to all of them. A round's figure is the median of its trials, the
ratio is taken within a round, and the table has the medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gatemark.campaign.plan import cells_of
from gatemark.config.load import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.machine import unthrottled_real_time
from gatemark.dut.steering import keeping_off, usable_processors
from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine
from gatemark.trial.request import open_request, trial_request

OFFERED_LOAD = 1_000_000_000
"""Frames/s in each direction: more than any port of 100 Gbit/s carries."""
PILOT_FRAMES = 2_000_000
"""Frames of the first trial in each direction and of each worker: what it reaches says how long the second one is."""
NEVER_NS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One number of workers in one round."""

    workers: int
    processors: list[int]
    queues: dict[str, int]
    trials: list[float]
    """Frames/s offered in each trial, of all directions together."""
    offered: int
    """Of all trials."""
    received: int | None
    """Frames that came back correct; None where the ports return nothing."""
    wrong: int
    """Frames that came back wrong or twice."""

    @property
    def frames_per_second(self) -> float:
        """Median of the trials."""
        return statistics.median(self.trials)


def campaign_of(ports: Sequence[str], direction: str, frame_octets: int) -> Campaign:
    """Ports and hosts vary pseudorandomly on both sides, as RFC 4814 has it."""
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-254"}
    return campaign_from_dict(
        {
            "gateway": {"mode": "router44"},
            "testbed": {"kind": "loopback"},
            "left": {"port": ports[0], "ipv4": {"address": "198.18.0.2", "hosts": hosts}},
            "right": {"port": ports[1], "ipv4": {"address": "198.19.0.2", "hosts": hosts}},
            "traffic": {"direction": direction, "frame_sizes": {"family": "ipv4", "octets": frame_octets}},
            "trial": {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "100ms", "rest": "0s"},
            "frame_loss": {"rates": ["1k"]},
        }
    )


def offer(engine: EngineClient, campaign: Campaign, number: int, frames: int) -> dict[str, Any]:
    """Offer so many frames in each direction, as fast as they can be sent."""
    (cell,) = cells_of(campaign)
    duration_ns = max(1, frames * 1_000_000_000 // OFFERED_LOAD)
    body = trial_request(campaign, cell, frames_per_second=OFFERED_LOAD, duration_ns=duration_ns, trial_number=number)
    return engine.trial({**body, "give_up_lateness_ns": NEVER_NS, "progress_ns": NEVER_NS})


def sending_rate(report: dict[str, Any]) -> float:
    """Frames/s of all directions together; each direction has a time of its own."""
    return float(sum(way["foreground"]["offered"] * 1e9 / way["sending_ns"] for way in report["directions"]))


def measure(campaign: Campaign, processors: list[int], *, trials: int, seconds: float) -> Measured:
    """Open the ports with these processors and make trials of about so long."""
    with unthrottled_real_time(), start_engine() as engine:
        opened = engine.open(open_request(campaign, processors))
        with keeping_off(processors):  # only now: the engine would inherit it
            pilot = offer(engine, campaign, 1, PILOT_FRAMES * len(processors))
            frames = int(sending_rate(pilot) * seconds / len(pilot["directions"]))
            reports = [offer(engine, campaign, number, frames) for number in range(2, 2 + trials)]
    counts = [way["foreground"] for report in reports for way in report["directions"]]
    received = sum(count["received"] for count in counts)
    nothing_returns = all(
        name.partition(":")[0] == "null" for name in (opened["left"]["port"], opened["right"]["port"])
    )
    return Measured(
        workers=len(opened["workers"]),
        processors=[worker["processor"] for worker in opened["workers"]],
        queues=opened["queues"],
        trials=[sending_rate(report) for report in reports],
        received=None if nothing_returns else received,
        offered=sum(count["offered"] for count in counts),
        wrong=sum(count["faulty"] + count["duplicate"] for count in counts),
    )


def in_order_of_use() -> list[int]:
    """One hardware thread of each core, then the others; the lowest processor, which has the other work, at the end."""

    def siblings(processor: int) -> str:
        path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        return path.read_text(encoding="ascii").strip() if path.exists() else str(processor)

    seen: dict[str, int] = {}
    ranked = []
    lowest, *others = usable_processors()
    for processor in others:
        core = siblings(processor)
        ranked.append((seen.setdefault(core, 0), processor))
        seen[core] += 1
    return [processor for _, processor in sorted(ranked)] + [lowest]


def summary_of(rounds: list[list[Measured]]) -> list[dict[str, Any]]:
    """Median over the rounds of each number of workers, and of its ratio to one worker in the same round."""
    rows = []
    for column, first in enumerate(rounds[0]):
        rates = [made[column].frames_per_second for made in rounds]
        ratios = [made[column].frames_per_second / made[0].frames_per_second for made in rounds]
        returned = [made[column] for made in rounds if made[column].received is not None]
        rows.append(
            {
                "workers": first.workers,
                "processors": first.processors,
                "queues": first.queues,
                "frames_per_second": statistics.median(rates),
                "frames_per_second_min": min(rates),
                "frames_per_second_max": max(rates),
                "ratio": statistics.median(ratios),
                "ratio_to": rounds[0][0].workers,
                "lost": sum(one.offered - (one.received or 0) for one in returned) if returned else None,
                "wrong": sum(one.wrong for one in returned) if returned else None,
            }
        )
    return rows


def print_table(rows: list[dict[str, Any]], title: str) -> None:
    """Print what was measured as a table."""
    print(title)
    print(
        f"{'workers':>8} {'queues':>7} {'Mframes/s':>10} {'of all rounds':>15} {'ratio':>6} {'lost':>10} {'wrong':>6}"
    )
    for row in rows:
        spread = f"{row['frames_per_second_min'] / 1e6:.1f}-{row['frames_per_second_max'] / 1e6:.1f}"
        lost, wrong = ("-" if row[key] is None else str(row[key]) for key in ("lost", "wrong"))
        print(
            f"{row['workers']:>8} {row['queues']['left']:>7} {row['frames_per_second'] / 1e6:>10.1f} {spread:>15}"
            f" {row['ratio']:>6.2f} {lost:>10} {wrong:>6}"
        )


def main() -> int:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ports", nargs=2, default=["null", "null"], metavar=("LEFT", "RIGHT"))
    parser.add_argument(
        "--workers", nargs="+", type=int, metavar="N", help="default: 1, 2, 4, ... up to all processors"
    )
    parser.add_argument("--cores", nargs="+", type=int, metavar="CPU", help="processors, in the order of their use")
    parser.add_argument("--direction", choices=["bidirectional", "forward", "reverse"], default="bidirectional")
    parser.add_argument("--octets", type=int, default=64, help="frame size with FCS")
    parser.add_argument("--seconds", type=float, default=0.2, help="of sending in a trial")
    parser.add_argument("--trials", type=int, default=8, help="for each number of workers in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    given = parser.parse_args()
    cores: list[int] = given.cores or in_order_of_use()
    workers = sorted(set(given.workers or [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(cores)]))
    if workers[0] < 1 or workers[-1] > len(cores):
        parser.error(f"there are 1 to {len(cores)} workers on processors {cores}")
    campaign = campaign_of(given.ports, given.direction, given.octets)
    rounds: list[list[Measured]] = []
    for number in range(given.rounds):
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
        made = [measure(campaign, cores[:n], trials=given.trials, seconds=given.seconds) for n in workers]
        rounds.append(made)
    rows = summary_of(rounds)
    if given.json:
        machine = {"processors": os.cpu_count(), "usable": usable_processors()}
        asked = {"ports": given.ports, "direction": given.direction, "octets": given.octets}
        all_rounds = [[asdict(one) for one in made] for made in rounds]
        print(json.dumps({"machine": machine, **asked, "summary": rows, "rounds": all_rounds}, indent=2))
    else:
        title = (
            f"{given.ports[0]} - {given.ports[1]}, {given.direction}, {given.octets} octets; all directions together"
        )
        print_table(rows, title)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

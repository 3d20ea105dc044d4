"""Start of the engine and the cost of a trial beyond its phases: `.venv/bin/python -m bench.start_and_overhead`.

Start: from the start of the engine's process until the first frame left, on virtual ports and without waits. Overhead:
wall time of a trial (request, engine, test bed, judgement, journal on disk) minus its sending time and named waits, in
a series of trials through the same code as a campaign's. Medians, with the least and the most; `--json FILE` writes
them. The kernel's router in namespaces needs root and is left out without.

`--long SECONDS` measures long trials on rings instead, in both directions, every frame received, without waits: wall
time beyond sending of the engine alone. 480 million frames in each direction, 60 s at 8 Mframes/s, have two bitmaps of
60 MB: neither are they cleared before nor looked through afterwards. The figure is told for each trial, as the first
one also touches its memory for the first time.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.output import columns, command_line, write_json
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.campaign.trials import Repetition, Trials
from gatemark.config.model import Campaign
from gatemark.dut.machine import unthrottled_real_time
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import usable_cpus
from gatemark.engine.process import start_engine
from gatemark.search.goal import Measure
from gatemark.technology import SideName
from gatemark.tester import Equipment, open_tester, prepare
from gatemark.trial.request import open_request, trial_request

MILLISECOND_NS = 1_000_000
START_TRIAL_NS, TRIAL_NS = 20 * MILLISECOND_NS, 100 * MILLISECOND_NS
START_BAR_MS, OVERHEAD_BAR_MS = 300.0, 20.0
RATE = 10_000
PORTS = ("ring", "null")
NO_WAITS = {"settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}
SHORT_WAITS = {"settle": "0s", "learn": "10ms", "drain": "20ms", "rest": "20ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Median of a series, milliseconds."""

    what: str
    ports: str
    median_ms: float
    least_ms: float
    most_ms: float
    measured: int
    bar_ms: float


def figure(what: str, ports: str, values: Sequence[float], bar_ms: float) -> Figure:
    """Summarise a series."""
    median, least, most = (round(value, 1) for value in (statistics.median(values), min(values), max(values)))
    return Figure(
        what=what, ports=ports, median_ms=median, least_ms=least, most_ms=most, measured=len(values), bar_ms=bar_ms
    )


def campaign_on(ports: str, waits: dict[str, str]) -> Campaign:
    """Return a campaign on a pair of ports, or through the kernel's router in namespaces."""
    tables = {"trial": {"duration": "100ms", **waits}, "frame_loss": {"rates": [RATE]}}
    if ports == "veth, kernel router":
        return complete_campaign(
            campaign_from_dict({"testbed": {"kind": "netns", "recipe": "linux-router4"}, **tables})
        )
    sides = {name: {"port": ports} for name in ("left", "right")}
    return complete_campaign(
        campaign_from_dict({"gateway": {"technology": "router44"}, "testbed": {"kind": "loopback"}, **sides, **tables})
    )


def start_ms(ports: str) -> float:
    """Start an engine, open its ports and make one trial; return the time until its first frame left."""
    complete = campaign_on(ports, NO_WAITS)
    named: dict[SideName, str] = {"left": ports, "right": ports}
    body = trial_request(
        complete, cells_of(complete)[0], frames_per_second=RATE, duration_ns=START_TRIAL_NS, trial_number=1
    )
    begun = time.monotonic_ns()
    with start_engine() as engine:
        engine.open(open_request(complete, [], named))
        phases = engine.trial(body)["phases"]
        ended = time.monotonic_ns()
    sending_ns: int = next(phase["duration_ns"] for phase in phases if phase["phase"] == "send")
    return (ended - begun - sending_ns) / MILLISECOND_NS


def overheads_ms(ports: str, waits: dict[str, str], *, trials: int) -> list[float]:
    """Make trials and return what each took beyond its sending time and its waits."""
    equipment = Equipment()
    bed, complete = prepare(campaign_on(ports, waits), equipment)
    measured = []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_tester(complete, bed, equipment) as tester,
        Journal(Path(folder) / "journal.jsonl") as journal,
    ):
        maker = TrialMaker(
            campaign=tester.campaign, engine=tester.engine, can=tester.testbed.can, on_event=lambda _: None
        )  # fmt: skip
        run = plan_of(tester.campaign).runs[0]
        step = Measure(frames_per_second=RATE, duration_ns=TRIAL_NS, purpose="load")
        named_ns = TRIAL_NS + tester.campaign.trial.waits_ns
        steps = Repetition(Trials(maker, journal), run, 0)
        for _ in range(trials):
            before, begun = len(journal.path.read_bytes().splitlines()), time.monotonic_ns()
            steps.measure(step)
            took_ns = time.monotonic_ns() - begun
            attempts = len(journal.path.read_bytes().splitlines()) - before  # an invalid trial is repeated
            measured.append((took_ns / attempts - named_ns) / MILLISECOND_NS)
    return measured


def long_overheads_ms(cores: Sequence[int], frames_per_second: int, seconds: int, *, trials: int) -> list[float]:
    """Make long trials on rings, a queue for each CPU; return what each took beyond sending.

    Raises SystemExit if a frame was lost.
    """
    tables = {"traffic": {"direction": "bidirectional"}, "trial": {"duration": f"{seconds}s", **NO_WAITS}}
    sides = {name: {"port": "ring", "queues": len(cores)} for name in ("left", "right")}
    bed = {"gateway": {"technology": "router44"}, "testbed": {"kind": "loopback"}}
    complete = complete_campaign(campaign_from_dict({**bed, **sides, **tables, "frame_loss": {"rates": [RATE]}}))
    measured = []
    with unthrottled_real_time(), start_engine() as engine:
        engine.open(open_request(complete, cores, {"left": "ring", "right": "ring"}))
        for number in range(1, trials + 1):
            duration_ns = seconds * 1000 * MILLISECOND_NS
            body = trial_request(
                complete, cells_of(complete)[0], frames_per_second=frames_per_second, duration_ns=duration_ns,
                trial_number=number,
            )  # fmt: skip
            begun = time.monotonic_ns()
            ways = engine.trial({**body, "give_up_lateness_ns": duration_ns})["directions"]
            took_ns = time.monotonic_ns() - begun
            if any(way["foreground"]["received"] != frames_per_second * seconds for way in ways):
                raise SystemExit("error: a frame was lost, so this is the cost of another trial")
            measured.append((took_ns - max(way["sending_ns"] for way in ways)) / MILLISECOND_NS)
    return measured


def long_figures(seconds: int) -> list[Figure]:
    """Measure 4 Mframes/s each way on one CPU and, where there are two, 8 Mframes/s on two."""
    figures = []
    cpus = usable_cpus()
    for count in (1, 2)[: len(cpus)]:
        rate = 4 * count
        for number, took_ms in enumerate(long_overheads_ms(cpus[-count:], rate * 1_000_000, seconds, trials=3), 1):
            frames = f"{rate * seconds} M frames each way, {count} worker{'s'[: count - 1]}, trial {number}"
            figures.append(figure(frames, "ring", [took_ms], OVERHEAD_BAR_MS))
    return figures


def table(figures: Sequence[Figure]) -> str:
    """Write the figures as a table of words."""
    heads = ("figure", "ports", "median", "least to most", "of", "bar")
    rows = [
        (
            figure.what,
            figure.ports,
            f"{figure.median_ms:.1f} ms",
            f"{figure.least_ms:.1f} to {figure.most_ms:.1f} ms",
            str(figure.measured),
            f"{figure.bar_ms:.0f} ms" + ("" if figure.median_ms <= figure.bar_ms else ", missed"),
        )
        for figure in figures
    ]
    return columns(heads, rows)


def short_figures(starts: int, trials: int) -> list[Figure]:
    """Measure starts, and short trials on every kind of bed."""
    figures = [
        figure("start until the first frame", ports, [start_ms(ports) for _ in range(starts)], START_BAR_MS)
        for ports in PORTS
    ]
    beds = (*PORTS, "veth, kernel router") if os.geteuid() == 0 else PORTS
    for ports in beds:
        for name, waits in (("no waits", NO_WAITS), ("waits of 50 ms", SHORT_WAITS)):
            figures.append(
                figure(
                    f"overhead of a trial, {name}",
                    ports,
                    overheads_ms(ports, waits, trials=trials),
                    OVERHEAD_BAR_MS,
                )
            )
    return figures


def main() -> None:
    """Measure, print the table; write JSON if asked for."""
    parser = command_line(__doc__)
    parser.add_argument("--starts", type=int, default=9, help="starts of the engine on each kind of port")
    parser.add_argument("--trials", type=int, default=40, help="trials of each series")
    parser.add_argument("--long", type=int, metavar="SECONDS", help="six trials on rings of so long instead")
    wanted = parser.parse_args()
    figures = short_figures(wanted.starts, wanted.trials) if wanted.long is None else long_figures(wanted.long)
    print(table(figures))
    write_json(wanted.json, [asdict(figure) for figure in figures])


if __name__ == "__main__":
    main()

"""Frames a second of ports on kernel interfaces: gatemark-engine and dpdk-testpmd in turn on one pair of veth ends.

::

    .venv/bin/python -m bench.kernel_ports [--rounds 3] [--only send] [--kind af_xdp] [--json build/kernel_ports.json]

What each program does, on one CPU, as fast as it can:

- send     gatemark's sender; testpmd txonly. The other end is a bare interface in a namespace of its own, set up as the
           gateway's end of a netns test bed. What counts is what the kernel says arrived there: testpmd's af_packet
           counts a frame that a full veth dropped as sent, and then sends it again.
- receive  gatemark's receiver (it verifies every frame and records its delay); testpmd rxonly. Another engine sends
           through af_packet on the other CPU, which also carries the frames up to the socket. What counts is
           what the program was handed.
- duplex   gatemark sends and receives in both directions; testpmd io passes 256 frames round. Both ends of one pair.
           What counts are the frames that arrived at both ends together.

Both programs have the same rings (4096 frames), bursts (32) and no huge pages. Needs root, two CPUs, and a
machine that does nothing else. Rounds alternate between the programs; a figure is the median of its rounds.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.output import command_line, write_json
from gatemark.campaign.plan import cells_of
from gatemark.dut.commands import require_program, run_command
from gatemark.dut.machine import unthrottled_real_time
from gatemark.dut.steering import cpu_mask, plan_cores, usable_cpus
from gatemark.dut.wire import End, VethPairs
from gatemark.engine.client import Engine
from gatemark.engine.process import start_engine
from gatemark.errors import GatemarkError
from gatemark.selftest.modes import Case, Direction, campaign_of
from gatemark.trial.request import open_request, trial_request

Mode = Literal["send", "receive", "duplex"]
MODES: tuple[Mode, ...] = ("send", "receive", "duplex")
KINDS = ("af_packet", "af_xdp")
FRAME_OCTETS = (64, 1518)
FCS_OCTETS = 4
WHERE = "bench/kernel_ports"

TRIAL_NS = 800_000_000
OVERLOAD = 5_000_000
"""Frames/s that no such port takes: the sender is always behind, and sends bursts of 32 without pause."""
RING_FRAMES = 4096
TESTPMD_DEVICES = {
    "af_packet": f"qpairs=1,blocksz=65536,framesz=2048,framecnt={RING_FRAMES},qdisc_bypass=1",
    "af_xdp": "start_queue=0,queue_count=1,busy_budget=0",
}
TESTPMD_MODES = {"send": "txonly", "receive": "rxonly", "duplex": "io"}
START_S_MAX = 10.0

LEFT, RIGHT = End(owner="gm", side="left"), End(owner="gm", side="right")
SINK = End(owner="gw", side="left")
OTHER_END: dict[Mode, End] = {"send": SINK, "receive": RIGHT, "duplex": RIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured."""

    mode: Mode
    kind: str
    frame_octets: int


class Link:
    """One pair of veth ends, and what the kernel counts there."""

    def __init__(self, pairs: VethPairs, mode: Mode) -> None:
        self._pairs = pairs
        self.mode = mode
        self.namespace = pairs.namespace(LEFT)
        self.left = pairs.interface(LEFT)
        self.right = pairs.interface(OTHER_END[mode])
        self._right_namespace = pairs.namespace(OTHER_END[mode])

    def arrived(self) -> int:
        """Frames that the ends under test were delivered, since they were made."""
        ends = [(self._right_namespace, self.right)]
        if self.mode == "duplex":
            ends.append((self.namespace, self.left))
        return sum(_counter(namespace, interface, "rx_packets") for namespace, interface in ends)

    def lost(self) -> int:
        """Frames that the left end could not hand to the right one."""
        return _counter(self.namespace, self.left, "tx_dropped")


def _counter(namespace: str, interface: str, name: str) -> int:
    file = f"/sys/class/net/{interface}/statistics/{name}"
    return int(run_command(["ip", "netns", "exec", namespace, "cat", file], where=WHERE))


@contextlib.contextmanager
def open_link(mode: Mode) -> Iterator[Link]:
    """Make the pair that a mode needs."""
    cores = plan_cores(usable_cpus())
    with VethPairs([(LEFT, OTHER_END[mode])], mtu=1500, cores=cores, delivers_apart=mode == "duplex") as pairs:
        link = Link(pairs, mode)
        if mode == "send":
            _make_gateway_end(pairs.namespace(SINK), link.right, cores.gateway)
        yield link


def _make_gateway_end(namespace: str, interface: str, cpus: tuple[int, ...]) -> None:
    """Let frames arrive as at the gateway of a netns test bed: on its CPUs, through their backlog."""
    steer = f"echo {cpu_mask(cpus)} > /sys/class/net/{interface}/queues/rx-0/rps_cpus"
    run_command(["ip", "netns", "exec", namespace, "sh", "-euc", steer], where=WHERE)
    run_command(["ip", "netns", "exec", namespace, "ethtool", "-K", interface, "gro", "off"], where=WHERE)


def engine_ports(subject: Subject, link: Link) -> dict[str, str]:
    """Ports of the engine under test."""
    match subject.mode:
        case "send":
            return {"left": f"{subject.kind}:{link.left}", "right": "null"}
        case "receive":
            return {"left": f"af_packet:{link.left}", "right": f"{subject.kind}:{link.right}"}
        case "duplex":
            return {"left": f"{subject.kind}:{link.left}", "right": f"{subject.kind}:{link.right}"}


def open_engine(engine: Engine, subject: Subject, ports: Mapping[str, str], cores: list[int]) -> dict[str, Any]:
    """Open the ports; return the request for a trial that overloads them."""
    direction: Direction = "bidirectional" if subject.mode == "duplex" else "forward"
    case = Case(family="ipv4", frame_octets=subject.frame_octets, direction=direction, mode="fixed")
    campaign = campaign_of(case, ports=dict(ports), trial_ns=TRIAL_NS)
    engine.hello()
    engine.open(open_request(campaign, cores))
    cell = cells_of(campaign)[0]
    body = trial_request(campaign, cell, frames_per_second=OVERLOAD, duration_ns=TRIAL_NS, trial_number=1)
    # No report is wanted but a rate: let the sender fall behind for as long as the trial lasts.
    return {**body, "give_up_lateness_ns": TRIAL_NS}


def run_engine(subject: Subject, link: Link) -> float:
    """Frames/s of gatemark-engine."""
    gateway, tester = usable_cpus()[0], usable_cpus()[-1]
    cores = [gateway, tester] if subject.mode == "receive" else [tester]
    with start_engine(netns=link.namespace) as engine:
        body = open_engine(engine, subject, engine_ports(subject, link), cores)
        before = link.arrived()
        answer = engine.trial(body)
        arrived = link.arrived() - before
    if subject.mode == "receive":
        arrived = answer["directions"][0]["foreground"]["received"]
    sending_ns: int = max(way["sending_ns"] for way in answer["directions"])
    return arrived / sending_ns * 1e9


def run_testpmd(subject: Subject, link: Link) -> float:
    """Frames/s of dpdk-testpmd."""
    with open_testpmd(subject, link) as testpmd:
        if subject.mode == "receive":
            return _received_by(testpmd, subject, link)
        begin, before = time.monotonic(), link.arrived()
        time.sleep(TRIAL_NS / 1e9)
        arrived, end = link.arrived(), time.monotonic()
    return (arrived - before) / (end - begin)


def _received_by(testpmd: subprocess.Popen[str], subject: Subject, link: Link) -> float:
    """Frames/s that testpmd was handed while the engine sent."""
    with start_engine(netns=link.namespace) as engine:
        ports = {"left": f"af_packet:{link.left}", "right": "null"}
        body = open_engine(engine, subject, ports, [usable_cpus()[0]])
        answer = engine.trial(body)
    output = _end(testpmd)
    totals = re.findall(r"RX-total: (\d+)", output)
    if not totals:
        raise GatemarkError(what=f"testpmd told nothing:\n{output}", where=WHERE, fix="")
    sending_ns: int = answer["directions"][0]["sending_ns"]
    return int(totals[-1]) / sending_ns * 1e9


@contextlib.contextmanager
def open_testpmd(subject: Subject, link: Link) -> Iterator[subprocess.Popen[str]]:
    """Start testpmd and wait until it forwards."""
    interfaces = {"send": [link.left], "receive": [link.right], "duplex": [link.left, link.right]}[subject.mode]
    arguments = TESTPMD_DEVICES[subject.kind]
    devices = [f"--vdev=net_{subject.kind}{i},iface={name},{arguments}" for i, name in enumerate(interfaces)]
    cores = f"{usable_cpus()[0]},{usable_cpus()[-1]}"
    command = ["ip", "netns", "exec", link.namespace, "stdbuf", "-oL", "dpdk-testpmd", "--no-pci", "--no-huge"]
    command += [
        "-m",
        "1024",
        "--no-telemetry",
        "--no-shconf",
        "-l",
        cores,
        *devices,
        "--",
        "--nb-cores=1",
        "--burst=32",
    ]
    command += ["-i", f"--rxd={RING_FRAMES}", f"--txd={RING_FRAMES}", "--no-flush-rx", "--total-num-mbufs=32768"]
    command += [f"--forward-mode={TESTPMD_MODES[subject.mode]}", f"--txpkts={subject.frame_octets - FCS_OCTETS}"]
    testpmd = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        _start(testpmd, "start tx_first 8" if subject.mode == "duplex" else "start")
        yield testpmd
    finally:
        if testpmd.poll() is None:
            _end(testpmd)


def _start(testpmd: subprocess.Popen[str], command: str) -> None:
    assert testpmd.stdin is not None
    assert testpmd.stdout is not None
    testpmd.stdin.write(command + "\n")
    testpmd.stdin.flush()
    lines = []
    for line in testpmd.stdout:
        lines.append(line)
        if "packet forwarding - ports=" in line:
            return
    raise GatemarkError(what=f"testpmd ended:\n{''.join(lines)}", where=WHERE, fix="install dpdk and its drivers")


def _end(testpmd: subprocess.Popen[str]) -> str:
    """Let testpmd end as a user would; return what it said."""
    try:
        return testpmd.communicate("stop\nquit\n", timeout=START_S_MAX)[0]
    except subprocess.TimeoutExpired:  # its af_packet may wait in poll() for a full veth
        testpmd.kill()
        return testpmd.communicate()[0]


PROGRAMS = {"gatemark": run_engine, "testpmd": run_testpmd}


def measure(subject: Subject, rounds: int) -> dict[str, Any]:
    """Measure both programs in turn."""
    rates: dict[str, list[int]] = {program: [] for program in PROGRAMS}
    for _ in range(rounds):
        for program, run in PROGRAMS.items():
            with open_link(subject.mode) as link:
                rates[program].append(round(run(subject, link)))
    medians = {program: statistics.median(values) for program, values in rates.items()}
    return {
        "mode": subject.mode,
        "kind": subject.kind,
        "frame_octets": subject.frame_octets,
        "frames_per_second": rates,
        "median": medians,
        "ratio": round(medians["gatemark"] / medians["testpmd"], 3) if medians["testpmd"] else None,
    }


def row(measured: Mapping[str, Any]) -> str:
    """One line of the table."""
    cells = [f"{measured['mode']:8}", f"{measured['kind']:10}", f"{measured['frame_octets']:6}"]
    for program in PROGRAMS:
        rates = measured["frames_per_second"][program]
        cells.append(f"{measured['median'][program] / 1e6:9.3f} ({min(rates) / 1e6:.3f}-{max(rates) / 1e6:.3f})")
    return " ".join([*cells, f"{measured['ratio'] if measured['ratio'] is not None else '-':>8}"])


def main() -> int:
    """Measure what was asked for, print a table, write JSON."""
    options = command_line(__doc__, whole=True)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", choices=MODES, action="append")
    options.add_argument("--kind", choices=KINDS, action="append")
    options.add_argument("--octets", type=int, choices=FRAME_OCTETS, action="append")
    chosen = options.parse_args()
    require_program("dpdk-testpmd", "dpdk")
    print("mode     port       octets  gatemark, M frames/s    testpmd, M frames/s       ratio")
    measured = []
    with unthrottled_real_time():
        for mode in chosen.only or MODES:
            for kind in chosen.kind or KINDS:
                for octets in chosen.octets or FRAME_OCTETS:
                    measured.append(measure(Subject(mode=mode, kind=kind, frame_octets=octets), chosen.rounds))
                    print(row(measured[-1]), flush=True)
    write_json(chosen.json, {"kernel_ports": 1, "measured": measured})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Address modes on a real gateway, and several queues and workers: every frame comes back, whatever the layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.machine import cpu_each, gatemark, missing, nightly_but

from gatemark.dut.steering import usable_cpus

MISSING_FOR_NETNS = missing("ip", "ethtool", "setpriv", root=True)
SAME = pytest.mark.nightly("the same of every number of both")
TWO_WORKERS = cpu_each(2)
TRIAL = """
[trial]
duration = "400ms"
settle = "0s"
learn = "200ms"
drain = "300ms"
rest = "0s"
[validity]
retries = 20
lateness_max = "5s"
[frame_loss]
rates = ["5k"]
"""
OVERLOADED = """
repetitions = 1
[testbed]
kind = "netns"
recipe = "linux-router4"
[traffic]
direction = "forward"
frame_sizes = {family = "ipv4", octets = [64]}
"""
NEXT_HOP = """
[testbed]
kind = "netns"
recipe = "linux-router4"
[left]
address_mode = "nexthop"
ipv4 = {address = "198.18.65.2", router = "198.18.0.10", hosts = {offset = 2, mode = "pseudorandom", range = "20-254"}}
ipv6 = {address = "2001:2::2", router = "2001:2::10"}
[right]
address_mode = "nexthop"
gateway_mac = "02:00:00:00:02:02"
ipv4 = {address = "198.19.65.2", router = "198.19.0.10", hosts = {offset = 2, mode = "decreasing", range = "20-254"}}
ipv6 = {address = "2001:2:0:8000::2", router = "2001:2:0:8000::10"}
[traffic]
destination_networks = 256
frame_sizes = {family = "ipv4", octets = [64]}
"""
ON_LINK = """
[testbed]
kind = "netns"
recipe = "linux-router4"
[left]
ipv4 = {address = "198.18.0.2", hosts = {offset = 2, mode = "pseudorandom", range = "2-254"}}
[right]
ipv4 = {address = "198.19.0.2", hosts = {offset = 2, mode = "increasing", range = "2-254"}}
[traffic]
mix = ["1/2"]
frame_sizes = {family = "ipv4", octets = [64]}
"""
QUEUES = """
[gateway]
technology = "router44"
[testbed]
kind = "loopback"
cores = CORES
[left]
queues = 3
[right]
queues = 3
[traffic]
mix = ["9/10"]
frame_sizes = {family = "ipv4", octets = [64]}
"""


def counts_of(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    """Make one trial at 5000 frames/s; return the counts of every direction and class in use."""
    file = tmp_path / "layout.toml"
    file.write_text(text + TRIAL)
    ended = gatemark("trial", file, "--rate", "5k", "--json")
    assert ended.document, ended.words
    classes = [
        direction[kind] for direction in ended.document["report"]["directions"] for kind in ("foreground", "background")
    ]
    return [counts for counts in classes if counts["intended"]]


def assert_whole(counts: list[dict[str, Any]], classes: int) -> None:
    assert len(counts) == classes
    for count in counts:
        assert count["received"] == count["offered"] == count["intended"], count
        assert (count["faulty"], count["duplicate"]) == (0, 0), count


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
def test_hosts_in_256_networks_behind_a_router(tmp_path: Path) -> None:
    """One of the networks is the gateway's link to that router: its hosts are neighbours, and are answered for."""
    assert_whole(counts_of(tmp_path, NEXT_HOP), classes=2)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
def test_other_networks_on_each_side(tmp_path: Path) -> None:
    traffic = "[traffic.reverse]\ndestination_networks = 7\n"
    assert_whole(counts_of(tmp_path, NEXT_HOP.replace("= 256", "= 100") + traffic), classes=2)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
def test_many_neighbours_and_background(tmp_path: Path) -> None:
    assert_whole(counts_of(tmp_path, ON_LINK), classes=4)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
@pytest.mark.parametrize(
    ("queues", "workers"),
    [
        pytest.param(2, 1, marks=SAME),
        pytest.param(2, 2, marks=TWO_WORKERS),
        (3, 1),
        pytest.param(3, 2, marks=[SAME, TWO_WORKERS]),
    ],
)
def test_neighbours_are_answered_on_any_queue(queues: int, workers: int, tmp_path: Path) -> None:
    """The gateway asks for every host, and its questions arrive on any queue of a port, polled by any worker."""
    cores = usable_cpus()[-workers:]
    text = ON_LINK.replace('kind = "netns"', f'kind = "netns"\ncores = {cores}\ngateway_cores = {usable_cpus()}')
    for side in ("left", "right"):
        text = text.replace(f"[{side}]", f"[{side}]\nqueues = {queues}")
    assert_whole(counts_of(tmp_path, text), classes=4)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
def test_xdp_sockets(tmp_path: Path) -> None:
    """A veth takes an XDP program only if its other end's MTU fits into a page."""
    text = ON_LINK
    for side in ("left", "right"):
        text = text.replace(f"[{side}]", f'[{side}]\nport = "af_xdp"\nmtu = 1500')
    assert_whole(counts_of(tmp_path, text), classes=4)


@pytest.mark.skipif(bool(MISSING_FOR_NETNS), reason=f"needs {', '.join(MISSING_FOR_NETNS)}")
@pytest.mark.parametrize("kind", nightly_but({1}, "the same count", ["af_packet", "af_xdp"]))
def test_every_frame_that_an_overloaded_veth_loses_is_counted_once(tmp_path: Path, kind: str) -> None:
    """Offered as fast as the Tester can, which is less than asked for: such trials are invalid, not their counts."""
    file, output = tmp_path / "overload.toml", tmp_path / "result"
    sides = "".join(f'[{side}]\nport = "{kind}"\nmtu = 1500\n' for side in ("left", "right"))
    overload = TRIAL.replace('"5k"', '"2M", "1M"').replace("retries = 20", "retries = 0\nsuspect_retries = 0")
    file.write_text(OVERLOADED + sides + overload)
    gatemark("run", file, "--output", output, "--json")
    trials = read_journal(output / "trials.jsonl")
    assert len(trials) == 2
    for trial in trials:
        (direction,) = trial.report.directions
        ports = trial.report.ports.values()
        dropped = sum(port.peer_queue_drops + sum(port.own_drops.values()) for port in ports)
        assert direction.foreground.offered > 10_000
        assert direction.foreground.lost == dropped + sum(trial.testbed_drops.values()), trial


@TWO_WORKERS
def test_several_queues_and_workers(tmp_path: Path) -> None:
    """Three queues a port, spread over all CPUs: each frame is sent once and recognised on any queue."""
    cores = usable_cpus()
    assert_whole(counts_of(tmp_path, QUEUES.replace("CORES", str(cores))), classes=4)

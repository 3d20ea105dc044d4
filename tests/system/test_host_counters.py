"""A gateway in a namespace whose kernel counts what it loses: the trial says so. Needs root."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import netns_campaign, open_bed
from tests.system.machine import missing, neighbours_free, nothing_compared
from tests.system.stateful_beds import stateful_campaign

from gatemark.cli.trial import in_words
from gatemark.doctor import check_neighbour_tables
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.session import measure
from gatemark.stored import sections_of
from gatemark.trial.host_counters import grown_by_about
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}")
ONE_WAY = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}}
SIZE, BUCKETS = 200_000, 1024
"""A table that is stated far larger than its chains may grow: Linux refuses a connection in one of 50 to 80 entries."""
CONNECTIONS = 40_000
"""Each has two entries, so the chains would have 78 of them."""
CROWD = "gatemark-test-crowd"
"""A namespace that is none of gatemark's."""
ROOM, HOSTS = 60, 400
"""Neighbours that the crowd leaves room for, and hosts that the gateway is to know."""


def explained_by(record: TrialRecord) -> list[str]:
    """Return the names of the counters that grew by about as much as the trial lost frames."""
    assert record.host is not None
    return [grown.name for grown in grown_by_about(record.host.counters, record.report.lost_count)]


def test_a_route_that_is_gone_is_counted_by_the_kernel() -> None:
    with open_bed(netns_campaign("linux-router4", traffic=ONE_WAY)) as bed:
        route = bed.in_gateway("ip", "route", "show", "root", "198.19.0.0/16").split(" proto")[0].split()
        bed.in_gateway("ip", "route", "del", *route)
        record = bed.trial()
    assert explained_by(record) == ["ipext.InNoRoutes"], record.host
    assert "counted meanwhile: IPv4: arrived without a route +" in in_words(record)


def test_frames_that_a_shaper_drops_are_counted() -> None:
    shaper = "tc qdisc add dev {right} root tbf rate 1mbit burst 2kb limit 4kb"
    with open_bed(netns_campaign("linux-router4", traffic=ONE_WAY)) as bed:
        bed.in_gateway(*shaper.format(right=bed.interface("right")).split())
        record = bed.trial()
    assert explained_by(record) == ["qdisc.gateway-right.dropped"], record.host


@pytest.mark.alone  # Linux has one size of the table for all namespaces
def test_connections_that_long_chains_refuse_are_counted() -> None:
    campaign = stateful_campaign(
        "nft-nat44",
        gateway={"table": {"size": SIZE, "hash_size": BUCKETS}},
        connections={"count": CONNECTIONS, "rate": "40k", "timeout": "100ms", "gap": "50ms", "retries": 0},
    )
    with open_bed(campaign) as bed:
        record = bed.trial()
    assert record.connections is not None
    (attempt,) = record.connections.phase_one
    assert attempt.host is not None and record.host == attempt.host
    assert attempt.report.connections is not None and attempt.report.connections.established < CONNECTIONS
    (way,) = attempt.report.directions
    assert 0 < attempt.host.counters["conntrack.chaintoolong"] <= way.foreground.lost


@pytest.mark.alone  # as above
@pytest.mark.nightly("half a minute; its counter and its sentence have tests of their own")
def test_a_capacity_far_below_the_stated_size_is_said_with_what_refused(tmp_path: Path) -> None:
    campaign = stateful_campaign(
        "nft-nat44",
        gateway={"table": {"size": SIZE, "hash_size": 512}},
        connections={"timeout": "100ms", "gap": "50ms", "retries": 0},
        frame_loss=None,
        repetitions=1,
        connection_tracking_table_capacity={
            "start": 5000, "maximum": 64_000, "maximum_rate": "40k", "rate_resolution": "20k", "resolution": 4000,
        },
    )  # fmt: skip
    document = measure(campaign, output=tmp_path / "result", report=False).document
    (run,) = document.runs
    assert isinstance(run, CapacityResult)
    if run.limited_by == "tester":
        nothing_compared("a repetition without a valid trial")
        return
    assert run.capacity is not None and run.capacity.median < SIZE / 2
    assert all(search.counted and "conntrack.chaintoolong" in search.counted for search in run.repetitions), run
    (table,) = sections_of(document)[0].tables
    (note,) = table.notes
    assert note.startswith("The capacity is far below the 200,000 connections") and "chaintoolong" in note


@contextlib.contextmanager
def crowd() -> Iterator[None]:
    """Fill the neighbour table of the kernel from another namespace, but for a little room.

    Its entries stay reachable, so the kernel does not collect them.
    """
    entries = range(neighbours_free() - ROOM)
    reachable = "net.ipv4.neigh.v0.base_reachable_time_ms=3600000"
    lines = (
        f"neigh add 10.{n >> 14}.{n >> 7 & 127}.{n & 127} lladdr 02:00:00:00:00:01 dev v0 nud reachable"
        for n in entries
    )
    subprocess.run(["ip", "netns", "add", CROWD], check=True)
    try:
        inside = ["ip", "-n", CROWD]
        subprocess.run([*inside, "link", "add", "v0", "up", "type", "veth", "peer", "name", "v1"], check=True)
        subprocess.run([*inside, "link", "set", "v1", "up"], check=True)
        subprocess.run(["ip", "netns", "exec", CROWD, "sysctl", "-q", "-w", reachable], check=True)
        subprocess.run([*inside, "-batch", "-"], input="\n".join(lines), text=True, check=True)
        yield
    finally:
        subprocess.run(["ip", "netns", "del", CROWD], check=True)


@pytest.mark.alone  # Linux has one neighbour table for all namespaces
def test_neighbours_of_others_that_fill_the_table_are_no_fault_of_the_gateway() -> None:
    hosts = {"offset": 2, "mode": "pseudorandom", "range": f"2-{HOSTS + 1}"}
    right = {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": hosts}}
    campaign = netns_campaign("linux-router4", traffic=ONE_WAY, right=right)
    with open_bed(campaign) as bed, crowd():
        told = [finding.observed for finding in check_neighbour_tables(campaign)]
        record = bed.trial()
    assert record.report.directions[0].foreground.lost > 0
    assert not record.validity.valid and record.verdict is None
    (fault,) = record.testbed_faults
    assert "IPv4 neighbour table" in fault and "gc_thresh3" in fault
    (said,) = told
    assert said.startswith(f"{HOSTS + 1} on-link IPv4 hosts and ") and "all network namespaces" in said

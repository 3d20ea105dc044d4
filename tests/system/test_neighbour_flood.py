"""A gateway that asks for thousands of hosts at once gets its answers, or the trial is invalid and says so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.system.beds import ATTEMPTS, netns_campaign, open_bed
from tests.system.machine import missing, neighbours_free, nothing_compared

MISSING = missing("ip", "ethtool", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]

FLOOD = Path(__file__).with_name("neighbour_flood.py")
HOSTS_MAX = 4096
REQUESTS_PER_SECOND = 10_000
BEGINS_AFTER, LASTS = 0.5, 0.5
"""Seconds: the first request and the last answer are within the trial, whose report tells what was lost."""
DURATION_NS = 1_500_000_000
ROOM = 60
"""Entries that the kernel's table of neighbours has left. The Tester announces all its hosts."""


def hosts_that_fit() -> int:
    """Return how many hosts the gateway may know without a full table, at most as many as the flood is to ask for."""
    return min(HOSTS_MAX, neighbours_free() - ROOM)


def test_ten_thousand_requests_a_second_for_all_hosts_cost_no_frame() -> None:
    """The requests cost the Tester no frame of the trial, and none of them is left without an answer unnoticed.

    A trial compares if it is valid, and if by the clock that both sides read the flood lay in it as a whole.
    """
    hosts = hosts_that_fit()
    campaign = netns_campaign(
        "linux-router4",
        right={
            "ipv4": {
                "address": "198.19.0.2",
                "gateway": "198.19.0.1",
                "hosts": {"offset": 2, "mode": "pseudorandom", "range": f"2-{hosts + 1}"},
            }
        },
        trial={"duration": f"{DURATION_NS}ns", "settle": "0s", "learn": "0s", "drain": "1s", "rest": "0s"},
    )
    with open_bed(campaign) as opened:
        for _ in range(ATTEMPTS):
            asked_for = ("198.19.0.1", "198.19.0.2", hosts, REQUESTS_PER_SECOND)
            arguments = (opened.interface("right"), *asked_for, BEGINS_AFTER, LASTS)
            inside = ["ip", "netns", "exec", opened.bed.gateway.namespaces[0], sys.executable, str(FLOOD)]
            with subprocess.Popen([*inside, *map(str, arguments)], stdout=subprocess.PIPE, text=True) as flood:
                assert flood.stdout is not None
                assert flood.stdout.readline() == "ready\n"
                before = time.monotonic()
                record = opened.trial(frames_per_second=1_000, duration_ns=DURATION_NS)
                after = time.monotonic()
                counted = json.loads(flood.communicate(timeout=60)[0])
            port = record.report.ports["right"]
            unanswered = port.own_drops["neighbour_overflow"] + port.own_drops["neighbour_unanswered"]
            if not record.validity.valid:
                assert record.validity.reasons and not record.is_decisive
                continue
            assert unanswered == 0, "and the trial is valid"
            lasted = sum(phase.duration_ns for phase in record.report.phases) / 10**9
            if after - lasted < counted["began"] and counted["ended"] < before + lasted:
                assert counted["answered"] + port.peer_queue_drops >= counted["asked"], counted
                assert port.foreign.neighbour >= counted["asked"], "the whole flood was within the trial"
                return
    nothing_compared(f"{record.validity.reasons}")

"""A gateway that asks for thousands of hosts at once gets its answers, or the trial is invalid and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.beds import ATTEMPTS, netns_campaign, open_bed
from tests.system.machine import missing

MISSING = missing("ip", "ethtool", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FLOOD = Path(__file__).with_name("neighbour_flood.py")
HOSTS = 4096
REQUESTS_PER_SECOND = 10_000
BEGINS_AFTER, LASTS = 1, 1
"""Seconds: the first request and the last answer are within the trial, whose report tells what was lost."""


def test_ten_thousand_requests_a_second_beside_four_thousand_cold_hosts() -> None:
    """The requests cost the Tester no frame of the trial, and none of them is left without an answer unnoticed."""
    campaign = netns_campaign(
        "linux-router4",
        right={
            "ipv4": {
                "address": "198.19.0.2",
                "gateway": "198.19.0.1",
                "hosts": {"offset": 2, "mode": "pseudorandom", "range": f"2-{HOSTS + 1}"},
            }
        },
        trial={"duration": "3s", "settle": "0s", "learn": "0s", "drain": "1s", "rest": "0s"},
    )
    with open_bed(campaign) as opened:
        for _ in range(ATTEMPTS):
            asked_for = ("198.19.0.1", "198.19.0.2", HOSTS, REQUESTS_PER_SECOND)
            arguments = (opened.interface("right"), *asked_for, BEGINS_AFTER, LASTS)
            inside = ["ip", "netns", "exec", opened.bed.gateway_namespace, sys.executable, str(FLOOD)]
            with subprocess.Popen([*inside, *map(str, arguments)], stdout=subprocess.PIPE, text=True) as flood:
                assert flood.stdout is not None
                assert flood.stdout.readline() == "ready\n"
                record = opened.trial(frames_per_second=1_000, duration_ns=3_000_000_000)
                counted = json.loads(flood.communicate(timeout=30)[0])
            port = record.report.ports["right"]
            if record.validity.valid:
                assert port.own_drops["neighbour_overflow"] == port.own_drops["neighbour_unanswered"] == 0
                assert counted["answered"] + port.peer_queue_drops >= counted["asked"], counted
                assert port.foreign.neighbour >= counted["asked"], "the whole flood was within the trial"
                return
            said = " ".join(record.validity.reasons)
            assert "the Tester's side" in said or "longer than intended" in said, said
    pytest.skip("the Tester lost frames or was late in every trial, and said so")

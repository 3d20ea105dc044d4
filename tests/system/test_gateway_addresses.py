"""A gateway whose Ethernet address changes, and one whose IP address is gone: no loss of the gateway's. Needs root."""

from __future__ import annotations

import re

import pytest
from tests.system.beds import netns_campaign, open_bed
from tests.system.machine import missing

from gatemark.campaign.events import Event, TrialProgress
from gatemark.campaign.plan import cells_of
from gatemark.campaign.runner import run_single_trial
from gatemark.errors import TestBedError

MISSING = missing("ip", "ethtool", "taskset", "setpriv", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

MOVED = "02:00:00:00:00:77"


def test_a_gateway_that_moves_is_found_again_and_one_without_address_is_an_error() -> None:
    with open_bed(netns_campaign("linux-router4", traffic={"direction": "forward"})) as bed:
        left = bed.interface("left")
        tester, sending = bed.tester, [False]

        def move(event: Event) -> None:
            if isinstance(event, TrialProgress) and event.progress["phase"] == "send" and not sending[0]:
                sending[0] = True
                bed.in_gateway("ip", "link", "set", left, "address", MOVED)

        spoiled = run_single_trial(
            tester.campaign,
            cells_of(tester.campaign)[0],
            tester.engine,
            frames_per_second=1000,
            duration_ns=1_000_000_000,
            can=bed.bed.can,
            on_event=move,
        )
        assert sending[0]
        assert not spoiled.validity.valid
        (fault,) = spoiled.testbed_faults
        assert re.fullmatch(
            rf"the gateway's Ethernet address on the left changed from [0-9a-f:]{{17}} to {MOVED}", fault
        )
        (direction,) = bed.trial(frames_per_second=1000).report.directions
        assert direction.received > 0
        bed.in_gateway("ip", "address", "flush", "dev", bed.interface("right"))
        with pytest.raises(TestBedError, match=r"198\.19\.0\.1 did not answer ARP on port"):
            bed.trial(frames_per_second=1000)

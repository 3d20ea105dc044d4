"""The gateway's work is done on its own CPUs; where it is not, no trial counts. Needs root and two CPUs."""

from __future__ import annotations

import re

import pytest
from tests.system.beds import ATTEMPTS, FRAMES, OpenBed, netns_campaign, open_bed
from tests.system.machine import missing, own_cpu

MISSING = missing("ip", "ethtool", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    own_cpu,
]
STRAYED = rf"test bed: the kernel worked on ([0-9,]+) frames at the Tester's CPUs, .* while {FRAMES:,} were offered: "


def steer(bed: OpenBed, mask: str) -> None:
    for side in ("left", "right"):
        bed.in_gateway("sh", "-c", f"echo {mask} > /sys/class/net/{bed.interface(side)}/queues/rx-0/rps_cpus")


def strayed(bed: OpenBed) -> list[str]:
    """Return what a trial says of frames at the Tester's CPUs."""
    reasons = bed.trial().validity.reasons
    return [match[1].replace(",", "") for reason in reasons if (match := re.match(STRAYED, reason))]


def test_a_gateway_that_works_on_the_testers_cpus_makes_trials_invalid() -> None:
    """As where a daemon of the gateway's machine, or a command of its recipe, changes the steering of its input."""
    with open_bed(netns_campaign("linux-router4", traffic={"direction": "forward"})) as bed:
        mask = bed.in_gateway("cat", f"/sys/class/net/{bed.interface('left')}/queues/rx-0/rps_cpus").strip()
        assert not any(strayed(bed) for _ in range(3))
        steer(bed, "0")
        assert any(int(count) >= 0.9 * FRAMES for _ in range(ATTEMPTS) for count in strayed(bed))
        steer(bed, mask)
        assert not strayed(bed)

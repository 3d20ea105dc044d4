"""A gateway whose receiving side merges frames of a flow (GRO): what that changes is named. Needs root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.system.beds import OpenBed, faults, netns_campaign, open_bed, report_of
from tests.system.machine import missing

MISSING = missing("ip", "ethtool", "taskset", "setpriv", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FLOW = {
    "direction": "forward",
    "frame_sizes": {"family": "ipv4", "octets": [128]},
    "source_ports": {"range": "1024-1024"},
    "destination_ports": {"range": "7-7"},
}
"""Only frames of one flow are merged."""
HOLD_NS = 2_000_000
"""How long a frame waits for others of its flow."""
SPLIT = {"rx-gro-list": {"hop_limit", "identification"}, "rx-udp-gro-forwarding": {"identification"}}
"""Ways of merging after which frames are split again, and what of all but the first is then wrong."""


@pytest.fixture(scope="module")
def bed() -> Iterator[OpenBed]:
    with open_bed(netns_campaign("linux-router4", traffic=FLOW)) as opened:
        for side in ("left", "right"):
            hold = f"echo {HOLD_NS} > /sys/class/net/{opened.interface(side)}/gro_flush_timeout"
            opened.in_gateway("sh", "-c", hold)
        yield opened


def merge(bed: OpenBed, side: str, *options: str) -> None:
    words = [
        word for option in options for word in (option.removeprefix("no "), "off" if option[:3] == "no " else "on")
    ]
    bed.in_gateway("ethtool", "-K", bed.interface(side), "gro", "on", *words)


@pytest.mark.parametrize("way", SPLIT)
def test_what_is_split_again_in_another_way_is_named(bed: OpenBed, way: str) -> None:
    merge(bed, "left", *(name if name == way else f"no {name}" for name in SPLIT))
    ((_, _, counts),) = report_of(bed).counts()
    named = faults(counts)
    assert set(named) == SPLIT[way]
    assert all(count == counts.faulty for count in named.values())
    assert counts.received + counts.faulty == counts.offered
    assert counts.faulty > counts.offered // 2


def test_frames_that_stay_merged_are_too_long_and_the_others_lost(bed: OpenBed) -> None:
    """As with a gateway that leaves it to a card to split them, which does not."""
    merge(bed, "left", "no rx-gro-list", "rx-udp-gro-forwarding")
    merge(bed, "right", "tx", "sg", "gso", "tx-udp-segmentation")
    ((_, _, counts),) = report_of(bed).counts()
    assert faults(counts) == {"length": counts.faulty, "udp_length": counts.faulty}
    assert 0 < counts.faulty < counts.offered // 2
    assert counts.received + counts.faulty + counts.lost == counts.offered

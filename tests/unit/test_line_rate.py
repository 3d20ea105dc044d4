"""What the line carries: the frames of each link, with the VLAN tag of its side and the shares of a mix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.simulated.device import SimulatedDevice
from tests.unit.simulated_campaigns import measure

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.procedures.loads import line_maximum, tightest_link
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.run import TheoreticalMaximum

ROUTER = {"technology": "router44"}
TRANSLATOR = {
    "technology": "siit64",
    "prefix": "2001:2:0:6400::/96",
    "eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}],
}
IPV4 = {
    "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
}
IPV6 = {
    "left": {"ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
    "right": {"ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"}},
}


def campaign(gateway: dict[str, Any], traffic: dict[str, Any], **tables: Any) -> Campaign:
    """Return a campaign on 10 Gbit/s with 64 octets of IPv4; `left` and `right` have more of the keys of a side."""
    sides = {}
    for number, side in enumerate(("left", "right"), 1):
        ipv4 = {} if gateway is TRANSLATOR and side == "left" else IPV4[side]
        ipv6 = IPV6[side] if (gateway is TRANSLATOR and side == "left") or "mix" in traffic else {}
        sides[side] = {"port": f"pci:{number}", **ipv4, **ipv6, **tables.pop(side, {})}
    document = {
        "gateway": gateway,
        "testbed": {"kind": "ports"},
        "line": {"rate": "10G"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}, **traffic},
        **({} if tables else {"throughput": {}}),
        **sides,
        **tables,
    }
    return complete_campaign(campaign_from_dict(document))


@pytest.mark.parametrize(
    ("mix", "frames", "rate"),
    [
        ("1/1", {64: 1}, 14_880_952),
        ("2/2", {64: 2}, 14_880_952),
        ("9/10", {64: 9, 84: 1}, 14_534_883),
        ("1/2", {64: 1, 84: 1}, 13_297_872),
        ("1/10", {64: 1, 84: 9}, 12_254_901),
        ("0/1", {84: 1}, 12_019_230),
    ],
)
def test_a_mix_counts_with_the_mean_of_its_sizes(mix: str, frames: dict[int, int], rate: int) -> None:
    wanted = campaign(ROUTER, {"mix": mix})
    (cell,) = cells_of(wanted)
    assert tightest_link(wanted, cell) == frames
    assert line_maximum(wanted, cell, 10**10) == rate


@pytest.mark.parametrize(
    ("left", "right", "frames", "rate"),
    [
        ({}, {}, {84: 1}, 12_019_230),
        ({}, {"vlan": 7}, {84: 1}, 12_019_230),  # IPv4 of 64 octets with its tag is the shorter one
        ({"vlan": 7}, {}, {88: 1}, 11_574_074),
        ({"vlan": 7}, {"vlan": 8}, {88: 1}, 11_574_074),
    ],
)
def test_a_tag_makes_the_frames_of_its_side_longer(
    left: dict[str, int], right: dict[str, int], frames: dict[int, int], rate: int
) -> None:
    wanted = campaign(TRANSLATOR, {}, left=left, right=right)
    (cell,) = cells_of(wanted)
    assert tightest_link(wanted, cell) == frames
    assert line_maximum(wanted, cell, 10**10) == rate


def test_a_translator_that_makes_frames_longer_than_background_is_limited_by_one_link() -> None:
    wanted = campaign(TRANSLATOR, {"mix": "1/2"}, right={"vlan": 7})
    (cell,) = cells_of(wanted)
    assert tightest_link(wanted, cell) == {84: 2}  # left; on the right 68 and 88 octets
    assert line_maximum(wanted, cell, 10**10) == 12_019_230


@pytest.mark.parametrize(
    ("recipe", "tables", "frames"),
    [
        ("linux-lw4o6", {}, {104: 1}),
        ("linux-lw4o6", {"left": {"vlan": 7}, "right": {"vlan": 8}}, {104: 1}),
        ("linux-lw4o6", {"traffic": {"mix": "1/2"}}, {84: 1, 104: 1}),
        ("tayga-mapt", {}, {84: 1}),
    ],
)
def test_between_two_gateways_in_a_row_frames_are_longest(
    recipe: str, tables: dict[str, dict[str, Any]], frames: dict[int, int]
) -> None:
    """No tag of a side is on that link."""
    document = {
        "testbed": {"kind": "netns", "recipe": recipe},
        "connections": {"count": [100], "rate": "1k"},
        "throughput": {},
        **tables,
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}, **tables.get("traffic", {})},
    }
    wanted = complete_campaign(campaign_from_dict(document))
    assert tightest_link(wanted, cells_of(wanted)[0]) == frames


def test_a_mix_is_measured_up_to_what_the_line_carries(tmp_path: Path) -> None:
    line = 14_534_883
    procedures = {"throughput": {}, "frame_loss": {}, "back_to_back": {"bursts": 2}}
    wanted = campaign(
        ROUTER, {"mix": "9/10", "direction": "forward"}, repetitions=2, trial={"duration": "1s"}, **procedures
    )
    rate, loss, bursts = measure(
        tmp_path / "trials.jsonl", SimulatedDevice(capacity_forward=13_000_000, buffer_frames=10_000), wanted
    )
    assert isinstance(rate, ThroughputResult) and rate.rate is not None
    assert (rate.limited_by, rate.goal.maximum) == ("gateway", line)
    assert 12_900_000 < rate.rate.median <= 13_010_000
    assert isinstance(loss, FrameLossResult) and loss.points[0].frames_per_second == line
    assert isinstance(bursts, BackToBackResult) and (bursts.refused, bursts.line_rate) == (None, line)


def test_a_maximum_follows_from_its_frames_when_it_is_read() -> None:
    limit = TheoreticalMaximum(line_bits_per_second=10**10, frames={64: 9, 84: 1})
    assert limit.frames_per_second == 14_534_883
    assert TheoreticalMaximum.model_validate_json(limit.model_dump_json()) == limit

"""Campaign files for tests: short trials, a recipe of this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.quicker import no_wait_for_the_disk, plots_not_rendered

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.technology import TECHNOLOGIES, TechnologyName

__all__ = ["no_wait_for_the_disk", "plots_not_rendered"]

WriteCampaign = Callable[..., Path]
NatCampaign = Callable[..., Campaign]

THROUGHPUT = """
[throughput]
maximum = "1M"
minimum = "1k"
resolution = "1k"
loss_tolerance = "{tolerance}"
search_duration = "500ms"
"""

FRAME_LOSS = """
[frame_loss]
rates = ["100k", "300k", "500k", "700k", "900k"]
"""

TEXT = """\
name = "{recipe}"
seed = 7
repetitions = {repetitions}
{extra}
[testbed]
kind = "netns"
recipe = "{recipe}"

[traffic]
direction = "bidirectional"
mix = [{mix}]
frame_sizes = {{family = "{family}", octets = {octets}}}

[trial]
duration = "2s"
settle = "100ms"
learn = "100ms"
drain = "100ms"
rest = "100ms"

[validity]
retries = 2
{procedures}"""


@pytest.fixture
def write_campaign(tmp_path: Path) -> WriteCampaign:
    """A function that writes a campaign file and returns its path."""

    def write(
        *,
        recipe: str = "tayga-siit64",
        octets: str = "[64]",
        family: str = "ipv4",
        repetitions: int = 1,
        tolerance: str = "0%",
        frame_loss: bool = False,
        extra: str = "",
        mix: str = '"1/1"',
    ) -> Path:
        procedures = THROUGHPUT.format(tolerance=tolerance) + (FRAME_LOSS if frame_loss else "")
        path = tmp_path / "campaign.toml"
        path.write_text(
            TEXT.format(
                recipe=recipe,
                octets=octets,
                family=family,
                repetitions=repetitions,
                procedures=procedures,
                extra=extra,
                mix=mix,
            ),
            encoding="utf-8",
        )
        return path

    return write


SIDES: dict[str, dict[str, dict[str, str]]] = {
    "left": {
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
    },
    "right": {
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
}
EAM = [
    {"ipv4": "192.0.2.0/24", "ipv6": "2001:2::/120"},
    {"ipv4": "203.0.113.0/24", "ipv6": "2001:2:0:8000::/120"},
]
CONTROL = {"clear_state": "conntrack -F", "count_connections": "conntrack -C", "tear_down": "conntrack -F"}


def _nat_campaign(
    technology: TechnologyName = "nat44",
    *,
    gateway: dict[str, Any] | None = None,
    connections: dict[str, Any] | None = None,
    background: bool = False,
    **tables: Any,
) -> Campaign:
    """A checked campaign of one stateful gateway; tables replace those of the default.

    Of the tables gateway and connections only the keys given are replaced; `background` gives both sides IPv6 as well.
    """
    given = gateway or {}
    inside, outside = TECHNOLOGIES[technology].families
    sides = {"left": inside, "right": outside}
    if given.get("inside") == "right":
        sides = {"left": outside, "right": inside}
    outer = "left" if given.get("inside") == "right" else "right"
    whole: dict[str, Any] = {
        "technology": technology,
        "pool": [SIDES[outer][outside]["gateway"]],
        "control": CONTROL,
        **given,
    }
    if inside != outside:
        whole = {"prefix": "2001:2:0:6400::/96", "eam": [] if outside == "ipv4" else EAM, **whole}
    hosts = {
        side: {name: SIDES[side][name] for name in sorted({family} | ({"ipv6"} if background else set()))}
        for side, family in sides.items()
    }
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "seed": 7,
                "gateway": whole,
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:a", **hosts["left"]},
                "right": {"port": "af_packet:b", **hosts["right"]},
                "traffic": {"frame_sizes": {"family": "ipv4" if "ipv4" in (inside, outside) else "ipv6", "octets": 84}},
                "trial": {"duration": "1s", "settle": "10ms", "learn": "10ms", "drain": "10ms", "rest": "10ms"},
                "connections": {"count": 1000, "rate": "10k", "timeout": "20ms", "gap": "30ms", **(connections or {})},
                "frame_loss": {"rates": [1000]},
                **tables,
            }
        )
    )
    return campaign


@pytest.fixture
def nat_campaign() -> NatCampaign:
    """A function that returns a checked campaign of a stateful gateway: short waits, few connections."""
    return _nat_campaign

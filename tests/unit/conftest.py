"""Campaign files for tests: short trials, a recipe of this package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WriteCampaign = Callable[..., Path]

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
mix = "{mix}"
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
        mix: str = "1/1",
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

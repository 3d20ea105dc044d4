"""A campaign takes no fewer trials than the least of its estimate, and on a steady gateway no more than the most."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.router_campaign import ROUTER
from tests.simulated.device import SimulatedDevice
from tests.unit import simulated_campaigns

from gatemark.campaign.estimate import PlanEstimate, estimate
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.assumed import ASSUMED_CONNECTIONS_PER_SECOND, ASSUMED_RATE_MAX

LINE = 1_000_000
"""Frames/s of 64 octets; a frame has 84 octets on the line."""

NOISE = st.sampled_from((0.0, 0.0, 0.01, 0.1))
"""Share of the capacity by which it differs from trial to trial."""


def some(**tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Documents with some of these tables."""
    return st.fixed_dictionaries({}, optional=tables)


ROUTER_TABLES = some(
    frame_loss=st.sampled_from(({}, {"step": "5%"}, {"rates": ["1k", "10k", "100k"]})),
    delay=st.sampled_from(({"duration": "1s", "first_tag": "500ms", "tags": 10, "load": ["100%", "50%"]},)),
    back_to_back=st.fixed_dictionaries(
        {
            "ceiling": st.just("100ms"),
            "resolution": st.sampled_from((1, 7, "1%", "0.3%")),
            "bursts": st.just(3),
            "search": st.sampled_from(("binary", "loss_verification")),
        }
    ),
    bursty_traffic=st.fixed_dictionaries(
        {
            "frames": st.just([64, 256]),
            "resolution": st.sampled_from(("1%", "0.1%")),
            "search_duration": st.sampled_from(("500ms", "1s")),
        }
    ),
    system_recovery=st.just({"duration": "1s", "observe": "1s"}),
)

SEARCH = {"resolution": st.sampled_from(("1%", "0.1%", "7%", "20%")), "minimum": st.sampled_from((100, 1000))}

TABLE_SIZE = 20_000

NAT: dict[str, Any] = {
    **simulated_campaigns.nat44(table={"size": TABLE_SIZE}),
    "line": {"rate": "1G"},
    "trial": {"duration": "1s"},
    "validity": {"retries": 1},
}


def campaign(**tables: Any) -> Campaign:
    waits = dict.fromkeys(("settle", "learn", "drain", "rest"), "0s")
    return complete_campaign(campaign_from_dict({**ROUTER, "trial": {"duration": "1s", **waits}, **tables}))


def trials_of(wanted: Campaign, device: SimulatedDevice) -> tuple[PlanEstimate, int]:
    """Return what is estimated, and how many trials the campaign takes."""
    with tempfile.TemporaryDirectory() as folder:
        results = simulated_campaigns.measure(Path(folder) / "trials.jsonl", device, wanted)
    return estimate(wanted), sum(result.trials for result in results)


@given(
    tables=ROUTER_TABLES,
    search=st.fixed_dictionaries({**SEARCH, "search_duration": st.sampled_from(("100ms", "500ms", "1s"))}),
    has_line=st.booleans(),
    capacity=st.one_of(st.integers(2000, LINE - 1), st.integers(LINE, 2 * LINE)),
    noise=NOISE,
    repetitions=st.sampled_from((1, 2, 4)),
)
def test_of_frames(
    tables: dict[str, Any], search: dict[str, Any], has_line: bool, capacity: int, noise: float, repetitions: int
) -> None:
    line = {"rate": LINE * 84 * 8} if has_line else {}
    wanted = campaign(**tables, throughput=search, line=line, repetitions=repetitions)
    needed, trials = trials_of(wanted, SimulatedDevice(capacity_forward=capacity, noise=noise))
    assert needed.trials_min <= trials
    assert noise or trials <= needed.trials_max


@given(
    tables=some(
        frame_loss=st.just({"rates": ["10k", "100k"]}),
        connection_tear_down_rate=st.just({}),
        connection_tracking_table_capacity=st.fixed_dictionaries(
            {
                "start": st.just(1000),
                "maximum": st.sampled_from((1999, 7000, 20_000)),
                "maximum_rate": st.sampled_from(("1M", "300k")),
                "resolution": st.sampled_from((100, 999)),
            }
        ),
        repeated_four_tuples=st.just({"frames": 2000, "maximum": "1M", "resolution": "10k"}),
    ),
    search=st.fixed_dictionaries(
        {
            "validated": st.sampled_from((False, True, [False, True])),
            "resolution": st.sampled_from(("1%", "10%")),
            "minimum": st.just("1k"),
        },
        optional={"maximum": st.sampled_from(("1M", "250k"))},
    ),
    searches_alpha=st.booleans(),
    rate=st.integers(ASSUMED_CONNECTIONS_PER_SECOND, 2 * ASSUMED_RATE_MAX),
    replies=st.integers(ASSUMED_CONNECTIONS_PER_SECOND, 2 * ASSUMED_RATE_MAX),
    share=st.sampled_from(("50%", "90%", "20k")),
    noise=NOISE,
    repetitions=st.sampled_from((1, 3)),
)
def test_of_connections(
    tables: dict[str, Any],
    search: dict[str, Any],
    searches_alpha: bool,
    rate: int,
    replies: int,
    share: str,
    noise: float,
    repetitions: int,
) -> None:
    if searches_alpha and search["validated"] == [False, True]:
        search = {**search, "alpha": "search"}
    wanted = complete_campaign(
        campaign_from_dict(
            {
                **NAT,
                **tables,
                "connections": {"count": [2000], "rate": share},
                "connection_establishment_rate": search,
                "repetitions": repetitions,
            }
        )
    )
    device = SimulatedDevice(
        capacity_forward=10**9,
        capacity_reverse=replies,
        establishment_rate=rate,
        table_size=TABLE_SIZE,
        noise=noise,
    )
    needed, trials = trials_of(wanted, device)
    assert needed.trials_min <= trials
    assert noise or trials <= needed.trials_max

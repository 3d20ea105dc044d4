"""Traffic that the searches for the throughput need, on simulated gateways: `.venv/bin/python -m bench.search_time`.

Three searches of the same interval, each to 1,000 frames/s: MLRsearch (short trials first, full-length trials decide),
the binary search with short trials and full-length ones that confirm, and the binary search in which every trial has
its full length, as siitperf does it. Every result is confirmed by trials of 60 s. `--json FILE` writes the figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.simulated.engine import SimulatedDevice, SimulatedEngine

from bench.output import columns, command_line, write_json
from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.throughput.result import ThroughputResult

CAPACITY = 1_200_000
MAXIMUM = 1_488_095
"""64-octet frames at 1 Gbit/s."""
RESOLUTION = 1_000
GATEWAYS = {
    "sharp": SimulatedDevice(capacity_forward=CAPACITY),
    "keeps 1,000 frames": SimulatedDevice(capacity_forward=CAPACITY, buffer_frames=1_000),
    "keeps 10,000 frames": SimulatedDevice(capacity_forward=CAPACITY, buffer_frames=10_000),
    "capacity differs by 0.1 %": SimulatedDevice(capacity_forward=CAPACITY, noise=0.001),
    "every 5th trial invalid": SimulatedDevice(capacity_forward=CAPACITY, hiccup_every=5),
}
SEARCHES = {
    "MLRsearch": {"search": "mlrsearch", "search_duration": "1s"},
    "binary, confirmed": {"search": "binary", "search_duration": "1s"},
    "binary, all trials 60 s": {"search": "binary", "search_duration": "60s"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTime:
    """What one search took, and what it found."""

    gateway: str
    search: str
    traffic_s: float
    """Sending time of all trials, invalid ones included, without waits."""
    trials: int
    full_length_trials: int
    lower_bound: int | None
    """Frames/s in one direction."""
    upper_bound: int | None


def search_time(gateway: str, search: str) -> SearchTime:
    """Search once, as a campaign does: with a journal, and with invalid trials repeated."""
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "repetitions": 1,
                "gateway": {"technology": "router44"},
                "testbed": {"kind": "loopback"},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
                "throughput": {"maximum": MAXIMUM, "resolution": RESOLUTION, **SEARCHES[search]},
            }
        )
    )
    lengths: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, TrialFinished):
            lengths.append(event.record.order.step.duration_ns)

    engine = SimulatedEngine(GATEWAYS[gateway])
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.jsonl") as journal:
        results = run_campaign(
            campaign, plan_of(campaign), engine, journal, can=engine.gateway.can, on_event=watch
        )  # fmt: skip
    (result,) = results
    assert isinstance(result, ThroughputResult), "the campaign measures nothing else"
    (search_result,) = result.repetitions
    return SearchTime(
        gateway=gateway,
        search=search,
        traffic_s=round(sum(lengths) / 1e9, 3),
        trials=len(lengths),
        full_length_trials=lengths.count(campaign.trial.duration_ns),
        lower_bound=search_result.lower_bound,
        upper_bound=search_result.upper_bound,
    )


def table(times: Sequence[SearchTime]) -> str:
    """Write the figures as a table of words."""
    heads = ("gateway", "search", "traffic", "trials", "of 60 s", "throughput, frames/s")
    rows = [
        (
            time.gateway,
            time.search,
            f"{time.traffic_s:.0f} s",
            str(time.trials),
            str(time.full_length_trials),
            f"{time.lower_bound:,} to {time.upper_bound:,}" if time.lower_bound and time.upper_bound else "-",
        )
        for time in times
    ]
    return columns(heads, rows)


def main() -> None:
    """Print the table; write JSON if asked for."""
    wanted = command_line(__doc__).parse_args()
    times = [search_time(gateway, search) for gateway in GATEWAYS for search in SEARCHES]
    print(table(times))
    write_json(wanted.json, [asdict(time) for time in times])


if __name__ == "__main__":
    main()

"""A campaign that is killed at any point, also in the middle of a line of its journal, resumes to the same result."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemark.campaign.journal import Journal, read_journal
from gatemark.campaign.plan import make_plan
from gatemark.campaign.runner import run_campaign
from gatemark.config.load import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.engine.simulated import SimulatedDevice, SimulatedEngine
from gatemark.procedures.result import RunResult

Table = dict[str, Any]

GIVEN: tuple[Table, Table] = ({"maximum": "100k", "resolution": "5k"}, {"maximum": "100k"})
FOUND: tuple[Table, Table] = ({"resolution": "5%"}, {})
"""Without a maximum the load of the search doubles, and frame loss begins at twice the throughput."""


def campaign(search: str, search_duration: str, load: list[int | str], ends: tuple[Table, Table]) -> Campaign:
    throughput, frame_loss = ends
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "left": {"ipv4": {"address": "198.18.0.2"}},
        "right": {"ipv4": {"address": "198.19.0.2"}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "trial": {"duration": "2s"},
        "validity": {"retries": 1},
        "throughput": {
            "search": search,
            "minimum": 100,
            "search_duration": search_duration,
            "frame_timeout": "100ms",
            **throughput,
        },
        "frame_loss": {"step": "10%", **frame_loss},
        "delay": {"load": load, "duration": "2s", "first_tag": "1s", "tags": 50},
    }
    loaded = campaign_from_dict(document)
    loaded.check_complete()
    return loaded


def measure(wanted: Campaign, device: SimulatedDevice, path: Path) -> tuple[tuple[RunResult, ...], int]:
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        results = run_campaign(wanted, make_plan(wanted), engine, journal)
    return results, engine.trials_made


devices = st.builds(
    SimulatedDevice,
    capacity_forward=st.integers(0, 120_000),
    capacity_reverse=st.one_of(st.none(), st.integers(0, 120_000)),
    noise=st.sampled_from([0.0, 0.05, 0.3]),
    loss_ratio=st.sampled_from([0.0, 1e-6]),
    lossy_windows=st.sampled_from([(), ((20_000, 30_000),)]),
    lossless_windows=st.sampled_from([(), ((60_000, 70_000),)]),
    tester_limit=st.one_of(st.none(), st.integers(0, 100_000)),
    tester_fault=st.sampled_from(["late", "drops", "short"]),
    hiccup_every=st.sampled_from([0, 3, 7]),
    delays_ns=st.sampled_from([(50_000,), (10_000, 40_000, 20_000), (10_000, -5), (10_000, 200_000_000)]),
    delay_spread_ns=st.sampled_from([0, 30_000]),
)


@pytest.mark.parametrize("ends", [GIVEN, FOUND], ids=["given", "found"])
@settings(max_examples=25, deadline=None)
@given(
    search=st.sampled_from(["binary", "mlrsearch"]),
    search_duration=st.sampled_from(["500ms", "2s"]),
    load=st.sampled_from([["100%", "50%"], [20_000, 1000]]),
    device=devices,
    cuts=st.lists(st.fractions(0, 1), min_size=1, max_size=3),
)
def test_a_killed_campaign_resumes_to_the_same_result(
    search: str,
    search_duration: str,
    load: list[int | str],
    ends: tuple[Table, Table],
    device: SimulatedDevice,
    cuts: list[Fraction],
) -> None:
    wanted = campaign(search, search_duration, load, ends)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        whole, made = measure(wanted, device, path)
        reports = [record.report for record in read_journal(path)]
        for cut in cuts:
            content = path.read_bytes()
            path.write_bytes(content[: int(cut * len(content))])
            kept = len(read_journal(path))
            resumed, remade = measure(wanted, device, path)
            assert resumed == whole
            assert kept + remade == made
            assert [record.report for record in read_journal(path)] == reports

"""A campaign that is killed at any point, also in the middle of a line of its journal, resumes to the same result."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.journals import read_journal
from tests.property.examples import examples
from tests.simulated.engine import SimulatedDevice, SimulatedEngine

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.results.run import RunResult


def campaign(search: str, search_duration: str, load: list[int | str]) -> Campaign:
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
            "maximum": "100k",
            "minimum": 100,
            "resolution": "5k",
            "search_duration": search_duration,
            "frame_timeout": "100ms",
        },
        "frame_loss": {"maximum": "100k", "step": "10%"},
        "delay": {"load": load, "duration": "2s", "first_tag": "1s", "tags": 50},
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def measure(wanted: Campaign, device: SimulatedDevice, path: Path) -> tuple[tuple[RunResult, ...], int]:
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        results = run_campaign(wanted, plan_of(wanted), engine, journal)
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


@examples(4, many=15)
@given(
    wanted=st.builds(
        campaign,
        st.sampled_from(["binary", "mlrsearch"]),
        st.sampled_from(["500ms", "2s"]),
        st.sampled_from([["100%", "50%"], [20_000, 1000]]),
    ),
    device=devices,
    cuts=st.lists(st.fractions(0, 1), min_size=1, max_size=3),
)
def test_a_killed_campaign_resumes_to_the_same_result(
    wanted: Campaign, device: SimulatedDevice, cuts: list[Fraction]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        whole, count = measure(wanted, device, path)
        assert [type(result).model_validate_json(result.model_dump_json()) for result in whole] == list(whole)
        reports = [record.report for record in read_journal(path)]
        for cut in cuts:
            content = path.read_bytes()
            path.write_bytes(content[: int(cut * len(content))])
            kept = len(read_journal(path))
            resumed, remade = measure(wanted, device, path)
            assert resumed == whole
            assert kept + remade == count
            assert [record.report for record in read_journal(path)] == reports

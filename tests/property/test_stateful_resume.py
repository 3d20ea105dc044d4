"""A stateful campaign that is killed at any point resumes to the same result, and to the same journal."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.journals import read_journal
from tests.property.examples import examples
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit.simulated_campaigns import CONNTRACK

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import TestBedError
from gatemark.results.run import RunResult


def campaign(alpha: str, mix: str) -> Campaign:
    rates = {"maximum": "100k", "minimum": "1k", "resolution": "5k"}
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {
            "technology": "nat44",
            "pool": ["198.19.0.1"],
            "control": CONNTRACK,
        },
        "testbed": {"kind": "ports"},
        "left": {
            "port": "pci:1",
            "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
            "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
        },
        "right": {
            "port": "pci:2",
            "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.254"},
            "ipv6": {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"},
        },
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [128]}, "mix": mix},
        "trial": {"duration": "1s"},
        "validity": {"retries": 1},
        "connections": {"count": [1000, 5000]},
        "connection_establishment_rate": {**rates, "validated": [False, True], "alpha": alpha},
        "throughput": {"maximum": "100k", "minimum": 1000, "resolution": "10k"},
        "delay": {"load": ["100%", "10%"], "duration": "2s", "first_tag": "1s", "tags": 50},
        "connection_tear_down_rate": {},
        "connection_tracking_table_capacity": {"maximum": 20_000, "maximum_rate": "100k", "resolution": 100},
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def measure(wanted: Campaign, device: SimulatedDevice, path: Path) -> tuple[RunResult, ...] | str:
    """Return the results, or why the test bed stopped the campaign."""
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        try:
            return run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can)
        except TestBedError as error:
            return str(error)


devices = st.builds(
    SimulatedDevice,
    capacity_forward=st.integers(20_000, 120_000),
    capacity_reverse=st.one_of(st.none(), st.integers(5_000, 120_000)),
    establishment_rate=st.integers(500, 120_000),
    noise=st.sampled_from([0.0, 0.05, 0.3]),
    table_size=st.one_of(st.none(), st.integers(4000, 30_000)),
    overflow=st.sampled_from(["refuse", "evict", "untranslated"]),
    counts_connections=st.booleans(),
    tester_limit=st.one_of(st.none(), st.integers(0, 100_000)),
    tester_fault=st.sampled_from(["late", "drops", "short"]),
    hiccup_every=st.sampled_from([0, 3, 7]),
    delays_ns=st.sampled_from([(50_000,), (10_000, 40_000, 20_000)]),
)


@examples(4, many=12)
@given(
    wanted=st.builds(campaign, st.sampled_from(["search", "80%"]), st.sampled_from(["1/1", "1/2"])),
    device=devices,
    cuts=st.lists(st.fractions(0, 1), min_size=1, max_size=2),
)
def test_a_killed_campaign_resumes_to_the_same_result(
    wanted: Campaign, device: SimulatedDevice, cuts: list[Fraction]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        whole = measure(wanted, device, path)
        if not isinstance(whole, str):
            assert [type(result).model_validate_json(result.model_dump_json()) for result in whole] == list(whole)
        reports = [record.report for record in read_journal(path)]
        for cut in cuts:
            content = path.read_bytes()
            path.write_bytes(content[: int(cut * len(content))])
            assert measure(wanted, device, path) == whole
            assert [record.report for record in read_journal(path)] == reports

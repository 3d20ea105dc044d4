"""Delays of real gateways, stateless and stateful, and resets of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from tests.journals import read_journal
from tests.system.beds import QUICK, netns_campaign
from tests.system.machine import nightly_but, nothing_compared
from tests.system.stateful_beds import stateful_campaign

from gatemark.config.model import Campaign
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.reset.result import ResetResult
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.run import RunResult
from gatemark.results.store import ResultFolder
from gatemark.session import measure

MISSING = [tool for tool in ("ip", "nft", "conntrack", "tayga", "ethtool") if shutil.which(tool) is None]
if os.geteuid() != 0:
    MISSING.insert(0, "root")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"gateways in namespaces need {', '.join(MISSING)}"),
    pytest.mark.alone,
]

LOAD = 5_000
FRAMES = LOAD // 2
DELAY = {"load": LOAD, "duration": "500ms", "first_tag": "100ms", "tags": 500}
MICROSECOND = 1_000
BEFORE_NS, OBSERVE_NS = 300_000_000, 1_200_000_000
FRAME_NS = 500_000
REPORTED = "linux-router6"
"""Whose report is looked at."""


def delay_campaign(recipe: str) -> Campaign:
    """Return a campaign that measures delays at one low load, through connections where the gateway has any."""
    make = stateful_campaign if "-nat" in recipe else netns_campaign
    traffic = {"frame_sizes": {"family": "ipv4" if "-nat" in recipe else "ipv6", "octets": 128}}
    document = make(recipe, delay=DELAY, repetitions=1, trial=QUICK, traffic=traffic)
    return document.model_copy(update={"frame_loss": None})


def assert_nothing_is_published(run: RunResult, series: tuple[Any, ...]) -> None:
    """A busy machine has no valid trial: the result says so, and has no figure."""
    assert run.limited_by in NOT_THE_GATEWAY
    assert series == ()
    assert all(quantity.value is None and not quantity.values for quantity in run.own_quantities())
    nothing_compared("no valid trial")


@pytest.mark.parametrize(
    "recipe", nightly_but({0, 3}, "fewer of the same", ["linux-router6", "tayga-siit64", "nft-nat44", "tayga-nat64"])
)
def test_every_delay_of_a_real_gateway_is_measured(recipe: str, tmp_path: Path) -> None:
    result = measure(delay_campaign(recipe), output=tmp_path / "result", report=recipe == REPORTED)
    (run,) = result.runs
    assert isinstance(run, DelayResult)
    (point,) = run.points
    assert point.frames_per_second == LOAD
    if not point.repetitions:
        assert_nothing_is_published(run, point.series)
        return
    lasted_ns = max(
        sum(phase.duration_ns for phase in record.report.phases)
        for record in read_journal(ResultFolder.open(result.folder).journal_file)
        if record.is_decisive
    )
    assert {series.direction for series in point.series} == {"forward", "reverse"}
    for series in point.series:
        assert series.offered == (FRAMES,)
        assert series.samples == (FRAMES - series.undelivered[0],)
        assert series.negative == (0,)
        assert series.latency is not None
        assert series.latency.tags == (500,)
        minimum, p50, maximum = (series.delay_ns[key].values[0] for key in ("minimum", "p50", "maximum"))
        assert minimum is not None and p50 is not None and maximum is not None
        assert MICROSECOND < minimum <= p50 <= maximum <= lasted_ns
        histogram = HdrHistogram.decode(series.hdr)
        assert histogram.get_total_count() == series.samples[0]
        assert histogram.get_value_at_percentile(50) == pytest.approx(p50, rel=0.002)
    self_test = result.document.self_test
    assert self_test is not None, "the Tester's own part was not measured"
    assert {series.direction for series in self_test.self_latency} == {"forward", "reverse"}
    for own_latency in self_test.self_latency:
        assert own_latency.samples
        assert own_latency.minimum_ns is not None
        assert own_latency.minimum_ns > 0
    if recipe == REPORTED:
        assert "Self-latency" in result.report_file.read_text(encoding="utf-8")


@pytest.mark.parametrize("recipe", nightly_but({1}, "fewer of the same", ["linux-router4", "tayga-siit64"]))
def test_a_reset_is_seen_and_the_gateway_is_what_it_was(recipe: str, tmp_path: Path) -> None:
    """It recovers, unless its command took so long that the trial was nearly over.

    It loses frames, unless the Tester was kept from sending any meanwhile: it shares a CPU, or was late by its account.
    """
    campaign = netns_campaign(
        recipe,
        reset={"before": f"{BEFORE_NS}ns", "observe": f"{OBSERVE_NS}ns", "load": 10**9 // FRAME_NS},
        traffic={"direction": "forward"},
        repetitions=1,
    ).model_copy(update={"frame_loss": None})
    result = measure(campaign, output=tmp_path / "result", report=False)
    (run,) = result.runs
    assert isinstance(run, ResetResult)
    if not run.series:
        assert run.refused
        assert_nothing_is_published(run, run.series)
        return
    (series,) = run.series
    (undelivered,), (began_ns,), (took_ns,) = series.undelivered, run.began_ns, run.took_ns
    if undelivered == 0:
        records = read_journal(ResultFolder.open(result.folder).journal_file)
        (way,) = (way for record in records if record.is_decisive for way in record.report.directions)
        assert series.outcomes == ("no_loss",)
        assert plan_cores(usable_cpus()).shared or way.lateness_max_ns > FRAME_NS, run
        return
    recovers = began_ns + took_ns < BEFORE_NS + OBSERVE_NS // 2
    assert series.outcomes == ("recovered",) or not recovers, run

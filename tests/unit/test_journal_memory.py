"""Memory that the trials of a campaign take: a journal is read, and a campaign goes on, however long it is."""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.device import SimulatedDevice
from tests.trial_facts import blank, changed, measured
from tests.unit.simulated_campaigns import measure

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import records_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.delay.result import DelayPoint
from gatemark.procedures.delay.run import DelaysAtLoad
from gatemark.procedures.delay.table import DelayTable
from gatemark.procedures.measured import Measured
from gatemark.results.store import ResultFolder
from gatemark.search.goal import Observation, Outcome
from gatemark.stored import trial_rows
from gatemark.trial.delay import DelayFacts, VariationFacts
from gatemark.trial.report import Counts, DirectionResult, TrialReport

DEVICE = SimulatedDevice(capacity_forward=432_100)
OFTEN = (200, 1, 1)
"""Of the garbage collector: allocations until it looks at the new objects, then at older ones, then at all."""
MORE = 4
"""How many times as long the second journal is."""


def campaign(repetitions: int) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": repetitions,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "throughput": {"maximum": "1M", "minimum": 1000, "resolution": 1000},
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def bytes_at_most(work: Callable[[], object]) -> int:
    """Return the most memory that work had at a time.

    Garbage and free lists are emptied often, however much the tests before have left in the process.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    thresholds = gc.get_threshold()
    gc.set_threshold(*OFTEN)
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[int, Path], tuple[int, Path]]:
    """Repetitions and journal of a short campaign and of a longer one."""

    def made(repetitions: int) -> tuple[int, Path]:
        path = tmp_path_factory.mktemp("folder") / "trials.jsonl"
        measure(path, DEVICE, campaign(repetitions))
        return repetitions, path

    return made(10), made(10 * MORE)


Work = Callable[[int, Path], object]


def growth_per_trial(journals: tuple[tuple[int, Path], tuple[int, Path]], work: Work) -> float:
    """Bytes that each further trial takes. The work is done once before, so that nothing is loaded meanwhile."""
    work(*journals[0])
    peaks = [bytes_at_most(partial(work, *given)) for given in journals]
    trials = [sum(1 for _ in records_of(path)) for _, path in journals]
    assert trials[1] >= MORE * trials[0] > 0
    return (peaks[1] - peaks[0]) / (trials[1] - trials[0])


def test_a_journal_is_read_in_constant_memory(journals: Any) -> None:
    """But for garbage that waits for its collection: a record takes 40 kB."""
    assert growth_per_trial(journals, lambda _, path: sum(1 for _ in records_of(path))) < 400


def test_a_campaign_is_replayed_without_keeping_its_trials(journals: Any) -> None:
    """What stays of a trial is its place in the path of its search, and its causes: some 700 bytes."""
    assert growth_per_trial(journals, lambda repetitions, path: measure(path, DEVICE, campaign(repetitions))) < 1000


def test_the_report_keeps_a_row_for_each_trial_and_nothing_else(journals: Any) -> None:
    size = journals[1][1].stat().st_size / sum(1 for _ in records_of(journals[1][1]))
    assert growth_per_trial(journals, lambda _, path: trial_rows(ResultFolder(path=path.parent))) < size


def test_the_repetitions_of_a_load_keep_the_histograms_of_the_first_alone() -> None:
    """They have thousands of buckets: the trials of one run would take a gigabyte."""
    buckets = 5_000

    def repetition() -> Measured:
        histogram = tuple((1_000_000 + ns, 1_000 + ns) for ns in range(buckets))
        delay = blank(DelayFacts, samples=1, minimum_ns=1, maximum_ns=2, histogram=histogram)
        variation = blank(VariationFacts, histogram=histogram)
        delay = changed(delay, variation=variation)
        counts = blank(Counts, intended=1, offered=1, received=1, delay=delay)
        report = blank(TrialReport, directions=(blank(DirectionResult, direction="forward", foreground=counts),))
        return measured(Observation(frames_per_second=1, duration_ns=1, outcome=Outcome.PASSED), report)

    def add(repetitions: int) -> None:
        load = DelayPoint(
            frames_per_second=1, share=None, throughput=None, throughput_limited_by=None, repetitions=0,
            tester_limited=0, series=(),
        )  # fmt: skip
        delays = DelaysAtLoad(DelayTable(), load)
        for _ in range(repetitions):
            delays.add(repetition())
        assert delays.point().repetitions == repetitions

    add(1)
    few, many = (bytes_at_most(partial(add, count)) for count in (3, 12))
    assert many < few * 1.2

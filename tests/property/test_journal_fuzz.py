"""A journal with flipped bits or swapped, doubled or lost lines: refused by its line, or the result is the same."""

from __future__ import annotations

import os
import re
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journals import read_journal
from tests.property.router_campaign import ROUTER
from tests.simulated.engine import SimulatedDevice, SimulatedEngine

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ResultError
from gatemark.results.run import RunResult

DEVICE = SimulatedDevice(capacity_forward=61_000, noise=0.05, hiccup_every=5)


@cache
def campaign() -> Campaign:
    loaded = complete_campaign(campaign_from_dict(ROUTER))
    return loaded


def measure(path: Path) -> tuple[RunResult, ...]:
    with Journal(path) as journal:
        return run_campaign(campaign(), plan_of(campaign()), SimulatedEngine(DEVICE), journal)


@cache
def whole() -> tuple[bytes, tuple[RunResult, ...]]:
    """An undisturbed campaign: its journal and its results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        results = measure(path)
        return path.read_bytes(), results


def lines() -> list[bytes]:
    return whole()[0].splitlines(keepends=True)


def assert_refused_or_same(content: bytes) -> None:
    """Resume from a damaged journal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        path.write_bytes(content)
        outcome: tuple[RunResult, ...] | ResultError
        try:
            outcome = measure(path)
        except ResultError as error:
            outcome = error
        if isinstance(outcome, ResultError):
            assert re.search(r"line \d+: |trial \d+ ", outcome.what), outcome.what
            assert outcome.fix
        else:
            assert outcome == whole()[1]


numbers = st.integers(0, 10**9)


@pytest.mark.endure
@settings(deadline=None)
@given(places=st.lists(st.tuples(numbers, st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits(places: list[tuple[int, int]]) -> None:
    content = bytearray(whole()[0])
    for place, bit in places:
        content[place % len(content)] ^= 1 << bit
    assert_refused_or_same(bytes(content))


@pytest.mark.endure
@settings(deadline=None)
@given(first=numbers, second=numbers)
def test_swapped_lines(first: int, second: int) -> None:
    content = lines()
    first, second = first % len(content), second % len(content)
    content[first], content[second] = content[second], content[first]
    assert_refused_or_same(b"".join(content))


@pytest.mark.endure
@settings(deadline=None)
@given(taken=st.lists(numbers, max_size=2 * 16))
def test_any_choice_of_lines(taken: list[int]) -> None:
    """Lines that are missing at the end are made again; any other choice is refused."""
    content = lines()
    chosen = [place % len(content) for place in taken]
    assert_refused_or_same(b"".join(content[place] for place in chosen))


def test_a_journal_that_is_refused_or_left_is_closed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"

    def is_open() -> bool:
        files = (Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
        return any(file.exists() and file.readlink() == path for file in files)

    path.write_bytes(lines()[0] + b"{}" + lines()[1])
    with pytest.raises(ResultError, match="line 2: ") as refused:
        read_journal(path)
    assert refused.tb is not None
    assert not is_open()
    path.write_bytes(b"".join(lines()[:3]))
    with Journal(path) as journal:
        assert next(journal.records).order.trial_number == 1
        assert is_open()
    assert not is_open()


@pytest.mark.endure
def test_every_single_bit_of_a_line_is_refused(tmp_path: Path, endures: bool) -> None:
    """No bit of a line is without its check; the short version takes every eleventh."""
    line, path = lines()[0], tmp_path / "trials.jsonl"
    for bit in range(0, 8 * (len(line) - 1), 1 if endures else 11):  # the last octet is the end of the line
        damaged = bytearray(line)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ResultError, match=r"line 1: "):
            read_journal(path)

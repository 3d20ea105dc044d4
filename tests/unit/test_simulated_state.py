"""The simulated table: which connections are gone, against a list of all of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.engine import SimulatedDevice, SimulatedGateway
from tests.simulated.state import SLICES, Gaps


def numbers(gaps: Gaps) -> list[int]:
    """The frames lost, one by one."""
    end = gaps.total - gaps.tail
    between = [n for n in range(gaps.head, end) if gaps.every and (n + 1) % gaps.every == 0]
    return [*range(gaps.head), *between, *range(end, gaps.total)]


@st.composite
def all_gaps(draw: st.DrawFn) -> Gaps:
    total = draw(st.integers(0, 300))
    head = draw(st.integers(0, total))
    every = draw(st.sampled_from([0, 1, 2, 7, 100]))
    return Gaps(total=total, head=head, tail=draw(st.integers(0, total - head)), every=every)


@given(gaps=all_gaps(), share=st.integers(1, 5), more=st.integers(0, 5))
def test_gaps_are_what_they_would_be_one_by_one(gaps: Gaps, share: int, more: int) -> None:
    lost = numbers(gaps)
    assert gaps.count == len(lost)
    assert [gaps.below(n) for n in range(gaps.total + 1)] == [sum(x < n for x in lost) for n in range(gaps.total + 1)]
    facts = gaps.loss(share, share + more)
    by_slice = facts["by_slice"]
    assert isinstance(by_slice, list)
    assert (len(by_slice), sum(by_slice)) == (SLICES, len(lost))
    if lost:
        index = [n // share * (share + more) + n % share for n in (lost[0], lost[-1])]
        assert [facts["first_index"], facts["last_index"]] == index


@given(gaps=all_gaps(), kept=st.integers(0, 300))
def test_the_first_that_are_kept(gaps: Gaps, kept: int) -> None:
    gaps = replace(gaps, head=0)
    less = gaps.keeping(kept)
    assert set(numbers(less)) >= set(numbers(gaps))
    assert less.total - less.count == min(kept, gaps.total - gaps.count)


def test_a_table_that_is_full_refuses_evicts_or_leaks() -> None:
    held = {}
    for overflow in ("refuse", "evict", "untranslated"):
        device = SimulatedDevice(capacity_forward=1, table_size=80, overflow=overflow)
        gateway = SimulatedGateway(device)
        count = gateway.establish(100, 100, 1000, 0.0)
        held[overflow] = (count.lost.count, count.untranslated, gateway.count_connections())
        assert gateway.reply(100, 100, in_order=True).count == (20 if overflow == "evict" else 0)
    assert held == {"refuse": (20, 0, 80), "evict": (0, 0, 80), "untranslated": (0, 20, 80)}


def test_connections_that_are_drawn_repeat_and_take_one_place_each() -> None:
    device = SimulatedDevice(capacity_forward=1, table_size=800)
    gateway = SimulatedGateway(device)
    established = gateway.establish(10_000, 10_000, 1000, 0.0, drawn_from=700)
    assert (established.lost.count, gateway.count_connections()) == (0, 700)
    gateway.clear_state()
    established = gateway.establish(10_000, 10_000, 1000, 0.0, drawn_from=1000)
    assert (established.lost.count, gateway.count_connections()) == (200, 800)

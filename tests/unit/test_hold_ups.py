"""When others had the CPUs of a gateway, found from moments at which its threads and CPUs were read."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from gatemark.dut.base import HeldUp, HoldUps, ThreadTimes
from gatemark.dut.hold_ups import HOLD_UPS_MAX, HoldUpFinder, Moment

MS = 1_000_000
LOOK_NS = 10 * MS
SOFTIRQ = ThreadTimes(name="ksoftirqd/0", cpu=0, stays=True, ran_ns=0, waited_ns=0)
DAEMON = replace(SOFTIRQ, name="tayga", cpu=None)
THREADS = {14: SOFTIRQ, 70: DAEMON}


def moment(
    number: int,
    *,
    waited: Mapping[int, int] | None = None,
    ran: Mapping[int, int] | None = None,
    all_ran_ns: int | None = None,
    stolen_ns: int | None = None,
) -> Moment:
    """A moment of a row; times of threads in milliseconds."""
    waited, ran = waited or {}, ran or {}
    threads = {thread: (ran.get(thread, 0) * MS, waited.get(thread, 0) * MS) for thread in THREADS}
    stolen = {} if stolen_ns is None else {0: stolen_ns}
    return Moment(at_ns=number * LOOK_NS, threads=threads, all_ran_ns=all_ran_ns, stolen_ns=stolen)


def found_in(*moments: Moment) -> HoldUps:
    finder = HoldUpFinder(THREADS, step_ns=10 * MS)
    for each in moments:
        finder.take(each)
    return finder.found()


def waiting(growth: list[int]) -> HoldUps:
    """What is found where the daemon's wait has grown by so many milliseconds at each moment."""
    return found_in(*(moment(number, waited={70: sum(growth[: number + 1])}) for number in range(len(growth))))


def test_a_wait_ended_since_the_moment_before_and_has_its_length() -> None:
    assert waiting([0, 0, 0, 0, 0, 30, 0]).longest == (
        HeldUp(begin_ns=4 * LOOK_NS - 30 * MS, end_ns=5 * LOOK_NS, lasted_ns=30 * MS),
    )


def test_a_wait_may_have_ended_directly_after_a_moment() -> None:
    """Then others ran before that moment only, and the gateway after it."""
    ran_ns = [0, 0, 20 * MS, 20 * MS, 23 * MS, 26 * MS]
    ran, waited = [0, 0, 0, 0, 3, 6], [0, 0, 0, 0, 8, 8]
    moments = (
        moment(number, waited={70: waited[number]}, ran={70: ran[number]}, all_ran_ns=ran_ns[number] + 5 * MS)
        for number in (0, 1, 3, 4, 5)
    )
    assert [held_up.lasted_ns for held_up in found_in(*moments).longest] == [8 * MS]


def test_what_was_waited_before_the_first_moment_does_not_count() -> None:
    assert waiting([500, 0, 0]) == HoldUps(longest=(), others_ns=0)


def test_slices_far_from_each_other_stay_apart() -> None:
    hold_ups = waiting([0, 1, 0, 0, 0, 1, 0, 0, 1])
    assert [held_up.lasted_ns for held_up in hold_ups.longest] == [MS, MS, MS]


def test_slices_in_each_moment_stay_apart_as_well() -> None:
    """The gateway has nine tenths of the time: its queue is emptied."""
    assert {held_up.lasted_ns for held_up in waiting([0, *[1] * 20]).longest} == {MS}


def sharing(*, waits: int, runs: int) -> list[int]:
    """How long the hold-ups are of a daemon that waits and runs for so many milliseconds of each 10."""
    moments = (moment(number, waited={70: number * waits}, ran={70: number * runs}) for number in range(21))
    return [held_up.lasted_ns // MS for held_up in found_in(*moments).longest]


def test_a_gateway_that_gets_its_cpu_half_of_the_time_is_held_up_once() -> None:
    assert sharing(waits=5, runs=5) == [100]


def test_a_gateway_that_sleeps_in_between_has_emptied_its_queue() -> None:
    assert max(sharing(waits=5, runs=1)) <= 10


def test_a_gateway_that_never_sleeps_is_held_up_no_longer_by_slices() -> None:
    assert sharing(waits=1, runs=9) == [1] * 20


def test_a_slice_after_a_hold_up_is_no_part_of_it() -> None:
    assert [held_up.lasted_ns for held_up in waiting([0, 0, 30, 1, 1]).longest] == [30 * MS, MS, MS]


def test_the_longest_ones_are_kept_and_the_others_added() -> None:
    growth = [0]
    for number in range(HOLD_UPS_MAX + 3):
        growth += [1 if number % 30 == 0 else 2, 0, 0]
    hold_ups = waiting(growth)
    assert len(hold_ups.longest) == HOLD_UPS_MAX
    assert hold_ups.others_ns == 3 * MS
    assert {held_up.lasted_ns for held_up in hold_ups.longest} == {2 * MS}
    assert list(hold_ups.longest) == sorted(hold_ups.longest, key=lambda held_up: held_up.begin_ns)


def test_a_wait_for_another_thread_of_the_gateway_is_none() -> None:
    assert found_in(moment(0), moment(1, waited={14: 8}, ran={70: 8})).longest == ()
    (held_up,) = found_in(moment(0), moment(1, waited={14: 8}, ran={70: 5})).longest
    assert held_up.lasted_ns == 3 * MS


def test_others_held_it_up_for_no_longer_than_they_ran() -> None:
    (held_up,) = found_in(moment(0, all_ran_ns=0), moment(1, waited={70: 8}, all_ran_ns=2 * MS)).longest
    assert held_up.lasted_ns == 2 * MS
    ran = moment(1, waited={70: 8}, ran={14: 2}, all_ran_ns=2 * MS)
    assert found_in(moment(0, all_ran_ns=0), ran).longest == (), "the gateway itself ran"


def test_what_others_ran_in_a_long_wait_is_counted_from_its_begin() -> None:
    """Another CPU of the gateway looks on meanwhile; the wait shows when it has ended."""
    during = [moment(number, all_ran_ns=number * LOOK_NS) for number in range(4)]
    (held_up,) = found_in(*during, moment(4, waited={70: 30}, all_ran_ns=4 * LOOK_NS)).longest
    assert held_up.lasted_ns == 30 * MS


def test_the_thread_that_waited_longest_decides() -> None:
    (held_up,) = found_in(moment(0), moment(1, waited={14: 3, 70: 7})).longest
    assert held_up.lasted_ns == 7 * MS


@pytest.mark.parametrize(("others_ms", "lasted_ms"), [(11, 11), (13, 13), (20, 15)])
def test_threads_of_a_cpu_wait_one_after_another_or_at_once(others_ms: int, lasted_ms: int) -> None:
    """What waited for soft interrupts waits for the daemon afterwards, which slept until then."""
    looks = (moment(0, all_ran_ns=0), moment(1, all_ran_ns=0))
    waits = moment(2, waited={14: 4, 70: 11}, all_ran_ns=others_ms * MS)
    (held_up,) = found_in(*looks, waits).longest
    assert (held_up.begin_ns, held_up.lasted_ns) == (LOOK_NS - 11 * MS, lasted_ms * MS)


def test_threads_of_other_cpus_do_not_wait_in_one_line() -> None:
    threads = {14: SOFTIRQ, 70: replace(SOFTIRQ, name="ksoftirqd/1", cpu=1)}
    finder = HoldUpFinder(threads, step_ns=10 * MS)
    for each in (moment(0, all_ran_ns=0), moment(1, waited={14: 4, 70: 7}, all_ran_ns=20 * MS)):
        finder.take(each)
    (held_up,) = finder.found().longest
    assert held_up.lasted_ns == 7 * MS


@pytest.mark.parametrize(("stolen_ns", "lasted_ns"), [(0, []), (20 * MS, [30 * MS])])
def test_stolen_time_may_be_one_step_longer_than_it_reads(stolen_ns: int, lasted_ns: list[int]) -> None:
    hold_ups = found_in(moment(0, stolen_ns=500 * MS), moment(1, stolen_ns=500 * MS + stolen_ns))
    assert [held_up.lasted_ns for held_up in hold_ups.longest] == lasted_ns


def test_a_thread_that_has_ended_is_left_out() -> None:
    ended = replace(moment(1, waited={14: 2}), threads={14: (0, 2 * MS)})
    (held_up,) = found_in(moment(0), ended, replace(moment(2), threads={14: (0, 2 * MS)})).longest
    assert held_up.lasted_ns == 2 * MS

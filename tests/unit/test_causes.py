"""Why frames were lost: planted causes are named, and nothing else is."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp
from random import Random

import pytest
from tests.loss_tables import Frame, Sent, frames, lossy
from tests.trial_facts import changed

from gatemark.causes.losses import chance_of, choices_among, losses_of
from gatemark.causes.randomness import chance_of_so_few_runs, chance_of_so_many_runs
from gatemark.causes.registry import causes_of
from gatemark.technology import SideName
from gatemark.trial.cause import Cause
from gatemark.trial.form import PLAIN, Bursts, RateStep, TrialForm
from gatemark.trial.host import HostFacts, MiddleFacts
from gatemark.trial.loss import LossAges, LossCount
from gatemark.trial.report import EstablishedConnections, TrialReport
from gatemark.trial.verdict import Verdict

QUIET = HostFacts(read_ns=1, step_ns=1, queue_frames=0, cpus=(), threads=())
FAILED = Verdict(passed=False, reasons=("frames were lost",))


def cause_of(report: TrialReport, form: TrialForm = PLAIN) -> Cause | None:
    causes = causes_of(report, FAILED, form, None)
    assert len(causes) <= 1
    return causes[0] if causes else None


def named(report: TrialReport) -> Cause:
    cause = cause_of(report)
    assert cause is not None
    return cause


class TestFields:
    def test_one_port(self) -> None:
        cause = named(
            lossy(frames(20_000, destination_ports=range(1, 1000)), lambda frame: frame.destination_port == 161)
        )
        assert cause.cause == "fields"
        assert cause.what == "frames with destination port 161"
        assert cause.explained == cause.lost
        assert cause.sentence == (
            f"all {cause.lost} lost frames have destination port 161, and no frame with it arrived"
        )
        assert cause.told.startswith("forward foreground: all ")
        assert cause.is_fixed
        assert cause.chance_log10 is not None
        assert cause.chance_log10 < -6

    def test_two_ports(self) -> None:
        cause = named(
            lossy(frames(20_000, destination_ports=range(1, 2000)), lambda frame: frame.destination_port in (69, 1719))
        )
        assert sorted(cause.what.removeprefix("frames with destination ports ").split(" and ")) == ["1719", "69"]
        assert "no frame with them arrived" in cause.sentence

    def test_a_port_of_one_host(self) -> None:
        """Each of both is met by frames that arrive as well: what takes frames asks for both."""
        sent = frames(40_000, destination_ports=range(1, 30), destination_hosts=range(2, 32))
        cause = named(lossy(sent, lambda frame: (frame.destination_port, frame.destination_host) == (7, 9)))
        of_port = sum(1 for frame in sent if frame.destination_port == 7)
        of_host = sum(1 for frame in sent if frame.destination_host == 9)
        port = f"destination port 7; of {of_port:,} frames with it {cause.lost} were lost"
        host = f"destination address 9; of {of_host:,} frames with it {cause.lost} were lost"
        assert cause.sentence in (
            f"all {cause.lost} lost frames have {port}; all lost frames have destination address 9 as well",
            f"all {cause.lost} lost frames have {host}; all lost frames have destination port 7 as well",
        )
        assert (cause.cause, cause.is_fixed) == ("fields", False)
        report = lossy(sent, lambda frame: (frame.destination_port, frame.destination_host) == (7, 9))
        counts = report.directions[0].foreground
        more = changed(counts, lost=counts.lost + 5, received=counts.received - 5)
        report = changed(report, directions=(changed(report.directions[0], foreground=more),))
        assert "; all lost frames looked at have destination " in named(report).sentence

    def test_a_port_of_all_hosts_is_no_matter_of_hosts(self) -> None:
        """A table in which the address follows from the port: the port alone is enough."""
        sent = [
            replace(frame, destination_host=2 + frame.destination_port % 10)
            for frame in frames(20_000, destination_ports=range(1, 1000))
        ]
        cause = named(lossy(sent, lambda frame: frame.destination_port == 161))
        assert cause.sentence.endswith("lost frames have destination port 161, and no frame with it arrived")

    def test_one_traffic_class(self) -> None:
        """It is what sets them apart, and not a third of all ports that have it."""
        sent = [replace(frame, traffic_class=(0, 40, 184)[frame.source_port % 3]) for frame in frames(20_000)]
        cause = named(lossy(sent, lambda frame: frame.traffic_class == 184))
        assert cause.what == "frames with traffic class 184"
        assert cause.sentence.endswith("lost frames have traffic class 184, and no frame with it arrived")

    def test_more_ports_than_can_be_named(self) -> None:
        ports = {19, 25, 69, 111, 123, 135, 137, 138, 139, 161, 445, 520, 523, 547, 593, 707}
        sent = frames(40_000, destination_ports=range(1, 1000))
        for count in (20_000, 40_000):
            cause = named(lossy(sent[:count], lambda frame: frame.destination_port in ports))
            assert cause.sentence.startswith(f"all {cause.lost} lost frames have 16 of 999 destination ports, such as ")
            assert cause.sentence.endswith(", and no frame with them arrived")
            assert cause.what == "frames with some destination ports"
            assert cause.is_fixed

    def test_ranges(self) -> None:
        cause = named(lossy(frames(50_000), lambda frame: frame.destination_port <= 1023))
        first, last = cause.what.removeprefix("frames with destination ports ").split(" to ")
        assert int(first) < 20
        assert 1000 < int(last) <= 1023

    @pytest.mark.parametrize(
        ("odd", "words"), [(True, "frames with odd source ports"), (False, "frames with even source ports")]
    )
    def test_parity(self, odd: bool, words: str) -> None:
        assert named(lossy(frames(20_000), lambda frame: frame.source_port % 2 == odd)).what == words

    def test_a_bit(self) -> None:
        cause = named(lossy(frames(20_000), lambda frame: frame.destination_port & 8 != 0))
        assert cause.what == "frames with bit 3 set in their destination port"

    def test_a_host(self) -> None:
        sent = frames(20_000, destination_hosts=range(256))
        assert (
            named(lossy(sent, lambda frame: frame.destination_host == 255)).what
            == "frames with destination address 255"
        )

    def test_frames_with_the_value_may_arrive_as_well(self) -> None:
        """A limiter of one port."""
        sent = frames(20_000, destination_ports=range(100, 120))
        cause = named(lossy(sent, lambda frame: frame.destination_port == 107 and frame.index % 3 != 0))
        assert cause.what == "frames with destination port 107"
        assert f"{cause.lost} were lost" in cause.sentence
        assert not cause.is_fixed

    @pytest.mark.parametrize("count", [4000, 16_000])
    def test_all_but_one_value(self, count: int) -> None:
        """Nearly all frames are lost; those that arrive tell more than they."""
        sent = frames(count, source_ports=range(1024, 1536), destination_ports=range(1, 401))
        cause = named(lossy(sent, lambda frame: frame.destination_port != 80))
        assert cause.what == "frames with destination ports 1 to 79 and 81 to 400"
        assert cause.is_fixed

    def test_some_other_losses_do_not_hide_it(self) -> None:
        sent = frames(20_000, destination_ports=range(1, 300))
        cause = named(lossy(sent, lambda frame: frame.destination_port == 161 or frame.index % 10_000 == 7))
        assert cause.what == "frames with destination port 161"
        assert 0.95 <= cause.explained / cause.lost < 1
        assert cause.sentence.startswith(f"{cause.explained} of {cause.lost} lost frames have")

    @pytest.mark.parametrize("lost", [1, 2])
    def test_chance_may_have_done_it(self, lost: int) -> None:
        report = lossy(frames(50_000), lambda frame: frame.index in (1000, 2000)[:lost])
        assert cause_of(report) is None

    def test_the_heaviest_values_of_an_overload_are_chance(self) -> None:
        sent = frames(5000)  # most values are in one frame or none
        assert named(lossy(sent, overloaded(3))).cause == "queue"


class TestFlows:
    def test_flows_that_are_dead(self) -> None:
        dead = set(Random(5).sample(range(64), 17))
        sent = frames(20_000, source_ports=range(1024, 1032), destination_ports=range(1, 9))
        report = lossy(sent, lambda frame: (frame.source_port - 1024) * 8 + frame.destination_port - 1 in dead)
        cause = named(report)
        assert cause.cause == "flows"
        assert cause.sentence.startswith("17 of 64 flows lost everything, the others nothing, such as ")

    def test_pairs_of_hosts(self) -> None:
        sent = frames(20_000, source_hosts=range(1, 9), destination_hosts=range(1, 9))
        cause = named(lossy(sent, lambda frame: (frame.source_host * 5 + frame.destination_host * 3) % 7 == 2))
        assert "pairs of hosts lost everything" in cause.sentence

    @pytest.mark.parametrize("parts", [2, 4, 16])
    def test_flows_of_a_frame_or_two(self, parts: int) -> None:
        """A hash drops a part of the flows, and those that have several frames show it."""
        sent = frames(16_000, source_ports=range(1024, 1536), destination_ports=range(1, 401))
        cause = named(lossy(sent, lambda frame: hash_of(frame) % parts == 1))
        assert cause.cause == "flows" and cause.is_fixed
        assert " flows lost everything, the others nothing, such as " in cause.sentence
        for seed in range(5):
            assert named(lossy(sent, drawn_at(seed, 1 / parts))).cause == "uniform"

    def test_too_few_flows_that_have_several_frames(self) -> None:
        cause = named(lossy(frames(16_000), lambda frame: hash_of(frame) % 4 == 1))
        assert cause.cause == "uniform"
        assert cause.sentence.endswith(
            "as many as chance makes; too few flows have several frames to show whether some of them lose everything"
        )

    def test_flows_of_which_one_has_most_frames(self) -> None:
        """How many have several is not known, so they say nothing."""
        sent = [
            replace(frame, source_port=1, destination_port=1) if frame.index % 2 else frame for frame in frames(8000)
        ]
        assert named(lossy(sent, drawn_at(2, 0.03))).cause == "uniform"

    def test_flows_of_one_frame_say_nothing(self) -> None:
        assert named(lossy(frames(20_000), lambda frame: Random(frame.index).random() < 0.3)).cause == "uniform"


class TestSamples:
    """Trials with more frames than are looked at."""

    @staticmethod
    def one_of(number: int) -> Callable[[Frame], bool]:
        drawn = Random(7)
        return lambda _: drawn.randrange(number) == 0

    def test_the_share_of_a_value_that_was_lost_is_that_of_the_trial(self) -> None:
        sent = frames(100_000, destination_ports=range(1, 200))
        limited = {frame.index for frame in sent if frame.destination_port == 161 and frame.index % 10 == 3}
        cause = named(lossy(sent, lambda frame: frame.index in limited, looks_at=self.one_of(20)))
        words = f"all {len(limited)} lost frames have destination port 161; about "
        assert cause.sentence.startswith(words)
        share = float(cause.sentence.removeprefix(words).removesuffix(" % of the frames with it were lost"))
        assert 7 < share < 14

    def test_few_frames_of_which_none_was_seen_to_arrive_may_have_arrived(self) -> None:
        def loses(frame: Frame) -> bool:
            return frame.destination_port == 161 and frame.index % 2 == 0

        sent = [frame for frame in frames(100_000, destination_ports=range(1, 2000)) if frame.index % 3 != 1]
        arrived = {frame.index for frame in sent if frame.destination_port == 161 and not loses(frame)}
        drawn = self.one_of(57)
        cause = named(lossy(sent, loses, looks_at=lambda frame: frame.index not in arrived and drawn(frame)))
        assert cause.sentence.endswith("destination port 161, and no frame with it that was looked at arrived")
        assert not cause.is_fixed

    @pytest.mark.parametrize("ports", [range(161, 162), range(100, 111)])
    def test_many_frames_of_which_none_was_seen_to_arrive_did_not(self, ports: range) -> None:
        sent = frames(100_000, destination_ports=range(1, 200))
        cause = named(lossy(sent, lambda frame: frame.destination_port in ports, looks_at=self.one_of(20)))
        assert cause.is_fixed

    def test_flows(self) -> None:
        sent = frames(40_000, source_ports=range(1024, 1032), destination_ports=range(1, 9))

        def loses(frame: Frame) -> bool:
            return (frame.source_port + 3 * frame.destination_port) % 16 == 5

        cause = named(lossy(sent, loses, looks_at=self.one_of(10)))
        assert "flows lost every frame that was looked at, the others nothing" in cause.sentence
        assert cause.is_fixed
        assert not named(lossy(sent[:2000], loses, looks_at=self.one_of(60))).is_fixed

    def test_values(self) -> None:
        """The engine counts at most 16,384 connections, each with all of its frames."""
        sent = frames(40_000, source_ports=range(1024, 1032), destination_ports=range(1, 9))
        report = lossy(sent, lambda frame: (frame.source_port + 3 * frame.destination_port) % 16 == 5)
        counts = report.directions[0].foreground
        table = counts.loss_table
        assert table is not None
        flow = next(field for field in table.fields if field.field == "flow")
        half = changed(
            flow, field="connection", values=flow.values // 2, lost=flow.lost // 2, arrived=flow.arrived // 2
        )
        half = changed(half, losing=flow.dead // 2, dead=flow.dead // 2, lost_in_dead=flow.lost // 2)
        counts = changed(counts, loss_table=changed(table, fields=(half,)))
        cause = named(changed(report, directions=(changed(report.directions[0], foreground=counts),)))
        examples = "; ".join(f"connection {value.name}" for value in half.heaviest[:3])
        assert cause.sentence == (f"2 of 32 connections looked at lost everything, the others nothing ({examples})")


class TestTurns:
    def test_every_twelfth_frame(self) -> None:
        cause = named(lossy(frames(20_000), lambda frame: frame.index % 12 == 7))
        assert cause.cause == "residue"
        assert cause.what == "of every 12 frames number 7 (from 0)"


class TestTime:
    def test_one_gap(self) -> None:
        cause = named(lossy(frames(100_000), lambda frame: 42_000 <= frame.index < 45_010))
        assert cause.cause == "gap"
        assert cause.sentence == ("one gap of 30.1ms at 420ms: all 3,010 frames that were sent in it were lost")

    def test_short_gaps_that_are_few_and_far_apart(self) -> None:
        """A stop of 5 ms at 9,000 frames/s is 45 frames, or one less."""
        report = lossy(frames(50_000), lambda frame: frame.index % 12_000 in range(5000, 5200))
        assert named(report).sentence == (
            "4 gaps of 2ms, one every 120ms: all 800 frames that were sent in them were lost"
        )

    def test_short_gaps_that_come_often_are_none(self) -> None:
        """They may be an overload, from some time on."""
        report = lossy(frames(50_000), lambda frame: frame.index > 40_000 and frame.index % 2000 in range(500, 700))
        cause = cause_of(report)
        assert cause is None or cause.cause != "gap"

    def test_gaps_that_the_gateways_queues_counted_are_a_queue_emptied_in_batches(self) -> None:
        report = lossy(frames(60_000), lambda frame: frame.index % 5000 > 3900 and frame.index > 3000)
        assert named(report).cause == "gap"
        port = report.ports["left"]
        counted = {**report.ports, "left": changed(port, peer_queue_drops=report.lost_count)}
        assert cause_of(changed(report, ports=counted)) is None
        stopped = lossy(frames(60_000), lambda frame: 30_000 < frame.index < 33_000)
        assert named(changed(stopped, ports=counted)).cause == "gap", "a gateway that stopped once"

    def test_periodic_gaps(self) -> None:
        report = lossy(frames(60_000), lambda frame: frame.index % 6000 < 600 and frame.index > 600)
        assert named(report).sentence == (
            "9 gaps of 6ms, one every 60ms: all 5,400 frames that were sent in them were lost"
        )

    def test_gaps_without_a_period(self) -> None:
        begins = (7000, 50_000, 60_000, 90_000)
        report = lossy(frames(100_000), lambda frame: any(begin <= frame.index < begin + 1000 for begin in begins))
        assert "the first at 70ms, the last at 900ms" in named(report).sentence

    def test_long_gaps_are_stops_however_many(self) -> None:
        report = lossy(frames(56_000), lambda frame: frame.index // 6250 % 2 == 1)
        assert named(report).sentence.startswith("4 gaps of 62.5ms, one every 125ms: all 25,000 frames")

    def test_the_start(self) -> None:
        cause = named(lossy(frames(50_000), lambda frame: frame.index < 800 and frame.index % 5 != 0))
        assert cause.cause == "start"
        assert "in the first 8ms of the trial" in cause.sentence

    def test_the_end(self) -> None:
        cause = named(lossy(frames(50_000), lambda frame: frame.index >= 31_000))
        assert cause.cause == "end"
        assert cause.sentence.startswith("from 310ms on nothing arrived: all of the last 19,000 frames")

    def test_a_limit_of_few_frames(self) -> None:
        """The few that arrived tell it, as nearly all are lost."""
        cause = named(lossy(frames(8000), lambda frame: frame.index >= 10))
        assert (cause.cause, cause.explained) == ("end", 7990)
        assert cause.sentence == "from 100us on nothing arrived: all of the last 7,990 frames were lost"
        assert cause_of(lossy(frames(8000), lambda frame: frame.index >= 3)) is None

    def test_first_frames_of_flows(self) -> None:
        begun = set()

        def loses(frame: Frame) -> bool:
            flow = frame.source_port
            is_first = flow not in begun
            begun.add(flow)
            return is_first

        sent = frames(50_000, source_ports=range(1024, 3024), destination_ports=range(7, 8))
        cause = named(lossy(sent, loses))
        assert cause.cause == "first_frames"
        assert cause.sentence.startswith("2,000 of 2,000 lost frames were the first of the 2,000 flows")

    def test_an_index_is_no_time_in_bursts(self) -> None:
        form = TrialForm(bursts=Bursts(frames=10, frames_per_second=1_000_000))
        assert cause_of(lossy(frames(50_000), lambda frame: frame.index >= 31_000), form) is None


class TestSpread:
    @pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
    def test_chance(self, share: float) -> None:
        drawn = Random(9)
        assert named(lossy(frames(40_000), lambda _: drawn.random() < share)).cause == "uniform"

    @pytest.mark.parametrize("seed", [351, 614])  # uneven over time; five pairs, where chance makes one
    def test_what_chance_makes_once_in_hundreds_of_times(self, seed: int) -> None:
        assert named(lossy(frames(8000), drawn_at(seed, 0.01))).cause == "uniform"

    def test_a_token_bucket(self) -> None:
        cause = named(lossy(frames(40_000), lambda frame: frame.index > 700 and frame.index * 37 % 100 < 37))
        assert cause.cause == "queue"
        assert not cause.is_fixed

    def test_a_queue_of_one_class_of_a_mix(self) -> None:
        """Every second frame is of the background, which arrives."""
        report = lossy(frames(40_000), lambda frame: frame.index % 2 == 0 and frame.index * 37 % 200 < 74)
        forward = report.directions[0]
        counts = changed(forward.foreground, intended=20_000, offered=20_000, received=20_000 - report.lost_count)
        background = changed(counts, received=20_000, lost=0, loss_table=None)
        cause = named(changed(report, directions=(changed(forward, foreground=counts, background=background),)))
        passed = 50_000 * (20_000 - report.lost_count) // 20_000
        assert f"of 50,000 frames/s {passed:,} passed" in cause.sentence

    @pytest.mark.parametrize("first", [0, 380, 650, 2000])
    @pytest.mark.parametrize("every", [21, 14])
    def test_a_queue_emptied_at_a_rate_that_takes_a_while_to_fill(self, first: int, every: int) -> None:
        """So few losses that each is alone, as chance makes them too: but not at even distances."""
        report = lossy(frames(5676), lambda frame: frame.index > first and frame.index * 100 % (100 * every + 9) < 100)
        cause = cause_of(report)
        assert cause is None or cause.cause == "queue"

    def test_one_of_two_paths_loses_some(self) -> None:
        drawn = Random(3)
        paths = Random(4).choices((0, 1), k=64)

        def loses(frame: Frame) -> bool:
            return paths[(frame.source_port - 1024) * 8 + frame.destination_port - 1] == 1 and drawn.random() < 0.05

        cause = named(lossy(frames(40_000, source_ports=range(1024, 1032), destination_ports=range(1, 9)), loses))
        assert cause.cause == "uniform"
        words = (
            f"were lost independently of time, but not evenly over flows: {sum(paths)} of 64 lost some, most of all "
        )
        assert words in cause.sentence
        assert cause.what == "frames drawn at random, not evenly over flows"

    def test_a_host_loses_more_than_others(self) -> None:
        drawn = Random(4)
        sent = frames(40_000, destination_hosts=range(2, 10))
        cause = named(lossy(sent, lambda frame: drawn.random() < (0.08 if frame.destination_host == 5 else 0.01)))
        assert "not evenly over destination addresses: 8 of 8 lost some, most of all 5, 8" in cause.sentence

    def test_two_filters(self) -> None:
        sent = frames(40_000, destination_ports=range(1, 200), destination_hosts=range(2, 900))
        cause = named(lossy(sent, lambda frame: frame.destination_port == 161 or frame.destination_host == 40))
        assert "not evenly over destination ports" in cause.sentence
        assert cause.sentence.endswith("most of all 161, 100 % of its own")

    def test_one_of_every_hundred_may_be_a_queue_or_not(self) -> None:
        """One load does not tell; counters of queues do."""
        report = lossy(frames(40_000), lambda frame: frame.index % 100 == 7)
        (cause,) = causes_of(report, FAILED, PLAIN, None)
        either = "; or one of every 100 frames is lost at any load: a trial at another load shows which"
        assert (cause.cause, cause.sentence.endswith(either)) == ("queue", True)
        ports = {side: changed(port, peer_queue_drops=report.lost_count) for side, port in report.ports.items()}
        (cause,) = causes_of(changed(report, ports=ports), FAILED, PLAIN, None)
        assert cause.sentence.startswith("a queue overflowed") and "at any load" not in cause.sentence

    def test_one_of_every_hundred_is_said_in_a_short_trial(self) -> None:
        """Of its 40 losses each is in a hundredth of its own, and 60 hundredths have none."""
        cause = named(lossy(frames(4000), lambda frame: frame.index % 100 == 3))
        assert "; or one of every 100 frames is lost at any load" in cause.sentence

    @pytest.mark.parametrize(
        ("loses", "words"),
        [
            (range(10), "or 10 in a row of every 100 frames are lost at any load"),
            (range(99), "or 99 in a row of every 100 frames are lost at any load"),
            ((0, 1, 50, 51, 52), "or about 2 in a row of every 50 frames are lost at any load"),
        ],
    )
    def test_some_in_a_row_of_every_hundred_may_be_a_queue_or_not(self, loses: Sequence[int], words: str) -> None:
        assert words in named(lossy(frames(20_000), lambda frame: frame.index % 100 in loses)).sentence

    def test_losses_more_at_some_times_may_be_a_queue_or_not(self) -> None:
        drawn = Random(3)
        cause = named(lossy(frames(16_000), lambda frame: drawn.random() < 0.3 * frame.index / 16_000))
        assert cause.sentence.endswith(
            "; or frames are lost at some times and not at others, at any load: a trial at another load shows which"
        )

    def test_a_queue_goes_on_to_the_end(self) -> None:
        """What stops by and by, such as quotas of hosts, is none."""
        drawn = Random(3)
        assert cause_of(lossy(frames(4000), lambda frame: drawn.random() < frame.index / 2400)) is None

    def test_a_queue_that_loses_only_some_flows(self) -> None:
        cause = named(lossy(frames(40_000), lambda frame: frame.source_port % 4 > 0 and frame.index * 37 % 100 < 37))
        assert cause.cause == "queue"
        assert "whatever their fields" not in cause.sentence
        assert "throughout the trial, not evenly over source ports: " in cause.sentence

    @pytest.mark.parametrize("share", [0.01, 0.5, 0.97])
    @pytest.mark.parametrize("in_turn", [True, False])
    def test_chance_is_even_over_fields(self, share: float, in_turn: bool) -> None:
        """However many values there are, and although the trial ends with the first frames of a host."""
        for ports, hosts in ((8, 1), (64, 1), (64, 61), (5000, 4), (60_000, 1)):
            sent = frames(
                20_000, destination_ports=range(1, 1 + ports), destination_hosts=range(2, 2 + hosts), seed=ports
            )
            if in_turn:
                of_host = 20_000 // hosts + 20
                sent = Sent(
                    Frame(index=index, destination_port=1 + index % ports, destination_host=2 + index // of_host)
                    for index in range(20_000)
                )
            cause = named(lossy(sent, drawn_at(ports, share)))
            assert "independently of field and time" in cause.sentence

    def test_chance_that_loses_few(self) -> None:
        assert {named(lossy(frames(5676), drawn_at(seed, 0.05))).cause for seed in range(40)} == {"uniform"}

    def test_a_limit_that_directions_share_is_no_chance(self) -> None:
        """A token bucket serves whichever comes first: chance in each direction, but not in both together."""
        alone = []
        for seed in range(10):
            served = [index * 86 % 100 < 86 for index in range(5800)]
            upward = [Random(seed * 5800 + index).random() < 0.6 for index in range(5800)]
            forward = lossy(frames(5800), lambda frame: not (served[frame.index] and upward[frame.index]))  # noqa: B023
            reverse = lossy(frames(5800), lambda frame: not served[frame.index] or upward[frame.index])  # noqa: B023
            alone.append(named(forward).cause)
            causes = causes_of(both_ways(forward, reverse), FAILED, PLAIN, None)
            assert "uniform" not in {cause.cause for cause in causes}
        assert "uniform" in alone

    def test_chance_in_both_directions_is_chance(self) -> None:
        for seed in range(10):
            both = both_ways(*(lossy(frames(5800), drawn_at(2 * seed + way, 0.5)) for way in (0, 1)))
            assert [cause.cause for cause in causes_of(both, FAILED, PLAIN, None)] == ["uniform"] * 2

    def test_queues_that_overflow_are_nothing_else(self) -> None:
        sent = frames(5000)
        named_causes = [cause_of(lossy(sent, overloaded(seed))) for seed in range(40)]
        assert {cause.cause for cause in named_causes if cause is not None} == {"queue"}
        assert sum(cause is not None for cause in named_causes) >= 30

    def test_no_frame_sets_itself_apart_where_none_arrives(self) -> None:
        assert cause_of(lossy(frames(1000), lambda _: True)) is None


def hash_of(frame: Frame) -> int:
    """Return a hash of what a flow is."""
    return zlib.crc32(f"{frame.source_port} {frame.destination_port}".encode())


def drawn_at(seed: int, share: float) -> Callable[[Frame], bool]:
    """Lose a share of all frames, as chance draws them."""
    drawn = Random(seed)
    return lambda _: drawn.random() < share


def both_ways(forward: TrialReport, reverse: TrialReport) -> TrialReport:
    """Return a trial with the losses of two in its directions."""
    return changed(forward, directions=(*forward.directions, changed(reverse.directions[0], direction="reverse")))


def overloaded(seed: int) -> Callable[[Frame], bool]:
    """A queue that is emptied in batches, at a rate that wavers."""
    drawn = Random(seed)
    room, batch = drawn.choice((16, 64, 200, 1000)), drawn.choice((1, 1, 8, 64, 256))
    capacity, jitter = drawn.uniform(0.3, 0.95), drawn.choice((0.0, 0.1, 0.5))
    state = {"queued": 0.0, "credit": 0.0}

    def loses(_: Frame) -> bool:
        state["credit"] += capacity * (1 + jitter * (drawn.random() - 0.5))
        if state["credit"] >= batch:
            state["queued"] = max(0.0, state["queued"] - state["credit"])
            state["credit"] = 0.0
        if state["queued"] + 1 > room:
            return True
        state["queued"] += 1
        return False

    return loses


class TestSpells:
    """Something begins in the trial, or ends in it, and loses frames as chance draws them."""

    @pytest.mark.parametrize(
        ("begin", "end", "words"),
        [
            (20_000, 40_000, r"all [\d,]+ lost frames were sent from 200(\.\d+)?ms on, and "),
            (0, 20_000, r"all [\d,]+ lost frames were sent until 19\d(\.\d+)?ms, and "),
            (10_000, 20_000, r"all [\d,]+ lost frames were sent from 100(\.\d+)?ms to 19\d(\.\d+)?ms, and "),
        ],
    )
    def test_a_time(self, begin: int, end: int, words: str) -> None:
        drawn = Random(5)
        cause = named(lossy(frames(40_000), lambda frame: begin <= frame.index < end and drawn.random() < 0.1))
        assert cause.cause == "spell"
        assert re.match(words, cause.sentence)
        assert cause.sentence.endswith(
            " % of those that were sent then were lost, as chance draws them, whatever their fields"
        )

    def test_half_of_the_hosts_from_some_time_on(self) -> None:
        sent = frames(40_000, destination_hosts=range(2, 34))
        cause = named(lossy(sent, lambda frame: frame.index > 20_000 and frame.destination_host >= 18))
        assert cause.cause == "spell"
        assert "not evenly over destination addresses: 16 of 32 lost some" in cause.sentence


class TestLimitsOfEach:
    """A limit of each value of a field."""

    @staticmethod
    def limited(rate: float, burst: int) -> Callable[[Frame], bool]:
        """Lose what is beyond a rate of each host, tokens for each frame of the trial; 0 is a quota."""
        tokens: dict[int, tuple[float, int]] = {}

        def loses(frame: Frame) -> bool:
            had, since = tokens.get(frame.destination_host, (float(burst), frame.index))
            left = min(float(burst), had + rate * (frame.index - since))
            tokens[frame.destination_host] = (left - 1 if left >= 1 else left, frame.index)
            return left < 1

        return loses

    @pytest.mark.parametrize(("rate", "burst", "arrived"), [(0.006, 5, "29"), (0, 65, "65")])
    def test_of_each_host(self, rate: float, burst: int, arrived: str) -> None:
        sent = frames(5000, destination_hosts=range(2, 34))
        cause = named(lossy(sent, self.limited(rate, burst)))
        assert cause.what == "frames beyond a limit of each destination address"
        assert f"of the 8 that lost most {arrived}" in cause.sentence or " to " in cause.sentence

    def test_hosts_in_turn_are_served_alike_by_any_queue(self) -> None:
        sent = [Frame(index=index, destination_host=2 + index % 32) for index in range(8000)]
        for share in (37, 61, 83):
            cause = cause_of(lossy(sent, lambda frame: frame.index * 1001 % 100 < share))  # noqa: B023
            assert cause is None or cause.cause != "each"

    @pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
    def test_chance_serves_them_otherwise(self, share: float) -> None:
        sent = frames(5000, destination_hosts=range(2, 34))
        assert {named(lossy(sent, drawn_at(seed, share))).cause for seed in range(20)} == {"uniform"}
        queues = [cause_of(lossy(sent, overloaded(seed))) for seed in range(20)]
        assert not any(cause is not None and cause.cause == "each" for cause in queues)


class TestRows:
    """Frames are lost in rows at random times, as the model of Gilbert and Elliott loses them."""

    @pytest.mark.parametrize(("begins", "ends"), [(0.01, 0.1), (0.01, 0.3), (0.05, 0.5)])
    @pytest.mark.parametrize("count", [4000, 40_000])
    def test_good_and_bad_times(self, begins: float, ends: float, count: int) -> None:
        assert {named(lossy(frames(count), gilbert(seed, begins, ends))).cause for seed in range(20)} == {"rows"}

    @pytest.mark.parametrize(
        ("count", "begins", "ends", "seed"),
        [
            (8000, 0.02, 0.1, 86),  # a long row
            (8000, 0.02, 0.1, 642),
            (8000, 0.02, 0.1, 741),
            (8000, 0.02, 0.1, 1208),  # even distances of the first rows
            (4000, 0.05, 0.5, 834),
        ],
    )
    def test_what_chance_makes_of_them_once_in_thousands_of_times(
        self, count: int, begins: float, ends: float, seed: int
    ) -> None:
        assert named(lossy(frames(count), gilbert(seed, begins, ends))).cause == "rows"

    def test_pairs(self) -> None:
        drawn = Random(4)
        lost = {index + second for index in range(20_000) if drawn.random() < 0.01 for second in (0, 1)}
        cause = named(lossy(frames(20_000), lambda frame: frame.index in lost))
        assert cause.cause == "rows"
        assert "rows of 2 on average, which began at random, whatever their fields" in cause.sentence

    def test_bad_times_in_which_some_arrive(self) -> None:
        cause = named(lossy(frames(20_000), gilbert(1, 0.01, 0.1, share=0.7)))
        assert "which began at random, more in some parts of the trial than in others, whatever" in cause.sentence

    def test_queues_that_overflow_lose_in_other_rows(self) -> None:
        for seed in range(100):
            cause = cause_of(lossy(frames(5000), overloaded(seed)))
            assert cause is None or cause.cause not in ("rows", "spell")

    def test_what_queues_have_counted_is_no_row(self) -> None:
        report = lossy(frames(20_000), gilbert(1, 0.01, 0.1))
        ports = {side: changed(port, peer_queue_drops=report.lost_count) for side, port in report.ports.items()}
        assert named(changed(report, ports=ports)).cause == "queue"


def gilbert(seed: int, begins: float, ends: float, share: float = 1.0) -> Callable[[Frame], bool]:
    """Lose a share of the frames of bad times, which begin and end with a probability at each frame."""
    drawn, state = Random(seed), {"bad": False}

    def loses(_: Frame) -> bool:
        was_bad = state["bad"]
        state["bad"] = drawn.random() >= ends if was_bad else drawn.random() < begins
        return was_bad and drawn.random() < share

    return loses


class TestAge:
    """Established connections that a gateway has forgotten."""

    @staticmethod
    def used(ages: LossAges) -> TrialReport:
        report = lossy(frames(20_000), lambda frame: frame.index % 4 == 1 and frame.index > 5000)
        table = report.directions[0].foreground.loss_table
        assert table is not None
        counts = changed(report.directions[0].foreground, loss_table=changed(table, ages=ages))
        return changed(report, directions=(changed(report.directions[0], foreground=counts),))

    def test_a_timeout(self) -> None:
        older = LossCount(lost=800, arrived=0)
        cause = named(self.used(LossAges(lost=810, arrived=15_000, silent_ns=3_000_700_000, after=0, older=older)))
        assert cause.cause == "age"
        assert cause.sentence == (
            "800 of 810 lost frames looked at are of connections that had been silent for about 3s or longer, in both"
            " directions, and none arrived: a timeout is in force"
        )

    def test_half_of_the_old_ones_arrive(self) -> None:
        """Connections are lost for another reason, and each is old at its first frame."""
        older = LossCount(lost=800, arrived=790)
        cause = cause_of(self.used(LossAges(lost=810, arrived=15_000, silent_ns=410_000_000, after=0, older=older)))
        assert cause is None or cause.cause != "age"

    def test_the_timeout_of_some_of_those_in_use_is_longer(self) -> None:
        """Linux gives a UDP connection another timeout with its second reply."""
        ages = LossAges(lost=800, arrived=15_000, silent_ns=3 * 10**9, after=2, older=LossCount(lost=790, arrived=400))
        cause = named(self.used(ages))
        assert cause.cause == "age"
        assert cause.sentence == (
            "790 of 800 lost frames looked at are of connections that had been silent for about 3s or longer, in both"
            " directions, after 2 or more frames in this trial; of 1,190 such frames 790 were lost: a timeout is in"
            " force"
        )

    def test_others_are_as_old(self) -> None:
        older = LossCount(lost=780, arrived=12_000)
        cause = cause_of(self.used(LossAges(lost=810, arrived=15_000, silent_ns=10**9, after=0, older=older)))
        assert cause is None or cause.cause != "age"


class TestTooLarge:
    """Frames that no link behind the gateway carries."""

    REPORT = lossy(frames(2_000), lambda _: True)

    @staticmethod
    def told(report: TrialReport, side: SideName, name: str) -> TrialReport:
        """Return the report if 15 ICMP errors came to a side."""
        port = report.ports[side]
        port = changed(port, foreign=changed(port.foreign, icmp={name: 15}))
        return changed(report, ports={**report.ports, side: port})

    def test_the_gateway_says_so_and_states_its_mtu(self) -> None:
        report = self.told(self.REPORT, "left", "icmpv4 3/4")
        (cause,) = causes_of(report, FAILED, PLAIN, None, (1000,))
        assert cause.sentence == (
            "all 2,000 frames were lost, and 15 ICMP errors say that they are packets too large for a link behind the"
            " gateway: the gateway states an MTU of 1,000 octets"
        )
        assert cause.is_fixed
        (cause,) = causes_of(report, FAILED, PLAIN, None)
        assert cause.what == "packets too large for a link behind the gateway"

    def test_errors_about_something_else_say_nothing(self) -> None:
        assert not causes_of(self.told(self.REPORT, "right", "icmpv6 2/0"), FAILED, PLAIN, None)
        assert not causes_of(self.told(self.REPORT, "left", "icmpv4 3/1"), FAILED, PLAIN, None)

    def test_frames_of_which_some_arrive_fit(self) -> None:
        some = self.told(lossy(frames(20_000), lambda frame: frame.index % 12 == 7), "left", "icmpv4 3/4")
        assert [cause.cause for cause in causes_of(some, FAILED, PLAIN, None)] == ["residue"]


class TestHost:
    """What the gateway's host counted."""

    REPORT = lossy(frames(20_000), overloaded(3))
    LOST = REPORT.lost_count

    def cause(self, report: TrialReport, **counters: int) -> str | None:
        host = changed(QUIET, counters={name.replace("_of_", "."): count for name, count in counters.items()})
        causes = causes_of(report, FAILED, PLAIN, host)
        return causes[0].sentence if causes else None

    def test_as_many_as_were_lost_are_the_cause(self) -> None:
        sentence = self.cause(self.REPORT, conntrack_of_chaintoolong=self.LOST)
        assert sentence is not None
        assert "chaintoolong) +" in sentence
        assert f"as many as the {self.LOST:,} frames" in sentence

    def test_lookups_begun_again_lose_nothing(self) -> None:
        sentence = self.cause(self.REPORT, conntrack_of_search_restart=self.LOST)
        assert sentence is not None
        assert sentence.startswith("a queue overflowed")

    @pytest.mark.parametrize("share", [0.5, 2])
    def test_another_number_is_none(self, share: float) -> None:
        sentence = self.cause(self.REPORT, conntrack_of_chaintoolong=int(self.LOST * share))
        assert sentence is not None
        assert sentence.startswith("a queue overflowed")

    def test_what_sets_frames_apart_comes_first(self) -> None:
        report = lossy(frames(20_000, destination_ports=range(1, 100)), lambda frame: frame.destination_port == 7)
        sentence = self.cause(report, ipext_of_InNoRoutes=report.lost_count)
        assert sentence is not None
        assert "destination port 7" in sentence

    def test_a_queue_that_overflows_is_no_other_cause(self) -> None:
        sentence = self.cause(self.REPORT, softnet_of_dropped=self.LOST)
        assert sentence is not None
        assert sentence.startswith("a queue overflowed")

    def test_a_queue_that_loses_connections_has_counted_them(self) -> None:
        """A table that refuses connections loses frames much as a queue does."""
        connections = EstablishedConnections(phase="establish", count=20_000, established=10_000)
        report = changed(self.REPORT, connections=connections)
        assert self.cause(report) is None
        assert self.cause(report, softnet_of_dropped=self.LOST) is not None
        ports = {side: changed(port, peer_queue_drops=self.LOST) for side, port in report.ports.items()}
        assert self.cause(changed(report, ports=ports)) is not None


class TestWhatIsAsked:
    REPORT = lossy(frames(20_000), lambda frame: frame.index % 12 == 7)

    def test_a_trial_that_counts_and_failed(self) -> None:
        assert causes_of(self.REPORT, FAILED, PLAIN, None)
        assert not causes_of(self.REPORT, None, PLAIN, None)
        assert not causes_of(self.REPORT, Verdict(passed=True), PLAIN, None)
        assert not causes_of(self.REPORT, FAILED, TrialForm(step=RateStep(after_ns=1, frames_per_second=1)), None)


class TestChance:
    def test_is_an_upper_bound(self) -> None:
        """Of six frames drawn, five lie in some fifth of what was offered."""
        drawn = Random(3)
        tries, lost, values = 20_000, 6, 5
        hits = 0
        for _ in range(tries):
            chosen = [drawn.randrange(values) for _ in range(lost)]
            hits += max(chosen.count(value) for value in range(values)) >= 5
        whole = LossCount(lost=lost, arrived=6000 * values - lost)
        bound = chance_of(LossCount(lost=5, arrived=5995), whole, choices_among(values, 1))
        assert hits / tries <= min(1.0, exp(bound))

    def test_is_an_upper_bound_of_runs(self) -> None:
        """Of all ways to lose six of eleven frames, the first one and the last one among them."""
        every = [
            next(losses_of(lossy(frames(11), lambda frame: frame.index in {0, 10, *inner}), PLAIN, None, ()))  # noqa: B023
            for inner in combinations(range(1, 10), 4)
        ]
        runs = [losses.counts.loss.runs for losses in every]
        assert set(runs) == set(range(2, 7))
        for losses, count in zip(every, runs, strict=True):
            fewer = sum(other <= count for other in runs) / len(runs)
            more = sum(other >= count for other in runs) / len(runs)
            assert fewer <= exp(chance_of_so_few_runs(losses)) * (1 + 1e-9)
            assert more <= exp(chance_of_so_many_runs(losses)) * (1 + 1e-9)

    def test_nothing_stands_out_where_everything_is_inside(self) -> None:
        whole = LossCount(lost=10, arrived=30)
        assert chance_of(whole, whole, 0.0) == 0.0
        assert chance_of(LossCount(lost=2, arrived=18), whole, 0.0) == 0.0
        assert choices_among(5, 5) == 0.0


class TestPlaces:
    """Which of two gateways in a row lost frames."""

    @staticmethod
    def told(report: TrialReport, *, handed: int, direction: str = "forward") -> list[Cause]:
        """Return the causes where the first gateway of a direction handed so many frames to the link between both."""
        middle = MiddleFacts(forward=handed, reverse=handed)
        directions = [changed(each, direction=direction) for each in report.directions]
        turned = changed(report, directions=tuple(directions))
        return list(causes_of(turned, FAILED, PLAIN, changed(QUIET, middle=middle)))

    @pytest.mark.parametrize(
        ("direction", "first", "second"),
        [
            ("forward", "the customer's gateway", "the provider's gateway"),
            ("reverse", "the provider's gateway", "the customer's gateway"),
        ],
    )
    def test_the_link_between_both_tells_them_apart(self, direction: str, first: str, second: str) -> None:
        report = lossy(frames(20_000), lambda frame: frame.index in (1000, 2000, 3000))
        for handed, words in ((19_997, f"3 frames were lost in {first}"), (20_000, f"3 frames were lost in {second}")):
            (cause,) = self.told(report, handed=handed, direction=direction)
            assert (cause.cause, cause.sentence, cause.explained) == ("gateway", words, 3)
        (cause,) = self.told(report, handed=19_999, direction=direction)
        assert cause.sentence == f"3 frames were lost: 1 in {first}, 2 in {second}"
        assert cause.what == f"lost in {first} and in {second}"

    def test_it_is_told_beside_what_sets_frames_apart(self) -> None:
        report = lossy(frames(20_000, destination_ports=range(1, 1000)), lambda frame: frame.destination_port == 161)
        (cause,) = self.told(report, handed=20_000)
        assert cause.what == "frames with destination port 161"
        assert cause.sentence.endswith("; lost in the provider's gateway")

    @pytest.mark.parametrize("handed", [19_996, 20_001])
    def test_counts_that_contradict_the_losses_say_nothing(self, handed: int) -> None:
        report = lossy(frames(20_000), lambda frame: frame.index in (1000, 2000, 3000))
        assert self.told(report, handed=handed) == []

    def test_icmp_errors_that_cross_the_link_say_nothing(self) -> None:
        """The provider's gateway loses all; its errors about forward frames come to the link as reverse frames."""
        forward = lossy(frames(20_000), lambda frame: frame.index % 400 == 0)
        reverse = lossy(frames(20_000), lambda frame: frame.index % 333 == 5)
        report = both_ways(forward, reverse)
        middle = MiddleFacts(forward=20_000, reverse=20_000 - reverse.lost_count + forward.lost_count)
        counted = changed(QUIET, middle=middle, counters={"icmp.OutDestUnreachs": forward.lost_count})
        withheld = changed(QUIET, middle=middle, counters={"icmp.OutRateLimitGlobal": 50})
        port = report.ports["left"]
        shown = changed(port, foreign=changed(port.foreign, icmp={"icmpv4 3/1": forward.lost_count}))
        answered = changed(report, ports={**report.ports, "left": shown})
        for each, host, said in (
            (report, counted, False),
            (answered, changed(QUIET, middle=middle), False),
            (report, withheld, True),
        ):
            sentences = [cause.sentence for cause in causes_of(each, FAILED, PLAIN, host)]
            assert len(sentences) == 2
            assert any("gateway" in sentence for sentence in sentences) is said

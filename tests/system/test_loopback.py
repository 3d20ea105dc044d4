"""What is sent on a pair of rings comes back whole, for every combination of settings, as an ordinary user.

No gateway, no huge pages, no rights: whatever is missing or wrong here is the Tester's own fault. What it sends,
and what it expects behind a gateway, is also decoded by a program that shares nothing with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system.frame_expectation import complaints
from tests.system.independent_decoder import Decoded, decode_capture, write_capture
from tests.system.loopback_product import VLANS, Combination, pairs, prefixes, sample, shapes, trailers, values
from tests.system.machine import missing, nightly_but, ordinary_engine
from tests.trial_facts import blank

from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine
from gatemark.facts import OneWay
from gatemark.technology import SideName
from gatemark.trial.cell import Cell
from gatemark.trial.report import Foreign, TrialReport, read_report
from gatemark.trial.request import frames_request, open_request, trial_request

MISSING = missing("setpriv", "tshark")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FRAMES_PER_SECOND = 500_000
LONG_DRAIN_NS = 300_000_000
"""If the worker was kept from its CPU, frames may still lie in the ring when a short drain ends."""
NO_GIVING_UP_NS = 60_000_000_000
"""How late the Tester is says nothing about whether frames come back whole."""


@contextmanager
def opened(campaign: Campaign) -> Iterator[EngineClient]:
    """Open the ports of a campaign in an engine without rights."""
    with ordinary_engine() as (executable, _), start_engine(executable=executable) as engine:
        answer = engine.open({**open_request(campaign, []), "huge_pages": "never"})
        assert answer["huge_pages"] is False
        yield engine


class LoopBack:
    """Makes trials on one pair of rings; the numbers of its trials differ."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine
        self._numbers = itertools.count(1)

    def faults_of(self, campaign: Campaign, cell: Cell) -> list[str]:
        """Make one trial and say what did not come back as it was sent."""
        faults = whole(self._trial(campaign, cell, drain_ns=campaign.trial.drain_ns))
        if faults and all(" lost" in fault for fault in faults):
            faults = whole(self._trial(campaign, cell, drain_ns=LONG_DRAIN_NS))
        return faults

    def _trial(self, campaign: Campaign, cell: Cell, *, drain_ns: int) -> TrialReport:
        body = trial_request(
            campaign,
            cell,
            frames_per_second=FRAMES_PER_SECOND,
            duration_ns=campaign.trial.duration_ns,
            trial_number=next(self._numbers),
        )
        body["waits"]["drain_ns"] = drain_ns
        body["give_up_lateness_ns"] = NO_GIVING_UP_NS
        return read_report(self._engine.trial(body))


def whole(report: TrialReport) -> list[str]:
    """Name everything by which a trial differs from one in which each frame came back once, as it was sent."""
    result = []
    if not report.directions:
        result.append("no direction")
    for direction, kind, counts in report.counts():
        name = f"{direction} {kind}"
        if counts.offered != counts.intended or counts.intended == 0:
            result.append(f"{name}: {counts.offered} of {counts.intended} offered")
        if counts.lost or counts.received != counts.offered - counts.faulty:
            result.append(f"{name}: {counts.lost} lost, {counts.received} received of {counts.offered}")
        if counts.faulty or any(counts.faults.values()):
            result.append(f"{name}: {counts.faulty} faulty {dict(counts.faults)}")
        if counts.duplicate or counts.reordered:
            result.append(f"{name}: {counts.duplicate} duplicate, {counts.reordered} reordered")
    for side, port in report.ports.items():
        if port.foreign != blank(Foreign) or any(port.own_drops.values()):
            result.append(f"{side}: {port.foreign}, {port.own_drops}")
    return result


def check_all(combinations: Iterable[Combination]) -> None:
    """Make a trial of each; the ports are opened once, so all must have the same VLAN."""
    rest = iter(combinations)
    first = next(rest)
    broken: dict[Combination, list[str]] = {}
    with opened(first.campaign()) as engine:
        rings = LoopBack(engine)
        for combination in itertools.chain([first], rest):
            campaign = combination.campaign()
            (cell,) = cells_of(campaign)
            faults = rings.faults_of(campaign, cell)
            if faults:
                broken[combination] = faults
            assert len(broken) < 10, broken
    assert not broken


def shapes_with(vlan: int | None, *, all_of_them: bool) -> list[Combination]:
    return sample((combination for combination in shapes() if combination.vlan == vlan), all_of_them=all_of_them)


def trailers_with(vlan: int | None) -> list[Combination]:
    return [combination for combination in trailers() if combination.vlan == vlan]


def test_a_sample_of_a_product_has_every_pair_of_values() -> None:
    lengths = [len(list(product)) for product in (shapes(), values(), prefixes(), trailers())]
    assert lengths == [2 * 1152, 2048, 192, 2 * 96]
    for vlan in VLANS:
        whole_product = shapes_with(vlan, all_of_them=True)
        assert pairs(shapes_with(vlan, all_of_them=False)) == pairs(whole_product)
    assert pairs(sample(values(), all_of_them=False)) == pairs(values())


@pytest.mark.endure
@pytest.mark.parametrize("vlan", nightly_but({0}, "the same with a tag", VLANS))
def test_every_shape_of_frame_comes_back_whole(vlan: int | None, endures: bool) -> None:
    check_all([*shapes_with(vlan, all_of_them=endures), *trailers_with(vlan)])


@pytest.mark.endure
def test_every_way_of_varying_values_comes_back_whole(endures: bool) -> None:
    check_all(sample(values(), all_of_them=endures))


def test_every_prefix_length_comes_back_whole() -> None:
    check_all(prefixes())


CAPTURED_FRAMES = 10
"""Of each direction of each combination: as many as the mix 9/10 takes to come round."""
PREVIEWED_FRAMES = 4
WAYS: tuple[tuple[OneWay, SideName], ...] = (("forward", "left"), ("reverse", "right"))


def wrong(iterable: Iterable[tuple[Combination, str]]) -> list[str]:
    """Return the first complaints, to be shown."""
    return [f"{combination}: {complaint}" for combination, complaint in itertools.islice(iterable, 5)]


@pytest.mark.endure
@pytest.mark.parametrize("vlan", nightly_but({1}, "the same without a tag", VLANS))
def test_capture_of_every_shape_is_right_to_an_independent_decoder(vlan: int | None, endures: bool) -> None:
    combinations = [*shapes_with(vlan, all_of_them=endures), *trailers_with(vlan)]
    with ordinary_engine() as (executable, folder):
        send_into_capture(executable, folder, combinations)
        for way, side in WAYS:
            frames = decode_capture(folder / f"{side}.pcap")
            result = (
                (combination, text)
                for combination in combinations
                for text in complaints(combination, way, take(frames, CAPTURED_FRAMES))
            )
            assert wrong(result) == []
            assert list(frames) == []


def send_into_capture(executable: Path, folder: Path, combinations: list[Combination]) -> None:
    """Send the first frames of each combination into `left.pcap` and `right.pcap`."""
    port = f"pcap:{folder}/{{side}}.pcap"
    duration_ns = CAPTURED_FRAMES * 1_000_000_000 // FRAMES_PER_SECOND
    with start_engine(executable=executable) as engine:
        for number, combination in enumerate(combinations, 1):
            campaign = combination.campaign(port=port)
            if number == 1:
                engine.open(open_request(campaign, []))
            (cell,) = cells_of(campaign)
            body = trial_request(
                campaign, cell, frames_per_second=FRAMES_PER_SECOND, duration_ns=duration_ns, trial_number=number
            )
            body["waits"]["drain_ns"] = 0
            body["give_up_lateness_ns"] = NO_GIVING_UP_NS
            report = read_report(engine.trial(body))
            assert [direction.offered for direction in report.directions] == [CAPTURED_FRAMES] * 2


def take(frames: Iterator[Decoded], count: int) -> list[Decoded]:
    """Take the next frames of a capture; fails if there are fewer."""
    taken = list(itertools.islice(frames, count))
    assert len(taken) == count
    return taken


@pytest.mark.endure
def test_previewed_frames_are_right_to_an_independent_decoder(tmp_path: Path, endures: bool) -> None:
    combinations = [*sample(values(), all_of_them=endures), *prefixes(), *trailers()]
    frames: dict[tuple[OneWay, str], list[bytes]] = {(way, key): [] for way, _ in WAYS for key in ("sent", "expected")}
    with start_engine() as engine:
        for combination in combinations:
            campaign = combination.campaign(kind="ports", port="pcap:{side}.pcap")
            (cell,) = cells_of(campaign)
            answer = engine.frames(frames_request(campaign, cell, count=PREVIEWED_FRAMES))
            for item in answer["frames"]:
                for key in ("sent", "expected"):
                    frames[item["direction"], key].append(bytes.fromhex(item[key]))
    for (way, key), octets in frames.items():
        assert len(octets) == PREVIEWED_FRAMES * len(combinations)
        capture = tmp_path / f"{way}-{key}.pcap"
        write_capture(capture, octets)
        decoded = decode_capture(capture)
        result = (
            (combination, f"{way} {key}: {text}")
            for combination in combinations
            for text in complaints(combination, way, take(decoded, PREVIEWED_FRAMES), behind_gateway=key == "expected")
        )
        assert wrong(result) == []

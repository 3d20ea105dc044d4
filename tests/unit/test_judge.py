"""The independent judge finds what was changed in a result, and nothing in one that was not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.judge import judged
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.session import measure

CAMPAIGN = """
name = "judged"
repetitions = 3
testbed = {kind = "loopback"}
gateway = {technology = "router44"}
traffic = {frame_sizes = {family = "ipv4", octets = [64]}}
trial = {duration = "1s"}
throughput = {maximum = "400k", resolution = "1k", search_duration = "100ms"}
frame_loss = {rates = ["20k", "100k", "300k"]}
delay = {load = "50%", duration = "61s"}
"""
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("judged")
    (place / "campaign.toml").write_text(CAMPAIGN)
    device = SimulatedDevice(capacity_forward=123_456, noise=0.02, delays_ns=(20_000, 21_000))
    return measure(
        place / "campaign.toml", output=place / "out", equipment=simulated_equipment(device), report=False
    ).folder


def runs(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {run["procedure"]: run for run in document["runs"]}


def higher_bound(document: dict[str, Any]) -> None:
    runs(document)["throughput"]["repetitions"][1]["lower_bound"] += 1000


def higher_median(document: dict[str, Any]) -> None:
    runs(document)["throughput"]["rate_per_direction"]["median"] += 1


def lower_upper_bound(document: dict[str, Any]) -> None:
    runs(document)["throughput"]["repetitions"][0]["upper_bound"] -= 1


def fewer_invalid(document: dict[str, Any]) -> None:
    runs(document)["throughput"]["trials"] -= 1


def less_loss(document: dict[str, Any]) -> None:
    runs(document)["frame_loss"]["points"][0]["losses"][0]["undelivered"][0] += 1


def lower_loss_rate(document: dict[str, Any]) -> None:
    runs(document)["frame_loss"]["points"][-1]["losses"][0]["loss_percent"]["median"] += 0.01


def shorter_latency(document: dict[str, Any]) -> None:
    runs(document)["delay"]["points"][0]["series"][0]["latency"]["typical_ns"]["values"][0] -= 1


def shorter_delay(document: dict[str, Any]) -> None:
    runs(document)["delay"]["points"][0]["series"][0]["delay_ns"]["p99"]["summary"]["median"] -= 1


EDITS = (
    higher_bound, higher_median, lower_upper_bound, fewer_invalid, less_loss, lower_loss_rate, shorter_latency,
    shorter_delay,
)  # fmt: skip


def test_a_result_that_follows_is_judged_alike(folder: Path) -> None:
    assert judged([folder]) == []


@pytest.mark.parametrize("edit", EDITS)
def test_a_figure_that_does_not_follow_is_found(folder: Path, tmp_path: Path, edit: Edit) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    document = json.loads((other / "result.json").read_text())
    edit(document)
    (other / "result.json").write_text(json.dumps(document))
    assert judged([other])


@pytest.mark.parametrize("at", [0, -1])
def test_a_verdict_that_does_not_follow_is_found(folder: Path, tmp_path: Path, at: int) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    lines = (other / "trials.jsonl").read_bytes().splitlines(keepends=True)
    lines[at] = lines[at].replace(b'"received":', b'"received":1', 1)
    (other / "trials.jsonl").write_bytes(b"".join(lines))
    assert any("CRC32C" in words for words in judged([other]))

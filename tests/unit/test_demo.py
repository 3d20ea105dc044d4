"""The bundled campaigns are whole, named for what they measure, and short."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from gatemark.campaign.columns import load_series
from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import load_campaign
from gatemark.campaign.plan import plan_of
from gatemark.cli import run
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.demo import DEMOS, DemoName, demo_file
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import TestBedError
from gatemark.laboratory.jobs import Job
from gatemark.procedures.connection_establishment_rate.table import ConnectionEstablishmentRateTable
from gatemark.procedures.throughput.table import ThroughputTable
from gatemark.series.parameters import parameters_of
from gatemark.technology import TECHNOLOGIES

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 120
"""All of them together, half-way between the fewest and the most trials, without repeated invalid ones.

`make demo` measures for less than three minutes. The most is that of gateways of millions of frames/s, which the
searches climb up to, as no demo types a maximum."""

STATEFUL, STATELESS = DEMOS[:2], DEMOS[2:]


def demo_campaign(name: DemoName) -> Campaign:
    return complete_campaign(load_campaign(demo_file(name)))


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_is_whole_and_named_for_its_gateway(name: DemoName) -> None:
    campaign = demo_campaign(name)
    assert campaign.name == name
    throughput = campaign.table(ThroughputTable)
    assert throughput.loss_tolerance == 0
    assert throughput.maximum is None
    establishment = next(
        (table for table in campaign.tables if isinstance(table, ConnectionEstablishmentRateTable)), None
    )
    assert establishment is None or establishment.maximum is None


@pytest.mark.parametrize("name", STATELESS)
def test_a_stateless_demo_measures_throughput_and_then_delays(name: DemoName) -> None:
    runs = plan_of(demo_campaign(name)).runs
    procedures = ["throughput", "delay"] if name == "linux-router4" else ["throughput"]
    assert [run.procedure for run in runs] == procedures
    assert {run.cell.direction for run in runs} == {"bidirectional"}


@pytest.mark.parametrize("name", STATEFUL)
def test_stateful_demos_come_first_and_fill_two_sizes_of_the_table(name: DemoName) -> None:
    campaign = demo_campaign(name)
    runs = plan_of(campaign).runs
    assert campaign.technology.is_stateful
    assert [run.procedure for run in runs] == [
        procedure for procedure in ("connection_establishment_rate", "throughput", "delay") for _ in range(2)
    ]
    small, large = (run.cell.connections or 0 for run in runs[:2])
    assert 4 * small <= large
    assert [run.cell.connections for run in runs[2:]] == [small, large] * 2
    for count in (small, large):
        space = tuple_space(campaign, count)
        assert space.product == count
        assert space.destination_ports.count > 1  # otherwise nothing shows how the gateway maps


def test_every_campaign_file_of_the_package_has_a_name() -> None:
    files = {path.stem for path in demo_file(DEMOS[0]).parent.glob("*.toml")}
    assert files == set(get_args(DemoName)) == {*DEMOS, "ipv4aas"}


def test_the_comparison_has_each_gateway_alone_and_both_in_a_row() -> None:
    """The demo's columns are those of the example, which measures more of each."""
    files = ROOT / "examples" / "ipv4aas" / "ipv4aas.toml", demo_file("ipv4aas")
    (long, _), (vary,) = (tomllib.loads(file.read_text(encoding="utf-8"))["vary"] for file in files)
    assert all(long[key] == vary[key] for key in ("titles", "testbed.recipe"))
    technologies = [load_recipe(name).technology for name in vary["testbed.recipe"]]
    for first, second, both in zip(technologies[::3], technologies[1::3], technologies[2::3], strict=True):
        assert both.in_a_row == (first.name, second.name)
    assert {row.name for row in technologies[2::3]} == {row.name for row in TECHNOLOGIES.values() if row.in_a_row}
    has_connections = [row.is_stateful for row in technologies]
    assert [not without for without in vary["without"]] == has_connections
    assert ["connections" not in without for without in long["without"]] == has_connections


def test_the_comparison_asks_of_providers_gateways_how_they_do_with_more_customers() -> None:
    columns = load_series(ROOT / "examples" / "ipv4aas" / "ipv4aas.toml").columns
    subscribers: dict[str, list[int | None]] = {}
    for column in columns:
        known = parameters_of(complete_campaign(column.campaign))
        subscribers.setdefault(known.technology, []).append(known.subscribers)
    for row in TECHNOLOGIES.values():
        if row.in_a_row is not None:
            customer, provider = row.in_a_row
            assert (subscribers[customer], subscribers[row.name]) == ([None], [None])
            assert subscribers[provider] == [1, 100, 10_000]


def test_all_demos_together_are_short() -> None:
    fewest = most = 0
    for name in DEMOS:
        expected = estimate(demo_campaign(name))
        fewest, most = fewest + expected.seconds_min, most + expected.seconds_max
    assert (fewest + most) / 2 <= SECONDS_MAX


def test_the_demo_is_a_run_of_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(files: Sequence[Path], output: Path) -> tuple[Job, ...]:
        assert [file.stem for file in files] == [*DEMOS]
        raise TestBedError(what="not here", where=str(output), fix="")

    monkeypatch.setattr(run, "begin_several", begin)
    assert main(["demo", "--output", str(tmp_path / "out")]) == TestBedError.exit_status
    assert f"{tmp_path / 'out'}: not here" in capsys.readouterr().err

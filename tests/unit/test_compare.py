"""`gatemark compare`: what is the same quantity, what may be compared, what is shown, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.cli.main import main
from gatemark.compare.condition import condition_of, read_limits
from gatemark.compare.document import ComparedQuantity, ComparisonDocument
from gatemark.compare.judge import Placed, compared, matched, pooled
from gatemark.compare.run import compare_folders
from gatemark.consoles import WIDTH_MAX
from gatemark.errors import ConfigError
from gatemark.procedures.delay.result import IPDV
from gatemark.results.coordinates import Coordinate
from gatemark.results.quantity import Better, Quantity, QuantityKind
from gatemark.results.store import ResultFolder
from gatemark.series.run import measure_series
from gatemark.session import measure

WriteCampaign = Callable[..., Path]
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "comparison.schema.json"


def placed(
    *values: float,
    name: str = "throughput",
    better: Better | None = "higher",
    where: dict[str, Coordinate] | None = None,
    **fields: Any,
) -> Placed:
    ordered = sorted(values)
    known: dict[str, Any] = {"median": ordered[len(ordered) // 2]} if ordered else {}
    quantity = Quantity(
        run=1,
        procedure="throughput",
        name=name,
        better=better,
        coordinates={"direction": "forward", "frame_size_ipv4": 64, **(where or {})},
        values=values,
        repetitions=len(values),
        is_headline=True,
        **{"unit": "frames/s", **known, **fields},
    )
    return Placed(quantity=quantity, where={})


def row_of(*sides: Placed, confidence: Fraction = Fraction(95, 100)) -> ComparedQuantity:
    quantities, _ = compared(matched([[side] for side in sides]), "ABC"[: len(sides)], confidence)
    (row,) = quantities
    return row


LEAST, MIDDLE, MOST = IPDV
FAST, SLOW = (100, 101, 99, 102, 98), (80, 81, 79, 82, 78)


@pytest.mark.parametrize(
    ("first", "second", "better", "judgement"),
    [
        (FAST, SLOW, "higher", "worse"),
        (SLOW, FAST, "higher", "better"),
        (FAST, SLOW, "lower", "better"),
        (SLOW, FAST, "lower", "worse"),
        (FAST, SLOW, None, "different"),
        (FAST, FAST, "higher", "no_difference"),
    ],
)
def test_which_way_is_worse_is_known_by_the_quantity(
    first: tuple[int, ...], second: tuple[int, ...], better: Better | None, judgement: str
) -> None:
    (comparison,) = row_of(placed(*first, better=better), placed(*second, better=better)).comparisons
    assert comparison.judgement == judgement
    assert comparison.ratio == sorted(second)[2] / sorted(first)[2]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"limited_by": "tester", "lower_bound": 99}, "B: the Tester was the limit"),
        ({"limited_by": "host", "lower_bound": 99}, "B: the gateway's host was not quiet"),
        ({"limited_by": "maximum", "lower_bound": 99}, "B: the highest load allowed was the limit"),
        ({"median": None}, "B: nothing was measured, or not in every repetition"),
        ({"is_certain": False}, "B: its repetitions differ too much"),
    ],
)
def test_what_is_no_figure_of_the_gateway_is_never_compared(fields: dict[str, Any], reason: str) -> None:
    row = row_of(placed(*FAST), placed(*FAST, **fields))
    (comparison,) = row.comparisons
    assert (comparison.judgement, comparison.ratio, comparison.low, comparison.high) == ("not_judged", None, None, None)
    assert comparison.reason == reason
    figure = row.figures[1]
    assert (figure.figure, figure.p1, figure.p99) == (None, None, None)
    assert figure.at_least == fields.get("lower_bound")
    (limit,) = read_limits(["throughput worse than 5%"])
    assert condition_of(limit, [row]).outcome == "cannot_be_judged"


def test_too_few_repetitions_are_said_to_be_too_few() -> None:
    (comparison,) = row_of(placed(100, 101, 102), placed(50, 51, 52)).comparisons
    assert comparison.ratio == 51 / 101
    assert comparison.judgement == "not_judged"
    assert comparison.reason == "too few values: 3 and 3; 4 of each would do"


def test_a_figure_without_values_is_shown_and_not_judged() -> None:
    (comparison,) = row_of(placed(median=100), placed(median=50)).comparisons
    assert comparison.ratio == 0.5
    assert comparison.reason == "A: there is one figure for all repetitions, and no value of each"


def test_values_of_zero_are_judged_by_their_difference() -> None:
    row = row_of(placed(0, 0, 0, 0, 0, better="lower", unit="%"), placed(3, 2, 3, 4, 3, better="lower", unit="%"))
    (comparison,) = row.comparisons
    assert (comparison.interval_of, comparison.ratio, comparison.judgement) == ("difference", None, "worse")
    limit, may = read_limits(["throughput worse than 5%", "throughput may be worse than 5%"])
    assert condition_of(limit, [row]).outcome == "met"
    same = row_of(placed(0, 0, 0, 0, 0, better="lower", unit="%"), placed(0, 0, 0, 0, 0, better="lower", unit="%"))
    assert condition_of(limit, [same]).outcome == condition_of(may, [same]).outcome == "not_met"


@pytest.mark.parametrize(
    ("kind", "first", "second", "ratio", "judgement", "outcome", "reason"),
    [
        (LEAST, -20, -400, None, "worse", "met", "1900.0 % worse to 1900.0 % worse: all of it is above 5%"),
        (LEAST, -400, -20, None, "better", "not_met", "95.0 % better to 95.0 % better: none of it is above 5%"),
        (LEAST, -20, 0, None, "better", "not_met", "100.0 % better to 100.0 % better: none of it is above 5%"),
        (MIDDLE, -1, 1, None, "different", "cannot_be_judged", "neither more nor less of it is better"),
        (MIDDLE, 1, -1, None, "different", "cannot_be_judged", "neither more nor less of it is better"),
        (MOST, 20, 400, 20, "worse", "met", "1900.0 % worse to 1900.0 % worse: all of it is above 5%"),
    ],
)
def test_differences_of_delays_are_better_closer_to_zero(
    kind: QuantityKind, first: int, second: int, ratio: float | None, judgement: str, outcome: str, reason: str
) -> None:
    sides = (placed(*[value] * 6, name=kind.name, better=kind.better, unit=kind.unit) for value in (first, second))
    row = row_of(*sides)
    (comparison,) = row.comparisons
    assert (comparison.ratio, comparison.judgement) == (ratio, judgement)
    (limit,) = read_limits([f"{kind.name} worse than 5%"])
    condition = condition_of(limit, [row])
    assert (condition.outcome, [check.reason for check in condition.checks]) == (outcome, [reason])


def test_the_error_is_shared_among_the_intervals() -> None:
    sizes = range(64, 84)
    sides = [[placed(*values, where={"frame_size_ipv4": size}) for size in sizes] for values in (FAST, SLOW)]
    rows, intervals = compared(matched(sides), "AB", Fraction(95, 100))
    assert intervals == len(rows) == 20
    assert {row.comparisons[0].reason for row in rows} == {"too few values: 5 and 5; 6 of each would do"}


def test_a_figure_of_a_search_may_be_better_by_the_resolution() -> None:
    """One step of a search apart: a rate lies above what passed, a gap between bursts below it."""
    cases: tuple[tuple[Better, int, int], ...] = (("higher", 1000, 950), ("lower", 950, 1000))
    for better, first, second in cases:
        one_step, two_steps = ([step for _ in range(20)] for step in (second, 2 * second - first))
        sides = [placed(*values, better=better, resolution=50) for values in ([first] * 20, one_step, two_steps)]
        judged = [comparison.judgement for comparison in row_of(*sides).comparisons]
        assert judged == ["no_difference", "worse"], better
    near_zero = [placed(*[value] * 20, better="lower", resolution=50) for value in (50, 100)]
    (comparison,) = row_of(*near_zero).comparisons
    assert (comparison.interval_of, comparison.judgement) == ("difference", "no_difference")


def test_other_traffic_is_another_quantity() -> None:
    rows, intervals = compared(
        matched([[placed(*FAST)], [placed(*FAST, where={"frame_size_ipv4": 128})]]), "AB", Fraction(95, 100)
    )
    assert intervals == 0
    assert [row.comparisons[0].reason for row in rows] == [
        "B: this side does not have it",
        "A: this side does not have it",
    ]


def test_a_refusal_says_why_a_side_has_no_figure() -> None:
    refused = placed(name="throughput", unit="", refused="The gateway forwards nothing.", median=None)
    (row,), _ = compared(matched([[placed(*FAST)], [refused]]), "AB", Fraction(95, 100))
    assert row.comparisons[0].reason == "B: The gateway forwards nothing."


def loss(load: int, *values: float, share: str | None = None) -> Placed:
    where: dict[str, Coordinate] = {"load_frames_per_second": load}
    return placed(*values, name="frame loss rate", unit="%", better="lower", where=where, load_share=share)


def test_loads_that_are_the_same_share_are_the_same_quantity() -> None:
    def at_shares(*loads: int) -> list[Placed]:
        shares = ("100% of the throughput", "50% of the throughput")
        return [loss(load, *FAST, share=share) for load, share in zip(loads, shares, strict=False)]

    by_share = matched([at_shares(100, 50), at_shares(90, 45)])
    assert [[side and side.load for side in row.sides] for row in by_share] == [[100, 90], [50, 45]]
    by_share = matched([at_shares(100, 50), at_shares(50)])
    assert [[side and side.load for side in row.sides] for row in by_share] == [[100, 50], [50, None]]


def test_loss_at_another_load_is_another_quantity() -> None:
    """B loses less at each load that both were offered, and was offered a higher one."""
    first = [loss(900_000, *[5.56] * 6), loss(800_000, *[0] * 6), loss(700_000, *[0] * 6)]
    better = [loss(1_000_000, *[8] * 6), loss(900_000, *[0] * 6), loss(800_000, *[0] * 6)]
    rows, _ = compared(matched([first, better]), "AB", Fraction(95, 100))
    judged = [([figure.load_frames_per_second for figure in row.figures], row.comparisons[0].judgement) for row in rows]
    assert judged == [
        ([900_000, 900_000], "better"), ([800_000, 800_000], "no_difference"), ([700_000, None], "not_judged"),
        ([None, 1_000_000], "not_judged"),
    ]  # fmt: skip
    (limit,) = read_limits(["frame loss rate worse than 5%"])
    assert condition_of(limit, rows).outcome == "cannot_be_judged"
    of_many = pooled([[side.quantity for side in sides] for sides in (first, better)])
    assert [(pool.values, pool.refused is None) for pool in of_many] == [
        ((5.56, 0), True), ((0, 0), True), ((), False), ((), False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ("throughput worse than 5%", "met"),
        ("THROUGHPUT  worse than 1/20", "met"),
        ("any worse than 10%", "met"),
        ("throughput worse than 20%", "not_met"),
        ("throughput may be worse than 20%", "met"),
        ("throughput worse than 30%", "not_met"),
        ("throughput may be worse than 30%", "not_met"),
    ],
)
def test_conditions(condition: str, outcome: str) -> None:
    (limit,) = read_limits([condition])
    assert condition_of(limit, [row_of(placed(*FAST), placed(*SLOW))]).outcome == outcome
    fast, slow = ([10_000 / value for value in values] for values in (FAST, SLOW))
    inverse = row_of(placed(*fast, better="lower"), placed(*slow, better="lower"))
    if "20%" not in condition and "30%" not in condition:
        assert condition_of(limit, [inverse]).outcome == outcome


def test_conditions_are_read_all_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        read_limits(["throughput slower than 5%", "throughput worse than 5", "throughput worse than 5%"])
    assert [problem.what for problem in error.value.problems] == [
        "is not a condition", "'5' is not a ratio; write for example 0.01% or 0%",
    ]  # fmt: skip


def folder_of(
    path: Path, campaign: Path, capacity: int, *, seed: int = 1, tester_limit: int | None = None, version: str = "1.0"
) -> str:
    text = campaign.read_text(encoding="utf-8")
    file = path.with_suffix(".toml")
    file.write_text(text.replace("seed = 7", f"seed = {seed}"), encoding="utf-8")
    device = SimulatedDevice(capacity_forward=capacity, noise=0.01, tester_limit=tester_limit)
    measure(file, output=path, equipment=simulated_equipment(device, version=version), report=False)
    return str(path)


@pytest.fixture
def folders(write_campaign: WriteCampaign, tmp_path: Path) -> Callable[..., str]:
    def make(name: str, capacity: int, **about: Any) -> str:
        return folder_of(tmp_path / name, write_campaign(repetitions=5), capacity, **about)

    return make


def test_the_exit_status_is_that_of_the_conditions(
    folders: Callable[..., str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before, same = folders("before", 400_000), folders("same", 400_000, seed=2)
    slower, unknown = folders("slower", 300_000, version="2.0"), folders("unknown", 400_000, tester_limit=200_000)
    fail_if = ["--fail-if", "throughput worse than 5%"]
    assert main(["compare", before, same, *fail_if]) == 0
    shown = capsys.readouterr().out
    assert "campaign: seed" in shown
    assert "no difference shown" in shown
    assert "throughput worse than 5%: not met" in shown
    assert main(["compare", before, slower, *fail_if, "--output", str(tmp_path / "page.html")]) == 1
    shown = capsys.readouterr().out
    assert max(map(len, shown[: shown.index("throughput worse than")].splitlines())) <= WIDTH_MAX
    assert shown.index("gateway: version") < shown.index("throughput, frames/s")
    assert "throughput worse than 5%: met" in shown
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "worse" in page
    assert main(["compare", before, slower]) == 0
    capsys.readouterr()
    assert main(["compare", before, unknown, *fail_if]) == 1
    shown = capsys.readouterr().out
    assert "at least" in shown and "throughput worse than 5%: cannot be judged" in shown
    assert "the Tester was the limit" in shown


def test_the_document_is_as_its_schema_says(folders: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    three = [folders("a", 400_000), folders("b", 300_000), folders("c", 400_000, seed=3)]
    assert main(["compare", *three, "--everything", "--json"]) == 0
    text = capsys.readouterr().out
    jsonschema.validate(json.loads(text), json.loads(SCHEMA.read_text(encoding="utf-8")))
    document = ComparisonDocument.model_validate(json.loads(text))
    assert [side.label for side in document.sides] == ["A", "B", "C"]
    assert document.intervals == 2
    for row in document.quantities:
        assert [comparison.judgement for comparison in row.comparisons] == ["worse", "no_difference"]
    assert [(difference.key, difference.values) for difference in document.differences] == [("seed", (1, 1, 3))]


def test_columns_of_series_are_compared_with_their_like(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    vary = '\n[[vary]]\n"traffic.frame_sizes.octets" = [{octets}]\n'
    names = []
    for name, octets in (("a", "[64], [128]"), ("b", "[128], [256]")):
        file = write_campaign(repetitions=5)
        file.write_text(file.read_text(encoding="utf-8") + vary.format(octets=octets), encoding="utf-8")
        device = SimulatedDevice(capacity_forward=400_000)
        measure_series(file, output=tmp_path / name, equipment=simulated_equipment(device), report=False)
        names.append(tmp_path / name)
    document = compare_folders(names)
    judged = {
        row.where["traffic.frame_sizes.octets"]: row.comparisons[0].judgement for row in document.quantities
    }  # fmt: skip
    assert judged == {"64": "not_judged", "128": "no_difference", "256": "not_judged"}
    assert {side.kind for side in document.sides} == {"series"}
    assert document.differences == ()


def test_a_campaign_that_was_made_several_times_has_a_value_for_each(
    write_campaign: WriteCampaign, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = write_campaign()
    capacities = {
        "before": (400_000, 500_000, 420_000, 410_000, 405_000),
        "after": (300_000, 310_000, 290_000, 305_000),
    }
    for side, rates in capacities.items():
        (tmp_path / side).mkdir()
        for number, capacity in enumerate(rates):
            folder_of(tmp_path / side / f"{number}", campaign, capacity, version=f"{number % 2}.0")
    document = compare_folders([tmp_path / "before", tmp_path / "after"])
    assert [(side.kind, side.folders) for side in document.sides] == [("repeated", 5), ("repeated", 4)]
    (row,) = document.quantities
    for figure, rates in zip(row.figures, capacities.values(), strict=True):
        assert figure.repetitions == len(rates)
        assert [value and round(value, -4) for value in figure.values] == [round(rate, -4) for rate in rates]
    assert row.comparisons[0].judgement == "worse"
    assert document.differences == ()  # both sides have both versions
    assert main(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    words = capsys.readouterr().out.split()  # lines break where the path of the folder lets them
    assert "5 campaigns, one value" in " ".join(words)


def test_a_campaign_without_a_figure_leaves_all_of_them_without() -> None:
    known, bounded = placed(*FAST).quantity, placed(*FAST, limited_by="tester", lower_bound=99).quantity
    (whole,) = pooled([[known], [known]])
    assert (whole.values, whole.median, whole.refused) == ((100, 100), 100, None)
    (torn,) = pooled([[known], [bounded], [known]])
    assert (torn.values, torn.median, torn.refused) == ((), None, "campaign 2 of 3: the Tester was the limit")
    assert not torn.is_measured
    (missing,) = pooled([[known], []])
    assert missing.refused == "campaign 2 of 2: does not have it"


def test_nonsense_is_refused_all_at_once(
    folders: Callable[..., str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = folders("before", 400_000)
    (tmp_path / "begun").mkdir()
    ResultFolder(path=tmp_path / "begun").write_text("campaign.toml", "")
    assert main(["compare", before]) == 2
    assert "name 2 to 26 folders" in capsys.readouterr().err
    assert main(["compare", before, str(tmp_path / "nowhere"), str(tmp_path / "begun")]) == 3
    shown = capsys.readouterr().err
    assert "nowhere" in shown and "begun" in shown
    assert main(["compare", before, before, "--fail-if", "troughput worse than 5%", "--quantity", "speed"]) == 2
    shown = capsys.readouterr().err
    assert "did you mean throughput?" in shown and "--quantity 'speed'" in shown
    for confidence in ("95", "100%", "20%"):
        assert main(["compare", before, before, "--confidence", confidence]) == 2
        assert f"--confidence {confidence}" in capsys.readouterr().err

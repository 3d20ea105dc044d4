"""The documentation is checked against the code: keys, options, examples, links and citations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest
from tests.judge import judged
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.campaign.columns import load_series, varies
from gatemark.campaign.file import load_campaign
from gatemark.campaign.plan import plan_of
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.config.sizes import measured_octets, size_family
from gatemark.config.tables import FrameSizesModel
from gatemark.dut import base
from gatemark.dut.loopback import LoopbackTestBed
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.procedures.back_to_back.table import BackToBackTable
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.registry import PROCEDURES
from gatemark.results.coordinates import NAMES
from gatemark.results.search import RateResult
from gatemark.series.run import measure_series
from gatemark.session import measure
from gatemark.tester import Equipment

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
CHECK = ROOT / "examples" / "ci" / "compare-with"
DOCUMENTS = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *(
            path
            for name in ("docs", "engine", "protocol", "changelog.d", "bench", "gallery")
            for path in (ROOT / name).rglob("*.md")
        ),
    )
)
RFC_MAP = REFERENCE / "rfc-map.md"


def sections_of(text: str) -> dict[str, str]:
    """Return the text below each heading, by heading."""
    parts = re.split(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", text))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def declared_figures() -> set[tuple[str, str, str, str | None]]:
    """Every figure that the results of the procedures declare: procedure, name, unit, which way is better."""
    return {(name, kind.name, kind.unit, kind.better) for name, row in PROCEDURES.items() for kind in row.result.kinds}


def whole_files(kind: str) -> Iterator[Any]:
    """Blocks that open with ```toml and their kind: what a reader may copy as it stands."""
    for path in DOCUMENTS:
        blocks = re.findall(rf"(?ms)^```toml {kind}\n(.*?)^```$", path.read_text(encoding="utf-8"))
        for number, text in enumerate(blocks, 1):
            yield pytest.param(text, id=f"{path.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize("text", list(whole_files("campaign")))
def test_campaigns_in_the_documentation_can_be_planned(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(text, encoding="utf-8")
    assert varies(file) or load_campaign(file).name
    assert main(["plan", str(file)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("text", list(whole_files("recipe")))
def test_recipes_in_the_documentation_can_be_loaded(text: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    recipe = load_recipe(file)
    assert not recipe.technology.is_stateful or recipe.actions >= {"clear_state", "count_connections", "tear_down"}


def test_the_check_in_the_documentation_is_the_one_of_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "how-to" / "keep-a-gateway-fast.md").read_text(encoding="utf-8")
    assert f"```sh\n{CHECK.read_text(encoding='utf-8')}```\n" in page
    assert main(["plan", str(CHECK.with_name("nat.toml"))]) == 0, capsys.readouterr().err


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_examples_can_be_planned(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file)]) == 0, capsys.readouterr().err


class PortsWithoutHardware(PortsTestBed):
    """Two ports that are named, but neither looked for nor opened."""

    def __enter__(self) -> Self:
        return self


def equipment_without_hardware(device: SimulatedDevice) -> Equipment:
    """Only a gateway that gatemark makes or controls is simulated as a whole; the other test beds make nothing."""
    simulated = simulated_equipment(device)

    def open_bed(campaign: Campaign) -> base.TestBed:
        if not campaign.bed.has_gateway:
            return LoopbackTestBed(campaign)
        if campaign.bed.takes_control and campaign.gateway.control is None:
            return PortsWithoutHardware(campaign)
        return simulated.open_testbed(campaign)

    return replace(simulated, open_testbed=open_bed)


def shortened(campaign: Campaign) -> Campaign:
    """One repetition, two sizes and two bursts: the simulated engine takes no time, but each trial and report does."""
    sizes = FrameSizesModel.model_validate(
        {"family": size_family(campaign), "octets": list(measured_octets(campaign)[:2])}
    )
    traffic = campaign.traffic.model_copy(update={"frame_sizes": sizes})
    tables = {
        table.key: table.model_copy(update={"bursts": 2})
        for table in campaign.tables
        if isinstance(table, BackToBackTable)
    }
    return campaign.model_copy(update={"repetitions": 1, "traffic": traffic, **tables})


@pytest.mark.parametrize("file", [file for file in EXAMPLES if not varies(file)], ids=lambda path: path.stem)
def test_examples_run_against_the_simulated_engine(file: Path, tmp_path: Path) -> None:
    campaign = shortened(complete_campaign(load_campaign(file)))
    device = SimulatedDevice(
        capacity_forward=123_456,
        capacity_reverse=234_567,
        establishment_rate=54_321,
        table_size=campaign.gateway.table.size,
    )
    result = measure(campaign, output=tmp_path / "out", equipment=equipment_without_hardware(device))
    assert result.document.status == "complete"
    assert len(result.runs) == len(plan_of(campaign).runs)
    quantities = [row.quantity for row in result.document.rows() if row.quantity.unit]
    assert {(quantity.procedure, quantity.name, quantity.unit, quantity.better) for quantity in quantities} <= (
        declared_figures()
    )
    assert {name for quantity in quantities for name in quantity.coordinates} <= {
        name for name, _, meaning, _ in NAMES if meaning
    }
    assert judged([result.folder]) == []
    for run in result.runs:
        assert run.limited_by != "tester"
        if isinstance(run, RateResult) and run.rate is not None:
            frames = 234_567 if run.direction == "reverse" else 123_456
            truth = min(frames if run.unit == "frames/s" else 54_321, run.goal.maximum or 10**9)
            assert 0 <= truth - run.rate.median <= run.repetitions[0].resolution
        if isinstance(run, CapacityResult):
            assert run.capacity is not None
            assert run.capacity.median == campaign.gateway.table.size


@pytest.mark.parametrize("file", [file for file in EXAMPLES if varies(file)], ids=lambda path: path.stem)
def test_examples_of_series_run_against_the_simulated_engine(file: Path, tmp_path: Path) -> None:
    device = SimulatedDevice(capacity_forward=123_456, establishment_rate=54_321)
    result = measure_series(file, output=tmp_path / "out", equipment=equipment_without_hardware(device))
    assert [column.outcome for column in result.document.columns] == ["measured"] * len(load_series(file).columns)
    assert result.document.metrics
    assert judged(column.folder for column in result.columns) == []


def links() -> Iterator[Any]:
    for path in DOCUMENTS:
        text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text):
            link = target[0] or target[1]
            if not re.match(r"[a-z]+:|#", link):
                yield pytest.param(path, link, id=f"{path.relative_to(ROOT)}: {link}")


@pytest.mark.parametrize(("path", "link"), list(links()))
def test_relative_links_lead_somewhere(path: Path, link: str) -> None:
    assert (path.parent / link.partition("#")[0]).exists()


WRITTEN = {
    "archive/inputs/",
    "figures/",
    "inputs/",
    "bad-frames/",
    "build/bench.json",
    "dist/",
    "results/",
    "telemetry/",
}
"""Paths of what gatemark, its benchmark and its packaging write."""
PATH_ROOTS = (ROOT, ROOT / "src" / "gatemark", ROOT / "engine", ROOT / "engine" / "src")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sources_that_the_documentation_names_exist(path: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:\w+\.(?:py|hpp|cpp|toml|json|md))?)`", text)) - WRITTEN
    roots = (path.parent, *PATH_ROOTS)
    assert [name for name in sorted(named) if not any((root / name).exists() for root in roots)] == []


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def citations(text: str) -> set[tuple[str, str]]:
    """RFC sections named in a text: ("2544", "26.1"); line breaks of comments do not matter."""
    flat = re.sub(r"\s*\n\s*(?:///?|#)?\s*", " ", text)
    number = r"(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*)\b"
    part = rf"(?:sections?|appendix) {number}(?: [a-e]\b)?(?:(?:, | and ){number})*"
    entries = re.findall(rf"RFC (\d+),? \(?((?:{part}(?:, | and )?)+)", flat)
    return {(rfc, section) for rfc, rest in entries for section in re.findall(rf"(?<![\w.]){number}", rest)}


def test_every_rfc_section_that_the_code_cites_is_in_the_map() -> None:
    sections = sections_of(RFC_MAP.read_text(encoding="utf-8"))
    mapped = {
        (match.group(1), number)
        for heading, text in sections.items()
        if (match := re.match(r"RFC (\d+)", heading))
        for row in re.findall(r"(?m)^\| ([0-9A-Z][^|]*?) \|", text)
        for number in re.split(r",? ", row)
    }
    mapped |= citations(RFC_MAP.read_text(encoding="utf-8"))
    sources = [*(ROOT / "src" / "gatemark").rglob("*.py"), *(ROOT / "engine" / "src").rglob("*.[ch]pp")]
    cited = {entries: path for path in sources for entries in citations(path.read_text(encoding="utf-8"))}
    missing = [
        f"RFC {rfc} section {section} ({path.relative_to(ROOT)})"
        for (rfc, section), path in sorted(cited.items())
        if (rfc, section) not in mapped
    ]
    assert missing == []

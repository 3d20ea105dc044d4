"""The gallery: every recipe is in it, and each entry is what its archive says."""

from __future__ import annotations

import html
import importlib.util
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from tests.judge import judged

from gatemark.archive.read import unpacked
from gatemark.archive.verify import verify_archive
from gatemark.campaign.columns import load_series, varies
from gatemark.campaign.file import load_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ResultError
from gatemark.series.store import SERIES_FILE, is_series

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "gallery"
RECIPES = ROOT / "src/gatemark/dut/recipes"
CAMPAIGNS = sorted(path.stem for path in GALLERY.glob("*.toml"))
NAMES = sorted(path.name.removesuffix(".tar.gz") for path in GALLERY.glob("*.tar.gz"))
PAGE = (GALLERY / "README.md").read_text(encoding="utf-8")
OCTETS_MAX = 4 << 20
"""Of all archives: everybody who clones the repository gets them."""


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery_make", GALLERY / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def readable() -> Iterator[None]:
    """Dated results stay what they were: those that only another gatemark reads are shown, and not compared."""
    try:
        yield
    except ResultError as error:
        pytest.skip(f"measured by a gatemark whose results this one does not read, `make gallery` renews them: {error}")


def campaigns_of(path: Path) -> Iterator[Campaign]:
    if varies(path):
        yield from (complete_campaign(column.campaign) for column in load_series(path).columns)
    else:
        yield complete_campaign(load_campaign(path))


def test_every_recipe_has_a_campaign() -> None:
    campaigns = [campaign for name in CAMPAIGNS for campaign in campaigns_of(GALLERY / f"{name}.toml")]
    assert {campaign.testbed.recipe for campaign in campaigns} == {path.stem for path in RECIPES.glob("*.toml")}


def test_every_campaign_has_results_or_is_told_to_have_none() -> None:
    assert set(NAMES) <= set(CAMPAIGNS)
    told = " ".join(PAGE.partition("\nNot measured yet")[2].split()).rpartition(": ")[2].rstrip(".")
    assert sorted(filter(None, told.split(", "))) == sorted(set(CAMPAIGNS) - set(NAMES))


def test_a_series_without_a_column_has_no_results(maker: ModuleType, tmp_path: Path) -> None:
    series = next(name for name in NAMES if varies(GALLERY / f"{name}.toml"))
    with unpacked(GALLERY / f"{series}.tar.gz") as content:
        result = Path(shutil.copytree(content.path, tmp_path / series))
    assert maker.has_all_results(result)
    next(result.glob("*/result.json")).unlink()
    assert not maker.has_all_results(result)


def test_all_are_small() -> None:
    assert sum(path.stat().st_size for path in GALLERY.glob("*.tar.gz")) < OCTETS_MAX


@pytest.mark.parametrize("name", NAMES)
def test_results_follow_from_journals(name: str) -> None:
    findings = verify_archive(GALLERY / f"{name}.tar.gz").findings
    assert [finding.words for finding in findings if finding.outcome == "differs"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_that_shares_no_code_judges_alike(name: str) -> None:
    with unpacked(GALLERY / f"{name}.tar.gz") as content:
        folders = [path.parent for path in sorted(content.path.rglob("result.json"))]
        assert folders
        assert judged(folders) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_campaign_is_the_one_that_was_measured(name: str) -> None:
    with unpacked(GALLERY / f"{name}.tar.gz") as content:
        stored = SERIES_FILE if is_series(content.path) else "campaign.toml"
        assert content.folder.read_text(stored) == (GALLERY / f"{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_report_shows_the_result(maker: ModuleType, name: str) -> None:
    with unpacked(GALLERY / f"{name}.tar.gz") as content, readable():
        page = html.unescape(re.sub(r"<[^>]+>", " ", content.folder.read_text("report.html")))
        figures = [re.findall(r"\*\*(.*?)\*\*", line)[0] for line in maker.figures_of(content)]
    assert figures
    for figure in figures:
        assert figure.split(" ")[0] in page, figure


def test_the_page_is_made_of_the_archives(maker: ModuleType) -> None:
    with readable():
        assert maker.page() == PAGE

"""What of the reference follows from the code is what the code gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.references import campaign, results
from tests.references.files import MADE, REFERENCE, made
from tests.references.page import BLOCK


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_is_made_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == made(path), "run: scripts/references"


def blocks(name: str) -> list[str]:
    return [block[1] for block in BLOCK.finditer((REFERENCE / name).read_text(encoding="utf-8"))]


def test_every_table_of_the_campaign_file_has_its_place() -> None:
    with_keys = {name for name, model in campaign.TABLES.items() if model.model_fields}
    assert sorted(blocks("campaign-file.md")) == sorted({"technologies", *with_keys} - campaign.ALIKE)


def test_every_object_of_the_results_has_its_place() -> None:
    assert sorted(blocks("result-keys.md")) == sorted({results.SHARED, *(name for name, _ in results.apart())})


def test_every_key_has_an_explanation() -> None:
    tables = [*map(campaign.block, campaign.TABLES), *map(results.block, (*results.ROOTS, results.SHARED))]
    assert re.findall(r"(?m)^.*\| \|$", "\n".join(tables)) == []

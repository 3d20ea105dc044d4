"""What of the reference follows from the code is what the code gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.references import campaign, commands, counters, refdut, results
from tests.references.files import MADE, REFERENCE, made
from tests.references.page import BLOCK

from gatemark.cli.main import COMMANDS


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_is_made_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == made(path), "run: scripts/references"


def blocks(name: str) -> list[str]:
    return [block[1] for block in BLOCK.finditer((REFERENCE / name).read_text(encoding="utf-8"))]


def test_the_exit_statuses_and_every_command_have_their_place() -> None:
    assert blocks("command-line.md") == [commands.STATUSES, *COMMANDS]


def test_every_table_of_the_campaign_file_has_its_place() -> None:
    with_keys = {name for name, model in campaign.TABLES.items() if model.model_fields}
    assert sorted(blocks("campaign-file.md")) == sorted({*campaign.OTHERS, *with_keys} - campaign.ALIKE)


def test_every_object_of_a_result_has_its_place() -> None:
    assert sorted(blocks("result-keys.md")) == sorted([*results.OTHERS, *results.PAGE.blocks])


def test_every_object_of_a_trial_and_every_list_of_names_has_its_place() -> None:
    assert sorted(blocks("counters.md")) == sorted([*counters.PAGE.blocks, *counters.NAMES])


def test_every_table_and_every_list_of_names_of_the_reference_gateway_has_its_place() -> None:
    assert sorted(blocks("refdut.md")) == sorted([*refdut.TABLES, *refdut.NAMES])

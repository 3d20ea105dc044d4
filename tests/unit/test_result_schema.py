"""result.json has a published form, and what is not of this form is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.procedures.registry import PROCEDURES, PublishedDocument
from gatemark.session import measure

SCHEMA = PublishedDocument.model_json_schema(mode="serialization")


def test_a_result_file_meets_the_schema(write_campaign: Callable[..., Path], tmp_path: Path) -> None:
    device = SimulatedDevice(capacity_forward=412_345, hiccup_every=7)
    result = measure(
        write_campaign(frame_loss=True), output=tmp_path / "out", equipment=simulated_equipment(device), report=False
    )
    written = json.loads((result.folder / "result.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, SCHEMA)
    assert written["schema"] == 1
    read = PublishedDocument.model_validate(written)
    assert read.to_text() == result.document.to_text()
    assert read.runs == result.document.runs


def test_each_procedure_has_its_own_model_and_no_key_of_another() -> None:
    runs = SCHEMA["properties"]["runs"]["items"]["discriminator"]["mapping"]
    assert set(runs) == set(PROCEDURES)
    assert {name: reference.rsplit("/", 1)[-1] for name, reference in runs.items()} == {
        name: procedure.result.__name__ for name, procedure in PROCEDURES.items()
    }


@pytest.mark.parametrize("damage", ["unknown key", "unknown procedure"])
def test_what_is_no_result_is_refused(write_campaign: Callable[..., Path], tmp_path: Path, damage: str) -> None:
    device = SimulatedDevice(capacity_forward=412_345)
    result = measure(write_campaign(), output=tmp_path / "out", equipment=simulated_equipment(device), report=False)
    written = json.loads(result.document.to_text())
    written["runs"][0]["procedure" if damage == "unknown procedure" else "points"] = "another"
    with pytest.raises(ValidationError):
        PublishedDocument.model_validate(written)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written, SCHEMA)


def test_figures_that_follow_from_others_are_computed_again_on_reading(
    write_campaign: Callable[..., Path], tmp_path: Path
) -> None:
    device = SimulatedDevice(capacity_forward=412_345)
    result = measure(write_campaign(), output=tmp_path / "out", equipment=simulated_equipment(device), report=False)
    changed = json.loads(result.document.to_text())
    changed["runs"][0]["rate_per_direction"]["median"] = 10**9
    assert PublishedDocument.model_validate(changed).to_text() == result.document.to_text()

"""result.json has a published form; every key is documented."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
from pydantic import BaseModel

from gatemark.engine.simulated import SimulatedDevice
from gatemark.results.provenance import Provenance
from gatemark.results.schema import ResultDocument, json_schema
from gatemark.session import measure
from gatemark.simulated import simulated_equipment

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_published_schema_is_the_one_in_use() -> None:
    published = json.loads((REFERENCE / "result.schema.json").read_text(encoding="utf-8"))
    assert published == json_schema(), "write it anew: see docs/reference/result-keys.md"


def test_a_result_file_meets_the_schema(write_campaign: Callable[..., Path], tmp_path: Path) -> None:
    device = SimulatedDevice(capacity_forward=412_345, hiccup_every=7)
    result = measure(write_campaign(frame_loss=True), output=tmp_path / "out", equipment=simulated_equipment(device))
    written = json.loads((result.folder / "result.json").read_text(encoding="utf-8"))
    jsonschema.validate(written, json_schema())
    assert written["schema"] == 1
    assert ResultDocument.model_validate(written) == result.document


def keys_of(model: type[BaseModel]) -> Iterator[str]:
    seen: set[type[BaseModel]] = set()
    pending: list[Any] = [model]
    while pending:
        current = pending.pop()
        if isinstance(current, type) and issubclass(current, BaseModel) and current not in seen:
            seen.add(current)
            for name, field in current.model_fields.items():
                yield field.alias or name
                pending.append(field.annotation)
        pending.extend(getattr(current, "__args__", ()))


def test_every_key_is_in_the_reference() -> None:
    text = (REFERENCE / "result-keys.md").read_text(encoding="utf-8")
    missing = {key for model in (ResultDocument, Provenance) for key in keys_of(model) if f"`{key}`" not in text}
    assert not missing

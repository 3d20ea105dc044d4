"""The JSON Schema of the campaign file, for editors and for people who generate campaigns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field, ValidationError, create_model

from gatemark.config.described import described
from gatemark.config.keys import models_in
from gatemark.config.model import CampaignFile
from gatemark.config.types import AsList
from gatemark.config.vary import VARY, VaryModel

_VARY: dict[str, Any] = {
    VARY: (
        tuple[VaryModel, ...],
        Field((), description="keys that change from column to column: the file is then a series of campaigns"),
    )
}


def campaign_schema(model: type[CampaignFile]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a campaign file with the tables of `model`."""
    whole = create_model(model.__name__, __base__=model, **_VARY)
    schema = whole.model_json_schema(by_alias=True, mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "gatemark campaign file"
    tables = {table.__name__: table for table in _tables(whole)}
    _describe(whole, schema["properties"])
    for name, table in schema["$defs"].items():
        _write_defaults(tables[name], table["properties"])
        _describe(tables[name], table["properties"])
        for key, field in tables[name].model_fields.items():
            if AsList in field.metadata:  # one value stands for a list of one
                _allow_one(table["properties"][field.alias or key])
    return schema


def _tables(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield every model that the fields of a model hold, at any depth."""
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            yield inner
            yield from _tables(inner)


def _write_defaults(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Write defaults with their units, as the file has them."""
    try:
        written = model.model_validate({}).model_dump(mode="json", by_alias=True)
    except ValidationError:  # a table with required keys has no default as a whole; its own defaults have no units
        return
    for key, value in written.items():
        properties[key]["default"] = value


def _describe(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Say for which technologies and test beds each key is."""
    for name, field in model.model_fields.items():
        if words := described(model, name):
            properties[field.alias or name]["description"] = words


def _allow_one(field: dict[str, Any]) -> None:
    listed = {key: field.pop(key) for key in ("type", "items", "minItems") if key in field}
    field["anyOf"] = [listed, listed["items"]]


def campaign_schema_text(model: type[CampaignFile]) -> str:
    """Return the schema as the text that `docs/reference/campaign-file.schema.json` holds."""
    return json.dumps(campaign_schema(model), indent=2, ensure_ascii=False) + "\n"

"""The JSON Schema of the campaign file, for editors and for people who generate campaigns."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ValidationError

from gatemark.config import delay_tables, tables
from gatemark.config.model import Campaign

_ONE_OR_MORE = {
    "TrafficModel": ("direction", "mix"),
    "FrameSizesModel": ("octets",),
    "ConnectionsModel": ("count",),
    "DelayModel": ("metrics", "load"),
    "ConnectionEstablishmentRateModel": ("validated",),
    "GatewayControlModel": (
        "clear_state",
        "set_table_size",
        "set_hash_size",
        "set_udp_timeout",
        "reset",
        "start",
        "stop",
        "health",
        "describe",
    ),
}
"""Keys for which one value stands for a list of one."""


def campaign_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a campaign file."""
    schema = Campaign.model_json_schema(by_alias=True, mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "gatemark campaign file"
    for name, table in schema["$defs"].items():
        _write_defaults(getattr(tables, name, None) or getattr(delay_tables, name), table["properties"])
        for key in _ONE_OR_MORE.get(name, ()):
            _allow_one(table["properties"][key])
    return schema


def _write_defaults(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Write defaults with their units, as the file has them."""
    try:
        written = model.model_validate({}).model_dump(mode="json", by_alias=True)
    except ValidationError:  # a table with required keys has no default as a whole; its own defaults have no units
        return
    for key, value in written.items():
        properties[key]["default"] = value


def _allow_one(field: dict[str, Any]) -> None:
    listed = {key: field.pop(key) for key in ("type", "items", "minItems") if key in field}
    field["anyOf"] = [listed, listed["items"]]


def campaign_schema_text() -> str:
    """Return the schema as the text that `docs/reference/campaign-file.schema.json` holds."""
    return json.dumps(campaign_schema(), indent=2, ensure_ascii=False) + "\n"

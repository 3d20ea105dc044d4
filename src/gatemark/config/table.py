"""What all tables of a campaign file have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of the campaign file: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=False, validate_by_alias=True)

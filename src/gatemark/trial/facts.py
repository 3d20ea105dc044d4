"""The base of what is read from the engine and from the journal."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Facts(BaseModel):
    """Facts that never change, written as JSON and read again. A key that no field has is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

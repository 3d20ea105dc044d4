"""Counters that a simulation does not count."""

from __future__ import annotations

from gatemark.trial.facts import Facts, Natural


def zeros_of(facts: type[Facts]) -> dict[str, int]:
    """Return 0 for each field that is a number."""
    return {name: 0 for name, field in facts.model_fields.items() if field.annotation in (int, Natural | None)}

"""Counters that a simulation does not count."""

from __future__ import annotations

from gatemark.trial.facts import Counter, Facts


def zeros_of(facts: type[Facts]) -> dict[str, int]:
    """Return 0 for each field that is marked as a counter."""
    fields = facts.model_fields.items()
    return {name: 0 for name, field in fields if any(isinstance(mark, Counter) for mark in field.metadata)}

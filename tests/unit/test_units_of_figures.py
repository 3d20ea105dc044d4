"""Units of figures: what tables, titles and ratios tell apart."""

from __future__ import annotations

import pytest

from gatemark.procedures.registry import PROCEDURES
from gatemark.results.unit import UNITS, unit_named


@pytest.mark.parametrize(
    ("name", "title"),
    [("frames/s", "frames/s in one direction"), ("connections/s", "connections/s"), ("ms", "ms"), ("", "")],
)
def test_only_what_is_counted_in_one_direction_says_so(name: str, title: str) -> None:
    assert unit_named(name).title == title


def test_every_rate_of_a_procedure_is_known() -> None:
    units = {kind.unit for row in PROCEDURES.values() for kind in row.result.kinds}
    assert {unit for unit in units if unit_named(unit).is_rate} == {unit for unit in units if unit.endswith("/s")}
    assert "1/s" in UNITS, "interrupts of a core"

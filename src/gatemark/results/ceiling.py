"""What the Tester reaches alone as the ceiling of a rate: a figure near it is a lower bound of the gateway. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from gatemark.facts import Mode
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.results.tester_parts import CeilingPart, SelfTestPart
from gatemark.technology import TECHNOLOGIES, TechnologyName

MARGIN: Final = Fraction(5, 100)
"""A rate within this share below the ceiling may be the Tester's: self-tests of one machine differ by as much."""


def ceiling_of(
    self_test: SelfTestPart | None, run: RunResult, unit: str, technology: TechnologyName
) -> CeilingPart | None:
    """Return the lowest rate of the self-test that applies to what a run measures in a unit; None if it has none."""
    if self_test is None:
        return None
    gateway = TECHNOLOGIES[technology]
    applies: dict[Mode, bool] = {
        "mixed": run.mix.is_mixed,
        "translated": gateway.is_translation,
        "edges": gateway.has_edges and gateway.is_translation,
        "tunnels": gateway.inside_tunnels == "ipv4",
        "tunnels_6in4": gateway.inside_tunnels == "ipv6",
        "stateful_tunnels": gateway.has_b4s,
    }
    return self_test.ceiling(
        run.frame_sizes.of_families(gateway.outer_family),
        run.direction,
        "connections" if unit == "connections/s" else "frames",
        connections=run.connection_count,
        left_out={mode for mode, holds in applies.items() if not holds},
    )


def is_near(rate: float | None, ceiling: CeilingPart | None) -> bool:
    """Whether a rate may be the Tester's limit: it is less than 5 % below what the Tester reaches alone.

    Where the line was the limit of the self-test, the Tester may do more, and nothing is near.
    """
    if rate is None or ceiling is None or ceiling.is_line_rate:
        return False
    return Fraction(rate) > (1 - MARGIN) * ceiling.frames_per_second


def bounded(run: RunResult, self_test: SelfTestPart | None, technology: TechnologyName) -> RunResult:
    """Return a run as it may be published: one whose rate is near the ceiling in any repetition is a lower bound.

    A rate that another limit holds already is no figure of the gateway.
    """
    if self_test is not None:
        run = run.beside(self_test)
    if not isinstance(run, RateResult) or run.limited_by != "gateway":
        return run
    ceiling = ceiling_of(self_test, run, run.unit, technology)
    if ceiling is None or not is_near(max(run.published_bounds, default=None), ceiling):
        return run
    return run.model_copy(update={"limited_by": "tester", "self_test_ceiling": ceiling.frames_per_second})

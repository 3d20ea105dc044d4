"""What the checks before a measurement find: what was observed, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from gatemark.errors import GatemarkError

Status = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    check: str
    """What was checked, in a word or two."""
    status: Status
    """`failed`: a measurement will not work. `warning`: it will, but its figures may suffer."""
    observed: str
    """What is the case, with numbers and units."""
    remedy: str = ""
    """What to do; empty if nothing need be done."""

    def to_json(self) -> dict[str, str]:
        """Return the finding for `--json`."""
        return asdict(self)


def failed(check: str, error: GatemarkError) -> list[Finding]:
    """Turn the problems of an error into findings."""
    return [
        Finding(check=check, status="failed", observed=f"{problem.where}: {problem.what}", remedy=problem.fix)
        for problem in error.problems
    ]

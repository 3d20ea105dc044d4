"""The throughput that other procedures start from, or the reason why it is not known. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gatemark.procedures.measured import Measured
from gatemark.results.part import NOT_THE_GATEWAY, LimitedBy
from gatemark.results.search import RateResult

SELF_TEST = "`gatemark selftest` says what the Tester reaches"

QUIET_HOST = "measure again while nothing else uses the gateway's CPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a run cannot be made, and what limited it."""

    limited_by: LimitedBy
    reason: str


NO_LINE_RATE = Refusal(
    limited_by="tester",
    reason="bursts are sent at line rate, which is not known: the port does not report it, and line.rate is not set",
)
"""Of procedures that send bursts."""


def median_throughput(search: RateResult | None, line: int | None) -> int | Refusal:
    """Return the reported throughput, the median, rounded down; a refusal if it is not known.

    It is not known if the Tester was the limit of the search, or if no load failed although the medium carries more
    than the search tried.
    """
    if search is not None and search.refused is not None:
        return Refusal(limited_by="gateway", reason=search.refused)
    if search is None or not search.proven:
        return none_passes(search)
    if search.limited_by in NOT_THE_GATEWAY:
        what = f"of the throughput only at least {search.proven} frames/s are known"
        return Refusal(limited_by=search.limited_by, reason=_left_open(search, f"the throughput search, so {what}"))
    highest = max(search.lower_bounds)
    if search.limited_by == "maximum" and (line is None or highest < line):
        reason = (
            f"no load of the throughput search failed, up to its maximum of {highest} frames/s, so the throughput is"
            " not known: raise throughput.maximum"
        )
        return Refusal(limited_by="maximum", reason=reason)
    return search.proven if search.rate is None else int(search.rate.median)


def none_passes(search: RateResult | None) -> Refusal:
    """Return the refusal for a throughput search in which some repetition found no load that passes."""
    searches = () if search is None else search.repetitions
    without = {repetition.kind for repetition in searches if not repetition.lower_bound}
    if without == {"tester_limited"}:
        reason = _left_open(search, "every load of the throughput search of a repetition, so no throughput is known")
        return Refusal(
            limited_by="host" if search is not None and search.limited_by == "host" else "tester", reason=reason
        )
    reason = "in the throughput search of a repetition no load passed, so there is none to begin with"
    return Refusal(limited_by="gateway", reason=reason)


def _left_open(search: RateResult | None, what: str) -> str:
    """Return the reason for which `what` remains open: the Tester, or the gateway's host."""
    if search is not None and search.limited_by == "host":
        return f"the gateway's host was not quiet in {what}; {QUIET_HOST}"
    return f"the Tester was the limit of {what}; {SELF_TEST}"


def forwards_line_rate(line: int, so: str) -> Refusal:
    """Return the refusal for a gateway that forwards everything that the line carries."""
    return Refusal(limited_by="gateway", reason=f"the throughput is the line rate of {line} frames/s, so {so}")


def problems_of(measured: Measured) -> str:
    """Why the last attempt says nothing about the gateway."""
    reasons = () if measured.record is None else measured.record.reasons
    return "; ".join(reasons) or "no trial was valid"

"""Connection establishment, validation and capacity against a known table (RFC 9693). Pure."""

from __future__ import annotations

from fractions import Fraction

from gatemark.calibrate import truth
from gatemark.calibrate.model import Check, Comparison, Evidence
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.refdut.document import Flow, Overflow, Table
from gatemark.results.search import RateResult

TIMEOUT_NS = 300 * truth.SECOND_NS
BURST_MIN, BURST_S = 200, Fraction(1, 20)
"""Connections that may be established at once after a pause: those of BURST_S seconds, but at least BURST_MIN."""

OVERFLOWS: tuple[tuple[Overflow, str, int], ...] = (
    ("refuse", "refused", 1500),
    ("drop", "refused", 2345),
    ("evict_oldest", "evicted", 1999),
    ("forward_untranslated", "untranslated", 3001),
)
"""What the gateway does with connections beyond its table, what the Tester calls it, and the size of the table."""


def stateful_checks(*, quick: bool) -> list[Check]:
    """Return the checks of a stateful gateway."""
    most = 1 if quick else 3
    rates = ((5_000, 2_500), (10_000, 5_000), (20_000, 10_000))[:most]
    checks = [_establishment(rate, count, validated=False) for rate, count in rates]
    checks += [_establishment(rate, count, validated=True) for rate, count in rates[: 1 if quick else 2]]
    ways_back = ((4_000, Fraction(1)), (4_000, Fraction(1, 2)))[: 1 if quick else 2]
    checks += [_validated_by_way_back(capacity, alpha) for capacity, alpha in ways_back]
    checks.append(_repeated(count=3000, frames=6000))
    return checks + [capacity_check(*case) for case in OVERFLOWS]


def _establishment(rate: int, count: int, *, validated: bool) -> Check:
    burst = max(BURST_MIN, int(rate * BURST_S))
    true = truth.establishment_rate(rate, burst, count)
    resolution = rate // 100
    procedure = "validated_connection_establishment_rate" if validated else "connection_establishment_rate"

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        # A late burst finds more tokens: those of its delay. If the first is late, the others
        # find as many fewer.
        slack = Fraction(rate * evidence.unsteadiness_ns, truth.SECOND_NS) * rate / count + 2
        return (_of_search(evidence, procedure, true, resolution, slack),)

    return Check(
        procedure=procedure,
        name=f"{'validated' if validated else 'establishment'}-rate-{rate}",
        truth=f"{rate} new connections/s, {burst} at once; N = {count}",
        technology="nat44",
        table=Table(size=100_000, establishment_rate=rate, establishment_burst=burst, udp_timeout_ns=TIMEOUT_NS),
        tables={
            "connections": {"count": count},
            "connection_establishment_rate": {
                "maximum": 2 * rate,
                "minimum": rate // 4,
                "resolution": resolution,
                "validated": validated,
            },
        },
        compare=compare,
        poll_gap_max_ns=burst * truth.SECOND_NS // (4 * rate),
    )


def _validated_by_way_back(capacity: int, alpha: Fraction) -> Check:
    """Return a check in which only the validation is too fast: the gateway's way back is narrow."""
    count, queue = 5_000, 100
    true = truth.validated_rate(capacity, queue, count, alpha)
    resolution = capacity // 50

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        slack = Fraction(capacity * evidence.unsteadiness_ns, truth.SECOND_NS) * capacity / count / alpha + 2
        return (_of_search(evidence, "validated_connection_establishment_rate", true, resolution, slack),)

    return Check(
        procedure="validated_connection_establishment_rate",
        name=f"validated-rate-way-back-{alpha.denominator}",
        truth=f"way back {capacity} frames/s, queue {queue}; N = {count}, alpha = {alpha}",
        technology="nat44",
        table=Table(size=100_000, udp_timeout_ns=TIMEOUT_NS),
        reverse=Flow(capacity=capacity, queue=queue),
        tables={
            "connections": {"count": count},
            "connection_establishment_rate": {
                "maximum": int(2 * capacity / alpha),
                "minimum": capacity // 4,
                "resolution": resolution,
                "validated": True,
                "alpha": f"{int(100 * alpha)}%",
            },
        },
        compare=compare,
        poll_gap_max_ns=queue * truth.SECOND_NS // (4 * capacity),
    )


def _repeated(*, count: int, frames: int) -> Check:
    """Return a check of connections that are drawn: how many the gateway has is counted on both sides."""
    true, deviation = truth.drawn_connections(count, frames)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        run = evidence.result(RepeatedFourTuplesResult)
        established, counted = (None, None) if run is None else (run.established.values[0], run.counted.values[0])
        return (
            Comparison(
                quantity="connections that were drawn",
                unit="connections",
                true=round(true),
                measured=None if counted is None else int(counted),
                allowed_below=Fraction(round(4 * deviation)),
                allowed_above=Fraction(round(4 * deviation)),
            ),
            Comparison(
                quantity="connections that the Tester saw",
                unit="connections",
                true=0 if counted is None else int(counted),
                measured=None if established is None else int(established),
            ),
        )

    return Check(
        procedure="repeated_four_tuples",
        name="repeated-four-tuples",
        truth=f"{frames} frames of connections drawn from {count}",
        technology="nat44",
        table=Table(size=100_000, udp_timeout_ns=TIMEOUT_NS),
        tables={
            "connections": {"count": count},
            "repeated_four_tuples": {"frames": frames, "maximum": 5_000, "minimum": 5_000, "resolution": 100},
        },
        compare=compare,
        poll_gap_max_ns=truth.SECOND_NS,  # only counts are compared: when a frame was seen does not matter
        late_departure_max_ns=truth.SECOND_NS,
    )


def _of_search(evidence: Evidence, procedure: str, true: Fraction, resolution: int, slack: Fraction) -> Comparison:
    runs = [run for run in evidence.results if run.procedure == procedure and isinstance(run, RateResult)]
    repetition = runs[0].repetitions[0] if runs and runs[0].repetitions else None
    return Comparison(
        quantity=procedure.replace("_", " "),
        unit="connections/s",
        true=true,
        measured=repetition.lower_bound if repetition is not None and repetition.kind == "found" else None,
        allowed_below=resolution + slack,
        allowed_above=slack,
    )


def capacity_check(overflow: Overflow, name: str, size: int) -> Check:
    """Return a check of a table of `size` connections; `name` is what the Tester calls its `overflow`."""

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        run = evidence.result(CapacityResult)
        repetition = run.repetitions[0] if run is not None and run.repetitions else None
        return (
            Comparison(
                quantity="capacity",
                unit="connections",
                true=size,
                measured=repetition.lower_bound if repetition is not None and repetition.kind == "found" else None,
            ),
            Comparison(
                quantity="overflow behaviour",
                unit="",
                true=name,
                measured=repetition.overflow if repetition is not None else None,
            ),
        )

    return Check(
        procedure="connection_tracking_table_capacity",
        name=f"capacity-{overflow.replace('_', '-')}",
        truth=f"table of {size} connections, overflow {overflow}",
        technology="nat44",
        table=Table(size=size, overflow=overflow, udp_timeout_ns=TIMEOUT_NS),
        tables={
            "connection_tracking_table_capacity": {
                "start": 1000,
                "maximum": 8000,
                "maximum_rate": 10_000,
                "rate_resolution": 2_000,
                "resolution": 1,
            },
        },
        compare=compare,
        poll_gap_max_ns=truth.SECOND_NS,  # only counts are compared: when a frame was seen does not matter
        late_departure_max_ns=truth.SECOND_NS,
    )

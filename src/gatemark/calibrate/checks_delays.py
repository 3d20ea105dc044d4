"""Latency, PDV and IPDV against known delays. Pure.

A delay that the Tester measures is the gateway's plus that of its own path, which `self-latency` measures first through
a reference gateway that delays nothing. So the true delay is the gateway's delay plus the median of that path. The
error may be 1 microsecond plus the spread of that path: up to its 90th percentile for a median, up to its 99.9th for a
99.9th percentile. Percentiles near the end, and extremes, also depend on single frames that either side delayed; both
sides report by how much in every trial. Where the path spreads too much, nothing is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gatemark.calibrate import truth
from gatemark.calibrate.model import Check, Comparison, Evidence, Number, SelfError
from gatemark.procedures.delay.result import DelayResult, DelaySeries
from gatemark.refdut.document import Delay, Flow
from gatemark.results.part import Figure

LOAD = 20_000
DURATION, FIRST_TAG, TAGS = "1s", "250ms", 15_000
"""Many frames in a short time: on a machine that others use, one undisturbed second is easier to find than four."""
TOLERANCE_NS = 1_000
US = 1_000
SPREAD_NS_MAX = 5_000_000
"""Spread of the Tester's own path (99.9th percentile minus median) beyond which the machine is too busy to compare."""


def delay_checks(*, quick: bool) -> list[Check]:
    """Return the checks of delays, the Tester's own first."""
    ramp = tuple(US * (1000 + (37 * number) % 150) for number in range(100))
    steps = (*[US * 200] * 990, *[US * 20_000] * 8, *[US * 30_000] * 2)
    checks = [_self_latency(repetitions=2 if quick else 4)]
    fixed = [500 * US] if quick else [50 * US, 500 * US, 5_000 * US]
    checks += [
        _known(f"delay-fixed-{value // US}us", f"every frame {value // US} µs", "fixed", (value,)) for value in fixed
    ]
    checks.append(_known("delay-periodic", "periodic, 1000 µs to 1149 µs", "periodic", ramp))
    if not quick:
        checks.append(_known("delay-tail", "200 µs; 8 of 1000 frames 20 ms, 2 of 1000 30 ms", "periodic", steps))
        checks.append(_uniform("delay-uniform", 100 * US, 200 * US))
    return checks


def _tables(repetitions: int = 1) -> dict[str, object]:
    return {
        "repetitions": repetitions,
        "delay": {"load": LOAD, "duration": DURATION, "first_tag": FIRST_TAG, "tags": TAGS},
    }


def _self_latency(repetitions: int) -> Check:
    return Check(
        procedure="self_latency",
        name="self-latency",
        truth="no delay",
        technology="router44",
        tables=_tables(repetitions),
        compare=lambda _: (),
        gives_self_error=True,
    )


def self_error_of(evidence: Evidence) -> SelfError | None:
    """Return the Tester's own error from the delays through a gateway that delays nothing; None without a result."""
    series = series_of(evidence)
    if series is None or not series.samples or None in whole(series.delay_ns["p99.9"]):
        return None
    medians = [value for value in whole(series.delay_ns["p50"]) if value is not None]
    return SelfError(
        minimum_ns=_extreme(whole(series.delay_ns["minimum"]), least=True),
        median_ns=int(truth.median(medians)),
        p90_ns=_extreme(whole(series.delay_ns["p90"])),
        p999_ns=_extreme(whole(series.delay_ns["p99.9"])),
        maximum_ns=_extreme(whole(series.delay_ns["maximum"])),
        variation_minimum_ns=_extreme(_values(series, "ipdv", "minimum_ns"), least=True),
        variation_maximum_ns=_extreme(_values(series, "ipdv", "maximum_ns")),
    )


def _known(name: str, words: str, kind: str, values: tuple[int, ...]) -> Check:
    """Return a check of delays whose whole distribution is known: that of one period, as all frames are tagged."""

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        differences = truth.variations(values)
        return _comparisons(
            evidence,
            median=truth.median(values),
            high=truth.percentile(values, 99_900),
            spread=truth.percentile(values, 99_900) - min(values),
            variation=(min(differences), truth.median(differences), max(differences)),
        )

    return Check(
        procedure="delay",
        name=name,
        truth=words,
        technology="router44",
        forward=_delayed(Delay(kind="fixed" if kind == "fixed" else "periodic", values_ns=values)),
        tables=_tables(),
        compare=compare,
    )


def _uniform(name: str, least: int, most: int) -> Check:
    """Return a check of pseudorandom delays, which adds a sampling error to the errors of both sides.

    The p-quantile of N values over a range W has the standard deviation W sqrt(p (1 - p) / N); four of them are
    allowed. The differences of two such delays lie within the range, both ways, and their median is 0.
    """
    width = most - least
    half, tail = 4 * width * (0.25 / TAGS) ** 0.5, 4 * width * (0.001 * 0.999 / TAGS) ** 0.5

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        high = least + Fraction(999 * width, 1000)
        return _comparisons(
            evidence,
            median=least + Fraction(width, 2),
            high=high,
            spread=high - least,
            variation=None,
            sampling=(half, tail),
        )

    return Check(
        procedure="delay",
        name=name,
        truth=f"uniform, {least // US} µs to {most // US} µs",
        technology="router44",
        forward=_delayed(Delay(kind="uniform", values_ns=(least, most))),
        tables=_tables(),
        compare=compare,
    )


def _delayed(delay: Delay) -> Flow:
    """Return a flow in which no frame waits for an earlier, slower one, so that each has its own delay."""
    return Flow(delay=delay, keep_order=False)


def _comparisons(
    evidence: Evidence,
    *,
    median: Number,
    high: Number,
    spread: Number,
    variation: tuple[Number, Number, Number] | None,
    sampling: tuple[float, float] = (0, 0),
) -> tuple[Comparison, ...]:
    """Compare TL, WCL, PDV and IPDV with their truths in the gateway, in nanoseconds."""
    self_error, series = evidence.self_error, series_of(evidence)
    if self_error is None or series is None:
        return (Comparison(quantity="delay", unit="ns", true="a result", measured=None),)
    single = evidence.disturbance_ns
    below = TOLERANCE_NS + (self_error.median_ns - self_error.minimum_ns)
    # The median moves no further while 9 of 10 frames do not.
    near = TOLERANCE_NS + (self_error.p90_ns - self_error.median_ns)
    far = TOLERANCE_NS + self_error.spread_ns + single
    both = TOLERANCE_NS + (self_error.p999_ns - self_error.minimum_ns) + single
    comparisons = [
        _ns(
            "TL",
            median + self_error.median_ns,
            _values(series, "latency", "typical_ns"),
            below + sampling[0],
            near + sampling[0],
        ),
        _ns(
            "WCL",
            high + self_error.median_ns,
            _values(series, "latency", "worst_case_ns"),
            below + sampling[1],
            far + sampling[1],
        ),
        _ns("PDV", spread, _values(series, "pdv", "pdv_ns"), both + 2 * sampling[1], both + 2 * sampling[1]),
    ]
    if variation is not None:
        least, middle, most = variation
        faster, slower = (
            TOLERANCE_NS - self_error.variation_minimum_ns + single,
            TOLERANCE_NS + self_error.variation_maximum_ns + single,
        )
        comparisons += [
            _ns("IPDV minimum", least, _values(series, "ipdv", "minimum_ns"), faster, slower),
            _ns("IPDV median", middle, _values(series, "ipdv", "median_ns"), near, near),
            _ns("IPDV maximum", most, _values(series, "ipdv", "maximum_ns"), faster, slower),
        ]
    return tuple(comparisons)


def _values(series: DelaySeries, metric: str, figure: str) -> Sequence[int | None]:
    """Return the values of the repetitions; nothing where the metric was not measured."""
    part = getattr(series, metric)
    return () if part is None else whole(getattr(part, figure))


def whole(figure: Figure) -> Sequence[int | None]:
    """Return the values of a figure, whole nanoseconds."""
    return [None if value is None else int(value) for value in figure.values]


def _ns(quantity: str, true: Number, measured: Sequence[int | None], below: Number, above: Number) -> Comparison:
    value = measured[0] if measured else None
    return Comparison(quantity=quantity, unit="ns", true=true, measured=value, allowed_below=below, allowed_above=above)


def series_of(evidence: Evidence) -> DelaySeries | None:
    """Return the delays that were measured; None without a result."""
    run = evidence.result(DelayResult)
    series = run.points[0].series if run is not None and run.points else ()
    return series[0] if series else None


def _extreme(values: Sequence[int | None], *, least: bool = False) -> int:
    known = [value for value in values if value is not None]
    return min(known) if least else max(known)

"""What a check is, what it saw, and how its figures compare with the truth. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, TypedDict, TypeVar

from pydantic import InstanceOf, PlainSerializer, SerializerFunctionWrapHandler, computed_field, model_serializer

from gatemark.errors import GatemarkError
from gatemark.refdut.document import Flow, Table
from gatemark.results.part import Part
from gatemark.results.run import RunResult
from gatemark.technology import MappingKind, TechnologyName
from gatemark.trial.record import TrialRecord

Number = int | float | Fraction
R = TypeVar("R", bound=RunResult)


def _plain(value: Number | str) -> int | float | str:
    """Return a value for JSON: an integer where a number is whole."""
    if isinstance(value, str | int):
        return value
    return int(value) if value == int(value) else float(value)


Exact = Annotated[int | float | InstanceOf[Fraction], PlainSerializer(_plain)]
"""A number that is rounded only where it is written."""


class CalibrationPart(Part):
    """A part of calibration.json."""

    behind: ClassVar[Mapping[str, str]] = {}
    """Keys that are computed, and the key behind which each stands in the file; all others stand at the end."""

    @model_serializer(mode="wrap")
    def _in_order(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = dump(self)
        return {
            key: values[key]
            for name in values
            if name not in self.behind
            for key in (name, *(late for late, before in self.behind.items() if before == name))
        }


class NothingProven(GatemarkError):  # noqa: N818 - the check is made again
    """What a check is about did not happen, so nothing was learned about the Tester."""


class Comparison(CalibrationPart):
    """One figure beside its truth. `allowed_below` and `allowed_above` are how far it may lie under and over it."""

    behind: ClassVar[Mapping[str, str]] = {"error": "measured"}

    quantity: str
    unit: str
    true: Exact | str
    """A text for what is not a number, such as the overflow behaviour."""
    measured: Exact | str | None
    """None: the procedure has no result."""
    allowed_below: Exact = 0
    allowed_above: Exact = 0

    @computed_field
    @property
    def error(self) -> Exact | None:
        """Measured minus true; None where either is not a number."""
        if isinstance(self.true, str) or isinstance(self.measured, str) or self.measured is None:
            return None
        return self.measured - self.true

    @computed_field
    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        error = self.error
        if error is None:
            return self.measured is not None and self.measured == self.true
        return -self.allowed_below <= error <= self.allowed_above


def equal_frames(quantity: str, true: int, measured: int) -> Comparison:
    """Compare numbers of frames that must be the same."""
    return Comparison(quantity=quantity, unit="frames", true=true, measured=measured)


class Reference(CalibrationPart):
    """What the reference gateway says about its own errors, the worst over the trials of a check."""

    poll_gap_max_ns: int = 0
    """Longest time in which it did not look at its ports: a frame may have been seen this much after its arrival."""
    late_departure_max_ns: int = 0
    """How late a frame left at most."""
    own_drops: int = 0
    """Frames that it lost without being told to."""

    def worst(self, other: Reference) -> Reference:
        """Return the worse of both in each respect."""
        return Reference(
            poll_gap_max_ns=max(self.poll_gap_max_ns, other.poll_gap_max_ns),
            late_departure_max_ns=max(self.late_departure_max_ns, other.late_departure_max_ns),
            own_drops=self.own_drops + other.own_drops,
        )


class SelfError(CalibrationPart):
    """Delays through a reference gateway that delays nothing: the path of Tester and ports, nanoseconds.

    The worst over its repetitions; the median is that of their medians.
    """

    minimum_ns: int
    median_ns: int
    p90_ns: int
    p999_ns: int
    maximum_ns: int
    variation_minimum_ns: int
    variation_maximum_ns: int

    @property
    def spread_ns(self) -> int:
        """99.9th percentile minus median: how far off a delay may be without being noticed."""
        return self.p999_ns - self.median_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerError:
    """How late timers of the kernel were that delays frames, nanoseconds; none is early."""

    median_ns: int
    p90_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTrial:
    """One trial from both sides."""

    record: TrialRecord
    counts: Mapping[str, Any]
    """What the gateway counted meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a check has to compare."""

    results: tuple[RunResult, ...]
    trials: tuple[ObservedTrial, ...]
    reference: Reference
    self_error: SelfError | None = None
    timer: TimerError | None = None
    """Of a gateway whose kernel delays frames."""

    def result(self, model: type[R]) -> R | None:
        """Return the result of a procedure by its model; None if it was not measured."""
        return next((result for result in self.results if isinstance(result, model)), None)

    @property
    def lateness_max_ns(self) -> int:
        """How late the Tester sent a burst at most, over the valid trials."""
        reports = [trial.record.report for trial in self.trials if trial.record.validity.valid]
        return max((way.lateness_max_ns for report in reports for way in report.directions), default=0)

    @property
    def unsteadiness_ns(self) -> int:
        """How far apart a frame's planned time and the time at which the gateway saw it may lie."""
        return self.reference.poll_gap_max_ns + self.lateness_max_ns

    @property
    def disturbance_ns(self) -> int:
        """How much too long a single delay may be, by what both sides admit."""
        return self.unsteadiness_ns + self.reference.late_departure_max_ns


GAP_NS_MAX = 5_000_000
"""If the reference gateway does not look at its ports for longer, its rates and delays are not known well enough."""
Compare = Callable[[Evidence], tuple[Comparison, ...]]


class Limits(TypedDict):
    """How far off the reference gateway and the Tester may be in a check."""

    poll_gap_max_ns: int
    late_departure_max_ns: int
    lateness_max: str


ONLY_COUNTS: Limits = {"poll_gap_max_ns": 10**9, "late_departure_max_ns": 10**9, "lateness_max": "1s"}
"""Of a check that compares only counts: when a frame was seen does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One truth and what measures it: the reference gateway's settings, a campaign, and two formulas in `compare`."""

    procedure: str
    """What is checked; `--only` takes this name or `name`."""
    name: str
    truth: str
    """What the reference gateway is told, in words."""
    technology: TechnologyName
    tables: Mapping[str, Any]
    """Tables of the campaign beside those of ports and gateway."""
    compare: Compare
    subscribers: int = 1
    """Hosts on the left that have tunnels of their own: B4s (RFC 6333), or customer edges of 6rd (RFC 5969)."""
    netem: Mapping[str, int] | None = None
    """Settings of the recipe `linux-netem`, which is measured then in place of the reference gateway."""
    forward: Flow = field(default_factory=Flow)
    reverse: Flow = field(default_factory=Flow)
    table: Table | None = None
    mapping: MappingKind = "endpoint_independent"
    """How a stateful gateway maps (RFC 4787 section 4.1)."""
    reset_ns: int | None = None
    """How long a reset takes, where the gateway is to be reset."""
    poll_gap_max_ns: int = GAP_NS_MAX
    """If the reference gateway did not look at its ports for longer, it did not keep the truth."""
    late_departure_max_ns: int = GAP_NS_MAX
    """The same for a frame that left late."""
    lateness_max: str = "1ms"
    """How late the Tester may send a burst, as in a campaign file."""
    is_held_up: bool = False
    """Another program takes the gateway's CPU away for a while, again and again, in the first trial at each load."""
    gives_self_error: bool = False
    """The check compares nothing but says how long the Tester's own path is."""
    counts_phase_two: bool = False
    """Stateful: counters and impairments start again with test phase 2."""


Status = Literal["passed", "failed", "reference not kept", "no result", "skipped"]


class CheckResult(CalibrationPart):
    """How a check ended; `procedure` to `technology` are those of the check."""

    behind: ClassVar[Mapping[str, str]] = {"status": "technology"}

    procedure: str
    name: str
    truth: str
    technology: TechnologyName
    problem: str = ""
    """Why there is no result."""
    skipped: str = ""
    """Why it was not measured: what this machine lacks."""
    attempts: int
    """How often it was measured: again where the reference gateway did not keep its truth."""
    kept: bool
    made_at: str = ""
    """End of the last attempt, in UTC."""
    seconds: Annotated[float, PlainSerializer(lambda seconds: round(seconds, 1))]
    """Of all attempts."""
    folder: str
    reference: Reference
    comparisons: tuple[Comparison, ...]
    """None in a check of the Tester's own path."""

    @computed_field
    @property
    def status(self) -> Status:
        """Return passed, failed, or why neither can be said."""
        if self.skipped:
            return "skipped"
        if self.problem:
            return "no result"
        if not self.kept:
            return "reference not kept"
        return "passed" if all(comparison.passed for comparison in self.comparisons) else "failed"

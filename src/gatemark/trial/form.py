"""What a trial does and records beyond its load and its duration. Values only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gatemark.units import frames_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """Tagged frames of each direction, evenly spread over the rest of the trial (RFC 8219 section 7.2)."""

    first_ns: int
    """Frames that are due before this time are not tagged."""
    count: int
    """Of N frames, the first F of them due before `first_ns`, the k-th tag is frame F + floor(k (N - F) / count)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateStep:
    """Another load from some time on (RFC 2544 section 26.5)."""

    after_ns: int
    """Counted from the start of sending."""
    frames_per_second: int
    """Of each direction, from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """The load of each direction leaves in evenly spaced bursts (RFC 2544 section 21), the same in the long run."""

    frames: int
    """Of each burst."""
    frames_per_second: int
    """Inside a burst: in most cases the line rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialForm:
    """What the trials of a repetition have in common beside their loads."""

    timeout_ns: int | None = None
    """A correct frame that arrives later than this after it was sent is late, not received. None: no such limit."""
    tags: Tags | None = None
    variation: bool = False
    """Record the delay variation between successive frames (RFC 8219 section 7.3.2)."""
    histogram: bool = False
    """Report the whole histograms of delays."""
    step: RateStep | None = None
    bursts: Bursts | None = None
    reset_after_ns: int | None = None
    """When the gateway is reset, counted from the start of sending (RFC 6201 section 4)."""
    drain_ns: int | None = None
    """How long to wait for frames after sending, instead of the campaign's wait."""
    lateness_max_ns: int | None = None
    """No burst may be sent later than this after its planned time, where the campaign allows more."""

    @property
    def expects_loss(self) -> bool:
        """Whether the gateway has to lose frames: it is overloaded or reset."""
        return self.step is not None or self.reset_after_ns is not None

    def lateness_limit_ns(self, allowed_ns: int) -> int:
        """Return how late a burst may be sent where the campaign allows `allowed_ns`."""
        return allowed_ns if self.lateness_max_ns is None else min(allowed_ns, self.lateness_max_ns)

    def give_up_ns(self, allowed_ns: int, duration_ns: int) -> int:
        """Return how late a burst must be for the trial to be ended, where the campaign allows `allowed_ns`.

        A gateway that was reset or overloaded is given its time in any case: the next trial must find it recovered.
        """
        if self.expects_loss:
            return duration_ns
        return self.lateness_limit_ns(allowed_ns)

    @property
    def delays_json(self) -> dict[str, Any] | None:
        """The key `delays` of a request; None where nothing is asked for."""
        if self.timeout_ns is None and self.tags is None and not self.variation and not self.histogram:
            return None
        return {
            "timeout_ns": self.timeout_ns,
            "tags": None if self.tags is None else asdict(self.tags),
            "variation": self.variation,
            "histogram": self.histogram,
        }

    @property
    def load_json(self) -> dict[str, Any]:
        """The keys of each direction of a request that say how its load is spread over time."""
        return {
            "step": None if self.step is None else asdict(self.step),
            "bursts": None if self.bursts is None else asdict(self.bursts),
        }


PLAIN = TrialForm()
"""Counts only, at one load."""


def frames_due(frames_per_second: int, duration_ns: int, step: RateStep | None = None) -> int:
    """Return how many frames one direction of a trial has, as the engine counts them: each part is rounded down."""
    if step is None:
        return frames_in(frames_per_second, duration_ns)
    return frames_in(frames_per_second, step.after_ns) + frames_in(step.frames_per_second, duration_ns - step.after_ns)

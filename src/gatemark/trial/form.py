"""What a trial does and records beyond its load and its duration. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from gatemark.errors import ConfigError
from gatemark.trial.echo import EchoForm
from gatemark.trial.exchange import Exchange
from gatemark.trial.messages import Delays, LoadBursts, LoadFlows, LoadForm, LoadStep
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in


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
    """When the load changes, counted from the start of sending."""
    frames_per_second: int
    """Load of each direction from then on."""

    def to_json(self) -> LoadStep:
        """Return the key `step` of a direction of a request."""
        return {"after_ns": self.after_ns, "frames_per_second": self.frames_per_second}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """The load of each direction leaves in evenly spaced bursts (RFC 2544 section 21), the same in the long run."""

    frames: int
    """Frames of each burst."""
    frames_per_second: int
    """Rate inside a burst: in most cases the line rate."""

    def to_json(self) -> LoadBursts:
        """Return the key `bursts` of a direction of a request."""
        return {"frames": self.frames, "frames_per_second": self.frames_per_second}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStart:
    """Flows that start one after another, each with the same rate from its start on (RFC 8219 section 10.2.2)."""

    flows: int
    """Flows of each direction, at least 2."""
    interval_ns: int
    """Time from the start of one flow to that of the next, rounded down to whole times between two frames of a flow."""

    def rounds_between(self, frames_per_second: int) -> int:
        """Return how many frames a flow has before the next one starts; `frames_per_second` is the load of all.

        Raises ConfigError if it has none.
        """
        rounds = self.interval_ns * frames_per_second // (self.flows * NANOSECONDS_PER_SECOND)
        if rounds == 0:
            raise ConfigError(
                what=f"at {frames_per_second} frames/s each of {self.flows} flows has a frame less often than the next"
                f" flow starts, every {format_duration_ns(self.interval_ns)}",
                where="traffic.flow_interval",
                fix="write a longer one, or keep loads above the number of flows divided by it",
            )
        return rounds

    def absent_frames(self, frames_per_second: int) -> int:
        """Return how many frames fewer than load times duration each direction has."""
        return self.rounds_between(frames_per_second) * (self.flows * (self.flows - 1) // 2)

    def ramp_ns(self, frames_per_second: int) -> int:
        """Return the time from the start of the first flow to that of the last one."""
        slots = 2 * self.absent_frames(frames_per_second)
        return -(-slots * NANOSECONDS_PER_SECOND // frames_per_second)

    def to_json(self, frames_per_second: int) -> LoadFlows:
        """Return the key `flow_start` of a direction of a request."""
        return {"flows": self.flows, "rounds_between": self.rounds_between(frames_per_second)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialForm:
    """Properties that the trials of a repetition share, other than their loads."""

    timeout_ns: int | None = None
    """A correct frame that arrives later than this after it was sent is late, not received. Null: no such limit."""
    tags: Tags | None = None
    """Tagged frames, if any."""
    variation: bool = False
    """Whether the delay variation between successive frames is recorded (RFC 8219 section 7.3.2)."""
    histogram: bool = False
    """Whether the whole histograms of delays are reported."""
    step: RateStep | None = None
    """Another load from some time on, if any."""
    bursts: Bursts | None = None
    """How the load leaves in bursts, if it does."""
    flow_start: FlowStart | None = None
    """The sending time is that of all flows together: the time until the last one starts comes before it."""
    reset_after_ns: int | None = None
    """When the gateway is reset, counted from the start of sending (RFC 6201 section 4)."""
    drain_ns: int | None = None
    """How long to wait for frames after sending, instead of the campaign's wait."""
    lateness_max_ns: int | None = None
    """No burst may be sent later than this after its planned time, where the campaign allows more."""
    exchange: Exchange | None = None
    """Packets that are sent as they are, instead of anything else."""
    echo: EchoForm | None = None
    """Echo requests and their replies, instead of UDP."""

    @property
    def of_echo(self) -> EchoForm:
        """The form of a trial of echo requests."""
        assert self.echo is not None, "it is a trial of echo requests"
        return self.echo

    @property
    def of_exchange(self) -> Exchange:
        """The packets of a trial that sends them as they are."""
        assert self.exchange is not None, "it is a trial of single packets"
        return self.exchange

    @property
    def expects_loss(self) -> bool:
        """Whether the gateway has to lose frames: it is overloaded or reset."""
        return self.step is not None or self.reset_after_ns is not None

    @property
    def is_even(self) -> bool:
        """Whether frames are due at one rate, so that an index is a time."""
        return self.step is None and self.bursts is None and self.flow_start is None

    @property
    def measures_delays(self) -> bool:
        """Whether delays are asked for, and not only which frames are late."""
        return self.tags is not None or self.variation or self.histogram

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

    def ramp_ns(self, frames_per_second: int) -> int:
        """Return how long a trial takes before all of its flows have started."""
        return 0 if self.flow_start is None else self.flow_start.ramp_ns(frames_per_second)

    def delays_json(self, frames_per_second: int) -> Delays | None:
        """Return the key `delays` of a request; None where nothing is asked for."""
        if self.timeout_ns is None and self.tags is None and not self.variation and not self.histogram:
            return None
        return {
            "timeout_ns": self.timeout_ns,
            "tags": None
            if self.tags is None
            else {"first_ns": self.tags.first_ns + self.ramp_ns(frames_per_second), "count": self.tags.count},
            "variation": self.variation,
            "histogram": self.histogram,
        }

    def load_json(self, frames_per_second: int) -> LoadForm:
        """Return the keys of a direction of a request that say how its load is spread over time."""
        return {
            "step": None if self.step is None else self.step.to_json(),
            "bursts": None if self.bursts is None else self.bursts.to_json(),
            "flow_start": None if self.flow_start is None else self.flow_start.to_json(frames_per_second),
        }


PLAIN = TrialForm()
"""Counts only, at one load."""


def frames_due(frames_per_second: int, duration_ns: int, form: TrialForm = PLAIN) -> int:
    """Return how many frames one direction of a trial has, as the engine counts them: each part is rounded down."""
    step = form.step
    if form.flow_start is not None:
        return frames_in(frames_per_second, duration_ns) - form.flow_start.absent_frames(frames_per_second)
    if step is None:
        return frames_in(frames_per_second, duration_ns)
    return frames_in(frames_per_second, step.after_ns) + frames_in(step.frames_per_second, duration_ns - step.after_ns)

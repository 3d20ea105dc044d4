"""The published result of echo requests of more and more clients. Times are nanoseconds.

A figure has one value for each valid repetition in which the gateway did not collapse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import computed_field

from gatemark.facts import EchoLoop
from gatemark.results.part import Figure, LimitedBy, Part, PerRepetition, Ratio
from gatemark.results.quantity import Better, Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.results.tester_parts import SelfTestPart, beyond
from gatemark.stats.percentiles import percent_words
from gatemark.stats.series import degradation_percent
from gatemark.stats.summary import Number

OWN_SHARE_MAX = 10
"""Per cent of a round trip that may be the Tester's own work; more, and the Tester is the limit."""
BUSY_SHARE_MAX = 90
"""Per cent of the time for which the Tester may be busy with echo packets; more, and the Tester is the limit."""
OUTSTANDING_EXCESS = Fraction(2, 100)
"""By how much requests under way may seem to be more than there are slots: both figures are of slightly other times."""

LOOP_FACTOR = 4
"""How many times as fast as the gateway the Tester's clients and its host that answers must be by themselves."""

RTT_FIGURES = ("minimum", "mean", "p50", "deviation", "p99", "p99.9", "maximum")
"""Keys of the figures of round-trip times."""


def rtt_words(key: str) -> str:
    """Return a key of `RTT_FIGURES` in words."""
    return {"deviation": "standard deviation", "p50": "median"}.get(key, percent_words(key))


def _rtt_kinds(name: str, of: str = "") -> dict[str, QuantityKind]:
    """Return the kinds of one sort of round-trip time by their keys; a percentile is that of RFC 2330."""
    return {
        key: QuantityKind(
            f"{name} {rtt_words(key)}", "ns", "lower", ("RFC 2330 section 11.3" if key.startswith("p") else "none") + of
        )
        for key in RTT_FIGURES
    }


MOST_REPLIES = QuantityKind("most replies", "packets/s", "higher", "none: the most of any number of clients")
LOSS = QuantityKind("echo loss", "%", "lower", "none: requests without a correct reply in time")
REQUESTS = QuantityKind("echo requests", "packets/s", None, "none: while all clients ask")
REPLIES = QuantityKind("echo replies", "packets/s", "higher", "none: correct and in time, while all clients ask")
RTT = _rtt_kinds("round-trip time")
FIRST_RTT = _rtt_kinds("first round-trip time", ": of the first request to each destination")
UNDER_WAY = QuantityKind("requests under way", "packets", None, "none: replies/s times the mean round-trip time")


class EchoCounts(PerRepetition):
    """Echo requests and what became of them; a tuple has one number for each repetition."""

    requests: tuple[int, ...]
    """Requests handed to the port."""
    arrived: tuple[int, ...]
    """Requests that arrived correct at the host that answers."""
    replies: tuple[int, ...]
    """Replies correct and in time at the client that asked."""
    late: tuple[int, ...]
    """Correct replies after the timeout."""
    lost: tuple[int, ...]
    """Requests without any reply."""
    duplicate: tuple[int, ...]
    """Packets that arrived more than once."""
    faulty: tuple[int, ...]
    """Requests or replies with a fault, each counted once."""


class EchoClientPart(EchoCounts):
    """One client."""

    client: int
    """Its number, from 0."""
    rtt_ns: dict[str, Figure]
    """Round-trip times, as of all clients."""


class HostFigure(Part):
    """One thing that was sampled at the gateway's host, in the trials of one number of clients."""

    series: str
    """Its name in the files of the samples."""
    name: str
    """Its name in words."""
    unit: str
    """Empty for what a command of the user prints."""
    values: Figure
    """The mean while requests were sent; of memory that is available the least, of memory of a process and of
    connections the most."""
    deviation: Figure
    """Standard deviation of the samples of each trial; null with fewer than two."""
    above_baseline: Figure | None
    """How much more memory was in use than in the mean before the first request, kB. Null unless it is memory."""


class OwnLoop(Part):
    """What the Tester reaches by itself: its clients ask its own host that answers, with no gateway between them."""

    replies_per_second: int
    """Replies/s in a closed loop with as many clients and slots; for a constant rate, with as many slots as there can
    be."""
    rtt_ns: int | None
    """Median round trip at `rtt_frames_per_second`, which is unaffected when other programs briefly take the CPU. Null
    if it was not measured."""
    rtt_frames_per_second: int | None
    """Lowest rate of the self-test that is not below the one of the gateway, else its highest. Null if it was not
    measured."""


class OverloadPoint(Part):
    """One number of clients: a column of the table."""

    clients: int
    """Number of clients."""
    frames_per_second: int | None
    """Rate of the requests of all clients. Null in a closed loop."""
    repetitions: int
    """Valid repetitions in which the gateway worked to the end."""
    tester_limited: int
    """Repetitions without a valid trial."""
    collapses: tuple[str, ...]
    """How the gateway stopped working, once for each repetition in which it did."""
    counts: EchoCounts
    """Packets of all clients; each key has one number for each repetition."""
    faults: dict[str, int]
    """Faults of all repetitions by reason, separately for requests and replies; a packet may have several."""
    loss_percent: Figure
    """Requests without a correct reply in time, in percent."""
    requests_per_second: Figure
    """Requests handed over while all clients asked."""
    replies_per_second: Figure
    """Replies correct and in time while all clients asked."""
    rtt_ns: dict[str, Figure]
    """Round-trip times of all clients by name: `minimum`, `mean`, `p50`, `deviation`, `p99`, `p99.9`, `maximum`. They
    are exact, but percentiles within 0.1 %. Percentiles are of all requests: one without a correct reply in time ranks
    above every round trip, and a percentile that falls on one is null. The others are of the replies."""
    first_rtt_ns: dict[str, Figure]
    """The same of the first request to each destination, for which the gateway makes its state."""
    clients_apart: tuple[EchoClientPart, ...]
    """Each client by itself."""
    outstanding: Figure
    """Replies/s times the mean round-trip time: how many requests were under way (Little's law)."""
    tester_share_percent: Figure
    """The Tester's own work on a request and its reply, as a share of the mean round-trip time."""
    tester_busy_percent: Figure
    """Time for which clients and the host that answers worked on echo packets together, as a share of one core."""
    host: tuple[HostFigure, ...]
    """What was sampled at the gateway's host while requests were sent. Empty where it was not sampled."""
    tester_loop: OwnLoop | None = None
    """What the Tester reaches by itself: its clients ask its own host that answers, without a gateway. Null without a
    self-test with as many clients."""

    @property
    def is_collapsed(self) -> bool:
        """Whether the gateway stopped working in any repetition."""
        return bool(self.collapses)

    @property
    def limited_by(self) -> LimitedBy:
        """What limited the figures: the Tester, if it may have been too slow in any repetition."""
        return "tester" if self.tester_limited or self.is_of_tester else "gateway"

    @computed_field
    @property
    def is_of_tester(self) -> bool:
        """Whether the Tester was the limit: its work took more than 10 % of a round trip or 90 % of a core, or the
        replies/s of any repetition are more than a quarter of `tester_loop.replies_per_second`."""
        return self.is_busy or self.is_near_loop

    @property
    def is_busy(self) -> bool:
        """Whether its work took too large a share of a round trip or of a core in any repetition."""
        shares = ((self.tester_share_percent, OWN_SHARE_MAX), (self.tester_busy_percent, BUSY_SHARE_MAX))
        return any(value is not None and value > most for figure, most in shares for value in figure.values)

    @property
    def is_near_loop(self) -> bool:
        """Whether the Tester by itself is less than four times as fast as what was measured in any repetition."""
        rates = [Fraction(value) for value in self.replies_per_second.values if value is not None]
        return (
            self.tester_loop is not None and LOOP_FACTOR * max(rates, default=0) > self.tester_loop.replies_per_second
        )

    def median(self, figure: Figure) -> Number | None:
        """Return the median of a figure; None if it is not known, or if the Tester was the limit."""
        return None if figure.summary is None or self.limited_by != "gateway" else figure.summary.median


class GracefulRules(Part):
    """The rules by which degradation is judged."""

    rate: Ratio
    """Least replies/s beyond saturation, as a share of the most."""
    rtt: Ratio
    """Longest mean round-trip time beyond saturation, as a share of one that grows like the number of clients."""
    loss: Ratio
    """Most requests without a correct reply in time."""


class GracefulCheck(Part):
    """One rule with one number of clients."""

    rule: Literal["rate", "rtt", "loss", "health"]
    """The rule; `health`: the gateway collapsed."""
    clients: int
    """Number of clients."""
    value: Number | None
    """Median of the repetitions, in packets/s, ns or percent. Null for `health`."""
    limit: Number | None
    """Least packets/s, longest time in ns, or most percent that is allowed. Null for `health`."""
    holds: bool
    """Whether the value is within the limit."""


class Judgement(Part):
    """Whether the gateway degrades gracefully, with every figure that decides it."""

    graceful: bool | None
    """Whether every check holds. Null if that cannot be said."""
    reason: str | None
    """Why it cannot be said. Null if it can."""
    saturated_at: int | None
    """Fewest clients that saturate the gateway. Null if it cannot be said, or if the gateway collapsed."""
    left_out: tuple[int, ...] = ()
    """Numbers of clients with which the Tester was the limit: only their replies/s count, as reached."""
    checks: tuple[GracefulCheck, ...]
    """Every figure that decides it."""


class EchoDegradation(Part):
    """How much worse a figure is than with one client: Xpd (RFC 8219 section 10.2.1)."""

    clients: int
    """The number of clients n."""
    quantity: str
    """Name of the quantity, as in `result.csv`."""
    percent: float
    """(X1 - Xn) / X1 * 100 where higher is better, else (Xn - X1) / X1 * 100."""


class OverloadResult(RunResult):
    """What echo requests of more and more clients do to the gateway.

    A figure has one value for each valid repetition in which the gateway worked. A figure of the gateway's host is also
    null where it was not sampled while requests were sent.
    """

    kinds: ClassVar = (MOST_REPLIES, LOSS, REQUESTS, REPLIES, *RTT.values(), *FIRST_RTT.values(), UNDER_WAY)
    procedure: Literal["overload"] = "overload"
    mode: Literal["closed_loop", "constant_rate"]
    """When requests were sent: the next one of a slot on the reply to the last, or at constant rates."""
    window: int
    """Slots of each client: requests that are under way at once."""
    count: int
    """Requests to each destination."""
    destinations: int
    """Destinations of each client."""
    shared_destinations: bool
    """Whether there are fewer hosts than destinations of all clients, so that some clients ask the same ones."""
    data_octets: int
    """Octets of data in a request."""
    pace_without_reply_ns: int | None
    """Time after which a slot continues without a reply. Null at a constant rate."""
    timeout_ns: int
    """A reply that comes later is late."""
    duration_ns: int
    """Longest sending time of a trial."""
    rules: GracefulRules
    """What the judgement asks for."""
    points: tuple[OverloadPoint, ...]
    """One entry for each number of clients, and each rate if there are any, in the order of the campaign file; all
    rates of one number of clients are together."""

    @computed_field
    @property
    def judgement(self) -> Judgement:
        """Whether the gateway degrades gracefully."""
        return judged(self)

    @computed_field
    @property
    def degradations(self) -> tuple[EchoDegradation, ...]:
        """Xpd against one client with the same rate, as RFC 8219 section 10.2.1 defines it for flows."""
        return tuple(_degradations(self.points))

    def beside(self, self_test: SelfTestPart) -> Self:
        """Return the run with what the Tester reaches by itself; a column that is too near to that is the Tester's."""
        sizes = self.frame_sizes.model_dump().items()
        loops = [loop for family, size in sizes if size is not None for loop in self_test.echo_loops_of(family, size)]
        points = tuple(
            point.model_copy(update={"tester_loop": _tester_loop(point, loops, self.window)}) for point in self.points
        )
        return self.model_copy(update={"points": points, "limited_by": limit_of(points)})

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the highest rate of replies first, then the figures of every number of clients.

        Where the Tester was the limit of the column with that rate, the gateway's own is at least as high.
        """
        best = _of_most_replies(self.points)
        if best is not None:
            yield self.quantity(
                MOST_REPLIES,
                values=best.replies_per_second.values,
                summary=best.replies_per_second.summary,
                limited_by=best.limited_by,
                is_headline=True,
            )
        for point in self.points:
            yield from self._of(point)

    def _of(self, point: OverloadPoint) -> Iterator[Quantity]:
        where = {"clients": point.clients, "load_frames_per_second": point.frames_per_second}
        for kind, figure in figures_of(point):
            yield self.quantity(
                kind,
                values=figure.values,
                summary=figure.summary,
                where=where,
                limited_by=point.limited_by,
            )


def limit_of(points: Sequence[OverloadPoint]) -> LimitedBy:
    """Return what limited the column with the most replies, which is what a run is for; each column has its own."""
    best = _of_most_replies(points)
    return "gateway" if best is None else best.limited_by


def _of_most_replies(points: Sequence[OverloadPoint]) -> OverloadPoint | None:
    return max(points, key=lambda point: _exact(point.replies_per_second), default=None)


def _tester_loop(point: OverloadPoint, loops: Sequence[EchoLoop], window: int) -> OwnLoop | None:
    """Return what the self-test says about a column; None if it says nothing."""
    closed = [loop for loop in loops if loop.frames_per_second is None and loop.clients >= point.clients]
    if point.frames_per_second is None:
        closed = [loop for loop in closed if (loop.clients, loop.window) == (point.clients, window)]
    if not closed:
        return None
    rate = max(
        (Fraction(value) for value in point.requests_per_second.values if value is not None), default=Fraction(0)
    )
    timed = [loop for loop in loops if loop.frames_per_second is not None and loop.samples]
    near = min(timed, key=lambda loop: beyond(loop.frames_per_second or 0, rate), default=None)
    return OwnLoop(
        replies_per_second=max(loop.replies_per_second for loop in closed),
        rtt_ns=None if near is None else near.p50_ns,
        rtt_frames_per_second=None if near is None else near.frames_per_second,
    )


def figures_of(point: OverloadPoint) -> Iterator[tuple[QuantityKind, Figure]]:
    """Yield each figure of a number of clients."""
    yield LOSS, point.loss_percent
    yield REQUESTS, point.requests_per_second
    yield REPLIES, point.replies_per_second
    for kinds, figures in ((RTT, point.rtt_ns), (FIRST_RTT, point.first_rtt_ns)):
        yield from ((kinds[key], figure) for key, figure in figures.items())
    yield UNDER_WAY, point.outstanding
    for sampled in point.host:
        better: Better | None = "lower" if sampled.unit.startswith("%") else None
        yield QuantityKind(f"{sampled.name} under echo requests", sampled.unit, better), sampled.values
        if sampled.above_baseline is not None:
            kind = QuantityKind(f"{sampled.name}, more in use than before", sampled.unit, "lower")
            yield kind, sampled.above_baseline


def judged(result: OverloadResult) -> Judgement:
    """Judge the degradation in a closed loop, from the medians of the repetitions."""
    points = sorted(result.points, key=lambda point: point.clients)
    health = [
        GracefulCheck(rule="health", clients=point.clients, value=None, limit=None, holds=False)
        for point in points
        if point.is_collapsed
    ]
    if result.mode == "closed_loop" and health:
        return Judgement(graceful=False, reason=None, saturated_at=None, checks=tuple(health))
    why = _why_not(result)
    if why is not None:
        return Judgement(graceful=None, reason=why, saturated_at=None, checks=())
    known = [point for point in points if point.limited_by == "gateway"]
    rates = {point.clients: _exact(point.replies_per_second) for point in known}
    round_trips = {point.clients: _exact(point.rtt_ns["mean"]) for point in known}
    most = max(_exact(point.replies_per_second) for point in points)
    least, most_loss = result.rules.rate * most, 100 * result.rules.loss
    saturated = next((clients for clients, rate in rates.items() if rate >= least), None)
    if saturated is None:
        reason = "the most replies came with a number of clients with which the Tester was the limit"
        return Judgement(graceful=None, reason=reason, saturated_at=None, checks=())
    losses = {point.clients: _exact(point.loss_percent) for point in known}
    checks = [_check("loss", clients, loss, most_loss, holds=loss <= most_loss) for clients, loss in losses.items()]
    for clients in (clients for clients in rates if clients > saturated):
        longest = result.rules.rtt * Fraction(clients, saturated) * round_trips[saturated]
        checks += [
            _check("rate", clients, rates[clients], least, holds=rates[clients] >= least),
            _check("rtt", clients, round_trips[clients], longest, holds=round_trips[clients] <= longest),
        ]
    return Judgement(
        graceful=all(check.holds for check in checks),
        reason=None,
        saturated_at=saturated,
        left_out=tuple(point.clients for point in points if point not in known),
        checks=tuple(checks),
    )


def _exact(figure: Figure) -> Fraction:
    """Return the median of a figure; 0 if it has none."""
    return Fraction(0) if figure.summary is None else Fraction(figure.summary.median)


def _check(
    rule: Literal["rate", "rtt", "loss"], clients: int, value: Fraction, limit: Fraction, *, holds: bool
) -> GracefulCheck:
    return GracefulCheck(rule=rule, clients=clients, value=float(value), limit=float(limit), holds=holds)


def _why_not(result: OverloadResult) -> str | None:
    """Say why degradation cannot be judged; None if it can."""
    if result.mode != "closed_loop":
        return "at constant rates the load does not follow the gateway: only a closed loop is judged"
    if len(result.points) < 2:
        return "one number of clients shows no degradation"
    for point in result.points:
        known = (point.replies_per_second, point.rtt_ns["mean"], point.loss_percent)
        if point.limited_by == "gateway" and any(figure.summary is None for figure in known):
            return f"with {point.clients} clients a figure is not known"
    last = max(result.points, key=lambda point: point.clients)
    if last.limited_by != "gateway":
        return f"with {last.clients} clients, the most, the Tester was the limit"
    if sum(point.limited_by == "gateway" for point in result.points) < 2:
        return (
            f"the Tester was the limit but for {last.clients} clients, and one number of clients shows no degradation"
        )
    if not any(_exact(point.replies_per_second) for point in result.points):
        return "no reply came"
    return None


def _degradations(points: tuple[OverloadPoint, ...]) -> Iterator[EchoDegradation]:
    single = {point.frames_per_second: point for point in points if point.clients == 1}
    for point in points:
        before = single.get(point.frames_per_second)
        if before is None or point.clients == 1:
            continue
        pairs = (
            ("echo replies", before.replies_per_second, point.replies_per_second, True),
            ("round-trip time mean", before.rtt_ns["mean"], point.rtt_ns["mean"], False),
            ("round-trip time 99.9 %", before.rtt_ns["p99.9"], point.rtt_ns["p99.9"], False),
        )
        for name, first, later, is_higher_better in pairs:
            x1, xn = before.median(first), point.median(later)
            if x1 and xn is not None:
                percent = degradation_percent(Fraction(x1), Fraction(xn), higher_is_better=is_higher_better)
                yield EchoDegradation(clients=point.clients, quantity=name, percent=float(percent))

"""Makes one trial and judges it: request, engine, test bed, validity, verdict. Knows no search and no journal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Protocol

from gatemark.campaign.events import EventCallback, TrialProgress, TrialStarted
from gatemark.campaign.journal import TrialRecord
from gatemark.campaign.plan import Run
from gatemark.config.model import Campaign
from gatemark.engine.client import Engine
from gatemark.errors import EngineError, Interrupted, TestBedError
from gatemark.search.goal import Bounds, Measure
from gatemark.trial.request import trial_request
from gatemark.trial.result import JsonObject, TrialReport
from gatemark.trial.validity import ValidityPolicy, judge_validity, link_is_down
from gatemark.trial.verdict import judge


class GatewayWatch(Protocol):
    """What is asked of a test bed around each trial."""

    def own_drops(self) -> Mapping[str, int]:
        """Return frames that the test bed dropped on the Tester's side since it was made, by place."""

    def gateway_queue_drops(self) -> Mapping[str, int]:
        """Return frames that the gateway's own queues dropped since it was made, by place."""

    def check(self) -> None:
        """Raise TestBedError if the gateway is not alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOrder:
    """Which trial to make."""

    run: Run
    trial_number: int
    """From 1, over the whole campaign."""
    repetition: int
    """From 0."""
    attempt: int
    """From 0; the attempts before it were invalid."""
    step: Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMaker:
    """Makes trials with one engine on one test bed."""

    campaign: Campaign
    engine: Engine
    testbed: GatewayWatch | None
    on_event: EventCallback

    def make(self, order: TrialOrder, *, loss_tolerance: Fraction, bounds: Bounds, needs_link: bool) -> TrialRecord:
        """Make one trial and judge it.

        A trial during which the test bed broke is no record but an error: it must not be replayed as a result of the
        gateway. So is a trial that was cancelled, and one without link if `needs_link`.
        """
        self.on_event(_started(order, bounds))
        started_at, begin = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
        own_before, gateway_before = self._own_drops(), self._gateway_drops()
        report = self._report(order)
        if self.testbed is not None:
            self.testbed.check()
        if needs_link and link_is_down(report):
            raise _link_down(report)
        drops = _increase(own_before, self._own_drops())
        policy = ValidityPolicy(lateness_max_ns=self.campaign.validity.lateness_max_ns)
        validity = judge_validity(report, policy, testbed_drops=drops)
        return TrialRecord(
            trial_number=order.trial_number,
            run=order.run.number,
            repetition=order.repetition,
            attempt=order.attempt,
            purpose=order.step.purpose,
            frames_per_second=order.step.frames_per_second,
            duration_ns=order.step.duration_ns,
            validity=validity,
            verdict=judge(report, loss_tolerance) if validity.valid else None,
            report=report,
            testbed_drops=drops,
            gateway_drops=_increase(gateway_before, self._gateway_drops()),
            started_at=started_at,
            seconds=round(time.monotonic() - begin, 3),
        )

    def _report(self, order: TrialOrder) -> TrialReport:
        body = trial_request(
            self.campaign,
            order.run.cell,
            frames_per_second=order.step.frames_per_second,
            duration_ns=order.step.duration_ns,
            trial_number=order.trial_number,
        )

        def tell(progress: JsonObject) -> None:
            self.on_event(TrialProgress(trial_number=order.trial_number, progress=progress))

        try:
            report = TrialReport.from_json(self.engine.trial(body, tell))
        except EngineError:
            if self.testbed is not None:
                self.testbed.check()  # an interface or a gateway that is gone is the clearer message
            raise
        if report.cancelled:
            raise Interrupted(
                what="the trial was cancelled",
                where=f"trial {order.trial_number}",
                fix="every finished trial is kept; continue with `gatemark run --resume DIR`",
            )
        return report

    def _own_drops(self) -> Mapping[str, int]:
        return {} if self.testbed is None else self.testbed.own_drops()

    def _gateway_drops(self) -> Mapping[str, int]:
        return {} if self.testbed is None else self.testbed.gateway_queue_drops()


def _increase(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much each counter grew, without those that did not."""
    growth = {place: count - before.get(place, 0) for place, count in after.items()}
    return {place: count for place, count in growth.items() if count}


def _started(order: TrialOrder, bounds: Bounds) -> TrialStarted:
    return TrialStarted(
        run=order.run,
        trial_number=order.trial_number,
        repetition=order.repetition,
        attempt=order.attempt,
        purpose=order.step.purpose,
        frames_per_second=order.step.frames_per_second,
        duration_ns=order.step.duration_ns,
        bounds=bounds,
    )


def _link_down(report: TrialReport) -> TestBedError:
    sides = " and ".join(side for side, port in report.ports.items() if not port.link_up)
    return TestBedError(
        what="the link went down and did not come back",
        where=f"{sides} port",
        fix="check cable, interface and gateway, then continue with `gatemark run --resume DIR`",
    )

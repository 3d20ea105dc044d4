"""Trials of echo requests: the state of a stateful gateway is cleared before, and a collapse is a result."""

from __future__ import annotations

from gatemark.campaign.engine_trial import EngineTrials, Observed
from gatemark.campaign.phases import Judged, StatefulTrials, is_alive, revive
from gatemark.errors import TestBedError
from gatemark.trial.echo_request import echo_request
from gatemark.trial.judgement import verdict_of_collapse, verdict_of_values
from gatemark.trial.order import TrialOrder
from gatemark.trial.report import TrialReport
from gatemark.trial.validity import Validity


class EchoTrials:
    """Makes the trials of echo requests of a campaign."""

    def __init__(self, trials: EngineTrials, stateful: StatefulTrials) -> None:
        self._trials = trials
        self._stateful = stateful

    def make(self, order: TrialOrder, *, needs_link: bool) -> Judged:
        """Make one trial; what was lost is no failure, but a gateway that stops working while it is asked is one.

        Raises TestBedError if the table cannot be cleared, or if the test bed broke otherwise.
        """
        campaign, testbed = self._trials.campaign, self._trials.testbed
        if campaign.is_stateful:
            self._stateful.empty_table(order.trial_number)
        body = echo_request(
            campaign,
            order.run.cell,
            frames_per_second=order.step.frames_per_second,
            duration_ns=order.step.duration_ns,
            trial_number=order.trial_number,
            form=order.form,
        )
        try:
            observed = self._trials.make(body, order.trial_number, needs_link=needs_link, form=order.form)
        except TestBedError as error:
            if testbed is None or is_alive(testbed):
                raise
            what = error.problems[0].what
            return Judged(
                observed=Observed(report=TrialReport.none(order.trial_number), validity=Validity(valid=True)),
                verdict=verdict_of_collapse(what),
                boot=revive(self._trials, testbed, order.trial_number, error),
                collapse=what,
            )
        return Judged(observed=observed, verdict=verdict_of_values(observed.validity))

"""Trials of echo requests: the state of a stateful gateway is cleared before, and a collapse is a result."""

from __future__ import annotations

from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.phases import StatefulTrials, is_alive, revive
from gatemark.errors import HostBootError, OutsideGatewayError, TestBedError
from gatemark.trial.judgement import Evidence, Rules
from gatemark.trial.kinds import kind_of
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import BootFacts
from gatemark.trial.report import TrialReport


class EchoTrials:
    """Makes the trials of echo requests of a campaign."""

    def __init__(self, trials: EngineTrials, stateful: StatefulTrials) -> None:
        self._trials = trials
        self._stateful = stateful

    def make(self, order: TrialOrder, _rules: Rules, demands: Demands) -> Evidence:
        """Make one trial; a gateway that stops working while it is asked is a result.

        Raises TestBedError if the table cannot be cleared, if the gateway does not work before the first request or
        cannot be started again, or if the test bed broke otherwise.
        """
        campaign, can = self._trials.campaign, self._trials.can
        if campaign.technology.is_stateful:
            self._stateful.empty_table(order.trial_number)
        can.check()
        (body,) = kind_of(order).requests(campaign, order)
        try:
            return self._trials.make(body, order, demands, form=order.form)
        except TestBedError as error:
            if is_alive(can):
                raise
            return Evidence(
                order=order,
                report=TrialReport.none(order.trial_number),
                boot=self._revived(order.trial_number, error),
                collapse=error.problems[0].what,
            )

    def _revived(self, trial_number: int, error: TestBedError) -> BootFacts | None:
        """Start the gateway again and see that it works, so that the next trial does not inherit a collapse.

        The state that it still finds may end it again, even while it starts, so it is started once more without that.
        """
        can, boot = self._trials.can, None
        try:
            boot = revive(self._trials, trial_number, error)
        except (HostBootError, OutsideGatewayError):
            raise
        except TestBedError:
            if can.control is None:
                raise
        if self._trials.campaign.technology.is_stateful:
            self._stateful.empty_table(trial_number)
        if not is_alive(can):
            self._trials.restart()
        can.check()
        return boot

"""Every kind of trial that a campaign may ask of the engine, so that what cannot be done is known before the first one.

The procedures themselves say it, with trials that are only counted. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from gatemark.campaign.estimate import counted_orders
from gatemark.campaign.plan import plan_of
from gatemark.config.model import Campaign
from gatemark.errors import ConfigError, EngineError, Problem
from gatemark.trial.kinds import kind_of
from gatemark.trial.messages import FramesRequest
from gatemark.trial.request import frames_of


def preview_requests(campaign: Campaign) -> Iterator[tuple[str, FramesRequest]]:
    """Yield for each kind of trial what it is of, in words, and the request that shows its first frame.

    The engine checks the whole trial for it and sends nothing. Packets that are sent as they are have no such request.
    """
    already_shown: set[str] = set()
    for order in counted_orders(campaign, plan_of(campaign)):
        for trial in kind_of(order).requests(campaign, order):
            preview = frames_of(campaign, trial, 1)
            key = json.dumps(preview, sort_keys=True)
            if key not in already_shown:
                already_shown.add(key)
                cell = order.run.cell
                sizes = f"{cell.frame_sizes.label()} octets, {cell.direction}, {cell.mix} foreground"
                yield f"run {order.run.number}, {order.run.procedure.replace('_', ' ')}, {sizes}", preview


def check_trials(campaign: Campaign, ask: Callable[[FramesRequest], object]) -> None:
    """Raise ConfigError if the engine would refuse any trial of the campaign: before the first one, and all at once.

    `ask` makes a request of it.
    """
    problems: dict[Problem, None] = {}
    for words, preview in preview_requests(campaign):
        try:
            ask(preview)
        except EngineError as error:
            for problem in error.problems:
                what = f"the engine refuses a trial of {words}: {problem.where}: {problem.what}"
                problems[replace(problem, what=what, where=campaign.source)] = None
    if problems:
        raise ConfigError(problems=[*problems])

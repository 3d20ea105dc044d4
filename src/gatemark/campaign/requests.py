"""Every kind of trial that a campaign may ask of the engine, so that what cannot be done is known before the first one.

The procedures themselves say it, with trials that are only counted. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from gatemark.campaign.estimate import counted_orders
from gatemark.campaign.plan import plan_of
from gatemark.config.model import Campaign
from gatemark.trial.answer import one_phase_request, phase_one_request, phase_two_request, validate_request
from gatemark.trial.messages import FramesRequest, TrialRequest
from gatemark.trial.order import TrialOrder
from gatemark.trial.request import frames_of


def preview_requests(campaign: Campaign) -> Iterator[tuple[str, FramesRequest]]:
    """Yield for each kind of trial what it is of, in words, and the request that shows its first frame.

    The engine checks the whole trial for it and sends nothing. Packets that are sent as they are have no such request.
    """
    already_shown: set[str] = set()
    for order in counted_orders(campaign, plan_of(campaign)):
        for trial in _requests_of(campaign, order):
            preview = frames_of(campaign, trial, 1)
            key = json.dumps(preview, sort_keys=True)
            if key not in already_shown:
                already_shown.add(key)
                cell = order.run.cell
                sizes = f"{cell.frame_sizes.label()} octets, {cell.direction}, {cell.mix} foreground"
                yield f"run {order.run.number}, {order.run.procedure.replace('_', ' ')}, {sizes}", preview


def _requests_of(campaign: Campaign, order: TrialOrder) -> Iterator[TrialRequest]:
    """Yield the requests of a trial, one for each phase that the engine makes."""
    step, form = order.step, order.form
    if form.exchange is not None:
        return
    if form.echo is not None or (order.run.cell.connections is None and step.connections is None):
        yield one_phase_request(campaign, order)
        return
    if not order.connections:
        return
    rate = order.connections_per_second or step.frames_per_second
    yield phase_one_request(campaign, order, rate, 0)
    if step.connections is None:
        yield phase_two_request(campaign, order, 1)
    elif step.alpha is not None:
        yield validate_request(campaign, order, 1)

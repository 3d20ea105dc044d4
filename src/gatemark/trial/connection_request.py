"""Requests for trials through a stateful gateway (RFC 9693 section 4): test phase 1, test phase 2, validation. Pure.

Test phase 1 establishes every connection once; test phase 2 and the validation use the same connections. The engine
knows them by their ranges: all requests of one number of connections hold the same hosts and ports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from gatemark.config.model import Campaign
from gatemark.config.stateful import initiator_prefixes, tuple_space
from gatemark.config.types import Mix, Span
from gatemark.facts import OneWay, Variation
from gatemark.trial.cell import Cell
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.messages import Direction, FramesRequest, Phase, Ports, Stream, TrialRequest, Waits
from gatemark.trial.request import (
    campaign_waits,
    direction_json,
    foreground_frames,
    frames_of,
    frames_request,
    gateway_edge_json,
    hosts_json,
    trial_body,
    ways_of,
)
from gatemark.units import NANOSECONDS_PER_SECOND

PhaseName = Literal["establish", "use"]

SHOWN_PER_SECOND = 1000
"""Connections or frames per second of frames that are only shown."""


def frames_with(mix: Mix, foreground: int) -> int:
    """Return the fewest frames among which `foreground` (at least 1) are foreground: frame i is iff i mod n < m."""
    whole, rest = divmod(foreground - 1, mix.m)
    return whole * mix.n + rest + 1


def frame_rate(mix: Mix, foreground_per_second: int) -> int:
    """Return the frames per second with `foreground_per_second` foreground frames among them, rounded up."""
    return -(-foreground_per_second * mix.n // mix.m)


def establishing_ns(mix: Mix, connections: int, connections_per_second: int) -> int:
    """Return how long the frames of test phase 1 are sent, background among them, in nanoseconds, rounded up."""
    frames = frames_with(mix, connections)
    return -(-frames * NANOSECONDS_PER_SECOND // frame_rate(mix, connections_per_second))


def establish_request(
    campaign: Campaign,
    cell: Cell,
    *,
    connections: int,
    connections_per_second: int,
    trial_number: int,
    drawn_frames: int | None = None,
) -> TrialRequest:
    """Return the request for test phase 1: the Initiator alone opens each connection once (RFC 9693 section 4.2).

    With `drawn_frames` it sends that many frames and draws the connection of each.
    """
    order: Variation = "increasing" if drawn_frames is None else "pseudorandom"
    return trial_body(
        campaign,
        trial_number=trial_number,
        duration_ns=establishing_ns(cell.mix, drawn_frames or connections, connections_per_second),
        waits={**campaign_waits(campaign), "drain_ns": campaign.connections_model.timeout_ns, "rest_ns": 0},
        connections={**_connections(campaign, "establish", connections), "send_order": order},
        directions=[
            _direction(campaign, cell, campaign.roles.upload, frame_rate(cell.mix, connections_per_second), connections)
        ],
    )


def use_request(
    campaign: Campaign,
    cell: Cell,
    *,
    connections: int,
    frames_per_second: int,
    duration_ns: int,
    trial_number: int,
    form: TrialForm = PLAIN,
) -> TrialRequest:
    """Return the request for test phase 2: frames of the established connections, each way (RFC 9693 section 4.7)."""
    return trial_body(
        campaign,
        trial_number=trial_number,
        duration_ns=duration_ns,
        waits=_second_waits(campaign),
        connections=_connections(campaign, "use", connections),
        directions=[_direction(campaign, cell, way, frames_per_second, connections) for way in ways_of(cell)],
        form=form,
    )


def validation_request(
    campaign: Campaign, cell: Cell, *, connections: int, connections_per_second: int, trial_number: int
) -> TrialRequest:
    """Return the request for the validation: the Responder alone uses each connection once (RFC 9693 section 4.6)."""
    order: Phase = {**_connections(campaign, "use", connections), "read_order": "increasing"}
    return trial_body(
        campaign,
        trial_number=trial_number,
        duration_ns=establishing_ns(cell.mix, connections, connections_per_second),
        waits=_second_waits(campaign),
        connections=order,
        directions=[
            _direction(
                campaign, cell, campaign.roles.download, frame_rate(cell.mix, connections_per_second), connections
            )
        ],
    )


def frames_requests(campaign: Campaign, cell: Cell, *, count: int) -> list[FramesRequest]:
    """Return the requests that show the first `count` frames of each direction; nothing is sent.

    Through a stateful gateway the Initiator's are those of test phase 1, the Responder's those of test phase 2.
    """
    if not campaign.technology.is_stateful:
        return [frames_request(campaign, cell, count=count)]
    connections = shown_connections(campaign, cell)
    trials: list[FramesRequest] = []
    for way in ways_of(cell):
        if way == campaign.roles.upload:
            trial = establish_request(
                campaign, cell, connections=connections, connections_per_second=SHOWN_PER_SECOND, trial_number=1
            )
        else:
            trial = use_request(
                campaign,
                replace(cell, direction=way),
                connections=connections,
                frames_per_second=SHOWN_PER_SECOND,
                duration_ns=count * NANOSECONDS_PER_SECOND // SHOWN_PER_SECOND,
                trial_number=1,
            )
        trials.append(frames_of(campaign, trial, count))
    return trials


def shown_connections(campaign: Campaign, cell: Cell) -> int:
    """Return the number of connections of a cell; if it has none, the number with which the search for it begins."""
    if cell.connections is not None:
        return cell.connections
    return next(table.first_count for table in campaign.tables if table.first_count is not None)


def _second_waits(campaign: Campaign) -> Waits:
    """Return the waits of a trial that comes after test phase 1: hosts are known, and connections must not expire."""
    return {**campaign_waits(campaign), "settle_ns": campaign.connections_model.gap_ns, "learn_ns": 0}


def _connections(campaign: Campaign, phase: PhaseName, connections: int) -> Phase:
    model = campaign.connections_model
    pool = initiator_prefixes(campaign) if campaign.bed.forwards_unchanged else campaign.forwarding.pool
    asked: Phase = {
        "phase": phase,
        "initiator": campaign.roles.inside,
        "count": connections,
        "order": model.order,
        "send_order": model.send_order,
        "read_order": model.read_order,
        "pool": [str(prefix) for prefix in pool],
    }
    edge = gateway_edge_json(campaign)
    return asked if edge is None else {**asked, "edge": edge}


def _direction(campaign: Campaign, cell: Cell, way: OneWay, frames_per_second: int, connections: int) -> Direction:
    foreground = _foreground(campaign, cell, way, connections)
    return direction_json(campaign, cell, way, frames_per_second, foreground)


def _foreground(campaign: Campaign, cell: Cell, way: OneWay, connections: int) -> Stream:
    """Return the foreground of one direction; the Responder's is the mirror image of the Initiator's."""
    space = tuple_space(campaign, connections)
    roles = campaign.roles
    inside = campaign.b4_model if campaign.technology.has_b4s else campaign.hosts(roles.inside)
    outside = campaign.hosts(roles.outside)
    hosts = hosts_json(inside, networks=1), hosts_json(outside, networks=1)
    ports = _ports(space.source_ports), _ports(space.destination_ports)
    if way == roles.download:
        hosts, ports = hosts[::-1], ports[::-1]
    return {
        **foreground_frames(campaign, cell, way),
        "source": hosts[0],
        "destination": hosts[1],
        "source_ports": ports[0],
        "destination_ports": ports[1],
    }


def _ports(span: Span) -> Ports:
    mode: Variation = "fixed" if span.minimum == span.maximum else "pseudorandom"
    return {"mode": mode, "minimum": span.minimum, "maximum": span.maximum}

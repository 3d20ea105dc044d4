"""Requests for trials of echo requests, as the engine reads them (`protocol/README.md`). Pure."""

from __future__ import annotations

from gatemark.config.model import Campaign
from gatemark.config.stateful import initiator_prefixes
from gatemark.trial.cell import Cell
from gatemark.trial.form import TrialForm
from gatemark.trial.messages import Edges, Hosts, Stream, StreamFrames, TrialRequest
from gatemark.trial.request import (
    campaign_waits,
    direction_json,
    edges_json,
    foreground_frames,
    gateway_edge_json,
    side_hosts,
    trial_body,
)

NO_RATE = 1
"""Frames/s with which a request is built whose frames are not due at any time."""


def echo_request(
    campaign: Campaign,
    cell: Cell,
    *,
    frames_per_second: int,
    duration_ns: int,
    trial_number: int,
    form: TrialForm,
) -> TrialRequest:
    """Return the request for one trial; `frames_per_second` is of all clients, and of no meaning in a closed loop.

    The clients are the hosts of the left side in turn, behind their tunnels if they have any, or the first customer
    edges; their destinations are the hosts of
    the right side.
    """
    echo = form.of_echo
    rate = NO_RATE if echo.is_closed_loop else frames_per_second
    hosts = side_hosts(campaign, "forward")
    foreground: Stream = {
        **_frames_in_turn(foreground_frames(campaign, cell, "forward")),
        "source": _clients(campaign, echo.clients) or _in_turn(hosts["source"]),
        "destination": _in_turn(hosts["destination"]),
        "source_ports": None,
        "destination_ports": None,
    }
    body = trial_body(
        campaign,
        trial_number=trial_number,
        duration_ns=duration_ns,
        waits=campaign_waits(campaign),
        directions=[direction_json(campaign, cell, "forward", rate, foreground)],
        form=form,
    )
    (direction,) = body["directions"]
    body["directions"] = [{**direction, "frames_per_second": None if echo.is_closed_loop else rate}]
    asked, edge = echo.to_json(_pool(campaign)), gateway_edge_json(campaign)
    return {**body, "echo": asked if edge is None else {**asked, "edge": edge}}


def _in_turn(hosts: Hosts) -> Hosts:
    """Return hosts as numbers from the first one on: which host a client or a destination is must not be drawn."""
    return hosts if hosts["mode"] == "fixed" else {**hosts, "mode": "increasing"}


def _frames_in_turn(frames: StreamFrames) -> StreamFrames:
    """Return frames whose tunnels, if they have any, go with the hosts in turn."""
    tunnel = frames.get("source_tunnel")
    if tunnel is None or tunnel["subscribers"] is None:
        return frames
    return {**frames, "source_tunnel": {**tunnel, "subscribers": _in_turn(tunnel["subscribers"])}}


def _clients(campaign: Campaign, clients: int) -> Edges | None:
    """Return the source of requests where clients are customer edges; None where they are hosts."""
    table = campaign.edges.emulated
    if table is None:
        return None
    return {"edges": {**edges_json(table)["edges"], "count": clients, "choice": "cycle"}}


def _pool(campaign: Campaign) -> list[str] | None:
    """Return the public addresses of a stateful gateway; None where addresses follow from those of the clients."""
    if not campaign.technology.is_stateful:
        return None
    prefixes = initiator_prefixes(campaign) if campaign.bed.forwards_unchanged else campaign.forwarding.pool
    return [str(prefix) for prefix in prefixes]

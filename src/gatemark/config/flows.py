"""Network flows of a campaign: how many, and whether they start one after another (RFC 8219 section 10). Pure.

A flow is a connection of a stateful gateway, a customer edge of a border relay, and one four-tuple of addresses and
ports of any other stateless gateway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gatemark.config.hosts import HostSet
from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.config.tables import ENDS, PortsModel
from gatemark.config.types import Span
from gatemark.errors import Problem
from gatemark.facts import OneWay, Variation
from gatemark.technology import SideName

FLOWS_MAX = 1 << 20
"""Flows that may start one after another."""


def flow_count(campaign: Campaign) -> int | None:
    """Return the flows of each direction; None if the directions differ, or if several numbers are measured.

    Only once the sides are known.
    """
    if campaign.technology.is_stateful:
        counts = campaign.connections_model.count
        return counts[0] if len(counts) == 1 else None
    if not campaign.traffic.has_foreground:
        return None
    if campaign.edges.emulated is not None:
        return campaign.edges.emulated.edge_count
    counts_of_ways = {four_tuple_count(campaign, way) for way in campaign.directions.in_use}
    return counts_of_ways.pop() if len(counts_of_ways) == 1 else None


def flow_ramp_ns(campaign: Campaign, flows: int | None) -> int:
    """Return the time from the start of the first of so many flows to that of the last one."""
    interval_ns = campaign.traffic.flow_interval_ns
    return 0 if interval_ns is None or flows is None else (flows - 1) * interval_ns


def flow_problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield why flows cannot start one after another; only where the file wants it, and once the sides are known."""
    key = "traffic.flow_interval"
    if campaign.traffic.has_background:
        yield problem(campaign, key, "cannot be combined with background traffic", 'write traffic.mix = "1/1"')
    if campaign.technology.is_stateful:
        model = campaign.connections_model
        if (model.send_order, model.read_order) != ("increasing", "increasing"):
            fix = 'write send_order = "increasing" and read_order = "increasing" under [connections]'
            yield problem(campaign, key, "needs connections that are used in turn", fix)
        counts = [count for count in model.count if count > FLOWS_MAX]
    elif campaign.edges.emulated is not None:
        if campaign.edges.emulated.choice != "cycle":
            yield problem(campaign, key, "needs customer edges that are taken in turn", 'write map.choice = "cycle"')
        counts = [count for count in (campaign.edges.emulated.edge_count,) if count > FLOWS_MAX]
    else:
        yield from _four_tuple_problems(campaign, key)
        counts = [count for count in (flow_count(campaign),) if count is not None and count > FLOWS_MAX]
    if counts:
        yield problem(campaign, key, f"is for at most {FLOWS_MAX:,} flows, not {counts[0]:,}", "write fewer flows")


def _four_tuple_problems(campaign: Campaign, key: str) -> Iterator[Problem]:
    for way in campaign.directions.in_use:
        sender, receiver = ENDS[way]
        traffic = campaign.directions.traffic_of(way)
        drawn = [
            name for name in ("source_ports", "destination_ports") if getattr(traffic, name).mode == "pseudorandom"
        ]
        drawn += [f"hosts of {side}" for side in (sender, receiver) if _hosts(campaign, side)[0] == "pseudorandom"]
        drawn += ["destination_networks"] if campaign.directions.networks(receiver) > 1 else []
        if drawn:
            what = f"needs {way} frames whose flow follows from their number, but {', '.join(drawn)} are drawn"
            yield problem(campaign, key, what, "take them in turn, or leave them fixed")
    if flow_count(campaign) is None:
        yield problem(
            campaign, key, "needs as many flows in one direction as in the other", "give both directions the same ports"
        )


def four_tuple_count(campaign: Campaign, way: OneWay) -> int:
    """Return how many different four-tuples the foreground frames of one direction of a stateless gateway have.

    What is drawn is drawn on its own; what is taken in turn follows the number of the frame.
    """
    sender, receiver = ENDS[way]
    traffic = campaign.directions.traffic_of(way)
    parts = [
        _ports(traffic.source_ports),
        _ports(traffic.destination_ports),
        _hosts(campaign, sender),
        _hosts(campaign, receiver),
    ]
    drawn = math.prod(count for mode, count in parts if mode == "pseudorandom")
    in_turn = math.lcm(*(count for mode, count in parts if mode in ("increasing", "decreasing")))
    return drawn * in_turn * campaign.directions.networks(receiver)


def _ports(ports: PortsModel) -> tuple[Variation, int]:
    return ports.mode, ports.range.count


def _hosts(campaign: Campaign, side: SideName) -> tuple[Variation, int]:
    model = campaign.hosts(side)
    hosts = HostSet.of(campaign.roles.host_family(side), model)
    return model.hosts.mode, Span(hosts.minimum, hosts.maximum).count

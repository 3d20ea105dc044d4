"""From a campaign to the requests that the engine understands (`protocol/README.md`), without their `id`. Pure.

Trials that establish or use the connections of a stateful gateway are in `trial.connection_request`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from gatemark.config import defaults
from gatemark.config.map_tables import MapModel
from gatemark.config.model import Campaign
from gatemark.config.sizes import mtu_of
from gatemark.config.tables import ENDS, B4Model, FamilyModel, PortsModel
from gatemark.facts import OneWay
from gatemark.map_domains.domain import MapDomain
from gatemark.technology import SIDES, Family, SideName
from gatemark.trial.cell import Cell
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.messages import (
    Direction,
    Domain,
    DontFragmentRule,
    Edges,
    FramesRequest,
    GatewayEdge,
    Hosts,
    LayoutRequest,
    OpenRequest,
    OpenSide,
    Peers,
    Phase,
    Ports,
    ResolveRequest,
    Rule,
    Stream,
    StreamFrames,
    StreamHosts,
    Translation,
    Trial,
    TrialRequest,
    Tunnel,
    Waits,
)

HostsModel = FamilyModel | B4Model
"""Hosts as the campaign file states them."""
SHOWN_MACS = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}
"""Link-layer addresses of frames that are only shown."""


def open_request(campaign: Campaign, cores: Sequence[int], ports: Mapping[SideName, str] | None = None) -> OpenRequest:
    """Return the request that opens both ports.

    `ports` are the ports that a test bed made; without them those of the file are taken.
    """
    return {
        "request": "open",
        "left": _open_side(campaign, "left", (ports or {}).get("left")),
        "right": _open_side(campaign, "right", (ports or {}).get("right")),
        "seed": campaign.seed,
        "cores": list(cores),
        "huge_pages": campaign.testbed.huge_pages,
    }


def layout_request(campaign: Campaign, cores: Sequence[int], ports: Mapping[str, str]) -> LayoutRequest:
    """Return the request for the layout that `open_request` would lead to; it needs no port."""
    return {
        "request": "layout",
        "left": {"port": ports["left"], "queues": campaign.side("left").queues},
        "right": {"port": ports["right"], "queues": campaign.side("right").queues},
        "cores": list(cores),
    }


def _open_side(campaign: Campaign, name: SideName, port: str | None) -> OpenSide:
    side = campaign.side(name)
    port = port or side.port
    assert port is not None, f"no port is known for the {name} side"
    return {
        "port": port,
        "queues": side.queues,
        "ring_frames": side.ring_frames,
        "vlan_id": side.vlan,
        "mtu": mtu_of(campaign, name),
        "answer_for": _answer_for(campaign, name),
        "host_macs": side.host_macs,
        "teach_hosts": side.address_mode == "onlink",
        "gateway_mac": side.gateway_mac,
    }


def _answer_for(campaign: Campaign, name: SideName) -> list[Hosts | Edges]:
    """Return every address that the Tester answers for: the hosts, and the router before them if there is one.

    Hosts behind a router are answered for as well: with 256 destination networks one may be the gateway's link to that
    router, and then the gateway asks for its hosts.
    """
    side = campaign.side(name)
    sets: list[Hosts | Edges] = []
    for family, model in side.families.items():
        if campaign.roles.is_behind_relay(name, family):
            continue
        if side.address_mode == "nexthop":
            sets.append(_one_host(str(model.router)))
        hosts = hosts_json(model, networks=campaign.directions.networks(name))
        base = _one_host(str(model.address))
        sets.extend([hosts] if hosts == base else [hosts, base])
    edges = campaign.edges.emulated
    if name == "left" and edges is not None and edges.onlink:
        sets.append(edges_json(edges))
    return sets


def resolve_requests(campaign: Campaign) -> list[ResolveRequest]:
    """Return a request for each gateway address to resolve: each side and family in use, unless it is static."""
    requests: list[ResolveRequest] = []
    if not campaign.bed.has_gateway:
        return requests
    for name in SIDES:
        side = campaign.side(name)
        if side.gateway_mac is not None:
            continue
        for family in campaign.directions.families(name):
            requests.append(
                {
                    "request": "resolve",
                    "side": name,
                    "gateway": str(campaign.hosts(name, family).gateway),
                    "source": str(side.link_address(family)),
                    "timeout_ns": defaults.RESOLVE_TIMEOUT_NS,
                }
            )
    return requests


def trial_request(
    campaign: Campaign,
    cell: Cell,
    *,
    frames_per_second: int,
    duration_ns: int,
    trial_number: int,
    form: TrialForm = PLAIN,
) -> TrialRequest:
    """Return the request for one trial; `frames_per_second` is the load of each direction."""
    return trial_body(
        campaign,
        trial_number=trial_number,
        duration_ns=duration_ns,
        waits=campaign_waits(campaign),
        directions=[_direction(campaign, cell, way, frames_per_second) for way in ways_of(cell)],
        form=form,
    )


def campaign_waits(campaign: Campaign) -> Waits:
    """Return the waits of a trial as the campaign has them (RFC 2544 section 23)."""
    return {
        "settle_ns": campaign.trial.settle_ns,
        "learn_ns": campaign.trial.learn_ns,
        "drain_ns": campaign.trial.drain_ns,
        "rest_ns": campaign.trial.rest_ns,
    }


def ways_of(cell: Cell) -> tuple[OneWay, ...]:
    """Return the single directions of a cell, forward first."""
    return ("forward", "reverse") if cell.direction == "bidirectional" else (cell.direction,)


def trial_body(
    campaign: Campaign,
    *,
    trial_number: int,
    duration_ns: int,
    waits: Waits,
    directions: Sequence[Direction],
    connections: Phase | None = None,
    form: TrialForm = PLAIN,
) -> TrialRequest:
    """Return the request for a trial of these directions; each has the same load."""
    load = directions[0]["frames_per_second"] or 0
    return {
        "request": "trial",
        "trial_number": trial_number,
        "seed": campaign.seed,
        "duration_ns": duration_ns + form.ramp_ns(load),
        "waits": waits if form.drain_ns is None else {**waits, "drain_ns": form.drain_ns},
        "give_up_lateness_ns": form.give_up_ns(campaign.validity.lateness_max_ns, duration_ns),
        "kept_frames_max": defaults.KEPT_FRAMES_MAX,
        "progress_ns": defaults.PROGRESS_NS,
        "connections": connections,
        "delays": form.delays_json(load),
        "directions": [{**direction, **form.load_json(load)} for direction in directions],
    }


def planned_ns(request: TrialRequest) -> int:
    """Return how long a trial of the engine is to take, its waits included."""
    waits = request["waits"]
    return request["duration_ns"] + waits["settle_ns"] + waits["learn_ns"] + waits["drain_ns"] + waits["rest_ns"]


def frames_request(campaign: Campaign, cell: Cell, *, count: int) -> FramesRequest:
    """Return the request that shows the first `count` frames of each direction; nothing is sent."""
    body = trial_request(campaign, cell, frames_per_second=1000, duration_ns=count * 1_000_000, trial_number=1)
    return frames_of(campaign, body, count)


def frames_of(campaign: Campaign, trial: TrialRequest, count: int) -> FramesRequest:
    """Return the request that shows the first `count` frames of each direction of a trial."""
    return {
        "request": "frames",
        "count": count,
        "trial": cast(Trial, {key: value for key, value in trial.items() if key != "request"}),
        "left_mac": SHOWN_MACS["left"],
        "right_mac": SHOWN_MACS["right"],
        "left_host_macs": campaign.side("left").host_macs,
        "right_host_macs": campaign.side("right").host_macs,
        "left_vlan_id": campaign.side("left").vlan,
        "right_vlan_id": campaign.side("right").vlan,
    }


def _direction(campaign: Campaign, cell: Cell, way: OneWay, frames_per_second: int) -> Direction:
    foreground: Stream | None = None
    if cell.mix.has_foreground:
        traffic = campaign.directions.traffic_of(way)
        foreground = {
            **foreground_frames(campaign, cell, way),
            **side_hosts(campaign, way),
            "source_ports": _ports(traffic.source_ports),
            "destination_ports": _ports(traffic.destination_ports),
        }
        _put_edges(campaign, way, foreground)
    return direction_json(campaign, cell, way, frames_per_second, foreground)


def direction_json(
    campaign: Campaign, cell: Cell, way: OneWay, frames_per_second: int, foreground: Stream | None
) -> Direction:
    """Return one direction of a trial: its foreground, and native IPv6 background if the cell has any."""
    background: Stream | None = None
    if cell.mix.has_background:
        traffic = campaign.directions.traffic_of(way)
        background = {
            **_frames(
                campaign,
                cell.frame_sizes.of("ipv6"),
                way,
                ("ipv6", "ipv6"),
                campaign.forwarding.background_hop_limit_decrement,
            ),
            **_hosts(campaign, way, *(campaign.hosts(side, "ipv6") for side in ENDS[way])),
            "source_ports": _ports(traffic.source_ports),
            "destination_ports": _ports(traffic.destination_ports),
        }
    return {
        "direction": way,
        "frames_per_second": frames_per_second,
        "foreground_m": cell.mix.m,
        "foreground_n": cell.mix.n,
        "foreground": foreground,
        "background": background,
    }


def foreground_frames(campaign: Campaign, cell: Cell, way: OneWay) -> StreamFrames:
    """Return the foreground of one direction without its hosts and ports."""
    roles, ends = campaign.roles, ENDS[way]
    octets = cell.frame_sizes.of(roles.frame_kind(ends[0]))
    frames = _frames(campaign, octets, way, _packet_families(campaign, way), campaign.forwarding.hop_limit_decrement)
    peers = campaign.edges.peers
    if peers is not None:
        asked: Peers = {"rule": rule_json(peers.gateway.domain), "psid": peers.psid}
        is_source = ends[0] == roles.outside
        frames = {**frames, "source_peers": asked} if is_source else {**frames, "destination_peers": asked}
    if not campaign.technology.has_tunnels:
        return frames
    source, destination = (_tunnel(campaign, end) if roles.has_tunnels(end) else None for end in ends)
    return {**frames, "source_tunnel": source, "destination_tunnel": destination}


def _packet_families(campaign: Campaign, way: OneWay) -> tuple[Family, Family]:
    """Return the families of the packets that one direction sends and receives, in tunnels or not."""
    sender, receiver = ENDS[way]
    return campaign.roles.packet_family(sender), campaign.roles.packet_family(receiver)


def _tunnel(campaign: Campaign, side: SideName) -> Tunnel:
    """Return the tunnels of one side: of customer edges with rules, of its hosts, as B4s are, or one to a relay."""
    tunnel = campaign.forwarding.tunnel
    assert tunnel is not None, "its technology has tunnels"
    follow = campaign.technology.has_edges or campaign.edges.peers is not None  # from rules
    ends = None if follow else campaign.side(side).family(campaign.roles.family(side))
    relay = None if ends is None or not campaign.technology.is_subscriber else _one_host(str(ends.address))
    return {
        "gateway": str(campaign.forwarding.tunnel_end),
        "subscribers": relay or (None if ends is None else hosts_json(ends, networks=1)),
        "hop_limit": defaults.TUNNEL_HOP_LIMIT,
        "expected_hop_limit": None if tunnel.hop_limit == "any" else tunnel.hop_limit,
        "traffic_class": None if tunnel.traffic_class == "copied" else tunnel.traffic_class,
        "ecn": tunnel.ecn,
    }


def _frames(
    campaign: Campaign, octets: int, way: OneWay, families: tuple[Family, Family], decrement: int
) -> StreamFrames:
    """Return what is sent and what the gateway must make of it, without hosts and ports."""
    traffic = campaign.directions.traffic_of(way)
    return {
        "frame_octets": octets,
        "trailer_octets": campaign.traffic.trailer_octets,
        "hop_limit": traffic.hop_limit,
        "traffic_classes": list(traffic.traffic_class),
        "flow_label": _flow_label(campaign, families[0]),
        "extension_headers": list(campaign.traffic.extension_headers) if families == ("ipv6", "ipv6") else [],
        "dont_fragment": traffic.dont_fragment,
        "dont_fragment_rule": _dont_fragment_rule(campaign, way, families),
        "udp_checksum": traffic.udp_checksum if families[0] == "ipv4" else "computed",
        "expect": "as_sent" if campaign.bed.forwards_unchanged else "gateway",
        "hop_limit_decrement": decrement,
        "translation": _translation(campaign) if _is_translated(campaign, families) else None,
    }


def _flow_label(campaign: Campaign, family: Family) -> int | None:
    """Return the label of all frames; None if each flow has one of its own."""
    label = campaign.traffic.flow_label if family == "ipv6" else 0
    return None if label == "by_flow" else label


def _is_translated(campaign: Campaign, families: tuple[Family, Family]) -> bool:
    """Whether frames are translated between IPv4 and IPv6: all of another family, and IPv4 by two gateways in a row."""
    return families[0] != families[1] or (families[0] == "ipv4" and campaign.technology.translates_within)


def _dont_fragment_rule(campaign: Campaign, way: OneWay, families: tuple[Family, Family]) -> DontFragmentRule:
    """Return what the gateway makes of DF; a stream of IPv6 has none."""
    if families == ("ipv6", "ipv6"):
        return "kept"
    gateway = campaign.gateway
    if way == campaign.roles.download and gateway.reverse_dont_fragment_rule is not None:
        return gateway.reverse_dont_fragment_rule
    return gateway.made_dont_fragment if _is_translated(campaign, families) else gateway.dont_fragment_rule or "kept"


def side_hosts(campaign: Campaign, way: OneWay) -> StreamHosts:
    """Return `source` and `destination` of the foreground of one direction."""
    sender, receiver = ENDS[way]
    return _hosts(campaign, way, _inner_hosts(campaign, sender), _inner_hosts(campaign, receiver))


def _hosts(campaign: Campaign, way: OneWay, source: HostsModel, destination: HostsModel) -> StreamHosts:
    """Return the hosts of a stream as they are on their own side."""
    _, receiver = ENDS[way]
    return {
        "source": hosts_json(source, networks=1),
        "destination": hosts_json(destination, networks=campaign.directions.networks(receiver)),
    }


def _inner_hosts(campaign: Campaign, side: SideName) -> HostsModel:
    """Return the hosts of packets on one side: those behind B4s, and in the tunnels of 6rd those that follow from the
    outer addresses."""
    if campaign.technology.has_b4s and campaign.roles.has_tunnels(side):
        return campaign.b4_model
    if campaign.sixrd is not None and campaign.roles.has_tunnels(side):
        return campaign.sixrd.hosts
    return campaign.hosts(side)


def _put_edges(campaign: Campaign, way: OneWay, foreground: Stream) -> None:
    """Put customer edges, if there are any, with their ports into the end of the foreground that they have.

    Edges that may use every port use the same ones in both directions: those of sources (RFC 4814 section 4.5).
    """
    table = campaign.edges.emulated
    if table is None:
        return
    span = campaign.directions.traffic_of("forward").source_ports.range
    if way == "forward":
        foreground["source"] = edges_json(table)
        foreground["source_ports"] = _ports(PortsModel(mode=table.forward_ports, range=span))
    else:
        foreground["destination"] = edges_json(table)
        foreground["destination_ports"] = _ports(PortsModel(mode=table.reverse_ports, range=span))


def edges_json(table: MapModel) -> Edges:
    """Return a set of customer edges as the engine reads it."""
    domains: list[Domain] = [
        {
            **rule_json(rule),
            "weight": rule.weight,
            "in_identifier": rule.in_identifier,
            "except_suffixes": rule.except_suffixes,
            "except_system_ports": rule.except_system_ports,
        }
        for rule in table.whole_rules
    ]
    return {
        "edges": {"domains": domains, "count": table.edge_count, "order": table.order, "choice": table.choice},
    }


def rule_json(domain: MapDomain) -> Rule:
    """Return a MAP rule as the engine reads it."""
    return {
        "ipv6": str(domain.rule_ipv6),
        "ipv4": str(domain.rule_ipv4),
        "ea_bits": domain.ea_bits,
        "psid_offset": domain.psid_offset,
        "psid_bits": domain.psid_bits,
        "psid": None if domain.psid_bits is None else domain.psid,
        "dmr": None if domain.dmr is None else str(domain.dmr),
    }


def gateway_edge_json(campaign: Campaign) -> GatewayEdge | None:
    """Return the customer edge that the gateway is; None if it is none."""
    edge = campaign.edges.gateway
    return None if edge is None else {**rule_json(edge.domain), "ea": edge.ea}


def hosts_json(model: HostsModel, *, networks: int) -> Hosts:
    """Return a set of hosts as the engine reads it."""
    hosts = model.hosts
    span = hosts.range
    return {
        "address": str(model.address),
        "offset": 0 if hosts.offset is None else hosts.offset,
        "mode": hosts.mode,
        "minimum": 0 if span is None else span.minimum,
        "maximum": 0 if span is None else span.maximum,
        "networks": networks,
    }


def _one_host(address: str) -> Hosts:
    return {"address": address, "offset": 0, "mode": "fixed", "minimum": 0, "maximum": 0, "networks": 1}


def _ports(ports: PortsModel) -> Ports:
    return {"mode": ports.mode, "minimum": ports.range.minimum, "maximum": ports.range.maximum}


def _translation(campaign: Campaign) -> Translation:
    prefix = campaign.forwarding.prefix
    return {
        "prefix": None if prefix is None else str(prefix),
        "eam": [{"ipv4": str(entry.ipv4), "ipv6": str(entry.ipv6)} for entry in campaign.gateway.eam],
        "zero_udp_checksum": bool(campaign.gateway.zero_udp_checksum),
    }

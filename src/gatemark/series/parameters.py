"""What the columns of a series are measured with, as far as their campaigns say it. Pure."""

from __future__ import annotations

from gatemark.campaign.facts import port_range
from gatemark.campaign.plan import connection_counts
from gatemark.config.flows import flow_count
from gatemark.config.model import Campaign
from gatemark.config.stateful import host_count, tuple_space
from gatemark.config.types import Span
from gatemark.series.document import Parameters


def parameters_of(campaign: Campaign) -> Parameters:
    """Return the parameters of a column whose recipe is filled in; port ranges are those of the most connections."""
    recipe, table = campaign.testbed.recipe, campaign.gateway.table
    counts = tuple(count for count in connection_counts(campaign) if count is not None)
    source_ports, destination_ports, source_hosts, destination_hosts = _endpoints(campaign, max(counts, default=1))
    return Parameters(
        gateway=campaign.gateway.name if recipe is None else recipe.rpartition("/")[2],
        technology=campaign.technology.name,
        cores=campaign.control.core_count,
        source_ports=port_range(source_ports),
        destination_ports=port_range(destination_ports),
        source_hosts=source_hosts,
        destination_hosts=destination_hosts,
        edges=None if campaign.edges.emulated is None else campaign.edges.emulated.edge_count,
        map_domains=campaign.edges.domain_count or None,
        b4s=host_count(campaign, campaign.roles.inside) if campaign.technology.has_b4s else None,
        connections=counts if campaign.technology.is_stateful else (),
        flows=flow_count(campaign),
        flow_interval_ns=campaign.traffic.flow_interval_ns,
        duration_ns=campaign.trial.duration_ns,
        table_size=table.size,
        hash_size=table.hash_size,
        udp_timeout_ns=table.udp_timeout_ns,
        repetitions=campaign.repetitions,
    )


def _endpoints(campaign: Campaign, count: int) -> tuple[Span, Span, int, int]:
    """Return ports and hosts of `count` connections, or of the frames from left to right of a stateless gateway."""
    if campaign.technology.is_stateful:
        space = tuple_space(campaign, count)
        return space.source_ports, space.destination_ports, space.source_hosts, space.destination_hosts
    ports = campaign.directions.traffic_of("forward")
    hosts = host_count(campaign, "left"), host_count(campaign, "right")
    return ports.source_ports.range, ports.destination_ports.range, *hosts

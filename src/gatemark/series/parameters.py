"""What the columns of a series are measured with, as far as their campaigns say it. Pure."""

from __future__ import annotations

from gatemark.campaign.facts import port_range
from gatemark.campaign.plan import connection_counts
from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.series.document import Parameters


def parameters_of(campaign: Campaign) -> Parameters:
    """Return the parameters of a column whose recipe is filled in; port ranges are those of the most connections."""
    recipe, table = campaign.testbed.recipe, campaign.gateway.table
    counts = tuple(count for count in connection_counts(campaign) if count is not None)
    space = tuple_space(campaign, max(counts, default=1)) if campaign.is_stateful else None
    return Parameters(
        gateway=campaign.gateway.name if recipe is None else recipe.rpartition("/")[2],
        technology=campaign.technology.name,
        cores=campaign.core_count,
        source_ports=None if space is None else port_range(space.source_ports),
        destination_ports=None if space is None else port_range(space.destination_ports),
        source_hosts=None if space is None else space.source_hosts,
        destination_hosts=None if space is None else space.destination_hosts,
        connections=counts if campaign.is_stateful else (),
        table_size=table.size,
        hash_size=table.hash_size,
        udp_timeout_ns=table.udp_timeout_ns,
        repetitions=campaign.repetitions,
    )

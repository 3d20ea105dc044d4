"""Stateful gateways in namespaces: campaigns with few connections, and what the gateway itself says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.system.beds import OpenBed, netns_document

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign

CONNECTIONS: dict[str, Any] = {"count": 2000, "rate": "20k", "timeout": "200ms", "gap": "100ms"}
"""So few and so slow that a busy machine establishes all of them."""
ONE_SIZE: dict[str, Any] = {"frame_sizes": {"family": "ipv4", "octets": 128}}


def stateful_campaign(recipe: str | Path, **tables: Any) -> Campaign:
    """Return a campaign of a stateful recipe with short waits; tables replace those of the default."""
    document = {"traffic": ONE_SIZE, "connections": CONNECTIONS, "frame_loss": {"rates": ["5k"]}}
    return complete_campaign(campaign_from_dict({**document, **netns_document(recipe, **tables)}))


def listed_connections(bed: OpenBed) -> list[str]:
    """Return the UDP connections of the gateway as `conntrack -L` lists them."""
    lines = bed.in_gateway("conntrack", "-L", "-p", "udp").splitlines()
    return [line for line in lines if line.startswith("udp")]

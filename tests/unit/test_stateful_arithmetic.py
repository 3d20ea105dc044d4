"""The arithmetic of stateful tests: four-tuples, port space, prefixes, time."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from gatemark.config.model import Campaign
from gatemark.config.stateful import (
    count_max,
    initiator_prefixes,
    pool_endpoints,
    sources_of_one_destination,
    time_needed_ns,
    tuple_space,
)
from gatemark.config.types import Span

FEW = {"count": 10, "source_ports": "1-5"}


def campaign(
    *, connections: dict[str, Any] = FEW, hosts: dict[str, Any] | None = None, gateway: dict[str, Any] | None = None
) -> Campaign:
    """Return a campaign of a NAT44 with `hosts` on the Initiator's side; it is not checked."""
    left = {"address": "198.18.0.2", "gateway": "198.17.0.1", "hosts": hosts or {}}
    return Campaign.model_validate(
        {
            "gateway": {"technology": "nat44", "pool": ["198.19.0.1"], **(gateway or {})},
            "testbed": {"kind": "ports"},
            "left": {"ipv4": left},
            "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
            "connections": connections,
        }
    )


def test_time_needed_is_exact() -> None:
    assert time_needed_ns(campaign(), 3, 7, 11) == 428_571_429 + 500_000_000 + 500_000_000 + 11 + 4_000_000_000


def test_four_tuples_are_counted() -> None:
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-1001"}
    space = tuple_space(campaign(hosts=hosts, connections={}), 100_000_001)
    assert (space.source_hosts, space.destination_hosts) == (1000, 1)
    assert (space.source_ports, space.destination_ports) == (Span(1024, 41023), Span(1, 3))
    assert (space.sources, space.destinations, space.product) == (40_000_000, 3, 120_000_000)
    assert tuple_space(campaign(connections={"destination_ports": "7-106"}), 5).destination_ports == Span(7, 106)


@pytest.mark.parametrize("order", ["increasing", "pseudorandom"])
def test_a_destination_never_sees_fewer_sources_than_computed(order: str) -> None:
    """Against the slow and obvious list of the first connections in sequential order."""
    loaded = campaign(
        hosts={"offset": 2, "mode": "increasing", "range": "2-4"},
        connections={"source_ports": "1-5", "destination_ports": "1-4", "order": order},
    )
    tuples = [(host, source, port) for host in range(3) for port in range(4) for source in range(5)]
    for count in range(1, len(tuples) + 1):
        sources = [len({(h, s) for h, s, port in tuples[:count] if port == wanted}) for wanted in range(4)]
        result = sources_of_one_destination(loaded, count)
        assert result == max(sources) if order == "increasing" else result <= max(sources)


def test_public_endpoints_count_once() -> None:
    loaded = campaign(gateway={"pool": ["198.19.1.0/24", "198.19.1.7"], "pool_ports": "1-10"})
    assert pool_endpoints(loaded) == 2560
    assert count_max(loaded) == 5 * 65_535
    assert count_max(campaign(gateway={"pool_ports": "1-3"})) == 3 * 65_535


@pytest.mark.parametrize(
    ("offset", "span", "prefix"),
    [
        (2, "2-2", "198.18.0.2/32"),
        (2, "2-254", "198.18.0.0/24"),
        (2, "256-511", "198.18.1.0/24"),
        (1, "4608-4609", "198.18.0.0/23"),
    ],
)
def test_initiator_prefix_is_the_smallest(offset: int, span: str, prefix: str) -> None:
    hosts = {"offset": offset, "mode": "increasing", "range": span}
    assert initiator_prefixes(campaign(hosts=hosts)) == (ip_network(prefix),)

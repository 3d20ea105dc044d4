"""A gateway in a namespace whose kernel counts what it loses: the trial says so. Needs root."""

from __future__ import annotations

import pytest
from tests.system.beds import netns_campaign, open_bed
from tests.system.machine import missing
from tests.system.stateful_beds import stateful_campaign

from gatemark.cli.trial import in_words
from gatemark.trial.host_counters import grown_by_about
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}")
ONE_WAY = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}}
SIZE, BUCKETS = 200_000, 1024
"""A table that is stated far larger than its chains may grow: Linux refuses a connection in one of 50 to 80 entries."""
CONNECTIONS = 40_000
"""Each has two entries, so the chains would have 78 of them."""


def explained_by(record: TrialRecord) -> list[str]:
    """Return the names of the counters that grew by about as much as the trial lost frames."""
    assert record.host is not None
    lost = sum(counts.lost for _, _, counts in record.report.counts())
    return [grown.name for grown in grown_by_about(record.host.counters, lost)]


def test_a_route_that_is_gone_is_counted_by_the_kernel() -> None:
    with open_bed(netns_campaign("linux-router4", traffic=ONE_WAY)) as bed:
        route = bed.in_gateway("ip", "route", "show", "root", "198.19.0.0/16").split(" proto")[0].split()
        bed.in_gateway("ip", "route", "del", *route)
        record = bed.trial()
    assert explained_by(record) == ["ipext.InNoRoutes"], record.host
    assert "counted meanwhile: IPv4: arrived without a route +" in in_words(record)


@pytest.mark.alone  # Linux has one size of the table for all namespaces
def test_connections_that_long_chains_refuse_are_counted() -> None:
    campaign = stateful_campaign(
        "nft-nat44",
        gateway={"table": {"size": SIZE, "hash_size": BUCKETS}},
        connections={"count": CONNECTIONS, "rate": "40k", "timeout": "100ms", "gap": "50ms", "retries": 0},
    )
    with open_bed(campaign) as bed:
        record = bed.trial()
    assert record.connections is not None
    (attempt,) = record.connections.phase_one
    assert attempt.host is not None and record.host == attempt.host
    assert attempt.report.connections is not None and attempt.report.connections.established < CONNECTIONS
    (way,) = attempt.report.directions
    assert 0 < attempt.host.counters["conntrack.chaintoolong"] <= way.foreground.lost

"""A translator gives all packets the same IPv4 identification: a fault that no frame shows alone. Needs root."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import faults, netns_campaign, open_bed, report_of
from tests.system.machine import missing

from gatemark.results.header_changes import HeaderChanges
from gatemark.trial.verdict import judge

MISSING = missing("ip", "taskset", "setpriv", "nft", "tayga", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"a translator needs {', '.join(MISSING)}")


def test_one_identification_for_all_packets_is_told(tmp_path: Path) -> None:
    """They may be fragmented later, so that fragments of one are taken for those of another."""
    recipe = changed_recipe(
        tmp_path, "tayga-siit64", ('dont_fragment_rule = "rfc6145"', 'dont_fragment_rule = "rfc7915"')
    )
    traffic = {"direction": "forward", "frame_sizes": {"family": "ipv6", "octets": 84}}
    with open_bed(netns_campaign(recipe, traffic=traffic)) as bed:

        def planted() -> contextlib.AbstractContextManager[None]:
            return bed.rules(f'oifname "{bed.interface("right")}" meta l4proto udp ip frag-off set 0 ip id set 99')

        report = report_of(bed, planted, is_wanted=lambda report: not report.lost_count, frames_per_second=2_000)
    ((_, _, counts),) = report.counts()
    assert (counts.received, faults(counts)) == (counts.offered, {})
    assert judge(report, Fraction(0)).passed
    assert counts.identifications and counts.distinct_identifications == 1
    changes = HeaderChanges(
        congestion_experienced=0,
        flow_label_set=0,
        identifications=counts.identifications,
        distinct_identifications=counts.distinct_identifications,
    )
    assert changes.repeated_identifications == counts.identifications - 1

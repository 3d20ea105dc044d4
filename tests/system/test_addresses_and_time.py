"""A pool of several public addresses, and a limit to the delay of each frame, on real gateways."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.recipes import changed_recipe
from tests.system.beds import PATIENT, QUICK
from tests.system.machine import nothing_compared
from tests.system.stateful_beds import CONNECTIONS, stateful_campaign

from gatemark.campaign.file import campaign_from_dict
from gatemark.results.store import ResultFolder
from gatemark.session import measure
from gatemark.trial.record import TrialRecord

MISSING = [tool for tool in ("ip", "tc", "nft", "conntrack", "ethtool") if shutil.which(tool) is None]
if os.geteuid() != 0:
    MISSING.insert(0, "root")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"gateways in namespaces need {', '.join(MISSING)}")

SHAPER = "tbf rate 300kbit burst 2k limit 1m"
"""The gateway sends 625 frames/s of 60 octets to the right and keeps the others until it can: nothing is lost, and the
last of 450 frames at 900 frames/s waits for a sixth of a second."""


def records_of(campaign: Any, folder: Path) -> list[TrialRecord]:
    result = measure(campaign, output=folder, report=False)
    return list(read_journal(ResultFolder.open(result.folder).journal_file))


def decisive(records: list[TrialRecord]) -> list[TrialRecord]:
    """Return the trials that say something about the gateway; on a busy machine, each of the others says why not."""
    assert records and all(record.is_decisive or record.reasons for record in records)
    kept = [record for record in records if record.is_decisive]
    if not kept:
        nothing_compared("no valid trial")
    return kept


def test_connections_behind_several_public_addresses(tmp_path: Path) -> None:
    """The kernel chooses one of four addresses by those of the hosts; all of them are learned and answered."""
    recipe = changed_recipe(
        tmp_path,
        "nft-nat44",
        ('pool = ["198.19.0.1/32"]', 'pool = ["198.19.0.8/30"]'),
        ('oifname "{right}" masquerade', 'oifname "{right}" snat to 198.19.0.8-198.19.0.11'),
        (
            'setup = ["nft -f {dir}/rules.nft"]',
            'setup = ["for i in 8 9 10 11; do ip addr add 198.19.0.$i/32 dev {right}; done", "nft -f {dir}/rules.nft"]',
        ),
    )
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
    campaign = stateful_campaign(
        recipe,
        repetitions=1,
        traffic={"frame_sizes": {"family": "ipv4", "octets": 128}},
        left={"ipv4": {"address": "198.18.0.2", "hosts": hosts}},
    )
    records = records_of(campaign, tmp_path / "result")
    kept = decisive(records)
    if not kept:
        return
    for record in kept:
        facts, count = record.connections, CONNECTIONS["count"]
        assert facts is not None
        assert facts.counted_after_phase_one == facts.counted_after_phase_two == count
        assert not [counts.faults for _, _, counts in record.report.counts() if counts.faulty]
        assert all(counts.received for _, _, counts in record.report.counts() if counts.offered)
    (behaviour,) = (r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["public_addresses"] == 4


@pytest.mark.parametrize(("frame_timeout", "passes"), [("20ms", False), ("1s", True)])
def test_a_frame_that_takes_longer_than_its_timeout_is_not_delivered(
    frame_timeout: str, passes: bool, tmp_path: Path
) -> None:
    setup = f'[commands]\nsetup = ["tc qdisc add dev {{right}} root {SHAPER}"]'
    campaign = campaign_from_dict(
        {
            "repetitions": 1,
            "testbed": {
                "kind": "netns",
                "recipe": str(changed_recipe(tmp_path, "linux-router4", ("[commands]", setup))),
            },
            "traffic": {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": [64]}},
            "trial": {**QUICK, "drain": "500ms"},
            "validity": PATIENT,
            "throughput": {
                "maximum": 1000,
                "minimum": 900,
                "resolution": 100,
                "search_duration": QUICK["duration"],
                "frame_timeout": frame_timeout,
            },
        }
    )
    for record in decisive(records_of(campaign, tmp_path / "result")):
        (counts,) = (counts for _, _, counts in record.report.counts() if counts.offered)
        assert (counts.lost, counts.faulty) == (0, 0)
        assert counts.received + counts.late == counts.offered
        assert (counts.late == 0) is passes
        assert record.verdict is not None
        assert record.verdict.passed is passes
        assert passes or "came back after the frame timeout" in record.verdict.reasons[0]

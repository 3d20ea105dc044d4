"""Real gateways in pairs: rules that cost speed are shown to, and a router does not differ from itself.

A busy machine may keep it from deciding, and never makes it wrong. Needs root and two CPUs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.judgement import write_campaign
from tests.system.machine import missing, missing_for_guest, nothing_compared, own_cpu

from gatemark.dut.recipe import recipe_text

MISSING = missing("ip", "ethtool", "nft", "conntrack", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
    own_cpu,
]
RULES = 1_000
POLICED = 50_000
"""Frames/s."""
POLICED_AT_ONCE = 250
"""Frames that the policer lets pass at once: what comes in 5 ms."""
TRIAL_S = 0.1
"""Sending time of a trial of `gatemark pair`, unless told otherwise."""
TABLE = "table ip nat44 {"
NAT44 = """
testbed = {kind = "netns", recipe = "nft-nat44"}
traffic = {frame_sizes = {family = "ipv4", octets = 64}}
connections = {count = 20000}
connection_establishment_rate = {}
"""
CONFIDENCE = "99.9%"
"""One of a thousand tests of a router against itself may be wrong."""


def pair(output: Path, *arguments: object) -> tuple[int, dict[str, Any]]:
    """Return exit status and document of the command."""
    program = Path(sys.executable).with_name("gatemark")
    command = (program, "pair", *arguments, "--output", output, "--confidence", CONFIDENCE, "--json")
    ended = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.nightly("a quarter of a minute; the error of the decision is tested with drawn values")
def test_rules_before_forwarding_are_shown_to_cost_speed(tmp_path: Path) -> None:
    none, many = (write_campaign(tmp_path, rules) for rules in (0, RULES))
    condition = "forwarding rate worse than 20%"
    status, document = pair(tmp_path / "out", none, many, "--fail-if", condition, "--time", "60s")
    assert {difference["key"] for difference in document["differences"]} == {"testbed.recipe", "recipe_sha256"}
    assert document["judgement"] not in ("better", "different")
    if not document["decided"]:
        nothing_compared(f"not decided: {document['look']}, {document['findings']}")
        return
    assert (status, document["judgement"], document["ended"]) == (1, "worse", "decided")
    assert document["look"]["high"] < 0.8
    assert all(side["idle_cpu_share"] < 0.5 for side in document["sides"]), "an engine that is asked nothing waits"


@pytest.mark.nightly("up to a minute; the error of the decision is tested with drawn values")
def test_a_router_is_not_shown_to_differ_from_itself(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, 300)
    status, document = pair(
        tmp_path / "out", campaign, "--recipe", *_twice(campaign), "--fail-if", "any may be worse than 50%",
        "--time", "60s", "--precision", "20%",
    )  # fmt: skip
    assert document["judgement"] in ("no_difference", "not_judged")
    assert document["differences"] == []
    if not document["decided"]:
        nothing_compared(f"not decided: {document['look']}, {document['findings']}")
        return
    assert status == 0


def test_alternating_searches_find_where_a_router_begins_to_drop(tmp_path: Path) -> None:
    """At most what the policer lets pass, and at least as much if the gateway did not stand still."""
    campaign = write_campaign(tmp_path, 1)
    recipe = campaign.with_name("recipe.toml")
    text = recipe.read_text("utf-8")
    rule = "ip saddr 203.0.0.0 drop"
    assert text.count(rule) == 1
    policer = f"limit rate over {POLICED}/second burst {POLICED_AT_ONCE} packets drop"
    recipe.write_text(text.replace(rule, policer), "utf-8")
    folder = tmp_path / "out"
    _, document = pair(folder, campaign, "--recipe", *_twice(campaign), "--quantity", "throughput", "--time", "4s")
    rows = [row for row in document["rows"] if not row["search"] and _counts(row)]
    if not rows:
        nothing_compared(f"no pair counts: {document['rows']}")
        return
    assert all(row[side]["value"] <= 1.02 * _passing_per_second(TRIAL_S) for row in rows for side in "ab")
    stops = [stop for line in (folder / "trials.jsonl").read_text("utf-8").splitlines() if (stop := _stop(line))]
    if stops:
        nothing_compared(f"the gateway stood still: {', '.join(stops)}")
        return
    assert all(row[side]["value"] >= 0.98 * _passing_per_second(TRIAL_S) for row in rows for side in "ab")


def _passing_per_second(seconds: float) -> float:
    """Return the highest rate at which the policer drops nothing for so long."""
    return POLICED + POLICED_AT_ONCE / seconds


def _stop(line: str) -> str | None:
    """Return how long the gateway stood still in a trial that lost frames which the policer lets pass; else None.

    They are lost if more come at once than the bucket then holds. The first of these has waited while they gathered.
    """
    record = json.loads(line)
    (way,) = record["report"]["directions"]
    load, seconds, counts = way["frames_per_second"], way["intended_duration_ns"] / 1e9, way["foreground"]
    left_over = min(POLICED_AT_ONCE, (_passing_per_second(seconds) - load) * seconds)
    if not counts["lost"] or left_over <= 0.02 * load * seconds:
        return None
    waited_ns = counts["delay"]["maximum_ns"]
    assert waited_ns >= 0.9e9 * left_over / load, f"nobody stood still: {record}"
    return f"{waited_ns} ns at {load} frames/s"


def _counts(row: dict[str, Any]) -> bool:
    return all(row[side]["outcome"] == "measured" for side in "ab")


@pytest.mark.nightly("a guest for each pair; which keys differ is a unit test")
@pytest.mark.skipif(bool(missing_for_guest()), reason=f"needs {', '.join(missing_for_guest())}")
def test_a_kernel_of_its_own_may_be_what_differs(tmp_path: Path) -> None:
    campaign = write_campaign(tmp_path, 1)
    guest = campaign.with_name("guest.toml")
    text = campaign.read_text("utf-8")
    assert text.count("[testbed]\n") == 1
    guest.write_text(text.replace("[testbed]\n", '[testbed]\nkernel = "uml"\n'), "utf-8")
    _, document = pair(tmp_path / "out", campaign, guest, "--time", "3s")
    assert {"testbed.kernel", "version"} <= {difference["key"] for difference in document["differences"]}
    assert all(side["idle_cpu_share"] < 0.5 for side in document["sides"])


@pytest.mark.nightly("up to a minute; the same decision as for rules before forwarding")
def test_rules_for_new_connections_cost_connections_per_second(tmp_path: Path) -> None:
    campaign, rules = tmp_path / "nat44.toml", tmp_path / "rules.toml"
    campaign.write_text(NAT44, "utf-8")
    built_in = recipe_text("nft-nat44")
    chain = [f"ip saddr 203.0.{number // 256}.{number % 256} drop" for number in range(RULES)]
    lines = ["chain forward {", "type filter hook forward priority 0;", "ct state new jump costly", "}"]
    rules.write_text(built_in.replace(TABLE, "\n".join([TABLE, *lines, "chain costly {", *chain, "}"])), "utf-8")
    status, document = pair(
        tmp_path / "out", campaign, "--recipe", "nft-nat44", "--recipe", rules, "--quantity", "connections per second",
        "--fail-if", "connections per second worse than 20%", "--time", "60s",
    )  # fmt: skip
    assert document["judgement"] not in ("better", "different")
    if not document["decided"]:
        nothing_compared(f"not decided: {document['look']}, {document['findings']}")
        return
    assert (status, document["judgement"], document["ended"]) == (1, "worse", "decided")
    assert document["look"]["high"] < 0.8 and all(row["a"]["value"] > 0 for row in document["rows"])


def _twice(campaign: Path) -> tuple[str, str, str]:
    recipe = str(campaign.with_name("recipe.toml"))
    return recipe, "--recipe", recipe

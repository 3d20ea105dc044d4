"""Flows that start one after another (RFC 8219 section 10.2.2): their arithmetic, requests, refusals, and a series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of, flow_start_of
from gatemark.config.stateful import time_needed_ns
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.series.degradation import degradation_section
from gatemark.series.run import measure_series
from gatemark.trial.connection_request import use_request
from gatemark.trial.form import FlowStart, Tags, TrialForm, frames_due
from gatemark.trial.request import trial_request

SECOND_NS = 1_000_000_000
IN_TURN = {"mode": "increasing", "range": "1000-1003"}
FIXED = {"mode": "fixed", "range": "9"}
HOSTS = {
    "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}, "port": "af_packet:a"},
    "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}, "port": "af_packet:b"},
}
ROUTER: dict[str, Any] = {
    "gateway": {"technology": "router44"},
    "testbed": {"kind": "ports"},
    **HOSTS,
    "traffic": {
        "frame_sizes": {"family": "ipv4", "octets": 64},
        "flow_interval": "1s",
        "source_ports": IN_TURN,
        "destination_ports": FIXED,
    },
    "trial": {"duration": "60s"},
    "throughput": {"maximum": 1000, "search_duration": "60s", "resolution": 100},
}
NAT: dict[str, Any] = {
    "testbed": {"kind": "netns", "recipe": "nft-nat44"},
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}, "flow_interval": "100ms"},
    "gateway": {"technology": "nat44", "table": {"udp_timeout": "1000s"}},
    "connections": {"count": 40, "rate": "1k", "send_order": "increasing", "read_order": "increasing"},
    "throughput": {"maximum": 1000},
}


def frames_by_hand(start: FlowStart, frames_per_second: int, duration_ns: int) -> int:
    """Count the slots of flows that have started, one after the other."""
    rounds = start.rounds_between(frames_per_second)
    slots = frames_per_second * duration_ns // SECOND_NS
    return sum(slot // start.flows >= slot % start.flows * rounds for slot in range(slots))


class TestArithmetic:
    @given(flows=st.integers(2, 12), rate=st.integers(20, 900), interval_ms=st.integers(1, 900))
    def test_frames_are_those_of_flows_that_have_started(self, flows: int, rate: int, interval_ms: int) -> None:
        start = FlowStart(flows=flows, interval_ns=interval_ms * 1_000_000)
        if interval_ms * rate < 1000 * flows:
            with pytest.raises(ConfigError, match="less often than the next"):
                start.rounds_between(rate)
            return
        duration_ns = start.ramp_ns(rate) + SECOND_NS
        assert frames_due(rate, duration_ns, TrialForm(flow_start=start)) == frames_by_hand(start, rate, duration_ns)

    def test_the_interval_is_rounded_down_to_times_between_frames_of_a_flow(self) -> None:
        start = FlowStart(flows=4, interval_ns=SECOND_NS)
        assert (start.rounds_between(1000), start.ramp_ns(1000)) == (250, 3 * SECOND_NS)
        assert (start.rounds_between(10), start.ramp_ns(10)) == (2, 2_400_000_000)  # 0.4 s between two frames


class TestRequests:
    def test_a_trial_is_longer_by_the_starts_and_tags_follow_them(self) -> None:
        campaign = complete_campaign(campaign_from_dict(ROUTER))
        (cell,) = cells_of(campaign)
        start = flow_start_of(campaign, cell)
        assert start == FlowStart(flows=4, interval_ns=SECOND_NS)
        body: Any = trial_request(
            campaign,
            cell,
            frames_per_second=1000,
            duration_ns=60 * SECOND_NS,
            trial_number=1,
            form=TrialForm(flow_start=start, tags=Tags(first_ns=5 * SECOND_NS, count=7)),
        )
        assert body["duration_ns"] == 63 * SECOND_NS
        assert body["delays"]["tags"] == {"first_ns": 8 * SECOND_NS, "count": 7}
        assert [way["flow_start"] for way in body["directions"]] == [{"flows": 4, "rounds_between": 250}] * 2

    def test_connections_are_flows(self) -> None:
        campaign = complete_campaign(campaign_from_dict(NAT))
        (cell,) = cells_of(campaign)
        start = flow_start_of(campaign, cell)
        assert start == FlowStart(flows=40, interval_ns=SECOND_NS // 10)
        sides = {"left": HOSTS["left"], "right": HOSTS["right"], "testbed": {"kind": "ports"}}
        control = {"clear_state": ["true"], "host": "gateway"}
        known = {**NAT, **sides, "gateway": {**NAT["gateway"], "pool": ["198.19.0.1/32"], "control": control}}
        campaign = complete_campaign(campaign_from_dict(known))
        body = use_request(
            campaign, cell, connections=40, frames_per_second=4000, duration_ns=SECOND_NS,
            trial_number=2, form=TrialForm(flow_start=start),
        )  # fmt: skip
        assert body["duration_ns"] == SECOND_NS * 49 // 10
        assert body["directions"][0]["flow_start"] == {"flows": 40, "rounds_between": 10}

    def test_connections_must_live_until_the_last_one_has_started(self) -> None:
        apart = complete_campaign(campaign_from_dict(NAT))
        traffic = {key: value for key, value in NAT["traffic"].items() if key != "flow_interval"}
        together = complete_campaign(campaign_from_dict({**NAT, "traffic": traffic}))
        needed = [time_needed_ns(campaign, 40, 1000, SECOND_NS) for campaign in (apart, together)]
        assert needed[0] - needed[1] == 39 * SECOND_NS // 10
        assert time_needed_ns(apart, 40, 1000, 0) == time_needed_ns(together, 40, 1000, 0)

    def test_one_flow_has_nothing_to_wait_for(self) -> None:
        campaign = complete_campaign(
            campaign_from_dict({**ROUTER, "traffic": {**ROUTER["traffic"], "source_ports": FIXED}})
        )
        assert flow_start_of(campaign, cells_of(campaign)[0]) is None

    def test_an_estimate_has_the_time_of_the_starts(self) -> None:
        apart = complete_campaign(campaign_from_dict(ROUTER))
        traffic = {key: value for key, value in ROUTER["traffic"].items() if key != "flow_interval"}
        together = complete_campaign(campaign_from_dict({**ROUTER, "traffic": traffic}))
        longer = estimate(apart).seconds_min - estimate(together).seconds_min
        assert longer == 3 * estimate(apart).trials_min


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source_ports": {"range": "1-4"}}, "source_ports are drawn"),
        ({"destination_networks": 4}, "destination_networks are drawn"),
        ({"reverse": {"source_ports": {"mode": "increasing", "range": "1-3"}}}, "as many flows in one direction"),
        ({"flow_interval": "0s"}, "flow_interval"),
    ],
)
def test_what_cannot_start_one_after_another_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        campaign_from_dict({**ROUTER, "traffic": {**ROUTER["traffic"], **change}})
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"back_to_back": {}}, "[back_to_back]"),
        ({"system_recovery": {"load": 500}}, "[system_recovery]"),
    ],
)
def test_a_procedure_with_a_load_of_its_own_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        campaign_from_dict({**ROUTER, "line": {"rate": "1G"}, **change})
    assert f"traffic.flow_interval: does not apply to {words}, whose load is not constant" in str(refused.value)


SERIES = """
name = "one-after-another"
repetitions = 1
[testbed]
kind = "netns"
recipe = "linux-router4"
[traffic]
direction = "forward"
frame_sizes = {family = "ipv4", octets = [64]}
flow_interval = "500ms"
destination_ports = {mode = "fixed", range = "9"}
[trial]
duration = "1s"
settle = "0s"
learn = "0s"
drain = "0s"
rest = "0s"
[throughput]
maximum = "4k"
minimum = 1000
resolution = 100
[delay]
metrics = "latency"
load = 1000
duration = "1s"
first_tag = "0s"
tags = 500
[[vary]]
titles = ["1 flow", "8 flows"]
"traffic.source_ports" = [{mode = "fixed", range = "1000"}, {mode = "increasing", range = "1000-1007"}]
"""


def test_a_series_says_that_flows_started_one_after_another(tmp_path: Path) -> None:
    def gateway(campaign: Any) -> SimulatedDevice:
        single = campaign.traffic.source_ports.mode == "fixed"
        return SimulatedDevice(capacity_forward=3000 if single else 1500)

    file = tmp_path / "series.toml"
    file.write_text(SERIES, encoding="utf-8")
    result = measure_series(file, output=tmp_path / "out", equipment=simulated_equipment(gateway), report=False)
    assert [column.outcome for column in result.document.columns] == ["measured", "measured"]
    section = degradation_section(result.document)
    assert section is not None
    table = section.tables[0]
    assert table.title == ("Degradation: throughput, frames/s in one direction, forward, a flow started every 0.5 s")
    percent = next(row for row in table.rows if row[0] == "Xpd")[1]
    assert percent.startswith("5") or percent.startswith("49"), percent
    assert result.document.columns[1].invalid_trials == 0

"""The tables for delays, bursts, recovery and reset: defaults, what is refused with which remedy, plan and estimate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.unit.conftest import CONTROL, NatCampaign

from gatemark.campaign.deviations import deviations
from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import plan_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.delay.table import DelayTable

THROUGHPUT = {"maximum": "100k"}
PORTS: dict[str, Any] = {
    "testbed": {"kind": "ports"},
    "left": {"port": "af_packet:a", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
}


def document(**tables: Any) -> dict[str, Any]:
    return {
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64, 512]}},
        **tables,
    }


def campaign(**tables: Any) -> Campaign:
    loaded = complete_campaign(campaign_from_dict(document(**tables)))
    return loaded


def problems(**tables: Any) -> dict[str, str]:
    """Key and remedy of every problem."""
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(document(**tables))
    return {
        problem.where.removeprefix("campaign: "): f"{problem.what}; {problem.fix}" for problem in caught.value.problems
    }


class TestDefaults:
    def test_are_those_of_the_rfcs(self) -> None:
        wanted = campaign(throughput=THROUGHPUT, delay={}, back_to_back={}, system_recovery={}, line={"rate": "1G"})
        written = wanted.to_document()
        assert written["delay"] == {
            "metrics": ["latency", "pdv", "ipdv"],
            "load": ["100%"],
            "duration": "120s",
            "first_tag": "60s",
            "tags": 50_000,
        }
        assert written["back_to_back"] == {
            "ceiling": "30s",
            "resolution": "1%",
            "bursts": 50,
            "wait": "2s",
            "search": "binary",
        }
        assert written["system_recovery"] == {"overload": "110%", "duration": "60s", "observe": "60s"}
        assert complete_campaign(campaign_from_dict(written)) == wanted

    def test_without_latency_a_trial_is_shorter_and_nothing_is_tagged(self) -> None:
        wanted = campaign(throughput=THROUGHPUT, delay={"metrics": ["pdv", "ipdv"]})
        assert wanted.to_document()["delay"] == {"metrics": ["pdv", "ipdv"], "load": ["100%"], "duration": "60s"}
        assert complete_campaign(campaign_from_dict(wanted.to_document())) == wanted

    def test_loads_are_rates_or_shares(self) -> None:
        delay = campaign(throughput=THROUGHPUT, delay={"load": "12.5%"}).table(DelayTable)
        assert delay.load == (Fraction(1, 8),)
        delay = campaign(delay={"load": ["10k", 2000]}).table(DelayTable)
        assert delay.load == (10_000, 2000)


@pytest.mark.parametrize(
    ("tables", "key", "words"),
    [
        ({"delay": {}}, "delay.load", "100% of a throughput that is not measured"),
        ({"throughput": THROUGHPUT, "delay": {"load": ["100%", 1000]}}, "delay.load", "mixes"),
        ({"throughput": THROUGHPUT, "delay": {"load": ["50%", "50%"]}}, "delay.load", "twice"),
        ({"throughput": THROUGHPUT, "delay": {"load": []}}, "delay.load", "at least 1"),
        ({"throughput": THROUGHPUT, "delay": {"load": "1001%"}}, "delay.load[0]", "1000%"),
        ({"throughput": THROUGHPUT, "delay": {"load": "0%"}}, "delay.load[0]", "nothing"),
        ({"throughput": THROUGHPUT, "delay": {"metrics": ["pdv", "pdv"]}}, "delay.metrics", "twice"),
        (
            {"throughput": THROUGHPUT, "delay": {"metrics": ["jitter"]}},
            "delay.metrics[0]",
            "'latency', 'pdv' or 'ipdv'",
        ),
        ({"throughput": THROUGHPUT, "delay": {"metrics": ["pdv"], "tags": 500}}, "delay.tags", "in metrics"),
        ({"throughput": THROUGHPUT, "delay": {"metrics": ["pdv"], "first_tag": "1s"}}, "delay.first_tag", "in metrics"),
        ({"throughput": THROUGHPUT, "delay": {"duration": "60s"}}, "delay.first_tag", "below delay.duration"),
        ({"throughput": THROUGHPUT, "delay": {"tags": 0}}, "delay.tags", "greater than or equal to 1"),
        ({"delay": {"load": 100}}, "delay.tags", "write at most 6000"),
        ({"back_to_back": {}, "line": {"rate": "1G"}}, "back_to_back", "add a table [throughput]"),
        ({"throughput": THROUGHPUT, "back_to_back": {"resolution": "101%"}}, "back_to_back.resolution", "1%"),
        ({"system_recovery": {}}, "system_recovery.load", "no throughput is measured"),
        ({"system_recovery": {"load": 1000, "overload": "100%"}}, "system_recovery.overload", "not an overload"),
        ({"throughput": THROUGHPUT, "reset": {}}, "reset", "does not apply to kind = loopback"),
        ({**PORTS, "throughput": THROUGHPUT, "reset": {}}, "gateway.control.reset", "nothing resets the gateway"),
        ({"throughput": {**THROUGHPUT, "frame_timeout": "0s"}}, "throughput.frame_timeout", "above 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(tables: dict[str, Any], key: str, words: str) -> None:
    assert words in problems(**tables)[key]


def test_all_problems_are_told_at_once() -> None:
    told = problems(delay={"load": 100}, back_to_back={"bursts": 0}, system_recovery={}, reset={"before": "0s"})
    assert {"delay.tags", "back_to_back.bursts", "system_recovery.load", "reset.before"} <= set(told)


class TestReset:
    def test_a_stateless_gateway_may_be_controlled(self) -> None:
        gateway = {"technology": "router44", "control": {"reset": "systemctl restart gateway"}}
        wanted = campaign(**PORTS, gateway=gateway, reset={"load": 1000})
        assert wanted.control.actions == {"reset"}
        runs = plan_of(wanted).runs
        assert [(run.procedure, run.cell.frame_sizes.ipv4) for run in runs] == [("reset", 64)]

    def test_but_it_has_no_state(self) -> None:
        gateway = {"technology": "router44", "control": {"reset": "reboot", "clear_state": "conntrack -F"}}
        told = problems(**PORTS, gateway=gateway, reset={"load": 1000})
        assert "keeps no state" in told["gateway.control.clear_state"]

    def test_the_shell_must_be_readable(self) -> None:
        gateway = {"technology": "router44", "control": {"reset": "reboot", "shell": "ssh 'root"}}
        told = problems(**PORTS, gateway=gateway, reset={"load": 1000})
        assert "close every quote" in told["gateway.control.shell"]


class TestPlan:
    def test_delays_come_after_the_throughput(self) -> None:
        wanted = campaign(
            line={"rate": "1G"},
            system_recovery={},
            back_to_back={},
            delay={},
            frame_loss={},
            throughput=THROUGHPUT,
        )
        procedures = list(dict.fromkeys(run.procedure for run in plan_of(wanted).runs))
        assert procedures == ["throughput", "frame_loss", "delay", "back_to_back", "system_recovery"]

    def test_stateful_delays_have_the_cells_of_the_throughput(self, nat_campaign: NatCampaign) -> None:
        wanted = nat_campaign(
            connections={"count": [1000, 2000]}, delay={"load": 1000, "tags": 500}, frame_loss={"rates": [1000]}
        )
        runs = plan_of(wanted).runs
        assert [run.cell for run in runs if run.procedure == "delay"] == [
            run.cell for run in runs if run.procedure == "frame_loss"
        ]

    def test_connections_must_outlive_a_delay_trial(self, nat_campaign: NatCampaign) -> None:
        with pytest.raises(ConfigError, match=r"phase 2 of 2min"):
            nat_campaign(gateway={"table": {"udp_timeout": "100s"}}, delay={"load": 1000, "tags": 500})

    def test_the_estimate_knows_every_load(self) -> None:
        trial = {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}
        delay = {"load": [1000, 2000, 3000], "duration": "10s", "first_tag": "5s", "tags": 500}
        needed = estimate(campaign(repetitions=5, trial=trial, delay=delay))
        assert (needed.trials_min, needed.trials_max) == (2 * 5 * 3, 2 * 5 * 3)
        assert needed.seconds_min == needed.seconds_max == 300
        recovery = {"duration": "20s", "observe": "10s", "load": 1000}
        needed = estimate(campaign(repetitions=5, trial=trial, system_recovery=recovery))
        assert (needed.trials_max, needed.seconds_max) == (10, 300)

    def test_a_burst_search_may_have_nothing_to_do(self) -> None:
        trial = {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}
        alone = campaign(repetitions=1, trial=trial, line={"rate": "1G"}, throughput=THROUGHPUT)
        both = campaign(repetitions=1, trial=trial, line={"rate": "1G"}, throughput=THROUGHPUT, back_to_back={})
        assert estimate(both).trials_min == estimate(alone).trials_min
        lengths = 25  # each half of the one before, from 30 s down to a single frame
        assert estimate(both).trials_max == estimate(alone).trials_max + 2 * 50 * lengths

    def test_a_recovery_may_have_nothing_to_do(self) -> None:
        """No load is above what a gateway forwards at line rate."""
        tables: dict[str, Any] = {"repetitions": 3, "line": {"rate": "1G"}, "throughput": THROUGHPUT}
        alone, both = campaign(**tables), campaign(**tables, system_recovery={})
        assert estimate(both).trials_min == estimate(alone).trials_min
        assert estimate(both).trials_max == estimate(alone).trials_max + 2 * 3

    def test_most_bursts_are_shorter_than_the_longest(self) -> None:
        trial = {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}
        tables: dict[str, Any] = {"repetitions": 1, "trial": trial, "line": {"rate": "1G"}, "throughput": THROUGHPUT}
        bursts = {"search": "loss_verification", "ceiling": "30s", "wait": "1s"}
        alone, both = estimate(campaign(**tables)), estimate(campaign(**tables, back_to_back=bursts))
        seconds = both.seconds_max - alone.seconds_max
        # 30 s fails, 15, 22.5 and 26.25 s pass, and all after that fail at 26.25 s and a little more; those twice
        shorter = 4  # until the bounds are 1 % apart
        trials = 2 + 3 + 2 * shorter
        once_s = 2 * 30 + 15 + 22.5 + 26.25 + 2 * shorter * 26.25 + trials
        assert 2 * 50 * once_s <= seconds < 1.1 * 2 * 50 * once_s


class TestDeviations:
    def named(self, **tables: Any) -> str:
        return "\n".join(deviation.sentence for deviation in deviations(campaign(**tables)))

    def test_the_defaults_have_none_of_their_own(self) -> None:
        text = self.named(throughput={}, delay={}, back_to_back={}, system_recovery={}, line={"rate": "1G"})
        for word in ("tag", "Latency", "burst", "overload", "Delays", "variation"):
            assert word not in text

    def test_shorter_and_fewer_are_named(self) -> None:
        text = self.named(
            throughput={},
            line={"rate": "1G"},
            delay={"duration": "10s", "first_tag": "5s", "tags": 499, "load": ["100%", "50%"]},
            back_to_back={"bursts": 5, "ceiling": "2s", "wait": "1s"},
            system_recovery={"overload": "150%", "duration": "5s", "load": 1000},
        )
        for sentence in (
            "Delays are also measured at other loads than the throughput: 50%",
            "Latency trials last 10s, less than 120s",
            "Frames are tagged from 5s on",
            "499 frames are tagged, fewer than 500",
            "searched for 5 times, fewer than 50",
            "Bursts are at most 2s long",
            "After a burst 1s pass",
            "The overload is 150% of the throughput, not 110%",
            "The overload lasts 5s",
            "a share of 1000 frames/s",
        ):
            assert sentence in text

    def test_a_frame_timeout_is_named(self) -> None:
        assert "longer than 100ms counts as lost" in self.named(throughput={"frame_timeout": "100ms"})

    def test_variation_without_latency(self) -> None:
        text = self.named(throughput={}, delay={"metrics": "ipdv", "duration": "30s"})
        assert "Delay variation trials last 30s, less than 60s" in text
        assert "No delay variation" not in text
        assert "No delay variation" in self.named(throughput={}, delay={"metrics": "latency"})

    def test_a_reset_is_one_of_three_kinds(self) -> None:
        gateway = {"technology": "router44", "control": {"reset": "reboot"}}
        text = self.named(**PORTS, gateway=gateway, reset={"load": 1000, "before": "5s"})
        assert "Only a software reset is measured" in text
        assert "5s before the reset, less than 15s" in text


def test_the_commands_of_a_stateful_gateway_are_as_before(nat_campaign: NatCampaign) -> None:
    wanted = nat_campaign(gateway={"control": {**CONTROL, "reset": "reboot"}}, reset={"load": 1000})
    assert "reset" in wanted.control.actions

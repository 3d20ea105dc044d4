"""Plan, rates, estimate and deviations of campaigns for stateful gateways."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.unit.simulated_campaigns import CONNTRACK
from tests.unit.stateful_documents import rate_run, search

from gatemark.campaign.deviations import deviations
from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, GatemarkError, TestBedError
from gatemark.procedures.connection_establishment_rate.run import establishment_goal
from gatemark.procedures.connection_tracking_table_capacity.run import capacity_goal
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.phase_one import phase_one_rate, slowest_rate
from gatemark.results.search import RateResult
from gatemark.results.toml_text import to_toml
from gatemark.trial.cell import Cell

SECOND = 1_000_000_000
LINE = 1_488_095
FOREGROUND = Mix(1, 1)


def campaign(*, inside: str = "left", table: dict[str, Any] | None = None, **tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "gateway": {
            "technology": "nat44",
            "inside": inside,
            "pool": ["198.19.0.1" if inside == "left" else "198.18.0.1"],
            "table": {
                key: value
                for key, value in {"size": "200k", "udp_timeout": "300s", **(table or {})}.items()
                if value is not None
            },
            "control": CONNTRACK,
        },
        "testbed": {"kind": "ports"},
        "left": {"port": "pci:1", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"port": "pci:2", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "line": {"rate": "1G"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "connections": {"count": ["10k", "100k"]},
        **tables,
    }
    return complete_campaign(campaign_from_dict(document))


RINGS: dict[str, Any] = {
    "gateway": {"technology": "nat44"},
    "testbed": {"kind": "loopback"},
    "left": {"ipv4": {"address": "198.18.0.2"}},
    "right": {"ipv4": {"address": "198.19.0.2"}},
    "line": {},
}
"""No gateway, and a medium without a line rate."""

ALL: dict[str, Any] = {
    "connection_establishment_rate": {"validated": [True, False], "alpha": "search"},
    "throughput": {},
    "frame_loss": {},
    "connection_tear_down_rate": {},
    "connection_tracking_table_capacity": {"maximum": "400k"},
}


class TestPlan:
    def test_what_later_runs_need_comes_first(self) -> None:
        traffic = {"direction": ["reverse", "bidirectional"], "frame_sizes": {"family": "ipv4", "octets": [128, 64]}}
        runs = plan_of(campaign(traffic=traffic, **ALL)).runs
        procedures = list(dict.fromkeys(run.procedure for run in runs))
        assert procedures == [
            "connection_establishment_rate",
            "validated_connection_establishment_rate",
            "throughput",
            "frame_loss",
            "connection_tear_down_rate",
            "connection_tracking_table_capacity",
        ]
        count = {procedure: sum(run.procedure == procedure for run in runs) for procedure in procedures}
        assert list(count.values()) == [4, 4, 8, 8, 2, 1]
        assert [run.number for run in runs] == list(range(1, len(runs) + 1))
        assert [run.cell.connections for run in runs[:4]] == [10_000, 100_000, 10_000, 100_000]

    @pytest.mark.parametrize(("inside", "upload"), [("left", "forward"), ("right", "reverse")])
    def test_the_initiator_alone_establishes(self, inside: str, upload: str) -> None:
        for run in plan_of(campaign(inside=inside, **ALL)).runs:
            expected = "bidirectional" if run.procedure in ("throughput", "frame_loss") else upload
            assert run.cell.direction == expected

    def test_tear_down_and_capacity_take_the_smallest_frames_of_the_first_mix(self) -> None:
        traffic = {
            "direction": ["reverse", "forward"],
            "mix": ["1/2", "1/1"],
            "frame_sizes": {"family": "ipv4", "octets": [512, 128]},
        }
        sides: dict[str, Any] = {
            "left": {
                "port": "pci:1",
                "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
                "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
            },
            "right": {
                "port": "pci:2",
                "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
                "ipv6": {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"},
            },
        }
        runs = plan_of(campaign(traffic=traffic, **sides, **ALL)).runs[-3:]
        assert [run.cell.connections for run in runs] == [10_000, 100_000, None]
        assert {run.cell.frame_sizes.ipv4 for run in runs} == {128}
        assert {run.cell.mix for run in runs} == {Mix(1, 2)}

    def test_only_the_capacity_needs_no_number(self) -> None:
        only = campaign(connections={}, connection_tracking_table_capacity={"start": 500})
        (run,) = plan_of(only).runs
        assert run.cell.connections is None
        assert cells_of(only)[0].connections == 500

    def test_nothing_to_measure(self) -> None:
        with pytest.raises(ConfigError, match="names nothing to measure") as caught:
            plan_of(campaign())
        assert "connection_establishment_rate" in str(caught.value)


def cell(connections: int | None = 10_000, *, mix: Mix = FOREGROUND, octets: int = 64) -> Cell:
    sizes = FrameSizes(ipv4=octets, ipv6=None)
    return Cell(direction="forward", frame_sizes=sizes, mix=mix, connections=connections)


class TestGoals:
    def test_shares_are_of_the_line(self) -> None:
        wanted = campaign(connection_establishment_rate={"maximum": "50%", "resolution": "1%"})
        goal = establishment_goal(wanted, cell(), LINE, validated=False)
        assert (goal.maximum, goal.resolution, goal.connections) == (744_047, 7_440, 10_000)
        assert goal.alpha is None
        assert goal.search_duration_ns is None

    def test_beside_background_the_line_carries_fewer_connections(self) -> None:
        goal = establishment_goal(
            campaign(connection_establishment_rate={}), cell(mix=Mix(1, 10)), LINE, validated=True
        )
        assert goal.maximum == LINE // 10
        assert goal.alpha == 1

    def test_no_rate_is_so_low_that_connections_expire(self) -> None:
        wanted = campaign(table={"udp_timeout": "20s"}, connection_establishment_rate={"maximum": "1M"})
        goal = establishment_goal(wanted, cell(100_000), LINE, validated=False)
        assert goal.minimum == slowest_rate(wanted, 100_000, None, maximum=10**6)
        assert 100_000 / goal.minimum < 20
        validated = establishment_goal(wanted, cell(100_000), LINE, validated=True)
        assert 2 * 100_000 / validated.minimum < 20
        assert validated.minimum >= 2 * goal.minimum - 1
        assert validated.minimum == slowest_rate(wanted, 100_000, Fraction(1), maximum=10**6)

    def test_a_timeout_that_no_rate_meets_is_refused(self) -> None:
        wanted = campaign(table={"udp_timeout": "3s"}, connection_establishment_rate={"maximum": "0.1%"})
        with pytest.raises(ConfigError, match="more than the gateway's UDP timeout of 3s"):
            establishment_goal(wanted, cell(100_000), LINE, validated=False)

    def test_a_timeout_that_is_not_stated_is_the_usual_one(self) -> None:
        wanted = campaign(table={"udp_timeout": None}, connection_establishment_rate={"maximum": "0.1%"})
        assert establishment_goal(wanted, cell(100_000), LINE, validated=False).minimum == 339
        with pytest.raises(ConfigError, match="usual UDP timeout of 5min"):
            establishment_goal(wanted, cell(1_000_000), LINE, validated=False)

    def test_searched_alphas_have_time_too(self) -> None:
        wanted = campaign(connection_establishment_rate={"alpha": "search", "validated": [False, True]})
        goal = establishment_goal(wanted, cell(100_000), LINE, validated=True)
        assert goal.alpha == 1
        assert goal.minimum == slowest_rate(wanted, 100_000, Fraction(1, 4), maximum=LINE)

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ({"maximum": "1k", "minimum": "10%"}, r"connection_establishment_rate\.minimum"),
            ({"maximum": "10%", "resolution": "1M"}, r"connection_establishment_rate\.resolution"),
        ],
    )
    def test_rates_that_contradict_each_other(self, table: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            establishment_goal(campaign(connection_establishment_rate=table), cell(), LINE, validated=False)

    def test_an_alpha_that_is_searched_for_needs_its_reference(self) -> None:
        wanted = campaign(connection_establishment_rate={"alpha": "search", "validated": True})
        with pytest.raises(ConfigError, match=r"connection_establishment_rate\.alpha"):
            establishment_goal(wanted, cell(), LINE, validated=True)

    def test_a_share_of_an_unknown_line(self) -> None:
        wanted = campaign(connection_establishment_rate={"maximum": "100%"})
        with pytest.raises(ConfigError, match=r"line\.rate"):
            establishment_goal(wanted, cell(), None, validated=False)

    def test_without_a_line_the_rate_is_doubled(self) -> None:
        wanted = campaign(connection_establishment_rate={"minimum": 10}, connection_tracking_table_capacity={})
        goal = establishment_goal(wanted, cell(), None, validated=False)
        assert (goal.maximum, goal.ceiling) == (10_000, 10**9)
        assert goal.resolution == Fraction(1, 1000)
        rates = capacity_goal(wanted, cell(None), None).rates
        assert (rates.maximum, rates.ceiling, rates.resolution) == (10_000, 10**9, Fraction(1, 100))

    def test_doubling_begins_with_a_rate_at_which_connections_live_long_enough(self) -> None:
        wanted = campaign(table={"udp_timeout": "20s"}, connection_establishment_rate={})
        goal = establishment_goal(wanted, cell(1_000_000), None, validated=False)
        assert goal.maximum == goal.minimum == slowest_rate(wanted, 1_000_000, None, maximum=None) > 50_000

    def test_the_capacity_begins_with_its_own_rate_search(self) -> None:
        table = {"start": "2k", "maximum": "1M", "resolution": 10, "alpha": "50%", "beta": "10%", "gamma": "50%"}
        goal = capacity_goal(campaign(connection_tracking_table_capacity=table), cell(None), LINE)
        assert (goal.start, goal.maximum, goal.resolution) == (2000, 1_000_000, 10)
        assert (goal.rates.maximum, goal.rates.resolution) == (LINE, LINE // 100)
        assert (goal.rates.alpha, goal.beta, goal.gamma) == (Fraction(1, 2), Fraction(1, 10), Fraction(1, 2))

    def test_a_capacity_without_maximum_ends_with_the_port_space(self) -> None:
        goal = capacity_goal(campaign(connection_tracking_table_capacity={}), cell(None), LINE)
        assert goal.maximum == 40_000 * 65_535


def found(
    lower_bounds: tuple[int | None, ...],
    *,
    of: Cell | None = None,
    procedure: str = "connection_establishment_rate",
) -> tuple[Cell, RateResult]:
    """A traffic and the rate that was found with it."""
    traffic = of or cell()
    searches = tuple(search(bound, "nothing_passes" if bound is None else "found") for bound in lower_bounds)
    return traffic, rate_run(procedure, (), count=traffic.connections, changes={"repetitions": searches})


def rate_of(
    wanted: Campaign, earlier: list[tuple[Cell, RateResult]], of: Cell | None = None, *, phase_two_s: int = 60
) -> int:
    return phase_one_rate(wanted, of or cell(), Earlier([*earlier]), phase_two_ns=phase_two_s * SECOND)


class TestPhaseOneRate:
    def test_a_share_is_of_the_lowest_repetition(self) -> None:
        assert rate_of(campaign(), [found((90_001, 70_001, 80_001))]) == 35_000
        shared = campaign(connections={"count": "10k", "rate": "90%"})
        assert rate_of(shared, [found((70_001,))]) == 63_000

    def test_it_belongs_to_the_same_number_and_frames(self) -> None:
        others = [
            found((10,), of=cell(100_000)),
            found((20,), of=cell(octets=128)),
            found((30,), of=cell(mix=Mix(1, 2))),
            found((80_000,)),
        ]
        assert rate_of(campaign(), others) == 40_000

    def test_without_validation_comes_first(self) -> None:
        validated = "validated_connection_establishment_rate"
        assert rate_of(campaign(), [found((40_000,), procedure=validated)]) == 20_000
        assert rate_of(campaign(), [found((40_000,), procedure=validated), found((80_000,))]) == 40_000

    def test_a_share_of_nothing_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="does not measure it") as caught:
            rate_of(campaign(), [])
        assert "connections.rate" in str(caught.value)

    def test_a_rate_of_its_own_needs_no_measurement(self) -> None:
        wanted = campaign(connections={"count": "10k", "rate": "30k"})
        assert rate_of(wanted, []) == 30_000
        assert rate_of(wanted, [found((30_000,))]) == 30_000

    def test_a_rate_above_the_measured_maximum_is_refused(self) -> None:
        wanted = campaign(connections={"count": "10k", "rate": "30k"})
        with pytest.raises(ConfigError, match="30000 connections/s is above the measured maximum of 29999"):
            rate_of(wanted, [found((40_000, 29_999))])

    def test_a_gateway_that_established_nothing_is_not_measured_further(self) -> None:
        with pytest.raises(TestBedError, match="no rate was found at which the gateway establishes 10000"):
            rate_of(campaign(), [found((40_000, None))])

    def test_connections_must_outlive_both_phases(self) -> None:
        wanted = campaign(connections={"count": "10k", "rate": 100})
        assert rate_of(wanted, [], phase_two_s=60) == 100
        with pytest.raises(GatemarkError, match=r"gateway\.table\.udp_timeout"):
            rate_of(wanted, [], phase_two_s=250)


class TestEstimate:
    TRIAL: dict[str, Any] = {"duration": "10s", "settle": "1s", "learn": "1s", "drain": "1s", "rest": "1s"}  # noqa: RUF012
    PHASES: dict[str, Any] = {"count": "100k", "timeout": "1s", "gap": "1s", "rate": "50k"}  # noqa: RUF012

    def estimated(self, **tables: Any) -> tuple[int, int, int, int]:
        wanted = campaign(trial=self.TRIAL, repetitions=1, **{"connections": self.PHASES, **tables})
        expected = estimate(wanted)
        assert expected.establishment_assumed
        return expected.trials_min, expected.trials_max, expected.seconds_min, expected.seconds_max

    def test_a_rate_that_passes_at_once_and_one_that_is_searched_for(self) -> None:
        table = {"maximum": "200k", "resolution": "50k"}
        # at best 200k; at most 200k fails, 100k passes, 150k fails: 0.5, 1 and 0.667 s; 3 s of waits in each
        assert self.estimated(connection_establishment_rate=table) == (1, 3, 4, 12)

    def test_validation_takes_its_own_time(self) -> None:
        table = {"maximum": "100k", "resolution": "50k", "validated": True, "alpha": "50%"}
        # 1 s, 3 s of waits, 2 s of validation, 3 s of gap, drain and rest
        assert self.estimated(connection_establishment_rate=table) == (1, 1, 9, 9)

    def test_a_searched_alpha_costs_a_search_for_each_share(self) -> None:
        """The rate without validation is 100k, so a validated one of 50k would be good enough; of replies 12,499 pass.

        At a share of 1 five trials go down to 6.25k, at 4/5 and at 1/2 four to 12.5k, at 1/4 three to 25k.
        """
        table = {"maximum": "100k", "resolution": "50k", "validated": [False, True], "alpha": "search"}
        trials_min, trials_max, _, _ = self.estimated(connection_establishment_rate=table)
        assert (trials_min, trials_max) == (2, 1 + 5 + 4 + 4 + 3)

    def test_every_trial_has_its_first_phase(self) -> None:
        # each 10 s, 4 s of waits, and 2 s of phase 1 with its 2 s of timeout and gap
        assert self.estimated(frame_loss={"rates": ["1k", "2k"]}) == (2, 2, 36, 36)

    def test_a_share_is_of_what_is_tried_or_assumed(self) -> None:
        tables = {"connection_establishment_rate": {"maximum": "1M", "minimum": "1M"}, "frame_loss": {"rates": ["1k"]}}
        shared = {**self.PHASES, "rate": "50%"}
        _, _, least, most = self.estimated(connections=shared, **tables)
        assert most - least == pytest.approx(2 - 0.2, abs=1)

    def test_a_rate_that_is_found_by_doubling(self) -> None:
        table = {"resolution": "10%", "minimum": "1k"}
        # 100k/s: 10k to 160k is 5 trials, 3 more halve 80k; 10M/s: 11 trials and 3 more. 3 s of waits in each
        wanted = campaign(**RINGS, connections=self.PHASES, repetitions=1, connection_establishment_rate=table)
        expected = estimate(wanted)
        assert expected.maximum_assumed
        assert (expected.trials_min, expected.trials_max) == (5 + 3, 11 + 3)

    def test_no_slower_phase_one_is_assumed_than_connections_live(self) -> None:
        """At 10k/s, a tenth of what is assumed of a slow gateway, 100k connections need 10 s, more than 12 s leave."""
        tables: dict[str, Any] = {
            "connection_establishment_rate": {"maximum": "1M", "minimum": "1M"},
            "connection_tear_down_rate": {},
            "connections": {**self.PHASES, "rate": "10%"},
        }
        most = [self.estimated(table={"udp_timeout": timeout}, **tables)[3] for timeout in ("300s", "12s")]
        establishment_s, waits_s = 4, 3
        assert most[0] == establishment_s + 10 + waits_s
        assert most[1] < 12 + establishment_s

    def test_tear_down_fills_once_and_empties_twice(self) -> None:
        assert self.estimated(connection_tear_down_rate={}) == (2, 2, 5, 5)

    def test_the_capacity_grows_to_the_size_of_the_table(self) -> None:
        def trials(**gateway: Any) -> tuple[int, int]:
            table = {"start": 1000, "maximum": 8000, "maximum_rate": "100k", "resolution": 999}
            wanted = campaign(table=gateway, repetitions=2, connections={}, connection_tracking_table_capacity=table)
            return estimate(wanted).trials_min, estimate(wanted).trials_max

        assert trials(size="100k") == (8, 8)  # 1000, 2000, 4000, 8000
        # besides 1000, 2000 and 4000: 8000 fails at four rates, 6000 at three, 5000 passes, 5500 fails at three
        assert trials(size=5000) == (28, 28)


class TestCommand:
    def shown(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
        file = tmp_path / "nat44.toml"
        file.write_text(to_toml(campaign(**ALL).to_document()), encoding="utf-8")
        assert main(["plan", str(file), *options]) == 0
        return capsys.readouterr().out

    def test_runs_are_told_with_their_connections(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = self.shown(tmp_path, capsys)
        rows = [re.split(" {2,}", line.strip()) for line in text.splitlines()]
        assert ["1", "connection establishment rate", "forward", "64", "1/1", "10,000"] in rows
        assert ["11", "connection tracking table capacity", "forward", "64", "1/1", "\u2013"] in rows
        assert "an upper bound if the gateway establishes 100.0k connections/s; a slower gateway takes longer" in text

    def test_json_has_the_number_of_each_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        document = json.loads(self.shown(tmp_path, capsys, "--json"))
        assert [run["connections"] for run in document["runs"]] == [10_000, 100_000] * 5 + [None]
        assert document["estimate"]["establishment_assumed"] is True


def sentences(wanted: Campaign) -> list[str]:
    return [deviation.sentence for deviation in deviations(wanted)]


class TestDeviations:
    def test_restricted_ports_are_told_as_what_the_rfc_wants(self) -> None:
        told = sentences(campaign(**ALL))
        assert any("as RFC 9693 section 4.1 wants" in sentence for sentence in told)
        assert not any("(RFC 4814 section 4.5)" in sentence for sentence in told)
        assert any("Only UDP is measured" in sentence and "RFC 9693 section 8" in sentence for sentence in told)

    @pytest.mark.parametrize(
        ("tables", "words"),
        [
            ({"connections": {"count": "10k", "order": "increasing"}}, "in increasing order, not pseudorandom"),
            ({"connections": {"count": "10k", "read_order": "fixed"}}, "state table in fixed order"),
            ({"connections": {"count": "10k", "send_order": "increasing"}}, "Initiator uses connections in increasing"),
            ({"connections": {"count": "1k", "source_ports": "1024-2023"}}, "combines 1000 addresses and ports"),
            ({"connections": {"count": "1k", "rate": "100%"}}, "at the measured maximum itself"),
            ({"connection_establishment_rate": {"validated": True, "alpha": "80%"}}, "validated at 80% of the rate"),
            ({"connection_tracking_table_capacity": {"alpha": "50%"}}, "For the capacity, connections are validated"),
            ({"repetitions": 5}, "5 repetitions, fewer than 20"),
            ({"traffic": {"direction": "forward"}}, "Traffic is unidirectional only"),
        ],
    )
    def test_each_deviation_is_a_sentence(self, tables: dict[str, Any], words: str) -> None:
        before = sentences(campaign(**ALL))
        told = [sentence for sentence in sentences(campaign(**{**ALL, **tables})) if sentence not in before]
        assert any(words in sentence for sentence in told), told

    def test_what_cannot_be_seen_of_the_gateway_is_told(self) -> None:
        blind = campaign(table={"udp_timeout": None, "size": None}, **ALL)
        blind = blind.model_copy(update={"gateway": blind.gateway.model_copy(update={"control": None})})
        told = sentences(blind)
        assert any("UDP timeout is not stated" in sentence for sentence in told)
        assert any("connections are not counted" in sentence for sentence in told)

    def test_what_the_gateway_is_known_to_do_is_told(self) -> None:
        known = campaign(**ALL)
        facts = {"zero_udp_checksum": True, "mapping": "endpoint_dependent"}
        told = sentences(known.model_copy(update={"gateway": known.gateway.model_copy(update=facts)}))
        assert any("0x0000 where 0xffff is due" in sentence and "counted apart" in sentence for sentence in told)
        assert any("mapping is endpoint-dependent" in sentence for sentence in told)

    def test_a_rate_of_ones_own_is_told_where_nothing_is_below_it(self) -> None:
        connections = {"count": "10k", "rate": "1k"}
        told = sentences(campaign(connections=connections, throughput={}))
        assert any("Test phase 1 runs at 1000 connections/s" in sentence for sentence in told)
        assert not any("runs at" in sentence for sentence in sentences(campaign(connections=connections, **ALL)))

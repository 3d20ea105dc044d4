from __future__ import annotations

from typing import Any

import pytest

from gatemark.campaign.deviations import deviations
from gatemark.campaign.estimate import PlanEstimate, estimate
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.config.model import Campaign
from gatemark.config.types import Mix
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError


def campaign(technology: str = "router44", **tables: Any) -> Campaign:
    gateway: dict[str, Any] = {"technology": technology}
    if technology in ("siit64", "siit46"):
        gateway |= {"prefix": "2001:2:0:6400::/96"}
        side = "left" if technology == "siit64" else "right"
        tables.setdefault(side, {})["ipv6"] = {"address": "2001:2:0:6400::c612:2"}
    return complete_campaign(campaign_from_dict({"gateway": gateway, "testbed": {"kind": "loopback"}, **tables}))


def rfc_campaign(**tables: Any) -> Campaign:
    sides: dict[str, Any] = {
        "left": {"port": "pci:1", "mtu": 1500, "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"port": "pci:2", "mtu": 1500, "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    }
    document = {
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "ports"},
        **sides,
        "throughput": {},
        **tables,
    }
    return complete_campaign(campaign_from_dict(document))


def sentences(wanted: Campaign) -> tuple[str, ...]:
    return tuple(deviation.sentence for deviation in deviations(wanted))


@pytest.mark.parametrize(
    ("technology", "mix", "family", "octets", "label"),
    [
        ("router44", "1/1", "ipv4", 64, "64"),
        ("router44", "9/10", "ipv4", 64, "64 / 84"),
        ("router44", "0/1", "ipv4", 64, "84"),
        ("router66", "1/1", "ipv6", 84, "84"),
        ("router66", "1/2", "ipv6", 84, "84"),
        ("siit64", "1/1", "ipv4", 64, "64 / 84"),
        ("siit64", "1/10", "ipv6", 1038, "1018 / 1038"),
        ("siit46", "1/1", "ipv4", 1018, "1018 / 1038"),
    ],
)
def test_both_sizes_are_named(technology: str, mix: str, family: str, octets: int, label: str) -> None:
    result = campaign(technology, traffic={"mix": mix, "frame_sizes": {"family": family, "octets": octets}})
    (cell,) = cells_of(result)
    assert cell.frame_sizes.label() == label


def test_the_plan_is_the_product_in_the_order_of_the_file() -> None:
    plan = plan_of(
        campaign(
            traffic={
                "direction": ["reverse", "forward"],
                "mix": ["1/1", "1/2"],
                "frame_sizes": {"family": "ipv4", "octets": [128, 64]},
            },
            throughput={},
            frame_loss={},
        )
    )
    assert [run.number for run in plan.runs] == list(range(1, 17))
    assert {run.procedure for run in plan.runs[:8]} == {"throughput"}
    first = plan.runs[0].cell
    assert (first.direction, first.mix, first.frame_sizes.ipv4) == ("reverse", Mix(1, 1), 128)


def test_a_campaign_without_procedure_has_no_plan() -> None:
    with pytest.raises(ConfigError, match="names nothing to measure"):
        plan_of(campaign())


def test_default_sizes_are_those_that_the_path_carries_whole() -> None:
    def ipv4_sizes(campaign: Campaign) -> list[int | None]:
        return [cell.frame_sizes.ipv4 for cell in cells_of(campaign)]

    standard = [64, 128, 256, 512, 768, 1024, 1280, 1518]
    assert ipv4_sizes(campaign()) == standard
    assert ipv4_sizes(campaign("siit64")) == standard[:-1]  # 1538 octets of IPv6 exceed an MTU of 1500
    jumbo: dict[str, Any] = {"left": {"mtu": 9216}, "right": {"mtu": 9216}}
    assert ipv4_sizes(campaign("router44", **jumbo)) == [*standard, 2048, 4096, 8192, 9216]


def test_mlrsearch_is_estimated_by_what_it_does() -> None:
    """Least: the maximum passes at each of the three lengths of trial, 1 s, 7.7 s and 60 s."""
    throughput = {"search": "mlrsearch", "maximum": "1M", "resolution": "1k"}
    traffic = {"frame_sizes": {"family": "ipv4", "octets": [64]}, "direction": ["forward"]}
    waits = dict.fromkeys(("settle", "learn", "drain", "rest"), "0s")
    expected = estimate(campaign(throughput=throughput, traffic=traffic, trial=waits, repetitions=2))
    assert (expected.trials_min, expected.seconds_min) == (2 * 3, 138)
    assert 2 * 120 <= expected.seconds_max <= 2 * 300


def test_the_estimate_counts_waits_and_repetitions() -> None:
    tables: dict[str, Any] = {
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
        "trial": {"duration": "10s", "settle": "1s", "learn": "1s", "drain": "1s", "rest": "1s"},
        "repetitions": 2,
    }
    listed = estimate(campaign(frame_loss={"rates": ["1k", "2k", "3k"]}, **tables))
    assert (listed.trials_min, listed.trials_max, listed.seconds_min, listed.seconds_max) == (6, 6, 84, 84)
    assert not listed.line_assumed
    throughput = {"maximum": 1024, "resolution": 1, "search_duration": "10s"}
    searched = estimate(campaign(throughput=throughput, **tables))
    assert (searched.trials_min, searched.trials_max) == (2, 22)
    assert searched.seconds_max == 22 * 14
    shared = estimate(rfc_campaign(**tables))
    assert (shared.line_assumed, shared.maximum_assumed) == (True, False)
    assert not estimate(rfc_campaign(**tables), 10**9).line_assumed


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_a_search_that_finds_its_maximum_is_estimated_up_to_an_assumed_rate(search: str) -> None:
    def needed(repetitions: int, **throughput: Any) -> PlanEstimate:
        tables = {"frame_sizes": {"family": "ipv4", "octets": 64}}
        waits = dict.fromkeys(("settle", "learn", "drain", "rest"), "0s")
        table = {"search": search, "resolution": "1%", **throughput}
        return estimate(campaign(throughput=table, traffic=tables, trial=waits, repetitions=repetitions))

    once, twice = needed(1), needed(2)
    assert (once.maximum_assumed, once.line_assumed) == (True, False)
    assert not needed(1, maximum="1M").maximum_assumed
    climbs = 11  # 10,000 to 10,240,000 frames/s
    assert once.trials_max > climbs
    assert once.trials_max < twice.trials_max < 2 * once.trials_max
    assert once.trials_min <= 12
    if search == "binary":  # 6 halvings of 50 % to 1 % of the maximum, a confirmation, and 3 more of them at most
        assert (once.trials_max, once.seconds_max) == (climbs + 6 + 4, climbs + 6 + 4 * 60)
        assert twice.trials_max == once.trials_max + 1 + 7 + 4


def test_frame_loss_without_a_line_begins_above_the_throughput() -> None:
    tables: dict[str, Any] = {"traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}}, "repetitions": 1}
    with pytest.raises(ConfigError, match=r"frame_loss\.maximum.*measures no throughput"):
        estimate(campaign(frame_loss={}, **tables))
    losses: tuple[dict[str, Any], ...] = ({}, {"frame_loss": {}})
    alone, both = (estimate(campaign(throughput={}, **loss, **tables)) for loss in losses)
    assert (both.trials_min - alone.trials_min, both.trials_max - alone.trials_max) == (2, 10)


@pytest.mark.parametrize(
    ("tables", "words", "rules_out_claim"),
    [
        ({"repetitions": 5}, "5 repetitions, fewer than 20 (RFC 8219 section 12)", False),
        ({"trial": {"duration": "2s"}}, "Trials last 2s, less than 60s (RFC 2544 section 24)", True),
        ({"validity": {"lateness_max": "5ms"}}, "A burst may leave 5ms late, more than 1ms", False),
        ({"trial": {"rest": "1s"}}, "The rest wait is 1s, shorter than 5s (RFC 2544 section 23)", True),
        ({"traffic": {"direction": "forward"}}, "unidirectional only (RFC 2544 section 14", False),
        (
            {"traffic": {"source_ports": {"mode": "increasing"}}},
            "UDP source ports are increasing in forward direction",
            False,
        ),
        ({"traffic": {"source_ports": {"range": "1-9"}}}, "not 1024-65535 (RFC 4814 section 4.5)", False),
        ({"traffic": {"hop_limit": 64}}, "Hop limit 64", False),
        ({"traffic": {"destination_networks": 7}}, "7 destination networks in the direction reverse, not 256", False),
        ({"traffic": {"dont_fragment": True}}, "DF is set in forward direction", False),
        (
            {"traffic": {"udp_checksum": "zero"}},
            "UDP frames are sent without checksum over IPv4 in forward direction: RFC 1242 section 3.17",
            False,
        ),
        (
            {"traffic": {"frame_sizes": {"family": "ipv4", "octets": [64, 100]}}},
            "Frame sizes beyond the list: 100",
            False,
        ),
        ({"throughput": {"loss_tolerance": "0.01%"}}, "A loss of 0.01% per direction passes", True),
        ({"throughput": {"maximum": "1M"}}, "does not begin at the maximum of the line (RFC 2544 section 20)", False),
        ({"frame_loss": {"step": "20%"}}, "steps are 20%, above 10% (RFC 2544 section 26.3)", True),
        ({"frame_loss": {"rates": ["1k"]}}, "Frame loss is measured at listed loads", True),
    ],
)
def test_each_deviation_is_a_sentence_with_its_section(
    tables: dict[str, Any], words: str, rules_out_claim: bool
) -> None:
    standard = sentences(rfc_campaign())
    told = [deviation for deviation in deviations(rfc_campaign(**tables)) if deviation.sentence not in standard]
    assert {deviation.rules_out_claim for deviation in told if words in deviation.sentence} == {rules_out_claim}, told


def test_the_defaults_deviate_only_where_the_tester_cannot_do_more() -> None:
    told = (
        "No routing update is sent before a trial; routes are static (RFC 2544 sections 13 and 23 a).",
        "One destination network, not 256 (RFC 2544 section 12 asks for both).",
    )
    assert sentences(rfc_campaign(line={"rate": "10G"}, frame_loss={})) == told
    assert sentences(rfc_campaign(frame_loss={})) == (
        *told,
        "A medium without a line rate has no maximum to begin at (RFC 2544 section 20): there the load of the search"
        " doubles from 10000 frames/s on until a trial fails.",
        "A medium without a line rate has no maximum to begin at (RFC 2544 section 26.3): there frame loss begins at"
        " twice the throughput.",
    )


NO_HEADER = (
    "No frame has an IPv6 extension header; RFC 5180 section 7 wants each test repeated with one, and with a chain"
)
IN_CHAIN = "The chain of extension headers holds hop_by_hop, which RFC 5180 section 5.3 keeps out of chains."
AS_THROUGHPUT = (
    "A throughput is measured with hop-by-hop options; RFC 5180 section 5.3 wants their effect on the router"
)


@pytest.mark.parametrize(
    ("technology", "headers", "told"),
    [
        ("router66", [], [NO_HEADER]),
        ("router66", ["routing"], ["All frames have the IPv6 extension header, routing; RFC 5180 section 7"]),
        (
            "router66",
            ["routing", "fragment"],
            ["All frames have a chain of IPv6 extension headers, routing, fragment;"],
        ),
        ("router66", ["hop_by_hop"], ["All frames have the IPv6 extension header, hop_by_hop;", AS_THROUGHPUT]),
        ("router66", ["hop_by_hop", "routing"], ["All frames have a chain", IN_CHAIN, AS_THROUGHPUT]),
        ("router44", [], []),
        ("siit64", [], []),
    ],
)
def test_tests_without_and_with_extension_headers_are_due(technology: str, headers: list[str], told: list[str]) -> None:
    family = "ipv6" if technology == "router66" else "ipv4"
    traffic = {"extension_headers": headers, "frame_sizes": {"family": family, "octets": [128]}}
    wanted = campaign(technology, traffic=traffic, throughput={})
    lines = [line for line in sentences(wanted) if "RFC 5180" in line]
    assert [line.startswith(words) for line, words in zip(lines, told, strict=True)] == [True] * len(told)


def test_the_loss_of_frames_with_hop_by_hop_options_is_what_is_asked_for() -> None:
    traffic = {"extension_headers": ["hop_by_hop"], "frame_sizes": {"family": "ipv6", "octets": [128]}}
    wanted = campaign("router66", traffic=traffic, frame_loss={"rates": ["1k"]})
    assert not any(line.startswith(AS_THROUGHPUT) for line in sentences(wanted))


def test_foreign_addresses_and_static_neighbours_are_told() -> None:
    left = {"port": "pci:1", "gateway_mac": "02:00:00:00:00:01", "ipv4": {"address": "10.0.0.2", "gateway": "10.0.0.1"}}
    told = sentences(rfc_campaign(left=left))
    assert any("used: 10.0.0.2 (RFC" in sentence for sentence in told)
    assert any("static on the left side" in sentence and "RFC 5180 section 4 " in sentence for sentence in told)

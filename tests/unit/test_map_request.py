"""Requests for trials with customer edges (RFC 7597, RFC 7599)."""

from __future__ import annotations

from typing import Any

from gatemark.campaign.deviations import deviations
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.trial.request import open_request, resolve_requests, trial_request

RULE = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": "2001:db8:ffff::/64"}
SINGLE = {
    "ipv6": "2001:db8:4000:3400::/56", "ipv4": "203.0.113.18/32", "ea_bits": 0, "psid_bits": 8, "psid": 52,
    "dmr": "2001:db8:fffe::/64",
}  # fmt: skip


def relay(*domains: dict[str, Any], **tables: Any) -> Campaign:
    edges = tables.pop("map", {})
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "map_t_br"},
                "testbed": {"kind": "ports"},
                "left": {"port": "af_packet:a", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
                "right": {
                    "port": "af_packet:b",
                    "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
                    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
                },
                "map": {"domains": list(domains) or [RULE], **edges},
                "traffic": {"frame_sizes": {"family": "ipv6", "octets": 84}},
                "frame_loss": {"rates": [1000]},
                **tables,
            }
        )
    )


def directions(campaign: Campaign) -> list[dict[str, Any]]:
    (cell,) = cells_of(campaign)
    body: Any = trial_request(campaign, cell, frames_per_second=1000, duration_ns=10**9, trial_number=1)
    return list(body["directions"])


def test_customer_edges_send_to_servers_and_servers_to_them() -> None:
    forward, reverse = (one_way["foreground"] for one_way in directions(relay(map={"edges": 1000})))
    (domain,) = forward["source"]["edges"]["domains"]
    assert domain == RULE | {
        "psid_offset": 6, "psid_bits": None, "psid": None, "weight": 1, "in_identifier": False,
        "except_suffixes": False, "except_system_ports": False,
    }  # fmt: skip
    assert {key: value for key, value in forward["source"]["edges"].items() if key != "domains"} == {
        "count": 1000, "order": "pseudorandom", "choice": "cycle",
    }  # fmt: skip
    assert reverse["destination"] == forward["source"]
    assert (forward["destination"]["address"], reverse["source"]["address"]) == ("198.19.0.2", "198.19.0.2")
    assert (forward["frame_octets"], reverse["frame_octets"]) == (84, 64)
    assert forward["translation"] == reverse["translation"] == {"prefix": None, "eam": [], "zero_udp_checksum": False}
    assert forward["dont_fragment_rule"] == reverse["dont_fragment_rule"] == "rfc7915"


def test_ports_of_customer_edges_vary_as_asked_and_have_the_span_of_sources_where_they_are_free() -> None:
    modes = {"forward_ports": "increasing", "reverse_ports": "fixed"}
    traffic = {"frame_sizes": {"family": "ipv6", "octets": 84}, "source_ports": {"range": "2000-2999"}}
    forward, reverse = (one_way["foreground"] for one_way in directions(relay(map=modes, traffic=traffic)))
    assert forward["source_ports"] == {"mode": "increasing", "minimum": 2000, "maximum": 2999}
    assert reverse["destination_ports"] == {"mode": "fixed", "minimum": 2000, "maximum": 2999}
    assert forward["destination_ports"] == {"mode": "pseudorandom", "minimum": 1, "maximum": 49151}
    assert reverse["source_ports"] == {"mode": "pseudorandom", "minimum": 2000, "maximum": 2999}


def test_several_domains_each_with_its_own_rule() -> None:
    excluded = {**RULE, "psid_offset": 0, "weight": 3, "exclude": ["first_and_last_suffix", "system_ports"]}
    forward, _ = directions(relay(excluded, SINGLE, map={"edges": 2}))
    first, second = forward["foreground"]["source"]["edges"]["domains"]
    assert (first["weight"], first["except_suffixes"], first["except_system_ports"]) == (3, True, True)
    assert (second["ea_bits"], second["psid_bits"], second["psid"]) == (0, 8, 52)
    assert second["dmr"] == "2001:db8:fffe::/64"


def test_background_stays_native() -> None:
    traffic = {"frame_sizes": {"family": "ipv6", "octets": 84}, "mix": "1/2"}
    for one_way in directions(relay(traffic=traffic)):
        assert {one_way["background"][end]["address"] for end in ("source", "destination")} == {
            "2001:2::2", "2001:2:0:8000::2",
        }  # fmt: skip


def test_only_neighbours_are_answered_for() -> None:
    behind: Any = open_request(relay(), [])["left"]["answer_for"]
    assert [hosts["address"] for hosts in behind] == ["2001:2::2"]
    onlink: Any = open_request(relay(map={"onlink": True, "edges": 100}), [])["left"]["answer_for"]
    assert onlink[0] == behind[0]
    assert onlink[1]["edges"]["count"] == 100
    assert [(body["side"], body["gateway"]) for body in resolve_requests(relay())] == [
        ("left", "2001:2::1"),
        ("right", "198.19.0.1"),
    ]


def test_ports_that_are_not_drawn_are_a_deviation() -> None:
    told = [deviation.sentence for deviation in deviations(relay(map={"forward_ports": "fixed"}))]
    assert [sentence for sentence in told if "RFC 4814" in sentence] == [
        "UDP source ports are fixed within the port sets of customer edges in forward direction, not pseudorandom"
        " (RFC 4814 section 4.5)."
    ]
    assert not any("RFC 4814" in deviation.sentence for deviation in deviations(relay()))


def test_addresses_of_a_customer_edge_that_are_not_used_are_a_deviation() -> None:
    for ea_bits, is_told in ((6, True), (8, False), (16, False)):
        sentences = [deviation.sentence for deviation in deviations(relay({**RULE, "ea_bits": ea_bits}))]
        assert any("only the first address is used" in sentence for sentence in sentences) == is_told


def test_prefixes_outside_the_benchmarking_ranges_are_a_deviation() -> None:
    (sentence,) = (d.sentence for d in deviations(relay()) if "Addresses outside" in d.sentence)
    assert all(prefix in sentence for prefix in ("192.0.2.0/24", "2001:db8::/40", "2001:db8:ffff::/64"))

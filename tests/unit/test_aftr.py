"""Campaigns of AFTRs: what is asked of the engine for B4s that share addresses, and what a file must not say."""

from __future__ import annotations

from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of, plan_of
from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.overload.run import Load, form_of
from gatemark.trial.connection_request import establish_request, use_request
from gatemark.trial.echo_request import echo_request

B4S = {"offset": 14, "mode": "pseudorandom", "range": "2-101"}


def document(**tables: Any) -> dict[str, Any]:
    """Return the file of an AFTR with 100 B4s; each table replaces keys of its own."""
    whole: dict[str, dict[str, Any]] = {
        "gateway": {
            "technology": "aftr",
            "tunnel": {"address": "2001:db8:ffff::1", "hop_limit": 64},
            "pool": ["198.19.0.1/32"],
            "control": {"clear_state": "true"},
        },
        "testbed": {"kind": "ports"},
        "left": {
            "port": "af_packet:a",
            "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1", "hosts": B4S},
            "mtu": 1540,
        },
        "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.3"}},
        "connections": {"count": 1000, "rate": 1000, "source_ports": "10000-10009"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    }
    procedure = {"frame_loss": {"rates": [1000]}} if "overload" not in tables else {}
    return {**{key: {**table, **tables.pop(key, {})} for key, table in whole.items()}, **procedure, **tables}


def aftr(**tables: Any) -> Campaign:
    """Return the complete campaign."""
    return complete_campaign(campaign_from_dict(document(**tables)))


def foregrounds(campaign: Campaign) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the foreground of both directions of test phase 2."""
    body: Any = use_request(
        campaign, cells_of(campaign)[0], connections=1000, frames_per_second=1000, duration_ns=10**9, trial_number=1
    )
    forward, reverse = (one_way["foreground"] for one_way in body["directions"])
    return forward, reverse


def test_b4s_are_the_subscribers_and_all_have_the_same_host() -> None:
    forward, reverse = foregrounds(aftr())
    assert (forward["frame_octets"], reverse["frame_octets"]) == (104, 64)
    assert forward["source_tunnel"] == reverse["destination_tunnel"] == {
        "gateway": "2001:db8:ffff::1",
        "subscribers": {
            "address": "2001:2::2", "offset": 14, "mode": "pseudorandom", "minimum": 2, "maximum": 101, "networks": 1,
        },
        "hop_limit": 64, "expected_hop_limit": 64, "traffic_class": None, "ecn": None,
    }  # fmt: skip
    assert forward["destination_tunnel"] is reverse["source_tunnel"] is None
    host = {"address": "10.0.0.1", "offset": 0, "mode": "fixed", "minimum": 0, "maximum": 0, "networks": 1}
    assert forward["source"] == reverse["destination"] == host
    assert forward["translation"] is reverse["translation"] is None


def test_every_host_of_every_b4_is_a_source() -> None:
    several = {"offset": 2, "mode": "pseudorandom", "range": "1-3"}
    campaign = aftr(b4={"address": "192.168.0.1", "hosts": several})
    space = tuple_space(campaign, 1000)
    assert (space.source_hosts, space.source_ports.count, space.destination_ports.count) == (300, 10, 1)
    body: Any = establish_request(
        campaign, cells_of(campaign)[0], connections=1000, connections_per_second=1000, trial_number=1
    )
    (forward,) = body["directions"]
    assert (forward["foreground"]["source"]["minimum"], forward["foreground"]["source"]["maximum"]) == (1, 3)
    assert body["connections"]["pool"] == ["198.19.0.1/32"]


def test_in_a_loop_back_the_pool_holds_the_hosts_inside() -> None:
    content = document(testbed={"kind": "loopback"}, left={"port": "ring"}, right={"port": "ring"})
    del content["gateway"]["pool"], content["gateway"]["control"]
    campaign = complete_campaign(campaign_from_dict(content))
    body: Any = establish_request(
        campaign, cells_of(campaign)[0], connections=1000, connections_per_second=1000, trial_number=1
    )
    assert body["connections"]["pool"] == ["10.0.0.1/32"]


def test_clients_of_echo_requests_are_the_hosts_behind_b4s() -> None:
    """100 B4s with 2 hosts each; echo requests of 56 octets are IPv4 packets of 84."""
    right = {"ipv4": {**document()["right"]["ipv4"], "hosts": {"offset": 2, "mode": "increasing", "range": "4-803"}}}
    behind = {"hosts": {"offset": 2, "mode": "increasing", "range": "1-2"}}
    wanted = aftr(overload={"clients": [200]}, right=right, b4=behind, gateway={"table": {"size": 100_000}})
    (run,) = plan_of(wanted).runs
    form = form_of(wanted, Load(clients=200, frames_per_second=None))
    body: Any = echo_request(wanted, run.cell, frames_per_second=0, duration_ns=10**9, trial_number=1, form=form)
    stream = body["directions"][0]["foreground"]
    assert (stream["frame_octets"], stream["source"]["address"], stream["destination_tunnel"]) == (
        142,
        "10.0.0.1",
        None,
    )
    tunnel = stream["source_tunnel"]
    assert (tunnel["gateway"], tunnel["subscribers"]["mode"]) == ("2001:db8:ffff::1", "increasing")
    assert body["echo"]["pool"] == ["198.19.0.1/32"]
    with pytest.raises(ConfigError) as caught:
        aftr(overload={"clients": [201]}, right=right, b4=behind)
    assert any("201 clients need as many hosts, the left side has 200" in each.what for each in caught.value.problems)


@pytest.mark.parametrize(
    ("tables", "place", "words"),
    [
        ({"gateway": {"tunnel": None}}, "gateway.tunnel.address", "end at an address of the gateway"),
        ({"gateway": {"tunnel": {"address": "2001:2::65"}}}, "gateway.tunnel.address", "one of the hosts"),
        ({"b4": {"address": "198.18.0.2"}}, "b4.address", "RFC 6333 section 5.7"),
        ({"b4": {"address": "192.0.0.8"}}, "b4.address", "192.0.0.0/29"),
        ({"b4": {"address": "10.0.0.0", "hosts": {"offset": 0, "mode": "increasing", "range": "2560-2816"}}},
         "b4.hosts.range", "RFC 1918"),
        ({"b4": {"hosts": {"offset": 2, "range": "1-2"}}}, "b4.hosts.range", "applies only with mode"),
        ({"b4": {"hosts": {"offset": 3, "mode": "increasing", "range": "1-2"}}}, "b4.hosts.offset", "beyond"),
        ({"b4": {"hosts": {"offset": 2, "mode": "increasing", "range": "1-1000"}}},
         "left.ipv6.hosts.range", "may have number 64"),
        ({"gateway": {"pool": ["10.0.0.0/24"]}}, "gateway.pool", "holds hosts of the Initiator (10.0.0.1)"),
        ({"left": {"host_macs": "random"}}, "left.host_macs", "MAC address of the port"),
        ({"gateway": {"technology": "nat44", "tunnel": None}, "b4": {"address": "10.0.0.2"}}, "b4", "which has no B4s"),
    ],
)  # fmt: skip
def test_what_an_aftr_cannot_have_is_said(tables: dict[str, Any], place: str, words: str) -> None:
    content = document(**tables)
    if content["gateway"]["tunnel"] is None:
        del content["gateway"]["tunnel"]
    with pytest.raises(ConfigError) as refused:
        complete_campaign(campaign_from_dict(content))
    told = [problem for problem in refused.value.problems if problem.where.endswith(place)]
    assert told and any(words in problem.what for problem in told), refused.value


@pytest.mark.parametrize("address", ["10.255.0.1", "172.31.0.1", "192.168.1.1", "192.0.0.2"])
def test_private_addresses_and_those_of_b4s_themselves_are_accepted(address: str) -> None:
    forward, _ = foregrounds(aftr(b4={"address": address}))
    assert forward["source"]["address"] == address

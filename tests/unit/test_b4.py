"""Campaigns of B4s: one tunnel to the Tester as AFTR, whatever the hosts behind it, and what a file must not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.plumbing import gateway_end
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import ConfigError
from gatemark.trial.request import open_request, trial_request

HOSTS = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
B4, AFTR = "2001:2:0:ffff::1", "2001:2:0:8000::2"


def document(**tables: Any) -> dict[str, Any]:
    """Return the file of a B4 with 100 hosts on either side; each table replaces keys of its own."""
    whole: dict[str, dict[str, Any]] = {
        "gateway": {"technology": "b4", "tunnel": {"address": B4}},
        "testbed": {"kind": "ports"},
        "left": {"port": "af_packet:a", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": HOSTS}},
        "right": {
            "port": "af_packet:b",
            "ipv6": {"address": AFTR, "gateway": "2001:2:0:8000::1"},
            "ipv4": {"address": "198.19.0.2", "hosts": HOSTS},
            "mtu": 1540,
        },
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "frame_loss": {"rates": [1000]},
    }
    return {key: {**table, **tables.get(key, {})} for key, table in whole.items()}


def edge(**tables: Any) -> Campaign:
    """Return the complete campaign."""
    return complete_campaign(campaign_from_dict(document(**tables)))


def trial_of(campaign: Campaign) -> Any:
    """Return the request for a trial."""
    return trial_request(campaign, cells_of(campaign)[0], frames_per_second=1000, duration_ns=10**9, trial_number=1)


def test_one_tunnel_leads_to_all_hosts() -> None:
    forward, reverse = (one_way["foreground"] for one_way in trial_of(edge())["directions"])
    assert (forward["frame_octets"], reverse["frame_octets"]) == (64, 104)
    varied = {"offset": 2, "mode": "pseudorandom", "minimum": 2, "maximum": 101, "networks": 1}
    assert forward["source"] == reverse["destination"] == {"address": "198.18.0.2", **varied}
    assert forward["destination"] == reverse["source"] == {"address": "198.19.0.2", **varied}
    tunnel = forward["destination_tunnel"]
    assert (tunnel["gateway"], tunnel["subscribers"]["address"], tunnel["subscribers"]["mode"]) == (B4, AFTR, "fixed")
    assert reverse["source_tunnel"] == tunnel
    assert (forward["source_tunnel"], reverse["destination_tunnel"]) == (None, None)
    assert forward["translation"] is None and forward["dont_fragment_rule"] == "kept"


def test_hosts_behind_the_aftr_may_be_in_many_networks() -> None:
    campaign = edge(traffic={"forward": {"destination_networks": 256}})
    forward, _ = (one_way["foreground"] for one_way in trial_of(campaign)["directions"])
    assert forward["destination"]["networks"] == 256
    assert forward["destination_tunnel"]["subscribers"]["networks"] == 1


def test_the_tester_answers_for_the_aftr_and_not_for_what_is_behind_it() -> None:
    for mode, router in (("onlink", {}), ("nexthop", {"router": "2001:2:0:8000::5"})):
        ipv6 = {"address": AFTR, "gateway": "2001:2:0:8000::1", **router}
        right: Any = open_request(edge(right={"address_mode": mode, "ipv6": ipv6}), [0], None)["right"]
        addresses = [hosts["address"] for hosts in right["answer_for"]]
        assert set(addresses) == {AFTR, *router.values()}


HOST = {"address": "198.19.0.2"}


@pytest.mark.parametrize(
    ("tables", "where", "what"),
    [
        ({"gateway": {"tunnel": {"address": "198.18.0.1"}}}, "gateway.tunnel.address", "are in IPv6"),
        ({"gateway": {"tunnel": {"address": AFTR}}}, "gateway.tunnel.address", "is one of the hosts"),
        (
            {"right": {"ipv4": None}},
            "right.ipv4",
            "is missing: the IPv4 hosts that the gateway reaches through the tunnel",
        ),
        ({"right": {"ipv6": None}}, "right.ipv6", "is missing: b4 sends IPv6 there"),
        (
            {"right": {"ipv4": {**HOST, "gateway": "198.19.0.1"}}},
            "right.ipv4.gateway",
            "reaches these hosts through the tunnel",
        ),
        ({"right": {"ipv4": {"address": "198.18.0.7"}}}, "right.ipv4", "overlap the left hosts"),
        ({"right": {"mtu": 1500}}, "traffic.frame_sizes.octets", "with its outer header of 1558 octets"),
        ({"right": {"host_macs": "random"}}, "right.host_macs", "one link-layer address"),
    ],
)
def test_what_no_b4_can_have_is_refused(tables: dict[str, Any], where: str, what: str) -> None:
    sizes = {"frame_sizes": {"family": "ipv4", "octets": [1518]}}
    whole = document(traffic=sizes, **tables)
    whole["right"] = {key: value for key, value in whole["right"].items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        complete_campaign(campaign_from_dict(whole))
    assert [problem.where for problem in caught.value.problems] == [f"campaign: {where}"]
    assert what in caught.value.problems[0].what


def test_its_recipe_leads_to_the_address_of_the_campaign() -> None:
    recipe = load_recipe("linux-b4")
    right = recipe.side("right")
    assert recipe.end_variables(right, None) == {"relay": "2001:2:0:8000::2", "subscriber": "2001:2:0:ff::1"}
    end = gateway_end(recipe, "right", right, "gw-right")
    assert end.addresses == ("2001:2:0:8000::1/56",), "what is behind the AFTR is not on the link"
    assert load_recipe("linux-router4").end_variables(right, None) == {}


@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        ("linux-b4", "{relay}", "2001:2:0:8000::2", "commands.setup: is missing: its tunnel leads to"),
        ("linux-router4", 'version = ["uname', 'version = ["echo {relay}", "uname', "{relay} is undefined"),
        ("linux-b4", 'ipv4 = {address = "198.19.0.2"}', "", "b4 needs ipv4 on the right"),
    ],
)
def test_a_recipe_has_both_ends_of_its_tunnel(name: str, old: str, new: str, what: str, tmp_path: Path) -> None:
    built_in = Path(__file__).parents[2] / "src/gatemark/dut/recipes" / f"{name}.toml"
    text = built_in.read_text("utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(ConfigError, match=what.replace("{", r"\{")):
        load_recipe(path)


def test_nothing_answers_echo_requests_behind_its_tunnel() -> None:
    with pytest.raises(ConfigError) as caught:
        complete_campaign(campaign_from_dict({**document(), "overload": {"clients": [1]}}))
    assert [problem.what for problem in caught.value.problems if problem.where.endswith("overload")] == [
        "does not apply to b4, behind whose tunnels nothing answers echo requests"
    ]

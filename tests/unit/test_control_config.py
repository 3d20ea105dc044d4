"""What a campaign file says about the control of a gateway: host, shell, settings, limits, cores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.result_document import build_document
from gatemark.config.load import campaign_of
from gatemark.config.model import Campaign
from gatemark.dut.base import GatewayDescription
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import ConfigError
from gatemark.results.toml_text import to_toml


def document(control: dict[str, Any] | None = None, **gateway: Any) -> dict[str, Any]:
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    return {
        "gateway": {"technology": "router44", **({} if control is None else {"control": control}), **gateway},
        "testbed": {"kind": "ports"},
        **{
            name: {"port": "ring", "ipv4": {"address": address, "gateway": router}}
            for name, (address, router) in sides.items()
        },
        "throughput": {"maximum": 1000, "resolution": 100},
    }


def problems(control: dict[str, Any] | None = None, **gateway: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(document(control, **gateway))
    return {problem.where.removeprefix("campaign: "): str(problem) for problem in caught.value.problems}


CORES = {"apply": "maxcpus {value}", "read": "nproc"}


@pytest.mark.parametrize("host", ["root@192.0.2.1", "gw", "ssh://root@gw.example:2222", "user@2001:db8::1"])
def test_a_host_is_what_ssh_takes_for_one(host: str) -> None:
    campaign = campaign_from_dict(document({"host": host, "health": "true"}))
    assert campaign.gateway.control is not None
    assert campaign.gateway.control.host == host


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("-oProxyCommand=reboot", "would take it for an option"),
        ("gw -oProxyCommand=reboot", "is not a host"),
        ("", "is not a host"),
        ("gw\nreboot", "is not a host"),
        (7, "is not a host"),
    ],
)
def test_what_is_no_host_is_refused(host: Any, words: str) -> None:
    assert words in problems({"host": host})["gateway.control.host"]


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("ssh root@192.0.2.1", "gateway.control.host ="),
        ("/usr/bin/ssh root@192.0.2.1", "gateway.control.host ="),
        ("sh -c", "script comes on standard input"),
        (" ", "is empty"),
        ("sh 'x", "close every quote"),
    ],
)
def test_a_shell_that_reads_no_script_is_refused(shell: str, words: str) -> None:
    assert words in problems({"shell": shell, "health": "true"})["gateway.control.shell"]


def test_sudo_comes_before_the_shell() -> None:
    control = campaign_from_dict(document({"sudo": True, "shell": "ip netns exec gw sh -s"})).gateway.control
    assert control is not None
    assert control.words == ["sudo", "-n", "ip", "netns", "exec", "gw", "sh", "-s"]


def test_every_problem_of_the_settings_is_told_at_once() -> None:
    told = problems(
        {"set": {"cores": CORES, "rss": {"apply": "ethtool -N"}, "hash": CORES}},
        settings={"cores": 4, "core": 5, "sdfn": "x", "rss": "sd"},
    )
    assert "{value} is missing" in told["gateway.control.set.rss.apply"]
    assert "the file gives no value for it" in told["gateway.settings.hash"]
    assert "did you mean cores?" in told["gateway.settings.core"]
    assert "add [gateway.control.set.sdfn]" in told["gateway.settings.sdfn"]
    assert len(told) == 4


@pytest.mark.parametrize("value", [True, 1.5, "", "a\x00b", [1], {}])
def test_what_is_no_value_of_a_setting_is_refused(value: Any) -> None:
    (told,) = problems({"set": {"cores": CORES}}, settings={"cores": value}).values()
    assert "gateway.settings" in told


@pytest.mark.parametrize("name", ["; rm", "-x", "a b", ""])
def test_names_of_settings_are_plain(name: str) -> None:
    assert problems({"set": {name: CORES}}, settings={name: 1})


def test_a_misspelt_key_of_a_setting_is_named() -> None:
    told = problems({"set": {"cores": {**CORES, "raed": "nproc"}}}, settings={"cores": 1})
    assert "did you mean read?" in told["gateway.control.set.cores.raed"]


def test_limits_are_times() -> None:
    campaign = campaign_from_dict(document({"limits": {"clear_state": "40min", "set": "2s"}}))
    assert campaign.gateway.control is not None
    limits = campaign.gateway.control.limits
    assert (limits.seconds("clear_state"), limits.seconds("set"), limits.seconds("start")) == (2400, 2, 300)
    assert "gateway.control.limits.set" in problems({"limits": {"set": "0s"}})
    assert (
        "did you mean clear_state?" in problems({"limits": {"clear_stat": "1s"}})["gateway.control.limits.clear_stat"]
    )


def of_recipe(control: dict[str, Any]) -> dict[str, Any]:
    bed = {"kind": "netns", "recipe": "linux-router4"}
    return {"testbed": bed, "throughput": {"maximum": 1000, "resolution": 100}, "gateway": {"control": control}}


def test_commands_of_a_recipe_have_limits_and_nothing_else_of_the_table() -> None:
    campaign = complete_campaign(campaign_from_dict(of_recipe({"limits": {"setup": "2min", "reset": "20min"}})))
    control = campaign.gateway.control
    assert control is not None and (control.limits.seconds("setup"), control.limits.seconds("reset")) == (120, 1200)
    assert campaign.control.setting_names == set(load_recipe("linux-router4").commands.settings)
    for wrong, where, what in (
        ({"limits": {"clear_stat": "1s"}}, "gateway.control.limits.clear_stat", "unknown key"),
        ({"limits": {"boot": "1h"}}, "gateway.control.limits.boot", "does not apply to kind = netns"),
        ({"limits": {"setup": "1h"}, "clear_state": "true"}, "gateway.control", "does not apply to kind = netns"),
    ):
        with pytest.raises(ConfigError) as caught:
            campaign_from_dict(of_recipe(wrong))
        (problem,) = caught.value.problems
        assert problem.where.endswith(where) and what in problem.what, wrong
    assert problem.fix == "leave out all but limits, or set testbed.kind to ports"
    assert "which has no recipes" in problems({"limits": {"setup": "1h"}})["gateway.control.limits.setup"]


def test_cores_are_stated_where_nothing_else_knows_them() -> None:
    campaign = campaign_from_dict(document(cores=8, cores_set_by="hot_plug"))
    assert (campaign.gateway.cores, campaign.gateway.cores_set_by) == (8, "hot_plug")
    assert "but not how many" in problems(cores_set_by="pinning")["gateway.cores_set_by"]
    assert "gateway.cores" in problems(cores=0)
    loopback = {**document(cores=2), "testbed": {"kind": "loopback"}}
    with pytest.raises(ConfigError, match=r"gateway\.cores: does not apply to kind = loopback"):
        campaign_from_dict(loopback)


def test_cores_are_told_with_how_they_were_set() -> None:
    described = GatewayDescription(name="", version="", configuration="")
    stated = build_document(
        complete_campaign(campaign_from_dict(document(cores=8, cores_set_by="hot_plug"))),
        described,
        [],
        (),
        runs_planned=0,
    )
    assert (stated.gateway.cores, stated.gateway.cores_set_by) == (8, "hot_plug")
    silent = build_document(complete_campaign(campaign_from_dict(document())), described, [], (), runs_planned=0)
    assert (silent.gateway.cores, silent.gateway.cores_set_by) == (None, None)


def test_a_campaign_with_all_of_it_is_written_and_read_again() -> None:
    control = {"host": "gw", "sudo": True, "set": {"cores": CORES}, "limits": {"reset": "20min"}}
    campaign = campaign_from_dict(document(control, settings={"cores": "4; rm"}, cores=4, cores_set_by="pinning"))
    written = json.loads(json.dumps(campaign.to_document()))
    assert campaign_of(written, type(campaign)).to_document() == campaign.to_document()
    assert "4; rm" in to_toml(campaign.to_document())


RECIPE = """
name = "settable"
description = "a router with a setting"
technology = "router44"
[left]
networks = ["198.18.0.0/16"]
ipv4 = {address = "198.18.0.2", gateway = "198.18.0.1"}
[right]
networks = ["198.19.0.0/16"]
ipv4 = {address = "198.19.0.2", gateway = "198.19.0.1"}
[commands.set.backlog]
apply = "sysctl -qw net.core.netdev_max_backlog={value}"
read = "sysctl -n net.core.netdev_max_backlog"
"""


def with_recipe(tmp_path: Path, recipe: str, **gateway: Any) -> Campaign:
    file = tmp_path / "recipe.toml"
    file.write_text(recipe)
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": gateway,
                "testbed": {"kind": "netns", "recipe": str(file)},
                "throughput": {"maximum": 1000, "resolution": 100},
            }
        )
    )


def test_a_recipe_names_settings_too(tmp_path: Path) -> None:
    assert with_recipe(tmp_path, RECIPE, settings={"backlog": 1000}).gateway.settings == {"backlog": 1000}
    assert with_recipe(tmp_path, RECIPE).gateway.settings == {}
    with pytest.raises(ConfigError, match="did you mean backlog"):
        with_recipe(tmp_path, RECIPE, settings={"backlogs": 1000})
    with pytest.raises(ConfigError, match=r"add \[commands\.set\.cores\]"):
        with_recipe(tmp_path, RECIPE, settings={"cores": 1000})
    with pytest.raises(ConfigError, match=r"commands\.set\.backlog\.apply"):
        with_recipe(tmp_path, RECIPE.replace("={value}", "=1"))
    with pytest.raises(ConfigError, match=r"has the CPUs of testbed\.gateway_cores"):
        with_recipe(tmp_path, RECIPE, cores=2)


def test_settings_open_with_the_test_bed(tmp_path: Path) -> None:
    state = tmp_path / "cores"
    control = {"set": {"cores": {"apply": f"echo {{value}} > {state}", "read": f"cat {state}"}}}
    with open_testbed(complete_campaign(campaign_from_dict(document(control, settings={"cores": "a b;c"})))) as bed:
        assert [setting.read for setting in bed.describe().settings] == ["a b;c"]
    assert state.read_text() == "a b;c\n"

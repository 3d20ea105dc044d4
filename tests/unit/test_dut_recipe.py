"""Recipes: all built-in ones load; what is wrong is named with its key and a remedy."""

import os
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from tests.recipes import changed_recipe

from gatemark.config.complete import complete
from gatemark.config.model import CampaignFile
from gatemark.config.recipe import Recipe
from gatemark.config.tables import GatewayAction, GatewayTableModel, SideModel
from gatemark.dut.plumbing import gateway_end, machine_settings, sysctl_script
from gatemark.dut.recipe import built_in_recipes, load_recipe, substitute
from gatemark.errors import ConfigError

GOOD = """
name = "mine"
description = "my gateway"
technology = "router44"
[left]
networks = ["198.18.0.0/16"]
ipv4 = {address = "198.18.0.2", gateway = "198.18.0.1"}
[right]
networks = ["198.19.0.0/16"]
ipv4 = {address = "198.19.0.2", gateway = "198.19.0.1"}
[files]
"my.conf" = "listen {left}; { kept }"
[commands]
setup = ["true"]
"""


STATEFUL = [
    "iptables-nat44",
    "linux-aftr",
    "linux-lwb4",
    "linux-mape-ce",
    "nft-nat44",
    "nft-nat66",
    "tayga-clat-nat44",
    "tayga-mapt-ce",
    "tayga-nat46",
    "tayga-nat64",
]


def load_text(tmp_path: Path, text: str) -> Recipe:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_recipe(path)


def problems_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_text(tmp_path, text)
    assert all(problem.fix for problem in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize("name", built_in_recipes())
def test_built_in_recipe_loads_under_its_own_name(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.gateway.technology == recipe.technology.name
    assert recipe.left.port is None


def test_these_recipes_are_built_in() -> None:
    stateless = [
        "linux-b4",
        "linux-lwaftr",
        "linux-mape-br",
        "linux-netem",
        "linux-router4",
        "linux-router6",
        "linux-sixrd-br",
        "tayga-clat",
        "tayga-mapt-br",
        "tayga-siit46",
        "tayga-siit64",
    ]
    jool = ["jool-nat64", "jool-siit46", "jool-siit64"]
    in_a_row = ["linux-dslite", "linux-lw4o6", "linux-mape", "tayga-jool-464xlat", "tayga-mapt"]
    assert built_in_recipes() == sorted([*stateless, *STATEFUL, *jool, *in_a_row])


def test_jool_has_no_limit_of_its_own_to_its_table() -> None:
    recipe = load_recipe("jool-nat64")
    limits = {"set_table_size", "set_hash_size"}
    assert recipe.actions | {"reset"} | limits == set(get_args(GatewayAction))
    assert recipe.modules == {"jool": "jool-dkms"}
    assert not recipe.host_sysctl


@pytest.mark.parametrize("name", STATEFUL)
def test_stateful_recipes_control_everything(name: str) -> None:
    recipe = load_recipe(name)
    table = recipe.gateway.table
    assert recipe.gateway.inside == "left"
    assert recipe.actions | {"reset"} == set(get_args(GatewayAction))
    assert None not in (table.size, table.hash_size, table.udp_timeout_ns)
    assert recipe.gateway.zero_udp_checksum == (True if name.startswith("tayga") else None)


def test_a_mirrored_recipe_has_its_sides_swapped() -> None:
    recipe = load_recipe("tayga-nat64")
    mirrored = recipe.mirrored()
    assert (mirrored.gateway.inside, mirrored.left, mirrored.right) == ("right", recipe.right, recipe.left)
    assert mirrored.gateway.pool == recipe.gateway.pool
    assert mirrored.mirrored() == recipe
    assert complete(netns("right"), recipe) == complete(netns("right"), mirrored)


def netns(inside: str) -> CampaignFile:
    document = {"testbed": {"kind": "netns", "recipe": "tayga-nat64"}, "gateway": {"inside": inside}}
    return CampaignFile.model_validate(document | {"connections": {"count": 1000}})


def test_settings_of_the_machine_need_their_sizes() -> None:
    recipe = load_recipe("nft-nat44")
    assert machine_settings(recipe, GatewayTableModel(size=7, hash_size=3)) == {
        "net.netfilter.nf_conntrack_max": "7",
        "net.netfilter.nf_conntrack_buckets": "3",
    }
    assert machine_settings(recipe, GatewayTableModel(size=7)) == {"net.netfilter.nf_conntrack_max": "7"}


def test_a_file_and_a_folder_load_alike(tmp_path: Path) -> None:
    recipe = load_text(tmp_path, GOOD)
    (tmp_path / "recipe.toml").write_text(GOOD)
    assert load_recipe(tmp_path) == recipe


def test_a_device_or_a_fifo_is_no_recipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    for name in ("/dev/zero", str(tmp_path / "fifo.toml")):
        with pytest.raises(ConfigError, match=r"cannot read the recipe: .*not an ordinary file"):
            load_recipe(name)


def test_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean tayga-siit64"):
        load_recipe("tayga-sit64")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[commands]", "[comands]", "did you mean commands?"),
        ("setup =", "set_up =", "did you mean setup?"),
        ('technology = "router44"', 'technology = "router45"', "technology"),
        ('technology = "router44"', 'technology = "router66"', "needs ipv6 on the left"),
        ('technology = "router44"', "", "technology: this key is required"),
        ("ipv4 = {address", "ipv5 = {address", "left.ipv5: unknown key"),
        ('"198.18.0.2"', '"198.18.0.300"', "left.ipv4.address"),
        ('networks = ["198.18.0.0/16"]', 'networks = ["198.18.0.0/8"]', "left.networks.0"),
        ('networks = ["198.18.0.0/16"]', "", "left.networks"),
        ('"my.conf"', '"../my.conf"', "without folders"),
        ('name = "mine"', 'name = "mine', "not TOML"),
        ('name = "mine"', f"a{'.a' * 2000} = 1", "nested too deeply"),
        ('name = "mine"', 'name = "mine"\nmtu = 100', "mtu"),
        ('name = "mine"', 'name = "mine"\nprefix = "2001:2::/80"', "prefix"),
        ('setup = ["true"]', "setup = 1", "commands.setup"),
        ('name = "mine"', 'name = "mine"\npool = ["198.19.0.1"]', "pool: does not apply to router44"),
        ('name = "mine"', 'name = "mine"\ntable = {size = 9}', "table.size: does not apply to router44"),
        ('name = "mine"', 'name = "mine"\ntable = {sise = 9}', "did you mean size?"),
        ('name = "mine"', 'name = "mine"\ntable = {size = "many"}', "'many' is not a rate"),
        ('setup = ["true"]', 'tear_down = "true"', "commands.tear_down: does not apply to router44"),
        ('setup = ["true"]', 'read_table_size = "true"', "commands.read_table_size: does not apply to router44"),
        ('setup = ["true"]', 'clear_state = "true"', "commands.clear_state: does not apply to router44"),
        (
            "[commands]",
            "[host_sysctl]\n'net.x' = '{table_size}'\n[commands]",
            "host_sysctl: does not apply to router44, which keeps no state",
        ),
        (
            "[commands]",
            "[commands.set.x]\napply = 'echo {value}'\nat_boot = true\n[commands]",
            "commands.set.x.at_boot: does not apply to kind = netns, whose gateway, if any, does not boot",
        ),
        ('setup = ["true"]', 'set_udp_timeout = ["true"]', "commands.set_udp_timeout: does not say where"),
        (
            'technology = "router44"',
            'technology = "nat44"\ntable = {udp_timeout = "1ms"}',
            "not a whole number of seconds",
        ),
    ],
)
def test_wrong_key_or_value_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in problems_of(tmp_path, GOOD.replace(old, new, 1))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("setup =", "set_up =").replace('"198.18.0.2"', '"nowhere"').replace('name = "mine"', "")
    with pytest.raises(ConfigError) as caught:
        load_text(tmp_path, text)
    assert len(caught.value.problems) == 3


def test_translation_needs_prefix_or_mappings(tmp_path: Path) -> None:
    text = GOOD.replace("router44", "siit64").replace(
        'ipv4 = {address = "198.18.0.2", gateway = "198.18.0.1"}',
        'ipv6 = {address = "2001:2::2", gateway = "2001:2::1"}',
    )
    assert "RFC 6052" in problems_of(tmp_path, text)


def test_only_known_variables_are_substituted() -> None:
    values = {"left": "a", "right": "b", "dir": "/tmp/x", "cores": "0"}
    assert substitute("{left}-{right} {dir} { drop } {other} ${cores}", values) == "a-b /tmp/x { drop } {other} $0"


def test_on_link_gateway_gets_the_length_of_its_network() -> None:
    recipe = load_recipe("linux-router4")
    end = gateway_end(recipe, "left", recipe.left, "eth7")
    assert end.addresses == ("198.18.0.1/16", "2001:2::1/56")
    assert end.routes == ()
    assert ["ip", "address", "add", "2001:2::1/56", "dev", "eth7", "nodad"] in list(end.commands())


def test_next_hop_gateway_gets_a_route_through_the_router() -> None:
    recipe = load_recipe("linux-router4")
    play = SideModel.model_validate(
        {
            "address_mode": "nexthop",
            "ipv4": {"address": "198.18.65.2", "router": "198.18.1.10", "gateway": "198.18.1.1"},
        }
    )
    end = gateway_end(recipe, "left", play, "eth7")
    assert end.addresses == ("198.18.1.1/24",)
    assert end.routes == (("198.18.0.0/16", "198.18.1.10"),)


@pytest.mark.parametrize(
    ("play", "said"),
    [
        ({"ipv4": {"address": "10.0.0.2", "gateway": "10.0.0.1"}}, "in no network of recipe"),
        ({"ipv4": {"address": "198.18.0.2"}}, "left.ipv4.gateway"),
        (
            {
                "address_mode": "nexthop",
                "ipv4": {"address": "198.18.65.2", "router": "198.18.9.10", "gateway": "198.18.1.1"},
            },
            "is not in the gateway's link network",
        ),
    ],
)
def test_addresses_that_do_not_fit_the_recipe_are_refused(play: dict[str, object], said: str) -> None:
    recipe = load_recipe("linux-router4")
    with pytest.raises(ConfigError, match=said):
        gateway_end(recipe, "left", SideModel.model_validate(play), "eth7")


def test_settings_become_writes_below_proc_sys() -> None:
    assert sysctl_script({"net.ipv4.ip_forward": 1}) == "echo 1 > /proc/sys/net/ipv4/ip_forward"


def test_nothing_in_a_setting_is_a_command(tmp_path: Path) -> None:
    value = f"1'; touch {tmp_path}/ran; echo '$(touch {tmp_path}/ran)"
    script = sysctl_script({"net.ipv4.ip_forward": value}).replace("/proc/sys/net/ipv4/ip_forward", f"{tmp_path}/set")
    subprocess.run(["sh", "-euc", script], check=True)
    assert (tmp_path / "set").read_text() == f"{value}\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "table",
    [
        "[sysctl]\n'net.ipv4.x > /etc/x; touch y' = 1",
        "[sysctl]\n'../../etc/passwd' = 1",
        "[host_sysctl]\n'.etc.passwd' = 1",
        "[host_sysctl]\n'/etc/passwd' = 1",
        "[modules]\n'-r nf_tables' = 'kmod'",
        "[modules]\n'x; touch y' = 'kmod'",
    ],
)
def test_a_recipe_names_only_what_such_a_table_can_have(tmp_path: Path, table: str) -> None:
    assert "mine.toml" in problems_of(tmp_path, f"{GOOD}\n{table}\n")


def test_keys_of_the_recipe_stand_in_its_commands(tmp_path: Path) -> None:
    path = changed_recipe(tmp_path, "jool-nat64", ('["198.19.0.1/32"]', '["198.19.0.1/32", "198.19.255.0/30"]'))
    assert load_recipe(path).fact_variables == {
        "prefix": "2001:2:0:6400::/96",
        "pool": "198.19.0.1/32 198.19.255.0/30",
        "pool_ports": "1024-65535",
    }
    assert load_recipe("linux-router4").fact_variables == {}
    path.write_text(
        "\n".join(line for line in path.read_text().splitlines() if not line.startswith(("pool_ports", "prefix")))
    )
    with pytest.raises(ConfigError) as caught:
        load_recipe(path)
    told = [problem.what for problem in caught.value.problems]
    assert "{prefix} is undefined" in told and "{pool_ports} is undefined" in told

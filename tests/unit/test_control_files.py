"""Files of commands of `gateway.control`: what they add to a campaign, what is left out, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict, load_campaign
from gatemark.config.control_files import known_commands
from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayControlModel
from gatemark.dut.control import with_value
from gatemark.dut.recipe import built_in_recipes, complete_campaign, load_recipe, recipe_text
from gatemark.errors import ConfigError

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE = """
[gateway]
technology = "{technology}"
{gateway}
[gateway.settings]
{settings}
[gateway.control]
host = "gateway"
{control}
[testbed]
kind = "ports"
[left]
port = "pci:0000:01:00.0"
ipv6 = {{address = "2001:2::2", gateway = "2001:2::1"}}
[right]
port = "pci:0000:01:00.1"
{right}
{tables}
[throughput]
maximum = "1M"
resolution = "1k"
"""
NAT64 = {
    "technology": "nat64",
    "gateway": 'prefix = "2001:2:0:6400::/96"\npool = ["198.19.0.1/32"]',
    "right": 'ipv4 = {address = "198.19.0.2", gateway = "198.19.0.1"}',
    "tables": '[connections]\ncount = 1000\nrate = "10k"',
}
ROUTER = {
    "technology": "router66",
    "gateway": "",
    "right": 'ipv6 = {address = "2001:2:0:8000::2", gateway = "2001:2:0:8000::1"}',
    "tables": "",
}


def campaign(folder: Path, control: str, settings: str = "", kind: dict[str, str] = NAT64) -> Campaign:
    file = folder / "campaign.toml"
    file.write_text(FILE.format(control=control, settings=settings, **kind))
    return complete_campaign(load_campaign(file))


def control(whole: Campaign) -> GatewayControlModel:
    assert whole.gateway.control is not None
    return whole.gateway.control


def refused(folder: Path, text: str, settings: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        campaign(folder, text, settings)
    return str(caught.value)


def test_files_are_joined_and_the_campaign_wins(tmp_path: Path) -> None:
    result = control(campaign(tmp_path, 'commands = ["linux", "jool"]\ncount_connections = "echo 7"\nstop = "true"'))
    assert result.count_connections == "echo 7"
    assert result.stop == ("true",)
    assert result.tear_down == "modprobe -r jool"
    assert result.health == ("modprobe jool", "jool instance display > /dev/null")  # jool's, which is named later
    assert result.host == "gateway"
    assert result.reboot == ()


def test_a_file_of_the_user_lies_beside_the_campaign(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('clear_state = "mine"\n[limits]\nclear_state = "1h"\ntear_down = "2h"\n')
    result = control(campaign(tmp_path, 'commands = "mine.toml"\nlimits = {clear_state = "2min"}'))
    assert result.clear_state == ("mine",)
    assert result.commands == (str(tmp_path / "mine.toml"),)
    assert (result.limits.seconds("clear_state"), result.limits.seconds("tear_down")) == (120, 7200)


def test_a_setting_is_there_only_with_a_value(tmp_path: Path) -> None:
    text = 'commands = ["linux", "jool"]'
    assert list(control(campaign(tmp_path, text, "rss = 'a:udp6:sdfn'")).settings) == ["rss"]
    assert control(campaign(tmp_path, text)).settings == {}
    assert "gateway.settings.rrss: has no commands that set it" in refused(tmp_path, text, "rrss = 'x'")


def test_boots_are_there_only_if_the_host_is_booted(tmp_path: Path) -> None:
    text = 'commands = ["openbsd", "pf"]'
    assert control(campaign(tmp_path, text)).reboot == ()
    booted = control(campaign(tmp_path, f'{text}\nboot = "column"'))
    assert (booted.reboot, booted.power_cycle) == (("reboot",), ())
    cold = control(campaign(tmp_path, f'{text}\nboot = "column"\npower_cycle = "ipmi"'))
    assert (cold.reboot, cold.power_cycle) == ((), ("ipmi",))
    assert control(campaign(tmp_path, f'{text}\nboot = "trial"')).clear_state == ()
    assert "boot: needs a command that boots the host" in refused(tmp_path, 'commands = "jool"\nboot = "column"')


def test_a_router_has_no_commands_for_connections(tmp_path: Path) -> None:
    result = control(campaign(tmp_path, 'commands = ["linux", "iptables"]', kind=ROUTER))
    assert (result.clear_state, result.count_connections, result.read_hash_size) == ((), None, None)
    assert result.health


def test_the_campaign_that_is_kept_says_all_of_it(tmp_path: Path) -> None:
    whole = campaign(tmp_path, 'commands = ["linux", "jool"]', "online = 4")
    document = whole.to_document()
    assert document["gateway"]["control"]["tear_down"] == "modprobe -r jool"
    assert campaign_from_dict(document).to_document() == document


def test_what_is_wrong_is_told_with_the_remedy(tmp_path: Path) -> None:
    assert "gateway.control.commands: 'jol' is not one of iptables, jool, " in refused(tmp_path, 'commands = "jol"')
    assert "did you mean jool?" in refused(tmp_path, 'commands = "jol"')
    assert "cannot be read: No such file or directory" in refused(tmp_path, 'commands = "none.toml"')
    (tmp_path / "bad.toml").write_text('clear_stat = "x"\ncount_connections = 7\n')
    message = refused(tmp_path, 'commands = ["bad.toml", "jol"]')
    assert "bad.toml: clear_stat: unknown key" in message
    assert "did you mean clear_state?" in message
    assert "bad.toml: count_connections: 7 should be a valid string" in message
    assert "'jol' is not one of" in message  # all of it at once
    deep = f"clear_state{'.a' * 2000} = 1"
    for text in ("clear_state =", f"clear_state = {'[' * 10_000}", f"clear_state = {'9' * 10_000}", deep):
        (tmp_path / "bad.toml").write_text(text)
        assert "bad.toml is not TOML" in refused(tmp_path, 'commands = "bad.toml"')
    assert "gateway.control.commands" in refused(tmp_path, "commands = 7")
    os.mkfifo(tmp_path / "fifo.toml")
    for name in ("/dev/zero", "fifo.toml"):
        assert "not an ordinary file" in refused(tmp_path, f'commands = "{name}"')


@pytest.mark.parametrize("name", known_commands())
def test_the_commands_of_gatemark_are_posix_shell(name: str, tmp_path: Path) -> None:
    document = tomllib.loads(known_commands()[name].read_text(encoding="utf-8"))
    model = GatewayControlModel.model_validate(document)
    settings = model.settings.values()
    scripts = [
        *(command for key in GatewayControlModel.model_fields for command in _commands(getattr(model, key))),
        *(command for setting in settings for command in (*setting.apply, setting.read or "true")),
    ]
    assert scripts
    for script in scripts:
        text = re.sub(r"\{(size|seconds)\}", "1000", script).replace("{value}", '"$value"')
        checked = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, (script, checked.stderr)
    assert all("{value}" in "".join(setting.apply) for setting in settings)


SINGLE_RECIPES = [name for name in built_in_recipes() if len(load_recipe(name).parts) == 1]
COMMAND_SETS = [
    *((f"controls/{name}", tomllib.loads(text.read_text(encoding="utf-8"))) for name, text in known_commands().items()),
    *((f"recipes/{name}", tomllib.loads(recipe_text(name))["commands"]) for name in SINGLE_RECIPES),
    ("examples/ci", tomllib.loads((EXAMPLES / "ci/recipe.toml").read_text())["commands"]),
    ("examples/10", tomllib.loads((EXAMPLES / "10-nat64-between-ports.toml").read_text())["gateway"]["control"]),
]


@pytest.mark.parametrize(
    "commands", [pytest.param(commands, id=at) for at, commands in COMMAND_SETS if "set_udp_timeout" in commands]
)
def test_every_timeout_that_is_set_is_read_back(commands: dict[str, Any]) -> None:
    """Of Linux and of PF there are several, and the one that was not read may be in force."""
    named = re.compile(r"/proc/sys/\S+|\budp[.-]\w+")
    settings = set(named.findall("\n".join(_commands(commands["set_udp_timeout"]))))
    readings = _commands(commands["read_udp_timeout"])
    assert settings == set(named.findall("\n".join(readings)))
    assert len(readings) == len(settings)


def _commands(value: object) -> list[str]:
    if isinstance(value, dict):
        return [command for command in value.values() if isinstance(command, str)]
    if isinstance(value, tuple | list):
        return [command for command in value if isinstance(command, str)]
    return [value] if isinstance(value, str) and value != "never" else []


PF_TIMEOUTS = "tcp.first 120s\nudp.first 60s\nudp.single 30s\nudp.multiple 90s\nicmp.first 20s"
PRINTED = (
    ("jool", "read_udp_timeout", "jool", "tos,32\nudp-timeout,2:46:40\ntcp-timeout,1", "10000"),
    ("pf", "count_connections", "pfctl", "State Table\n  current entries    4000000  \n  searches  7  1/s", "4000000"),
    ("pf", "read_table_size", "pfctl", "states     hard limit   1000000\nsrc-nodes  hard limit    10000", "1000000"),
    ("pf", "read_udp_timeout.udp_first", "pfctl", PF_TIMEOUTS, "60"),
    ("pf", "read_udp_timeout.udp_single", "pfctl", PF_TIMEOUTS, "30"),
    ("pf", "read_udp_timeout.udp_multiple", "pfctl", PF_TIMEOUTS, "90"),
)


@pytest.mark.parametrize(("name", "key", "program", "output", "expected"), PRINTED)
def test_what_programs_print_is_read(
    name: str, key: str, program: str, output: str, expected: str, tmp_path: Path
) -> None:
    """With a program in place of the real one that prints what its manual shows."""
    (tmp_path / "output").write_text(output + "\n")
    (tmp_path / program).write_text(f"#!/bin/sh\ncat {tmp_path}/output\n")
    (tmp_path / program).chmod(0o755)
    command: Any = tomllib.loads(known_commands()[name].read_text(encoding="utf-8"))
    for part in key.split("."):
        command = command[part]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(["sh", "-eu", "-c", command], env=environment, text=True, capture_output=True, check=True)
    assert result.stdout.split() == [expected]


HASH = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\n"
PORTS = "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n"


@pytest.mark.parametrize(("printed", "fields"), [(HASH + PORTS, "sdfn"), (HASH, "sd")])
def test_receive_side_scaling_is_read_back(printed: str, fields: str, tmp_path: Path) -> None:
    """ethtool succeeds where the card does not change its fields, so only reading them tells."""
    (tmp_path / "output").write_text(printed)
    (tmp_path / "ethtool").write_text(f"#!/bin/sh\ncase $1 in -n) cat {tmp_path}/output ;; esac\n")
    (tmp_path / "ethtool").chmod(0o755)
    setting = tomllib.loads(known_commands()["linux"].read_text(encoding="utf-8"))["set"]["rss"]
    asked = "eth1:udp6:sdfn eth2:udp4:sdfn"
    scripts = [with_value(setting["apply"], asked), setting["read"]]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = "\n".join(scripts).replace("/run/gatemark-rss", f"{tmp_path}/asked")
    result = subprocess.run(["sh", "-eu"], input=script, env=environment, text=True, capture_output=True, check=True)
    assert result.stdout == f"eth1:udp6:{fields} eth2:udp4:{fields}\n"

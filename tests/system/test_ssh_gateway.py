"""A stateful gateway on a host that ssh reaches, measured between two ports: every command of it over the network.

The gateway is the namespace of the sshd, with two links to a namespace where gatemark runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing, nothing_compared
from tests.system.sshd import NEEDED, Sshd, sshd

LACKING = missing(*NEEDED, "nft", "ethtool", root=True)
pytestmark = [
    pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}"),
    pytest.mark.alone,
]

RULES = """
table ip gateway {{
    chain management {{
        type filter hook prerouting priority raw;
        iif lo notrack
    }}
    chain answers {{
        type filter hook output priority raw;
        oif lo notrack
    }}
    chain nat {{
        type nat hook postrouting priority srcnat;
        oifname "{right}" masquerade random
    }}
}}
"""

CAMPAIGN = """
name = "nat44-over-ssh"
repetitions = 2

[gateway]
technology = "nat44"
name = "nftables"
pool = ["198.19.0.1/32"]
cores_set_by = "pinning"
cores = 1

[gateway.table]
udp_timeout = "111s"

[gateway.settings]
stream = 113

[gateway.control]
host = "csh-gateway"
clear_state = "conntrack -F"
count_connections = "conntrack -C"
tear_down = "conntrack -F"
set_udp_timeout = "echo {{seconds}} > {timeout}"
read_udp_timeout = "cat {timeout}"
health = "nft list table ip gateway > /dev/null"
describe = ["uname -s", "nft list ruleset"]
boot = "repetition"
boot_id = "cat {folder}/boot_id"
reboot = '''
echo booted >> {folder}/log
(
  ip link set {left} down; ip link set {right} down; ip link set lo down
  sleep 0.5; date +%N > {folder}/boot_id; ip link set lo up
  sleep 1; ip link set {left} up; ip link set {right} up
) > /dev/null 2>&1 &
'''
after_boot = "conntrack -F; echo 30 > {timeout}; echo 120 > {timeout}_stream"

[gateway.control.set.stream]
apply = "echo {{value}} > {timeout}_stream"
read = "cat {timeout}_stream"

[testbed]
kind = "ports"

[left]
port = "af_packet:{tester_left}"
ipv4 = {{address = "198.18.0.2", gateway = "198.18.0.1"}}

[right]
port = "af_packet:{tester_right}"
ipv4 = {{address = "198.19.0.2", gateway = "198.19.0.1"}}

[traffic]
frame_sizes = {{family = "ipv4", octets = [84]}}

[trial]
duration = "200ms"
settle = "0s"
learn = "0s"
drain = "200ms"
rest = "0s"

[validity]
retries = 20
lateness_max = "5s"

[connections]
count = [300]
rate = 1000

[throughput]
maximum = 1000
minimum = 500
resolution = 500
search_duration = "200ms"

[connection_tear_down_rate]
"""
TIMEOUT = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout"


OWN_PACKETS_MAX = 3
"""That a host sends or receives during a trial, such as those of ARP: its counters have them too."""
HANG_S = 280
"""Until a command hangs."""


def not_the_gateways(run: dict[str, Any]) -> bool:
    """Whether a busy machine had no valid trial in some repetition: then the run says so."""
    if run["limited_by"] not in ("tester", "host"):
        return False
    assert run["invalid_trials"] or run["suspect_trials"], run
    nothing_compared("a repetition without a valid trial")
    return True


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def gateway() -> Iterator[tuple[Sshd, str, dict[str, str]]]:
    """A NAT44 in the namespace of an sshd; the namespace of the Tester; the names of all interfaces."""
    with sshd() as server:
        tester, letters = f"{server.namespace}-tester", server.namespace[-6:]
        names = {
            f"{role}{side}": f"{short}{side[0]}-{letters}"
            for role, short in (("", "gw"), ("tester_", "gm"))
            for side in ("left", "right")
        }
        ip("netns", "add", tester)
        try:
            server.inside("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")  # it sends packets of its own
            for side, address in (("left", "198.18.0.1/24"), ("right", "198.19.0.1/24")):
                inner, far = names[side], names[f"tester_{side}"]
                peer = ["type", "veth", "peer", "name", far, "netns", tester]
                ip("link", "add", inner, "netns", server.namespace, *peer)
                ip("-n", tester, "link", "set", far, "up")
                ip("-n", server.namespace, "link", "set", inner, "up")
                ip("-n", server.namespace, "address", "add", address, "dev", inner)
            server.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            rules = server.folder / "rules.nft"
            rules.write_text(RULES.format(**names))
            server.inside("nft", "-f", str(rules))
            yield server, tester, names
        finally:
            ip("netns", "delete", tester)


@pytest.mark.nightly("ten seconds; a whole campaign over ssh is measured in every run")
def test_a_nat44_is_measured_with_all_its_commands_over_ssh(
    gateway: tuple[Sshd, str, dict[str, str]], tmp_path: Path
) -> None:
    """It boots before each repetition; its links are down for longer than its host is away."""
    server, tester, names = gateway
    (tmp_path / "boot_id").write_text("0\n")
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    text = CAMPAIGN.format(folder=tmp_path, timeout=TIMEOUT, **names)
    file.write_text(text.replace("repetitions = 2", "repetitions = 1"))
    words = ["ip", "netns", "exec", tester, sys.executable, "-m", "gatemark.cli.main", "run", str(file)]
    done = subprocess.run([*words, "--output", str(out)], check=False, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads((out / "result.json").read_text())
    assert result["status"] == "complete"
    assert done.returncode == 0 or any(not_the_gateways(run) for run in result["runs"]), done.stderr
    assert result["gateway"]["settings"] == [
        {"name": "stream", "value": "113", "read": "113"},
        {"name": "table.udp_timeout", "value": "111", "read": "111"},
    ]
    assert "masquerade random" in result["gateway"]["configuration"]
    throughput, tear_down = result["runs"]
    for run in (throughput, tear_down):
        if not_the_gateways(run):
            continue
        counts = run["connections"]["gateway_counts"]
        assert counts["phase_one"] == counts["phase_one_equal"] > 0
        assert (counts["phase_one_minimum"], counts["phase_one_maximum"]) == (300, 300)
    assert not_the_gateways(throughput) or throughput["rate_per_direction"]["median"] > 0
    assert tear_down["procedure"] == "connection_tear_down_rate"
    repetitions = len(result["runs"]) * result["repetitions_asked"]
    assert (tmp_path / "log").read_text() == "booted\n" * repetitions
    assert server.inside("cat", TIMEOUT, f"{TIMEOUT}_stream").split() == ["111", "113"]
    assert not server.processes("ssh")


TELEMETRY = """
[gateway.telemetry]
interval = "100ms"
cpus = [{cpu}]
processes = ["sshd"]
commands = {{entries = "conntrack -C"}}
"""


def test_its_host_is_sampled_without_a_connection_while_frames_are_sent(
    gateway: tuple[Sshd, str, dict[str, str]], tmp_path: Path
) -> None:
    """Each repetition begins with a boot, so each has a sampler of its own; nothing of any is left."""
    _, tester, names = gateway
    (tmp_path / "boot_id").write_text("0\n")
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    cpu = min(os.sched_getaffinity(0))
    text = CAMPAIGN.format(folder=tmp_path, timeout=TIMEOUT, **names).replace("[connection_tear_down_rate]\n", "")
    file.write_text(text.replace('duration = "200ms"', 'duration = "1s"') + TELEMETRY.format(cpu=cpu))
    before = set(Path("/tmp").glob("gatemark-telemetry.*"))
    words = ["ip", "netns", "exec", tester, sys.executable, "-m", "gatemark.cli.main", "run", str(file)]
    done = subprocess.run([*words, "--output", str(out)], check=False, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads((out / "result.json").read_text())
    told = result["telemetry"]
    assert told["trials"] == told["sampled"] > 0 or told["reasons"], told
    throughput = result["runs"][0]
    assert done.returncode == 0 or not_the_gateways(throughput), done.stderr
    levels = {(level["phase"], level["series"]): level["values"] for level in throughput["telemetry"]}
    if told["sending"] == told["trials"] and not not_the_gateways(throughput):
        assert levels["measured", "command.entries"] == levels["measured", "connections"] == [300, 300]
        assert all(0 <= value <= 100 for value in levels["measured", f"cpu.{cpu}"])
    assert {series for _, series in levels if series.startswith("cpu.")} <= {f"cpu.{cpu}"}
    lines = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    said = [reason for line in lines for reason in line["validity"].get("reasons", ())]
    assert not [reason for reason in said if "while frames were sent" in reason], "no command ran meanwhile"
    sampling = json.loads((out / "provenance.json").read_text())["sessions"][0]["sampling"]
    assert sampling["cpu_ns"] > 0
    assert set(Path("/tmp").glob("gatemark-telemetry.*")) == before


ROUTER = """
name = "router-over-ssh"

[gateway]
technology = "router44"
name = "Linux"
cores_set_by = "pinning"
cores = 1

[gateway.control]
host = "{host}"
health = "true"

[testbed]
kind = "ports"

[left]
port = "af_packet:{tester_left}"
ipv4 = {{address = "198.18.0.2", gateway = "198.18.0.1"}}

[right]
port = "af_packet:{tester_right}"
ipv4 = {{address = "198.19.0.2", gateway = "198.19.0.1"}}

[traffic]
direction = "forward"
frame_sizes = {{family = "ipv4", octets = [64]}}

[trial]
duration = "500ms"
settle = "0s"
learn = "0s"
drain = "200ms"
rest = "0s"

[validity]
lateness_max = "5s"

[throughput]
maximum = "10k"
resolution = "1k"
"""
NO_ROUTE = """
table ip gateway {{
    chain some {{
        type filter hook prerouting priority mangle;
        iifname "{left}" meta l4proto udp numgen random mod 4 0 meta mark set 7
    }}
}}
"""
"""A quarter of the frames gets a mark, for which there is no route."""
RATE = 2_000
ATTEMPTS = 8


def trial_over_ssh(file: Path, namespace: str) -> dict[str, Any]:
    """Make trials until one counts, and return its record."""
    words = ["ip", "netns", "exec", namespace, sys.executable, "-m", "gatemark.cli.main", "trial", str(file)]
    for _ in range(ATTEMPTS):
        done = subprocess.run([*words, "--rate", str(RATE), "--json"], check=False, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        if done.returncode == 0:
            return record
    raise AssertionError(f"no trial of {ATTEMPTS} counts: {record['validity']}")


@pytest.mark.parametrize("host", ["posix-gateway", "csh-gateway"])
def test_what_its_host_counted_explains_a_loss(
    host: str, gateway: tuple[Sshd, str, dict[str, str]], tmp_path: Path
) -> None:
    server, tester, names = gateway
    rules, file = tmp_path / "rules.nft", tmp_path / "campaign.toml"
    rules.write_text(f"flush ruleset\n{NO_ROUTE.format(**names)}")
    server.inside("nft", "-f", str(rules))
    server.inside("ip", "rule", "add", "fwmark", "7", "unreachable")
    file.write_text(ROUTER.format(host=host, **names))
    record = trial_over_ssh(file, tester)
    (way,) = record["report"]["directions"]
    (cause,) = record["causes"]
    lost = way["foreground"]["lost"]
    assert abs(record["host"]["counters"]["ipext.InNoRoutes"] - lost) <= OWN_PACKETS_MAX
    assert cause["cause"] == "counted"
    assert "IPv4: arrived without a route +" in cause["sentence"]


def test_a_queue_of_its_host_that_dropped_stands_beside_the_loss(
    gateway: tuple[Sshd, str, dict[str, str]], tmp_path: Path
) -> None:
    server, tester, names = gateway
    server.inside("nft", "flush", "ruleset")
    shaper = f"tc qdisc add dev {names['right']} root tbf rate 512kbit burst 3000 limit 6000"
    server.inside(*shaper.split())
    file = tmp_path / "campaign.toml"
    file.write_text(ROUTER.format(host="posix-gateway", **names))
    record = trial_over_ssh(file, tester)
    (way,) = record["report"]["directions"]
    dropped, lost = record["host"]["counters"][f"qdisc.{names['right']}.dropped"], way["foreground"]["lost"]
    assert lost and 0 <= dropped - lost <= OWN_PACKETS_MAX
    assert [cause["cause"] for cause in record["causes"]] == ["queue"]

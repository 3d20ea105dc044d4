"""Two gateways in a row on two hosts that ssh reaches: both are counted, sampled and described, and the right one is
blamed for losses and damage (RFC 8219 section 4.2).

Each is the namespace of an sshd: an IPv4 router and a NAT44 behind it. To a Tester that sees the outer links alone they
are a B4 and an AFTR.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing, nothing_compared
from tests.system.sshd import NEEDED, Sshd, sshd

from gatemark.campaign.inquiry import MISSED
from gatemark.damage.decide import INCOMPLETE
from gatemark.trial.damage import CUSTOMER, PROVIDER

LACKING = missing(*NEEDED, "nft", "ethtool", "tcpdump", root=True)
pytestmark = [
    pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}"),
    pytest.mark.alone,
]

ROUTES = {
    "customer": "default via 10.9.0.2",
    "provider": "10.1.0.0/24 via 10.9.0.1",
}
ADDRESSES = {
    "customer": {"outer": "10.1.0.1/24", "middle": "10.9.0.1/30"},
    "provider": {"middle": "10.9.0.2/30", "outer": "198.19.0.1/24"},
}
COUNTS = """
table inet row {
    counter handed {}
    chain out {
        type filter hook postrouting priority 300;
        oifname "middle" meta l4proto udp counter name handed
    }
}
"""
NAT = """
table ip nat44 {
    chain management {
        type filter hook prerouting priority raw;
        iif lo notrack
    }
    chain answers {
        type filter hook output priority raw;
        oif lo notrack
    }
    chain nat {
        type nat hook postrouting priority srcnat;
        oifname "outer" masquerade random
    }
}
"""
HANDED = "nft list counter inet row handed | sed -n 's/.*packets \\([0-9]*\\) .*/\\1/p'"
ALL_SENT = "cat /sys/class/net/middle/statistics/tx_packets"
CAMPAIGN = """
name = "row-over-ssh"
repetitions = 1

[gateway]
technology = "ds_lite"
name = "router and NAT44"
pool = ["198.19.0.1/32"]
mapping = "endpoint_dependent"

[gateway.control]
host = "posix-gateway"
clear_state = "conntrack -F"
count_connections = "conntrack -C"
describe = "nft list table ip nat44"
{first}

[gateway.other_host]
host = "csh-gateway"
health = "nft list table inet row > /dev/null"
describe = "nft list table inet row"
{other}

[gateway.telemetry]
interval = "100ms"

[testbed]
kind = "ports"

[left]
port = "af_packet:left"
ipv4 = {{address = "10.1.0.2", gateway = "10.1.0.1"}}

[right]
port = "af_packet:right"
ipv4 = {{address = "198.19.0.2", gateway = "198.19.0.1"}}

[traffic]
frame_sizes = {{family = "ipv4", octets = [128]}}

[trial]
duration = "1s"
settle = "0s"
learn = "0s"
drain = "200ms"
rest = "200ms"

[validity]
retries = 20
lateness_max = "5s"

[connections]
count = 200
rate = 1000
timeout = "200ms"
gap = "100ms"

[frame_loss]
rates = [1000]
"""
ENDLESS_S, ATTEMPTS = 280, 6
CAPTURES = ('outer_interface = "outer"\nmiddle_interface = "middle"', 'outer_interface = "outer"')
"""Of both hosts, where a test needs them: to try them takes a second."""
EACH_TENTH = "meta l4proto udp quota over 60 kbytes numgen inc mod 10 == 3 counter"
OFFERED = ("received", "faulty", "late", "lost")
"""Together all frames of a class that were offered."""
CHATTER = """
import socket, time
chatty = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    chatty.sendto(b"", ("10.9.0.2", 9))
    time.sleep(0.05)
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The hosts of both gateways, and the namespace of the Tester."""

    hosts: dict[str, Sshd]
    tester: str

    def run(self, folder: Path, count: str, captures: tuple[str, str] = ("", "")) -> subprocess.CompletedProcess[str]:
        """Run the campaign in a folder, to `out`."""
        file = folder / "campaign.toml"
        first, other = (f"count_middle = {json.dumps(count)}\n{lines}" for lines in captures)
        file.write_text(CAMPAIGN.format(first=first, other=other))
        words = ["ip", "netns", "exec", self.tester, sys.executable, "-m", "gatemark.cli.main", "run", str(file)]
        return subprocess.run(
            [*words, "--output", str(folder / "out")], check=False, capture_output=True, text=True, timeout=ENDLESS_S
        )

    def measured(self, folder: Path, count: str, captures: tuple[str, str] = ("", "")) -> Path:
        """Run the campaign; return the folder of its result."""
        done, out = self.run(folder, count, captures), folder / "out"
        assert done.returncode in (0, 1) and (out / "result.json").exists(), done.stderr
        return out

    def losing(self, number: int, way: str) -> contextlib.AbstractContextManager[None]:
        """Drop each tenth frame of a direction where it enters one gateway, after test phase 1."""
        enters, _ = self._ends(number, way)
        return self._planted(number, "prerouting priority -290", f'iifname "{enters}" {EACH_TENTH} drop')

    def damaging(self, number: int, way: str) -> contextlib.AbstractContextManager[None]:
        """Change the hop limit of each tenth frame of a direction where it leaves one gateway, after test phase 1."""
        _, leaves = self._ends(number, way)
        return self._planted(number, "postrouting priority 250", f'oifname "{leaves}" {EACH_TENTH} ip ttl set 99')

    @staticmethod
    def _ends(number: int, way: str) -> tuple[str, str]:
        """Return the interfaces by which frames of a direction enter and leave a gateway."""
        return ("outer", "middle") if (number == 0) == (way == "forward") else ("middle", "outer")

    @contextlib.contextmanager
    def _planted(self, number: int, hook: str, rule: str) -> Iterator[None]:
        chain = f"chain planted {{\n type filter hook {hook}; policy accept;\n {rule}\n}}\n"
        host = list(self.hosts.values())[number]
        host.inside("nft", f"table inet planted {{\n{chain}}}\n")
        try:
            yield
        finally:
            host.inside("nft", "delete table inet planted")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture(scope="module")
def row() -> Iterator[Row]:
    """Two hosts with a link between them, and one of each to the Tester."""
    path = os.environ["PATH"]
    with sshd() as first, sshd() as second:
        hosts, tester = {"customer": first, "provider": second}, f"{first.namespace}-tester"
        client = second.folder / "both" / "ssh"
        client.parent.mkdir()
        cases = f'csh-gateway) exec {first.folder}/bin/ssh "$@" ;; posix-gateway) exec {second.folder}/bin/ssh "$@" ;;'
        client.write_text(f"#!/bin/sh\nfor word; do case $word in {cases} esac; done\n")
        client.chmod(0o755)
        ip("netns", "add", tester)
        try:
            os.environ["PATH"] = f"{client.parent}:{path}"
            links = (
                ((tester, "left"), (first.namespace, "outer")),
                ((first.namespace, "middle"), (second.namespace, "middle")),
                ((second.namespace, "outer"), (tester, "right")),
            )
            for (here, name), (there, far) in links:
                ip("link", "add", name, "netns", here, "type", "veth", "peer", "name", far, "netns", there)
                ip("-n", here, "link", "set", name, "up")
                ip("-n", there, "link", "set", far, "up")
            for name, host in hosts.items():
                for interface, address in ADDRESSES[name].items():
                    ip("-n", host.namespace, "address", "add", address, "dev", interface)
                ip("-n", host.namespace, "route", "add", *ROUTES[name].split())
                host.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
                host.inside("nft", COUNTS)
            second.inside("nft", NAT)
            yield Row(hosts=hosts, tester=tester)
        finally:
            ip("netns", "delete", tester)
            os.environ["PATH"] = path


def trials_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]


def test_both_hosts_are_counted_sampled_and_described(row: Row, tmp_path: Path) -> None:
    out = row.measured(tmp_path, HANDED)
    result = json.loads((out / "result.json").read_text())
    (session,) = json.loads((out / "provenance.json").read_text())["sessions"]
    for host in ("gateway_host", "other_gateway_host"):
        assert session[host]["kernel"].startswith("Linux ")
    configuration = result["gateway"]["configuration"]
    assert "# nft list table ip nat44\n" in configuration
    assert "# the other gateway: nft list table inet row\n" in configuration
    *_, trial = trials_of(out)
    directions = {direction["direction"]: direction["foreground"] for direction in trial["report"]["directions"]}
    offered = {way: sum(counts[key] for key in OFFERED if key in counts) for way, counts in directions.items()}
    assert trial["host"]["middle"] == offered
    if trial["verdict"] is None:
        nothing_compared("no valid trial")
        return
    assert not [reason for reason in trial["validity"].get("reasons", ()) if "while frames were sent" in reason]
    told = {level["series"] for level in result["runs"][0]["telemetry"]}
    if told:  # a busy machine has no two samples in the sending time
        assert {"memory_available", "other.memory_available", "busy", "other.busy"} <= told
    (samples,) = (out / "telemetry").glob(f"trial-{trial['order']['trial_number']:06d}.csv")
    assert "other.memory_available" in samples.read_text().partition("\n")[0].split(",")


def tried(
    row: Row,
    folder: Path,
    count: str,
    plant: Callable[[], contextlib.AbstractContextManager[None]],
    captures: tuple[str, str] = ("", ""),
) -> Iterator[list[dict[str, Any]]]:
    """Yield the trials of campaign after campaign with a fault; those that a busy machine spoils are left out.

    A trial that is made again finds the rule at work in test phase 1 already, and its table is not filled.
    """
    for attempt in range(ATTEMPTS):
        of_attempt = folder / str(attempt)
        of_attempt.mkdir()
        with plant():
            trials = trials_of(row.measured(of_attempt, count, captures))
        if trials and trials[-1]["verdict"] is not None:
            yield trials
    nothing_compared("no valid trial")


def lossy(row: Row, number: int, way: str, folder: Path, count: str) -> dict[str, Any] | None:
    """Return the trial in which one gateway lost frames of a direction; None where a busy machine spoils each."""
    return next((trials[-1] for trials in tried(row, folder, count, lambda: row.losing(number, way))), None)


again = pytest.mark.nightly("the same decision the other way round; each gateway is tried in one direction")


def each_host(*each_time: str) -> pytest.MarkDecorator:
    """Both gateways in both directions; others than those named are for the night."""
    ways = [("customer", 0, "forward"), ("provider", 1, "reverse"), ("customer, reverse", 0, "reverse"),
            ("provider, forward", 1, "forward")]  # fmt: skip
    return pytest.mark.parametrize(
        ("number", "way"),
        [pytest.param(number, way, id=name, marks=() if name in each_time else again) for name, number, way in ways],
    )


@each_host("provider")
def test_the_host_that_lost_frames_is_blamed(row: Row, number: int, way: str, tmp_path: Path) -> None:
    trial = lossy(row, number, way, tmp_path, HANDED)
    if trial is None:
        return
    (direction,) = (each for each in trial["report"]["directions"] if each["direction"] == way)
    assert direction["foreground"]["lost"]
    if trial.get("suspicion") is None:
        assert [cause for cause in trial["causes"] if cause["sentence"].endswith((CUSTOMER, PROVIDER)[number])]


@each_host("provider")
def test_the_host_that_damaged_frames_is_blamed(row: Row, number: int, way: str, tmp_path: Path) -> None:
    """By what tcpdump captures on all three links, for every damaged frame of the short trial.

    It is asked once, behind the first trial with such frames, which may be one that a busy machine spoils.
    """
    culprit = ("customer", "provider")[number]
    for trials in tried(row, tmp_path, HANDED, lambda: row.damaging(number, way), CAPTURES):
        damages = [damage for trial in trials for damage in trial.get("damages", ())]
        if not damages:  # most frames were lost before the rule began to damage them
            ways = (direction for trial in trials for direction in trial["report"]["directions"])
            assert not any(direction["foreground"]["faults"] for direction in ways), trials
            continue
        (damage,) = damages
        if damage.get("why") == MISSED:
            continue
        assert (damage["direction"], damage["reason"]) == (way, "hop_limit"), damage
        blamed = {name: damage[name] for name in ("customer", "provider", "both", "undecided") if damage.get(name)}
        if damage.get("why") == INCOMPLETE:  # a busy host, and it says so
            assert set(blamed) <= {culprit, "undecided"}, damage
            continue
        assert (blamed, damage.get("why")) == ({culprit: damage["again"]}, None), damage
        assert all(frame["entered"] and frame["middle"] for frame in damage["frames"])
        return


@pytest.mark.nightly("a quarter of a minute; which counters blame is a unit test")
def test_counters_that_see_other_packets_do_not_blame(row: Row, tmp_path: Path) -> None:
    """Those of an interface count what a gateway sends of its own as well."""
    command = ["ip", "netns", "exec", row.hosts["customer"].namespace, sys.executable, "-c", CHATTER]
    with subprocess.Popen(command) as chatty:
        try:
            trial = lossy(row, 0, "forward", tmp_path, ALL_SENT)
        finally:
            chatty.kill()
    if trial is None:
        return
    assert trial["host"]["middle"]["strays"] > 0
    sentences = [cause["sentence"] for cause in trial.get("causes", ())]
    assert not [sentence for sentence in sentences if CUSTOMER in sentence or PROVIDER in sentence]


@pytest.mark.parametrize(("name", "word"), [("provider", ""), ("customer", "other ")])
def test_a_host_that_boots_by_itself_is_named(row: Row, tmp_path: Path, name: str, word: str) -> None:
    """Its kernel is in another boot from the second count on: just before frames are sent."""
    host = row.hosts[name]
    place, in_its_mounts = "/proc/sys/kernel/random/boot_id", ["nsenter", "--mount", f"--target={host.server.pid}"]
    for each in row.hosts.values():
        (each.folder / "run" / "boot_id").write_text("aaaa\n")
        (each.folder / "run" / "counts").write_text("")
    boots = "echo >> /run/counts; [ $(wc -l < /run/counts) -lt 2 ] || echo bbbb > /run/boot_id"
    subprocess.run([*in_its_mounts, "mount", "--bind", "/run/boot_id", place], check=True)
    try:
        done = row.run(tmp_path, f"{boots}; {HANDED}")
    finally:
        subprocess.run([*in_its_mounts, "umount", place], check=True)
    assert done.returncode == 1
    assert f"the {word}gateway's host booted by itself in trial 1" in done.stderr
    assert not trials_of(tmp_path / "out")

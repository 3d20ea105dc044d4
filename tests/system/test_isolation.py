"""Test traffic stays on the test network, whatever the machine that measures would do with it.

A namespace plays that machine: it forwards, and its default route goes out of `gm-up`. Frames that arrive at the
Tester's interfaces, addressed to them, are counted there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import gatemark, missing, nightly_but, nothing_compared, run

from gatemark.results.toml_text import to_toml

MISSING = missing("ip", "nft", "sysctl", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FRAMES = 40
PATIENCE_S = 60
"""For what happens at once unless something hangs."""
SEND = """
import socket, struct, sys
interface, mac, frames = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), int(sys.argv[3])
addresses = socket.inet_aton("198.18.5.5") + socket.inet_aton("203.0.113.9")
head = bytes.fromhex("4500002e00000000") + bytes.fromhex("40110000") + addresses
total = sum(struct.unpack(">10H", head))
total = (total & 0xFFFF) + (total >> 16)
head = head[:10] + struct.pack(">H", 0xFFFF - total) + head[12:]
frame = mac + bytes.fromhex("020000000909") + b"\\x08\\x00" + head + struct.pack(">HHHH", 9, 9, 26, 0) + bytes(18)
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
    sender.bind((interface, 0))
    for _ in range(frames):
        sender.send(frame)
"""
HOLD = """
import sys
from pathlib import Path
from gatemark.campaign.file import load_campaign
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign
with open_testbed(complete_campaign(load_campaign(Path(sys.argv[1])))):
    print("open", flush=True)
    sys.stdin.readline()
print("closed", flush=True)
sys.stdin.readline()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The namespace that plays the machine that measures, and that of the gateway between its two interfaces."""

    name: str
    gateway: str

    @property
    def inside(self) -> list[str]:
        """What goes before a command of this machine."""
        return ["ip", "netns", "exec", self.name]

    def links(self) -> dict[str, Any]:
        """Return all interfaces by their names."""
        return {link["ifname"]: link for link in json.loads(run("ip", "-n", self.name, "-s", "-j", "link", "show"))}

    def left_by_default_route(self) -> int:
        """Return how many frames went out of the default route so far."""
        return int(self.links()["gm-up"]["stats64"]["tx"]["packets"])

    def forwarded(self, interface: str = "gm-left", *, none: bool = False) -> int:
        """Send frames to the left interface from outside; return how many of them leave by the default route.

        The kernel may be at it for a while after they were sent; `none`: there is nothing to wait for.
        """
        before, until = self.left_by_default_route(), time.monotonic() + PATIENCE_S
        send = [sys.executable, "-c", SEND, "gm-gwleft", self.links()[interface]["address"], str(FRAMES)]
        run("ip", "netns", "exec", self.gateway, *send)
        while not none and self.left_by_default_route() < before + FRAMES and time.monotonic() < until:
            time.sleep(0.01)
        return self.left_by_default_route() - before


@contextlib.contextmanager
def played_host() -> Iterator[Host]:
    host = Host(name=f"gm-g-host-{os.getpid()}", gateway=f"gm-g-gw-{os.getpid()}")
    try:
        for name in (host.name, host.gateway):
            run("ip", "netns", "add", name)
            settings = ("ipv4.ip_forward=1", "ipv4.conf.all.rp_filter=0", "ipv6.conf.all.disable_ipv6=1")
            run("ip", "netns", "exec", name, "sysctl", "-qw", *(f"net.{setting}" for setting in settings))
        for side, network in (("left", "198.18"), ("right", "198.19")):
            peer = ["peer", "name", f"gm-gw{side}", "netns", host.gateway]
            run("ip", "link", "add", "name", f"gm-{side}", "netns", host.name, "type", "veth", *peer)
            macvlan = ["name", f"gm-m{side}", "link", f"gm-{side}", "type", "macvlan", "mode", "private"]
            run("ip", "-n", host.name, "link", "add", *macvlan)
            for interface in (f"gm-{side}", f"gm-m{side}"):
                run("ip", "-n", host.name, "link", "set", interface, "up")
            run("ip", "-n", host.gateway, "link", "set", f"gm-gw{side}", "up")
            run("ip", "-n", host.gateway, "address", "add", f"{network}.0.1/16", "dev", f"gm-gw{side}")
        run("ip", "link", "add", "name", "gm-up", "netns", host.name, "type", "veth", "peer", "name", "gm-far")
        run("ip", "link", "set", "gm-far", "netns", host.gateway)
        run("ip", "-n", host.gateway, "link", "set", "gm-far", "up")
        run("ip", "-n", host.name, "link", "set", "gm-up", "up")
        run("ip", "-n", host.name, "address", "add", "192.0.2.1/24", "dev", "gm-up")
        run("ip", "-n", host.name, "route", "add", "default", "via", "192.0.2.254")
        neighbour = ["192.0.2.254", "lladdr", "02:00:00:00:07:07", "nud", "permanent", "dev", "gm-up"]
        run("ip", "-n", host.name, "neighbour", "add", *neighbour)
        yield host
    finally:
        for name in (host.name, host.gateway):
            run("ip", "netns", "delete", name, check=False)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with played_host() as opened:
        yield opened


def campaign(folder: Path, left: str, right: str, *, kind: str = "ports") -> Path:
    file = folder / "campaign.toml"
    sides: dict[str, dict[str, Any]] = {"left": {"port": left}, "right": {"port": right}}
    if kind == "ports":
        for side, network in (("left", "198.18"), ("right", "198.19")):
            sides[side]["ipv4"] = {"address": f"{network}.0.2", "gateway": f"{network}.0.1"}
    document = {
        "gateway": {"technology": "router44"},
        "testbed": {"kind": kind},
        **sides,
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "trial": {"duration": "200ms", "settle": "0s", "learn": "100ms", "drain": "100ms", "rest": "0s"},
        "validity": {"retries": 3, "lateness_max": "5s"},
        "frame_loss": {"rates": ["1k"]},
    }
    file.write_text(to_toml(document))
    return file


class Holder:
    """A process that opens the test bed of a campaign on the played machine, and closes it when told."""

    def __init__(self, host: Host, file: Path) -> None:
        self.process = subprocess.Popen(
            [*host.inside, sys.executable, "-c", HOLD, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def reads(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def goes_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ends(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def held_open(host: Host, file: Path) -> Iterator[Holder]:
    holder = Holder(host, file)
    try:
        assert holder.reads() == "open", holder.process.communicate(timeout=PATIENCE_S)[1]
        yield holder
    finally:
        holder.ends()


@pytest.mark.parametrize(
    ("port", "address"),
    [
        ("af_packet:gm-{}", "gm-left"),
        ("af_packet:gm-m{}", "gm-mleft"),
        ("af_xdp:gm-{}", "gm-left"),
        ("vdev:net_af_packet0,iface=gm-{}", "gm-left"),
        ("vdev:net_af_xdp0,iface=gm-{}", "gm-left"),
        ("vdev:net_pcap0,iface=gm-{}", "gm-left"),
    ],
)
def test_what_arrives_at_a_port_is_not_forwarded(host: Host, tmp_path: Path, port: str, address: str) -> None:
    before = host.left_by_default_route()
    assert host.forwarded(address) == FRAMES, "without a guard the machine forwards, so this test can fail"
    with held_open(host, campaign(tmp_path, port.format("left"), port.format("right"))) as holder:
        assert host.forwarded(address, none=True) == 0
        run(*host.inside, "nft", "flush", "ruleset")  # a firewall starts again
        assert host.forwarded(address, none=True) == 0
        holder.goes_on()
        assert holder.reads() == "closed"
        assert host.forwarded(address) == FRAMES
    assert host.left_by_default_route() - before == 2 * FRAMES, "nor did any leave later"


def test_a_killed_process_leaves_nothing_behind(host: Host, tmp_path: Path) -> None:
    with held_open(host, campaign(tmp_path, "af_packet:gm-left", "af_packet:gm-right")) as holder:
        assert host.forwarded(none=True) == 0
        os.kill(holder.process.pid, signal.SIGKILL)
        holder.process.wait(timeout=PATIENCE_S)
        assert host.forwarded() == FRAMES
    assert run(*host.inside, "nft", "list", "ruleset") == ""


@pytest.mark.parametrize("port", ["memif:{folder}/{side}.sock", "pcap:{folder}/{side}.pcap", "null"])
def test_ports_without_an_interface_leave_the_machine_alone(host: Host, tmp_path: Path, port: str) -> None:
    left, right = (port.format(folder=tmp_path, side=side) for side in ("left", "right"))
    with held_open(host, campaign(tmp_path, left, right)):
        assert host.forwarded() == FRAMES


@pytest.mark.parametrize("port", ["tap:gm-t{}", "vdev:net_tap0,iface=gm-t{}", "vdev:net_virtio_user0,iface=gm-t{}"])
def test_a_port_that_sends_into_a_forwarding_machine_is_refused(host: Host, tmp_path: Path, port: str) -> None:
    file = campaign(tmp_path, port.format("left"), port.format("right"))
    ended = gatemark("run", file, "--output", tmp_path / "result", prefix=host.inside)
    assert ended.status == 2
    assert "left.port: this machine receives what" in ended.words
    assert "net.ipv4.conf.all.forwarding=0" in ended.words
    run(*host.inside, "sysctl", "-qw", "net.ipv4.ip_forward=0")
    try:
        with held_open(host, file):
            assert host.forwarded(none=True) == 0
    finally:
        run(*host.inside, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def test_a_veth_into_the_machine_itself_is_refused(host: Host, tmp_path: Path) -> None:
    run("ip", "-n", host.name, "link", "add", "name", "gm-a", "type", "veth", "peer", "name", "gm-b")
    try:
        file = campaign(tmp_path, "af_packet:gm-a", "af_packet:gm-right")
        ended = gatemark("run", file, "--output", tmp_path / "result", prefix=host.inside)
        assert ended.status == 2
        assert "this machine receives what af_packet:gm-a sends" in ended.words
        with held_open(host, campaign(tmp_path, "af_packet:gm-a", "af_packet:gm-b")):
            pass  # both ends are the Tester's, and what arrives there is dropped
    finally:
        run("ip", "-n", host.name, "link", "delete", "gm-a")


WAYS_OUT: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "the uplink by another kind of port": ("vdev:net_af_packet0,iface=gm-up", "carries the default route", ()),
    "a MACVLAN of the uplink": (
        "af_packet:gm-x",
        "(through gm-up)",
        ("-n {host} link add name gm-x link gm-up type macvlan",),
    ),
    "a default route made of halves": (
        "af_xdp:gm-x",
        "carries the default route",
        (
            "link add name gm-x netns {host} type veth peer name gm-y netns {gateway}",
            "-n {gateway} link set gm-y up",
            "-n {host} link set gm-x up",
            "-n {host} route add 0.0.0.0/1 dev gm-x",
            "-n {host} route add 128.0.0.0/1 dev gm-x",
        ),
    ),
    "a bridge in another namespace": (
        "af_packet:gm-x",
        "(through gm-br)",
        (
            "link add name gm-x netns {host} type veth peer name gm-y netns {gateway}",
            "-n {gateway} link add name gm-br type bridge",
            "-n {gateway} link set gm-y master gm-br",
            "-n {gateway} link set gm-br up",
            "-n {gateway} route add default dev gm-br",
        ),
    ),
    "a route whose interface is not told": (
        "af_packet:gm-left",
        "nexthop_compat_mode=1",
        (
            "netns exec {host} sysctl -qw net.ipv4.nexthop_compat_mode=0",
            "-n {host} nexthop add id 7 dev gm-up",
            "-n {host} route add 0.0.0.0/1 nhid 7",
        ),
    ),
}


@pytest.mark.parametrize(("port", "words", "commands"), WAYS_OUT.values(), ids=WAYS_OUT)
def test_a_port_that_leads_to_a_default_route_is_refused(
    host: Host, tmp_path: Path, port: str, words: str, commands: tuple[str, ...]
) -> None:
    try:
        for command in commands:
            run("ip", *command.format(host=host.name, gateway=host.gateway).split())
        before = host.left_by_default_route()
        file = campaign(tmp_path, port, "af_packet:gm-right")
        ended = gatemark("run", file, "--output", tmp_path / "result", prefix=host.inside)
        assert ended.status in (1, 2)
        assert words in ended.words
        assert host.left_by_default_route() == before
    finally:
        run("ip", "-n", host.name, "link", "delete", "gm-x", check=False)
        run("ip", "-n", host.gateway, "link", "delete", "gm-br", check=False)
        run("ip", "-n", host.name, "nexthop", "flush", check=False)
        run(*host.inside, "sysctl", "-qw", "net.ipv4.nexthop_compat_mode=1")


IN_USE: dict[str, tuple[str, str]] = {
    "the uplink": ("gm-up", "carries the default route"),
    "an interface with an address": ("gm-used", "has the address 203.0.113.1/24"),
    "a port of a bridge": ("gm-slave", "is a port of a bridge"),
}


@pytest.fixture(scope="module")
def used(host: Host) -> Iterator[Host]:
    """The machine with an interface that has an address, whose other end is in a bridge."""
    for words in (
        "link add name gm-used type veth peer name gm-slave",
        "address add 203.0.113.1/24 dev gm-used",
        "link add name gm-usedbr type bridge",
        "link set gm-slave master gm-usedbr",
    ):
        run("ip", "-n", host.name, *words.split())
    yield host
    for interface in ("gm-used", "gm-usedbr"):
        run("ip", "-n", host.name, "link", "delete", interface)


PORTS = ("af_packet:{}", "af_xdp:{}", "vdev:net_af_packet0,iface={}")
COMBINED = "the same rule; every run has each kind of bed with each port and each interface"
EACH_RUN = (0, 5, 7, 10, 12, 17)
"""Places of these combinations."""


@pytest.mark.parametrize(
    ("kind", "port", "use"), nightly_but(EACH_RUN, COMBINED, product(("ports", "loopback"), PORTS, IN_USE))
)
def test_no_test_bed_sends_through_an_interface_that_others_use(
    used: Host, tmp_path: Path, kind: str, port: str, use: str
) -> None:
    interface, words = IN_USE[use]
    before = used.left_by_default_route()
    file = campaign(tmp_path, port.format(interface), "af_packet:gm-right", kind=kind)
    commands: tuple[tuple[str | Path, ...], ...] = (
        ("run", file, "--output", tmp_path / "result"),
        ("trial", file, "--rate", "1k"),
    )
    for command in commands:
        ended = gatemark(*command, prefix=used.inside)
        assert ended.status == 2
        assert f"left.port: {interface} {words}" in ended.words
    assert used.left_by_default_route() == before


def test_the_self_test_of_a_campaign_asks_the_same(used: Host, tmp_path: Path) -> None:
    file = campaign(tmp_path, "af_packet:gm-used", "af_packet:gm-right")
    ended = gatemark("selftest", file, "--quick", prefix=used.inside)
    assert ended.status == 2
    assert "gm-used has the address" in ended.words


@pytest.mark.parametrize("port", ["af_packet:gm-{}", "af_packet:gm-m{}", "af_xdp:gm-{}"])
def test_a_trial_receives_everything_and_lets_nothing_out(host: Host, tmp_path: Path, port: str) -> None:
    """The copies of the packet sockets, and what XDP hands over, are taken before the drop."""
    file = campaign(tmp_path, port.format("left"), port.format("right"))
    before = host.left_by_default_route()
    ended = gatemark("trial", file, "--rate", "1k", "--json", prefix=host.inside)
    assert host.left_by_default_route() == before
    validity = ended.document["validity"]
    if not validity["valid"]:  # the machine is busy, and the trial says what the Tester missed
        assert (ended.status, ended.document["verdict"]) == (1, None) and validity["reasons"]
        nothing_compared("no valid trial")
        return
    assert ended.status == 0, ended.words
    for direction in ended.document["report"]["directions"]:
        assert direction["foreground"]["received"] == direction["foreground"]["intended"] > 0

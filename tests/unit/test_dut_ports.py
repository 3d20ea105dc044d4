"""Ports and loop-back: what needs no hardware to check."""

import errno
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut import isolation, port_name
from gatemark.dut.base import Abilities, Placement
from gatemark.dut.ingress import IngressDrop
from gatemark.dut.open import open_testbed
from gatemark.dut.port_name import interfaces_of, interfaces_of_pci, makes_interface
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.uplinks import Link, Namespace, Uplinks
from gatemark.errors import ConfigError
from gatemark.port_kinds import parse_port

SIDES = {
    "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
}


def campaign(kind: str, left: str | None = None, right: str | None = None, **testbed: object) -> Campaign:
    document: dict[str, object] = {"gateway": {"technology": "router44"}, "testbed": {"kind": kind, **testbed}}
    for name, port in (("left", left), ("right", right)):
        if kind != "netns":
            document[name] = SIDES[name] | ({} if port is None else {"port": port})
    return complete_campaign(campaign_from_dict(document))


def test_loopback_is_a_pair_of_rings() -> None:
    with open_testbed(campaign("loopback")) as bed:
        assert bed.ports == {"left": "ring", "right": "ring"}
        assert bed.placement == Placement()
        assert bed.can == Abilities()
        assert "loop-back" in bed.describe().name


def test_a_gateway_that_no_command_reaches_has_no_abilities_but_health() -> None:
    bed = open_testbed(campaign("ports", "af_packet:eth5", "af_packet:eth6"))
    assert bed.can.health is not None
    assert replace(bed.can, health=None) == Abilities()


def test_ports_need_a_name_each() -> None:
    with pytest.raises(ConfigError, match=r"left\.port") as caught:
        campaign("ports")
    assert len(caught.value.problems) == 2


def test_one_port_cannot_be_both_sides() -> None:
    with pytest.raises(ConfigError, match="is the left port as well"):
        campaign("ports", "af_packet:eth5", "af_packet:eth5")


def test_netns_needs_a_recipe() -> None:
    with pytest.raises(ConfigError, match=r"testbed\.recipe: is missing"):
        campaign("netns")


UPLINK = Uplinks((4, 1), {(4, 1): Namespace(links={1: Link(name="eth0")}, default_routes={1: "default"})}.get)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose default route goes out of eth0, a virtio card, and whose eth1 is one of another driver."""
    net = tmp_path / "net"
    for name, device in (("eth0", "0000:01:00.0/virtio3"), ("eth1", "0000:02:00.0"), ("tap0", None)):
        (net / name).mkdir(parents=True)
        if device is not None:
            (tmp_path / "devices" / device).mkdir(parents=True)
            (net / name / "device").symlink_to(tmp_path / "devices" / device)
    numbers = {name: at for at, name in enumerate(sorted(path.name for path in net.iterdir()), start=1)}
    known = numbers | {"uplinkalt": numbers["eth0"]}

    def number_of(name: str) -> int:
        if name not in known:
            raise OSError(errno.ENODEV, "no interface with this name")
        return known[name]

    monkeypatch.setattr(port_name, "NET_FOLDER", net)
    monkeypatch.setattr(socket, "if_nametoindex", number_of)
    monkeypatch.setattr(socket, "if_indextoname", {number: name for name, number in numbers.items()}.__getitem__)
    monkeypatch.setattr(isolation, "read_uplinks", lambda: UPLINK)
    monkeypatch.setattr(isolation, "forwards", lambda _interface: False)
    return net


@pytest.mark.parametrize(
    ("port", "interfaces"),
    [
        ("af_packet:eth0", ("eth0",)),
        ("af_xdp:eth0", ("eth0",)),
        ("pci:0000:01:00.0", ("eth0",)),
        ("pci:0000:02:00.0", ("eth1",)),
        ("pci:0000:03:00.0", ()),
        ("tap:tap0", ("tap0",)),
        ("tap:new0", ()),
        ("vdev:net_af_packet0,iface=eth0", ("eth0",)),
        ("vdev:net_af_xdp0,start_queue=0,iface=eth0,queue_count=1", ("eth0",)),
        ("vdev:net_pcap0,rx_iface=eth1,tx_iface=eth0", ("eth0", "eth1")),
        ("vdev:net_tap0,iface=new0,remote=eth0", ("eth0",)),
        ("vdev:net_bonding0,mode=1,slave=0000:01:00.0", ("eth0",)),
        ("vdev:net_failsafe0,dev(01:00.0),dev(net_af_packet1,iface=eth1)", ("eth0", "eth1")),
        ("vdev:net_vdev_netvsc0,iface=eth0", ("eth0",)),
        ("tap:uplinkalt", ("eth0",)),
        ("vdev:net_af_packet0,iface=uplinkalt", ("eth0",)),
        ("vdev:net_af_xdp0,iface=uplinkalt", ("eth0",)),
        ("vdev:net_tap0,iface=uplinkalt", ("eth0",)),
        ("vdev:net_failsafe0,dev(net_tap1,remote=uplinkalt),mac=02:00:00:00:00:01", ("eth0",)),
        ("vdev:net_virtio_user0,path=/dev/vhost-net,iface=uplinkalt", ("eth0",)),
        ("vdev:net_null", ()),
        ("vdev:net_null0", ()),
        ("vdev:net_null7,copy=1", ()),
        ("vdev:net_ring0", ()),
        ("vdev:net_memif0,socket=/run/x.sock,role=client", ()),
        ("vdev:net_pcap7,tx_pcap=/tmp/eth0", ()),
        ("memif:/run/eth0", ()),
        ("pcap:eth0", ()),
        ("ring", ()),
        ("null", ()),
    ],
)
def test_the_guard_knows_the_interfaces_behind_every_kind_of_port(
    machine: Path, port: str, interfaces: tuple[str, ...]
) -> None:
    assert interfaces_of(parse_port(port)) == interfaces
    result = isolation.port_problems({"left.port": port})
    refused = any("default route" in problem.what and "RFC 6815" in problem.fix for problem in result)
    assert refused == ("eth0" in interfaces), result


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ("vdev:net_failsafe0,exec(cat /tmp/x)", "'exec(cat /tmp/x)'"),
        ("vdev:net_failsafe0,exec(/bin/sh -c 'echo net_af_packet0,iface=pro$()d0')", "exec("),
        ("vdev:net_failsafe0,fd(/tmp/x)", "'fd(/tmp/x)'"),
        ("vdev:net_failsafe0,dev(net_failsafe1,exec(cat /tmp/x))", "net_failsafe in another one"),
        ("vdev:net_failsafe0,dev(net_pcap1,iface=[eth1),exec(x)]", "iface=[eth1"),
        ("vdev:net_failsafe0,dev(1:0.0)", "1:0.0 is not a PCI address"),
        ("vdev:net_failsafe0,dev(vdev:net_tap0)", "vdev:net_tap0 is not a PCI address"),
        ("vdev:" + "net_failsafe0,dev(" * 5000 + ")" * 5000, "net_failsafe in another one"),
        ("vdev:net_bonding0,slave=1:0.0", "1:0.0 is not a PCI address"),
        ("vdev:net_bonding0,slave=eth1", "eth1 is not a PCI address"),
        ("vdev:net_af_packet0,iface=nosuch0", "there is no interface nosuch0"),
        ("vdev:net_pcap0,iface=any", "there is no interface any"),
        ("vdev:net_pcap0,tx_iface=eth1=eth0", "tx_iface=eth1=eth0"),
        ("vdev:net_tap0,remote=nosuch0", "there is no interface nosuch0"),
        ("vdev:net_af_xdp0,iface=eth1,xdp_prog=/tmp/x.o", "xdp_prog=/tmp/x.o"),
        ("vdev:net_virtio_user0,path=/dev/vhost-vdpa-0", "/dev/vhost-vdpa-0 may be a card"),
        ("vdev:net_vdev_netvsc0", "takes every interface of its kind"),
        ("vdev:net_vdev_netvsc0,mac=02:00:00:00:00:01", "mac=02:00:00:00:00:01"),
        ("vdev:net_vhost0,iface=/tmp/x", "does not know which interfaces net_vhost0 opens"),
        ("vdev:net_null0,", "''"),
        ("vdev:", "does not know which interfaces"),
        ("pci:1:0.0", "1:0.0 is not a PCI address"),
        ("af_packet:uplinkalt", "uplinkalt is another name of the interface eth0"),
    ],
    ids=lambda text: text[:60],
)
def test_a_port_is_refused_if_nobody_can_tell_what_it_opens(machine: Path, port: str, said: str) -> None:
    result = isolation.port_problems({"left.port": port})
    assert [problem.where for problem in result] == ["left.port"]
    assert said in result[0].what and result[0].fix
    with pytest.raises(ConfigError, match=re.escape(said)):
        interfaces_of(parse_port(port))


def test_an_interface_made_within_another_device_is_seen(machine: Path) -> None:
    assert makes_interface(parse_port("vdev:net_failsafe0,dev(net_tap1,iface=new0)"))
    assert not makes_interface(parse_port("vdev:net_failsafe0,dev(net_null1)"))


def test_missing_interface_is_named() -> None:
    result = isolation.port_problems({"left.port": "af_packet:nosuch0"})
    assert any("no interface nosuch0" in problem.what for problem in result)


@pytest.mark.parametrize("port", ["ring", "memif:/run/left.sock", "null"])
def test_a_port_without_interface_needs_neither_root_nor_routes(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "read_uplinks", lambda: pytest.fail("routes are not asked for"))
    assert isolation.port_problems({"left.port": port}) == []


@pytest.mark.parametrize(("forwarding", "problems"), [(True, 1), (False, 0)])
def test_where_frames_cannot_be_dropped_the_machine_must_not_forward(
    machine: Path, monkeypatch: pytest.MonkeyPatch, forwarding: bool, problems: int
) -> None:
    def refuse(interfaces: object) -> object:
        if interfaces:
            raise PermissionError(1, "Operation not permitted")
        return IngressDrop(())

    monkeypatch.setattr(isolation, "IngressDrop", refuse)
    monkeypatch.setattr(isolation, "forwards", lambda interface: forwarding and interface == "eth1")
    isolated = {"left.port": "af_packet:eth1", "right.port": "memif:/run/right.sock"}
    if problems == 0:
        assert isolation.isolate(isolated).interfaces == ()
        return
    with pytest.raises(ConfigError, match="cannot drop them") as caught:
        isolation.isolate(isolated)
    assert [problem.where for problem in caught.value.problems] == ["left.port"]


def test_forwarding_that_cannot_be_read_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "SYSCTL_FOLDER", tmp_path)
    assert isolation.forwards("eth1")
    for name, value in (("ipv4/conf/eth1", "0"), ("ipv6/conf/all", "0"), ("ipv6/conf/eth1", "0")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "forwarding").write_text(value)
    assert not isolation.forwards("eth1")
    (tmp_path / "ipv6/conf/all/forwarding").write_text("1")
    assert isolation.forwards("eth1")


def test_pci_device_leads_to_its_interfaces(machine: Path) -> None:
    assert interfaces_of_pci("0000:01:00.0", machine) == ("eth0",)
    assert interfaces_of_pci("devices", machine) == ()

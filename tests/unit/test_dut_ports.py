"""Ports and loop-back: what needs no hardware to check."""

import json
from pathlib import Path

import pytest

from gatemark.config.model import Campaign
from gatemark.dut import open_testbed, ports
from gatemark.errors import ConfigError

SIDES = {
    "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
    "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
}


def campaign(kind: str, left: str | None = None, right: str | None = None, **testbed: object) -> Campaign:
    document: dict[str, object] = {"gateway": {"technology": "router44"}, "testbed": {"kind": kind, **testbed}}
    for name, port in (("left", left), ("right", right)):
        if kind != "netns":
            document[name] = SIDES[name] | ({} if port is None else {"port": port})
    return Campaign.model_validate_json(json.dumps(document))


def test_loopback_is_a_pair_of_rings() -> None:
    with open_testbed(campaign("loopback")) as bed:
        assert bed.ports == {"left": "ring", "right": "ring"}
        assert bed.namespace is None
        assert bed.own_drops() == {}
        assert "loop-back" in bed.describe().name


def test_ports_need_a_name_each() -> None:
    with pytest.raises(ConfigError, match=r"left\.port") as caught:
        open_testbed(campaign("ports"))
    assert len(caught.value.problems) == 2


def test_one_port_cannot_be_both_sides() -> None:
    with pytest.raises(ConfigError, match="same port"):
        open_testbed(campaign("ports", "af_packet:eth5", "af_packet:eth5"))


def test_netns_needs_a_recipe() -> None:
    with pytest.raises(ConfigError, match="recipe"):
        open_testbed(campaign("netns"))


def test_interface_of_the_default_route_is_refused() -> None:
    interface = next((folder.name for folder in ports.NET_FOLDER.glob("*")), "lo")
    found = ports.port_problems(f"af_packet:{interface}", "left.port", {interface: "default via 192.0.2.1"})
    assert any("default route" in problem.what and "RFC 6815" in problem.fix for problem in found)


def test_missing_interface_is_named() -> None:
    found = ports.port_problems("af_packet:nosuch0", "left.port", {})
    assert any("no interface nosuch0" in problem.what for problem in found)


def test_ring_needs_neither_root_nor_interface() -> None:
    assert ports.port_problems("ring", "left.port", {"eth0": "default"}) == []


def test_a_bridge_and_its_ports_share_a_wire(tmp_path: Path) -> None:
    for name, links in {"br0": ["lower_eth1"], "eth1": ["upper_br0"], "eth2": []}.items():
        (tmp_path / name).mkdir()
        for link in links:
            (tmp_path / name / link).mkdir()
    assert ports.underlying_interfaces("eth1", tmp_path) == {"eth1", "br0"}
    assert ports.underlying_interfaces("eth2", tmp_path) == {"eth2"}


def test_pci_device_leads_to_its_interface(tmp_path: Path) -> None:
    device = tmp_path / "devices" / "0000:01:00.0"
    device.mkdir(parents=True)
    (tmp_path / "net" / "eth1").mkdir(parents=True)
    (tmp_path / "net" / "eth1" / "device").symlink_to(device)
    assert ports.interface_of_pci("0000:01:00.0", tmp_path / "net") == "eth1"
    assert ports.interface_of_pci("0000:02:00.0", tmp_path / "net") is None

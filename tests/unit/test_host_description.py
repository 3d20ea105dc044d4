"""What the gateway's host tells about itself, and what the campaign states about it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut import ports
from gatemark.dut.boot import HostBoot
from gatemark.dut.host_description import description_of, read_host_description
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.shell import shell_at
from gatemark.errors import TestBedError
from gatemark.facts import GatewayHostFacts, InterruptFacts
from gatemark.results.provenance import interrupts_moved

SAID = """host_name\tgw
kernel\tLinux 6.1.0 x86_64
command_line\tquiet maxcpus=4
cpus_online\t4
cpu_list\t0-3
mhz_min\t2000
mhz_max\t2600
numa_nodes\ttwo
unknown\tx
interrupt_cpus\tCPU0       CPU1       CPU3
interface\teth1
driver\tice
effective_affinity_list\t24 3
smp_affinity_list\t24 0-3
interrupt\t24          0         17        250  IR-PCI-MSIX-0000:01:00.0    1-edge      eth1-TxRx-1
effective_affinity_list\t9 
smp_affinity_list\t9 0,1
interrupt\t9          4          0          0  PCI-MSI 524288-edge      eth1-TxRx-0
interrupt\t30 1
numa_node\t-1
rx_queues\t8
rss_udp4\tIP SA IP DA
interface\teth2
"""


def test_what_a_host_says_is_typed_and_what_it_does_not_say_is_none() -> None:
    host = description_of(SAID)
    assert (host.host_name, host.command_line, host.cpus_online, host.mhz_max) == ("gw", "quiet maxcpus=4", 4, 2600)
    assert (host.numa_nodes, host.governor, host.boot_id) == (None, None, None)
    first, second = host.interfaces
    assert (first.interface, first.driver, first.numa_node, first.rx_queues) == ("eth1", "ice", -1, 8)
    assert (first.tx_queues, first.rss_udp4, first.rss_udp6) == (None, "IP SA IP DA", None)
    assert (second.interface, second.driver) == ("eth2", None)
    assert description_of("") == GatewayHostFacts()


@pytest.mark.parametrize("number", ["9" * 5000, "²", "٣", "1_0", "0x1", "", "-"])
def test_what_is_no_number_of_a_kernel_is_left_out(number: str) -> None:
    host = description_of(re.sub(r"\d+", number, SAID))
    assert host.interfaces[0].interrupts == ()
    assert host.cpus_online is None and host.interfaces[0].rx_queues is None


def test_the_cpus_that_serve_the_queues_are_told() -> None:
    first, second = description_of(SAID).interfaces
    assert first.interrupts == (
        InterruptFacts(number=9, name="eth1-TxRx-0", cpus=None, allowed_cpus="0,1", taken={0: 4}),
        InterruptFacts(number=24, name="eth1-TxRx-1", cpus="3", allowed_cpus="0-3", taken={1: 17, 3: 250}),
    )
    assert second.interrupts == ()
    facts = GatewayHostFacts.model_validate_json(description_of(SAID).model_dump_json())
    assert facts.interfaces[0].interrupt_words == "eth1-TxRx-0 by one of CPU 0,1; eth1-TxRx-1 by CPU 3"
    assert facts.interfaces[0].interrupts[1].taken == {1: 17, 3: 250}


def test_interrupts_that_moved_are_told() -> None:
    before = description_of(SAID)
    assert list(interrupts_moved(before, before)) == []
    later = description_of(SAID.replace("24 3", "24 1"))
    assert list(interrupts_moved(before, later)) == ["eth1: eth1-TxRx-1 by CPU 3, then by CPU 1"]
    assert list(interrupts_moved(later, GatewayHostFacts())) == []


@pytest.mark.parametrize(
    ("device", "folder"),
    [("0000:01:00.0", "0000:01:00.0/msi_irqs"), ("virtio2", "msi_irqs")],
    ids=["card", "virtio"],
)
def test_interrupts_are_read_where_linux_has_them(device: str, folder: str, tmp_path: Path) -> None:
    """A virtio device has none of its own: they are those of the PCI device that it belongs to."""
    bus, net, proc = tmp_path / "bus", tmp_path / "net", tmp_path / "proc"
    for path in (bus / device, bus / folder, net / "eth1", proc / "irq" / "24", proc / "irq" / "25"):
        path.mkdir(parents=True, exist_ok=True)
    (net / "eth1" / "device").symlink_to(bus / device)
    for number in ("24", "25", "26"):
        (bus / folder / number).write_text("msix")
    head = "            CPU0       CPU1\n"
    lines = " 24:  0  17  PCI-MSI  1-edge  eth1-0\n124:  1  1  x  other\n 25:  3  0  PCI-MSI  2-edge  eth1-1\n"
    (proc / "interrupts").write_text(head + lines)
    (proc / "irq" / "24" / "effective_affinity_list").write_text("1\n")
    (proc / "irq" / "24" / "smp_affinity_list").write_text("0-1\n")
    (proc / "irq" / "25" / "smp_affinity_list").write_text("0\n")
    shell = shell_at(None, ["sh", "-s"])

    def there(script: str, **more: Any) -> str:
        return shell(script.replace("/sys/class/net", str(net)).replace("/proc/i", f"{proc}/i"), **more)

    (card,) = read_host_description(there).interfaces
    assert card.interrupts == (
        InterruptFacts(number=24, name="eth1-0", cpus="1", allowed_cpus="0-1", taken={1: 17}),
        InterruptFacts(number=25, name="eth1-1", cpus=None, allowed_cpus="0", taken={0: 3}),
    )


def test_interrupts_of_the_bridge_above_a_card_are_not_the_cards(tmp_path: Path) -> None:
    bridge, net, proc = tmp_path / "bridge", tmp_path / "net", tmp_path / "proc"
    for path in (bridge / "msi_irqs", bridge / "0000:01:00.0", net / "eth1", proc):
        path.mkdir(parents=True, exist_ok=True)
    (net / "eth1" / "device").symlink_to(bridge / "0000:01:00.0")
    (bridge / "msi_irqs" / "24").write_text("msi")
    (proc / "interrupts").write_text("            CPU0\n 24:  7  PCI-MSI  1-edge  PCIe PME\n")
    shell = shell_at(None, ["sh", "-s"])

    def there(script: str, **more: Any) -> str:
        return shell(script.replace("/sys/class/net", str(net)).replace("/proc/i", f"{proc}/i"), **more)

    (card,) = read_host_description(there).interfaces
    assert card.interrupts == ()


def test_this_machine_describes_itself() -> None:
    host = read_host_description(shell_at(None, ["sh", "-s"]))
    assert host.host_name == os.uname().nodename
    assert host.kernel == f"{os.uname().sysname} {os.uname().release} {os.uname().machine}"
    assert host.cpus_online == os.cpu_count()
    assert host.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert host.memory_kilobytes is not None and host.available_kilobytes is not None
    assert host.available_kilobytes < host.memory_kilobytes


def test_a_host_without_linux_files_and_tools_is_no_error(tmp_path: Path) -> None:
    """`sysctl` of a BSD, and none of the files that Linux has."""
    script = "#!/bin/sh\ncase $2 in hw.ncpuonline) echo 3 ;; kern.boottime) echo Sun ;; *) exit 1 ;; esac\n"
    for name, text in (("sysctl", script), ("getconf", "#!/bin/sh\nexit 1\n"), ("ethtool", "#!/bin/sh\nexit 1\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    hide = 'cat() { return 1; }; sed() { case ${3-} in /proc/*) return 1 ;; esac; command sed "$@"; }\n'
    shell = shell_at(None, ["env", f"PATH={tmp_path}:{os.environ['PATH']}", "sh", "-s"])

    def on_a_bsd(script: str, **more: Any) -> str:
        return shell(hide + script, **more)

    host = read_host_description(on_a_bsd)
    assert (host.cpus_online, host.boot_id) == (3, "Sun")
    assert (host.command_line, host.governor, host.memory_kilobytes) == (None, None, None)


@pytest.mark.parametrize(
    ("stated", "refused"),
    [
        ({"cores": 4, "cores_set_by": "hot_plug"}, False),
        ({"cores": 3, "cores_set_by": "hot_plug"}, True),
        ({"cores": 3, "cores_set_by": "kernel_command_line"}, True),
        ({"cores": 3, "cores_set_by": "pinning"}, False),
        ({"cores": 3}, False),
    ],
)
def test_a_number_of_cores_that_the_host_contradicts_is_refused(
    stated: dict[str, Any], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "read_host_description", lambda _run: description_of(SAID))
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    document = {
        "gateway": {"technology": "router44", "control": {"host": "gw"}, **stated},
        "testbed": {"kind": "ports"},
        **{
            name: {"port": "ring", "ipv4": {"address": address, "gateway": router}}
            for name, (address, router) in sides.items()
        },
        "throughput": {"maximum": 1000, "resolution": 100},
    }
    bed = open_testbed(complete_campaign(campaign_from_dict(document)))
    if refused:
        with pytest.raises(TestBedError, match=r"states 3 cores, but 4 CPUs are online at gw \(0-3\)"):
            bed.__enter__()
        return
    with bed:
        assert bed.describe().host == description_of(SAID)


def test_a_host_that_comes_back_with_fewer_cores_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A boot in the middle of a campaign must not change what is measured."""
    said = iter(
        (description_of(SAID), description_of(SAID), description_of(SAID).model_copy(update={"cpus_online": 2}))
    )
    monkeypatch.setattr(ports, "read_host_description", lambda _run: next(said))
    monkeypatch.setattr(HostBoot, "boot", lambda _self: None)
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    control = {"host": "gw", "boot": "repetition", "reboot": "reboot"}
    document = {
        "gateway": {"technology": "router44", "control": control, "cores": 4, "cores_set_by": "kernel_command_line"},
        "testbed": {"kind": "ports"},
        **{
            name: {"port": "ring", "ipv4": {"address": address, "gateway": router}}
            for name, (address, router) in sides.items()
        },
        "throughput": {"maximum": 1000, "resolution": 100},
    }
    with open_testbed(complete_campaign(campaign_from_dict(document))) as bed:
        assert bed.can.booter is not None
        bed.can.booter.boot()
        with pytest.raises(TestBedError, match="states 4 cores, but 2 CPUs are online"):
            bed.can.booter.boot()

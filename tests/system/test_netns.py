"""Test beds in network namespaces: frames cross real gateways, work is steered, nothing stays behind. Needs root."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tests.recipes import changed_recipe
from tests.system.machine import gatemark, nothing_compared, sees_kernel_threads

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.tables import SideModel
from gatemark.dut import machine, naming, plumbing, recipe_gateway
from gatemark.dut.control import GatewaySettings
from gatemark.dut.cpu_visitors import soft_interrupt_threads
from gatemark.dut.gateway_kernel import MAC_ADDRESSES
from gatemark.dut.guard import SURVIVOR
from gatemark.dut.kernel_modules import missing_modules
from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import built_in_recipes, complete_campaign, load_recipe, recipe_text
from gatemark.dut.steering import CorePlan, plan_cores, usable_cpus
from gatemark.errors import Interrupted, TestBedError

PATIENCE_S = 60.0
"""For what happens at once unless something hangs."""
PROBE = Path(__file__).with_name("packet_probe.py")
PREFIX = "2001:2:0:6400::"
MISSING = [
    tool
    for tool in ("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "nft", "tayga")
    if shutil.which(tool) is None
]
if os.geteuid() != 0:
    MISSING.insert(0, "root")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"network namespaces with gateways need {', '.join(MISSING)}")


def new_bed(name_or_path: str | Path, cores: CorePlan | None = None) -> NetnsTestBed:
    recipe = load_recipe(name_or_path)
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    return NetnsTestBed(recipe, sides, cores or plan_cores(usable_cpus()))


def variant(tmp_path: Path, **commands: list[str]) -> Path:
    """Write linux-router4 with other commands."""
    text = recipe_text("linux-router4")
    path = tmp_path / "variant.toml"
    path.write_text(text + "".join(f"{name} = {json.dumps(lines)}\n" for name, lines in commands.items()))
    return path


def exchange(
    bed: NetnsTestBed, frames: list[tuple[str, Packet]], wanted: int | None = None, seconds: float = PATIENCE_S
) -> tuple[list[tuple[str, Packet]], list[list[str]]]:
    """Send frames; return what came back, and which addresses the gateway asked for on which side.

    It ends when `wanted` frames came back, as many as were sent unless given, and nothing follows them; so what must
    not come back is sent before what must, the same way.
    """
    plan = {
        "interfaces": {side: port.partition(":")[2] for side, port in bed.ports.items()},
        "frames": [[side, bytes(frame).hex()] for side, frame in frames],
        "seconds": seconds,
        "wanted": len(frames) if wanted is None else wanted,
    }
    command = ["ip", "netns", "exec", bed.tester_namespace, sys.executable, str(PROBE)]
    done = subprocess.run(command, input=json.dumps(plan), text=True, capture_output=True, check=True, timeout=120)
    answer = json.loads(done.stdout)
    return [(side, Ether(bytes.fromhex(text))) for side, text in answer["received"]], answer["asked"]


def frame(side: str, source: str, destination: str, octets: int = 18) -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", side], dst=MAC_ADDRESSES["gw", side])
    header = (
        IPv6(src=source, dst=destination, hlim=10) if ":" in source else IP(src=source, dst=destination, ttl=10, tos=4)
    )
    return side, link / header / UDP(sport=5000, dport=6000) / Raw(b"g" * octets)


CROSSINGS = [
    # recipe, side sent on, source, destination, what must arrive: source, destination
    ("linux-router4", "left", "198.18.0.2", "198.19.0.2", "198.18.0.2", "198.19.0.2"),
    ("linux-router4", "right", "198.19.7.254", "198.18.200.77", "198.19.7.254", "198.18.200.77"),
    ("linux-router4", "left", "2001:2::2", "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::2"),
    ("linux-router6", "left", "2001:2::2", "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::2"),
    ("linux-router6", "right", "2001:2:0:8000::9", "2001:2:0:ff::77", "2001:2:0:8000::9", "2001:2:0:ff::77"),
    ("tayga-siit64", "left", "2001:2::2", f"{PREFIX}198.19.0.2", "198.18.0.2", "198.19.0.2"),
    ("tayga-siit64", "right", "198.19.0.2", "198.18.0.2", f"{PREFIX}198.19.0.2", "2001:2::2"),
    ("tayga-siit64", "left", "2001:2::fe", f"{PREFIX}198.19.77.200", "198.18.0.254", "198.19.77.200"),
    ("tayga-siit64", "right", "198.19.77.200", "198.18.1.0", f"{PREFIX}198.19.77.200", "2001:2::100"),
    ("tayga-siit64", "left", "2001:2::2", "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::2"),
    ("tayga-siit64", "right", "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::2", "2001:2::2"),
    ("tayga-siit46", "left", "198.18.0.2", "198.19.0.2", f"{PREFIX}198.18.0.2", "2001:2:0:8000::2"),
    ("tayga-siit46", "right", "2001:2:0:8000::2", f"{PREFIX}198.18.0.2", "198.19.0.2", "198.18.0.2"),
    ("tayga-siit46", "left", "2001:2::2", "2001:2:0:8000::2", "2001:2::2", "2001:2:0:8000::2"),
    ("tayga-clat", "left", "198.18.0.2", "198.19.0.2", "2001:2:0:4000::198.18.0.2", f"{PREFIX}198.19.0.2"),
    ("tayga-clat", "right", f"{PREFIX}198.19.0.2", "2001:2:0:4000::198.18.0.2", "198.19.0.2", "198.18.0.2"),
    ("tayga-clat", "right", f"{PREFIX}198.19.0.2", "2001:2::2", f"{PREFIX}198.19.0.2", "2001:2::2"),
]


HERE = [name for name in built_in_recipes() if not missing_modules(load_recipe(name).modules)]
"""Recipes for this machine's kernel; the others are in test_guest_kernel."""


@pytest.fixture(scope="module")
def beds() -> Iterator[dict[str, NetnsTestBed]]:
    """Open every recipe of this kernel once, all of them at the same time."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(new_bed(name)) for name in HERE}


@pytest.mark.parametrize(("name", "side", "source", "destination", "seen_source", "seen_destination"), CROSSINGS)
def test_frame_crosses_and_comes_out_as_the_recipe_says(
    beds: dict[str, NetnsTestBed],
    name: str,
    side: str,
    source: str,
    destination: str,
    seen_source: str,
    seen_destination: str,
) -> None:
    bed = beds[name]
    received, _ = exchange(bed, [frame(side, source, destination)])
    assert len(received) == 1
    (other, packet), layer = received[0], IPv6 if ":" in seen_source else IP
    assert other != side
    native = seen_source == source
    decrement = (None if native else load_recipe(name).gateway.hop_limit_decrement) or 1
    assert packet[layer].src == str(ipaddress.ip_address(seen_source))
    assert packet[layer].dst == str(ipaddress.ip_address(seen_destination))
    assert (packet.hlim if layer is IPv6 else packet.ttl) == 10 - decrement
    assert bytes(packet[Raw].load).rstrip(b"\0") == b"g" * 18
    rebuilt = packet.copy()
    del rebuilt[UDP].chksum
    assert Ether(bytes(rebuilt))[UDP].chksum == packet[UDP].chksum


@pytest.mark.alone
def test_it_can_be_made_in_a_network_namespace_as_in_a_container(tmp_path: Path) -> None:
    """Which does not show all settings of the machine."""
    file = tmp_path / "campaign.toml"
    file.write_text('[testbed]\nkind = "netns"\nrecipe = "linux-router4"\n[trial]\nduration = "100ms"\nrest = "0s"\n')
    ended = gatemark("trial", file, "--rate", "500", "--json", prefix=["unshare", "--net"])
    assert ended.status in (0, 1), ended.words
    if not ended.document["validity"]["valid"]:  # the machine is busy: what came back says nothing
        assert (ended.status, ended.document["verdict"]) == (1, None)
        nothing_compared("no valid trial")
        return
    received = [direction["foreground"]["received"] for direction in ended.document["report"]["directions"]]
    assert received == [50, 50]


def test_gateway_asks_for_our_hosts_itself() -> None:
    with new_bed("linux-router4") as bed:
        _, asked = exchange(
            bed, [frame("left", "198.18.0.2", "198.19.3.9"), frame("right", "198.19.3.9", "198.18.0.2")]
        )
        assert ["right", "198.19.3.9"] in asked
        assert ["left", "198.18.0.2"] in asked


@pytest.mark.parametrize("name", ["linux-router4", "tayga-siit64"])
def test_jumbo_frames_pass_whole(beds: dict[str, NetnsTestBed], name: str) -> None:
    sent = (
        frame("left", "198.18.0.2", "198.19.0.2", 9170)
        if name == "linux-router4"
        else frame("left", "2001:2::2", f"{PREFIX}198.19.0.2", 9170)
    )
    received, _ = exchange(beds[name], [sent])
    assert [len(packet[Raw].load) for _, packet in received] == [9170]


def test_testers_kernel_never_answers(beds: dict[str, NetnsTestBed]) -> None:
    bed = beds["linux-router4"]
    end = bed.gateway.interfaces["left"]
    ping = ["ip", "netns", "exec", bed.gateway.namespaces[0], "sh", "-c"]
    script = f"ip neigh flush all; ip -4 neigh add 198.18.0.9 dev {end} lladdr {MAC_ADDRESSES['gm', 'left']}; "
    script += "ping -c 1 -W 1 198.18.0.9; ping -c 1 -W 1 198.18.0.8; ping -c 1 -W 1 2001:2::8; true"
    said = subprocess.run([*ping, script], capture_output=True, text=True, check=True).stdout
    assert "bytes from" not in said


def test_description_names_versions_and_configuration(beds: dict[str, NetnsTestBed]) -> None:
    described = beds["tayga-siit64"].describe()
    assert "tayga" in described.version
    assert os.uname().release in described.version
    for text in ("198.19.0.1/16", "2001:2::1/56", "map 198.18.0.0/16 2001:2::/112", "ip_forward = 1", "rps_cpus"):
        assert text in described.configuration
    assert any("--nodetach" in command for command in described.commands)
    assert "gatemark-" not in described.configuration + "".join(described.commands)


def test_two_test_beds_of_one_gateway_describe_it_alike() -> None:
    with new_bed("linux-router4") as first, new_bed("linux-router4") as second:
        assert first.tester_namespace != second.tester_namespace
        assert first.describe() == second.describe()
        for bed in (first, second):
            received, _ = exchange(bed, [frame("left", "198.18.0.2", "198.19.0.2")])
            assert len(received) == 1


@pytest.mark.cpus(2, "steering")
def test_gateway_works_on_its_own_cpu() -> None:
    """Which CPU forwards a frame is counted by rules of the gateway itself: nothing else on this machine is in it.

    No more frames are under way than its queues hold, however late it comes to them.
    """
    plan, rounds, frames = plan_cores(usable_cpus()), 10, 100
    rules = "\n".join(f"meta cpu {cpu} counter" for cpu in usable_cpus())
    table = f"table ip planted {{ chain planted {{ type filter hook forward priority 0;\n{rules}\n}}\n}}\n"
    blast = "import socket,sys; s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW); s.bind((sys.argv[1],0));"
    blast += f"f=bytes.fromhex(sys.argv[2]); [s.send(f) for _ in range({frames})]"
    with new_bed("linux-router4", plan) as bed:
        exchange(bed, [frame("left", "198.18.0.2", "198.19.0.2")])
        inside = ["ip", "netns", "exec", bed.gateway.namespaces[0], "nft"]
        subprocess.run([*inside, "-f", "-"], input=table, text=True, check=True)

        def forwarded() -> dict[int, int]:
            done = subprocess.run([*inside, "-j", "list", "ruleset"], capture_output=True, text=True, check=True)
            rules = [entry["rule"]["expr"] for entry in json.loads(done.stdout)["nftables"] if "rule" in entry]
            return {on["match"]["right"]: counted["counter"]["packets"] for on, counted in rules}

        interface, octets = bed.ports["left"].partition(":")[2], bytes(frame("left", "198.18.0.2", "198.19.0.2")[1])
        sender = ["ip", "netns", "exec", bed.tester_namespace, "taskset", "-c", str(plan.tester[0]), sys.executable]
        for sent in range(frames, rounds * frames + 1, frames):
            subprocess.run([*sender, "-c", blast, interface, octets.hex()], check=True, timeout=PATIENCE_S)
            await_that(lambda: sum(forwarded().values()) >= sent)  # noqa: B023 - it is asked at once
        counts = forwarded()
    assert {core for core, count in counts.items() if count} <= set(plan.gateway)
    assert sum(counts.values()) == rounds * frames


def test_daemon_is_pinned_to_the_gateways_cpus(beds: dict[str, NetnsTestBed]) -> None:
    bed = beds["tayga-siit64"]
    assert [sorted(os.sched_getaffinity(pid)) for pid in translators(bed)] == [[*bed.placement.gateway_cores]]


@pytest.mark.cpus(2, "on a single one the gateway waits for the Tester itself")
@pytest.mark.skipif(not sees_kernel_threads(), reason="a container: the kernel's threads are not to be seen")
def test_the_gateway_goes_before_all_others_also_after_a_restart() -> None:
    """A daemon must not inherit what this process is."""
    before = nice_values()
    with new_bed("tayga-siit64") as bed:
        kernels = {thread.pid: thread.cpu for thread in soft_interrupt_threads()}
        assert {kernels[pid] for pid, nice in nice_values().items() if nice == -20} == set(bed.placement.gateway_cores)
        for _ in range(2):
            assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in translators(bed)] == [-20]
            bed.gateway.restart()
    assert nice_values() == before


def nice_values() -> dict[int, int]:
    """Of the kernel's threads for soft interrupts."""
    return {thread.pid: os.getpriority(os.PRIO_PROCESS, thread.pid) for thread in soft_interrupt_threads()}


def test_where_the_kernels_threads_are_not_to_be_seen_this_process_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container. The daemons keep the priority that the kernel's threads have."""
    monkeypatch.setattr(machine, "soft_interrupt_threads", lambda: iter(()))
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with new_bed("tayga-siit64") as bed:
        for _ in range(2):
            assert os.getpriority(os.PRIO_PROCESS, 0) == 19
            assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in translators(bed)] == [0]
            bed.gateway.restart()
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_own_drops_and_gateway_drops_start_at_zero(beds: dict[str, NetnsTestBed]) -> None:
    assert set(beds["linux-router6"].kernel.drops().tester.values()) == {0}
    drops = beds["tayga-siit64"].kernel.drops().gateway
    assert "nat64 tx_dropped" in drops


SEND_FIVE = """
import contextlib, socket, sys
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
packets.bind((sys.argv[1], 0))
for _ in range(5):
    with contextlib.suppress(OSError):  # the drop is told at once
        packets.send(bytes(1000))
"""


def test_drops_are_those_that_the_kernel_tells(beds: dict[str, NetnsTestBed]) -> None:
    """A veth end drops frames that are too long for its other end, and counts them as those without room there."""
    bed = beds["linux-router4"]
    tester, gateway = bed.ports["left"].partition(":")[2], bed.gateway.interfaces["left"]
    inside = ["ip", "netns", "exec", bed.gateway.namespaces[0]]
    set_mtu = ["ip", "-n", bed.tester_namespace, "link", "set", tester, "mtu"]
    before = bed.kernel.drops().tester
    subprocess.run([*set_mtu, "600"], check=True)
    try:
        subprocess.run([*inside, sys.executable, "-c", SEND_FIVE, gateway], check=True)
    finally:
        subprocess.run([*set_mtu, str(load_recipe("linux-router4").mtu)], check=True)
    shown = subprocess.run([*inside, "ip", "-s", "-j", "link"], capture_output=True, text=True, check=True)
    dropped = {link["ifname"]: link["stats64"]["tx"]["dropped"] for link in json.loads(shown.stdout)}
    after = bed.kernel.drops().tester
    assert after["tester-left queue full"] == dropped[gateway] == before["tester-left queue full"] + 5


def translators(bed: NetnsTestBed) -> list[int]:
    """Return the daemons of the gateway; there are other processes that keep its namespaces open and wait for them."""
    inside = naming.processes_in(bed.gateway.namespaces[0])
    return [pid for pid in inside if Path(f"/proc/{pid}/comm").read_text().strip() == "tayga"]


def left_behind(bed: NetnsTestBed) -> list[str]:
    """Everything that could have stayed of a test bed."""
    stem = bed.tester_namespace.removesuffix("-tester")
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    commands = [read_quietly(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    ends = [port.partition(":")[2] for port in bed.ports.values()]
    result = [line for line in spaces.splitlines() if stem in line]
    result += [line for line in links.splitlines() if any(end in line for end in ends)]
    result += [command for command in commands if stem in command and "--nodetach" in command]
    naming_folder = naming.parse_name(stem)
    assert naming_folder is not None
    return result + ([str(naming_folder.folder)] if naming_folder.folder.exists() else [])


def read_quietly(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_nothing_stays_after_an_exception() -> None:
    bed = new_bed("tayga-siit64")
    with pytest.raises(RuntimeError, match="in the middle"), bed:
        raise RuntimeError("in the middle")
    assert left_behind(bed) == []
    bed.close()  # a second time does nothing


def test_nothing_stays_after_a_failed_set_up(tmp_path: Path) -> None:
    bed = new_bed(variant(tmp_path, setup=["echo broken recipe >&2; exit 3"]))
    with pytest.raises(TestBedError, match="status 3: broken recipe"), bed:
        pass
    assert left_behind(bed) == []


def test_an_error_names_no_file_that_was_removed(tmp_path: Path) -> None:
    path = variant(tmp_path, setup=["cat {dir}/absent.conf"])
    bed = new_bed(path)
    with pytest.raises(TestBedError) as raised, bed:
        pass
    assert "{dir}/absent.conf" in raised.value.what
    assert "{dir} stands for the folder of the files of recipe" in raised.value.fix
    assert str(bed._name.folder) not in str(raised.value)


def test_a_daemon_that_ends_is_told_with_its_output(tmp_path: Path) -> None:
    bed = new_bed(variant(tmp_path, start=["sh -c 'echo no such option; exit 4'"], health=["false"]))
    with pytest.raises(TestBedError, match="status 4: no such option"), bed:
        pass
    assert left_behind(bed) == []


def test_gateway_that_dies_is_noticed(beds: dict[str, NetnsTestBed]) -> None:
    with new_bed("tayga-siit64") as bed:
        bed.can.check()
        (translator,) = translators(bed)
        os.kill(translator, signal.SIGKILL)
        await_that(lambda: not Path(f"/proc/{translator}").exists())  # what waited for it knows
        with pytest.raises(TestBedError, match="ended with status -9"):
            bed.can.check()


def test_interface_that_goes_away_is_noticed() -> None:
    with new_bed("linux-router4") as bed:
        command = ["ip", "-n", bed.gateway.namespaces[0], "link", "delete", bed.gateway.interfaces["right"]]
        subprocess.run(command, check=True)
        with pytest.raises(TestBedError, match="the interface is gone"):
            bed.can.check()
    assert left_behind(bed) == []


def test_missing_program_names_its_debian_package(tmp_path: Path) -> None:
    path = variant(tmp_path)
    path.write_text(path.read_text().replace("[left]", '[programs]\nnosuchd = "nosuch-package"\n\n[left]', 1))
    with pytest.raises(TestBedError, match="apt-get install nosuch-package"), new_bed(path):
        pass


def test_ordinary_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TestBedError, match="need root"), new_bed("linux-router4"):
        pass


OWNER = textwrap.dedent(
    """
    import sys, time
    from gatemark.dut.netns import NetnsTestBed
    from gatemark.dut.recipe import load_recipe
    from gatemark.dut.steering import plan_cores, usable_cpus

    recipe = load_recipe("tayga-siit64")
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    with NetnsTestBed(recipe, sides, plan_cores(usable_cpus())) as bed:
        print(bed.tester_namespace, flush=True)
        time.sleep(60)
    """
)


@contextlib.contextmanager
def owner_of_a_bed() -> Iterator[tuple[subprocess.Popen[str], naming.BedName]]:
    """Run another process that has a test bed open; kill it at the end if it still lives."""
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        name = naming.parse_name(owner.stdout.readline().strip())
        assert name is not None
        try:
            yield owner, name
        finally:
            if owner.poll() is None:
                owner.terminate()


def kill_with_its_survivor(owner: subprocess.Popen[str]) -> None:
    """Kill a process and, before it, the one that would clean up after it."""
    children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()
    (survivor,) = (pid for pid in children if SURVIVOR in Path(f"/proc/{pid}/cmdline").read_text())
    for pid in (int(survivor), owner.pid):
        os.kill(pid, signal.SIGKILL)
    owner.wait()


def test_after_a_kill_the_survivor_cleans_up() -> None:
    with owner_of_a_bed() as (owner, name):
        owner.kill()
        await_that(lambda: not name.folder.exists())
        assert name not in naming.leftovers()
        assert name.stem not in " ".join(everything_of_ours())


def test_what_a_killed_owner_and_its_survivor_leave_the_next_start_removes() -> None:
    with owner_of_a_bed() as (owner, name):
        kill_with_its_survivor(owner)
        assert name in naming.leftovers()
        with new_bed("linux-router4"):
            assert name not in naming.leftovers()
        assert not (naming.NETNS_FOLDER / name.tester_namespace).exists()
        assert not name.folder.exists()


def test_without_ipv6_in_the_kernel_ipv4_is_forwarded_and_an_ipv6_gateway_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel that is started with `ipv6.disable=1` lacks the folder of its settings."""
    for module in (plumbing, recipe_gateway):
        monkeypatch.setattr(module, "IPV6_SETTINGS", "/proc/sys/net/absent")
    recipe = load_recipe("linux-router4")
    sides = {side: recipe.side(side).model_copy(update={"ipv6": None}) for side in ("left", "right")}
    with NetnsTestBed(recipe, sides, plan_cores(usable_cpus())) as bed:
        passed_over = "[tester] [ ! -e /proc/sys/net/absent ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"
        assert passed_over in bed.describe().commands
        received, _ = exchange(bed, [frame("left", "198.18.0.2", "198.19.0.2")])
        assert len(received) == 1
    with pytest.raises(TestBedError, match=r"IPv6 is switched off in the gateway's kernel"), new_bed("linux-router6"):
        pass


def everything_of_ours() -> list[str]:
    """All that gatemark may leave on a machine, by name."""
    spaces = [entry for entry in os.listdir(naming.NETNS_FOLDER) if entry.startswith("gatemark-")]
    folders = os.listdir(naming.ROOT_FOLDER) if naming.ROOT_FOLDER.exists() else []
    return sorted([*spaces, *folders])


@pytest.mark.alone
def test_cleanup_lists_what_is_left_and_removes_it() -> None:
    before = everything_of_ours()
    with owner_of_a_bed() as (owner, name):
        assert run_json("cleanup")["left"] == {"beds": [], "settings": []}
        kill_with_its_survivor(owner)
        (left,) = run_json("cleanup", "--dry-run")["left"]["beds"]
        assert left["name"] == name.stem
        assert left["namespaces"] == [name.gateway_namespace, name.tester_namespace]
        assert left["processes"] == []  # the enclosure of the gateway ended with its owner
        assert left["folder"] == str(name.folder)
        done = gatemark("cleanup")
        assert done.status == 0
        assert done.output.splitlines()[-1] == "everything was removed, and the settings were restored"
        assert f"namespace {name.tester_namespace}" in done.output
        assert run_json("cleanup") == {key: {"beds": [], "settings": []} for key in ("left", "stays")}
    assert everything_of_ours() == before


def run_json(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = gatemark(*arguments, "--json").document
    return document


def test_an_owner_in_another_pid_namespace_is_left_alone() -> None:
    """It has no process number here that its name could be compared with: only its lock says that it lives."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with subprocess.Popen([*inside, sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        name = naming.parse_name(owner.stdout.readline().strip())
        try:
            assert name is not None
            assert naming.start_ticks(name.pid) != name.start_ticks
            assert name not in naming.leftovers()
            with new_bed("linux-router4"):
                assert (naming.NETNS_FOLDER / name.gateway_namespace).exists()
        finally:
            owner.kill()
    await_that(lambda: name in naming.leftovers())
    naming.remove_leftovers()
    assert name.stem not in " ".join(everything_of_ours())


def test_commands_see_no_process_and_no_mount_but_their_own(tmp_path: Path) -> None:
    outside = subprocess.Popen(["sleep", "618"])
    commands = [
        "mkdir {dir}/disk && mount -t tmpfs none {dir}/disk && touch {dir}/disk/file",
        "test -e {dir}/disk/file",  # later commands see it
        "! pkill -x sleep --newest -f 'sleep 618'",
        'test "$(pwd)" = {dir}',
    ]
    try:
        with new_bed(variant(tmp_path, setup=commands)) as bed:
            name = naming.parse_name(bed.tester_namespace)
            assert name is not None
            assert not (name.folder / "disk" / "file").exists()
            assert outside.poll() is None
        assert left_behind(bed) == []
    finally:
        outside.kill()
        outside.wait()


def test_a_daemon_is_asked_to_end_and_its_children_end_as_well(tmp_path: Path) -> None:
    script = f"trap 'echo asked > {tmp_path}/asked; exit 0' TERM; setsid sleep 617 & while :; do sleep 0.1; done"
    with new_bed(variant(tmp_path, start=[f"sh -c '{script.replace(chr(39), chr(34))}'"])):
        await_that(lambda: "sleep\x00617" in all_commands())
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert "sleep\x00617" not in all_commands()


def await_that(holds: Callable[[], bool]) -> None:
    """Wait until another process has done its part."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def all_commands() -> str:
    return "\n".join(path.read_text(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())


@pytest.mark.parametrize("recipe", ["tayga-siit64"])
def test_the_folder_for_temporary_files_may_have_spaces(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "with some spaces; and 'more'"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(folder)
    with new_bed(recipe) as bed:
        bed.can.check()
    assert left_behind(bed) == []
    assert list(folder.iterdir()) == []


def test_on_a_full_run_folder_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "run"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "gm-g-run", disk], check=True)
    try:
        monkeypatch.setattr(naming, "ROOT_FOLDER", disk / "gatemark")
        with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        bed = new_bed("tayga-siit64")
        with pytest.raises(TestBedError, match="No space left on device"), bed:
            pass
        assert left_behind(bed) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_living_owner_is_left_alone() -> None:
    with owner_of_a_bed() as (_, name), new_bed("linux-router4"):
        assert (naming.NETNS_FOLDER / name.gateway_namespace).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stopped_owner_removes_everything_itself(number: signal.Signals) -> None:
    with owner_of_a_bed() as (owner, name):
        owner.send_signal(number)
        assert owner.wait(timeout=PATIENCE_S) != 0
        assert not (naming.NETNS_FOLDER / name.tester_namespace).exists()
        assert not (naming.NETNS_FOLDER / name.gateway_namespace).exists()
        assert not name.folder.exists()


def test_sigterm_is_an_interruption() -> None:
    bed, handler = new_bed("linux-router4"), signal.getsignal(signal.SIGTERM)

    def stopped_in_the_middle() -> None:
        with bed:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    with pytest.raises(Interrupted, match="SIGTERM"):
        stopped_in_the_middle()
    assert left_behind(bed) == []
    assert signal.getsignal(signal.SIGTERM) is handler


def test_hop_limit_that_runs_out_gives_an_icmp_error(beds: dict[str, NetnsTestBed]) -> None:
    side, packet = frame("left", "198.18.0.2", "198.19.0.2")
    packet[IP].ttl = 1
    received, _ = exchange(beds["linux-router4"], [(side, packet)])
    assert [(back, answer[ICMP].type) for back, answer in received] == [("left", 11)]


def test_tayga_drops_benchmarking_addresses_inside_the_well_known_prefix(tmp_path: Path) -> None:
    well_known = ("2001:2:0:6400::/96", "64:ff9b::/96")
    with_ipv6 = ("ipv4-addr 192.0.2.1", "ipv4-addr 192.0.2.1\nipv6-addr 2001:2:0:6401::1")
    path = changed_recipe(tmp_path, "tayga-siit64", well_known, with_ipv6)
    with new_bed(path) as bed:
        received, _ = exchange(bed, [frame("left", "2001:2::2", "64:ff9b::198.19.0.2")], seconds=1.0)
        assert [packet for _, packet in received if packet.haslayer(UDP) and not packet.haslayer(IPv6)] == []


def test_one_cpu_for_both_works() -> None:
    core = usable_cpus()[0]
    with new_bed("tayga-siit64", CorePlan(tester=(core,), gateway=(core,))) as bed:
        received, _ = exchange(bed, [frame("left", "2001:2::2", f"{PREFIX}198.19.0.2")])
        assert len(received) == 1


def test_hosts_behind_one_router_are_reached_through_it() -> None:
    recipe = load_recipe("linux-router4")
    plays = {}
    for side, network in (("left", "198.18"), ("right", "198.19")):
        ipv4 = {"address": f"{network}.65.2", "router": f"{network}.1.10", "gateway": f"{network}.1.1"}
        plays[side] = SideModel.model_validate({"address_mode": "nexthop", "ipv4": ipv4})
    with NetnsTestBed(recipe, plays, plan_cores(usable_cpus())) as bed:
        received, asked = exchange(bed, [frame("left", "198.18.65.2", "198.19.99.7")])
        assert len(received) == 1
        assert asked == [["right", "198.19.1.10"]]


@pytest.mark.parametrize("value", ["12", "; touch {dir}/victim", "two words"])
def test_settings_of_a_recipe_are_made_and_read_back(tmp_path: Path, value: str) -> None:
    path = variant(tmp_path)
    path.write_text(
        path.read_text()
        + '\n[commands.set.mark]\napply = "printf %s {value} > {dir}/mark"\nread = "cat {dir}/mark"\n'
        + '[commands.set.ttl]\napply = "echo {value} > /proc/sys/net/ipv4/ip_default_ttl"\n'
        + 'read = "cat /proc/sys/net/ipv4/ip_default_ttl"\n'
    )
    recipe = load_recipe(path)
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    settings = GatewaySettings(table=recipe.gateway.table, named={"mark": value, "ttl": 77})
    with NetnsTestBed(recipe, sides, plan_cores(usable_cpus()), settings=settings) as bed:
        read = {setting.name: setting.read for setting in bed.describe().settings}
        assert read["ttl"] == "77"
        assert not list((Path("/run/gatemark")).glob("**/victim"))
        bed.gateway.restart()
        assert bed.describe().settings[1].read == "77"
    beyond = GatewaySettings(table=recipe.gateway.table, named={"ttl": 300})
    with pytest.raises(TestBedError, match=r"set\.ttl"):
        NetnsTestBed(recipe, sides, plan_cores(usable_cpus()), settings=beyond).__enter__()


def test_control_commands_are_told_but_those_of_a_reset() -> None:
    """A reset starts the daemons again, asks for their health and sets up the table, all while frames are sent."""
    with new_bed("tayga-nat64") as bed:
        began_ns = time.monotonic_ns()
        bed.gateway.reset()
        assert bed.gateway.commands_since(began_ns) == ()
        bed.gateway.keeper.clear_state()
        assert bed.gateway.commands_since(began_ns) == ("gateway tayga-nat64: clear_state",)
        assert bed.gateway.commands_since(time.monotonic_ns()) == ()


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ("setup", 'setup = ["SLOW"]'),
        ("health", 'health = ["SLOW"]'),
        ("set", '[commands.set.slow]\napply = ["SLOW; : {value}"]'),
        ("describe", 'version = ["SLOW"]'),
        ("reset", 'reset = ["SLOW"]'),
        ("stop", 'stop = ["SLOW"]'),
    ],
)
def test_a_command_of_a_recipe_has_the_limit_of_its_action(action: str, line: str, tmp_path: Path) -> None:
    text = recipe_text("linux-router4")
    recipe = tmp_path / "slow.toml"
    line = line.replace("SLOW", f"sleep {PATIENCE_S}; touch {tmp_path}/slept")
    recipe.write_text(text.partition("[commands]")[0] + f"[commands]\n{line}\n")
    settings = {"settings": {"slow": 1}} if action == "set" else {}
    document = {
        "testbed": {"kind": "netns", "recipe": str(recipe)},
        "gateway": {"control": {"limits": {"start": "100ms", action: "300ms"}}, **settings},
        "throughput": {"maximum": 1000, "resolution": 100},
    }
    bed = open_testbed(complete_campaign(campaign_from_dict(document)))
    with contextlib.ExitStack() as stack:
        caught = None
        if action != "stop":  # of which a failure is ignored
            caught = stack.enter_context(pytest.raises(TestBedError, match=r"did not end within 0\.3 s"))
        with bed:
            if action == "describe":
                bed.describe()
            if action == "reset":
                assert bed.can.control is not None
                bed.can.control.reset()
    assert caught is None or "gateway.control.limits" in caught.value.fix
    assert not (tmp_path / "slept").exists(), "nobody waited for its end"

"""The gateway's host by a real ssh and sshd: every control command, settings, and what may happen to a connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing
from tests.system.sshd import NEEDED, USERS, Sshd, sshd

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut import ssh
from gatemark.dut.control import with_value
from gatemark.dut.open import open_testbed
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.shell import shell_at
from gatemark.errors import HostConnectionError, TestBedError

LACKING = missing(*NEEDED, root=True, engine=False)
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"needs {', '.join(LACKING)}")

PATIENCE_S = 60.0
"""For what happens at once unless something hangs."""
HARD = 'it\'s "quoted"  twice;\nrm -rf /nonexistent $HOME `id` !history \\ *[a-z]? # caf\u00e9 \ttab'
TIMEOUT = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout"
ENTRY = "conntrack -I -p udp -s 10.0.0.1 -d 10.0.0.2 --timeout 600 --sport {port} --dport 9 > /dev/null"


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    with sshd() as running:
        yield running


@pytest.fixture(params=USERS)
def host(request: pytest.FixtureRequest, server: Sshd) -> str:
    """A host for each login shell."""
    return f"{request.param}-gateway"


def gateway(host: str, folder: Path, **more: Any) -> PortsTestBed:
    """A gateway whose commands run in the namespace of the sshd, on its own connection tracking table."""
    control = {
        "host": host,
        "clear_state": "conntrack -F",
        "count_connections": "conntrack -C",
        "tear_down": "sleep 0.2; conntrack -F",
        "set_udp_timeout": f"echo {{seconds}} > {TIMEOUT}",
        "start": f"touch {folder}/healthy",
        "stop": f"rm {folder}/healthy",
        "health": f"test -e {folder}/healthy",
        "describe": "uname -s",
        "set": {"stream": {"apply": f"echo {{value}} > {TIMEOUT}_stream", "read": f"cat {TIMEOUT}_stream"}},
    }
    document = {
        "gateway": {
            "technology": "nat44",
            "pool": ["198.19.0.1"],
            "table": {"udp_timeout": "100s"},
            "settings": {"stream": 777},
            "control": control | more,
        },
        "testbed": {"kind": "ports"},
        "left": {"port": "ring", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"port": "ring", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "connections": {"count": [1000], "rate": 1000},
        "throughput": {"maximum": 1000, "resolution": 100},
    }
    bed = open_testbed(complete_campaign(campaign_from_dict(document)))
    assert isinstance(bed, PortsTestBed)
    return bed


def no_master(server: Sshd) -> bool:
    """Whether no ssh of ours is left."""
    until = time.monotonic() + PATIENCE_S
    while server.processes("ssh") and time.monotonic() < until:
        time.sleep(0.02)
    return not server.processes("ssh")


def test_every_control_command_works_at_the_host(host: str, server: Sshd, tmp_path: Path) -> None:
    (tmp_path / "healthy").touch()
    with gateway(host, tmp_path) as bed:
        assert server.inside("cat", TIMEOUT, f"{TIMEOUT}_stream").split() == ["100", "777"]
        assert [(setting.name, setting.read) for setting in bed.describe().settings] == [("stream", "777")]
        assert "# uname -s\nLinux" in bed.describe().configuration
        bed.control.clear_state()
        assert bed.control.count_connections() == 0
        for port in (1, 2, 3):
            server.inside("sh", "-c", ENTRY.format(port=port))
        assert bed.control.count_connections() == 3
        begin_ns = time.monotonic_ns()
        assert 200_000_000 <= bed.control.tear_down() <= time.monotonic_ns() - begin_ns, "it sleeps for 0.2 s"
        assert bed.control.count_connections() == 0
        bed.can.check()
        server.inside("sh", "-c", f"echo 5 > {TIMEOUT}")
        (tmp_path / "healthy").unlink()
        with pytest.raises(TestBedError, match=r"gateway\.control: health") as caught:
            bed.can.check()
        assert not isinstance(caught.value, HostConnectionError)
        bed.control.restart()
        bed.can.check()
        assert server.inside("cat", TIMEOUT).strip() == "100"
        assert len(server.processes("ssh")) == 1
    assert no_master(server)


def test_commands_and_values_arrive_whole(host: str, server: Sshd, tmp_path: Path) -> None:
    shell, script = shell_at(host, ["sh", "-s"]), tmp_path / "script"
    try:
        assert shell(with_value("printf '%s' {value}", HARD), where="test") == HARD
        text = "cat << 'END'\n" + HARD + "\nEND\n"
        assert shell(text, where="test") == HARD + "\n"
        value = f"; touch {script}"
        assert shell(with_value("echo {value}", value), where="test") == f"{value}\n"
        assert not script.exists()
        assert shell("printf 'caf\\351\\n'", where="test") == "caf\ufffd\n"
    finally:
        shell.close()


def test_a_setting_that_the_gateway_does_not_take_ends_it_before_anything_is_sent(server: Sshd, tmp_path: Path) -> None:
    control = {"set": {"stream": {"apply": "true {value}", "read": f"cat {TIMEOUT}_stream"}}}
    server.inside("sh", "-c", f"echo 120 > {TIMEOUT}_stream")
    with pytest.raises(TestBedError, match=r"set\.stream: is '120' after it was set to '777'"):
        gateway("posix-gateway", tmp_path, **control).__enter__()
    assert no_master(server)


def test_a_connection_that_is_cut_is_an_error_of_its_own_and_comes_back(
    host: str, server: Sshd, tmp_path: Path
) -> None:
    bed = gateway(host, tmp_path, clear_state=f"touch {tmp_path}/begun; sleep 20")
    errors: list[BaseException] = []

    def clear() -> None:
        try:
            bed.control.clear_state()
        except TestBedError as error:
            errors.append(error)

    try:
        thread, begin = threading.Thread(target=clear), time.monotonic()
        thread.start()
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < begin + PATIENCE_S
            time.sleep(0.02)
        server.cut()
        thread.join(PATIENCE_S)
        assert isinstance(errors[0], HostConnectionError)
        assert "was lost while the command ran" in errors[0].what
        assert "gatemark run --resume" in errors[0].fix
        assert bed.control.count_connections() == 0
        assert bed.control.commands_since(time.monotonic_ns()) == ("gateway.control: clear_state",)
    finally:
        bed.close()
    assert no_master(server)


REBOOT = """
echo booted >> {folder}/log
(sleep 0.2; ip link set lo down; sleep 0.7; date +%N > {folder}/boot_id; ip link set lo up) > /dev/null 2>&1 &
"""


def boots(folder: Path, occasion: str) -> dict[str, Any]:
    """What boots a host that is a namespace: nobody reaches it for a while, and then it is another boot."""
    (folder / "boot_id").write_text("0\n")
    return {"boot": occasion, "reboot": REBOOT.format(folder=folder), "boot_id": f"cat {folder}/boot_id"}


CAMPAIGN = """
name = "over-ssh"
repetitions = 2
[gateway]
technology = "router44"
hop_limit_decrement = 0
cores = {cores}
cores_set_by = "hot_plug"
[gateway.settings]
backlog = {backlog}
[gateway.control]
host = "csh-gateway"
health = "true"
describe = "uname -s"
[gateway.control.set.backlog]
apply = "echo {{value}} > {folder}/backlog"
read = "cat {folder}/backlog"
[testbed]
kind = "ports"
[left]
port = "ring"
ipv4 = {{address = "198.18.0.2", gateway = "198.18.0.1"}}
gateway_mac = "02:00:00:00:01:02"
[right]
port = "ring"
ipv4 = {{address = "198.19.0.2", gateway = "198.19.0.1"}}
gateway_mac = "02:00:00:00:01:01"
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
[validity]
retries = 20
lateness_max = "5s"
[trial]
duration = "100ms"
settle = "0s"
learn = "0s"
drain = "50ms"
rest = "0s"
[throughput]
maximum = 2000
minimum = 1000
resolution = 1000
search_duration = "100ms"
"""


def run(*words: str, status: int = 0) -> str:
    """Run the command line; return what it printed."""
    whole = [sys.executable, "-m", "gatemark.cli.main", *words]
    done = subprocess.run(whole, check=False, capture_output=True, text=True, timeout=180)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(bool(missing()), reason="needs the engine")
def test_a_whole_campaign_over_ssh(server: Sshd, tmp_path: Path) -> None:
    """Settings and the host are in the result, the provenance and the report; another host goes on with nothing."""
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    text = CAMPAIGN.format(cores=os.cpu_count(), backlog='"12; rm"', folder=tmp_path)
    lines = [f"{key} = {json.dumps(value)}" for key, value in boots(tmp_path, "repetition").items()]
    file.write_text(text.replace('host = "csh-gateway"', "\n".join(['host = "csh-gateway"', *lines])))
    run("run", str(file), "--output", str(out))
    assert (tmp_path / "log").read_text() == "booted\n" * 2
    gateway = json.loads((out / "result.json").read_text())["gateway"]
    assert (gateway["cores"], gateway["cores_set_by"]) == (os.cpu_count(), "hot_plug")
    assert gateway["boots_before"] == "repetition"
    assert gateway["settings"] == [{"name": "backlog", "value": "12; rm", "read": "12; rm"}]
    (session,) = json.loads((out / "provenance.json").read_text())["sessions"]
    assert session["settings"] == gateway["settings"]
    assert session["gateway_host"]["cpus_online"] == os.cpu_count()
    assert session["gateway_host"]["kernel"].startswith(f"Linux {os.uname().release}")
    page = (out / "report.html").read_text()
    assert "<dd>12; rm, read back</dd>" in page
    assert f"Linux {os.uname().release}" in page
    assert "the other CPUs taken offline" in page
    assert "before each repetition" in page
    assert no_master(server)

    (out / "result.json").unlink()
    told = json.loads((out / "provenance.json").read_text())
    told["sessions"][0]["gateway_host"]["command_line"] = "maxcpus=1"
    (out / "provenance.json").write_text(json.dumps(told))
    assert "gateway_host.command_line was maxcpus=1" in run("run", "--resume", str(out), status=3)
    assert no_master(server)


def test_a_host_that_boots_is_waited_for_and_set_up_again(server: Sshd, tmp_path: Path) -> None:
    (tmp_path / "healthy").touch()
    control = boots(tmp_path, "column") | {"after_boot": f"echo 9 > {TIMEOUT}"}
    with gateway("csh-gateway", tmp_path, **control) as bed:
        assert server.inside("cat", TIMEOUT, f"{TIMEOUT}_stream").split() == ["100", "777"]
        first = (tmp_path / "boot_id").read_text()
        assert first != "0\n"
        server.inside("sh", "-c", f"echo 5 > {TIMEOUT}_stream")
        bed.boot()
        assert (tmp_path / "boot_id").read_text() != first
        assert server.inside("cat", TIMEOUT, f"{TIMEOUT}_stream").split() == ["100", "777"]
        assert bed.control.commands_since(time.monotonic_ns()) == ()
    assert (tmp_path / "log").read_text() == "booted\n" * 2
    assert no_master(server)


@pytest.mark.skipif(bool(missing()), reason="needs the engine")
def test_a_campaign_that_states_other_cores_sends_nothing(server: Sshd, tmp_path: Path) -> None:
    file, out = tmp_path / "campaign.toml", tmp_path / "out"
    file.write_text(CAMPAIGN.format(cores=4096, backlog=12, folder=tmp_path))
    assert "states 4096 cores" in run("run", str(file), "--output", str(out), status=1)
    assert not out.exists()
    assert no_master(server)


def test_a_wrong_host_key_is_refused(server: Sshd, tmp_path: Path) -> None:
    right = server.known_hosts.read_text()
    key = (server.folder / "user.pub").read_text()
    try:
        for text, fix in ((f"127.0.0.1 {key}", "ssh-keygen -R"), ("", "connect once by hand with `ssh posix-gateway`")):
            server.known_hosts.write_text(text)
            with pytest.raises(HostConnectionError, match="Host key verification failed") as caught:
                gateway("posix-gateway", tmp_path).__enter__()
            assert fix in caught.value.fix
            assert server.known_hosts.read_text() == text
    finally:
        server.known_hosts.write_text(right)


def test_a_command_that_hangs_ends_at_the_host_as_well(server: Sshd, tmp_path: Path) -> None:
    bed = gateway(
        "csh-gateway", tmp_path, clear_state=f"echo $$ > {tmp_path}/pid; exec sleep 71", limits={"clear_state": "1s"}
    )
    try:
        with pytest.raises(TestBedError, match="did not end within 1 s") as caught:
            bed.control.clear_state()
        assert "gateway.control.limits" in caught.value.fix
        assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    finally:
        bed.close()


def test_a_killed_gatemark_leaves_a_connection_that_ends_by_itself(server: Sshd) -> None:
    """ControlPersist is short, so what a killed process leaves is gone soon."""
    shell = shell_at("posix-gateway", ["sh", "-s"])
    shell("true", where="test")
    (master,) = server.processes("ssh")
    told = Path(f"/proc/{master}/cmdline").read_bytes().decode()
    shell.close()
    assert "[mux]" in told
    assert no_master(server)


def test_sockets_of_connections_are_removed(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="gm-s-", dir="/tmp") as sockets:  # a short path, as sockets need
        monkeypatch.setattr(ssh, "FOLDER", sockets)
        shell = shell_at("posix-gateway", ["sh", "-s"])
        shell("true", where="test")
        (folder,) = Path(sockets).iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        shell.close()
        assert not folder.exists()


@pytest.mark.skipif(bool(missing("sudo", engine=False)), reason="needs sudo")
class TestSudo:
    def test_a_user_without_rights_controls_the_gateway(self, server: Sshd, tmp_path: Path) -> None:
        (tmp_path / "healthy").touch()
        with pytest.raises(TestBedError, match="ermission"):
            gateway("allowed-gateway", tmp_path).__enter__()
        with gateway("allowed-gateway", tmp_path, sudo=True, describe="id -u") as bed:
            assert "# id -u\n0\n" in bed.describe().configuration
            assert server.inside("cat", TIMEOUT, f"{TIMEOUT}_stream").split() == ["100", "777"]
            server.inside("sh", "-c", ENTRY.format(port=1))
            assert bed.control.count_connections() == 1
            bed.control.tear_down()
            assert bed.control.count_connections() == 0
            bed.control.restart()
            bed.can.check()
        assert no_master(server)

    def test_sudo_that_asks_for_a_password_is_an_error_with_its_remedy(self, server: Sshd, tmp_path: Path) -> None:
        """It is told by sudo itself: nobody waits for the end of a command that waits for a password."""
        with pytest.raises(HostConnectionError) as caught:
            gateway("asked-gateway", tmp_path, sudo=True).__enter__()
        (problem,) = caught.value.problems
        assert "no command reaches asked-gateway: sudo: " in problem.what
        assert "a password is required" in problem.what
        assert "NOPASSWD in /etc/sudoers.d" in problem.fix and not caught.value.began
        assert no_master(server)

    def test_nothing_of_it_is_on_this_machine(self, server: Sshd) -> None:
        for file in ("/etc/passwd", "/etc/shadow", "/etc/sudoers"):
            assert not any(line.startswith(("allowed", "asked")) for line in Path(file).read_text().splitlines())

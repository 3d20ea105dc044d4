"""Scripts on the standard input of a shell, here and through an `ssh` of our own; what is said when that fails."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gatemark.config.tables import GatewayControlModel, GatewayTableModel
from gatemark.dut import ssh
from gatemark.dut.control import GatewayControl, GatewaySettings, with_value
from gatemark.dut.shell import Shell, attempt, shell_at
from gatemark.errors import HostConnectionError, TestBedError

HERE = shell_at(None, ["sh", "-s"])
HARD = [
    'it\'s "quoted" twice',
    "back\\slash $HOME `id` $(id) ; rm -rf x & | > y",
    "several\nlines\n",
    "  spaces  ",
    "!history *glob? [a-z] ~root #comment",
    "caf\u00e9 \u4e16\u754c",
    "-n",
    "{value} {dir} {{}",
]

FAKE_SSH = """#!/bin/sh
# Runs what an sshd would run, through the login shell; notes its words.
for word in "$@"; do printf '%s\\n' "$word"; done > {folder}/words
last=
for word in "$@"; do last=$word; done
case $1 in -O) echo exit >> {folder}/exits; exit 0 ;; esac
[ -z "$SAYS" ] || {{ printf '%s\\n' "$SAYS" >&2; exit 255; }}
echo "Welcome to the gateway"
exec sh -c "$last"
"""


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an `ssh` that is first on PATH and runs commands here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(FAKE_SSH.format(folder=folder))
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(ssh, "FOLDER", tmp_path)
    return folder


@pytest.fixture(params=["here", "ssh"])
def shell(request: pytest.FixtureRequest, fake_ssh: Path) -> Shell:
    return shell_at(None if request.param == "here" else "gw", ["sh", "-s"])


@pytest.mark.parametrize("text", HARD)
def test_a_command_arrives_whole(shell: Shell, text: str) -> None:
    assert shell(f"printf '%s' {shlex.quote(text)}", where="test") == text


def test_output_is_what_the_command_printed(shell: Shell) -> None:
    assert shell("printf 'no end of line'", where="test") == "no end of line"
    assert shell("printf '\\n\\ntwo before, two after\\n\\n'", where="test") == "\n\ntwo before, two after\n\n"
    assert shell("true", where="test") == ""
    assert shell("printf 'caf\\351 \\000\\377\\n'", where="test") == "caf\ufffd \x00\ufffd\n"


def test_a_command_that_reads_takes_nothing_of_the_script(shell: Shell) -> None:
    assert shell("cat; echo done", where="test") == "done\n"


def test_the_first_command_that_fails_ends_a_script(shell: Shell) -> None:
    with pytest.raises(TestBedError, match="failed with status 1: before"):
        shell("echo before; false; echo after", where="test")
    with pytest.raises(TestBedError, match="failed with status 2"):
        shell("echo $unset_variable", where="test")
    with pytest.raises(TestBedError, match=r"status 2: .*nterminated quoted"):
        shell("echo 'open", where="test")
    with pytest.raises(TestBedError, match="failed with status 255: lost") as caught:
        shell("echo lost >&2; exit 255", where="test")
    assert not isinstance(caught.value, HostConnectionError)


def test_a_script_that_stops_its_own_shell_has_no_known_end() -> None:
    with pytest.raises(TestBedError, match="before the command had"):
        HERE("kill -9 $PPID", where="test")


def test_what_is_no_shell_is_told() -> None:
    with pytest.raises(TestBedError, match="POSIX shell"):
        shell_at(None, ["cat"])("true", where="test")
    with pytest.raises(TestBedError, match="`nosuch` is not installed"):
        shell_at(None, ["nosuch"])("true", where="test")


def test_half_a_script_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection may be cut while the script is sent."""
    cut = tmp_path / "cut"
    cut.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\ntext = sys.stdin.buffer.read()\n"
        "subprocess.run(['sh', '-s'], input=text[:-10])\n"
    )
    cut.chmod(0o755)
    with pytest.raises(TestBedError, match="before the command had"):
        shell_at(None, [str(cut)])(f"touch {tmp_path}/made", where="test")
    assert not (tmp_path / "made").exists()


def test_a_command_that_hangs_is_ended(shell: Shell, tmp_path: Path) -> None:
    """If it were not, the sleep would be waited for, for longer than pytest lets a test run."""
    with pytest.raises(TestBedError, match="did not end within 1 s"):
        shell(f"sleep 600; touch {tmp_path}/late", where="test", seconds_max=1)
    assert not (tmp_path / "late").exists()


def test_the_limit_holds_where_the_command_runs(fake_ssh: Path, tmp_path: Path) -> None:
    """Nothing goes on there after the error: what it does would fall into the next trial."""
    file = tmp_path / "pid"
    for seconds in (1, 10, 100):  # on a busy machine it may not even have begun
        with pytest.raises(TestBedError, match=f"did not end within {seconds} s"):
            shell_at("gw", ["sh", "-s"])(f"echo $$ > {file}; exec sleep 600", where="test", seconds_max=seconds)
        if file.exists() and (pid := file.read_text().strip()):
            break
    assert not Path(f"/proc/{pid}").exists()


def test_ssh_gets_the_options_and_no_word_of_the_command(fake_ssh: Path, tmp_path: Path) -> None:
    at_host = shell_at("root@192.0.2.1", ["sudo", "-n", "sh", "-s"])
    with pytest.raises(TestBedError):
        at_host("exit 7", where="test")
    words = (fake_ssh / "words").read_text().splitlines()
    assert words[-3:] == ["--", "root@192.0.2.1", "sudo -n sh -s"]
    assert {"-T", "-x", "-a", "BatchMode=yes", "StrictHostKeyChecking=yes", "ControlMaster=auto"} <= set(words)
    (path,) = (word.removeprefix("ControlPath=") for word in words if word.startswith("ControlPath="))
    folder = Path(path).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    at_host.close()
    at_host.close()
    assert (fake_ssh / "exits").read_text() == "exit\n"
    assert not folder.exists()


def test_the_control_path_is_short_enough_for_a_socket() -> None:
    connection = ssh.SshConnection("gw")
    (path,) = (word for word in connection.command(["sh"]) if word.startswith("ControlPath="))
    connection.close()
    assert len(path.removeprefix("ControlPath=").replace("%C", "0" * 40)) + len(".0123456789abcdef") <= 107


CHILD = """
import os, sys
from gatemark.dut import shell
at_host = shell.shell_at("gw", ["sh", "-s"])
at_host("true", where="test")
if sys.argv[1] == "raise":
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize("end", ["leave", "raise"])
def test_the_connection_ends_with_the_process(fake_ssh: Path, end: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", CHILD, end], env=environment, stderr=subprocess.DEVNULL, check=False)
    assert (fake_ssh / "exits").read_text() == "exit\n"


@pytest.mark.parametrize(
    ("says", "fix"),
    [
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "ssh-keygen -R"),
        ("No ED25519 host key is known for gw.\nHost key verification failed.", "connect once by hand with `ssh gw`"),
        ("root@gw: Permission denied (publickey).", "ssh-copy-id gw"),
        ("ssh: Could not resolve hostname gw: Name or service not known", "~/.ssh/config"),
        ("sudo: a password is required", "NOPASSWD"),
        ("ssh: connect to host gw port 22: Connection refused", "ssh -o BatchMode=yes gw"),
    ],
)
def test_a_host_that_cannot_be_reached_comes_with_its_remedy(
    fake_ssh: Path, monkeypatch: pytest.MonkeyPatch, says: str, fix: str
) -> None:
    monkeypatch.setenv("SAYS", says)
    with pytest.raises(HostConnectionError, match="no command reaches gw") as caught:
        shell_at("gw", ["sh", "-s"])("true", where="gateway.control: health")
    assert fix in caught.value.fix
    assert caught.value.where == "gateway.control: health"


def test_a_connection_lost_in_the_middle_is_an_error_of_its_own(fake_ssh: Path) -> None:
    at_host = shell_at("gw", ["sh", "-s"])
    with pytest.raises(HostConnectionError, match="was lost while the command ran") as caught:
        at_host("kill -9 $(ps -o ppid= -p $PPID) $PPID", where="test")
    assert "gatemark run --resume" in caught.value.fix
    with pytest.raises(HostConnectionError):
        attempt(at_host, "kill -9 $(ps -o ppid= -p $PPID) $PPID", where="test")
    assert attempt(at_host, "false", where="test") is None
    assert at_host("echo back", where="test") == "back\n"


def test_commands_of_which_nobody_saw_the_end_count_as_running_until_their_limit(fake_ssh: Path) -> None:
    at_host = shell_at("gw", ["sh", "-s"])
    at_host("true", where="before")
    began_ns = time.monotonic_ns()
    assert at_host.ran_since(began_ns) == ()
    with pytest.raises(HostConnectionError):
        at_host("kill -9 $(ps -o ppid= -p $PPID) $PPID", where="clear_state", seconds_max=2)
    assert at_host.ran_since(began_ns + 2 * 10**9) == ("clear_state",)
    assert at_host.ran_since(time.monotonic_ns() + 20 * 10**9) == ()


def test_a_command_that_never_began_runs_no_longer(fake_ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a host boots it is asked again and again; that must not spoil the trial after it."""
    at_host = shell_at("gw", ["sh", "-s"])
    monkeypatch.setenv("SAYS", "ssh: connect to host gw port 22: Connection refused")
    with pytest.raises(HostConnectionError):
        at_host("true", where="health")
    assert at_host.ran_since(time.monotonic_ns()) == ()


def test_what_is_meant_to_disturb_the_gateway_is_not_told() -> None:
    began_ns = time.monotonic_ns()
    with HERE.disturbing():
        HERE("true", where="gateway.control: reset")
    assert HERE.ran_since(began_ns) == ()
    HERE("true", where="gateway.control: health")
    assert HERE.ran_since(began_ns) == ("gateway.control: health",)


def test_a_command_that_still_runs_is_told(tmp_path: Path) -> None:
    began_ns = time.monotonic_ns()
    waits = f"until [ -e {tmp_path}/end ]; do sleep 0.02; done"
    thread = threading.Thread(target=lambda: HERE(waits, where="gateway.control: health"))
    thread.start()
    while not HERE.ran_since(began_ns):
        time.sleep(0.01)
    assert HERE.ran_since(time.monotonic_ns()) == ("gateway.control: health",)
    (tmp_path / "end").touch()
    thread.join()
    assert HERE.ran_since(time.monotonic_ns()) == ()
    assert HERE.ran_since(began_ns) == ("gateway.control: health",)


class TestSettings:
    """Values of the campaign file as commands get them."""

    def control(self, run: Shell, named: dict[str, Any], **settings: Any) -> GatewayControl:
        commands = GatewayControlModel.model_validate({"set": settings})
        wanted = GatewaySettings(table=GatewayTableModel(), named=named)
        return GatewayControl(run, commands, where="gateway.control", settings=wanted)

    @pytest.mark.parametrize("value", [*HARD, "; touch {victim}", "'; touch {victim}; '", '"$(touch {victim})"'])
    @pytest.mark.parametrize("quotes", ["", '"', "'"])
    def test_a_value_stays_a_value(self, shell: Shell, tmp_path: Path, value: str, quotes: str) -> None:
        victim = tmp_path / "victim"
        text = value.replace("{victim}", str(victim))
        arrived = shell(with_value(f"printf '%s' {quotes}{{value}}{quotes}", text), where="test")
        assert not victim.exists()
        assert quotes or arrived == text

    def test_a_setting_is_made_and_read_back(self, shell: Shell, tmp_path: Path) -> None:
        hash_file, rss = tmp_path / "hash", tmp_path / "rss"
        control = self.control(
            shell,
            {"hash": 1048576, "rss": "sdfn; rm"},
            hash={"apply": f"echo {{value}} > {hash_file}", "read": f"cat {hash_file}"},
            rss={"apply": [f": > {rss}", f"printf '%s' {{value}} >> {rss}"]},
        )
        control.set_up()
        assert (hash_file.read_text(), rss.read_text()) == ("1048576\n", "sdfn; rm")
        assert [(setting.name, setting.value, setting.read) for setting in control.made] == [
            ("hash", "1048576", "1048576"),
            ("rss", "sdfn; rm", None),
        ]

    def test_numbers_are_compared_as_numbers(self) -> None:
        self.control(HERE, {"hash": 64}, hash={"apply": "true {value}", "read": "echo 0064"}).set_up()

    def test_every_setting_that_is_another_one_is_told_at_once(self) -> None:
        same = {"apply": "true {value}", "read": "echo 5"}
        with pytest.raises(TestBedError) as caught:
            self.control(HERE, {"a": 5, "b": 6, "c": "seven"}, a=same, b=same, c=same).set_up()
        assert [problem.where for problem in caught.value.problems] == [
            "gateway.control: set.b",
            "gateway.control: set.c",
        ]
        assert "is '5' after it was set to '6'" in caught.value.what

    def test_limits_are_those_of_the_action(self) -> None:
        document = {"clear_state": "sleep 600", "limits": {"clear_state": "1s"}, "health": "sleep 1.1"}
        commands = GatewayControlModel.model_validate(json.loads(json.dumps(document)))
        settings = GatewaySettings(table=GatewayTableModel(), named={})
        run = shell_at(None, ["sh", "-s"], longer="raise its limit under gateway.control.limits")
        control = GatewayControl(run, commands, where="gateway.control", settings=settings)
        with pytest.raises(TestBedError, match="did not end within 1 s") as caught:
            control.clear_state()
        assert "gateway.control.limits" in caught.value.fix
        control.check_health()

    def test_a_deletion_may_take_a_quarter_of_an_hour(self) -> None:
        limits: list[float] = []

        class Noting(Shell):
            def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = 0) -> str:
                limits.append(seconds_max)
                return "1 2 - - - -"

        document = {"clear_state": "x", "tear_down": "x", "limits": {"clear_state": "15min", "tear_down": "40min"}}
        settings = GatewaySettings(table=GatewayTableModel(), named={})
        commands = GatewayControlModel.model_validate(document)
        control = GatewayControl(Noting(list), commands, where="x", settings=settings)
        control.clear_state()
        control.tear_down()
        assert limits == [900, 2400]

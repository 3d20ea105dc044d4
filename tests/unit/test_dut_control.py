"""Control of a stateful gateway: commands, counting, timing where the command runs; settings of the whole machine."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pydantic import ValidationError

from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayControlModel, GatewayTableModel
from gatemark.dut import machine, naming
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.open import open_testbed
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.shell import Shell, shell_at
from gatemark.errors import ImpossibleTimeError, TestBedError

SETTING = "net.netfilter.nf_conntrack_max"


def control(
    table: dict[str, Any] | None = None, named: dict[str, int | str] | None = None, **commands: Any
) -> GatewayControl:
    model = GatewayControlModel.model_validate(commands)
    settings = GatewaySettings(table=GatewayTableModel.model_validate(table or {}), named=named or {})
    return GatewayControl(shell_at(None, ["sh", "-s"]), model, where="gateway", settings=settings)


@pytest.mark.parametrize(
    ("command", "count"), [("echo 42", 42), ("echo table 3: 17 connections", 17), ("printf '1\\n20\\n'", 20)]
)
def test_the_last_number_printed_counts(command: str, count: int) -> None:
    assert control(count_connections=command).count_connections() == count


def test_a_gateway_that_cannot_count_says_nothing() -> None:
    assert control().count_connections() is None
    with pytest.raises(TestBedError, match="printed no number"):
        control(count_connections="echo none").count_connections()


@pytest.mark.parametrize("digits", [21, 400, 5000])
def test_a_number_that_no_kernel_counts_to_is_none(
    digits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = "9" * digits
    printing = control(
        {"size": 7}, count_connections=f"echo connections: {number}", tear_down="true", set_table_size="true",
        read_table_size=f"echo {number}",
    )  # fmt: skip
    with pytest.raises(TestBedError, match=r"count_connections: printed no number of at most 20 digits: '.*9'"):
        printing.count_connections()
    with pytest.raises(TestBedError, match="read_table_size: printed no number"):
        printing.set_up()
    (tmp_path / "date").write_text(f"#!/bin/sh\necho {number}\n")
    (tmp_path / "date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TestBedError, match="the gateway's clock was not read"):
        printing.tear_down()


def test_a_setting_of_endless_digits_is_another_one() -> None:
    with pytest.raises(TestBedError, match="after it was set to '7'"):
        control(None, {"x": "7"}, set={"x": {"apply": "echo {value}", "read": f"echo {'9' * 5000}"}}).set_up()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_tear_down_is_timed_where_it_runs(shell: str) -> None:
    slow_way = Shell(lambda: ["sh", "-c", f"sleep 0.3; exec {shell} -s"])
    commands = GatewayControlModel(tear_down="sleep 0.1; echo 7 8")
    settings = GatewaySettings(table=GatewayTableModel(), named={})
    begun_ns = time.monotonic_ns()
    elapsed_ns = GatewayControl(slow_way, commands, where="gateway", settings=settings).tear_down()
    assert 100_000_000 <= elapsed_ns <= time.monotonic_ns() - begun_ns - 300_000_000


CLOCK_STEP_NS = 10_000_000
"""Of the kernel's uptime."""


def test_clocks_without_nanoseconds_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "date").write_text("#!/bin/sh\necho 1700000000%N\n")
    (tmp_path / "date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for clock in ("perl", "none"):
        if clock == "none":
            (tmp_path / "perl").write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / "perl").chmod(0o755)
        begun_ns = time.monotonic_ns()
        elapsed_ns = control(tear_down="sleep 0.1").tear_down()
        assert 50_000_000 <= elapsed_ns <= time.monotonic_ns() - begun_ns + CLOCK_STEP_NS


@pytest.mark.parametrize("step_s", [-3600, -0.2, 0.2, 3600])
def test_a_clock_that_is_set_meanwhile_gives_no_time(
    step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`date` of the gateway's host is set while the command runs."""
    (tmp_path / "date").write_text(
        "#!/bin/sh\n"
        f"now=$({shutil.which('date')} +%s%N)\n"
        f"if test -e {tmp_path}/second; then now=$((now + {int(step_s * 1e9)})); fi\n"
        f"touch {tmp_path}/second; echo $now\n"
    )
    (tmp_path / "date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ImpossibleTimeError, match="the clock of the gateway's host was set"):
        control(tear_down="sleep 0.1").tear_down()


def test_a_tear_down_that_fails_is_no_time() -> None:
    with pytest.raises(TestBedError, match="gateway: tear_down"):
        control(tear_down="false").tear_down()
    with pytest.raises(TestBedError, match="no such command"):
        control().tear_down()


def test_the_table_is_set_up_with_what_is_known(tmp_path: Path) -> None:
    out = tmp_path / "out"
    commands: dict[str, Any] = {
        "set_table_size": f"echo size {{size}} >> {out}",
        "set_hash_size": f"echo hash {{size}} >> {out}",
        "set_udp_timeout": f"echo timeout {{seconds}} >> {out}",
    }
    done = control({"size": 9000, "udp_timeout": "2min"}, **commands).set_up()
    assert out.read_text() == "size 9000\ntimeout 120\n"
    assert done == [f"echo size 9000 >> {out}", f"echo timeout 120 >> {out}"]


READS = {"read_table_size": "echo max: {}", "read_hash_size": "echo {}", "read_udp_timeout": "echo {} s"}


def reading(table: dict[str, Any], **values: int) -> GatewayControl:
    commands: dict[str, Any] = {key: command.format(values[key]) for key, command in READS.items() if key in values}
    return control(table, **commands)


def test_the_table_is_read_back_whoever_set_it() -> None:
    table = {"size": 9000, "hash_size": 100_000, "udp_timeout": "2min"}
    count = reading(table, read_table_size=9000, read_hash_size=100_352, read_udp_timeout=120)
    count.set_up()
    assert [(setting.name, setting.value, setting.read) for setting in count.made] == [
        ("table.hash_size", "100000", "100352"),
        ("table.size", "9000", "9000"),
        ("table.udp_timeout", "120", "120"),
    ]
    unknown = reading({"size": 9000}, read_hash_size=5)
    unknown.set_up()
    assert unknown.made == ()


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("size", 9000, 8999),
        ("size", 9000, 9001),
        ("hash_size", 100_000, 99_999),
        ("hash_size", 100_000, 101_001),
        ("udp_timeout", "2min", 30),
    ],
)
def test_a_table_that_is_another_one_is_refused(key: str, value: int | str, read: int) -> None:
    name = "read_table_size" if key == "size" else f"read_{key}"
    with pytest.raises(TestBedError, match=f"gateway: table.{key}: is {read} at the gateway, not") as caught:
        reading({key: value}, **{name: read}).set_up()
    assert f"write gateway.table.{key} as the gateway has it" in caught.value.fix


TIMEOUTS = {"unreplied": "echo 120", "replied": "echo timeout: 120"}


def test_a_timeout_of_several_settings_is_read_from_each() -> None:
    count = control({"udp_timeout": "2min"}, read_udp_timeout=TIMEOUTS)
    count.set_up()
    assert [(setting.name, setting.value, setting.read) for setting in count.made] == [
        ("table.udp_timeout.unreplied", "120", "120"),
        ("table.udp_timeout.replied", "120", "120"),
    ]


def test_every_setting_with_another_timeout_is_named() -> None:
    with pytest.raises(TestBedError) as caught:
        control({"udp_timeout": "2min"}, read_udp_timeout=TIMEOUTS | {"replied": "echo 30"}).set_up()
    (difference,) = caught.value.problems
    assert difference.where == "gateway: table.udp_timeout"
    assert difference.what == "replied is 30 at the gateway, not 120"
    assert "gateway.table.udp_timeout" in difference.fix
    with pytest.raises(TestBedError) as caught:
        control({"udp_timeout": "1min"}, read_udp_timeout=TIMEOUTS).set_up()
    assert [problem.what.partition(" ")[0] for problem in caught.value.problems] == ["unreplied", "replied"]
    with pytest.raises(TestBedError, match=r"read_udp_timeout\.replied: printed no number"):
        control({"udp_timeout": "2min"}, read_udp_timeout=TIMEOUTS | {"replied": "echo none"}).set_up()


@pytest.mark.parametrize("value", [7, {}, {"a b": "echo 1"}, {"a": 7}, ["echo 1"]])
def test_readings_are_one_command_or_named_ones(value: object) -> None:
    with pytest.raises(ValidationError, match="is neither one command nor"):
        control(read_udp_timeout=value)


def test_clearing_runs_every_command_and_tells_what_failed(tmp_path: Path) -> None:
    control(clear_state=[f"touch {tmp_path}/a", f"touch {tmp_path}/b"]).clear_state()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with pytest.raises(TestBedError, match="gateway: clear_state"):
        control(clear_state="false").clear_state()


def ports_bed(tmp_path: Path, **more: Any) -> PortsTestBed:
    state = tmp_path / "state"
    commands = {
        "clear_state": f"echo 0 > {state}",
        "count_connections": f"cat {state}",
        "tear_down": f"echo 0 > {state}",
        "start": f"echo 5 > {state}; touch {tmp_path}/healthy",
        "stop": f"rm -f {tmp_path}/healthy",
        "health": f"test -e {tmp_path}/healthy",
        "describe": "echo gateway 1.0",
        "set_table_size": f"echo {{size}} > {tmp_path}/size",
    }
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    document = {
        "gateway": {"technology": "nat44", "pool": ["198.19.0.1"], "table": {"size": 77}, "control": commands | more},
        "testbed": {"kind": "ports"},
        **{
            name: {"port": "ring", "ipv4": {"address": address, "gateway": gateway}}
            for name, (address, gateway) in sides.items()
        },
    }
    bed = open_testbed(Campaign.model_validate_json(json.dumps(document)))
    assert isinstance(bed, PortsTestBed)
    return bed


def test_a_gateway_between_ports_is_controlled_through_its_shell(tmp_path: Path) -> None:
    (tmp_path / "healthy").touch()
    (tmp_path / "state").write_text("123\n")
    with ports_bed(tmp_path) as bed:
        assert (tmp_path / "size").read_text() == "77\n"
        assert bed.control.count_connections() == 123
        assert bed.control.tear_down() > 0
        assert bed.control.count_connections() == 0
        bed.can.check()
        (tmp_path / "healthy").unlink()
        with pytest.raises(TestBedError, match=r"gateway\.control: health"):
            bed.can.check()
        bed.control.restart()
        bed.can.check()
        assert bed.control.count_connections() == 5
        bed.control.clear_state()
        assert bed.control.count_connections() == 0
        described = bed.describe()
        assert "gateway 1.0" in described.configuration
        assert "table_size = 77" in described.configuration


def test_a_gateway_that_nothing_starts_cannot_be_restarted(tmp_path: Path) -> None:
    with pytest.raises(TestBedError, match="nothing can restart it"):
        ports_bed(tmp_path, start=[]).control.restart()


@pytest.fixture
def sysctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A setting of a machine made of a file."""
    monkeypatch.setattr(machine, "SYSCTL_FOLDER", tmp_path)
    monkeypatch.setattr(naming, "ROOT_FOLDER", tmp_path / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "STATE_FILE", naming.run_folder() / "settings.json")
    path = tmp_path / SETTING.replace(".", "/")
    path.parent.mkdir(parents=True)
    path.write_text("262144\n")
    return path


def test_settings_of_the_machine_are_shared_and_written_back(sysctl: Path) -> None:
    with naming.claimed() as first, naming.claimed() as second, naming.claimed() as third:
        machine.hold(first, {SETTING: "1000"})
        machine.hold(second, {SETTING: "1000"})
        machine.hold(second, {SETTING: "1000"})
        with pytest.raises(TestBedError, match="is 1000 for another test bed"):
            machine.hold(third, {SETTING: "2000"})
        machine.release(first)
        assert sysctl.read_text() == "1000"
        machine.release(second)
        machine.release(third)
        assert sysctl.read_text() == "262144"
        assert not machine.STATE_FILE.exists()


OWNER = """
import sys
from pathlib import Path
from gatemark.dut import naming
naming.ROOT_FOLDER = Path(sys.argv[1])
claim = naming.Claim(naming.new_name())
print(claim.name.stem, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_owner() -> Iterator[tuple[subprocess.Popen[str], naming.BedName]]:
    """Another process that owns a test bed; its name."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(naming.ROOT_FOLDER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as owner:
        assert owner.stdout is not None
        name = naming.parse_name(owner.stdout.readline().strip())
        assert name is not None
        try:
            yield owner, name
        finally:
            owner.kill()


def test_a_killed_process_holds_nothing(sysctl: Path) -> None:
    with another_owner() as (owner, name):
        machine.hold(name, {SETTING: "1000"})
        machine.release_leftovers()
        assert sysctl.read_text() == "1000"
        assert machine.leftovers() == {}
        owner.kill()
        owner.wait()
        assert machine.leftovers() == {SETTING: {"before": "262144", "now": "1000"}}
        with naming.claimed() as opened:
            machine.hold(opened, {SETTING: "2000"})
            assert sysctl.read_text() == "2000"
            machine.release(opened)
        assert sysctl.read_text() == "262144"


def test_ownership_is_a_lock_and_no_process_number(sysctl: Path) -> None:
    """A process of another PID namespace has no number here, and a dead one may have that of a living one."""
    with another_owner() as (owner, name):
        assert naming.is_owned(name)
        owner.kill()
        owner.wait()
        assert not naming.is_owned(name)
    with naming.claimed() as opened:
        assert naming.is_owned(opened)
        assert opened not in naming.leftovers()
    (opened.folder).mkdir()
    (opened.folder / naming.LOCK_FILE).touch()
    assert not naming.is_owned(opened)
    assert opened in naming.leftovers()


def test_a_child_that_was_just_forked_does_not_own_the_bed_of_its_dead_parent(
    sysctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "FORKED_SECONDS_MAX", 60.0)
    owner = os.fork()
    if owner == 0:
        naming.Claim(naming.new_name())
        if os.fork() == 0:
            time.sleep(0.2)  # between fork and exec on a busy machine
        os._exit(0)
    os.waitpid(owner, 0)
    assert owner in {name.pid for name in naming.leftovers()}


def test_a_setting_that_the_kernel_lacks_is_named(sysctl: Path) -> None:
    with naming.claimed() as opened:
        with pytest.raises(TestBedError, match="modprobe nf_conntrack"):
            machine.hold(opened, {SETTING: "1000", "net.netfilter.nosuch": "1"})
        assert sysctl.read_text() == "262144\n"
        assert not machine.STATE_FILE.exists()


def test_on_a_full_disk_nothing_is_set_and_everything_is_written_back(
    sysctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with naming.claimed() as first, naming.claimed() as second:
        machine.hold(first, {SETTING: "1000"})
        noted = machine.STATE_FILE.read_text()
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(TestBedError, match="No space left on device"):
                machine.hold(second, {SETTING: "1000", "net.other": "5"})
            assert machine.STATE_FILE.read_text() == noted
            assert sysctl.read_text() == "1000"
            machine.release(first)
            assert sysctl.read_text() == "262144"
        assert sorted(path.name for path in naming.run_folder().iterdir()) == sorted(
            [first.stem, second.stem, *([machine.STATE_FILE.name] if machine.STATE_FILE.exists() else [])]
        )


def test_a_setting_that_cannot_be_written_back_is_not_forgotten(sysctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with naming.claimed() as opened:
        machine.hold(opened, {SETTING: "1000"})
        with monkeypatch.context() as patch:
            patch.setattr(machine, "_write", _refuse)
            machine.release(opened)
        assert sysctl.read_text() == "1000"
        assert machine.leftovers() == {SETTING: {"before": "262144", "now": "1000"}}
        machine.release_leftovers()
        assert sysctl.read_text() == "262144"


def _refuse(name: str, _value: str) -> NoReturn:
    raise TestBedError(what="cannot be set", where=name, fix="")

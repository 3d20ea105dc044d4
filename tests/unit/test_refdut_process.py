"""The reference gateway's configuration and process; the process is a small Python script here."""

from __future__ import annotations

import os
import stat
import sys
import time
import tomllib
from pathlib import Path

import pytest

from gatemark.errors import TestBedError
from gatemark.refdut.document import Configuration, Delay, Flow, MapRule, Port, Selector, Table, Translation, Tunnel
from gatemark.refdut.process import RefDut, find_refdut

SCRIPT = """\
#!{python}
import json, os, socket, sys, tomllib

file = sys.argv[2]
settings = tomllib.load(open(file, "rb"))
if settings["seed"] == 99:
    print("seed 99 brings bad luck", file=sys.stderr)
    sys.exit(2)
listener = socket.socket(socket.AF_UNIX)
listener.bind(settings["control"])
listener.listen()
open(settings["left"]["port"].removeprefix("memif:").split(",")[0], "w").close()
print("noise", flush=True)
print(json.dumps({{"ready": True}}), flush=True)
counted = 0
while True:
    connection, _ = listener.accept()
    command = json.loads(connection.makefile().readline())
    answer = {{"ok": True}}
    match command["command"]:
        case "counts":
            answer |= {{"elapsed_ns": 5, "asked": counted}}
        case "reset_counts":
            counted = 0
        case "connections":
            answer |= {{"connections": 7}}
        case "reload":
            capacity = tomllib.load(open(file, "rb"))["forward"]["capacity"]
            if capacity == 13:
                wrong = {{"what": "is 13", "where": "forward.capacity", "fix": "write 14"}}
                answer = {{"ok": False, "errors": [wrong]}}
        case "die":
            print("I am dying", file=sys.stderr, flush=True)
            os._exit(3)
        case "noise":
            connection.sendall(b"no JSON\\n")
            continue
        case other:
            counted += 1
    connection.sendall((json.dumps(answer) + "\\n").encode())
"""


@pytest.fixture
def executable(tmp_path: Path) -> Path:
    path = tmp_path / "fake-refdut"
    path.write_text(SCRIPT.format(python=sys.executable), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "gateway"
    path.mkdir()
    return path


def configuration(folder: Path, **more: object) -> Configuration:
    settings: dict[str, object] = {
        "mode": "router",
        "control": str(folder / "control.sock"),
        "left": Port(port=f"memif:{folder / 'left.sock'},role=server", ipv4="198.18.0.1"),
        "right": Port(port=f"memif:{folder / 'right.sock'},role=server", ipv4="198.19.0.1"),
        **more,
    }
    return Configuration(**settings)  # type: ignore[arg-type]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_file_holds_what_was_set_and_nothing_else() -> None:
    whole = Configuration(
        mode="nat44",
        control="/run/x.sock",
        seed=7,
        cpu=1,
        inside="left",
        left=Port(port="memif:/run/l.sock", ipv4="198.18.0.1", mtu=1500, vlan=5),
        right=Port(port="memif:/run/r.sock", ipv4="198.19.0.1"),
        translation=Translation(
            pool=("198.19.0.1/32",), pool_ports=(1024, 65535), eam=(("192.0.2.0/24", "2001::/120"),)
        ),
        table=Table(size=10, overflow="evict_oldest", establishment_rate=5, udp_timeout_ns=300_000_000_000),
        forward=Flow(
            capacity=100,
            queue=0,
            flow_cost_ns=1_500,
            recovery_ns=200_000_000,
            delay=Delay(kind="periodic", values_ns=(10_000, 1_500)),
            keep_order=False,
            loss=(Selector(every=10), Selector(probability=0.5), Selector(first=3), Selector(window_ns=(0, 1))),
            reorder=((Selector(every=9), 3),),
            corrupt=(("hop_limit", Selector(every=7)),),
        ),
        reverse=Flow(delay=Delay(kind="uniform", values_ns=(1, 2_000_000_000)), duplicate=(Selector(first=1),)),
    )
    assert tomllib.loads(whole.to_toml()) == {
        "mode": "nat44",
        "control": "/run/x.sock",
        "seed": 7,
        "cpu": 1,
        "inside": "left",
        "left": {
            "port": "memif:/run/l.sock", "mtu": 1500, "vlan": 5, "ipv4": "198.18.0.1"
        },
        "right": {"port": "memif:/run/r.sock", "ipv4": "198.19.0.1"},
        "translation": {
            "pool": ["198.19.0.1/32"],
            "pool_ports": "1024-65535",
            "eam": [{"ipv4": "192.0.2.0/24", "ipv6": "2001::/120"}],
        },
        "table": {"size": 10, "overflow": "evict_oldest", "establishment_rate": 5, "udp_timeout": "300 s"},
        "forward": {
            "capacity": 100,
            "queue": 0,
            "flow_cost": "1500 ns",
            "recovery": "200 ms",
            "delay": {"kind": "periodic", "values": ["10 us", "1500 ns"]},
            "keep_order": False,
            "loss": [{"every": 10}, {"probability": 0.5}, {"first": 3}, {"from": "0 s", "to": "1 ns"}],
            "reorder": [{"every": 9, "by": 3}],
            "corrupt": [{"field": "hop_limit", "every": 7}],
        },
        "reverse": {
            "delay": {"kind": "uniform", "minimum": "1 ns", "maximum": "2 s"}, "duplicate": [{"first": 1}]
        },
    }  # fmt: skip


def test_the_file_holds_the_rules_of_a_map_gateway(folder: Path) -> None:
    basic = MapRule(ipv6="2001:db8::/40", ipv4="192.0.2.0/24", ea_bits=16, dmr="64:ff9b::/96")
    alone = MapRule(
        ipv6="2001:db8:100::/56",
        ipv4="198.51.100.1/32",
        ea_bits=0,
        dmr="64:ff9b::/96",
        psid_offset=4,
        psid_bits=8,
        psid=0,
        fmr=True,
    )
    edge = configuration(
        folder,
        mode="map_t_ce",
        inside="left",
        translation=Translation(domains=(basic, alone), end_user_prefix="2001:db8:12:3400::/56"),
    )
    written = tomllib.loads(edge.to_toml())
    assert (written["mode"], written["inside"]) == ("map_t_ce", "left")
    assert written["translation"] == {
        "domains": [
            {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": "64:ff9b::/96"},
            {
                "ipv6": "2001:db8:100::/56", "ipv4": "198.51.100.1/32", "ea_bits": 0, "psid_offset": 4,
                "psid_bits": 8, "psid": 0, "dmr": "64:ff9b::/96", "fmr": True
            },
        ],
        "end_user_prefix": "2001:db8:12:3400::/56",
    }  # fmt: skip


def test_the_file_holds_the_tunnels_of_a_relay(folder: Path) -> None:
    rule = MapRule(ipv6="2001:db8::/40", ipv4="192.0.2.0/24", ea_bits=16)
    tunnel = Tunnel(relay="2001:db8:ffff::1", hop_limit=255, traffic_class=0)
    relay = configuration(folder, mode="map_e_br", translation=Translation(domains=(rule,)), tunnel=tunnel)
    written = tomllib.loads(relay.to_toml())
    assert written["translation"] == {"domains": [{"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}]}
    assert written["tunnel"] == {"relay": "2001:db8:ffff::1", "hop_limit": 255, "traffic_class": 0}
    sixrd = configuration(
        folder,
        mode="sixrd_br",
        translation=Translation(domains=(MapRule(ipv6="2001:db8::/32", ipv4="10.0.0.0/8"),)),
        tunnel=Tunnel(relay="10.0.0.1", dont_fragment=True),
    )
    written = tomllib.loads(sixrd.to_toml())
    assert written["translation"] == {"domains": [{"ipv6": "2001:db8::/32", "ipv4": "10.0.0.0/8"}]}
    assert written["tunnel"] == {"relay": "10.0.0.1", "dont_fragment": True}
    assert tomllib.loads(configuration(folder, tunnel=Tunnel(relay="2001:db8::1")).to_toml())["tunnel"] == {
        "relay": "2001:db8::1"
    }


@pytest.mark.parametrize("ways", [{}, {"every": 2, "first": 1}])
def test_a_selector_has_exactly_one_way(ways: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Selector(**ways).to_document()  # type: ignore[arg-type]


def test_it_starts_answers_and_leaves_nothing_behind(executable: Path, folder: Path) -> None:
    with RefDut(configuration(folder), folder, executable=executable) as gateway:
        pid = gateway.pid
        assert pid is not None
        gateway.ask("clear")
        gateway.ask("reset", duration_ns=1_000_000)
        assert gateway.counts()["asked"] == 2
        gateway.reset_counts()
        assert gateway.counts()["asked"] == 0
        assert gateway.ask("connections")["connections"] == 7
        gateway.favour(is_measured=True)
        gateway.favour(is_measured=False)
        gateway.check()
    assert not is_alive(pid)
    assert list(folder.iterdir()) == []


def test_what_is_refused_is_told_as_the_gateway_says_it(executable: Path, folder: Path) -> None:
    with RefDut(configuration(folder, forward=Flow(capacity=12)), folder, executable=executable) as gateway:
        gateway.ask("reload")
        gateway.file.write_text(configuration(folder, forward=Flow(capacity=13)).to_toml(), encoding="utf-8")
        with pytest.raises(TestBedError) as caught:
            gateway.ask("reload")
        assert (caught.value.where, caught.value.what) == ("forward.capacity", "is 13")


def test_one_that_does_not_start_is_told_with_the_end_of_its_log(executable: Path, folder: Path) -> None:
    with pytest.raises(TestBedError) as caught:
        RefDut(configuration(folder, seed=99), folder, executable=executable).start()
    assert "exit status 2" in str(caught.value)
    assert "bad luck" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_one_that_dies_is_told(executable: Path, folder: Path) -> None:
    with RefDut(configuration(folder), folder, executable=executable) as gateway:
        with pytest.raises(TestBedError, match="no JSON"):
            gateway.ask("noise")
        with pytest.raises(TestBedError, match="is not a JSON object"):
            gateway.ask("die")
        until = time.monotonic() + 60
        while gateway.is_running and time.monotonic() < until:
            time.sleep(0.02)
        with pytest.raises(TestBedError, match=r"exit status 3; end of its log: I am dying"):
            gateway.check()
    assert list(folder.iterdir()) == []


def test_the_block_ends_it_whatever_happens(executable: Path, folder: Path) -> None:
    pids = []

    def interrupted() -> None:
        with RefDut(configuration(folder), folder, executable=executable, keep_log=True) as gateway:
            pids.append(gateway.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    pid = pids[0]
    assert pid is not None
    assert not is_alive(pid)
    assert [path.name for path in folder.iterdir()] == ["refdut.log"]


def test_an_executable_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEMARK_REFDUT", str(tmp_path / "nothing"))
    with pytest.raises(TestBedError, match="no executable there"):
        find_refdut()

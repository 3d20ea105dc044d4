"""Every refusal through the command line: one error with place and remedy, nothing sent or left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import NOBODY, Ended, gatemark, missing, ordinary_engine, run

from gatemark.cli.main import main
from gatemark.results.toml_text import to_toml

MISSING = missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
MISSING_FOR_NAMESPACES = missing("ip", "setpriv", root=True)
needs_namespaces = pytest.mark.skipif(bool(MISSING_FOR_NAMESPACES), reason=f"needs {', '.join(MISSING_FOR_NAMESPACES)}")

Tables = dict[str, Any]

LOOPBACK: Tables = {
    "gateway": {"technology": "router44"},
    "testbed": {"kind": "loopback"},
    "left": {"ipv4": {"address": "198.18.0.2"}},
    "right": {"ipv4": {"address": "198.19.0.2"}},
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    "trial": {"duration": "10ms", "settle": "0s", "learn": "0s", "drain": "10ms", "rest": "0s"},
    "frame_loss": {"rates": ["1k"]},
}
GATEWAYS = {"left": "198.18.0.1", "right": "198.19.0.1"}


def changed(tables: Tables, **changes: Any) -> Tables:
    """Return tables with values replaced; the key a__b is b in the table a, None removes it."""
    result: Tables = json.loads(json.dumps(tables))
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return result


TWO_PORTS = changed(
    LOOPBACK,
    testbed__kind="ports",
    left__ipv4__gateway=GATEWAYS["left"],
    right__ipv4__gateway=GATEWAYS["right"],
    left__port="af_packet:gm-g-left",
    right__port="af_packet:gm-g-right",
)
TRANSLATOR = changed(
    TWO_PORTS,
    gateway={
        "technology": "siit46",
        "prefix": "2001:2:0:6400::/96",
        "eam": [{"ipv4": "198.19.0.0/16", "ipv6": "2001:2:0:8000::/112"}],
    },
    right__ipv4=None,
    right__ipv6={"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    left__mtu=9218,
    right__mtu=9218,
)
HOSTS = {"offset": 2, "mode": "pseudorandom"}

BAD_FILES: dict[str, tuple[Tables, str, str]] = {
    "unknown kind of port": (changed(TWO_PORTS, left__port="af_paket:eth1"), "left.port", "af_packet"),
    "port without a name": (changed(TWO_PORTS, left__port="af_packet"), "left.port", "name"),
    "ports missing": (changed(TWO_PORTS, left__port=None), "left.port", "port"),
    "the same port twice": (changed(TWO_PORTS, right__port="af_packet:gm-g-left"), "right.port", "two ports"),
    "IPv6 hosts behind an IPv4 router": (
        changed(TWO_PORTS, left__ipv4=None, left__ipv6={"address": "2001:2::2", "gateway": "2001:2::1"}),
        "left.ipv4",
        "ipv4",
    ),
    "IPv6 address as IPv4": (changed(LOOPBACK, left__ipv4__address="2001:2::2"), "left.ipv4.address", "IPv4"),
    "sizes of the other family": (
        changed(LOOPBACK, traffic__frame_sizes={"family": "ipv6", "octets": [84]}),
        "traffic.frame_sizes",
        "ipv4",
    ),
    "overlapping hosts": (
        changed(
            LOOPBACK,
            left__ipv4__hosts=HOSTS | {"range": "2-254"},
            right__ipv4={"address": "198.18.0.2", "hosts": HOSTS | {"range": "100-300"}},
        ),
        "right.ipv4",
        "network",
    ),
    "a gateway among the hosts": (
        changed(TWO_PORTS, left__ipv4__hosts=HOSTS | {"range": "1-254"}),
        "left.ipv4.hosts.range",
        "198.18.0.1",
    ),
    "empty host range": (
        changed(LOOPBACK, left__ipv4__hosts=HOSTS | {"range": "254-2"}),
        "left.ipv4.hosts.range",
        "2-254",
    ),
    "empty port range": (
        changed(LOOPBACK, traffic__source_ports={"range": "65535-1024"}),
        "traffic.source_ports.range",
        "1024-65535",
    ),
    "port 0 to 70000": (
        changed(LOOPBACK, traffic__destination_ports={"range": "0-70000"}),
        "traffic.destination_ports.range",
        "65535",
    ),
    "size above the MTU": (
        changed(LOOPBACK, traffic__frame_sizes__octets=[2048], right__mtu=9218),
        "traffic.frame_sizes.octets",
        "mtu",
    ),
    "size below the smallest": (
        changed(LOOPBACK, traffic__frame_sizes__octets=[63]),
        "traffic.frame_sizes.octets",
        "64",
    ),
    "a translator would fragment": (
        changed(TRANSLATOR, traffic__frame_sizes__octets=[1518]),
        "traffic.frame_sizes.octets",
        "dont_fragment",
    ),
    "rate 0 in a list": (changed(LOOPBACK, frame_loss__rates=["0"]), "frame_loss.rates", "1"),
    "maximum 0": (
        changed(LOOPBACK, frame_loss=None, throughput={"maximum": 0, "resolution": "1k"}),
        "throughput.maximum",
        "1",
    ),
    "m above n": (changed(LOOPBACK, traffic__mix=["3/2"]), "traffic.mix", "m"),
    "n of 0": (changed(LOOPBACK, traffic__mix=["0/0"]), "traffic.mix", "n"),
    "benchmarking addresses under the well-known prefix": (
        changed(TRANSLATOR, gateway__prefix="64:ff9b::/96"),
        "gateway.prefix",
        "2001:2:0:6400::/96",
    ),
    "unknown key": (changed(LOOPBACK, traffic__frame_size=64), "traffic.frame_size", "frame_sizes"),
    "hop limit that does not survive": (changed(TWO_PORTS, traffic__hop_limit=1), "traffic.hop_limit", "10"),
}
"""What is wrong, a file that has it, the key that the error must name, and what its remedy must hold."""


def write(tmp_path: Path, tables: Tables) -> Path:
    """Write a campaign file."""
    path = tmp_path / "campaign.toml"
    path.write_text(to_toml(tables))
    return path


def at_once(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ended:
    """Run the command line within this process, which is quicker where nothing is started."""
    status = main([str(argument) for argument in arguments])
    output, words = capsys.readouterr()
    return Ended(status=status, output=output, words=words)


def errors_of(ended: Ended) -> list[tuple[str, str]]:
    """Return message and hint of every error; fails if anything else was written, or a hint is missing."""
    words = re.sub(r"^[^\n]* frames/s in each direction, [^\n]* with waits\n", "", ended.words).strip()
    matches = re.findall(r"^error: (.+?)\n\nhint: (.+?)(?=\n\nerror: |\Z)", words, re.DOTALL | re.MULTILINE)
    assert "Traceback" not in words
    assert words.count("error: ") == len(matches) == words.count("hint: "), words
    assert words.startswith("error: "), words
    return matches


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_alike_by_every_command(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, key, remedy = BAD_FILES[name]
    file = write(tmp_path, tables)
    output = tmp_path / "result"
    told = {}
    commands: list[list[str | Path]] = [
        ["run", file, "--output", output], ["plan", file], ["trial", file, "--rate", "1k"],
    ]  # fmt: skip
    for arguments in commands:
        ended = at_once(capsys, *arguments)
        assert (ended.status, ended.output) == (2, ""), ended
        told[str(arguments[0])] = errors_of(ended)
    ((message, hint),) = told["plan"]
    assert message.startswith(f"{file}: {key}"), message
    assert remedy.casefold() in (message + hint).casefold()
    assert told["run"] == told["trial"] == told["plan"]
    assert not output.exists()


def test_errors_as_json_and_all_at_once(tmp_path: Path) -> None:
    file = write(
        tmp_path, changed(LOOPBACK, traffic__mix=["3/2"], left__ipv4__address="2001:2::2", frame_loss__rates=["0"])
    )
    ended = gatemark("run", file, "--json")
    assert ended.status == 2
    where = [problem["where"] for problem in ended.document["errors"]]
    assert len(where) == 3
    assert all(set(problem) == {"what", "where", "fix"} and problem["fix"] for problem in ended.document["errors"])
    assert ended.words == ""


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--rate", "0"], "--rate"),
        (["--rate", "many"], "--rate"),
        (["--rate", "1k", "--duration", "0s"], "--duration"),
        (["--rate", "1k", "--mix", "3/2"], "--mix"),
        (["--rate", "1k", "--size", "2048"], "traffic.frame_sizes.octets"),
        (["--rate", "1k", "--direction", "sideways"], "--direction"),
    ],
)
def test_bad_arguments_of_a_trial_are_refused(
    tmp_path: Path, arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = at_once(capsys, "trial", write(tmp_path, changed(LOOPBACK, right__mtu=9218)), *arguments)
    assert (ended.status, ended.output) == (2, "")
    ((message, _),) = errors_of(ended)
    assert key in message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    ended = gatemark("run", tmp_path / "nothing.toml")
    assert (ended.status, ended.output) == (2, "")
    assert len(errors_of(ended)) == 1


@contextlib.contextmanager
def namespace_with_ports() -> Iterator[list[str]]:
    """Make a namespace with two ports; the left one carries the default route. Yield the prefix of commands in it."""
    name = f"gm-g-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    run("ip", "netns", "add", name)
    try:
        for side in ("left", "right"):
            run("ip", "-n", name, "link", "add", f"gm-g-{side}", "type", "veth", "peer", "name", f"gm-g-{side}-far")
            for end in (f"gm-g-{side}", f"gm-g-{side}-far"):
                run("ip", "-n", name, "link", "set", end, "up")
        run("ip", "-n", name, "address", "add", "192.0.2.1/24", "dev", "gm-g-left")
        run("ip", "-n", name, "route", "add", "default", "via", "192.0.2.254")
        yield inside
    finally:
        run("ip", "netns", "delete", name)


def sent_frames(inside: list[str]) -> dict[str, int]:
    """Return how many frames each port has sent."""
    links = json.loads(run(*inside, "ip", "-s", "-j", "link", "show"))
    return {link["ifname"]: link["stats64"]["tx"]["packets"] for link in links if link["ifname"].startswith("gm-g")}


@needs_namespaces
@pytest.mark.parametrize("command", ["run", "trial", "doctor"])
def test_the_interface_of_the_default_route_is_refused(tmp_path: Path, command: str) -> None:
    file, output = write(tmp_path, TWO_PORTS), tmp_path / "result"
    options: dict[str, list[str | Path]] = {
        "run": ["--output", output], "trial": ["--rate", "1k"], "doctor": ["--json"],
    }  # fmt: skip
    with namespace_with_ports() as inside:
        run(*inside, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        before = sent_frames(inside)
        ended = gatemark(command, file, *options[command], prefix=inside)
        assert sent_frames(inside) == before
    if command == "doctor":
        assert ended.status == 1
        bad = [finding for finding in ended.document if finding["status"] == "failed"]
        assert [finding["check"] for finding in bad] == ["port left"]
        assert "gm-g-left carries the default route" in bad[0]["observed"]
        assert "use another port" in bad[0]["remedy"]
        return
    assert (ended.status, ended.output) == (2, "")
    ((message, hint),) = errors_of(ended)
    assert "left.port: gm-g-left carries the default route" in message
    assert "use another port" in hint
    assert not output.exists()


@needs_namespaces
@pytest.mark.parametrize("command", ["run", "trial"])
def test_an_interface_that_is_not_there_is_refused(tmp_path: Path, command: str) -> None:
    file, output = write(tmp_path, changed(TWO_PORTS, left__port="af_packet:gm-g-gone")), tmp_path / "result"
    arguments = ["--output", output] if command == "run" else ["--rate", "1k"]
    with namespace_with_ports() as inside:
        ended = gatemark(command, file, *arguments, prefix=inside)
    assert (ended.status, ended.output) == (2, "")
    ((message, hint),) = errors_of(ended)
    assert "left.port: there is no interface gm-g-gone" in message
    assert "gm-g-right" in hint
    assert not output.exists()


def as_nobody(engine: Path, file: Path, *arguments: str | Path) -> Ended:
    """Run a command without rights. Python must be allowed to read the checkout; elsewhere the test is left out."""
    prefix = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--",
        "env",
        f"GATEMARK_ENGINE={engine}",
    ]
    probe = subprocess.run(
        [*prefix, sys.executable, "-c", "import gatemark.cli.main"], capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("an ordinary user may not read this checkout")
    return gatemark(*arguments[:1], file, *arguments[1:], prefix=prefix, cwd=file.parent)


@needs_namespaces
@pytest.mark.parametrize(
    ("tables", "status", "needs"),
    [
        ({"testbed": {"kind": "netns", "recipe": "linux-router4"}, "frame_loss": {"rates": ["1k"]}}, 1, "need root"),
        (changed(TWO_PORTS, left__port="tap:gm-g-one", right__port="tap:gm-g-two"), 2, "needs root"),
    ],
)
def test_missing_rights_are_told_before_anything_is_made(tables: Tables, status: int, needs: str) -> None:
    with ordinary_engine() as (_, folder):
        file = folder / "campaign.toml"
        file.write_text(to_toml(tables))
        file.chmod(0o644)
        for arguments in (["run", "--output", folder / "result"], ["trial", "--rate", "1k"]):
            ended = as_nobody(folder / "engine", file, *arguments)
            assert (ended.status, ended.output) == (status, "")
            for message, hint in errors_of(ended):
                assert needs in message
                assert "root" in hint
        assert not (folder / "result").exists()


@needs_namespaces
def test_doctor_says_why_the_well_known_prefix_is_no_good(tmp_path: Path) -> None:
    file = write(tmp_path, changed(TRANSLATOR, gateway__prefix="64:ff9b::/96"))
    ended = gatemark("doctor", file, "--json")
    assert ended.status != 0
    told = ended.output + ended.words
    assert "RFC 6052" in told
    assert "2001:2:0:6400::/96" in told

"""The reference gateway goes on, whatever arrives at its control socket and however much memory it is asked to take."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing
from tests.system.reloading import reload

from gatemark.errors import TestBedError
from gatemark.refdut.document import Configuration, Port, Table, Translation
from gatemark.refdut.process import RefDut

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}"),
]

MEBIBYTE = 1 << 20
TABLE = Table(size=1000)
LARGE = Table(size=5_000_000)
"""Takes 600 MiB."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RefDut]:
    configuration = Configuration(
        mode="nat44",
        control=str(tmp_path / "control.sock"),
        inside="left",
        left=Port(port=f"memif:{tmp_path / 'left.sock'},role=server", ipv4="198.18.0.1"),
        right=Port(port=f"memif:{tmp_path / 'right.sock'},role=server", ipv4="198.19.0.1"),
        translation=Translation(pool=("198.19.0.1/32",)),
        table=TABLE,
    )
    with RefDut(configuration, tmp_path) as running:
        yield running


def answers(gateway: RefDut, *lines: bytes) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as read:
        connection.settimeout(60)
        connection.connect(gateway.configuration.control)
        connection.sendall(b"".join(line + b"\n" for line in lines))
        return [json.loads(read.readline()) for _ in lines]


def allow_more_memory(gateway: RefDut, mebibytes: int) -> None:
    """Allow the gateway this much address space in addition to what it has."""
    assert gateway.pid is not None
    pages = int(Path(f"/proc/{gateway.pid}/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + mebibytes * MEBIBYTE
    resource.prlimit(gateway.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b'{"command":"\xc3\x28"}',
        b"\x00",
        "ä".encode() * 60,  # an error message that is cut within a character
        b"x" * 79 + "€".encode(),
        b"[" * 60_000,
        b'{"command":"' + "ö".encode() * 1000 + b'"}',
    ],
)
def test_octets_that_are_no_text_are_refused(gateway: RefDut, line: bytes) -> None:
    refused, counted = answers(gateway, line, b'{"command":"connections"}')
    assert not refused["ok"]
    assert refused["errors"][0]["fix"]
    assert counted == {"ok": True, "connections": 0}


def test_a_table_for_which_memory_is_missing_is_refused_and_the_old_one_stays(gateway: RefDut) -> None:
    before = gateway.configuration
    allow_more_memory(gateway, 64)
    for large in (
        replace(before, table=LARGE),  # the same translation: the table would grow
        replace(before, table=LARGE, translation=Translation(pool=("198.19.0.2/32",))),
    ):
        with pytest.raises(TestBedError) as caught:
            reload(gateway, large)
        assert caught.value.where == "table.size"
        assert "5000000 connections" in str(caught.value)
        assert gateway.is_running
        assert gateway.counts()["connections"]["capacity"] == TABLE.size
    allow_more_memory(gateway, 1000)
    reload(gateway, replace(before, table=LARGE))
    assert gateway.counts()["connections"]["capacity"] == LARGE.size


@pytest.mark.parametrize("kind", ["endless", "directory", "too long", "not text"])
def test_a_file_that_is_no_configuration_is_refused(gateway: RefDut, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "other.toml"
    match kind:
        case "endless":
            path = Path("/dev/zero")
        case "directory":
            path = tmp_path
        case "too long":
            path.write_text("#" * MEBIBYTE + "\n", encoding="ascii")
        case _:
            path.write_bytes(b'mode = "\xff"\n')
    allow_more_memory(gateway, 500)  # an endless file must not be read until nothing is left
    with pytest.raises(TestBedError) as caught:
        gateway.ask("load", path=str(path))
    assert str(path) in str(caught.value)
    assert gateway.ask("connections")["connections"] == 0

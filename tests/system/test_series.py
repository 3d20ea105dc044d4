"""A series on real gateways in namespaces: stopped, killed and resumed; a gateway that collapses. Needs root."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.machine import command_line, gatemark, missing

from gatemark.dut import naming
from gatemark.dut.cleanup import remove_leftovers
from gatemark.dut.recipe import recipe_text

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FRAME_SIZES = """
name = "sizes"
repetitions = 3
[testbed]
kind = "netns"
recipe = "linux-router4"
[left]
mtu = 1500
[right]
mtu = 1500
[traffic]
frame_sizes = {family = "ipv4"}
[trial]
duration = "200ms"
settle = "0s"
learn = "50ms"
drain = "50ms"
rest = "0s"
[validity]
retries = 0
suspect_retries = 0
lateness_max = "5s"
[frame_loss]
rates = ["500"]
[[vary]]
"traffic.frame_sizes.octets" = [64, 512]
"""
CONNECTIONS = """
name = "connections"
repetitions = 1
[testbed]
kind = "netns"
recipe = "fragile.toml"
[left]
mtu = 1500
[right]
mtu = 1500
[traffic]
frame_sizes = {family = "ipv4", octets = [64]}
[trial]
duration = "200ms"
settle = "0s"
learn = "50ms"
drain = "50ms"
rest = "0s"
[validity]
retries = 20
lateness_max = "5s"
[connections]
rate = "1k"
timeout = "100ms"
gap = "100ms"
[frame_loss]
rates = ["500"]
[[vary]]
"connections.count" = [100, 200, 300]
"gateway.table.udp_timeout" = ["60s", "61s", "62s"]
"""
PATIENCE_S = 60


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def lines(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.read_bytes().count(b"\n")
    return 0


def series(folder: Path) -> Any:
    return json.loads((folder / "series.json").read_text())


def beds_of(process: int) -> list[str]:
    """Namespaces of the test bed that a process made."""
    names = (naming.parse_name(entry) for entry in os.listdir(naming.NETNS_FOLDER))
    return [str(name) for name in names if name is not None and name.pid == process]


def test_a_series_is_stopped_and_killed_and_resumed(tmp_path: Path) -> None:
    file, output = tmp_path / "sizes.toml", tmp_path / "out"
    file.write_text(FRAME_SIZES)
    first, second = (output / name / "trials.jsonl" for name in ("01-octets_64", "02-octets_512"))

    with subprocess.Popen(
        command_line("run", file, "--output", output), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: lines(first) >= 1, process)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, words
    assert f"gatemark run --resume {output}\n" in f"{words}\n"
    assert beds_of(process.pid) == []
    made_before = lines(first)
    if made_before < 3:  # else it was stopped a little later, on a busy machine
        assert [column["outcome"] for column in series(output)["columns"]] == ["missing", "missing"]

    with subprocess.Popen(
        command_line("run", "--resume", output), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: lines(second) >= 1, process)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    assert made_before >= 1
    assert lines(first) == 3
    remove_leftovers()
    assert beds_of(process.pid) == []
    kept = second.read_bytes()
    kept = kept[: kept.rindex(b"\n") + 1]

    whole = gatemark("run", "--resume", output, "--json")
    assert whole.status in (0, 1), whole.words
    assert second.read_bytes().startswith(kept)  # no trial that was finished is made again
    document = whole.document
    assert document == series(output)
    assert document["status"] == "complete"
    assert [(column["outcome"], column["trials"]) for column in document["columns"]] == [("measured", 3)] * 2
    records = [list(read_journal(journal)) for journal in (first, second)]
    assert [[record.order.trial_number for record in column] for column in records] == [[1, 2, 3]] * 2
    counts = [any(record.is_decisive for record in column) for column in records]
    assert (whole.status == 0) is any(counts), "each load is tried once, however busy the machine is"
    if all(counts):
        (foreground, *_) = (metric for metric in document["metrics"] if metric["quantity"] == "frame loss rate")
        assert [figure["where"]["frame_size_ipv4"] for figure in foreground["figures"]] == [64, 512]
    assert "frame loss rate" in (output / "series.csv").read_text()


def test_a_gateway_that_collapses_is_a_column_and_larger_ones_are_skipped(tmp_path: Path) -> None:
    """The gateway counts as dead while it holds more than 150 connections."""
    file, output = tmp_path / "connections.toml", tmp_path / "out"
    file.write_text(CONNECTIONS)
    recipe = recipe_text("nft-nat44")
    health = next(line for line in recipe.splitlines() if line.startswith("health"))
    (tmp_path / "fragile.toml").write_text(recipe.replace(health, 'health = ["test $(conntrack -C) -le 150"]'))
    ended = gatemark("run", file, "--output", output, "--json")
    first = list(read_journal(next(output.glob("01-*/trials.jsonl"))))
    assert (ended.status == 0) is any(record.is_decisive for record in first), ended.words
    assert [column["outcome"] for column in ended.document["columns"]] == ["measured", "collapsed", "skipped"]
    assert "conntrack -C" in ended.document["columns"][1]["reason"]
    assert "column 2 of 3, count 200: gateway collapsed" in ended.words
    timeouts = [column["parameters"]["udp_timeout_ns"] for column in ended.document["columns"]]
    assert timeouts == [60 * 10**9, 61 * 10**9, 62 * 10**9]

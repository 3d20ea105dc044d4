"""Ports on drivers of cards: an emulated machine has two of a kind, joined by a wire whose plugs can be pulled.

Its processors are programs too, so only counts are compared: what the Tester was late with, it says itself.
"""

from __future__ import annotations

import functools
import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from machine import missing

ROOT = Path(__file__).parents[2]
MACHINE = ROOT / "scripts" / "emulated-machine"
DRIVERS = {"e1000": "net_e1000_em", "e1000e": "net_e1000_em", "virtio": "net_virtio", "vmxnet3": "net_vmxnet3"}
COUNTS_MISSES = ("e1000", "vmxnet3")
"""Cards that say how many frames found their ring full."""
IN_MACHINE = [str(ROOT / ".venv" / "bin" / "python"), "tests/system/cards_in_machine.py"]

Document = dict[str, Any]


@functools.cache
def why_not() -> str:
    """Return why no machine can be made here; empty if one can."""
    lacking = missing("apt-get", "dpkg-deb", "depmod", "setpriv")
    if lacking:
        return f"an emulated machine needs {', '.join(lacking)}"
    if not Path(IN_MACHINE[0]).exists():
        return "an emulated machine needs the environment .venv of this checkout"
    fetched = subprocess.run([MACHINE, "--fetch"], capture_output=True, text=True, timeout=200, check=False)
    return "" if fetched.returncode == 0 else f"no emulated machine: {fetched.stderr.strip()}"


@pytest.fixture(autouse=True)
def needs_a_machine(endures: bool) -> None:
    if not endures:
        pytest.skip("an emulated machine takes minutes, and 120 MB of packages once; make endure")
    if why_not():
        pytest.skip(why_not())


def in_machine(
    kind: str, out: Path, *command: str, queues: int = 1, seconds: int = 280
) -> subprocess.CompletedProcess[str]:
    """Run a command in a machine with two cards of a kind."""
    return subprocess.run(
        [MACHINE, "--cards", kind, "--queues", str(queues), "--seconds", str(seconds), "--out", out, "--", *command],
        capture_output=True, text=True, timeout=seconds + 60, cwd=ROOT, check=False,
    )  # fmt: skip


def looked_at(kind: str, out: Path, *looks: str, queues: int = 1) -> list[Document]:
    """Return what was found of each thing that is looked at."""
    done = in_machine(kind, out, *IN_MACHINE, *looks, queues=queues, seconds=280 * len(looks))
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((out / f"{look}.json").read_text()) for look in looks]


def losses(trial: Document) -> dict[str, int]:
    """Return the frames of each direction that did not arrive right; each that was to be offered was."""
    counts = {direction["direction"]: direction["foreground"] for direction in trial["report"]["directions"]}
    assert all(count["offered"] == count["intended"] > 0 for count in counts.values())
    assert all(count["duplicate"] == count["faulty"] == count["late"] == 0 for count in counts.values())
    return {direction: count["lost"] for direction, count in counts.items()}


def assert_all_arrived(trial: Document) -> None:
    assert set(losses(trial).values()) == {0}
    assert all(port["link_up"] and port["link_losses"] == 0 for port in trial["report"]["ports"].values())
    assert not any(sum(port["own_drops"].values()) for port in trial["report"]["ports"].values())


def assert_says(facts: Document, words: str) -> None:
    assert words in facts.get("error", ""), facts


@pytest.mark.endure
@pytest.mark.parametrize("kind", DRIVERS)
def test_frames_cross_and_a_pulled_cable_is_named(kind: str, tmp_path: Path) -> None:
    """No frame is lost on the wire; those lost without a link are never the gateway's."""
    (facts,) = looked_at(kind, tmp_path, "one queue")
    for side in ("left", "right"):
        assert facts["opened"][side]["driver"] == DRIVERS[kind]
        assert facts["opened"][side]["link_up"] is True
    assert facts["opened"]["huge_pages"] is True
    assert_all_arrived(facts["trial"])
    assert_all_arrived(facts["fast"])
    moment = facts["pulled for a moment"]
    assert losses(moment)["reverse"] > 0
    assert "right port: the link went down once during the trial and came up again" in moment["validity"]["reasons"]
    assert moment["verdict"] is None
    assert_all_arrived(facts["plugged again"])
    assert_says(facts["pulled"], "left port: the link went down and did not come back")
    assert (facts["link"]["left"]["link_up"], facts["link"]["right"]["link_up"]) == (False, True)
    assert_says(facts["opened without link"], "left port pci:0000:00:08.0: no link within 10000 ms")


@pytest.mark.endure
@pytest.mark.parametrize("kind", DRIVERS)
def test_frames_that_a_slow_receiver_misses_are_the_testers(kind: str, tmp_path: Path) -> None:
    facts, unready = looked_at(kind, tmp_path, "starved", "no huge pages")
    lost = losses(facts["trial"])["forward"]
    missed = facts["trial"]["report"]["ports"]["right"]["own_drops"]["rx_missed"]
    assert lost == missed
    assert (missed > 0) == (kind in COUNTS_MISSES)
    if missed:
        reason = f"right port: {missed} frames were lost on the Tester's side (rx_missed)"
        assert reason in facts["trial"]["validity"]["reasons"]
        assert facts["trial"]["verdict"] is None
    assert_says(unready, "the card 0000:00:08.0 needs ")
    assert_says(unready, " MiB of huge pages; 0 MiB are free")


@pytest.mark.endure
def test_a_card_with_queues_that_share_its_frames(tmp_path: Path) -> None:
    """The card spreads what arrives over its queues (RSS), so there is one for each worker."""
    (facts,) = looked_at("virtio", tmp_path, "several queues", queues=2)
    assert facts["opened"]["queues"] == {"left": 2, "right": 2}
    assert_all_arrived(facts["trial"])


CAMPAIGN = """
repetitions = 1
[gateway]
technology = "router44"
hop_limit_decrement = 0
[testbed]
kind = "loopback"
cores = [1, 2]
[left]
port = "pci:0000:00:08.0"
ipv4 = {address = "198.18.0.2"}
[right]
port = "pci:0000:00:09.0"
ipv4 = {address = "198.19.0.2"}
[traffic]
frame_sizes = {family = "ipv4", octets = [64, 1518]}
[trial]
duration = "1s"
settle = "0s"
learn = "100ms"
drain = "1s"
rest = "0s"
[validity]
retries = 10
lateness_max = "5s"
[frame_loss]
rates = ["500"]
"""


@pytest.mark.endure
@pytest.mark.parametrize("kind", DRIVERS)
def test_the_commands_work_on_cards(kind: str, tmp_path: Path) -> None:
    (tmp_path / "cards.toml").write_text(CAMPAIGN)
    commands = f"""
        set -e
        gatemark={ROOT}/.venv/bin/gatemark
        cp "$OUT/cards.toml" /root/cards.toml
        $gatemark doctor /root/cards.toml --json > "$OUT/doctor"
        $gatemark run /root/cards.toml --output /root/result --json > "$OUT/run" || [ $? = 1 ]
        cp /root/result/trials.jsonl "$OUT"
        XDG_STATE_HOME=/root/state $gatemark selftest --quick --json /root/cards.toml > "$OUT/selftest" || [ $? = 1 ]
    """
    done = in_machine(kind, tmp_path, "bash", "-c", textwrap.dedent(commands), seconds=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {row["check"]: row["status"] for row in json.loads((tmp_path / "doctor").read_text())["checks"]}
    assert findings["gateway path, forward"] == findings["gateway path, reverse"] == "ok"
    trials = [json.loads(line)["record"] for line in (tmp_path / "trials.jsonl").read_text().splitlines()[1:]]
    assert trials and all(set(losses(trial).values()) == {0} for trial in trials)
    selftest = json.loads((tmp_path / "selftest").read_text())
    assert selftest["port_kind"] == "pci" and selftest["entries"]

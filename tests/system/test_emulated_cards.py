"""Ports on drivers of cards: an emulated machine has two of a kind, joined by a wire whose plugs can be pulled.

Its processors are programs too, so only counts are compared: what the Tester was late with, it says itself.
"""

from __future__ import annotations

import functools
import json
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.system.machine import missing

pytestmark = pytest.mark.nightly("an emulated machine takes minutes, and 120 MB of packages once")
ROOT = Path(__file__).parents[2]
MACHINE = ROOT / "scripts" / "emulated-machine"
DRIVERS = {"e1000": "net_e1000_em", "e1000e": "net_e1000_em", "virtio": "net_virtio", "vmxnet3": "net_vmxnet3"}
COUNTS_MISSES = ("e1000", "vmxnet3")
"""Cards that say how many frames found their ring full."""
IN_MACHINE = [str(ROOT / ".venv" / "bin" / "python"), "tests/system/cards_in_machine.py"]

LINE_RATES = {"e1000": 10**9, "vmxnet3": 10**10}
"""As the emulated cards report them, bit/s."""

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
def needs_a_machine() -> None:
    if why_not():
        pytest.skip(why_not())


def in_machine(
    kind: str, out: Path, *command: str, options: Sequence[str] = (), seconds: int = 280
) -> subprocess.CompletedProcess[str]:
    """Run a command in a machine with two cards of a kind."""
    return subprocess.run(
        [MACHINE, "--cards", kind, *options, "--seconds", str(seconds), "--out", out, "--", *command],
        capture_output=True, text=True, timeout=seconds + 60, cwd=ROOT, check=False,
    )  # fmt: skip


def looked_at(kind: str, out: Path, *looks: str, options: Sequence[str] = ()) -> list[Document]:
    """Return what was found of each thing that is looked at."""
    done = in_machine(kind, out, *IN_MACHINE, *looks, options=options, seconds=280 * len(looks))
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((out / f"{look}.json").read_text()) for look in looks]


def losses(trial: Document) -> dict[str, int]:
    """Return the frames of each direction that did not arrive right; each that was to be offered was."""
    counts = {direction["direction"]: direction["foreground"] for direction in trial["report"]["directions"]}
    assert all(count["offered"] == count["intended"] > 0 for count in counts.values())
    assert all(count["duplicate"] == count["faulty"] == count["late"] == 0 for count in counts.values())
    by_queue = received_by_queue(trial)
    assert {"forward": sum(by_queue["right"]), "reverse": sum(by_queue["left"])} == {
        "forward": 0, "reverse": 0, **{direction: count["received"] for direction, count in counts.items()}
    }  # fmt: skip
    return {direction: count["lost"] for direction, count in counts.items()}


def assert_all_arrived(trial: Document) -> None:
    assert set(losses(trial).values()) == {0}
    assert all(port["link_up"] and port["link_losses"] == 0 for port in trial["report"]["ports"].values())
    assert not any(sum(port["own_drops"].values()) for port in trial["report"]["ports"].values())


def assert_says(facts: Document, words: str) -> None:
    assert words in facts.get("error", ""), facts


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


@pytest.mark.parametrize("kind", DRIVERS)
def test_frames_that_a_slow_receiver_misses_are_the_testers(kind: str, tmp_path: Path) -> None:
    facts, unready = looked_at(kind, tmp_path, "starved", "no huge pages")
    lost = losses(facts["trial"])["forward"]
    uncounted = "the driver does not count frames that find its ring full: they look as if the gateway had lost them"
    assert (f"right port: {uncounted}" in facts["why"]) == (kind == "virtio")
    missed = facts["trial"]["report"]["ports"]["right"]["own_drops"]["rx_missed"]
    assert lost == missed
    assert (missed > 0) == (kind in COUNTS_MISSES)
    if missed:
        reason = f"right port: {missed} frames were lost on the Tester's side (rx_missed)"
        assert reason in facts["trial"]["validity"]["reasons"]
        assert facts["trial"]["verdict"] is None
    assert_says(unready, "the card 0000:00:08.0 needs ")
    assert_says(unready, " MiB of huge pages; 0 MiB are free")


def test_a_card_with_queues_that_share_its_frames(tmp_path: Path) -> None:
    """The card spreads what arrives over its queues (RSS), so there is one for each worker."""
    (facts,) = looked_at("virtio", tmp_path, "several queues", options=["--queues", "2"])
    assert facts["opened"]["queues"] == {"left": 2, "right": 2}
    assert_all_arrived(facts["trial"])
    for by_queue in received_by_queue(facts["trial"]).values():
        assert min(by_queue) > sum(by_queue) / 4, "a thousand pairs of ports"


def received_by_queue(trial: Document) -> dict[str, list[int]]:
    """Return the frames that each queue of each port received."""
    return {side: port["received_by_queue"] for side, port in trial["report"]["ports"].items()}


@pytest.mark.parametrize(("kind", "options"), [("vmxnet3", []), ("virtio", ["--queues", "2", "--no-rss"])])
def test_a_card_that_spreads_nothing_gets_one_queue(kind: str, options: list[str], tmp_path: Path) -> None:
    """Its driver has more, but frames would arrive on one of them, or nobody knows where."""
    (facts,) = looked_at(kind, tmp_path, "several queues", options=options)
    assert facts["opened"]["queues"] == {"left": 1, "right": 1}
    reason = "1 queue, the driver does not spread frames by address and port (RSS): one unless more are requested"
    assert [f"{side} port: {reason}" in facts["opened"]["why"] for side in ("left", "right")] == [True, True]
    assert_all_arrived(facts["trial"])


def test_queues_that_get_no_frames_do_no_harm(tmp_path: Path) -> None:
    """QEMU's vmxnet3 gives all frames to its first queue."""
    (facts,) = looked_at("vmxnet3", tmp_path, "two queues")
    assert facts["opened"]["queues"] == {"left": 2, "right": 2}
    assert_all_arrived(facts["trial"])
    assert [received[1] for received in received_by_queue(facts["trial"]).values()] == [0, 0]


@pytest.mark.parametrize("kind", ["e1000", "e1000e", "virtio"])
def test_more_queues_than_the_card_has_are_refused(kind: str, tmp_path: Path) -> None:
    """Also where the driver says that it has them, as those of the first two do: what is sent on the second is lost."""
    (facts,) = looked_at(kind, tmp_path, "two queues")
    assert_says(facts, "2 queues requested, but the driver has 1")


@pytest.mark.parametrize("kind", ["e1000e", "virtio"])
def test_cards_behind_an_iommu(kind: str, tmp_path: Path) -> None:
    """As vfio hands them over."""
    (facts,) = looked_at(kind, tmp_path, "one queue", options=["--driver", "vfio-pci"])
    assert facts["opened"]["left"]["driver"] == DRIVERS[kind]
    assert_all_arrived(facts["trial"])
    assert_says(facts["pulled"], "left port: the link went down and did not come back")


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
STATEFUL = (
    CAMPAIGN.replace("router44", "nat44").replace("hop_limit_decrement = 0\n", "")
    + """
[connections]
count = [200]
rate = "200"
timeout = "1s"
gap = "100ms"
"""
)
"""With so few connections a self-test does not take hours on processors that are programs."""


@pytest.mark.parametrize("kind", DRIVERS)
def test_the_commands_work_on_cards(kind: str, tmp_path: Path) -> None:
    """A user's way: doctor, campaigns without and with connections, the self-test."""
    (tmp_path / "cards.toml").write_text(CAMPAIGN)
    (tmp_path / "stateful.toml").write_text(STATEFUL)
    commands = f"""
        set -e
        export XDG_STATE_HOME="$HOME/state"
        gatemark={ROOT}/.venv/bin/gatemark
        cp "$OUT"/*.toml "$HOME"
        cd "$HOME"
        $gatemark doctor cards.toml --json > "$OUT/doctor"
        for name in cards stateful; do
            $gatemark run $name.toml --output $name --json > "$OUT/$name.run"
            cp $name/trials.jsonl "$OUT/$name.trials"
            cp $name/provenance.json "$OUT/$name.provenance"
        done
        $gatemark selftest --quick --json stateful.toml > "$OUT/selftest" || [ $? = 1 ]
    """
    done = in_machine(kind, tmp_path, "bash", "-c", textwrap.dedent(commands), seconds=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {row["check"]: row["status"] for row in json.loads((tmp_path / "doctor").read_text())}
    names = ("port left", "port right", "gateway path, forward", "gateway path, reverse")
    assert [findings[name] for name in names] == ["ok"] * 4
    for name in ("cards", "stateful"):
        provenance = json.loads((tmp_path / f"{name}.provenance").read_text())
        assert provenance["sessions"][0]["left"]["driver"] == DRIVERS[kind]
        assert provenance["line_bits_per_second"] == LINE_RATES.get(kind, provenance["line_bits_per_second"])
        trials = [json.loads(line) for line in (tmp_path / f"{name}.trials").read_text().splitlines()]
        valid = [trial for trial in trials if trial["verdict"] is not None]
        assert len(valid) == 2 and all(trial["verdict"]["passed"] for trial in valid)
        assert all(set(losses(trial).values()) == {0} for trial in valid)
    selftest = json.loads((tmp_path / "selftest").read_text())
    assert selftest["port_kind"] == "pci"
    if kind == "e1000":  # whose counter of missed frames is never reset: all trials after the first miss are invalid
        assert all(entry["frames_per_second"] or entry["limited"] for entry in selftest["entries"])
        return
    assert all(entry["frames_per_second"] > 0 for entry in selftest["entries"])
    assert all(delay["negative"] == 0 < delay["samples"] for delay in selftest["self_latency"])

"""The self-test as a document, kept for each machine and kind of port until the next one replaces it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from gatemark.dut.port_name import NET_FOLDER
from gatemark.errors import ResultError
from gatemark.facts import Ceiling, ClockFacts, EchoLoop, SelfLatency, SelfTestFacts
from gatemark.files import replace_files
from gatemark.port_kinds import PortName, parse_port
from gatemark.results.this_machine import machine_facts

if TYPE_CHECKING:
    from gatemark.config.model import Campaign

SELF_TEST_FORMAT: Final = 2


class Entry(Ceiling):
    """What the Tester alone reaches in one mode, and why not more."""

    limited: str
    """What happened at the next higher rate; empty if the highest rate passed."""


class TimedLatency(SelfLatency):
    """Delays through the ports alone, and how well the Tester sent."""

    lateness_max_ns: int
    """How late the Tester sent a burst at most."""


class CountedLoop(EchoLoop):
    """Echo requests to its own host, and how many there were."""

    requests: int


class SelfTest(SelfTestFacts):
    """All of a self-test: it says nothing about another machine, or another kind of port (`self_test_kind`)."""

    selftest: Literal[2]
    """Format number."""
    conditions: Mapping[str, str] = {}
    """What else it depends on, as `conditions_of` has it: with another value of any of them it says nothing."""
    gatemark: str
    engine: str
    quick: bool
    trial_ns: int
    """Sending time of the trials that confirm a rate."""
    confirmations: int
    """How often in succession a rate had to pass."""
    entries: tuple[Entry, ...]
    self_latency: tuple[TimedLatency, ...]
    echo_loops: tuple[CountedLoop, ...] = ()
    """Those that a campaign of echo requests needs; a self-test without such a campaign has none."""
    clock: ClockFacts

    def to_text(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


def this_machine() -> str:
    """Return host name, CPU model and the number of all CPUs: those that this process may use change as it measures."""
    facts = machine_facts()
    return f"{facts.host_name}, {facts.cpu_model or 'unknown CPU'}, {os.cpu_count()} CPUs"


def port_kind_of(campaign: Campaign) -> str:
    """Return the kind of port of a campaign, as self-tests are kept by it.

    Ports that a test bed makes are virtual, so they are kept apart from network cards opened in the same way.
    """
    port = campaign.left.port or campaign.bed.default_port
    assert port is not None, "check_ports was not called"
    kind = parse_port(port).kind.name
    return f"{campaign.bed.name}-{kind}" if campaign.bed.makes_ports else kind


def self_test_kind(campaign: Campaign) -> str:
    """Return the kind of self-test that says something about a campaign: its kind of port, and what its frames need.

    Frames without UDP checksum, with a MAC address for each host, or of customer edges in several domains take the
    Tester another time than usual ones, so what was measured with others is never their ceiling.
    """
    domains = campaign.edges.domain_count
    needs = (
        ("zero_checksum", campaign.directions.lack_checksums),
        ("host_macs", campaign.has_random_macs),
        (f"{domains}_domains", domains > 1),
    )
    return "+".join((port_kind_of(campaign), *(name for name, needed in needs if needed)))


def conditions_of(campaign: Campaign | None, engine_sha256: str) -> dict[str, str]:
    """Return what a self-test depends on beside machine and kind of port, for a campaign or for none in particular.

    Cores and queues as the campaign names them, cards with their drivers, the kernel, and the program of the engine.
    """
    sides = () if campaign is None else (campaign.left, campaign.right)
    cores = () if campaign is None else campaign.testbed.cores
    named = () if campaign is None or campaign.bed.makes_ports else [side.port or "" for side in sides]
    return {
        "cores": " ".join(map(str, cores)) or f"chosen of {len(os.sched_getaffinity(0))}",
        "queues": " ".join(str(side.queues or "chosen") for side in sides) or "chosen chosen",
        "cards": " ".join(_card(parse_port(port)) for port in named),
        "kernel": platform.release(),
        "engine": engine_sha256,
    }


def _card(port: PortName) -> str:
    """Return a port with what the kernel knows of its card: vendor, device and driver."""
    if port.kind.is_card:
        device = Path("/sys/bus/pci/devices") / port.target
    elif port.interface is not None:
        device = NET_FOLDER / port.interface / "device"
    else:
        return port.kind.name
    facts = [_first_line(device / name) for name in ("vendor", "device")]
    return ":".join([port.kind.name, port.target, *facts, (device / "driver").resolve().name])


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def state_folder() -> Path:
    """Return where self-tests are kept: $XDG_STATE_HOME, else /var/lib for root and ~/.local/state for others."""
    named = os.environ.get("XDG_STATE_HOME")
    base = Path(named) if named else Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "state"
    return base / "gatemark" / "selftest"


def self_test_file(port_kind: str, conditions: Mapping[str, str]) -> Path:
    """Return the file of the self-test of one kind of port under some conditions."""
    digest = hashlib.sha256(json.dumps(dict(conditions), sort_keys=True).encode()).hexdigest()
    return state_folder() / f"{port_kind}-{digest[:8]}.json"


def load_self_test(port_kind: str, conditions: Mapping[str, str]) -> SelfTest | None:
    """Return the last self-test of this machine for a kind of port under the same conditions.

    None if there is none, if it is of another machine (a moved disk), or if this version cannot read it.
    """
    try:
        stored = SelfTest.model_validate_json(self_test_file(port_kind, conditions).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    is_same = (stored.machine, stored.port_kind, stored.conditions) == (this_machine(), port_kind, conditions)
    return stored if is_same else None


def store_self_test(document: SelfTest) -> Path:
    """Keep a self-test in place of the one before; raise ResultError if that cannot be written."""
    path = self_test_file(document.port_kind, document.conditions)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_files(path.parent, {path.name: document.to_text().encode()})
    except OSError as error:
        raise ResultError(
            what=f"cannot write: {error.strerror or error}",
            where=str(path),
            fix="set XDG_STATE_HOME to a folder that you may write to",
        ) from error
    return path

"""The self-test as a document, kept for each machine and kind of port until the next one replaces it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from gatemark.dut.port_name import parse_port
from gatemark.errors import ResultError
from gatemark.facts import Ceiling, ClockFacts, EchoLoop, Facts, SelfLatency
from gatemark.files import replace_files
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


class SelfTest(Facts):
    """All of a self-test."""

    selftest: Literal[2]
    """Format number."""
    machine: str
    """Host name and CPU: a self-test says nothing about another machine."""
    port_kind: str
    """With what its frames need beside, as `self_test_kind` has it."""
    measured_at: str
    gatemark: str
    engine: str
    quick: bool
    trial_ns: int
    """Sending time of the trials that confirm a rate."""
    confirmations: int
    """How often in succession a rate had to pass."""
    lateness_max_ns: int
    """A trial with a burst sent later than this did not count."""
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
    side = campaign.left
    port = (side.port if side is not None else None) or campaign.bed.default_port
    assert port is not None, "check_ports was not called"
    kind = parse_port(port).kind
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


def state_folder() -> Path:
    """Return where self-tests are kept: $XDG_STATE_HOME, else /var/lib for root and ~/.local/state for others."""
    named = os.environ.get("XDG_STATE_HOME")
    base = Path(named) if named else Path("/var/lib") if os.geteuid() == 0 else Path.home() / ".local" / "state"
    return base / "gatemark" / "selftest"


def self_test_file(port_kind: str) -> Path:
    """Return the file of the self-test of one kind of port."""
    return state_folder() / f"{port_kind}.json"


def load_self_test(port_kind: str) -> SelfTest | None:
    """Return the last self-test of this machine for a kind of port.

    None if there is none, if it is of another machine (a moved disk), or if this version cannot read it.
    """
    try:
        stored = SelfTest.model_validate_json(self_test_file(port_kind).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return stored if stored.machine == this_machine() and stored.port_kind == port_kind else None


def store_self_test(document: SelfTest) -> Path:
    """Keep a self-test in place of the one before; raise ResultError if that cannot be written."""
    path = self_test_file(document.port_kind)
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

"""What every test bed offers to the rest of gatemark, whether it made the gateway itself or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from gatemark.config.recipe import Standing
from gatemark.errors import TestBedError
from gatemark.facts import GatewayHostFacts, SamplingFacts, SettingFact


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayDescription:
    """The gateway as the report must name it: versions and exact configuration (RFC 2544 section 7)."""

    name: str
    """What the gateway is, for people."""
    version: str
    """Versions of the software that forwards; empty if not known."""
    configuration: str
    """Addresses, routes, settings and daemon configuration, as text."""
    commands: tuple[str, ...] = ()
    """Every command that set the gateway up, in order, so that it can be repeated by hand."""
    settings: tuple[SettingFact, ...] = ()
    """Settings that the user named."""
    host: GatewayHostFacts | None = None
    """What its host says about itself; None where nobody asks it."""
    sampling: SamplingFacts | None = None
    """What sampling its host costs; None where it is not sampled."""
    other_host: GatewayHostFacts | None = None
    """What the other gateway's host says about itself, of two in a row; None where nobody asks it."""

    def to_json(self) -> dict[str, object]:
        """Return the description for the result folder; what differs from session to session is in provenance."""
        return {
            "name": self.name,
            "version": self.version,
            "configuration": self.configuration,
            "commands": list(self.commands),
            "settings": [setting.model_dump() for setting in self.settings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimes:
    """What a kernel has counted of one CPU since it was started, nanoseconds."""

    idle_ns: int
    """Idle, or waiting for a disk."""
    stolen_ns: int
    """Given to others by the hypervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTimes:
    """What a kernel has counted of one thread since it was started, nanoseconds."""

    name: str
    cpu: int | None
    """The CPU to which it is bound; None: any of the gateway's."""
    stays: bool
    """Whether it may run on the gateway's CPUs alone."""
    ran_ns: int
    waited_ns: int
    """Ready to run, but something else had its CPU."""


RECEIVED_BY_TESTER = "softnet.received_by_tester"
"""Counter of the frames that the kernel worked on at CPUs of the Tester, where none of the gateway's work is done."""


MIDDLE = "middle-"
"""What the names of both ends of the link between two gateways begin with, in counters; the gateway's side follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounts:
    """What the kernel of the gateway has counted until a moment."""

    counters: Mapping[str, int] = field(default_factory=dict)
    """By name, such as `ip.InDiscards`, `conntrack.chaintoolong` or `interface.gateway-left.rx_dropped`; without those
    that it does not tell."""
    boot_ids: tuple[str, ...] = ("",)
    """Of each host: another one after each boot. Empty where it does not tell."""
    is_this_machines: bool = False
    """Whether it is the kernel of this machine, which others use too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """What the host of the gateway has counted until a moment; two of them say what happened in between."""

    at_ns: int
    """Monotonic clock of the host."""
    step_ns: int
    """Resolution of the times of a CPU."""
    queue_frames: int
    """What the smallest queue holds that a frame waits in before the gateway's work is done."""
    cpus: Mapping[int, CpuTimes]
    """The CPUs of the gateway; none where the Tester works on them too, or the kernel does not tell."""
    threads: Mapping[int, ThreadTimes]
    """The threads that do its work, those of the kernel among them; none where there are no CPUs."""
    all_ran_ns: int | None
    """How long threads of any program have run on these CPUs; None if the kernel does not tell."""
    counted: KernelCounts = KernelCounts()
    """What its kernel has counted besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUp:
    """A time in which others had a CPU of the gateway, nanoseconds of this machine's monotonic clock."""

    begin_ns: int
    """It began no earlier."""
    end_ns: int
    """It ended no later."""
    lasted_ns: int
    """How long they had it in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldUps:
    """When others had the CPUs of the gateway, as far as its host was watched."""

    longest: tuple[HeldUp, ...]
    """The longest ones, in their order."""
    others_ns: int
    """How long all others lasted together."""


class Watch(Protocol):
    """Looks at the host of the gateway again and again."""

    def found(self) -> HoldUps:
        """Return what it has found, once it has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """What a kernel says of one process."""

    name: str
    ran_ns: int
    """CPU time that it has had."""
    resident_kilobytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptSample:
    """How often each CPU has taken each interrupt of the network cards since it was set up."""

    cpus: tuple[int, ...]
    """All that are online."""
    taken: Mapping[int, Mapping[int, int]]
    """By number of the interrupt, then by CPU, without those that never took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """One sample of the gateway's host; two of them say what happened in between. None is what it does not tell."""

    at_ns: int
    """Monotonic clock of this machine."""
    error_ns: int
    """How far from that time the CPUs may have been read, the step of the host's clock included."""
    cpus: Mapping[int, int]
    """How long each CPU was idle, nanoseconds since the host was started; of those that were online."""
    memory_kilobytes: int | None = None
    available_kilobytes: int | None = None
    connections: int | None = None
    processes: Mapping[int, ProcessSample] = field(default_factory=dict)
    """Those that the campaign names, by number."""
    printed: Mapping[str, float | None] = field(default_factory=dict)
    """What the commands of the user printed, by name; None where that was not one number."""
    interrupts: InterruptSample | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryReading:
    """The samples of the gateway's host that were taken since it was last read."""

    reason: str | None = None
    """Why there are none; None if there are."""
    samples: tuple[HostSample, ...] = ()
    processes: tuple[str, ...] = ()
    """Names that the campaign gives, whether there are such processes or not."""
    damaged: int = 0
    """Samples that are not whole, whose times go backwards, or that took too long."""
    uncertainty_ns: int = 0
    """How far all of them together may lie from where our clock puts them."""
    other: TelemetryReading | None = None
    """Those of the other gateway's host, of two in a row; None where it is not sampled."""


class Connections(Protocol):
    """What can be done to the connections of a stateful gateway, between trials."""

    def clear_state(self) -> None:
        """Delete all of them."""
        ...

    def count_connections(self) -> int | None:
        """Return how many the gateway holds; None if it cannot tell."""
        ...

    def tear_down(self) -> int:
        """Delete all of them; return the nanoseconds that it took on the gateway's side (RFC 9693 section 4.8)."""
        ...


class Control(Protocol):
    """What can be done to a gateway between trials; and its reset, during one."""

    def restart(self) -> None:
        """Stop the gateway and start it again, after it collapsed."""
        ...

    def reset(self) -> None:
        """Reset the gateway while frames are sent (RFC 6201 section 4); it may still be starting when this returns."""
        ...

    def commands_since(self, at_ns: int) -> tuple[str, ...]:
        """Say which control commands ran at any time since `at_ns` (monotonic clock), a reset's left out."""
        ...


class Booter(Protocol):
    """Boots the gateway's host."""

    def boot(self) -> None:
        """Boot it and wait until it works; links may be down, its link-layer addresses new."""
        ...


class HostReader(Protocol):
    """Reads what the host of the gateway has counted."""

    def read(self) -> HostReading | None:
        """Return what it has counted so far; None if it does not tell."""
        ...

    def watched(self) -> AbstractContextManager[Watch | None]:
        """Watch, inside the block, the CPUs and threads that were read last; None if it does not tell."""
        ...


class Sampler(Protocol):
    """Samples the host of the gateway during trials."""

    def start(self, seconds: float) -> None:
        """See that samples are taken for `seconds`."""
        ...

    def read(self) -> TelemetryReading:
        """Return the samples since the last call."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedFrames:
    """Frames that links carried, without FCS."""

    links: Mapping[str, tuple[bytes, ...]]
    """In the order of their capture, by link: `left` and `right` towards the Tester, `middle` between both gateways."""
    lost: int
    """Frames for which the capture had no room."""


class Capture(Protocol):
    """Captures frames of all links."""

    def frames(self) -> CapturedFrames:
        """Return what it has captured, once it has ended."""
        ...


class MiddleLink(Protocol):
    """The link between two gateways in a row."""

    @property
    def standings(self) -> Sequence[Standing]:
        """Both gateways, the customer's first; none where the campaign alone knows them."""
        ...

    def captured(self) -> AbstractContextManager[Capture]:
        """Capture, inside the block, what this link and those to the Tester carry.

        Raises TestBedError if that is not possible.
        """
        ...


class MadeGateway(Protocol):
    """A gateway that a recipe made on this machine, or two in a row."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Names of what each gateway is in, from the left; in a kernel of its own that is no namespace of here."""
        ...

    @property
    def interfaces(self) -> Mapping[str, str]:
        """The interface towards the Tester on each side that has a gateway's addresses."""
        ...

    def pids(self) -> list[int]:
        """Return the processes of this machine that do its work."""
        ...

    def ask(self, script: str) -> str:
        """Run a script where the left one is, between trials; return what it prints."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameDrops:
    """Frames for which queues of a test bed had no room, by counter."""

    tester: Mapping[str, int] = field(default_factory=dict)
    """In receive queues of the Tester."""
    gateway: Mapping[str, int] = field(default_factory=dict)
    """In queues that the gateway drains: its loss, for information."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What can be asked of a test bed besides its ports; None where it is not able to."""

    health: Callable[[], None] | None = None
    """Raises TestBedError if the gateway or an interface of the test bed is gone."""
    control: Control | None = None
    connections: Connections | None = None
    booter: Booter | None = None
    host: HostReader | None = None
    telemetry: Sampler | None = None
    middle: MiddleLink | None = None
    """Of two gateways in a row."""
    gateway: MadeGateway | None = None
    drops: Callable[[], FrameDrops] | None = None
    """Counts frames that were dropped since the test bed was made."""
    own_faults: Callable[[], tuple[str, ...]] | None = None
    """Says what else of the test bed spoiled the trial that just ended, in sentences."""
    describe_host: Callable[[], GatewayHostFacts] | None = None
    """Asks the gateway's host to describe itself as it is now."""

    def check(self) -> None:
        """Raise TestBedError if it is known that the gateway or an interface of the test bed is gone."""
        if self.health is not None:
            self.health()


NO_ABILITIES = Abilities()
"""Where there is no test bed, or none that can be asked: it is never broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where Tester and gateway work."""

    namespace: str | None = None
    """Network namespace in which the engine must run; None for the one of the caller."""
    tester_cores: tuple[int, ...] = ()
    """Cores for the workers of the Tester; empty lets the engine choose."""
    gateway_cores: tuple[int, ...] = ()
    """Cores of this machine that do the gateway's work; empty where it works elsewhere."""


class TestBed(Protocol):
    """An opened test bed. It is a context manager; leaving it removes all that it made."""

    @property
    def can(self) -> Abilities:
        """What it is able to do."""
        ...

    @property
    def ports(self) -> dict[str, str]:
        """Short name of the port of each side, `left` and `right`, as the engine takes it."""
        ...

    @property
    def placement(self) -> Placement:
        """Where Tester and gateway work."""
        ...

    def describe(self) -> GatewayDescription:
        """Describe the gateway as it is now."""
        ...

    def close(self) -> None:
        """Remove everything that the test bed made; a second call does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def await_success(
    check: Callable[[], None], seconds_max: float, *, poll_s: float, alive: Callable[[], None] = lambda: None
) -> None:
    """Repeat a check until it succeeds; raise its TestBedError if it does not in time.

    `alive` is called after each failure: what it raises ends the wait, for it would be in vain.
    """
    until = time.monotonic() + seconds_max
    while True:
        try:
            return check()
        except TestBedError:
            alive()
            if time.monotonic() >= until:
                raise
        time.sleep(poll_s)

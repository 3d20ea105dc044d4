"""The gateway of a row whose host `gateway.control` does not reach: asked, sampled and watched, never changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gatemark.config.tables import (
    GatewayControlModel,
    GatewayTableModel,
    LimitsModel,
    OtherHostModel,
    TelemetryModel,
)
from gatemark.dut.asked_counters import AskedCounters
from gatemark.dut.base import MIDDLE, KernelCounts, Sampler, TelemetryReading
from gatemark.dut.commands import LONGER
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.host_description import read_host_description
from gatemark.dut.kernel_counters import added
from gatemark.dut.shell import Run, shell_at
from gatemark.dut.telemetry import HostSampler
from gatemark.errors import TestBedError
from gatemark.facts import GatewayHostFacts
from gatemark.technology import SideName

WHERE = "gateway.other_host"
LABEL = "other-"
"""What the names of its interfaces begin with, in counters."""


class OtherGateway:
    """It and its host, through a shell of its own."""

    def __init__(self, model: OtherHostModel, limits: LimitsModel, asked: TelemetryModel | None) -> None:
        """`asked`: what is sampled at the first host; here it is CPUs, memory, connections and interrupts."""
        self._there = model.host is not None
        self.run = shell_at(model.host, model.words, longer=LONGER)
        commands = GatewayControlModel(
            describe=model.describe, health=model.health, count_middle=model.count_middle, limits=limits
        )
        settings = GatewaySettings(table=GatewayTableModel(), named={})
        self.control = GatewayControl(self.run, commands, where=WHERE, settings=settings)
        self.sampler: HostSampler | None = None
        if asked is not None and self._there:
            plain = TelemetryModel().model_copy(update={"interval_ns": asked.interval_ns})
            self.sampler = HostSampler(self.run, plain, cpus=None, counts_interrupts=True)

    def describe_host(self) -> GatewayHostFacts | None:
        """Return what its host says about itself; None where commands run on this machine."""
        return read_host_description(self.run) if self._there else None

    def counters(self, side: SideName) -> HostCounters:
        """Return what it and its kernel count; it stands on one side of the row."""
        return HostCounters(self.run if self._there else None, self.control, side, label=LABEL)

    def close(self) -> None:
        """End the sampler and the connection."""
        try:
            if self.sampler is not None:
                self.sampler.stop()
        finally:
            self.run.close()


@dataclass(frozen=True, slots=True)
class BothSamplers:
    """Samples the hosts of both gateways of a row."""

    first: Sampler
    other: Sampler

    def start(self, seconds: float) -> None:
        """See that samples are taken at both for `seconds`."""
        self.first.start(seconds)
        self.other.start(seconds)

    def read(self) -> TelemetryReading:
        """Return the samples of both since the last call."""
        return replace(self.first.read(), other=self.other.read())


class HostCounters:
    """Counts of one gateway and its host: those of its kernel, and what it has handed to the link of a row."""

    def __init__(self, run: Run | None, control: GatewayControl, side: SideName, *, label: str = "") -> None:
        """`run`: how the kernel is asked, None: it is not; `label` precedes the names of its interfaces."""
        self._kernel = KernelCounts if run is None else AskedCounters(run, {}).read
        self._control = control
        self._name = f"interface.{MIDDLE}{side}"
        self._label = label

    def read(self) -> KernelCounts:
        """Return what was counted so far, as far as it is told."""
        counted = self._kernel()
        counters = {self._labelled(name): count for name, count in counted.counters.items()}
        try:
            handed = self._control.count_middle()
        except TestBedError:
            handed = None
        if handed is not None:
            counters |= {f"{self._name}.tx_packets": handed, f"{self._name}.tx_dropped": 0}
        return replace(counted, counters=counters)

    def _labelled(self, name: str) -> str:
        kind, dot, rest = name.partition(".")
        return f"{kind}{dot}{self._label}{rest}" if kind in ("interface", "qdisc") else name


def of_both(first: KernelCounts, other: KernelCounts) -> KernelCounts:
    """Return the counts of two hosts, those of the same name added."""
    return KernelCounts(
        counters=added(first.counters, other.counters),
        boot_ids=(*first.boot_ids, *other.boot_ids),
        is_this_machines=first.is_this_machines or other.is_this_machines,
    )

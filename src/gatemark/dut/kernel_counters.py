"""What a kernel counts of the gateway's network namespace and, where it counts once for all of them, of the machine.

They are read just before and just after each trial, on this machine from files and a socket that stay open
(`asked_counters`: elsewhere). A file that is not there, or is damaged, counts nothing. Names are those of the kernel,
below what they are of: `ip.InDiscards`, `conntrack.insert_failed`.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from gatemark.dut.base import MIDDLE, RECEIVED_BY_TESTER, KernelCounts
from gatemark.dut.cpu_visitors import PROC
from gatemark.dut.interface_counters import columns_by_interface, inside, read_whole
from gatemark.dut.queue_counters import open_queues, read_queues
from gatemark.errors import TestBedError
from gatemark.harmless import whole_number

OCTETS_MAX = 1 << 18
"""A longer file counts nothing: reading it would take too long."""

INTERFACE_COLUMNS = {"rx_errors": 2, "rx_dropped": 3, "tx_errors": 10, "tx_dropped": 11}
MIDDLE_COLUMNS = {"rx_packets": 1, "tx_packets": 9}
"""More of the link between two gateways in a row: frames that its ends took and sent."""
COLUMNS_OF_AN_INTERFACE = 16
"""Of `/proc/net/dev`, after the name."""
CONNTRACK_NAMES = {"chainlength": "chaintoolong"}
"""Columns that hold another counter than their heading says, since Linux 5.15."""
GAUGE = "entries"
"""A column that says how many there are now, on the line of each CPU."""
SOFTNET_RECEIVED, SOFTNET_DROPPED, SOFTNET_CPU = 0, 1, 12
"""Columns of `/proc/net/softnet_stat`: frames that a CPU worked on, those for which its input queue had no room, and
which CPU it is."""
IPV6_NAME = re.compile(r"(Ip6|Icmp6|Udp6)([A-Za-z0-9]{1,40})")

Counters = Iterator[tuple[str, int]]
Parser = Callable[[str], Counters]

NEIGHBOURS = {"ipv4": "1/net/stat/arp_cache", "ipv6": "1/net/stat/ndisc_cache"}
"""Below `/proc`: the counters of the neighbour tables, which only the first network namespace shows."""


class KernelCounters:
    """Counters of namespaces of this machine, those of each added. It keeps them alive until it is closed.

    `cpus` are the gateway's, `tester_cpus` those where none of its work is to be done; `names` says what to call
    interfaces whose names differ from run to run.
    """

    def __init__(
        self,
        namespaces: Collection[str],
        cpus: Collection[int],
        names: Mapping[str, str],
        *,
        tester_cpus: Collection[int] = (),
        proc: Path = PROC,
    ) -> None:
        self._proc = proc
        self._files: list[tuple[int, Parser]] = []
        self._names = names
        self._queues: list[socket.socket] = []
        self._open(files_of_machine(cpus, tester_cpus))
        for namespace in namespaces:
            with suppress(TestBedError):
                inside(namespace, lambda: self._open(files_of_namespace(names)))
                self._queues.append(inside(namespace, open_queues))

    def read(self) -> KernelCounts:
        """Return each counter, from when the kernel or the namespace was started."""
        counted: dict[str, int] = {}
        for file, parse in self._files:
            with suppress(OSError):
                counted = added(counted, told(read_whole(file, OCTETS_MAX), parse))
        for queues in [*self._queues]:
            try:
                counted = added(counted, dict(read_queues(queues, self._names)))
            except (OSError, struct.error):
                queues.close()  # a late answer must not pass for that to a later question
                self._queues.remove(queues)
        return KernelCounts(counters=counted, is_this_machines=True)

    def close(self) -> None:
        """Let go of the namespaces; a second call does nothing."""
        while self._files:
            os.close(self._files.pop()[0])
        while self._queues:
            self._queues.pop().close()

    def _open(self, files: Mapping[str, Parser]) -> None:
        for name, parse in files.items():
            path = self._proc / ("thread-self" if name.startswith("net/") else "") / name
            with suppress(OSError):
                self._files.append((os.open(path, os.O_RDONLY | os.O_CLOEXEC), parse))


def files_of_namespace(names: Mapping[str, str]) -> dict[str, Parser]:
    """Return the files below `/proc` that count for a network namespace, each with its parser."""
    return {
        "net/stat/nf_conntrack": partial(parse_by_cpu, of="conntrack", renamed=CONNTRACK_NAMES),
        "net/snmp": parse_named_lines,
        "net/netstat": parse_named_lines,
        "net/snmp6": parse_ipv6,
        "net/dev": partial(parse_interfaces, names=names),
    }


def files_of_machine(cpus: Collection[int] | None, tester_cpus: Collection[int] = ()) -> dict[str, Parser]:
    """Return those that count for a whole machine, whose CPUs that do the gateway's work are `cpus`; None: all."""
    neighbours = {path: partial(parse_by_cpu, of=f"neighbours.{family}") for family, path in NEIGHBOURS.items()}
    return {**neighbours, "net/softnet_stat": partial(parse_softnet, cpus=cpus, tester_cpus=tester_cpus)}


def added(*counted: Mapping[str, int]) -> dict[str, int]:
    """Return counters with those of the same name added."""
    sums: dict[str, int] = {}
    for counters in counted:
        for name, count in counters.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def told(text: str, parse: Parser) -> dict[str, int]:
    """Return what a file counts; nothing if it is damaged or too long."""
    with suppress(ValueError):
        return dict(parse(text)) if len(text) <= OCTETS_MAX else {}
    return {}


def neighbours_held(family: str, proc: Path = PROC) -> int:
    """Return how many neighbours all namespaces of this machine have in the table of a family.

    0 if it cannot be read. Permanent ones are among them, to which the limit of the table does not apply.
    """
    with suppress(OSError, ValueError, IndexError):
        names, first, *_ = (proc / NEIGHBOURS[family]).read_text(encoding="ascii").splitlines()
        return _count(first.split()[names.split().index(GAUGE)], 16)
    return 0


def _count(text: str, base: Literal[10, 16] = 10) -> int:
    """Return a number; raise ValueError if it is none."""
    number = whole_number(text, base)
    if number is None:
        raise ValueError
    return number


def parse_named_lines(text: str) -> Counters:
    """Read `/proc/net/snmp` or `netstat`: by what it is of, a line of names, and then one of numbers.

    Raises ValueError if they do not belong together, or for what is no number.
    """
    lines = [line.split() for line in text.splitlines()]
    for names, numbers in zip(lines[::2], lines[1::2], strict=True):
        [of, *counters], [again, *counts] = names, numbers
        if of != again:
            raise ValueError
        for name, count in zip(counters, counts, strict=True):
            yield f"{of.rstrip(':').lower()}.{name}", _count(count)


def parse_ipv6(text: str) -> Counters:
    """Read `/proc/net/snmp6`: a name and a number a line. Raises ValueError for what is no number."""
    for line in text.splitlines():
        name, number = line.split()
        if (match := IPV6_NAME.fullmatch(name)) is not None:
            yield f"{match[1].lower()}.{match[2]}", _count(number)


def parse_by_cpu(text: str, of: str, renamed: Mapping[str, str] | None = None) -> Counters:
    """Read a file of `/proc/net/stat`: a line of names, and one of hexadecimal numbers for each CPU; they are added.

    Raises ValueError if they do not belong together, or for what is no number.
    """
    names, *lines = [line.split() for line in text.splitlines()] or [[]]
    cpus = [[_count(number, 16) for number in line] for line in lines]
    for name, *counts in zip(names, *cpus, strict=True):
        if name != GAUGE:
            yield f"{of}.{(renamed or {}).get(name, name)}", sum(counts)


def parse_softnet(text: str, cpus: Collection[int] | None, tester_cpus: Collection[int] = ()) -> Counters:
    """Read `/proc/net/softnet_stat`: frames for which the input queues of these CPUs had no room; None: of all.

    And frames that CPUs of the Tester worked on, if it has any of its own. A kernel that does not say of which CPU a
    line is counts nothing (before Linux 5.10). Raises ValueError for what is no number.
    """
    lines = [[_count(number, 16) for number in line.split()] for line in text.splitlines()]
    whole = [line for line in lines if len(line) > (SOFTNET_DROPPED if cpus is None else SOFTNET_CPU)]
    known = [line for line in whole if cpus is None or line[SOFTNET_CPU] in cpus]
    if known:
        yield "softnet.dropped", sum(line[SOFTNET_DROPPED] for line in known)
    if tester_cpus:
        testers = (line for line in whole if line[SOFTNET_CPU] in tester_cpus)
        yield RECEIVED_BY_TESTER, sum(line[SOFTNET_RECEIVED] for line in testers)


def parse_interfaces(text: str, names: Mapping[str, str]) -> Counters:
    """Read `/proc/net/dev`: errors and drops of each interface. Raises ValueError for a line that is damaged."""
    for name, columns in columns_by_interface(text):
        if len(columns) != COLUMNS_OF_AN_INTERFACE:
            raise ValueError
        known = names.get(name, name)
        for counter, column in (INTERFACE_COLUMNS | (MIDDLE_COLUMNS if known.startswith(MIDDLE) else {})).items():
            yield f"interface.{known}.{counter}", _count(columns[column])

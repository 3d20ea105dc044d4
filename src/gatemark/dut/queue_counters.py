"""Frames that the queueing disciplines of a network namespace dropped, asked of the kernel by netlink.

No file of `/proc` has them, and `tc` would be a program to start before and after each trial. Where commands alone
reach the kernel, it is started, and what it prints is read.
"""

from __future__ import annotations

import fcntl
import re
import socket
import struct
from collections.abc import Iterator, Mapping

ANSWER_SECONDS_MAX = 0.5
OCTETS_MAX = 1 << 18
"""Of an answer; what is beyond that is not read."""

_DUMP = struct.pack("=IHHII", 36, 38, 0x301, 1, 0) + bytes(20)  # RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, struct tcmsg
_QUEUE, _ERROR, _DONE = 36, 2, 3  # RTM_NEWQDISC, NLMSG_ERROR, NLMSG_DONE
_ROOT, _INGRESS = 0xFFFFFFFF, 0xFFFFFFF1  # TC_H_ROOT, TC_H_INGRESS: what is below them is in their numbers
_STATS = 3  # TCA_STATS
_NAME = 0x8910  # SIOCGIFNAME
_SHOWN = re.compile(
    r"^qdisc [^\s]+ [^\s]+ dev (?P<interface>[^\s]{1,64}) (?:root|parent ffff:fff1)(?: .*)?\n"
    r" Sent [0-9]+ bytes [0-9]+ pkts? \(dropped (?P<dropped>[0-9]{1,20})[,)]",
    re.MULTILINE,
)


def open_queues() -> socket.socket:
    """Return a socket to ask of the namespace that this thread is in; raise OSError if there can be none."""
    asking = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
    asking.settimeout(ANSWER_SECONDS_MAX)
    return asking


def read_queues(asking: socket.socket, names: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the drops of each interface that has a queueing discipline; `names` as of `KernelCounters`.

    Raises OSError, or struct.error, if the kernel does not answer as it should.
    """
    asking.send(_DUMP)
    answer = b""
    while not (answer and _ends(answer)) and len(answer) <= OCTETS_MAX:
        answer += asking.recv(OCTETS_MAX)
    dropped: dict[int, int] = {}
    for interface, count in parse_queues(answer):
        dropped[interface] = dropped.get(interface, 0) + count
    for interface, count in dropped.items():
        name = _name(asking, interface)
        yield f"qdisc.{names.get(name, name)}.dropped", count


def parse_queues(answer: bytes) -> Iterator[tuple[int, int]]:
    """Yield the number of an interface, and the frames that a discipline at its root dropped; raise struct.error."""
    for kind, body in _messages(answer):
        if kind != _QUEUE:
            continue
        _, _, _, interface, _, parent, _ = struct.unpack_from("=BBHiIII", body)
        for attribute, value in _attributes(body[20:]):
            if attribute == _STATS and parent in (_ROOT, _INGRESS):
                _, _, count = struct.unpack_from("=QII", value)  # octets, packets, drops
                yield interface, count


def parse_shown_queues(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the same of what `tc -s qdisc show` prints."""
    dropped: dict[str, int] = {}
    for match in _SHOWN.finditer(text):
        dropped[match["interface"]] = dropped.get(match["interface"], 0) + int(match["dropped"])
    for name, count in dropped.items():
        yield f"qdisc.{names.get(name, name)}.dropped", count


def _ends(answer: bytes) -> bool:
    return any(kind in (_DONE, _ERROR) for kind, _ in _messages(answer))


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    while answer:
        length, kind, _, _, _ = struct.unpack_from("=IHHII", answer)
        yield kind, answer[16:length]
        answer = answer[max(16, (length + 3) & ~3) :]


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    while body:
        length, kind = struct.unpack_from("=HH", body)
        yield kind, body[4:length]
        body = body[max(4, (length + 3) & ~3) :]


def _name(asking: socket.socket, interface: int) -> str:
    """Return the name of an interface in the namespace of the socket; raise OSError if it is gone."""
    answer = fcntl.ioctl(asking, _NAME, struct.pack("=16si20x", b"", interface))
    return answer[:16].partition(b"\0")[0].decode(errors="replace")

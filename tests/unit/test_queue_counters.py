"""Drops of queueing disciplines, from answers as the kernel gives them and from damaged ones."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from gatemark.dut.queue_counters import parse_queues

ROOT, INGRESS, CLASS = 0xFFFFFFFF, 0xFFFFFFF1, 0x10001
OTHER = struct.pack("=HH4s", 8, 1, b"tbf")
"""The name of the discipline."""


def discipline(interface: int, parent: int, dropped: int) -> bytes:
    """Return a message of a discipline."""
    stats = struct.pack("=HHQIIIIIII", 40, 3, 10**9, 7, dropped, 5, 0, 0, 0, 0)
    body = struct.pack("=BBHiIII", 0, 0, 0, interface, 0x80010000, parent, 2) + OTHER + stats
    return struct.pack("=IHHII", 16 + len(body), 36, 2, 1, 0) + body


DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def test_a_discipline_below_another_is_in_the_numbers_of_that() -> None:
    answer = discipline(2, ROOT, 40) + discipline(2, CLASS, 39) + discipline(3, INGRESS, 5) + DONE
    assert list(parse_queues(answer)) == [(2, 40), (3, 5)]


@given(st.binary(max_size=60), st.integers(0, 300))
def test_a_damaged_answer_raises_nothing_else(noise: bytes, cut: int) -> None:
    whole = discipline(2, ROOT, 40) + discipline(3, ROOT, 1) + DONE
    for answer in (noise, whole[:cut], whole[:cut] + noise + whole[cut:]):
        try:
            told = list(parse_queues(answer))
        except struct.error:
            continue
        assert len(told) <= 4

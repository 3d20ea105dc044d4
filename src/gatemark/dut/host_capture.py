"""Captures what the links of two gateways in a row carry at hosts of the user's own, by tcpdump.

A shell there runs it until the shell's standard input ends, so it ends with the Tester and with the connection as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import IO

from gatemark.config.recipe import Standing
from gatemark.dut.link_capture import (
    END_SECONDS_MAX,
    KILL_SECONDS_MAX,
    POLL_SECONDS,
    READY_SECONDS_MAX,
    WHERE,
    RowCapture,
    captured_by,
)
from gatemark.dut.shell import Shell
from gatemark.errors import TestBedError
from gatemark.harmless import whole_number

CAPTURE = "tcpdump -i {interface} -p -U -s 10240 -B 16384 --immediate-mode -w -"
"""Of one interface, to its standard output. The buffer has room for as many frames as of the stated length fit in it,
however short they are: some 1,600. A campaign's longest frames are shorter."""
SCRIPT = """{{
exec 3<&0
{capture} 3<&- &
capture=$!
{{ while read -r _; do kill -INFO "$capture" || kill -USR1 "$capture"; done; kill "$capture"; }} <&3 > /dev/null 2>&1 &
exec 3<&-
wait "$capture"
exit $?
}}
"""
"""A line of the standard input asks for the counts, and its end is that of the capture."""
READY = b"listening on "
"""What tcpdump says once it captures."""
SETTLE_SECONDS_MAX = 5.0
"""Within it a busy host writes what it has received; what is missing then is counted as lost."""
OCTETS_MAX, SAID_OCTETS_MAX = 96 << 20, 1 << 16
TOLD = re.compile(r"^(\d+) packets? (captured|received by filter|dropped by kernel)", re.MULTILINE)
SO_FAR = re.compile(rb"(\d+) packets? captured, (\d+) packets? received by filter, (\d+) packets? dropped by kernel")
BYTE_ORDERS: Mapping[bytes, str] = {
    struct.pack(f"{order}I", number): order for number in (0xA1B2C3D4, 0xA1B23C4D) for order in "<>"
}
"""By the magic number of a file, with times in microseconds or nanoseconds."""
ETHERNET = 1


class _Kept(threading.Thread):
    """Reads a stream to its end, and keeps the beginning of it."""

    def __init__(self, stream: IO[bytes], octets_max: int) -> None:
        super().__init__(daemon=True)
        self.octets = bytearray()
        self.is_whole = True
        self._stream, self._octets_max = stream, octets_max
        self.start()

    def run(self) -> None:
        with self._stream:
            while piece := os.read(self._stream.fileno(), 1 << 16):
                room = self._octets_max - len(self.octets)
                self.octets += piece[:room]
                self.is_whole = self.is_whole and len(piece) <= room


class HostCapture:
    """tcpdump on one interface, from the start to `end`."""

    def __init__(self, shell: Shell, link: str, interface: str) -> None:
        self._link, self._interface = link, interface
        self._process = subprocess.Popen(
            shell.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None, "all are pipes"
        self._input = process.stdin
        self._output = _Kept(process.stdout, OCTETS_MAX)
        self._errors = _Kept(process.stderr, SAID_OCTETS_MAX)
        with contextlib.suppress(BrokenPipeError):
            self._input.write(SCRIPT.format(capture=CAPTURE.format(interface=interface)).encode())
            self._input.flush()

    def await_ready(self) -> None:
        """Wait until it captures; raise TestBedError if it does not."""
        until = time.monotonic() + READY_SECONDS_MAX
        while READY not in self._errors.octets:
            if self._process.poll() is not None or time.monotonic() >= until:
                self.kill()
                raise self._error(f"frames cannot be captured: {self._said or 'it does not begin'}")
            time.sleep(POLL_SECONDS)

    def end(self) -> tuple[dict[str, tuple[bytes, ...]], int]:
        """Stop it; return its frames by link, and how many it lost. Raises TestBedError if it does not tell."""
        self._settle()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        try:
            status = self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._error("the capture did not end") from None
        self._join()
        counts = {what: whole_number(count) or 0 for count, what in TOLD.findall(self._said)}
        if status != 0 or "captured" not in counts:
            raise self._error(f"the capture is not whole: {self._said or f'it ended with status {status}'}")
        if not self._output.is_whole:
            raise self._error(f"more than {OCTETS_MAX >> 20} MiB were captured, so the link has other traffic as well")
        try:
            frames = pcap_frames(bytes(self._output.octets))
        except ValueError as error:
            raise self._error(f"the capture cannot be read: {error}") from None
        waiting = counts.get("received by filter", 0) - counts["captured"]
        return {self._link: frames}, max(counts.get("dropped by kernel", 0), waiting)

    def _settle(self) -> None:
        """Wait until it has written all that it had received at the first answer."""
        until, due = time.monotonic() + SETTLE_SECONDS_MAX, None
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self._input.write(b"\n")
                self._input.flush()
            time.sleep(POLL_SECONDS)
            for told in SO_FAR.findall(self._errors.octets)[-1:]:
                captured, received, dropped = (whole_number(count.decode()) or 0 for count in told)
                due = received if due is None else due
                if captured + dropped >= due:
                    return

    def kill(self) -> None:
        """End it at once; a second call does nothing."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_SECONDS_MAX)
        self._join()

    def _join(self) -> None:
        for stream in (self._output, self._errors):
            stream.join(KILL_SECONDS_MAX)

    @property
    def _said(self) -> str:
        return self._errors.octets.decode("utf-8", "replace").strip()[-400:]

    def _error(self, what: str) -> TestBedError:
        by_hand = CAPTURE.format(interface=self._interface)
        return TestBedError(
            what=what,
            where=f"{WHERE}: {self._interface}",
            fix=f"run it by hand at the host to see why: {by_hand} > /dev/null",
        )


def pcap_frames(octets: bytes) -> tuple[bytes, ...]:
    """Return the frames of a pcap file, which others wrote; raise ValueError if it is not one of Ethernet frames.

    A frame of which only the beginning was captured is left out: it is longer than any of the Tester's.
    """
    order = BYTE_ORDERS.get(octets[:4])
    if order is None or len(octets) < 24:
        raise ValueError("it is not a pcap file")
    (link_type,) = struct.unpack_from(f"{order}I", octets, 20)
    if link_type & 0xFFFF != ETHERNET:
        raise ValueError(f"its link type is {link_type & 0xFFFF}, not that of Ethernet ({ETHERNET})")
    frames, place = list[bytes](), 24
    while place < len(octets):
        if place + 16 > len(octets):
            raise ValueError("its end is missing")
        kept, length = struct.unpack_from(f"{order}8xII", octets, place)
        place += 16
        if kept > length or place + kept > len(octets):
            raise ValueError("a frame in it is not whole")
        if kept == length:
            frames.append(octets[place : place + kept])
        place += kept
    return tuple(frames)


class HostLinks:
    """The links of two gateways in a row, each captured at the host of one of them."""

    standings: tuple[Standing, ...] = ()
    """The campaign alone knows them."""

    def __init__(self, interfaces: Mapping[str, tuple[Shell, str]]) -> None:
        """`interfaces`: by the name of the link, where its host is reached and how it is called there."""
        self._interfaces = dict(interfaces)

    def captured(self) -> contextlib.AbstractContextManager[RowCapture]:
        """Capture inside the block."""
        starts = (partial(HostCapture, shell, link, name) for link, (shell, name) in self._interfaces.items())
        return captured_by(starts)

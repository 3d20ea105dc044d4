"""Captures what the links of two gateways in a row carry, where the gateways are: on this machine or in a guest."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Protocol

from gatemark.config.recipe import Standing
from gatemark.dut.base import CapturedFrames
from gatemark.dut.enclosure import first_child
from gatemark.dut.gateway_kernel import CommandPlace, Stage
from gatemark.errors import TestBedError

READY_SECONDS_MAX, END_SECONDS_MAX, KILL_SECONDS_MAX = 30.0, 60.0, 5.0
POLL_SECONDS = 0.02
END = 255
"""In the place of the number of an interface (`guest/capture.py`)."""
RECORD = struct.Struct("!BI")
WHERE = "capture between both gateways"


class Capturing(Protocol):
    """A capture of one or more links at one place, which runs since it was made."""

    def await_ready(self) -> None:
        """Wait until it captures; raise TestBedError if it does not."""
        ...

    def end(self) -> tuple[dict[str, tuple[bytes, ...]], int]:
        """Stop it; return its frames by link, and how many it lost. Raises TestBedError if it does not tell."""
        ...

    def kill(self) -> None:
        """End it at once; a second call does nothing."""
        ...


class LinkCapture:
    """A program that captures the frames of some interfaces at one place, from `start` to `end`."""

    def __init__(self, place: CommandPlace, folder: Path, interfaces: Mapping[str, str]) -> None:
        """`interfaces`: by the name of their link; `folder`: where commands run at that place."""
        self._ready = folder / f"capture-{secrets.token_hex(4)}"
        self._names = tuple(interfaces)
        program = str(resources.files("gatemark.dut.guest") / "capture.py")
        words = [sys.executable, "-I", "-S", program, str(self._ready), *interfaces.values()]
        self._process = subprocess.Popen(
            place.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def await_ready(self) -> None:
        """Wait until it captures; raise TestBedError if it does not."""
        until = time.monotonic() + READY_SECONDS_MAX
        while not self._ready.exists():
            if self._process.poll() is not None or time.monotonic() >= until:
                self.kill()
                assert self._process.stderr is not None
                said = self._process.stderr.read().decode(errors="replace").strip()[-400:]
                raise TestBedError(
                    what=f"frames cannot be captured: {said or 'it does not begin'}",
                    where=WHERE,
                    fix="allow packet sockets there",
                )
            time.sleep(POLL_SECONDS)

    def end(self) -> tuple[dict[str, tuple[bytes, ...]], int]:
        """Stop it; return its frames by link, and how many it lost. Raises TestBedError if it does not tell."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(first_child(self._process.pid) or self._process.pid, signal.SIGTERM)
        try:
            output, errors = self._process.communicate(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TestBedError(what="the capture did not end", where=WHERE, fix="find out what holds it up") from None
        frames: dict[str, list[bytes]] = {name: [] for name in self._names}
        place = 0
        while place + RECORD.size <= len(output):
            number, length = RECORD.unpack_from(output, place)
            place += RECORD.size
            if number == END:
                return {name: tuple(kept) for name, kept in frames.items()}, length
            frames[self._names[number]].append(output[place : place + length])
            place += length
        said = errors.decode(errors="replace").strip()[-400:] or "it printed no end"
        raise TestBedError(what=f"the capture is not whole: {said}", where=WHERE, fix="find out what ended it")

    def kill(self) -> None:
        """End it at once; a second call does nothing."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # one of another user cannot be killed
                self._process.wait(KILL_SECONDS_MAX)


class RowCapture:
    """What was captured of a row; to be asked once the block has ended."""

    def __init__(self) -> None:
        self._frames: CapturedFrames | None = None

    def take(self, captures: Sequence[Capturing]) -> None:
        """End captures and keep what they have."""
        links: dict[str, tuple[bytes, ...]] = {}
        lost = 0
        for capture in captures:
            frames, more = capture.end()
            links |= frames
            lost += more
        self._frames = CapturedFrames(links=links, lost=lost)

    def frames(self) -> CapturedFrames:
        """Return all frames."""
        assert self._frames is not None, "the block has ended"
        return self._frames


@contextlib.contextmanager
def captured_by(starts: Iterable[Callable[[], Capturing]]) -> Iterator[RowCapture]:
    """Start captures, and end them with the block."""
    capture, running = RowCapture(), list[Capturing]()
    try:
        for start in starts:
            running.append(start())
        for each in running:
            each.await_ready()
        yield capture
        capture.take(running)
    finally:
        for each in running:
            each.kill()


class RowLinks:
    """The links of two gateways in a row."""

    def __init__(self, standings: Sequence[Standing], places: Sequence[CommandPlace], stages: Sequence[Stage]) -> None:
        self.standings = tuple(standings)
        self._places = tuple(places)
        self._stages = tuple(stages)

    def captured(self) -> contextlib.AbstractContextManager[RowCapture]:
        """Capture inside the block; the link in the middle at the end that the customer's gateway has."""
        (first, second), (near, far) = self._places, self._stages
        return captured_by(
            (
                partial(LinkCapture, first, near.folder, {"left": near.ends["left"], "middle": near.ends["right"]}),
                partial(LinkCapture, second, far.folder, {"right": far.ends["right"]}),
            )
        )

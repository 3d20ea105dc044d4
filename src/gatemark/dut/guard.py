"""Removal that cannot be forgotten: at exit, on signals that end the process, and undisturbed by a second Ctrl-C.

After `kill -9` another process does it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from gatemark.errors import Interrupted

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


_previous: dict[int, Any] = {}
_guards: set[CleanupGuard] = set()


class CleanupGuard:
    """Calls `clean` at exit of the process, and turns SIGTERM and SIGHUP into Interrupted so that `with` blocks unwind.

    Signals are taken only in the main thread and only where nobody else handles them; the first guard takes them, the
    last one gives them back.
    """

    def __init__(self, clean: Callable[[], None]) -> None:
        self._clean = clean

    def install(self) -> None:
        """Start guarding."""
        atexit.register(self._clean)
        _guards.add(self)
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDING_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                _previous[number] = signal.signal(number, _raise_interrupted)

    def remove(self) -> None:
        """Stop guarding."""
        atexit.unregister(self._clean)
        _guards.discard(self)
        if _guards or threading.current_thread() is not threading.main_thread():
            return
        for number, handler in _previous.items():
            if signal.getsignal(number) is _raise_interrupted:
                signal.signal(number, handler)
        _previous.clear()

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Ignore SIGINT, SIGTERM and SIGHUP within the block, which must be short."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_ENDING_SIGNALS)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)


SURVIVOR = "gatemark-survivor"
"""The name, in its command line, of the process that waits for this one to be killed."""
_CLEAN = "from gatemark.dut.cleanup import remove_leftovers; remove_leftovers()"


@functools.cache
def leave_a_survivor() -> None:
    """Start, once, a process that cleans up if this one is killed; kernel settings would else stay as they are.

    A shell reads a pipe whose other end only this process has: a line says that it ended by itself, and the end of the
    pipe that it did not. The shell is in a session of its own, so nothing that a terminal sends reaches it. Where it
    cannot be started, or is killed as well, the next test bed cleans up.
    """
    command = ["sh", "-c", 'read -r ended || exec "$@"', SURVIVOR, sys.executable, "-c", _CLEAN]
    with contextlib.suppress(OSError):
        survivor = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        atexit.register(survivor.communicate, b"ended\n")


def _raise_interrupted(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name
    raise Interrupted(what=f"stopped by {name}", where="gatemark", fix="results so far are kept")

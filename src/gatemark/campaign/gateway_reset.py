"""Resets the gateway once while a trial is sending (RFC 6201 section 4)."""

from __future__ import annotations

import time
from collections.abc import Callable

from gatemark.engine.answers import Progress
from gatemark.errors import TestBedError
from gatemark.trial.record import ResetFacts


class GatewayReset:
    """One reset, made at the first progress record of the engine that shows that it is due.

    It is made in the thread that reads those records: the engine is a separate process and keeps sending, and its
    records wait in the pipe. So the reset may begin late, by at most the time between two progress records; when it
    began is recorded.
    """

    def __init__(self, reset: Callable[[], None] | None, after_ns: int) -> None:
        self._reset = reset
        self._after_ns = after_ns
        self._facts: ResetFacts | None = None
        self._error: TestBedError | None = None

    def take(self, progress: Progress) -> None:
        """Take one progress record of the engine. An error is kept until the trial is over."""
        elapsed_ns = int(progress.get("elapsed_ns", 0))
        is_time = progress.get("phase") == "send" and elapsed_ns >= self._after_ns
        if self._facts is not None or self._error is not None or self._reset is None or not is_time:
            return
        begin = time.monotonic_ns()
        try:
            self._reset()
        except TestBedError as error:
            self._error = error
        else:
            self._facts = ResetFacts(began_ns=elapsed_ns, took_ns=time.monotonic_ns() - begin)

    def facts(self) -> ResetFacts:
        """Return when the reset began; raise TestBedError if the gateway was not reset while the trial was sending."""
        if self._error is not None:
            raise self._error
        if self._facts is None:
            raise TestBedError(
                what="the gateway was not reset while the Tester sent",
                where="test bed",
                fix="send for longer after the reset: raise reset.observe",
            )
        return self._facts

"""Shows how the interval shrinks while pairs are made: a live line on a terminal, a line for each look everywhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.status import Status
from rich.text import Text

from gatemark.consoles import stderr_console
from gatemark.pairs.conclude import Setting, Wanted, look_part
from gatemark.pairs.evidence import look_at
from gatemark.pairs.pair import Pair
from gatemark.pairs.report import precision_words, ratio_words
from gatemark.stats.looks import looks_made, pairs_at
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, format_ratio


@dataclass(kw_only=True)
class PairDisplay:
    """Takes what happens, and shows it."""

    console: Console
    status: Status | None
    """Live line; None where there is no terminal."""
    shown: str = "no look yet"

    def on_open(self, setting: Setting) -> None:
        """Say what differs, before anything is measured."""
        self._say(f"pairs of {setting.traffic}")
        for difference in setting.differences:
            self._say(f"  differs: {difference.topic}: {difference.key}")
        if not setting.differences:
            self._say("  nothing differs as far as it is recorded")

    def on_pair(self, pairs: Sequence[Pair], measured_s: float, wanted: Wanted) -> None:
        """Show the last look, and how much time is left at most."""
        counting = [pair for pair in pairs if pair.counts]
        number = looks_made(len(counting))
        left_ns = max(0, wanted.time_ns - int(measured_s * NANOSECONDS_PER_SECOND))
        left = f"{format_duration_ns(left_ns // NANOSECONDS_PER_SECOND * NANOSECONDS_PER_SECOND)} left at most"
        if number and pairs[-1].counts and len(counting) == pairs_at(number):
            look = look_at(counting, number, wanted.error, wanted.figure.better)
            part = None if look is None else look_part(look)
            goal = f"±{format_ratio(wanted.precision)} asked"
            self.shown = f"B / A = {ratio_words(part)}, {precision_words(part)} ({goal})"
            self._say(f"{len(counting)} pairs: {self.shown}, {left}")
        if self.status is not None:
            doing = "looking for a load" if pairs[-1].is_search else f"{len(counting)} pairs"
            out = sum(not pair.is_kept for pair in pairs)
            load = f"{pairs[-1].load:,} {wanted.figure.load_unit}"
            self.status.update(Text(f"{doing}, {out} left out, {load}: {self.shown}, {left}"))

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError):  # nobody looks any more
            self.console.print(Text(line), soft_wrap=True)


@contextlib.contextmanager
def pair_display() -> Iterator[PairDisplay]:
    """Show pairs while the block runs."""
    console = stderr_console()
    if not console.is_terminal:
        yield PairDisplay(console=console, status=None)
        return
    with console.status("opening both test beds") as status:
        yield PairDisplay(console=console, status=status)

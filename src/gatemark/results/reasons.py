"""Why trials were invalid, or attempts failed: reasons without figures, so that equal ones are counted together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gatemark.results.part import ReasonPart


class ReasonCounter:
    """Counts in how many trials each reason occurs."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()

    def add(self, reasons: Sequence[str]) -> None:
        """Count the reasons of one trial, each once."""
        self._counted.update(dict.fromkeys((_general(reason) for reason in reasons), 1))

    def counted(self) -> tuple[ReasonPart, ...]:
        """Return the reasons with their trials, most frequent first."""
        return tuple(ReasonPart(reason=reason, trials=trials) for reason, trials in self._counted.most_common())


def _general(reason: str) -> str:
    """A reason without its figures: "forward: a burst was sent … late, … is allowed"."""
    words = []
    for word in reason.split():
        figure = word.strip("(),;:").replace(".", "").replace(",", "")
        words.append("…" if figure[:1].isdigit() and not word.endswith("port:") else word)
    return " ".join(words)

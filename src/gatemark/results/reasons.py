"""Why trials were invalid, or attempts failed: reasons without figures, so that equal ones fall together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gatemark.results.parts import ReasonPart


def count_reasons(reasons_of_each: Iterable[Sequence[str]]) -> tuple[ReasonPart, ...]:
    """Count in how many trials each reason occurs, most frequent first; `reasons_of_each` has one entry a trial."""
    counted: Counter[str] = Counter()
    for reasons in reasons_of_each:
        counted.update(dict.fromkeys((_general(reason) for reason in reasons), 1))
    return tuple(ReasonPart(reason=reason, trials=trials) for reason, trials in counted.most_common())


def _general(reason: str) -> str:
    """A reason without its figures: "forward: a burst was sent … late, … is allowed"."""
    words = []
    for word in reason.split():
        figure = word.strip("(),;:").replace(".", "").replace(",", "")
        words.append("…" if figure[:1].isdigit() and not word.endswith("port:") else word)
    return " ".join(words)

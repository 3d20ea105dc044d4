"""Which of two gateways in a row damaged frames: what a record keeps of it. The rules are in `damage`."""

from __future__ import annotations

from typing import Literal

from gatemark.facts import DamageCounts
from gatemark.trial.facts import Facts, Natural

CUSTOMER, PROVIDER = "the customer's gateway", "the provider's gateway"

Culprit = Literal["customer", "provider", "both"]
"""Which of both gateways damaged a frame."""
WORDS = {"customer": CUSTOMER, "provider": PROVIDER, "both": "both gateways"}
AT_LAST_LINK = frozenset(("destination_mac", "source_mac", "vlan"))
"""Faults of what the last gateway alone writes: the header of the link behind it."""
CAME_BACK = "wrong_port"
"""Fault of a frame that came back. Like those of the last link it is not seen on the link between both."""


class DamagedFrame(Facts):
    """A frame that arrived damaged, where it passed. In hexadecimal, without FCS; empty where it was not captured."""

    entered: str
    """As it entered the first gateway on its way."""
    middle: str
    """As it was on the link between both."""
    arrived: str
    """As the Tester received it."""
    by: Culprit | None
    """Which gateway damaged it. Null where that cannot be decided."""


class Damage(Facts, DamageCounts):
    """One kind of fault in one class of one direction, and which of two gateways in a row it comes from.

    A short trial at a low load is made after the one with the fault, with a capture on all three links: the counts are
    of this short trial.
    """

    faulty: Natural
    """Arrivals with this fault in the trial of the record, its test phase 1 included."""
    customer: Natural = 0
    provider: Natural = 0
    both: Natural = 0
    undecided: Natural = 0
    why: str | None = None
    """Why not, of the first of these; or why there is no answer at all. Null if there is an answer for all."""
    frames: tuple[DamagedFrame, ...] = ()
    """The first 4 of the short trial."""

    @property
    def sentence(self) -> str:
        """What is known, in words."""
        shares = {"customer": self.customer, "provider": self.provider, "both": self.both}
        known = {WORDS[name]: count for name, count in shares.items() if count}
        if not known:
            return f"it is not known which of the two gateways damaged them: {self.why}"
        if len(known) == 1 and not self.undecided:
            ((words, count),) = known.items()
            frames = "the one frame" if count == 1 else f"all {count:,} frames"
            return f"damaged in {words}{self._at_middle}, {frames} of a short trial made to find out"
        parts = [f"{count:,} in {words}" for words, count in known.items()]
        if self.undecided:
            parts.append(f"{self.undecided:,} undecided ({self.why})")
        return f"of {self.again:,} damaged frames of a short trial made to find out: {', '.join(parts)}"

    @property
    def _at_middle(self) -> str:
        """What was seen on the link between both if a single gateway is to blame; nothing of what is not seen there."""
        if self.both or self.reason in AT_LAST_LINK or self.reason == CAME_BACK:
            return ""
        is_first = bool(self.customer) == (self.direction == "forward")
        return ": already wrong on the link between both" if is_first else ": still right on the link between both"

    @property
    def told(self) -> str:
        """The sentence with the frames that it is about."""
        frames = "1 frame" if self.faulty == 1 else f"{self.faulty:,} frames"
        return f"{self.direction} {self.traffic_class}, {frames} with fault {self.reason}: {self.sentence}"

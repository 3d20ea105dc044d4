"""The way to the gateway: both links up, and its link-layer addresses known."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from gatemark.engine.client import Engine
from gatemark.errors import RESUME, EngineError, Problem, TestBedError
from gatemark.technology import SIDES
from gatemark.trial.messages import ResolveRequest

POLL_S = 1.0
SILENT = re.compile(r"did not answer [\w ]+ on port ")
"""What the engine says of a gateway that is asked for an address and is silent, and of nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """How the gateway's answers differ from those before, when it is asked for its link-layer addresses again."""

    changes: tuple[str, ...]
    """Which addresses changed, in sentences."""
    silences: tuple[str, ...]
    """For which addresses it no longer answers, or which link is down, in sentences."""
    problems: tuple[Problem, ...]
    """The silences as the engine tells them, to be raised."""

    @property
    def sentences(self) -> tuple[str, ...]:
        return self.changes + self.silences


@dataclass(frozen=True, slots=True)
class GatewayAddresses:
    """The gateway's link-layer addresses (RFC 826, RFC 4861), as it answered when it was last asked.

    The engine sends to the address that it was last told, so asking again also heals.
    """

    engine: Engine
    requests: Sequence[ResolveRequest]
    _known: dict[tuple[str, str], str] = field(default_factory=dict)
    """Address of the link layer, by side and IP address."""

    def reach(self, *, wait_s: float = 0.0) -> None:
        """Find the addresses; they may be new after a boot.

        With `wait_s`, links may be down and the gateway silent for so long, because its host has just booted; then they
        have settled. Raises EngineError if the gateway does not answer, TestBedError if a link stays down.
        """
        until = time.monotonic() + wait_s
        while True:
            try:
                if wait_s:
                    _check_links(self.engine)
                for body in self.requests:
                    self._ask(body)
            except (EngineError, TestBedError):
                if time.monotonic() >= until:
                    raise
                time.sleep(min(POLL_S, wait_s))
            else:
                return

    def ask_again(self) -> News:
        """Ask for the addresses again and return what is new; the first answers of all are not.

        Where a link is down, nobody can answer, and the link is the news.
        Raises EngineError if the engine cannot ask or is gone, which is no silence of the gateway.
        """
        changes: list[str] = []
        silences: list[str] = []
        problems: list[Problem] = []
        for body in self.requests:
            try:
                before, now = self._ask(body)
            except EngineError as error:
                if SILENT.search(error.what) is None:
                    raise
                if down := _sides_down(self.engine):  # nobody can answer: this is what broke
                    return _news_of_link(link_down(down))
                what = f"the gateway no longer answers for its address on the {body['side']}: {error.what}"
                silences.append(what)
                problems += error.problems
            else:
                if before not in (None, now):
                    changes.append(
                        f"the gateway's Ethernet address on the {body['side']} changed from {before} to {now}"
                    )
        return News(changes=tuple(dict.fromkeys(changes)), silences=tuple(silences), problems=tuple(problems))

    def _ask(self, body: ResolveRequest) -> tuple[str | None, str]:
        """Return the address that was known and the one that the gateway has now."""
        asked = body["side"], body["gateway"]
        before = self._known.get(asked)
        self._known[asked] = str(self.engine.resolve(body)["mac"])
        return before, self._known[asked]


def link_down(sides: list[str]) -> TestBedError:
    """Return the error of links that went down and stay down."""
    return TestBedError(
        what="the link went down and did not come back",
        where=f"{' and '.join(sides)} port",
        fix=f"check cable, interface and gateway, then continue with {RESUME}",
    )


def _news_of_link(error: TestBedError) -> News:
    return News(changes=(), silences=(f"{error.where}: {error.what}",), problems=error.problems)


def _sides_down(engine: Engine) -> list[str]:
    answer = engine.link()
    return [side for side in SIDES if not answer[side]["link_up"]]


def _check_links(engine: Engine) -> None:
    if down := _sides_down(engine):
        raise TestBedError(
            what="the link did not come up again",
            where=f"{' and '.join(down)} port",
            fix="check cable, interface and gateway; if it needs longer, raise gateway.control.limits.boot",
        )

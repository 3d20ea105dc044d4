"""The way to the gateway: both links up, and its link-layer addresses known."""

from __future__ import annotations

import time

from gatemark.config.model import Campaign
from gatemark.engine.client import Engine
from gatemark.errors import EngineError, TestBedError
from gatemark.trial.request import resolve_requests

POLL_S = 1.0


def reach_gateway(engine: Engine, campaign: Campaign, *, wait_s: float = 0.0) -> None:
    """Find the gateway's link-layer addresses; they may be new after a boot.

    With `wait_s`, links may be down and the gateway silent for so long, because its host has just booted; then they
    have settled. Raises EngineError if the gateway does not answer, TestBedError if a link stays down.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            if wait_s:
                _check_links(engine)
            for body in resolve_requests(campaign):
                engine.resolve(body)
        except (EngineError, TestBedError):
            if time.monotonic() >= until:
                raise
            time.sleep(min(POLL_S, wait_s))
        else:
            return


def _check_links(engine: Engine) -> None:
    answer = engine.link()
    down = [side for side in ("left", "right") if not answer[side]["link_up"]]
    if down:
        raise TestBedError(
            what="the link did not come up again",
            where=f"{' and '.join(down)} port",
            fix="check cable, interface and gateway; if it needs longer, raise gateway.control.limits.boot",
        )

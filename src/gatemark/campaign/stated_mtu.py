"""The MTUs that a gateway states where packets are too large for a link: asked with one packet a direction."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatemark.config.model import Campaign
from gatemark.engine.client import Engine
from gatemark.errors import EngineError
from gatemark.facts import ONE_WAYS
from gatemark.packets import IcmpError, ip_packet, read_frame
from gatemark.trial.cell import Cell
from gatemark.trial.connection_request import frames_requests
from gatemark.trial.exchange import Exchange, read_exchange
from gatemark.trial.record import TrialRecord
from gatemark.units import NANOSECONDS_PER_SECOND

WAIT_NS = NANOSECONDS_PER_SECOND // 2


def stated_mtus(campaign: Campaign, cell: Cell, engine: Engine) -> tuple[int, ...]:
    """Return the MTUs that the gateway states in answer to the first packet of each direction, ascending."""
    packets: dict[str, list[str]] = {"forward": [], "reverse": []}
    for request in frames_requests(campaign, cell, count=1):
        for frame in engine.frames(request)["frames"]:
            packets[frame["direction"]].append(ip_packet(bytes.fromhex(frame["sent"])).hex())
    exchange = Exchange(
        left=tuple(packets["forward"]), right=tuple(packets["reverse"]), interval_ns=WAIT_NS, wait_ns=WAIT_NS
    )
    arrived = read_exchange(engine.exchange(exchange.body)).arrived
    errors = (read_frame(bytes.fromhex(frame.octets)) for frame in arrived)
    return tuple(sorted({error.mtu for error in errors if isinstance(error, IcmpError) and error.mtu is not None}))


@dataclass(slots=True)
class StatedMtus:
    """Asks once for each cell of a campaign, after the first failed trial in which the gateway said so."""

    campaign: Campaign
    engine: Engine
    _known: dict[Cell, tuple[int, ...]] = field(default_factory=dict)

    def of(self, record: TrialRecord) -> tuple[int, ...]:
        """Return what the gateway states about frames of a trial; nothing if they fit, or it does not answer."""
        cell = record.order.run.cell
        if (
            record.verdict is None
            or record.verdict.passed
            or not any(record.report.told_too_large(way) for way in ONE_WAYS)
        ):
            return ()
        if cell not in self._known:
            try:
                self._known[cell] = stated_mtus(self.campaign, cell, self.engine)
            except EngineError:  # the trial is as it is
                return ()
        return self._known[cell]

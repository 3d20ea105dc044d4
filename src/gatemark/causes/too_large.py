"""Packets are larger than a link behind the gateway carries: it answers with errors that state the MTU.

Rule: every frame of a class in a direction was lost, and its sender got ICMP errors that say so (RFC 792, RFC 4443
section 3.2). Gateways limit how many errors they send, so one is enough. Frames of a class have one size, so none of it
fits. Error: none by chance; an error about packets of other programs would have to come at the same time.
"""

from __future__ import annotations

from gatemark.causes.losses import Losses
from gatemark.trial.cause import Cause


def explain(losses: Losses) -> Cause | None:
    """Return that no frame of the class fits, and the MTU if the gateway was asked; None if it did not say so."""
    if losses.lost < losses.counts.offered or not losses.told_too_large:
        return None
    stated = " and ".join(f"{mtu:,}" for mtu in losses.stated_mtus)
    mtu = f": the gateway states an MTU of {stated} octets" if stated else ""
    them = "packets too large for a link behind the gateway"
    return losses.cause(
        "too_large",
        f"all {losses.lost:,} frames were lost, and {losses.told_too_large:,} ICMP errors say that they are"
        f" {them}{mtu}",
        what=f"{them}{mtu}",
        explained=losses.lost,
        chance=None,
        is_fixed=True,
    )

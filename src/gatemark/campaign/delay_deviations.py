"""Where the measurements of delays, bursts, recovery and reset leave the RFCs: one sentence each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gatemark.config import defaults
from gatemark.config.delay_tables import DelayModel
from gatemark.config.model import Campaign
from gatemark.units import format_duration_ns, format_ratio


def delay_deviations(campaign: Campaign) -> Iterator[str]:
    """Yield what the tables of delays, bursts, recovery and reset do otherwise than RFC 2544, 6201, 8219 and 9004."""
    if campaign.delay is not None:
        yield from _of_the_loads(campaign.delay)
        yield from _of_the_trials(campaign.delay)
    yield from _of_the_bursts(campaign)
    yield from _of_the_recovery(campaign)
    yield from _of_the_reset(campaign)


def _of_the_loads(delay: DelayModel) -> Iterator[str]:
    other = [load for load in delay.load if load != Fraction(1) or isinstance(load, int)]
    if other:
        named = ", ".join(f"{load} frames/s" if isinstance(load, int) else format_ratio(load) for load in other)
        also = "also " if len(other) < len(delay.load) else ""
        yield f"Delays are {also}measured at other loads than the throughput: {named} (RFC 8219 sections 7.2 and 7.3)."
    if "pdv" not in delay.metrics and "ipdv" not in delay.metrics:
        yield "No delay variation is measured (RFC 8219 section 7.3 recommends it)."


def _of_the_trials(delay: DelayModel) -> Iterator[str]:
    sending_ns = delay.sending_ns
    if delay.has_latency and sending_ns < defaults.LATENCY_DURATION_NS:
        yield f"Latency trials last {format_duration_ns(sending_ns)}, less than 120s (RFC 8219 section 7.2)."
    if not delay.has_latency and sending_ns < defaults.TRIAL_DURATION_NS:
        yield f"Delay variation trials last {format_duration_ns(sending_ns)}, less than 60s (RFC 8219 section 7.3)."
    if not delay.has_latency:
        return
    if delay.first_tag_ns < defaults.FIRST_TAG_NS:
        yield (
            f"Frames are tagged from {format_duration_ns(delay.first_tag_ns)} on, not from 60s on"
            " (RFC 8219 section 7.2)."
        )
    if delay.tags < defaults.TAGS_MIN:
        yield f"{delay.tags} frames are tagged, fewer than {defaults.TAGS_MIN} (RFC 8219 section 7.2)."


def _of_the_bursts(campaign: Campaign) -> Iterator[str]:
    model = campaign.back_to_back
    if model is None:
        return
    if model.bursts < defaults.BURSTS:
        yield (
            f"The longest burst is searched for {model.bursts} times, fewer than {defaults.BURSTS}"
            " (RFC 2544 section 26.4)."
        )
    if model.ceiling_ns < defaults.BURST_CEILING_NS:
        yield (f"Bursts are at most {format_duration_ns(model.ceiling_ns)} long, less than 30s (RFC 9004 section 6.2).")
    if model.wait_ns < defaults.BURST_WAIT_NS:
        yield f"After a burst {format_duration_ns(model.wait_ns)} pass, less than 2s (RFC 9004 section 6.2)."


def _of_the_recovery(campaign: Campaign) -> Iterator[str]:
    model = campaign.system_recovery
    if model is None:
        return
    if model.overload != defaults.OVERLOAD:
        yield f"The overload is {format_ratio(model.overload)} of the throughput, not 110% (RFC 2544 section 26.5)."
    if model.duration_ns < defaults.TRIAL_DURATION_NS:
        yield f"The overload lasts {format_duration_ns(model.duration_ns)}, less than 60s (RFC 2544 section 26.5)."
    if model.load is not None:
        yield (
            f"The overload is a share of {model.load} frames/s, not of the measured throughput (RFC 2544 section 26.5)."
        )


def _of_the_reset(campaign: Campaign) -> Iterator[str]:
    model = campaign.reset
    if model is None:
        return
    yield "Only a software reset is measured, no reset of hardware and no power interruption (RFC 6201 section 4)."
    if model.before_ns < defaults.BEFORE_RESET_NS:
        yield (
            f"Frames are sent for {format_duration_ns(model.before_ns)} before the reset, less than 15s"
            " (RFC 6201 section 4)."
        )
    if model.load is not None:
        yield f"The reset is measured at {model.load} frames/s, not at the measured throughput (RFC 6201 section 4)."

"""What the tables for delays, bursts, recovery and reset must satisfy, before anything is known from a recipe. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gatemark.config.delay_tables import DelayModel
from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.config.types import DURATION_MAX_NS
from gatemark.errors import Problem
from gatemark.units import format_duration_ns, format_ratio, frames_before, frames_in

_LOAD_FIX = "add a table [throughput], or write loads in frames/s"


def check_delays(campaign: Campaign) -> Iterator[Problem]:
    """Loads that can be known, tags that fit, nothing without effect."""
    if campaign.delay is not None:
        yield from _delay(campaign, campaign.delay)


def _delay(campaign: Campaign, delay: DelayModel) -> Iterator[Problem]:
    for key, values in (("metrics", delay.metrics), ("load", delay.load)):
        if len(set(values)) < len(values):
            yield problem(campaign, f"delay.{key}", "lists a value twice", "list each value once")
    shares = [load for load in delay.load if isinstance(load, Fraction)]
    if shares and len(shares) < len(delay.load):
        yield problem(
            campaign,
            "delay.load",
            "mixes shares of the throughput and frames/s",
            "write either: without a throughput there would be no load for the shares",
        )
    elif shares and campaign.throughput is None:
        yield problem(
            campaign, "delay.load", f"is {format_ratio(shares[0])} of a throughput that is not measured", _LOAD_FIX
        )
    if delay.has_latency:
        yield from _tags(campaign, delay)
        return
    for name, key in (("first_tag_ns", "first_tag"), ("tags", "tags")):
        if name in delay.model_fields_set:
            yield problem(
                campaign,
                f"delay.{key}",
                "has no effect: delay.metrics does not hold latency, and only latency has tagged frames",
                'leave it out, or add "latency" to delay.metrics',
            )


def _tags(campaign: Campaign, delay: DelayModel) -> Iterator[Problem]:
    """The first tag lies within the trial, and a load that is known has frames for all tags."""
    if delay.first_tag_ns >= delay.sending_ns:
        yield problem(
            campaign,
            "delay.first_tag",
            f"is {format_duration_ns(delay.first_tag_ns)}, but frames are sent for"
            f" {format_duration_ns(delay.sending_ns)} only",
            "write a time below delay.duration",
        )
        return
    for load in delay.load:
        if isinstance(load, Fraction):
            continue
        room = frames_in(load, delay.sending_ns) - frames_before(load, delay.first_tag_ns)
        if room < delay.tags:
            yield problem(
                campaign,
                "delay.tags",
                f"is {delay.tags}, but {load} frames/s have {max(0, room)} frames after the first tag",
                f"write at most {room}, a longer delay.duration or a higher load" if room > 0 else "raise the load",
            )


def check_bursts(campaign: Campaign) -> Iterator[Problem]:
    """A longest burst is a time at line rate, and a burst is longest only where the line carries more than passes."""
    model = campaign.back_to_back
    if model is None:
        return
    if campaign.throughput is None:
        yield problem(
            campaign,
            "back_to_back",
            "needs the throughput: it is measured where that is below the line rate (RFC 9004 section 6.1)",
            "add a table [throughput]",
        )
    if model.resolution == 1 and isinstance(model.resolution, Fraction):
        yield problem(
            campaign,
            "back_to_back.resolution",
            "is as large as the ceiling, so nothing would be searched",
            'write for example resolution = "1%"',
        )


def check_recovery(campaign: Campaign) -> Iterator[Problem]:
    """An overload is more than the throughput, and that is known."""
    model = campaign.system_recovery
    if model is None:
        return
    yield from _base_load(campaign, "system_recovery", model.load)
    if model.overload <= 1:
        yield problem(
            campaign,
            "system_recovery.overload",
            f"is {format_ratio(model.overload)} of the throughput, which is no overload",
            "write more than 100% (RFC 2544 section 26.5 wants 110%)",
        )
    yield from _length(campaign, "system_recovery", model.duration_ns + model.observe_ns)


def check_reset(campaign: Campaign) -> Iterator[Problem]:
    """The load is known, and a loop-back has nothing to be reset."""
    model = campaign.reset
    if model is None:
        return
    yield from _base_load(campaign, "reset", model.load)
    yield from _length(campaign, "reset", model.before_ns + model.observe_ns)
    control = campaign.gateway.control
    if not campaign.bed.has_gateway:
        yield problem(campaign, "reset", "makes no sense without a gateway", "leave the table out")
    elif campaign.bed.takes_control and (control is None or not control.reset):
        yield problem(
            campaign,
            "gateway.control.reset",
            "is missing: nothing resets the gateway",
            'write the commands that do, for example reset = "systemctl restart gateway"',
        )


def reset_problems(campaign: Campaign) -> Iterator[Problem]:
    """What the recipe must have a command for; only once it is known."""
    if campaign.reset is not None and campaign.bed.has_recipe and "reset" not in campaign.actions:
        yield problem(
            campaign,
            "testbed.recipe",
            f"{campaign.testbed.recipe} has no command reset, which the table [reset] measures",
            "copy the recipe and add reset under [commands]",
        )


def _base_load(campaign: Campaign, table: str, load: int | None) -> Iterator[Problem]:
    if load is None and campaign.throughput is None:
        yield problem(
            campaign,
            f"{table}.load",
            "is missing, and no throughput is measured to take its place",
            f'add a table [throughput], or write frames/s, for example {table}.load = "100k"',
        )


def _length(campaign: Campaign, table: str, length_ns: int) -> Iterator[Problem]:
    if length_ns > DURATION_MAX_NS:
        yield problem(campaign, f"{table}.observe", "makes the trial longer than a week", "write shorter times")

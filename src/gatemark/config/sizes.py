"""Frame sizes of a trial in both families, and which of them the path carries whole. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.config.tables import OneWay
from gatemark.config.types import Mix
from gatemark.technology import Family, SideName


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """Octets with FCS of the frames of one trial."""

    ipv4: int | None
    """Octets of IPv4 frames. Null if the trial neither sends nor receives any."""
    ipv6: int | None
    """Octets of IPv6 frames. Null if the trial neither sends nor receives any."""

    def label(self) -> str:
        """Return both sizes as ``IPv4 / IPv6``, for every technology in this order, or the one there is."""
        return " / ".join(str(octets) for octets in (self.ipv4, self.ipv6) if octets is not None)

    def of(self, family: Family) -> int:
        """Return the size of a family that the trial has."""
        octets = self.ipv4 if family == "ipv4" else self.ipv6
        assert octets is not None, f"the trial has no {family} frames"
        return octets

    @property
    def largest(self) -> int:
        """Return the size of the larger frame, which decides what the line can carry (RFC 5180 appendix A.1)."""
        return max(octets for octets in (self.ipv4, self.ipv6) if octets is not None)


@dataclass(frozen=True, slots=True)
class SizeProblem:
    """Why a frame size cannot be measured."""

    where: str
    what: str
    fix: str


def size_family(campaign: Campaign) -> Family:
    """Return the family that names the sizes: as the file says, else IPv6 only where nothing else is forwarded."""
    if campaign.traffic.frame_sizes is not None:
        return campaign.traffic.frame_sizes.family
    return "ipv6" if {campaign.roles.family("left"), campaign.roles.family("right")} == {"ipv6"} else "ipv4"


def sizes_for(campaign: Campaign, octets: int, mix: Mix) -> FrameSizes:
    """Return the sizes of one trial: `octets` in the naming family, the other family 20 octets off."""
    ipv4 = octets if size_family(campaign) == "ipv4" else octets - defaults.TRANSLATION_OVERHEAD
    families: set[Family] = {"ipv6"} if mix.has_background else set()
    if mix.has_foreground:
        families |= {campaign.roles.family("left"), campaign.roles.family("right")}
    return FrameSizes(
        ipv4=ipv4 if "ipv4" in families else None,
        ipv6=ipv4 + defaults.TRANSLATION_OVERHEAD if "ipv6" in families else None,
    )


def measured_octets(campaign: Campaign) -> tuple[int, ...]:
    """Return the sizes to be measured, in the naming family: those of the file, else the standard ones that fit."""
    if campaign.traffic.frame_sizes is not None:
        return campaign.traffic.frame_sizes.octets
    return tuple(octets for octets in standard_octets(campaign) if not any(size_problems(campaign, octets)))


def standard_octets(campaign: Campaign) -> tuple[int, ...]:
    """Return the sizes of RFC 8219 section 5.1.1 in the naming family."""
    return defaults.STANDARD_SIZES_IPV4 if size_family(campaign) == "ipv4" else defaults.STANDARD_SIZES_IPV6


def mtu_of(campaign: Campaign, side: SideName) -> int:
    """Return the largest IP packet of one side in octets."""
    return campaign.side(side).mtu or defaults.MTU


def size_problems(campaign: Campaign, octets: int) -> Iterator[SizeProblem]:
    """Yield why frames of this size cannot reach the other side whole, by MTU or by fragmentation."""
    extensions = campaign.traffic.extension_headers
    needed = sum(defaults.EXTENSION_OCTETS[header] for header in extensions)
    smallest = defaults.FRAME_OCTETS_IPV6[0] + needed
    if extensions and size_family(campaign) == "ipv6" and octets < smallest:
        yield SizeProblem(
            where="traffic.frame_sizes.octets",
            what=f"{octets} octets leave no room for {needed} octets of extension headers",
            fix=f"write {smallest} or more (RFC 5180 section 5.3)",
        )
        return
    for mix in campaign.traffic.mix:
        sizes = sizes_for(campaign, octets, mix)
        too_large = tuple(_mtu_problems(campaign, sizes, mix))
        yield from too_large
        if not too_large and mix.has_foreground and campaign.technology.is_translation and campaign.bed.has_gateway:
            yield from _fragmentation_problems(campaign, sizes)


def _mtu_problems(campaign: Campaign, sizes: FrameSizes, mix: Mix) -> Iterator[SizeProblem]:
    sides: tuple[SideName, ...] = ("left", "right")
    for side in sides:
        families: set[Family] = {"ipv6"} if mix.has_background else set()
        if mix.has_foreground:
            families.add(campaign.roles.family(side))
        mtu = mtu_of(campaign, side)
        for family in sorted(families):
            packet = sizes.of(family) - defaults.LINK_OVERHEAD
            if packet > mtu:
                name = "IPv4" if family == "ipv4" else "IPv6"
                yield SizeProblem(
                    where="traffic.frame_sizes.octets",
                    what=f"an {name} frame of {sizes.of(family)} octets holds a packet of {packet},"
                    f" more than the MTU of {mtu} on the {side} side",
                    fix=f"set {side}.mtu to {packet} or more if gateway and port are configured for it,"
                    " or leave the size out",
                )


def _fragmentation_problems(campaign: Campaign, sizes: FrameSizes) -> Iterator[SizeProblem]:
    """RFC 7915 section 4: without DF a translator fragments what becomes longer than its lowest-ipv6-mtu."""
    to_ipv6: OneWay = "forward" if campaign.roles.family("left") == "ipv4" else "reverse"
    if to_ipv6 not in campaign.directions.in_use or campaign.directions.traffic_of(to_ipv6).dont_fragment:
        return
    lowest = campaign.gateway.lowest_ipv6_mtu or defaults.LOWEST_IPV6_MTU
    total = sizes.of("ipv4") - defaults.LINK_OVERHEAD
    if total + defaults.TRANSLATION_OVERHEAD > lowest:
        yield SizeProblem(
            where="traffic.frame_sizes.octets",
            what=f"an IPv4 frame of {sizes.ipv4} octets holds a packet of {total} without DF; a translator fragments it"
            f" because the IPv6 packet of {total + defaults.TRANSLATION_OVERHEAD} exceeds {lowest}"
            " (RFC 7915 section 4)",
            fix="set traffic.dont_fragment = true, or state with gateway.lowest_ipv6_mtu ="
            f" {total + defaults.TRANSLATION_OVERHEAD} that the gateway is configured for it",
        )

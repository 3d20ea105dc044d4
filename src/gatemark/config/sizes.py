"""Frame sizes of a trial in both families, and which of them the path carries whole. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.config.problems import in_file, problem
from gatemark.config.tables import ENDS
from gatemark.config.types import Mix
from gatemark.errors import Problem
from gatemark.facts import Direction
from gatemark.technology import FAMILY_WORDS, SIDES, Family, FrameKind, SideName, Technology


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """Octets with FCS of the frames of one trial."""

    ipv4: int | None
    """Octets of IPv4 frames. Null if the trial neither sends nor receives any."""
    ipv6: int | None
    """Octets of IPv6 frames. Null if the trial neither sends nor receives any."""
    tunnel: int | None = None
    """Octets of frames with an outer header. Null without tunnels."""

    @property
    def known(self) -> tuple[int, ...]:
        """Return all sizes that the trial has."""
        return tuple(octets for octets in (self.ipv4, self.ipv6, self.tunnel) if octets is not None)

    def label(self) -> str:
        """Return the sizes as "IPv4 / IPv6", for every technology in this order, or the one there is; those in tunnels
        follow: "64 (104 in tunnels)"."""
        without = " / ".join(str(octets) for octets in (self.ipv4, self.ipv6) if octets is not None)
        return without if self.tunnel is None else f"{without} ({self.tunnel} in tunnels)"

    def of(self, kind: FrameKind) -> int:
        """Return the size of a kind that the trial has."""
        octets: int | None = getattr(self, kind)
        assert octets is not None, f"the trial has no {kind} frames"
        return octets

    @property
    def largest(self) -> int:
        """Return the size of the largest frame."""
        return max(self.known)


_KIND_WORDS: Mapping[FrameKind, str] = {
    "ipv4": "an IPv4 frame",
    "ipv6": "an IPv6 frame",
    "tunnel": "a frame with its outer header",
}


def size_family(campaign: Campaign) -> Family:
    """Return the family that names the sizes: as the file says, else IPv6 only where nothing else is forwarded."""
    if campaign.traffic.frame_sizes is not None:
        return campaign.traffic.frame_sizes.family
    return "ipv6" if _packet_families(campaign) == {"ipv6"} else "ipv4"


def _packet_families(campaign: Campaign) -> set[Family]:
    return {campaign.roles.packet_family("left"), campaign.roles.packet_family("right")}


def sizes_for(campaign: Campaign, octets: int, mix: Mix) -> FrameSizes:
    """Return the sizes of one trial: `octets` in the naming family, the other family 20 octets off.

    In a tunnel a packet is longer by the outer header.
    """
    ipv4 = octets if size_family(campaign) == "ipv4" else octets - defaults.TRANSLATION_OVERHEAD
    families: set[Family] = {"ipv6"} if mix.has_background else set()
    if mix.has_foreground:
        families |= _packet_families(campaign)
    sizes = FrameSizes(
        ipv4=ipv4 if "ipv4" in families else None,
        ipv6=ipv4 + defaults.TRANSLATION_OVERHEAD if "ipv6" in families else None,
    )
    technology = campaign.technology
    if technology.inside_tunnels is None or not mix.has_foreground:
        return sizes
    header = defaults.HEADER_OCTETS[technology.outer_family]
    return replace(sizes, tunnel=sizes.of(technology.inside_tunnels) + header)


def middle_octets(technology: Technology, sizes: FrameSizes) -> int:
    """Return the size of foreground frames on the link between two gateways in a row: translated or in a tunnel."""
    return sizes.of(technology.families[0]) + middle_overhead(technology)


def middle_overhead(technology: Technology) -> int:
    """Return by how many octets packets are longer between two gateways in a row than on both sides."""
    outer = technology.tunnel_within
    return defaults.TRANSLATION_OVERHEAD if outer is None else defaults.HEADER_OCTETS[outer]


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


def frame_size_problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield why frames of the sizes in the file cannot be sent, or do not pass whole."""
    sizes = campaign.traffic.frame_sizes
    if sizes is None:
        return
    only = campaign.roles.packet_family("left")
    if not campaign.technology.is_translation and size_family(campaign) != only:
        yield problem(
            campaign,
            "traffic.frame_sizes.family",
            f"is {sizes.family}, but {campaign.technology.name} forwards {FAMILY_WORDS[only]} frames",
            f'write family = "{only}"',
        )
        return
    for octets in sizes.octets:
        yield from (in_file(campaign, of_size) for of_size in size_problems(campaign, octets))


def size_problems(campaign: Campaign, octets: int) -> Iterator[Problem]:
    """Yield why frames of this size cannot reach the other side whole, by MTU or by fragmentation; where: the key."""
    lacks_room = _room_problem(campaign, octets)
    if lacks_room is not None:
        yield lacks_room
        return
    for mix in campaign.traffic.mix:
        sizes = sizes_for(campaign, octets, mix)
        too_large = tuple(_mtu_problems(campaign, sizes, mix))
        yield from too_large
        if not too_large and mix.has_foreground and campaign.technology.translates_within and campaign.bed.has_gateway:
            yield from _fragmentation_problems(campaign, sizes)


def _room_problem(campaign: Campaign, octets: int) -> Problem | None:
    """Say what frames of this size have no room for beside the smallest packet."""
    is_ipv4, trailer = size_family(campaign) == "ipv4", campaign.traffic.trailer_octets
    headers = () if is_ipv4 else campaign.traffic.extension_headers
    extensions = sum(defaults.EXTENSION_OCTETS[header] for header in headers)
    smallest = (defaults.FRAME_OCTETS_IPV4 if is_ipv4 else defaults.FRAME_OCTETS_IPV6)[0] + extensions + trailer
    if octets >= smallest:
        return None
    behind = f"{trailer} octet{'s' if trailer > 1 else ''} behind the packet"
    parts = {f"{extensions} octets of extension headers": extensions, behind: trailer}
    return Problem(
        where="traffic.frame_sizes.octets",
        what=f"{octets} octets leave no room for {' and '.join(part for part, count in parts.items() if count)}",
        fix=f"write {smallest} or more" + (" (RFC 5180 section 5.3)" if extensions else ""),
    )


def frames_on_links(campaign: Campaign, sizes: FrameSizes, direction: Direction, mix: Mix) -> Iterator[dict[int, int]]:
    """Yield for each link, and each direction that is used, how many frames of each size it carries in a period of the
    mix. Sizes are octets with FCS and the VLAN tag of the side.
    """
    for kind, more in _links(campaign, direction):
        numbers = Counter[int]()
        if mix.has_foreground:
            octets = middle_octets(campaign.technology, sizes) if kind is None else sizes.of(kind)
            numbers[octets + more] += mix.m
        if mix.has_background:
            numbers[sizes.of("ipv6") + more] += mix.n - mix.m
        yield dict(sorted(numbers.items()))


def _links(campaign: Campaign, direction: Direction) -> Iterator[tuple[FrameKind | None, int]]:
    """Yield for each link, and each direction that is used, what kind the foreground's frames are, and by how many
    octets all frames are longer than their sizes say. The kind between two gateways in a row is None.

    Frames are received without what was sent behind the packet (RFC 5180 appendix A.1).
    """
    tags = {side: defaults.VLAN_TAG_OCTETS if campaign.side(side).vlan is not None else 0 for side in SIDES}
    trailer = campaign.traffic.trailer_octets
    for way, (sender, receiver) in ENDS.items():
        if direction in (way, "bidirectional"):
            yield campaign.roles.frame_kind(sender), tags[sender]
            yield campaign.roles.frame_kind(receiver), tags[receiver] - trailer
            if campaign.technology.in_a_row:
                yield None, -trailer


def _mtu_problems(campaign: Campaign, sizes: FrameSizes, mix: Mix) -> Iterator[Problem]:
    for side in SIDES:
        kinds: set[FrameKind] = {"ipv6"} if mix.has_background else set()
        if mix.has_foreground:
            kinds.add(campaign.roles.frame_kind(side))
        mtu = mtu_of(campaign, side)
        for kind in sorted(kinds):
            data = sizes.of(kind) - defaults.LINK_OVERHEAD
            if data > mtu:
                holds = f"{data} octets including the trailer" if campaign.traffic.trailer_octets else f"{data}"
                yield Problem(
                    where="traffic.frame_sizes.octets",
                    what=f"{_KIND_WORDS[kind]} of {sizes.of(kind)} octets holds a packet of {holds},"
                    f" more than the MTU of {mtu} on the {side} side",
                    fix=f"set {side}.mtu to {data} or more if gateway and port are configured for it,"
                    " or leave the size out",
                )
    if campaign.technology.in_a_row and mix.has_foreground:
        octets = middle_octets(campaign.technology, sizes) - campaign.traffic.trailer_octets
        data, mtu = octets - defaults.LINK_OVERHEAD, campaign.gateway.middle_mtu or defaults.MTU
        if data > mtu:
            yield Problem(
                where="traffic.frame_sizes.octets",
                what=f"a frame of {octets} octets between both gateways holds a packet of {data}, more than the MTU of"
                f" {mtu} there",
                fix=f"set gateway.middle_mtu to {data} or more if their link is configured for it, or leave the size"
                " out",
            )


def _fragmentation_problems(campaign: Campaign, sizes: FrameSizes) -> Iterator[Problem]:
    """RFC 7915 section 4: without DF a translator fragments what becomes longer than its lowest-ipv6-mtu."""
    from_ipv4 = (way for way in campaign.directions.in_use if campaign.roles.family(ENDS[way][0]) == "ipv4")
    if all(campaign.directions.traffic_of(way).dont_fragment for way in from_ipv4):
        return
    lowest = campaign.gateway.lowest_ipv6_mtu or defaults.LOWEST_IPV6_MTU
    total = sizes.of("ipv4") - defaults.LINK_OVERHEAD - campaign.traffic.trailer_octets
    if total + defaults.TRANSLATION_OVERHEAD > lowest:
        yield Problem(
            where="traffic.frame_sizes.octets",
            what=f"an IPv4 frame of {sizes.ipv4} octets holds a packet of {total} without DF; a translator fragments it"
            f" because the IPv6 packet of {total + defaults.TRANSLATION_OVERHEAD} exceeds {lowest}"
            " (RFC 7915 section 4)",
            fix="set traffic.dont_fragment = true, or state with gateway.lowest_ipv6_mtu ="
            f" {total + defaults.TRANSLATION_OVERHEAD} that the gateway is configured for it",
        )

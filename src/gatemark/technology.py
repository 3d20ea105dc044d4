"""What a gateway does to packets: one row for each technology that gatemark measures. Pure.

Nothing else looks at the letters of a technology's name: what follows from it is a column of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Family = Literal["ipv4", "ipv6"]
FrameKind = Literal["ipv4", "ipv6", "tunnel"]
"""A frame by its size: `tunnel` is a packet with its outer header (RFC 2473, RFC 4213 section 3)."""
SideName = Literal["left", "right"]
SIDES: tuple[SideName, SideName] = ("left", "right")
OPPOSITE: Mapping[SideName, SideName] = MappingProxyType({"left": "right", "right": "left"})
MappingKind = Literal["endpoint_independent", "endpoint_dependent"]
"""How a gateway maps (RFC 4787 section 4.1)."""
EcnMode = Literal["normal", "compatibility", "full_functionality"]
"""What the congestion field of an outer header follows from (RFC 6040 section 4.1, RFC 3168 section 9.1.1)."""
DontFragmentRule = Literal["rfc7915", "rfc6145"]
"""What a translator makes of DF (RFC 7915 section 5.1, RFC 6145 section 5.1)."""
TechnologyName = Literal[
    "router44",
    "router66",
    "siit64",
    "siit46",
    "map_t_br",
    "map_e_br",
    "lwaftr",
    "nat44",
    "nat64",
    "nat66",
    "nat46",
    "map_t_ce",
    "aftr",
    "sixrd_br",
    "b4",
    "map_e_ce",
    "lwb4",
    "464xlat",
    "ds_lite",
    "lw4o6",
    "map_e",
    "map_t",
]
ReferenceMode = Literal[
    "router",
    "siit",
    "map_t_br",
    "nat44",
    "nat64",
    "nat66",
    "nat46",
    "map_t_ce",
    "map_e_br",
    "lwaftr",
    "sixrd_br",
    "aftr",
    "b4",
    "map_e_ce",
    "lwb4",
]
"""What the reference gateway calls this: key `mode` of its file."""

FAMILY_WORDS: Mapping[Family, str] = MappingProxyType({"ipv4": "IPv4", "ipv6": "IPv6"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """One row: what a gateway of this technology does."""

    name: TechnologyName
    """Value of `gateway.technology`."""
    words: str
    """What it is, without its sides."""
    families: tuple[Family, Family]
    """Family of the foreground on the left and on the right; of a stateful gateway, on its inside and outside. Of a
    tunnel it is that of the outer header."""
    inside_tunnels: Family | None = None
    """Family of the packets in tunnels (RFC 2473, RFC 4213 section 3), which are on the left; None without tunnels."""
    is_subscriber: bool = False
    """Whether it is the subscriber's end of one tunnel, which then is on the right and leads to the Tester as relay."""
    has_edges: bool = False
    """Whether the hosts on the left are MAP customer edges, whose addresses and ports follow from rules (RFC 7597)."""
    has_bindings: bool = False
    """Whether these edges, or the one that it is, are lwB4s: their addresses are those of softwires (RFC 7596 section
    5.1)."""
    delegates_prefixes: bool = False
    """Whether the hosts in the tunnels on the left are in prefixes that follow from the outer addresses (RFC 5969)."""
    is_edge: bool = False
    """Whether it is a customer edge itself: its public address and its ports follow from a rule (RFC 7597)."""
    is_stateful: bool = False
    """Whether it keeps state for each connection (RFC 9693)."""
    is_plain_forwarding: bool = False
    """Whether it changes no address: the reference that the others are given as shares of."""
    in_a_row: tuple[TechnologyName, TechnologyName] | None = None
    """The two gateways that it is made of, the customer's first, as one from the Tester's view (RFC 8219 section 4.2).
    """
    service: str | None = None
    """Name of the service that both in a row are: how customers of an IPv6 network get IPv4 (RFC 9313)."""
    keeps_identification: bool = False
    """Whether the IPv4 identification comes out as it was sent, and is compared (RFC 6864 section 5.3)."""
    hairpin_section: str | None = None
    """Where an RFC says what becomes of packets between hosts on the same side; None where none does."""
    ping_section: str | None = None
    """Where an RFC says what becomes of echo requests of the inside; None where none does."""
    copied_class_section: str | None = None
    """Where an RFC says that the traffic class of a packet must be copied to the header of its tunnel; None where none
    does, or where it may be configured otherwise."""
    reference_mode: ReferenceMode | None
    """The same for the reference gateway; None for two gateways in a row, which it is not."""

    @property
    def is_translation(self) -> bool:
        """Whether it translates between IPv4 and IPv6."""
        return self.families[0] != self.families[1] and not self.has_tunnels

    @property
    def packet_families(self) -> tuple[Family, Family]:
        """Return the families of the packets of the foreground, which are in tunnels or not."""
        inside, (first, second) = self.inside_tunnels, self.families
        return (first, inside or second) if self.is_subscriber else (inside or first, second)

    @property
    def gateways(self) -> int:
        """Return how many gateways in a row it is."""
        return 1 if self.in_a_row is None else len(self.in_a_row)

    @property
    def keeper(self) -> int:
        """Return which of its gateways keeps the connections, from 0."""
        return 0 if self.in_a_row is None else keeper_among([TECHNOLOGIES[name] for name in self.in_a_row])

    @property
    def translates_within(self) -> bool:
        """Whether packets are translated between IPv4 and IPv6, be it twice, so that they come out in their family."""
        return self.is_translation or (self.in_a_row is not None and self.tunnel_within is None)

    @property
    def tunnel_within(self) -> Family | None:
        """Return the family of the outer headers between two gateways in a row; None where there are none."""
        if self.in_a_row is None:
            return None
        first = TECHNOLOGIES[self.in_a_row[0]]
        return first.outer_family if first.has_tunnels else None

    @property
    def has_default_rules(self) -> bool:
        """Whether a rule stands for all IPv4 addresses outside, as of gateways of MAP-T (RFC 7599 section 5.1)."""
        return self.has_rules and self.translates_within

    @property
    def has_tunnels(self) -> bool:
        """Whether the packets on one side are inside others."""
        return self.inside_tunnels is not None

    @property
    def tunnel_side(self) -> SideName:
        """Return the side of the tunnels, if it has any; of a stateful gateway left is inside."""
        return "right" if self.is_subscriber else "left"

    @property
    def outer_family(self) -> Family:
        """Return the family of the headers before the packets in tunnels, if it has any."""
        return self.families[self.tunnel_side == "right"]

    @property
    def has_b4s(self) -> bool:
        """Whether it keeps the connections of hosts behind B4s apart by their tunnels (RFC 6333 section 6.6)."""
        return self.has_tunnels and self.is_stateful and not self.is_subscriber

    @property
    def is_behind_b4(self) -> bool:
        """Whether the hosts inside are behind a B4, so that their addresses are private (RFC 6333 section 5.7)."""
        return self.has_b4s or (self.in_a_row is not None and TECHNOLOGIES[self.in_a_row[-1]].has_b4s)

    @property
    def translates_by_prefix(self) -> bool:
        """Whether a translation prefix or address mappings say what becomes of addresses (RFC 6052, RFC 7757)."""
        return self.is_translation and not self.has_rules

    @property
    def has_rules(self) -> bool:
        """Whether rules say what becomes of addresses and ports (RFC 7597 section 5)."""
        return self.has_edges or self.is_edge

    @property
    def has_duties(self) -> bool:
        """Whether RFCs say of single packets what becomes of them, so that its conformity can be tried."""
        is_relay_or_edge = self.has_rules or self.is_subscriber
        return is_relay_or_edge or self.in_a_row is not None or self.ping_section is not None

    @property
    def translates_background(self) -> bool:
        """Whether native IPv6 beside the foreground would be translated as well, so that none can be sent."""
        return self.is_stateful and self.families == ("ipv6", "ipv6")

    @property
    def side_words(self) -> tuple[str, str]:
        """Return what is on both sides: "IPv4 in IPv6" and "IPv4"."""
        families = zip(self.packet_families, self.families, strict=True)
        pairs = ((FAMILY_WORDS[packet], FAMILY_WORDS[outer]) for packet, outer in families)
        first, second = (inner if inner == header else f"{inner} in {header}" for inner, header in pairs)
        return first, second

    def describe(self, inside: SideName | None) -> str:
        """Say what it is and where: "stateful NAT64, IPv6 inside (left), IPv4 outside (right)".

        `inside` is the side of the Initiator; None for a stateless technology.
        """
        first, second = self.side_words
        if inside is not None and self.is_stateful:
            return f"{self.words}, {first} inside ({inside}), {second} outside ({OPPOSITE[inside]})"
        return self.words if first == second else f"{self.words}, {first} left and {second} right"


_ROWS = (
    Technology(
        name="router44",
        words="IPv4 router",
        families=("ipv4", "ipv4"),
        is_plain_forwarding=True,
        keeps_identification=True,
        reference_mode="router",
    ),
    Technology(
        name="router66",
        words="IPv6 router",
        families=("ipv6", "ipv6"),
        is_plain_forwarding=True,
        reference_mode="router",
    ),
    Technology(
        name="siit64",
        words="stateless translation",
        families=("ipv6", "ipv4"),
        hairpin_section="RFC 7757 section 4",
        ping_section="RFC 7915 section 5.2",
        reference_mode="siit",
    ),
    Technology(
        name="siit46",
        words="stateless translation",
        families=("ipv4", "ipv6"),
        hairpin_section="RFC 7757 section 4",
        ping_section="RFC 7915 section 5.2",
        reference_mode="siit",
    ),
    Technology(
        name="map_t_br",
        words="MAP-T border relay",
        families=("ipv6", "ipv4"),
        has_edges=True,
        reference_mode="map_t_br",
    ),
    Technology(
        name="map_e_br",
        words="MAP-E border relay",
        families=("ipv6", "ipv4"),
        inside_tunnels="ipv4",
        has_edges=True,
        reference_mode="map_e_br",
    ),
    Technology(
        name="lwaftr",
        words="lightweight 4over6 AFTR",
        families=("ipv6", "ipv4"),
        inside_tunnels="ipv4",
        has_edges=True,
        has_bindings=True,
        copied_class_section="RFC 7596 section 6.2",
        reference_mode="lwaftr",
    ),
    Technology(
        name="nat44",
        words="stateful NAT44",
        families=("ipv4", "ipv4"),
        is_stateful=True,
        hairpin_section="RFC 4787 section 6",
        ping_section="RFC 5508 section 3.1",
        reference_mode="nat44",
    ),
    Technology(
        name="nat64",
        words="stateful NAT64",
        families=("ipv6", "ipv4"),
        is_stateful=True,
        hairpin_section="RFC 6146 section 3.8",
        ping_section="RFC 6146 section 3.5.3",
        reference_mode="nat64",
    ),
    Technology(
        name="nat66",
        words="stateful NAT66",
        families=("ipv6", "ipv6"),
        is_stateful=True,
        reference_mode="nat66",
    ),
    Technology(
        name="nat46",
        words="stateful NAT46",
        families=("ipv4", "ipv6"),
        is_stateful=True,
        ping_section="RFC 7915 section 4.2",
        reference_mode="nat46",
    ),
    Technology(
        name="map_t_ce",
        words="MAP-T customer edge",
        families=("ipv4", "ipv6"),
        is_edge=True,
        is_stateful=True,
        reference_mode="map_t_ce",
    ),
    Technology(
        name="aftr",
        words="DS-Lite AFTR",
        families=("ipv6", "ipv4"),
        inside_tunnels="ipv4",
        is_stateful=True,
        hairpin_section="RFC 4787 section 6",
        ping_section="RFC 5508 section 3.1",
        copied_class_section="RFC 6333 section 7.1",
        reference_mode="aftr",
    ),
    Technology(
        name="sixrd_br",
        words="6rd border relay",
        families=("ipv4", "ipv6"),
        inside_tunnels="ipv6",
        delegates_prefixes=True,
        hairpin_section="RFC 5969 section 9",
        ping_section="RFC 5969 section 9",
        reference_mode="sixrd_br",
    ),
    Technology(
        name="b4",
        words="DS-Lite B4",
        families=("ipv4", "ipv6"),
        inside_tunnels="ipv4",
        is_subscriber=True,
        keeps_identification=True,
        copied_class_section="RFC 6333 section 7.1",
        reference_mode="b4",
    ),
    Technology(
        name="map_e_ce",
        words="MAP-E customer edge",
        families=("ipv4", "ipv6"),
        inside_tunnels="ipv4",
        is_subscriber=True,
        is_edge=True,
        is_stateful=True,
        reference_mode="map_e_ce",
    ),
    Technology(
        name="lwb4",
        words="lightweight 4over6 B4",
        families=("ipv4", "ipv6"),
        inside_tunnels="ipv4",
        is_subscriber=True,
        is_edge=True,
        has_bindings=True,
        is_stateful=True,
        copied_class_section="RFC 7596 section 5.2",
        reference_mode="lwb4",
    ),
    Technology(
        name="464xlat",
        words="464XLAT (CLAT and PLAT)",
        service="464XLAT",
        families=("ipv4", "ipv4"),
        is_stateful=True,
        in_a_row=("siit46", "nat64"),
        reference_mode=None,
    ),
    Technology(
        name="ds_lite",
        words="DS-Lite (B4 and AFTR)",
        service="DS-Lite",
        families=("ipv4", "ipv4"),
        is_stateful=True,
        in_a_row=("b4", "aftr"),
        reference_mode=None,
    ),
    Technology(
        name="lw4o6",
        words="lightweight 4over6 (lwB4 and lwAFTR)",
        service="lw4o6",
        families=("ipv4", "ipv4"),
        is_edge=True,
        has_bindings=True,
        is_stateful=True,
        in_a_row=("lwb4", "lwaftr"),
        reference_mode=None,
    ),
    Technology(
        name="map_e",
        words="MAP-E (customer edge and border relay)",
        service="MAP-E",
        families=("ipv4", "ipv4"),
        is_edge=True,
        is_stateful=True,
        in_a_row=("map_e_ce", "map_e_br"),
        reference_mode=None,
    ),
    Technology(
        name="map_t",
        words="MAP-T (customer edge and border relay)",
        service="MAP-T",
        families=("ipv4", "ipv4"),
        is_edge=True,
        is_stateful=True,
        in_a_row=("map_t_ce", "map_t_br"),
        reference_mode=None,
    ),
)

TECHNOLOGIES: Mapping[TechnologyName, Technology] = MappingProxyType({row.name: row for row in _ROWS})


def keeper_among(row: Sequence[Technology]) -> int:
    """Return which of gateways in a row keeps the connections, from 0; the first where none does."""
    return next((number for number, technology in enumerate(row) if technology.is_stateful), 0)


def technologies_where(holds: Callable[[Technology], bool]) -> str:
    """Return the names of the technologies for which `holds` is true, for a message: "nat44, nat64 or nat66"."""
    *names, last = (row.name for row in _ROWS if holds(row))
    return f"{', '.join(names)} or {last}" if names else last

"""What a gateway had to make of a frame, for each kind of fault: one rule a fault. Pure.

A rule compares the frame that entered a gateway with the frame that left it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Literal

from gatemark.damage.row import Form, RowGateway
from gatemark.damage.sighting import Sighting

CONGESTION_EXPERIENCED = 3
FRAGMENTABLE_OCTETS_MAX = 1260
"""A translator clears DF in IPv4 packets of up to so many octets (RFC 7915 section 5.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A frame before and behind one gateway."""

    gateway: RowGateway
    entering: Sighting
    leaving: Sighting
    due: Form
    """What it is to be behind the gateway."""
    is_background: bool
    towards_provider: bool
    """Whether its source is the customer."""


class Part(Enum):
    """What a gateway did of its part."""

    RIGHT = auto()
    WRONG = auto()
    CHOSEN = auto()
    """It chooses what it writes, so the frame alone does not say: the part of the other gateway decides."""
    OPEN = auto()
    """It does not follow from these two frames."""


Rule = Callable[[Step], Part]
End = Literal["source", "destination"]


def _part(is_right: bool | None) -> Part:
    """Return the part of a gateway that did it right, or of which that is not known."""
    return Part.OPEN if is_right is None else Part.RIGHT if is_right else Part.WRONG


def _form(step: Step) -> Part:
    """Headers of the due families, in the due tunnel."""
    return _part(step.leaving.form == step.due)


def _fragment(step: Step) -> Part:
    return _part(None if step.entering.ip.is_fragment else not step.leaving.ip.is_fragment)


def _hop_limit(step: Step) -> Part:
    gateway = step.gateway
    decrement = gateway.background_hop_limit_decrement if step.is_background else gateway.hop_limit_decrement
    return _part(None if decrement is None else step.leaving.ip.hop_limit == step.entering.ip.hop_limit - decrement)


def _traffic_class(step: Step) -> Part:
    """RFC 7915 sections 4.1 and 5.1 copy it; congestion may be marked where transports understand that (RFC 3168)."""
    before, behind = step.entering.ip.traffic_class, step.leaving.ip.traffic_class
    understands = before & CONGESTION_EXPERIENCED in (1, 2)
    return _part(behind == before or (understands and behind == before | CONGESTION_EXPERIENCED))


def _dont_fragment(step: Step) -> Part:
    before, behind = step.entering.ip, step.leaving.ip
    if before.has_fragment_header or behind.has_fragment_header:
        return Part.OPEN  # it stands for DF clear, and whether it was due is a question of sizes and policies
    if behind.version == 6:
        return Part.RIGHT
    if before.version == 4:
        return _part(behind.dont_fragment == before.dont_fragment)
    is_due = step.gateway.dont_fragment_rule == "rfc6145" or behind.total > FRAGMENTABLE_OCTETS_MAX
    return _part(behind.dont_fragment == is_due)


def _identification(step: Step) -> Part:
    before, behind = step.entering.ip, step.leaving.ip
    return _part(behind.identification == before.identification if before.version == behind.version == 4 else None)


def _flow_label(step: Step) -> Part:
    before, behind = step.entering.ip, step.leaving.ip
    may_label = before.version == behind.version and not before.flow_label
    return _part(may_label or behind.flow_label == before.flow_label)


def _extension_headers(step: Step) -> Part:
    before, behind = step.entering.ip, step.leaving.ip
    return _part(behind.extensions == before.extensions or before.version != behind.version)


def _ipv4_header(step: Step) -> Part:
    return _part(step.leaving.ip.is_plain if step.entering.ip.is_plain else None)


def _ipv4_header_checksum(step: Step) -> Part:
    return _part(step.leaving.ip.is_summed if step.entering.ip.is_summed else None)


def _length(step: Step) -> Part:
    return _part(step.leaving.ip.is_whole and step.leaving.ip.carried == step.entering.ip.carried)


def _udp_length(step: Step) -> Part:
    return _part(step.leaving.udp_length == step.entering.udp_length)


def _payload(step: Step) -> Part:
    return _part(step.leaving.data == step.entering.data)


def _udp_checksum(step: Step) -> Part:
    """From IPv4 to IPv4 no checksum stays none (RFC 768); IPv6 must have one (RFC 8200 section 8.1).

    A translator that is known to write 0x0000 for 0xffff is to blame for what becomes of that in IPv6.
    """
    before, behind = step.entering, step.leaving
    if step.entering.ip.is_fragment or step.leaving.ip.is_fragment:
        return Part.OPEN
    if not before.has_checksum:
        if before.ip.version == 6:
            return Part.OPEN
        return _part(not behind.has_checksum if behind.ip.version == 4 else behind.has_checksum and behind.is_summed)
    if not before.is_summed:
        return Part.OPEN
    may_be_zero = behind.ip.version == 4 and step.gateway.zero_udp_checksum
    return _part(behind.is_summed and (behind.has_checksum or may_be_zero))


def _address_of(end: End) -> Rule:
    def rule(step: Step) -> Part:
        if _is_chosen(step, end):
            return Part.CHOSEN
        return _part(step.gateway.mapping.is_same(getattr(step.entering.ip, end), getattr(step.leaving.ip, end)))

    return rule


def _port_of(end: End) -> Rule:
    def rule(step: Step) -> Part:
        name = f"{end}_port"
        if _is_chosen(step, end):
            return Part.CHOSEN
        return _part(getattr(step.entering, name) == getattr(step.leaving, name))

    return rule


def _is_chosen(step: Step, end: End) -> bool:
    """Whether the gateway chooses address and port of this end: those of its customer."""
    is_customer = (end == "source") == step.towards_provider
    return is_customer and step.gateway.keeps_connections and not step.is_background


def _customer(step: Step) -> Part:
    """Address and port of the customer, or what the gateway that keeps the connections has chosen for them."""
    end: End = "source" if step.towards_provider else "destination"
    address, port = _address_of(end)(step), _port_of(end)(step)
    return port if address is Part.RIGHT else address


FORMS = frozenset(("family", "headers", "encapsulated", "tunnel_left", "tunnel_missing"))
"""Faults of a frame whose headers are others than those due."""
OF_WHOLE = frozenset(("length", "payload", "udp_checksum"))
"""Faults of which only the whole packet says anything."""
OF_MARK = frozenset(("mark", "index"))
"""Faults of frames that cannot be told from others by their number."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(FORMS, _form),
        "fragment": _fragment,
        "hop_limit": _hop_limit,
        "traffic_class": _traffic_class,
        "dont_fragment": _dont_fragment,
        "identification": _identification,
        "flow_label": _flow_label,
        "extension_headers": _extension_headers,
        "ipv4_header": _ipv4_header,
        "ipv4_header_checksum": _ipv4_header_checksum,
        "length": _length,
        "udp_length": _udp_length,
        "udp_checksum": _udp_checksum,
        "payload": _payload,
        "source_address": _address_of("source"),
        "destination_address": _address_of("destination"),
        "source_port": _port_of("source"),
        "destination_port": _port_of("destination"),
        **dict.fromkeys(
            (
                "untranslated_source",
                "mapping_changed",
                "wrong_owner",
                "unknown_connection",
                "other_edge_port",
                "other_edge_address",
                "interface_identifier",
                "outside_rule",
                "outside_port_set",
                "other_subscriber",
            ),
            _customer,
        ),
    }
)
"""By the reason, as under `faults`."""

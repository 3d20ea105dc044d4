"""Faults by the name that the engine tells: what each means. Words have the markup of the reference."""

from __future__ import annotations

from collections.abc import Mapping

FAULTS: Mapping[str, str] = {
    "destination_mac": (
        "is not addressed to the Ethernet address of the emulated host that it goes to: that of the port, or with "
        '`host_macs = "random"` the host\'s own'
    ),
    "source_mac": (
        "comes from an Ethernet address that no gateway can have: that of the port or of the host it goes to, zero or"
        " a group's"
    ),
    "encapsulated": (
        "has the mark farther behind than it is due: behind a second VLAN tag, an MPLS label, another IP header, "
        "extension headers, a tunnel"
    ),
    "headers": (
        "has the mark where it is due, but not the headers of UDP in IP before it: another EtherType, IP version or "
        "protocol"
    ),
    "family": "is of the other IP family",
    "fragment": "is the first fragment of something",
    "length": "has another length in its IP header, or fewer octets than that",
    "vlan": "has another VLAN tag, or one where none is due, or none where one is due",
    "ipv4_header": "has options or the reserved bit",
    "ipv4_header_checksum": "has a wrong header checksum",
    "identification": (
        "has another identification; only where a router must keep it: a NAT may choose its own (RFC 6864 section 5.3)"
    ),
    "source_address": (
        "has another source address than the mapping gives; behind a stateful gateway, one that is not in the pool"
    ),
    "destination_address": "has another destination address than the mapping gives",
    "source_port": (
        "has another UDP source port than was sent; behind a stateful gateway, port 0, and behind a customer edge one"
        " that is not in its set"
    ),
    "destination_port": "has another UDP destination port than was sent",
    "hop_limit": "was not decremented by `gateway.hop_limit_decrement`",
    "traffic_class": (
        "has another traffic class or type of service, but for *congestion experienced* where a gateway may write it"
    ),
    "dont_fragment": "has DF where the rule says otherwise",
    "flow_label": (
        "has another flow label than was sent or, behind a translator, one that is not 0; a router may label a frame "
        "that was sent with 0"
    ),
    "extension_headers": "has other extension headers than were sent, or more, or fewer",
    "udp_length": "has another UDP length",
    "udp_checksum": 'has a wrong UDP checksum, or none; with `udp_checksum = "zero"` from IPv4 to IPv4: has one',
    "payload": "has other data",
    "index": (
        "has an impossible number: the mark itself was changed; it is not known which frame it is, so that frame is"
        " lost"
    ),
    "mark": (
        "goes from an emulated host to an emulated host, but has no mark of the campaign, or one of another trial "
        "that it was not sent in; the frame is lost as well"
    ),
    "wrong_port": "came back where it was sent from; its other fields are not compared",
    "untranslated_source": "has the Initiator's own source address: the gateway let it through without translation",
    "mapping_changed": "phase 2: has another public endpoint than in phase 1; the state table takes the new one",
    "wrong_owner": "phase 2: a Responder's frame that came out at the endpoint of another connection",
    "unknown_connection": "phase 2: a Responder's frame that came out at an endpoint that belongs to no connection",
    "other_edge_port": (
        "has a port of another edge's set instead of one of its own edge's: the gateway changed the port, or divides "
        "the ports otherwise (PSID offset or length); a port of no edge has no second reason"
    ),
    "other_edge_address": "has the address of another edge of the same rule",
    "interface_identifier": (
        "has the EA bits of its edge, but another rest of the MAP address: subnet bits or interface identifier (RFC "
        "7597 section 6)"
    ),
    "outside_rule": "has an address outside the prefix of its edge's rule, where its edge's address is due",
    "tunnel_missing": "came out as it is, where it should be in a tunnel; its other fields are not compared",
    "tunnel_left": "came out in the tunnel that it was sent in; its other fields are not compared",
    "tunnel_header": (
        "tunnel: has another length in its outer header, another hop limit than is due there, or an outer header of "
        "IPv4 with a wrong checksum"
    ),
    "tunnel_option": (
        "tunnel: has extension headers or options between its outer header and the packet inside, as a tunnel "
        "encapsulation limit is (RFC 2473 section 4.1.1; on Linux, `encaplimit none` turns it off)"
    ),
    "tunnel_traffic_class": (
        "tunnel: has another traffic class in its outer header than the packet inside, or than the stated one"
    ),
    "tunnel_source": "tunnel: has another outer source address than is due",
    "tunnel_destination": "tunnel: has another outer destination address than is due",
    "other_subscriber": (
        "tunnel, together with `tunnel_source` or `tunnel_destination`: is in the tunnel of another subscriber"
    ),
    "outside_port_set": (
        "has a source port that the gateway, a customer edge, must not use: another edge's, or nobody's (RFC 7597 "
        "section 5.1)"
    ),
    "icmp_type": "echo: has another ICMP type, or a code other than 0",
    "identifier": (
        "echo: has another identifier than its client gave it; not checked in requests behind a stateful gateway,"
        " which maps identifiers like ports (RFC 6146 section 3.5.3), except a customer edge, which uses those of its"
        " set"
    ),
    "sequence": "echo: has another sequence number",
    "icmp_checksum": (
        "echo: has a wrong ICMP checksum; that of ICMPv6 covers a pseudo-header (RFC 4443 section 2.3), that of "
        "ICMPv4 does not"
    ),
    "wrong_client": "echo, together with `destination_address`: a reply that went to another client",
    "wrong_slot": "echo, together with `identifier`: has the identifier of another slot of its client",
}
"""Reasons for which a frame that came back is wrong, with what the frame is, in the order of the engine."""

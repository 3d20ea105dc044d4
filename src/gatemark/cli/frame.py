"""`gatemark frame FILE`: the frames that a campaign would send, and what a correct gateway makes of them."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dpkt

from gatemark.campaign.plan import procedures_of
from gatemark.cli.common import cell_json, cell_text, narrowed, one_campaign
from gatemark.cli.output import AsJson, print_json
from gatemark.config.model import Campaign
from gatemark.engine.process import start_engine
from gatemark.errors import ConfigError, ResultError
from gatemark.facts import ONE_WAYS, Direction
from gatemark.packets import ip_packet, sums_to_zero
from gatemark.trial.cell import Cell
from gatemark.trial.connection_request import frames_requests
from gatemark.trial.messages import FramesRequest
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns

COUNT_MAX = 100_000
FCS_OCTETS = 4
IPV6_OCTETS = 40


def frame(
    file: Path,
    /,
    *,
    count: int = 4,
    size: int | None = None,
    direction: Direction | None = None,
    mix: str | None = None,
    pcap: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Show the first frames of a campaign, as sent and as expected behind the gateway. Nothing is sent.

    For a stateful gateway it shows the Initiator's frames of test phase 1 and the Responder's of test phase 2, and
    assumes that the gateway keeps every port and uses the first address of its pool. For a campaign that sends only
    echo requests it shows those.

    Example: gatemark frame campaign.toml --count 8 --pcap frames.pcap

    Parameters
    ----------
    file
        Campaign file (TOML).
    count
        Number of frames in each direction, 1 to 100,000.
    size
        Frame size in octets, of the family that the file names. Default: the first in the file.
    direction
        Direction of the traffic. Default: the first in the file.
    mix
        Foreground share as m/n. Default: the first in the file.
    pcap
        File for the frames as sent, without FCS, with nanosecond time stamps.
    as_json
        Print JSON instead of text.
    """
    if not 1 <= count <= COUNT_MAX:
        raise ConfigError(what=f"{count} is out of range", where="--count", fix=f"write 1 to {COUNT_MAX}")
    campaign, cell = narrowed(one_campaign(file), size=size, direction=direction, mix=mix)
    with start_engine(log=None) as engine:
        frames: list[dict[str, Any]] = []
        for body in _requests(campaign, cell, count):
            frames.extend({**item, "test_phase": _test_phase(body)} for item in engine.frames(body)["frames"])
    if pcap is not None:
        write_pcap(pcap, frames)
    bare = {way for way in ONE_WAYS if campaign.directions.traffic_of(way).udp_checksum == "zero"}
    decoded = [
        tuple(decode(item[which], without_checksum=item["direction"] in bare) for which in ("sent", "expected"))
        for item in frames
    ]
    for _, expected in decoded:
        if "inside" in expected and expected["hop_limit"] == 0:
            expected["hop_limit"] = None  # any: the campaign states no policy
    if as_json:
        shown = [
            {**item, "sent_decoded": sent, "expected_decoded": expected}
            for item, (sent, expected) in zip(frames, decoded, strict=True)
        ]
        print_json({**cell_json(cell), "frames": shown})
        return 0
    print(cell_text(campaign, cell))
    for item, (sent, expected) in zip(frames, decoded, strict=True):
        due = format_duration_ns(item["due_ns"])
        phase = "" if item["test_phase"] is None else f", test phase {item['test_phase']}"
        print(f"\n{item['direction']} frame {item['index']}, {item['class']}, due at {due}{phase}")
        print(f"  sent      {in_words(sent)}")
        print(f"  expected  {in_words(expected)}")
    return 0


def _requests(campaign: Campaign, cell: Cell, count: int) -> Sequence[FramesRequest]:
    """Return the requests that show the frames of a campaign: UDP, unless all of its procedures have others."""
    procedures = procedures_of(campaign)
    shown = [
        procedure.frames(campaign, procedure.cells(campaign, (cell,))[0], count)
        for procedure in procedures
        if procedure.frames is not None
    ]
    return shown if procedures and len(shown) == len(procedures) else frames_requests(campaign, cell, count=count)


def _test_phase(body: Mapping[str, Any]) -> int | None:
    """Return the phase of a stateful test that the frames of a request belong to (RFC 9693 section 4.1)."""
    connections = body["trial"].get("connections")
    return None if connections is None else 1 if connections["phase"] == "establish" else 2


def decode(octets: str, *, without_checksum: bool = False) -> dict[str, Any]:
    """Return the fields of a frame, given in hexadecimal without FCS; checksums are verified.

    `without_checksum`: IPv4 frames of its direction are sent without UDP checksum (RFC 768), so one of them must have
    none; IPv6 always has one (RFC 8200 section 8.1).
    """
    data = bytes.fromhex(octets)
    ethernet = dpkt.ethernet.Ethernet(data)
    packet = ethernet.data
    fields: dict[str, Any] = {
        "octets": len(data) + FCS_OCTETS,
        "source_mac": ethernet.src.hex(":"),
        "destination_mac": ethernet.dst.hex(":"),
        "vlan": ethernet.vlan_tags[0].id if getattr(ethernet, "vlan_tags", None) else None,
    }
    if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6):
        return {**fields, "family": None}
    return fields | _packet_fields(packet, ip_packet(data), without_checksum=without_checksum)


def _packet_fields(
    packet: dpkt.ip.IP | dpkt.ip6.IP6, octets: bytes, *, without_checksum: bool = False
) -> dict[str, Any]:
    """Return the fields of a packet, given from its IP header on, and of the packet inside it if it is a tunnel's."""
    fields: dict[str, Any]
    if isinstance(packet, dpkt.ip.IP):
        fields = {
            "family": "ipv4",
            "hop_limit": packet.ttl,
            "traffic_class": packet.tos,
            "dont_fragment": bool(packet.df),
            "length": packet.len,
            "header_checksum_correct": sums_to_zero(packet.pack_hdr() + packet.opts),
        }
    else:
        fields = {
            "family": "ipv6",
            "hop_limit": packet.hlim,
            "traffic_class": packet.fc,
            "flow_label": packet.flow,
            "length": IPV6_OCTETS + packet.plen,
        }
    fields["octets_behind_packet"] = len(octets) - fields["length"]
    fields["source"], fields["destination"] = (
        str(ipaddress.ip_address(address)) for address in (packet.src, packet.dst)
    )
    udp = packet.data
    if isinstance(udp, dpkt.udp.UDP):
        pseudo = packet.src + packet.dst + udp.ulen.to_bytes(4, "big") + b"\0\0\0\x11"
        is_due = not (without_checksum and fields["family"] == "ipv4")
        fields |= {
            "source_port": udp.sport,
            "destination_port": udp.dport,
            "udp_length": udp.ulen,
            "udp_checksum": udp.sum,
            "udp_checksum_correct": (udp.sum != 0) == is_due and (not is_due or sums_to_zero(pseudo + bytes(udp))),
        }
    elif isinstance(udp, dpkt.icmp.ICMP | dpkt.icmp6.ICMP6):
        fields |= _echo_fields(octets, packet)
    elif isinstance(udp, dpkt.ip.IP | dpkt.ip6.IP6):
        fields["inside"] = _packet_fields(udp, bytes(udp), without_checksum=without_checksum)
    return fields


def _echo_fields(octets: bytes, packet: dpkt.ip.IP | dpkt.ip6.IP6) -> dict[str, Any]:
    """Return the fields of an echo message, from the IP header on; only ICMPv6 sums a pseudo-header (RFC 4443)."""
    if isinstance(packet, dpkt.ip.IP):
        message, pseudo = octets[packet.hl * 4 : packet.len], b""
    else:
        message = octets[IPV6_OCTETS : IPV6_OCTETS + packet.plen]
        pseudo = packet.src + packet.dst + struct.pack("!II", packet.plen, dpkt.ip.IP_PROTO_ICMP6)
    icmp_type, code, checksum, identifier, sequence = struct.unpack_from("!BBHHH", message)
    return {
        "icmp_type": icmp_type,
        "icmp_code": code,
        "identifier": identifier,
        "sequence": sequence,
        "icmp_checksum": checksum,
        "icmp_checksum_correct": sums_to_zero(pseudo + message),
    }


def in_words(fields: dict[str, Any]) -> str:
    """Return a decoded frame on one line."""
    if fields["family"] is None:
        return f"{fields['octets']} octets, not IP"
    parts = _header_words(fields)
    if fields["vlan"] is not None:
        parts.append(f"VLAN {fields['vlan']}")
    packets = [fields]
    while "inside" in packets[-1]:
        packets.append(packets[-1]["inside"])
        header, *others = _header_words(packets[-1])
        parts += [f"inside it {header}", *others]
    parts += _upper_words(packets[-1])
    names = ("header_checksum", "udp_checksum", "icmp_checksum")
    wrong = [key for packet in packets for key in names if packet.get(f"{key}_correct") is False]
    has_none = packets[-1].get("udp_checksum") == 0
    if has_none:
        parts.append("UDP checksum none (0)")
    correct = "header checksum correct" if has_none else "checksums correct"
    parts.append(f"wrong {', '.join(wrong)}" if wrong else correct)
    behind = fields["octets_behind_packet"]
    return f"{', '.join(parts)}, {fields['octets']} octets" + (
        f", {behind} of them behind the packet" if behind else ""
    )


def _header_words(fields: Mapping[str, Any]) -> list[str]:
    """Return what an IP header says."""
    name = "IPv4" if fields["family"] == "ipv4" else "IPv6"
    hop_limit = "TTL" if name == "IPv4" else "hop limit"
    parts = [
        f"{name} {fields['source']} > {fields['destination']}",
        f"any {hop_limit}" if fields["hop_limit"] is None else f"{hop_limit} {fields['hop_limit']}",
        f"{'TOS' if name == 'IPv4' else 'traffic class'} {fields['traffic_class']}",
    ]
    return [*parts, "DF"] if fields.get("dont_fragment") else parts


def _upper_words(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the header behind that of IP says."""
    if "source_port" in fields:
        yield f"UDP {fields['source_port']} > {fields['destination_port']}"
    if "identifier" in fields:
        echo = {8: "echo request", 128: "echo request", 0: "echo reply", 129: "echo reply"}
        kind = echo.get(fields["icmp_type"], f"ICMP type {fields['icmp_type']}")
        yield f"{kind}, identifier {fields['identifier']}, sequence {fields['sequence']}"


def write_pcap(path: Path, frames: Sequence[dict[str, Any]]) -> None:
    """Write the frames as sent, in the order in which they are due, with nanosecond time stamps."""
    try:
        with path.open("wb") as file:
            writer = dpkt.pcap.Writer(file, nano=True)
            for item in sorted(frames, key=lambda frame: (frame["due_ns"], frame["direction"])):
                writer.writepkt(bytes.fromhex(item["sent"]), ts=item["due_ns"] / NANOSECONDS_PER_SECOND)
    except OSError as error:
        raise ResultError(
            what=f"cannot be written: {error.strerror}", where=str(path), fix="name a file in a folder you may write"
        ) from None

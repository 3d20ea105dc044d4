"""Single packets: built right to the octet, and read again whatever arrives."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP, defragment, fragment
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6PacketTooBig,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    defragment6,
    fragment6,
)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet as ScapyPacket
from scapy.packet import Raw

from gatemark.packets import (
    Flow,
    Fragment,
    IcmpError,
    Kind,
    OuterHeader,
    Packet,
    Tunnel,
    build,
    differences,
    encapsulated,
    fragmented,
    joined,
    read_frame,
    unreachable,
)

ETHER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
"""With addresses, for which scapy would ask the links of this machine otherwise."""
DATA = b"gatemark and some more octets, so that there are enough of them!"
ADDRESSES = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:8000::2")}
FLOWS = [(kind, version) for kind in ("udp", "echo request") for version in (4, 6)]


def flow_of(kind: Kind, version: int) -> Flow:
    source, destination = map(ip_address, ADDRESSES[version])
    return Flow(kind=kind, source=source, destination=destination, source_port=1232, destination_port=7)


def framed(packet: bytes) -> bytes:
    return bytes(12) + (b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd") + packet


@pytest.mark.parametrize(("kind", "version"), FLOWS)
def test_packets_are_those_of_another_library_and_are_read_again(kind: Kind, version: int) -> None:
    flow = flow_of(kind, version)
    packet = build(flow, DATA, hop_limit=10)
    theirs = IP(packet) if version == 4 else IPv6(packet)
    rebuilt = theirs.copy()
    for layer in (rebuilt, *(part for part in (rebuilt.payload,) if part)):
        for name in ("chksum", "cksum", "len", "plen"):
            if name in layer.fields:
                del layer.fields[name]
    assert bytes(rebuilt) == packet, "lengths and checksums are what scapy computes"
    read = read_frame(framed(packet))
    assert read == Packet(flow=flow, hop_limit=10, data=DATA, checksum_correct=True)
    assert list(differences(read, flow, hop_limits=range(10, 11), data=DATA)) == []
    assert read_frame(bytes(ETHER / Dot1Q(vlan=7) / theirs)) == read
    assert read_frame(framed(packet) + bytes(9)) == read, "padding is no part of it"


@pytest.mark.parametrize("version", [4, 6])
def test_a_checksum_that_software_leaves_to_a_card_is_recognised(version: int) -> None:
    """It is the sum of the pseudo-header: its complement is the checksum of a payload that sums to nothing."""
    flow = flow_of("udp", version)
    packet = bytearray(build(flow, DATA, hop_limit=10))
    place = (20 if version == 4 else 40) + 6
    words = flow.source.packed + flow.destination.packed + (17).to_bytes(2, "big") + (8 + len(DATA)).to_bytes(2, "big")
    total = sum(int.from_bytes(words[at : at + 2], "big") for at in range(0, len(words), 2))
    for left, is_recognised in ((total % 0xFFFF, True), ((total + 1) % 0xFFFF, False), (0, False)):
        packet[place : place + 2] = left.to_bytes(2, "big")
        read = read_frame(framed(bytes(packet)))
        assert isinstance(read, Packet)
        assert (read.checksum_correct, read.checksum_left_to_hardware) == (False, is_recognised)
        (difference,) = differences(read, flow, hop_limits=range(10, 11), data=DATA)
        assert ("left to hardware" in difference) == is_recognised


@pytest.mark.parametrize(("kind", "version"), FLOWS)
def test_every_octet_that_is_changed_makes_a_difference(kind: Kind, version: int) -> None:
    flow = flow_of(kind, version)
    packet = build(flow, DATA, hop_limit=10)
    unread = set() if version == 4 else set(range(4))  # traffic class and flow label
    for place in set(range(len(packet))) - unread:
        changed = bytearray(packet)
        changed[place] ^= 0x04
        read = read_frame(framed(bytes(changed)))
        is_same = isinstance(read, Packet) and not list(differences(read, flow, hop_limits=range(10, 11), data=DATA))
        assert not is_same, f"octet {place}"


@pytest.mark.parametrize(("kind", "version"), FLOWS)
def test_a_traffic_class_is_read_again(kind: Kind, version: int) -> None:
    packet = build(flow_of(kind, version), DATA, hop_limit=10, traffic_class=0xB8)
    assert (IP(packet).tos if version == 4 else IPv6(packet).tc) == 0xB8
    read = read_frame(framed(packet))
    assert isinstance(read, Packet) and (read.traffic_class, read.checksum_correct) == (0xB8, True)
    within = read_frame(framed(encapsulated(packet, tunnel_of(10 - version), hop_limit=9, traffic_class=0x28)))
    assert isinstance(within, Packet) and within.outer is not None
    assert (within.traffic_class, within.outer.traffic_class) == (0xB8, 0x28)


def test_a_packet_in_fragments_is_whole_again_elsewhere() -> None:
    packet = build(flow_of("udp", 4), DATA, hop_limit=10)
    fragments = fragmented(packet, octets=40, identification=77)
    assert len(fragments) == 2
    assert {IP(part).id for part in fragments} == {77}
    (whole,) = defragment([IP(part) for part in fragments])
    assert (whole[UDP].sport, whole[UDP].dport, bytes(whole[Raw].load)) == (1232, 7, DATA)
    for part in fragments:
        assert isinstance(read_frame(framed(part)), Fragment)


def test_an_error_message_names_the_packet_that_it_quotes() -> None:
    flow = flow_of("udp", 6)
    quoted = IPv6(build(flow, DATA, hop_limit=10))
    message = IPv6(src="2001:2::1", dst="2001:2::2") / ICMPv6DestUnreach(code=5) / quoted
    assert read_frame(bytes(ETHER / message)) == IcmpError(name="icmpv6 1/5", quoted=flow)
    short = IPv6(src="2001:2::1", dst="2001:2::2") / ICMPv6DestUnreach(code=5) / Raw(bytes(quoted)[:44])
    assert read_frame(bytes(ETHER / short)) == IcmpError(name="icmpv6 1/5", quoted=None)


def test_an_error_about_a_packet_that_is_too_large_states_the_mtu() -> None:
    quoted = {version: build(flow_of("udp", version), DATA, hop_limit=10) for version in (4, 6)}
    header4, header6 = IP(src="198.18.0.1", dst="198.18.0.2"), IPv6(src="2001:2::1", dst="2001:2::2")
    messages: list[tuple[ScapyPacket, int | None]] = [
        (header4 / ICMP(type=3, code=4, nexthopmtu=1000) / quoted[4], 1000),
        (header4 / ICMP(type=3, code=4) / quoted[4], None),
        (header4 / ICMP(type=3, code=3, nexthopmtu=1000) / quoted[4], None),
        (header6 / ICMPv6PacketTooBig(mtu=1280) / quoted[6], 1280),
    ]
    for message, mtu in messages:
        read = read_frame(bytes(ETHER / message))
        assert isinstance(read, IcmpError)
        assert (read.mtu, read.quoted) == (mtu, flow_of("udp", 4 if IP in message else 6))


ENDS = {6: ("2001:db8::c000:200:0", "2001:db8:ffff::1"), 4: ("198.18.0.2", "198.18.0.1")}
"""Of tunnels, by the family of the outer header; the packet inside is of the other one."""


def tunnel_of(version: int) -> Tunnel:
    source, destination = map(ip_address, ENDS[version])
    return Tunnel(source=source, destination=destination)


def outer_header(version: int) -> ScapyPacket:
    source, destination = ENDS[version]
    return IPv6(src=source, dst=destination, hlim=63, tc=4) if version == 6 else IP(src=source, dst=destination, ttl=63)


@pytest.mark.parametrize("version", [6, 4])
@pytest.mark.parametrize("kind", ["udp", "echo request"])
def test_a_packet_is_read_with_the_tunnel_that_it_is_in(kind: Kind, version: int) -> None:
    flow = flow_of(kind, 10 - version)
    inside = build(flow, DATA, hop_limit=10)
    frame = bytes(ETHER / outer_header(version) / (IP(inside) if version == 6 else IPv6(inside)))
    read = read_frame(frame)
    assert isinstance(read, Packet)
    assert (read.flow.tunnel, read.flow.inside) == (tunnel_of(version), flow)
    assert (read.hop_limit, read.data, read.checksum_correct) == (10, DATA, True)
    assert read.outer == OuterHeader(hop_limit=63, traffic_class=4 if version == 6 else 0)
    assert list(differences(read, read.flow, hop_limits=range(10, 11), data=DATA)) == []
    ends = "{} to {}".format(*ENDS[version])
    (difference,) = differences(read, flow, hop_limits=range(10, 11), data=DATA)
    assert difference == f"in a tunnel from {ends} instead of in no tunnel"
    assert str(read.flow) == f"{flow} in a tunnel from {ends}"


def test_what_no_tunnel_may_have_is_a_difference() -> None:
    flow = flow_of("udp", 4)
    inside = IP(build(flow, DATA, hop_limit=10))
    six, four = outer_header(6), IP(src="198.18.0.2", dst="198.18.0.1", chksum=1)
    packets = {
        "options before the packet in the tunnel": six / IPv6ExtHdrDestOpt(nh=4) / inside,
        "octets behind the packet in the tunnel": six / inside / Raw(bytes(8)),
        "wrong checksum of the outer header": four / IPv6(build(flow_of("udp", 6), DATA, hop_limit=10)),
    }
    for fault, packet in packets.items():
        read = read_frame(bytes(ETHER / packet))
        assert isinstance(read, Packet)
        assert list(differences(read, read.flow, hop_limits=range(10, 11), data=DATA)) == [fault]
    assert read_frame(bytes(ETHER / outer_header(6) / outer_header(4) / six / inside)) is None


def test_errors_and_fragments_in_tunnels_are_told_from_those_about_tunnels() -> None:
    flow = flow_of("udp", 4)
    inside = IP(build(flow, DATA, hop_limit=10))
    message = IP(src="198.19.0.1", dst="198.18.0.2") / ICMP(type=11) / inside
    read = read_frame(bytes(ETHER / outer_header(6) / message))
    assert read == IcmpError(name="icmpv4 11/0", quoted=flow, tunnel=tunnel_of(6))
    about = IPv6(src="2001:2::1", dst="2001:2::2") / ICMPv6DestUnreach(code=5) / outer_header(6) / inside
    read = read_frame(bytes(ETHER / about))
    assert isinstance(read, IcmpError)
    assert (read.name, read.tunnel) == ("icmpv6 1/5", None)
    assert read.quoted is not None
    assert (read.quoted.tunnel, read.quoted.inside) == (tunnel_of(6), flow)
    part = IP(fragmented(bytes(inside), octets=40, identification=7)[0])
    fragment = read_frame(bytes(ETHER / outer_header(6) / part))
    assert isinstance(fragment, Fragment)
    assert fragment.tunnel == tunnel_of(6)


@pytest.mark.parametrize(("outer", "inner"), [(6, 4), (6, 6), (4, 6)])
def test_a_packet_is_put_into_a_tunnel_as_another_library_does_it(outer: int, inner: int) -> None:
    packet = build(flow_of("udp", inner), DATA, hop_limit=10)
    tunnel = encapsulated(packet, tunnel_of(outer), hop_limit=63, traffic_class=4)
    header = outer_header(6) if outer == 6 else IP(src=ENDS[4][0], dst=ENDS[4][1], ttl=63, tos=4, id=0)
    theirs = header / (IP(packet) if inner == 4 else IPv6(packet))
    assert tunnel == bytes(theirs)
    assert (read_frame(framed(tunnel)) is None) == (outer == inner), "it reads those that carry the other family"
    parts = fragmented(tunnel, octets=64, identification=77)
    assert len(parts) == 2
    if outer == 6:
        assert bytes(defragment6([IPv6(part) for part in parts])) == tunnel
    else:
        (whole,) = defragment([IP(part) for part in parts])
        assert (whole.tos, bytes(whole.payload)) == (4, packet)


def test_an_outer_header_of_ipv4_is_right_to_the_octet() -> None:
    ends = Tunnel(source=IPv4Address("198.18.0.2"), destination=IPv4Address("198.18.0.1"))
    outer = encapsulated(bytes(66), ends, hop_limit=64, traffic_class=0)[:20]
    assert outer.hex() == "45000056000000004029ee57c6120002c6120001"
    assert ends.back.back == ends and ends.back.source == ends.destination


def fragments_of(*packets: bytes) -> list[Fragment]:
    read = [read_frame(framed(packet)) for packet in packets]
    return [part for part in read if isinstance(part, Fragment)]


@pytest.mark.parametrize("in_tunnel", [False, True])
def test_fragments_are_joined_if_all_are_there_once(in_tunnel: bool) -> None:
    flow = flow_of("udp", 4)
    packets = fragmented(build(flow, DATA, hop_limit=10), octets=32, identification=77)
    assert len(packets) == 3
    if in_tunnel:
        packets = tuple(encapsulated(each, tunnel_of(6), hop_limit=63, traffic_class=0) for each in packets)
    parts = fragments_of(*packets)
    assert {part.identification for part in parts} == {77}
    for numbers in ((0, 1, 2), (2, 0, 1)):
        whole = joined([parts[i] for i in numbers])
        assert isinstance(whole, Packet)
        assert (whole.flow.inside, whole.flow.tunnel) == (flow, tunnel_of(6) if in_tunnel else None)
        assert (whole.data, whole.hop_limit, whole.checksum_correct) == (DATA, 10, True)
    for order in ((0, 1), (0, 2), (1, 2), (0, 0, 1, 2), (0, 1, 2, 2)):
        assert joined([parts[i] for i in order]) is None, order


def test_fragments_of_tunnel_packets_are_joined_to_what_is_in_the_tunnel() -> None:
    """Those that scapy makes of IPv4 in IPv6 and of IPv6 in IPv4; the packet inside was in none."""
    long = DATA * 20
    six = encapsulated(build(flow_of("udp", 4), long, hop_limit=10), tunnel_of(6), hop_limit=63, traffic_class=4)
    four = encapsulated(build(flow_of("udp", 6), long, hop_limit=10), tunnel_of(4), hop_limit=63, traffic_class=4)
    header = IPv6(src=ENDS[6][0], dst=ENDS[6][1], hlim=63, tc=4) / IPv6ExtHdrFragment(nh=4, id=7)
    theirs = {6: fragment6(header / IP(six[40:]), 600), 4: fragment(IP(four), fragsize=560)}
    for version, packets in theirs.items():
        parts = fragments_of(*map(bytes, packets))
        assert len(parts) == 3 and all(part.is_of_tunnel for part in parts)
        whole = joined(parts[::-1])
        assert isinstance(whole, Packet) and whole.outer is not None
        assert (whole.flow.inside, whole.flow.tunnel) == (flow_of("udp", 10 - version), tunnel_of(version))
        assert (whole.data, whole.was_in_fragments, whole.outer.faults) == (long, False, ())
        for order in ((0, 1), (1, 2), (0, 1, 1, 2)):
            assert joined([parts[i] for i in order]) is None, order


@pytest.mark.parametrize("place", range(20))
def test_a_header_of_a_fragment_that_is_damaged_makes_a_difference(place: int) -> None:
    flow = flow_of("udp", 4)
    packets = [bytearray(each) for each in fragmented(build(flow, DATA, hop_limit=10), octets=40, identification=77)]
    packets[1][place] ^= 0x04
    parts = fragments_of(*map(bytes, packets))
    whole = joined(parts) if len(parts) == 2 else None
    is_same = isinstance(whole, Packet) and not list(differences(whole, flow, hop_limits=range(10, 11), data=DATA))
    assert not is_same


@pytest.mark.parametrize("version", [4, 6])
def test_an_error_is_that_of_another_library(version: int) -> None:
    flow = flow_of("udp", version)
    packet = build(flow, DATA, hop_limit=10)
    source, destination = map(ip_address, ADDRESSES[version][::-1])
    error = unreachable(packet, source=source, destination=destination, hop_limit=64)
    if version == 4:
        header: ScapyPacket = IP(src=str(source), dst=str(destination), id=0) / ICMP(type=3, code=3)
    else:
        header = IPv6(src=str(source), dst=str(destination)) / ICMPv6DestUnreach(code=3)
    assert error == bytes(header / Raw(packet))
    read = read_frame(framed(error))
    assert isinstance(read, IcmpError)
    assert (read.name, read.quoted, read.quote) == (f"icmpv{version} {'3/3' if version == 4 else '1/3'}", flow, packet)


def test_a_packet_in_hundreds_of_tunnels_is_none() -> None:
    packet = b""
    for _ in range(450):
        packet = bytes(IP(src="198.18.0.2", dst="198.18.0.1", proto=4, len=20 + len(packet), chksum=0)) + packet
    assert read_frame(framed(packet)) is None


@given(st.binary(max_size=120))
def test_any_octets_may_arrive(octets: bytes) -> None:
    for frame in (octets, framed(octets) if octets else b"", bytes(12) + b"\x81\x00\x00\x07" + octets):
        read_frame(frame)


@given(st.sampled_from(FLOWS), st.booleans(), st.data())
def test_damaged_packets_may_arrive(which: tuple[Kind, int], in_tunnel: bool, data: st.DataObject) -> None:
    packet = build(flow_of(*which), DATA, hop_limit=10)
    if in_tunnel:
        packet = bytes(outer_header(10 - which[1]) / (IP(packet) if which[1] == 4 else IPv6(packet)))
    frame = bytearray(framed(packet))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(12, len(frame) - 1))] = data.draw(st.integers(0, 255))
    read_frame(bytes(frame[: data.draw(st.integers(0, len(frame)))]))


VECTOR_DATA = bytes(range(18))
MAP_ENDS = "2001:db8:12:3400:0:c000:212:34", "2001:db8:ffff::1"
B4_ENDS = "2001:db8:0:1::1", "2001:db8:0:2::1"


@pytest.mark.parametrize(
    ("ends", "source", "destination", "hop_limit", "inside"),
    [
        (MAP_ENDS, "192.0.2.18:1232", "1.2.3.4:80", 10, "4500002e000000000a11eaa7c00002120102030404d00050001aec30"),
        (None, "192.0.2.18:1232", "1.2.3.4:80", 9, "4500002e000000000911eba7c00002120102030404d00050001aec30"),
        (None, "1.2.3.4:80", "192.0.2.18:1232", 10, "4500002e000000000a11eaa701020304c0000212005004d0001aec30"),
        (
            MAP_ENDS[::-1],
            "1.2.3.4:80",
            "192.0.2.18:1232",
            9,
            "4500002e000000000911eba701020304c0000212005004d0001aec30",
        ),
        (B4_ENDS, "10.0.0.1:10000", "198.51.100.1:80", 10, "4500002e000000000a117c8a0a000001c633640127100050001a5bd3"),
        (None, "192.0.2.1:5000", "198.51.100.1:80", 9, "4500002e000000000911c589c0000201c633640113880050001ab75a"),
        (None, "198.51.100.1:80", "192.0.2.1:5000", 10, "4500002e000000000a11c489c6336401c000020100501388001ab75a"),
        (
            B4_ENDS[::-1],
            "198.51.100.1:80",
            "10.0.0.1:10000",
            9,
            "4500002e0000000009117d8ac63364010a00000100502710001a5bd3",
        ),
    ],
)
def test_vectors_of_relays_and_aftrs_are_built_and_read(
    ends: tuple[str, str] | None, source: str, destination: str, hop_limit: int, inside: str
) -> None:
    """A MAP-E relay (RFC 7597 section 8) and an AFTR (RFC 6333 section 6), each way before it and behind it.

    Their octets were computed by hand; the engine's tests have them as well (`engine/tests/golden/tunnel_vectors.hpp`).
    """
    sides = [text.split(":") for text in (source, destination)]
    flow = Flow(
        kind="udp",
        source=ip_address(sides[0][0]),
        destination=ip_address(sides[1][0]),
        source_port=int(sides[0][1]),
        destination_port=int(sides[1][1]),
    )
    packet = build(flow, VECTOR_DATA, hop_limit=hop_limit)
    assert packet == bytes.fromhex(inside) + VECTOR_DATA
    tunnel = None if ends is None else Tunnel(source=ip_address(ends[0]), destination=ip_address(ends[1]))
    if tunnel is not None:
        packet = encapsulated(packet, tunnel, hop_limit=64, traffic_class=0)
        packed = tunnel.source.packed + tunnel.destination.packed
        assert packet[:40] == bytes.fromhex("60000000002e0440") + packed
    read = read_frame(framed(packet))
    assert isinstance(read, Packet) and read.flow.tunnel == tunnel
    due = Flow(
        kind="udp",
        source=flow.source,
        destination=flow.destination,
        source_port=flow.source_port,
        destination_port=flow.destination_port,
        tunnel=tunnel,
    )
    assert list(differences(read, due, hop_limits=range(hop_limit, hop_limit + 1), data=VECTOR_DATA)) == []


def test_the_outer_header_of_6rd_is_that_of_its_vector() -> None:
    """RFC 5969 section 4: 198.18.0.2 has 2001:db8:c612:2::/64 under 2001:db8::/32."""
    flow = Flow(
        kind="udp",
        source=ip_address("2001:db8:c612:2::1"),
        destination=ip_address("2001:2:0:8000::2"),
        source_port=1232,
        destination_port=7,
    )
    tunnel = Tunnel(source=ip_address("198.18.0.2"), destination=ip_address("198.18.0.1"))
    packet = encapsulated(build(flow, VECTOR_DATA, hop_limit=10), tunnel, hop_limit=64, traffic_class=0)
    assert packet[:20] == bytes.fromhex("45000056000000004029ee57c6120002c6120001")
    read = read_frame(framed(packet))
    assert isinstance(read, Packet) and read.flow.tunnel == tunnel and read.outer is not None
    assert (read.outer.hop_limit, read.outer.traffic_class, read.outer.faults) == (64, 0, ())

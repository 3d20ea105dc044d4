"""Sends frames on the two ends of a test bed and prints what came back; answers ARP and neighbour solicitations.

Run inside the Tester's namespace with a plan in JSON on standard input:
`{"interfaces": {"left": IF, "right": IF}, "frames": [[SIDE, HEX], ...], "seconds": 1.0, "wanted": 2}`; prints
`{"received": [[SIDE, HEX], ...], "asked": [[SIDE, ADDRESS], ...]}` when `wanted` frames came and no other followed
within a few milliseconds, or after `seconds`. Standard library only: it shares nothing with gatemark.
"""

import ipaddress
import json
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
QUIET_S = 0.02


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp_reply(frame: bytes, mac: bytes) -> tuple[bytes, str] | None:
    """Answer an ARP request (RFC 826) for whatever address it asks."""
    if frame[12:14] != b"\x08\x06" or frame[20:22] != b"\0\x01":
        return None
    target = frame[38:42]
    body = frame[14:20] + b"\0\x02" + mac + target + frame[22:32]
    return frame[6:12] + mac + b"\x08\x06" + body, str(ipaddress.ip_address(target))


def neighbour_advertisement(frame: bytes, mac: bytes) -> tuple[bytes, str] | None:
    """Answer a neighbour solicitation (RFC 4861) for whatever address it asks."""
    if frame[12:14] != b"\x86\xdd" or frame[20] != 58 or frame[54] != 135:
        return None
    target, asker = frame[62:78], frame[22:38]
    body = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + target + b"\x02\x01" + mac
    pseudo = target + asker + struct.pack("!II", len(body), 58)
    body = body[:2] + struct.pack("!H", internet_checksum(pseudo + body)) + body[4:]
    header = struct.pack("!IHBB", 0x60000000, len(body), 58, 255) + target + asker
    return frame[6:12] + mac + b"\x86\xdd" + header + body, str(ipaddress.ip_address(target))


def is_udp_or_icmp_error(frame: bytes) -> bool:
    """Whether the frame is one of ours or says what became of it; reports of multicast listeners are neither."""
    if frame[12:14] == b"\x08\x00":
        return frame[23] in (1, 17)
    return frame[12:14] == b"\x86\xdd" and (frame[20] in (4, 17, 44) or (frame[20] == 58 and frame[54] < 128))


def main() -> None:
    """Send, answer, collect."""
    plan = json.load(sys.stdin)
    sockets = {}
    for side, interface in plan["interfaces"].items():
        sockets[side] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        sockets[side].bind((interface, 0))
    for side, text in plan["frames"]:
        sockets[side].send(bytes.fromhex(text))
    received: list[list[str]] = []
    asked: list[list[str]] = []
    until = time.monotonic() + plan["seconds"]
    while (left := until - time.monotonic()) > 0:
        enough = len(received) >= plan["wanted"]
        ready, _, _ = select.select(list(sockets.values()), [], [], QUIET_S if enough else left)
        if enough and not ready:
            break
        for side, sock in sockets.items():
            if sock not in ready:
                continue
            frame, address = sock.recvfrom(65535)
            if address[2] == PACKET_OUTGOING:
                continue
            answer = arp_reply(frame, sock.getsockname()[4]) or neighbour_advertisement(frame, sock.getsockname()[4])
            if answer is not None:
                sock.send(answer[0])
                asked.append([side, answer[1]])
            elif is_udp_or_icmp_error(frame):
                received.append([side, frame.hex()])
    json.dump({"received": received, "asked": asked}, sys.stdout)


if __name__ == "__main__":
    main()

"""Asks for hosts by ARP as a gateway does whose neighbour table is cold: all of them at once, then one after the other.

Run inside the gateway's namespace: `neighbour_flood.py INTERFACE ASKER FIRST_HOST HOSTS RATE DELAY SECONDS`; RATE is
in requests/s. Prints `ready`, waits for DELAY seconds, asks, and prints `{"asked": N, "answered": N, "hosts": N,
"began": S, "ended": S}` when it ends: requests, replies, hosts that replied at all, and when it began to ask and heard
the last reply, seconds of the monotonic clock. Standard library only: it shares nothing with gatemark.
"""

import ipaddress
import json
import socket
import sys
import time

ETH_P_ARP = 0x0806
PACKET_OUTGOING = 4
SO_RCVBUFFORCE = 33
QUIET_SECONDS = 0.5


def main() -> None:
    """Ask, listen, count."""
    interface, asker, first, hosts, rate, delay, seconds = sys.argv[1:]
    count = int(hosts)
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sock.bind((interface, ETH_P_ARP))
    sock.setblocking(False)
    mac = sock.getsockname()[4]
    sender = mac + ipaddress.ip_address(asker).packed
    start = b"\xff" * 6 + mac + b"\x08\x06\0\x01\x08\0\x06\x04\0\x01" + sender + bytes(6)
    targets = [(ipaddress.ip_address(first) + number).packed for number in range(count)]
    asked = answered = 0
    addresses: set[bytes] = set()

    def ask(target: bytes) -> None:
        nonlocal asked
        sock.send(start + target + bytes(18))
        asked += 1

    def listen() -> bool:
        nonlocal answered
        heard = False
        while True:
            try:
                frame, address = sock.recvfrom(2048)
            except BlockingIOError:
                return heard
            if address[2] != PACKET_OUTGOING and frame[20:22] == b"\0\x02" and frame[38:42] == start[28:32]:
                heard = True
                answered += 1
                addresses.add(frame[28:32])

    print("ready", flush=True)
    time.sleep(float(delay))
    first_asked = time.monotonic()
    for target in targets:
        ask(target)
    began = time.monotonic()
    sent = 0
    while (elapsed := time.monotonic() - began) < float(seconds):
        while sent < elapsed * int(rate):
            ask(targets[sent % count])
            sent += 1
        listen()
        time.sleep(0.0005)
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < QUIET_SECONDS:
        if listen():
            quiet_since = time.monotonic()
        time.sleep(0.01)
    counts = {"asked": asked, "answered": answered, "hosts": len(addresses)}
    print(json.dumps({**counts, "began": first_asked, "ended": quiet_since}))


main()

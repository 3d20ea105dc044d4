"""Captures the frames of interfaces until SIGTERM, and prints them then.

`capture.py READY NAME=INTERFACE...`: makes the file READY once it captures. Prints for each frame the number of its
interface in one octet, its length in four, most significant first, and its octets; in the end 255, and in the place of
a length how many frames it had no room for.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import struct
import sys
import time

EVERY_PROTOCOL = 3
SOL_PACKET, PACKET_STATISTICS = 263, 6
ROOM_OCTETS, OCTETS_MAX = 8 << 20, 96 << 20
"""Room of each socket, and what is kept of all."""
SECONDS_MAX = 300.0
"""Nobody waits for so long."""
END = 255


def opened(interface: str) -> socket.socket:
    """Return a socket that takes each frame of an interface, in both directions."""
    taking = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for option in (socket.SO_RCVBUF, 33):  # SO_RCVBUFFORCE: beyond the limit of the machine, if that is allowed
        with contextlib.suppress(OSError):
            taking.setsockopt(socket.SOL_SOCKET, option, ROOM_OCTETS)
    taking.bind((interface, EVERY_PROTOCOL))
    taking.setblocking(False)
    return taking


def main(ready: str, interfaces: list[str]) -> int:
    """Capture, and print what was captured."""
    stopped = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    selector = selectors.DefaultSelector()
    sockets = [opened(interface) for interface in interfaces]
    for number, taking in enumerate(sockets):
        selector.register(taking, selectors.EVENT_READ, number)
    with open(ready, "w", encoding="ascii"):
        pass
    frames: list[tuple[int, bytes]] = []
    kept = lost = 0
    end = time.monotonic() + SECONDS_MAX
    while True:
        events = selector.select(0.0 if stopped else 0.05)
        if time.monotonic() > end:
            print(f"nobody ended it within {SECONDS_MAX:g} s", file=sys.stderr)
            return 1
        if not events and stopped:
            break
        for key, _ in events:
            with contextlib.suppress(BlockingIOError, InterruptedError):
                octets = sockets[key.data].recv(1 << 16)
                if kept + len(octets) > OCTETS_MAX:
                    lost += 1
                    continue
                kept += len(octets)
                frames.append((key.data, octets))
    for taking in sockets:
        lost += struct.unpack("=II", taking.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    output = b"".join(struct.pack("!BI", number, len(octets)) + octets for number, octets in frames)
    sys.stdout.buffer.write(output + struct.pack("!BI", END, lost))
    sys.stdout.buffer.flush()
    with contextlib.suppress(OSError):
        os.unlink(ready)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

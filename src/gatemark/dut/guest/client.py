"""Runs one command in the guest: standard input, output and exit status are those of the command there.

`client.py SOCKET WORD...`. SIGTERM is passed on; if this process is killed, so is the command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from types import FrameType

LOST = 125
"""Exit status where nobody knows how the command ended."""
SAID_CHARACTERS = 600
"""How much of its console is shown if the kernel ended."""


def main(path: str, words: list[str]) -> int:
    """Run `words` in the guest whose relay listens at `path`; return the exit status."""
    relay = socket.socket(socket.AF_UNIX)

    def pass_on(number: int, frame: FrameType | None) -> None:
        relay.sendall(b'"TERM"\n')

    try:
        relay.connect(path)
        signal.signal(signal.SIGTERM, pass_on)
        given = sys.stdin.buffer.read().decode(errors="surrogateescape")
        relay.sendall(json.dumps({"words": words, "given": given}).encode() + b"\n")
        answer = relay.makefile("rb").readline()
    except OSError as error:
        print(f"the gateway's kernel does not answer: {error}", file=sys.stderr)
        return LOST
    if not answer:
        with open(os.path.join(os.path.dirname(path), "console"), encoding="utf-8", errors="replace") as console:
            print(f"the gateway's kernel ended: {console.read()[-SAID_CHARACTERS:].strip()}", file=sys.stderr)
        return LOST
    ended = json.loads(answer)
    for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
        stream.flush()
        with open(ended[name], "rb") as file:
            while part := file.read(1 << 20):
                stream.buffer.write(part)
        os.unlink(ended[name])
    return int(ended["status"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

"""The first process of a guest's enclosure: starts the kernel and passes commands on to its agent.

`relay.py FOLDER SOCKET COMMAND...`: the kernel's command line, in which `{serial}` stands for the number of the serial
line's descriptor. Prints `ready` when it runs, `started` when the agent inside does. Ends with the kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import socket
import sys
from dataclasses import dataclass
from typing import Any

SIGNALS = ("TERM", "KILL")


@dataclass
class Client:
    """A connected client, and what of it has not been understood yet."""

    connection: socket.socket
    waiting: bytes = b""
    job: int | None = None


class Relay:
    """Numbers commands and passes them on; each has files of its own, named by its number."""

    def __init__(self, folder: str, serial: socket.socket) -> None:
        self.folder = folder
        self.serial = serial
        self.said = b""
        self.jobs: dict[int, Client | None] = {}
        self.count = 0

    def request(self, client: Client, message: Any) -> None:
        """Do what a client asks: run a command, or signal the one that it has."""
        if message in SIGNALS:
            if client.job is not None:
                self.tell(f"signal {client.job} {message}")
            return
        self.count += 1
        client.job = self.count
        self.jobs[self.count] = client
        script = f"exec {shlex.join(message['words'])}\n"
        for name, text in (("sh", script), ("in", message["given"])):
            with open(self.file(self.count, name), "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        self.tell(f"run {self.count}")

    def file(self, job: int, name: str) -> str:
        """Return the path of a file of a command: `sh`, `in`, `out` or `err`."""
        return f"{self.folder}/{job}.{name}"

    def tell(self, line: str) -> None:
        """Write a line to the agent."""
        self.serial.sendall(line.encode() + b"\n")

    def heard(self, data: bytes) -> None:
        """Understand what the agent says."""
        *lines, self.said = (self.said + data).split(b"\n")
        for line in lines:
            words = line.decode(errors="replace").split()
            if words == ["started"]:
                print("started", flush=True)
            elif len(words) == 3 and words[0] == "ended":
                self.ended(int(words[1]), int(words[2]))

    def ended(self, job: int, status: int) -> None:
        """Tell the client of a command how it ended."""
        client = self.jobs.pop(job, None)
        for name in ("sh", "in") if client else ("sh", "in", "out", "err"):
            with contextlib.suppress(OSError):
                os.unlink(self.file(job, name))
        if client is not None:
            client.job = None
            answer = {"status": status, "out": self.file(job, "out"), "err": self.file(job, "err")}
            with contextlib.suppress(OSError):
                client.connection.sendall(json.dumps(answer).encode() + b"\n")

    def left(self, client: Client) -> None:
        """Kill the command of a client that is gone."""
        if client.job is not None:
            self.jobs[client.job] = None
            self.tell(f"signal {client.job} KILL")


def main(folder: str, path: str, command: list[str]) -> int:
    """Start the kernel, serve until it ends."""
    here, there = socket.socketpair()
    os.set_inheritable(there.fileno(), True)
    words = [word.replace("{serial}", str(there.fileno())) for word in command]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    print("ready", flush=True)
    kernel = os.fork()
    if kernel == 0:
        console = os.open(f"{folder}/console", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((nothing, 0), (console, 1), (console, 2)):
            os.dup2(number, target)
        os.execv(words[0], words)
    there.close()
    relay = Relay(folder, here)
    selector = selectors.DefaultSelector()
    selector.register(here, selectors.EVENT_READ, None)
    selector.register(listener, selectors.EVENT_READ, listener)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                data = here.recv(1 << 16)
                if not data:
                    return 1  # the kernel ended, and all that it started ends with this process
                relay.heard(data)
            elif key.data is listener:
                connection, _ = listener.accept()
                selector.register(connection, selectors.EVENT_READ, Client(connection))
            else:
                serve(relay, selector, key.data)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def serve(relay: Relay, selector: selectors.BaseSelector, client: Client) -> None:
    """Read what a client says."""
    try:
        data = client.connection.recv(1 << 20)
    except OSError:
        data = b""
    if not data:
        selector.unregister(client.connection)
        client.connection.close()
        relay.left(client)
        return
    *lines, client.waiting = (client.waiting + data).split(b"\n")
    for line in lines:
        relay.request(client, json.loads(line))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

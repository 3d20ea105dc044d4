"""A real sshd in a network namespace, with keys, users and configuration that are gone afterwards.

Its users are root under other names, each with a login shell of its own, and two without rights that may use `sudo`.
All of them, and what sudo allows them, are in files that only the sshd and what it starts see in the place of those of
this machine. The `ssh` that is first on PATH is Debian's client in that namespace, with a configuration in place of
~/.ssh/config, which stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("ssh", "sshd", "ssh-keygen", "tcsh", "ip", "unshare", "conntrack")
USERS = {"posix": "/bin/sh", "csh": "/usr/bin/tcsh"}
SUDO_USERS = {
    "allowed": "allowed ALL=(root) NOPASSWD: /bin/sh -s, /usr/bin/sh -s",
    "asked": "asked ALL=(root) ALL",
}
"""Users without rights, each with its line of sudoers: the command that controls a gateway, or all with a password."""
SUDO_DEFAULTS = 'Defaults secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n'
UID_OF_SUDO_USERS = 64_001
ADDRESS = "127.0.0.1"
SSH = shutil.which("ssh")
"""That of this machine: a second sshd must not take the `ssh` of the first for it."""

SERVER = """Port 22
ListenAddress {address}
HostKey {folder}/host
PidFile {folder}/pid
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
"""
CLIENT = """Host *
  HostName {address}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


@dataclass(frozen=True, kw_only=True)
class Sshd:
    """A running sshd."""

    folder: Path
    namespace: str
    server: subprocess.Popen[bytes]

    @property
    def known_hosts(self) -> Path:
        """What the client knows of host keys."""
        return self.folder / "known_hosts"

    def inside(self, *command: str) -> str:
        """Run a command in the namespace."""
        whole = ["ip", "netns", "exec", self.namespace, *command]
        return subprocess.run(whole, check=True, capture_output=True, text=True).stdout

    def processes(self, name: str) -> list[int]:
        """The processes of the namespace that have a name, newest last."""
        result = []
        for pid in subprocess.run(
            ["ip", "netns", "pids", self.namespace], check=True, capture_output=True, text=True
        ).stdout.split():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    result.append(int(pid))
        return sorted(result)

    def cut(self) -> None:
        """Cut every connection, without a word to its other end; commands go on."""
        for name in ("sshd", "sshd-session"):  # the second since OpenSSH 9.8
            for pid in self.processes(name):
                if pid != self.server.pid:
                    os.kill(pid, signal.SIGKILL)


def _key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text()


def _files(folder: Path, namespace: str) -> None:
    (folder / "run" / "sshd").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "known_hosts").write_text(f"{ADDRESS} {_key(folder / 'host')}")
    _key(folder / "user")
    (folder / "server").write_text(SERVER.format(address=ADDRESS, folder=folder))
    users = [f"{name}:x:0:0::{folder}:{shell}" for name, shell in USERS.items()]
    users += [
        f"{name}:x:{UID_OF_SUDO_USERS + number}:65534::{folder}:/bin/sh" for number, name in enumerate(SUDO_USERS)
    ]
    passwords = [f"{name}:*:19000:0:99999:7:::" for name in SUDO_USERS]
    for name, lines in (("passwd", users), ("shadow", passwords)):
        (folder / name).write_text(Path(f"/etc/{name}").read_text() + "\n".join(lines) + "\n")
    (folder / "shadow").chmod(0o600)
    (folder / "sudoers").write_text(SUDO_DEFAULTS + "\n".join(SUDO_USERS.values()) + "\n")
    (folder / "sudoers").chmod(0o440)
    hosts = [f"Host {name}-gateway\n  User {name}\n" for name in (*USERS, *SUDO_USERS)]
    (folder / "client").write_text("".join(hosts) + CLIENT.format(address=ADDRESS, folder=folder))
    client = folder / "bin" / "ssh"
    client.write_text(f'#!/bin/sh\nexec ip netns exec {namespace} {SSH} -F {folder}/client "$@"\n')
    client.chmod(0o755)


@contextlib.contextmanager
def sshd() -> Iterator[Sshd]:
    """Start an sshd; everything of it is gone on leaving."""
    folder = Path(tempfile.mkdtemp(prefix="gm-sshd-"))
    folder.chmod(0o755)
    namespace = folder.name
    _files(folder, namespace)
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
    files = [name for name in ("passwd", "shadow", "sudoers") if Path(f"/etc/{name}").exists()]
    mounts = " && ".join(
        [*(f"mount --bind {folder}/{name} /etc/{name}" for name in files), f"mount --bind {folder}/run /run"]
    )
    serve = f"{mounts} && exec {shutil.which('sshd')} -D -e -f {folder}/server"
    path = os.environ["PATH"]
    with (folder / "log").open("wb") as log:
        inside = ["ip", "netns", "exec", namespace, "unshare", "--mount", "sh", "-c", serve]
        server = subprocess.Popen(inside, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 10
        while b"listening" not in (folder / "log").read_bytes():
            assert time.monotonic() < until and server.poll() is None, (folder / "log").read_text()
            time.sleep(0.02)
        os.environ["PATH"] = f"{folder}/bin:{path}"
        yield Sshd(folder=folder, namespace=namespace, server=server)
    finally:
        os.environ["PATH"] = path
        for pid in subprocess.run(
            ["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True
        ).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        server.wait()
        subprocess.run(["ip", "netns", "delete", namespace], check=False)
        shutil.rmtree(folder, ignore_errors=True)

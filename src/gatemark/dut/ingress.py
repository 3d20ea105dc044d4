"""Keeping what arrives at the Tester's interfaces out of the kernel of the machine that measures.

A packet socket gets a copy of each frame. The frame itself goes on: into a bridge, or into the IP input, where a
machine that forwards may send it out by its default route. An XDP socket takes what its program hands over and lets the
rest pass. So everything that arrives is dropped while a measurement lasts, by a base chain of nftables at the ingress
hook of the interface, which comes after XDP and after the packet sockets' copy, and before bridge, bond and IP.

The table belongs to the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12). The kernel removes it with the socket,
so nothing stays behind however the process ends, and no `nft flush ruleset` of a firewall removes it meanwhile.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Collection, Sequence
from typing import Self

from gatemark.dut import naming

NETLINK_NETFILTER = 12
ANSWER_SECONDS_MAX = 5

_SUBSYSTEM = 10  # NFNL_SUBSYS_NFTABLES
_BATCH_BEGIN, _BATCH_END = 16, 17  # NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END
_NEW_TABLE, _NEW_CHAIN = _SUBSYSTEM << 8 | 0, _SUBSYSTEM << 8 | 3  # NFT_MSG_NEWTABLE, NFT_MSG_NEWCHAIN
_ERROR = 2  # NLMSG_ERROR
_REQUEST, _ACK, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x200, 0x400  # NLM_F_...
_NETDEV = 5  # NFPROTO_NETDEV
_TABLE_NAME, _TABLE_FLAGS, _OWNER = 1, 2, 2  # NFTA_TABLE_NAME, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER
_CHAIN_TABLE, _CHAIN_NAME, _CHAIN_HOOK, _CHAIN_POLICY, _CHAIN_TYPE = 1, 3, 4, 5, 7  # NFTA_CHAIN_...
_HOOK_NUMBER, _HOOK_PRIORITY, _HOOK_DEVICE = 1, 2, 3  # NFTA_HOOK_...
_INGRESS, _DROP, _FIRST = 0, 0, -(1 << 31)  # NF_NETDEV_INGRESS, NF_DROP, NF_IP_PRI_FIRST
_NESTED = 0x8000  # NLA_F_NESTED


class IngressDrop:
    """Drops all that arrives at `interfaces` of this network namespace until it is closed or the process ends.

    Raises OSError, having changed nothing, where the kernel cannot do it or the process may not.
    """

    def __init__(self, interfaces: Collection[str]) -> None:
        self.interfaces = tuple(sorted(interfaces))
        self._socket: socket.socket | None = None
        if not interfaces:
            return
        owner = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_NETFILTER)
        try:
            owner.bind((0, 0))
            owner.settimeout(ANSWER_SECONDS_MAX)
            _send_batch(owner, _messages(naming.new_name().stem, self.interfaces))
        except BaseException:
            owner.close()
            raise
        self._socket = owner

    def close(self) -> None:
        """Let frames pass again; a second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _messages(table: str, interfaces: Sequence[str]) -> list[bytes]:
    """Return the messages that make the table and a chain for each interface."""
    name = _attribute(_TABLE_NAME, table)
    messages = [_message(_NEW_TABLE, name + _attribute(_TABLE_FLAGS, struct.pack(">I", _OWNER)))]
    for number, interface in enumerate(interfaces):
        hook = (
            _attribute(_HOOK_NUMBER, struct.pack(">I", _INGRESS))
            + _attribute(_HOOK_PRIORITY, struct.pack(">i", _FIRST))
            + _attribute(_HOOK_DEVICE, interface)
        )
        chain = (
            _attribute(_CHAIN_TABLE, table)
            + _attribute(_CHAIN_NAME, f"drop-{number}")
            + _attribute(_CHAIN_HOOK | _NESTED, hook)
            + _attribute(_CHAIN_POLICY, struct.pack(">I", _DROP))
            + _attribute(_CHAIN_TYPE, "filter")
        )
        messages.append(_message(_NEW_CHAIN, chain))
    return messages


def _attribute(kind: int, value: bytes | str) -> bytes:
    octets = value.encode() + b"\0" if isinstance(value, str) else value
    return struct.pack("=HH", 4 + len(octets), kind) + octets + bytes(-len(octets) % 4)


def _message(kind: int, attributes: bytes, *, flags: int = _REQUEST | _ACK | _EXCLUSIVE | _CREATE) -> bytes:
    """Return a message without its sequence number; that of a batch's begin and end names the subsystem."""
    family, resource = (_NETDEV, 0) if attributes else (socket.AF_UNSPEC, _SUBSYSTEM)
    body = struct.pack("=BB", family, 0) + struct.pack(">H", resource) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 0, 0) + body


def _send_batch(owner: socket.socket, messages: list[bytes]) -> None:
    """Send messages as one transaction; raise OSError with the first error that the kernel answers."""
    batch = [_message(_BATCH_BEGIN, b"", flags=_REQUEST), *messages, _message(_BATCH_END, b"", flags=_REQUEST)]
    numbered = [m[:8] + struct.pack("=I", number) + m[12:] for number, m in enumerate(batch)]
    owner.send(b"".join(numbered))
    waiting = set(range(1, len(messages) + 1))
    while waiting:
        answer = owner.recv(65536)
        while answer:
            length, kind, _, number, _ = struct.unpack_from("=IHHII", answer)
            if kind == _ERROR:
                status = -struct.unpack_from("=i", answer, 16)[0]
                if status != 0:
                    raise OSError(status, os.strerror(status))
                waiting.discard(number)
            answer = answer[(length + 3) & ~3 :]


def reason(error: OSError) -> str:
    """Say why a drop could not be set up."""
    if error.errno in (errno.EPERM, errno.EACCES):
        return "this user may not (CAP_NET_ADMIN)"
    if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.EPROTONOSUPPORT, errno.ENOENT):
        return "this kernel cannot (nf_tables with ingress hooks, Linux 5.12 or later)"
    return error.strerror or str(error)

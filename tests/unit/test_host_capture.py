"""Captures at hosts of the user's own, by a tcpdump of the test's: how it begins, how it ends, and what it prints."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gatemark.dut import host_capture
from gatemark.dut.host_capture import HostCapture, HostLinks, pcap_frames
from gatemark.dut.link_capture import READY_SECONDS_MAX
from gatemark.dut.shell import shell_at
from gatemark.errors import TestBedError

FRAMES = (bytes(range(60)), bytes(1514))
ENDING = """captured=$1; shift
trap 'printf "%s\\n" "$captured" "$@" >&2; exit 0' TERM
trap 'echo "tcpdump: $captured, ${{1-0 packets received by filter}}, ${{2-0 packets dropped by kernel}}" >&2' USR1
echo "tcpdump: listening on it, link-type EN10MB" >&2
cat {file}
while :; do sleep 0.02; done
"""

Fake = Callable[[str], Path]


def pcap(*frames: bytes, order: str = "<", magic: int = 0xA1B2C3D4, link_type: int = 1, more: int = 0) -> bytes:
    """A file of frames, each of which is stated to be longer by `more`."""
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)
    return head + b"".join(struct.pack(f"{order}IIII", 1, 2, len(f), len(f) + more) + f for f in frames)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a script of the test's in the place of tcpdump; `end` of its file is known to it."""

    def put(script: str) -> Path:
        program = tmp_path / "tcpdump"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(host_capture, "SETTLE_SECONDS_MAX", 0.2)
    return put


def captured(fake: Fake, tmp_path: Path, octets: bytes, *told: str) -> tuple[dict[str, tuple[bytes, ...]], int]:
    file = tmp_path / "frames.pcap"
    file.write_bytes(octets)
    lines = " ".join(f"'{line}'" for line in told)
    fake(f"set -- {lines}\n" + ENDING.format(file=file))
    links = HostLinks({"middle": (shell_at(None, ["sh", "-s"]), "eth1")})
    with links.captured() as capture:
        time.sleep(0.1)
    frames = capture.frames()
    return dict(frames.links), frames.lost


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        (("2 packets captured", "2 packets received by filter", "0 packets dropped by kernel"), 0),
        (("2 packets captured", "5 packets received by filter", "3 packets dropped by kernel"), 3),
        (("2 packets captured", "6 packets received by filter", "0 packets dropped by kernel"), 4),
        (("2 packets captured",), 0),
    ],
)
def test_what_was_captured_and_lost(fake: Fake, tmp_path: Path, told: tuple[str, ...], lost: int) -> None:
    assert captured(fake, tmp_path, pcap(*FRAMES), *told) == ({"middle": FRAMES}, lost)


def test_a_busy_host_is_waited_for(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes a frame at the fifth question only; by the first it has received it."""
    monkeypatch.setattr(host_capture, "SETTLE_SECONDS_MAX", 60.0)
    file, asked = tmp_path / "frames.pcap", tmp_path / "asked"
    file.write_bytes(pcap(*FRAMES))
    fake(f"""asked=0 captured=0
    answer() {{
        trap '' USR1  # no question in the middle of an answer
        asked=$((asked + 1)); echo $asked > {asked}
        if [ $asked -eq 5 ]; then captured=2; cat {file}; fi
        echo "tcpdump: $captured packets captured, 2 packets received by filter, 0 packets dropped by kernel" >&2
        trap answer USR1
    }}
    trap answer USR1
    trap 'printf "%s\n" "$captured packets captured" "2 packets received by filter" >&2; exit 0' TERM
    echo listening on it >&2
    while :; do sleep 0.02; done""")
    with HostLinks({"middle": (shell_at(None, ["sh", "-s"]), "eth1")}).captured() as capture:
        pass
    frames = capture.frames()
    assert (dict(frames.links), frames.lost) == ({"middle": FRAMES}, 0)
    assert int(asked.read_text()) >= 5


def test_more_than_a_pipe_holds(fake: Fake, tmp_path: Path) -> None:
    many = FRAMES * 400
    assert captured(fake, tmp_path, pcap(*many), "800 packets captured") == ({"middle": many}, 0)


@pytest.mark.parametrize(
    ("octets", "told", "words"),
    [
        (pcap(link_type=101), "0 packets captured", "the capture cannot be read: its link type is 101"),
        (pcap(*FRAMES)[:-1], "2 packets captured", "not whole"),
        (b"", "0 packets captured", "not a pcap file"),
        (pcap(*FRAMES), "killed by somebody", "the capture is not whole: .*killed by somebody"),
    ],
)
def test_a_capture_that_cannot_be_believed(fake: Fake, tmp_path: Path, octets: bytes, told: str, words: str) -> None:
    with pytest.raises(TestBedError, match=f"(?s){words}") as caught:
        captured(fake, tmp_path, octets, told)
    assert "tcpdump -i eth1" in caught.value.problems[0].fix


def test_too_much_is_not_kept(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_capture, "OCTETS_MAX", 1000)
    with pytest.raises(TestBedError, match="the link has other traffic"):
        captured(fake, tmp_path, pcap(*FRAMES), "2 packets captured")


def test_one_that_does_not_begin_is_told_at_once(fake: Fake) -> None:
    fake("echo 'tcpdump: eth1: No such device exists' >&2; exit 1")
    began = time.monotonic()
    links = HostLinks({"middle": (shell_at(None, ["sh", "-s"]), "eth1")})
    with pytest.raises(TestBedError, match=r"frames cannot be captured: .*No such device exists"), links.captured():
        pass
    assert time.monotonic() - began < READY_SECONDS_MAX / 2


def test_a_host_that_does_not_end_it_is_waited_for_no_longer(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(f"echo $$ > {tmp_path}/pid; trap '' TERM USR1; echo listening on it >&2; while :; do sleep 0.02; done")
    monkeypatch.setattr(host_capture, "END_SECONDS_MAX", 0.2)
    capture = HostCapture(shell_at(None, ["sh", "-s"]), "middle", "eth1")
    capture.await_ready()
    with pytest.raises(TestBedError, match="the capture did not end"):
        capture.end()
    capture.kill()
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
@pytest.mark.parametrize("order", ["<", ">"])
def test_files_of_every_byte_order_are_read(order: str, magic: int) -> None:
    assert pcap_frames(pcap(*FRAMES, order=order, magic=magic)) == FRAMES


@pytest.mark.parametrize("length", range(len(pcap(FRAMES[0])) - 1))
def test_a_file_without_its_end_is_refused(length: int) -> None:
    octets = pcap(FRAMES[0])[:length]
    if length == len(pcap()):
        assert pcap_frames(octets) == ()
        return
    with pytest.raises(ValueError, match=r"not a pcap file|its end is missing|not whole"):
        pcap_frames(octets)


def test_a_frame_that_was_cut_is_none_of_the_testers() -> None:
    assert pcap_frames(pcap(FRAMES[0], more=1)) == ()
    assert pcap_frames(pcap(FRAMES[0], more=1) + pcap(FRAMES[1])[len(pcap()) :]) == FRAMES[1:]


@pytest.mark.parametrize("length", [0, 59])
def test_a_frame_longer_than_it_was_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="not whole"):
        pcap_frames(pcap(FRAMES[0], more=length - len(FRAMES[0])))

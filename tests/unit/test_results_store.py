"""Result folders: nothing is overwritten, nothing is half written, one clear error when the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import dpkt
import pytest

from gatemark.bed_kinds import BED_KINDS, BedKindName
from gatemark.errors import ResultError
from gatemark.results.provenance import PortFact
from gatemark.results.store import ResultFolder, default_folder, writing
from gatemark.results.this_machine import medium_rate


def test_a_folder_that_holds_a_campaign_is_not_used_again(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "new")
    folder.write_text("campaign.toml", "name = 'x'\n")
    with pytest.raises(ResultError, match="already holds a campaign"):
        ResultFolder.create(tmp_path / "new")


def test_a_folder_without_campaign_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match=r"no campaign\.toml"):
        ResultFolder.open(tmp_path)


def test_two_runs_cannot_write_to_one_folder(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "new")
    with folder.locked(), pytest.raises(ResultError, match="another gatemark"), folder.locked():
        pass
    with folder.locked():
        pass


def test_a_full_disk_is_one_error_that_names_the_way_on(tmp_path: Path) -> None:
    with pytest.raises(ResultError) as caught, writing(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "disk is full" in str(caught.value)
    assert f"--resume {tmp_path}" in str(caught.value)
    assert caught.value.exit_status == 3


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ResultFolder.create(tmp_path / "new")
    folder.write_text("result.json", "old")
    before = sorted(folder.path.iterdir())

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(ResultError, match="Input/output error"):
        folder.write_text("result.json", "new")
    assert folder.read_text("result.json") == "old"
    assert sorted(folder.path.iterdir()) == before


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "new")
    (tmp_path / "mine").write_text("mine")
    (folder.path / "report.html").symlink_to(tmp_path / "mine")
    with pytest.raises(ResultError, match=r"report\.html is a link") as raised:
        folder.write_text("report.html", "theirs")
    assert "remove it" in raised.value.fix
    assert (tmp_path / "mine").read_text() == "mine"


def test_bad_frames_become_one_pcap_per_side_and_reason(tmp_path: Path) -> None:
    folder = ResultFolder.create(tmp_path / "new")
    written = folder.write_bad_frames(12, {("right", "hop_limit"): [b"\x02" * 60, b"\x03" * 60]})
    assert [path.name for path in written] == ["trial-000012-right-hop_limit.pcap"]
    with written[0].open("rb") as file:
        assert [bytes(octets) for _, octets in dpkt.pcap.Reader(file)] == [b"\x02" * 60, b"\x03" * 60]


def test_default_folders_never_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = default_folder("a b/c")
    first.mkdir(parents=True)
    second = default_folder("a b/c")
    assert second != first
    assert first.parent == Path("results")


def port(name: str, mbps: int = 10_000) -> PortFact:
    return PortFact(
        port=name, driver="x", mac="02:00:00:00:00:01", numa_node=-1, link_up=True, link_mbps=mbps, mtu=1500
    )


def test_a_line_rate_is_believed_of_network_cards_only(tmp_path: Path) -> None:
    (tmp_path / "eth0" / "device").mkdir(parents=True)
    (tmp_path / "veth0").mkdir()

    def rate(kind: BedKindName, left: str, right: str, stated: int | None = None) -> int | None:
        return medium_rate(bed=BED_KINDS[kind], stated=stated, left=port(left), right=port(right), interfaces=tmp_path)[
            0
        ]

    assert rate("ports", "pci:0000:01:00.0", "pci:0000:01:00.1") == 10**10
    assert rate("ports", "af_packet:eth0", "af_packet:eth0") == 10**10
    assert rate("ports", "af_packet:eth0", "af_packet:veth0") is None
    assert rate("netns", "af_packet:eth0", "af_packet:eth0") is None
    assert rate("loopback", "ring", "ring") is None
    assert rate("loopback", "pci:0000:01:00.0", "pci:0000:01:00.1") == 10**10, "two cards and a cable"
    assert rate("ports", "memif:/a", "memif:/b") is None
    assert rate("netns", "af_packet:veth0", "af_packet:veth0", stated=10**9) == 10**9

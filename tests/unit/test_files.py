"""Writing in a folder that may be a stranger's: nothing outside of it changes, whatever has the names of our files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gatemark.files import (
    NAMED_OCTETS_MAX,
    NotAFileError,
    open_lock,
    open_to_append,
    open_to_read,
    read_named,
    replace_files,
)

Put = Callable[[Path, Path], None]


def link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def hard_link(path: Path, victim: Path) -> None:
    path.hardlink_to(victim)


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def directory(path: Path, _: Path) -> None:
    path.mkdir()


def loose_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("missing"))


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text("mine")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def write(path: Path) -> None:
    replace_files(path.parent, {path.name: b"theirs"})


def append(path: Path) -> None:
    with open_to_append(path) as file:
        file.write(b"theirs")


def lock(path: Path) -> None:
    with open_lock(path) as file:
        file.truncate()


def read(path: Path) -> None:
    with open_to_read(path) as file:
        file.read()


ACTS = [write, append, lock, read]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("put", [link, loose_link, fifo, directory])
def test_what_is_no_file_is_neither_written_nor_waited_for(
    folder: Path, victim: Path, act: Callable[[Path], None], put: Put
) -> None:
    put(folder / "name", victim)
    with pytest.raises(OSError, match=r"name|Is a directory"):
        act(folder / "name")
    assert victim.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["name"], "nothing is left behind"
    assert not victim.with_name("missing").exists()


@pytest.mark.parametrize("act", [append, lock])
def test_a_second_name_of_a_file_elsewhere_is_not_written_through(
    folder: Path, victim: Path, act: Callable[[Path], None]
) -> None:
    hard_link(folder / "name", victim)
    with pytest.raises(NotAFileError):
        act(folder / "name")
    write(folder / "name")
    assert victim.read_text() == "mine"
    assert (folder / "name").read_text() == "theirs"


def test_a_folder_below_may_be_no_link(folder: Path, victim: Path) -> None:
    (folder / "below").symlink_to(victim.parent)
    with pytest.raises(OSError, match="Not a directory"):
        replace_files(folder, {"victim": b"theirs"}, below="below")
    assert victim.read_text() == "mine"


def test_files_are_replaced_together_or_not_at_all(folder: Path) -> None:
    replace_files(folder, {"a": b"1", "b": b"2"}, below="below")
    (folder / "below" / "c").mkdir()
    with pytest.raises(NotAFileError):
        replace_files(folder, {"a": b"3", "c": b"4"}, below="below")
    assert {path.name: path.read_bytes() for path in (folder / "below").glob("?") if path.is_file()} == {
        "a": b"1", "b": b"2"
    }  # fmt: skip
    assert sorted(path.name for path in (folder / "below").iterdir()) == ["a", "b", "c"]


def test_a_name_that_a_stranger_knows_is_never_used_for_what_is_not_whole_yet(
    folder: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (folder / ".name.known.new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write(folder / "name")
    assert victim.read_text() == "mine"


def test_nobody_else_may_write_to_a_lock(folder: Path) -> None:
    before = os.umask(0)
    try:
        with open_lock(folder / "lock"):
            assert (folder / "lock").stat().st_mode & 0o022 == 0
    finally:
        os.umask(before)


@pytest.mark.parametrize("put", [fifo, directory, lambda path, _: path.symlink_to("/dev/zero")])
def test_a_named_file_that_has_no_end_is_not_opened(put: Put, folder: Path, victim: Path) -> None:
    put(folder / "recipe.toml", victim)
    with pytest.raises(NotAFileError):
        read_named(folder / "recipe.toml")


def test_a_named_file_may_be_a_link_and_is_not_endless(folder: Path, victim: Path) -> None:
    link(folder / "recipe.toml", victim)
    assert read_named(folder / "recipe.toml") == b"mine"
    os.truncate(victim, NAMED_OCTETS_MAX + 1)
    with pytest.raises(OSError, match="more than 1,048,576 octets"):
        read_named(folder / "recipe.toml")

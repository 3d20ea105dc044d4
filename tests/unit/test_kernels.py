"""Kernels that run as a process: which there are, where their sources come from, and what is refused in words."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from gatemark.cli.main import main
from gatemark.errors import ConfigError, TestBedError
from gatemark.kernels import build, packages, store
from gatemark.kernels.packages import Entry, Offer, PackageSource, read_entries

SOURCES = """Types: deb deb-src
# a comment: between the fields
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/debian.gpg

Types: deb-src
URIs: http://mirror.test/debian
Suites: sid
Components: main

Types: deb
URIs: http://mirror.test/off
Suites: sid
Components: main
Enabled: no
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all kernels, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gatemark" / "kernels"


def put_kernel(cache: Path, series: str, *, configuration: str | None = None) -> Path:
    folder = cache / series
    folder.mkdir(parents=True)
    (folder / "linux").write_text("#!/bin/sh\n")
    (folder / "linux").chmod(0o755)
    facts = store.KernelFacts(
        version=series,
        release=f"{series}.1",
        source=f"linux-source-{series} {series}.1-1",
        jool="4.1.15-1",
        configuration=configuration or store.configuration_digest(),
    )
    store.write_facts(folder, facts)
    return folder


def silent(doing: str, done: int, steps: int) -> None:
    """Be told nothing."""


def test_entries_of_both_forms_are_read() -> None:
    (first,) = read_entries(SOURCES)
    assert first.uris == "http://mirror.test/debian"
    assert first.suites == ("bookworm", "bookworm-updates")
    assert (first.components, first.signed_by) == ("main contrib", "/keys/debian.gpg")
    text = "# deb http://no.test x main\ndeb [arch=amd64 signed-by=/k.gpg] http://m.test/debian trixie main non-free\n"
    assert read_entries(text) == [
        Entry(uris="http://m.test/debian", suites=("trixie",), components="main non-free", signed_by="/k.gpg")
    ]
    assert read_entries("deb http://m.test/debian sid main")[0].signed_by is None


def test_the_source_of_another_suite_differs_in_the_suite_alone() -> None:
    entry = read_entries(SOURCES)[0]
    (other,) = read_entries(entry.with_suites(["unstable"]))
    assert other == Entry(uris=entry.uris, suites=("unstable",), components=entry.components, signed_by=entry.signed_by)


def test_a_machine_without_sources_of_debian_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "OWN_ENTRIES", (str(tmp_path / "sources.list"), str(tmp_path / "parts")))
    with pytest.raises(TestBedError, match="no source of Debian's packages") as caught:
        packages.own_entry()
    assert "name a kernel of your own" in caught.value.fix


def test_kernels_are_listed_newest_first_and_half_made_ones_are_not(cache: Path) -> None:
    for series in ("7.3", "7.10", "6.12"):
        put_kernel(cache, series)
    (cache / "building-x" / "kernel").mkdir(parents=True)
    (put_kernel(cache, "8.0") / "linux").unlink()
    (put_kernel(cache, "8.1") / store.FACTS_FILE).write_text("{")
    assert [kernel.facts.version for kernel in store.kernels() if kernel.facts] == ["7.10", "7.3", "6.12"]


def test_a_kernel_of_another_configuration_is_listed_and_not_taken(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_kernel(cache, "7.4", configuration="other")
    assert store.newest_kernel() is None
    put_kernel(cache, "7.3")
    newest = store.newest_kernel()
    assert newest is not None and newest.program == cache / "7.3" / "linux"
    assert main(["kernel", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("7.4.1, ") and "gatemark kernel build 7.4" in first
    assert second.startswith("7.3.1, ") and "build" not in second
    assert main(["kernel", "list", "--json"]) == 0
    assert [row["current"] for row in json.loads(capsys.readouterr().out)["kernels"]] == [False, True]


def test_no_kernel_is_told_with_the_remedy(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "list"]) == 0
    assert capsys.readouterr().out == "no kernel was built; build one with `gatemark kernel build`\n"


def test_the_kernel_of_a_path_is_the_users_own_or_one_that_was_built(cache: Path, tmp_path: Path) -> None:
    built = put_kernel(cache, "7.3") / "linux"
    assert store.kernel_at(built).facts is not None
    users = tmp_path / "linux.uml"
    shutil.copy(built, users)
    assert store.kernel_at(users).facts is None
    assert "the user's own, sha256 " in store.kernel_at(users).words
    with pytest.raises(TestBedError, match="no User-Mode Linux kernel is there") as caught:
        store.kernel_at(tmp_path / "none")
    assert "gatemark kernel build" in caught.value.fix


def test_a_kernel_that_is_there_is_not_built_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = put_kernel(cache, "7.3") / "linux"
    left = cache / "building-killed"
    left.mkdir()
    monkeypatch.setenv("PATH", "")
    assert build.build_kernel("7.3", silent, jobs=1).program == program
    assert build.build_kernel(None, silent, jobs=1).program == program
    assert not left.exists()


@pytest.mark.parametrize("version", ["newest", "7", "7.3.4", "../7.3"])
def test_what_is_no_series_is_refused(cache: Path, version: str) -> None:
    with pytest.raises(ConfigError, match="is not a kernel series"):
        build.build_kernel(version, silent, jobs=1)


def test_missing_programs_are_all_named_with_their_packages(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TestBedError) as caught:
        build.build_kernel("7.3", silent, jobs=1)
    assert caught.value.fix == "as root: apt-get install gcc make flex bison bc perl tar xz-utils"


def test_a_full_disk_is_told_before_anything_is_fetched(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "PROGRAMS", {})
    monkeypatch.setattr(build, "FREE_BYTES_MIN", 1 << 60)
    with pytest.raises(TestBedError, match="GB are free") as caught:
        build.build_kernel("7.3", silent, jobs=1)
    assert "XDG_CACHE_HOME" in caught.value.fix


class OfferedPackages(PackageSource):
    """Packages that are offered and never fetched."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = offers

    def offers(self, pattern: str) -> list[Offer]:
        return list(self._offers)


def test_the_newest_sources_are_taken_and_others_are_named() -> None:
    offers = [Offer(f"linux-source-{name}", version) for name, version in (("7.9", "7.9.1"), ("7.10", "7.10.2"))]
    source = OfferedPackages([*offers, Offer("linux-source-7.10", "7.10.11")])
    assert build._chosen_source(source, None) == Offer("linux-source-7.10", "7.10.11")
    assert build._chosen_source(source, "7.9") == offers[0]
    with pytest.raises(TestBedError, match=r"no sources of Linux 6.1") as caught:
        build._chosen_source(source, "6.1")
    assert caught.value.fix == "it has 7.9, 7.10"


def test_two_at_once_wait_for_each_other(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    told = threading.Event()
    with (cache / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        waiting = threading.Thread(
            target=build.build_kernel, args=("7.3", lambda doing, *_: told.set()), kwargs={"jobs": 1}
        )
        waiting.start()
        assert told.wait(60)
        put_kernel(cache, "7.3")  # the other one has built it
    waiting.join(60)
    assert not waiting.is_alive()


def test_an_interrupted_build_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(folder: Path, suites: Sequence[str]) -> PackageSource:
        (folder / "lists").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "PROGRAMS", {})
    monkeypatch.setattr(build, "PackageSource", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.build_kernel(None, silent, jobs=1)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_a_command_that_fails_is_told_with_its_error_and_ends_with_all_it_started() -> None:
    ours = f"600.{os.getpid()}"  # others of these tests may run beside us
    script = f"sleep {ours} > /dev/null 2>&1 & echo fine; echo 'x.c:1: error: no'; exit 2"
    with pytest.raises(TestBedError, match=r"failed with status 2: x\.c:1: error: no"):
        build._run(["sh", "-c", script])
    steps = build._steps(["sh", "-c", f"echo one; exec sleep {ours}"])
    assert isinstance(steps, Generator)
    assert next(steps) == 1
    steps.close()
    until = time.monotonic() + 60
    while subprocess.run(["pgrep", "-fx", f"sleep {re.escape(ours)}"], check=False).returncode != 1:
        assert time.monotonic() < until, "what it started has not ended"
        time.sleep(0.02)


class UnpackedPackages(PackageSource):
    """Packages of Jool with a file of each kind."""

    def __init__(self) -> None:
        """Offer one version."""

    def offers(self, pattern: str) -> list[Offer]:
        return [Offer(pattern, "4.1.15-1")]

    def unpack(self, offer: Offer, into: Path) -> None:
        files = {
            "jool-dkms": ["usr/src/jool-4.1.15/src/mod/common/Makefile", "usr/src/jool-4.1.15/src/mod/common/x.ko"],
            "jool-tools": ["usr/bin/jool", "usr/lib/some-machine/xtables/libxt_JOOL.so"],
        }
        for name in files[offer.package]:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).touch()


def test_modules_tools_and_rules_of_jool_lie_beside_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(build, "_run", ran.append)
    kernel = store.Kernel(program=tmp_path / "built" / "linux")
    version = build._build_jool(UnpackedPackages(), tmp_path, tmp_path / "tree", kernel.program.parent, silent)
    assert version == "4.1.15-1"
    assert ran[0][0] == "make" and ran[0][-1] == "modules"
    there = [kernel.modules / "x.ko", kernel.tools / "jool", kernel.xtables / "libxt_JOOL.so"]
    assert all(path.is_file() for path in there)
    assert set(store.PARTS) == {"linux", *(path.parent.name for path in there)}


def test_the_driver_of_the_interfaces_makes_no_checksums(tmp_path: Path) -> None:
    ((name, text, other),) = store.SOURCE_CHANGES
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(f"a {text} | b;\nc {text};\n")
    build._change_sources(tmp_path)
    assert (tmp_path / name).read_text() == f"a {other} | b;\nc {other};\n"
    with pytest.raises(TestBedError, match="NETIF_F_HW_CSUM"):
        build._change_sources(tmp_path)


def configure(tree: Path, monkeypatch: pytest.MonkeyPatch, *, wanted: str, taken: str) -> None:
    """Configure sources that know CONFIG_TUN and CONFIG_NET; what make would write is `taken`."""
    (tree / "drivers").mkdir()
    (tree / "drivers" / "Kconfig").write_text(
        'menuconfig NET\n\tbool "n"\nif NET\n  config TUN\n\ttristate "t"\nendif\n'
    )
    (tree / "uml.config").write_text(wanted)
    monkeypatch.setattr(build, "_run", lambda command: (tree / ".config").write_text(taken))
    build._configure(tree, tree / "uml.config", "7.3")


def test_an_option_that_the_configuration_leaves_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        TestBedError, match=r"leaves out CONFIG_NET=y, CONFIG_TUN=y: an option that they depend"
    ) as caught:
        configure(
            tmp_path,
            monkeypatch,
            wanted="# network\nCONFIG_NET=y\nCONFIG_TUN=y\nCONFIG_OTHER=y\n",
            taken="# CONFIG_NET is not set\nCONFIG_TUN=m\nCONFIG_OTHER=y\n",
        )
    assert caught.value.where == "building Linux 7.3"


def test_an_option_that_a_version_does_not_know_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = "CONFIG_TUN=y\n"
    configure(tmp_path, monkeypatch, wanted=f"{taken}CONFIG_OF_OTHER_VERSIONS=y\n", taken=taken)

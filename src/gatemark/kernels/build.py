"""Builds a User-Mode Linux kernel from Debian's sources, with Jool for it. Needs no root; nothing is installed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gatemark.errors import ConfigError, TestBedError
from gatemark.files import open_lock
from gatemark.kernels.packages import Offer, PackageSource
from gatemark.kernels.start import check_start
from gatemark.kernels.store import (
    CONFIGURATION_FILES,
    SOURCE_CHANGES,
    Kernel,
    KernelFacts,
    configuration_digest,
    data_file,
    kernels_folder,
    newest_kernel,
    read_kernel,
    version_key,
    write_facts,
)

PROGRAMS = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
}
"""What a kernel is built with: program and its Debian package."""
FREE_BYTES_MIN = 3 * 10**9
"""Sources and what is made of them; a built kernel takes 30 MB."""
STEPS = 1500
"""Lines that make prints for a whole kernel, for the time that is left."""
BUILDING = "building-"
"""Begin of the name of a folder in which a kernel is being built."""
JOOL_BASE = "common"
"""Folder of the module that the others need."""
LINUX_SOURCE = r"linux-source-(\d+\.\d+)"

Tell = Callable[[str, int, int], None]
"""Is told what is being done, and how many steps of how many are done; 0 of 0 where it has none."""


def build_kernel(version: str | None, tell: Tell, *, jobs: int, suites: Sequence[str] = ()) -> Kernel:
    """Return the kernel of a series, such as `7.3`, or the newest that there is; build it if there is none.

    Its sources are looked for in `suites` of Debian too.

    Another process that builds one is waited for. An interrupted build leaves nothing that is taken for a kernel.
    """
    if version is not None and not re.fullmatch(r"\d+\.\d+", version):
        raise ConfigError(what=f"{version!r} is not a kernel series", where="VERSION", fix="for example 7.3")
    folder = kernels_folder()
    with _writing(folder), _locked(folder, tell):
        for rest in folder.glob(f"{BUILDING}*"):
            shutil.rmtree(rest, ignore_errors=True)
        kernel = newest_kernel() if version is None else read_kernel(folder / version)
        if kernel is not None and kernel.is_current:
            return kernel
        _require(folder)
        with tempfile.TemporaryDirectory(prefix=BUILDING, dir=folder, ignore_cleanup_errors=True) as place:
            tell("reading which sources Debian has", 0, 0)
            packages = PackageSource(Path(place) / "apt", suites)
            return _build(_chosen_source(packages, version), packages, Path(place), tell, jobs)


def _build(source: Offer, packages: PackageSource, place: Path, tell: Tell, jobs: int) -> Kernel:
    folder, series = kernels_folder(), source.package.rpartition("-")[2]
    tell(f"fetching {source}", 0, 0)
    packages.unpack(source, place / "source")
    (archive,) = (place / "source/usr/src").glob("linux-source-*.tar.xz")
    tell("unpacking the sources", 0, 0)
    tree = place / "tree"
    tree.mkdir()
    _run(["tar", "--extract", "--file", str(archive), "--directory", str(tree), "--strip-components=1"])
    _change_sources(tree)
    for name in CONFIGURATION_FILES:
        (place / name).write_text(data_file(name), encoding="utf-8")
    _configure(tree, place / CONFIGURATION_FILES[0], series)
    built = place / "kernel"
    built.mkdir()
    for done in _steps(_make(tree, f"-j{jobs}", "linux", "modules")):
        tell(f"building Linux {series}", done, max(STEPS, done))
    shutil.copy(tree / "linux", built / "linux")
    release = (tree / "include/config/kernel.release").read_text(encoding="ascii").strip()
    jool = _build_jool(packages, place, tree, built, tell)
    tell("starting it", 0, 0)
    check_start(built / "linux", release)
    facts = KernelFacts(
        version=series, release=release, source=str(source), jool=jool, configuration=configuration_digest()
    )
    write_facts(built, facts)
    if (folder / series).exists():
        (folder / series).rename(place / "before")
    built.rename(folder / series)
    kernel = read_kernel(folder / series)
    assert kernel is not None
    return kernel


def _change_sources(tree: Path) -> None:
    """Make the changes of `SOURCE_CHANGES`; raise TestBedError if the sources have nothing to change there."""
    for name, text, other in SOURCE_CHANGES:
        path = tree / name
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text not in before:
            raise TestBedError(
                what=f"{name} has no {text!r}, which has to be {other!r}",
                where="building a kernel",
                fix="try another version: gatemark kernel build VERSION",
            )
        path.write_text(before.replace(text, other), encoding="utf-8")


def _configure(tree: Path, wanted: Path, series: str) -> None:
    """Configure a kernel; raise TestBedError if it leaves out an option that it knows, for want of another one."""
    _run(_make(tree, "allnoconfig", f"KCONFIG_ALLCONFIG={wanted}"))
    taken = set((tree / ".config").read_text(encoding="utf-8").splitlines())
    options = [line for line in wanted.read_text(encoding="utf-8").splitlines() if line.startswith("CONFIG_")]
    left_out = {line.partition("=")[0].removeprefix("CONFIG_"): line for line in options if line not in taken}
    known = _known_options(tree) if left_out else set()
    if missing := [line for name, line in left_out.items() if name in known]:
        raise TestBedError(
            what=f"its configuration leaves out {', '.join(missing)}: an option that they depend on is not set",
            where=f"building Linux {series}",
            fix="try another version: gatemark kernel build VERSION",
        )


def _known_options(tree: Path) -> set[str]:
    """Return the names of all options that the sources of a kernel have."""
    files = (path.read_text(encoding="utf-8", errors="replace") for path in tree.rglob("Kconfig*") if path.is_file())
    return {name for text in files for name in re.findall(r"^\s*(?:menu)?config\s+(\w+)", text, re.MULTILINE)}


def _build_jool(packages: PackageSource, place: Path, tree: Path, built: Path, tell: Tell) -> str | None:
    """Build Jool's modules and fetch its tools; return the version, None if there is none that fits the kernel."""
    offers = [{offer.version: offer for offer in packages.offers(name)} for name in ("jool-dkms", "jool-tools")]
    both = sorted(set(offers[0]) & set(offers[1]), key=version_key)
    if not both:
        return None
    version = both[-1]
    tell(f"building Jool {version}", 0, 0)
    for modules_or_tools, name in zip(offers, ("jool", "tools"), strict=True):
        packages.unpack(modules_or_tools[version], place / name)
    (sources,) = (place / "jool/usr/src").glob("jool-*")
    symbols: list[str] = []
    try:
        folders = [path.parent for path in (sources / "src/mod").glob("*/Makefile")]
        for folder in sorted(folders, key=lambda folder: (folder.name != JOOL_BASE, folder.name)):
            extra = [f"KBUILD_EXTRA_SYMBOLS={' '.join(symbols)}", f"KCFLAGS=-include {place / 'jool-compat.h'}"]
            _run(_make(tree, f"M={folder}", *extra, "modules"))
            symbols.append(str(folder / "Module.symvers"))
    except TestBedError as error:
        tell(f"Jool {version} does not fit this kernel, so it is left out: {error.what}", 0, 0)
        return None
    shutil.copytree(place / "tools/usr/bin", built / "bin")
    (built / "xtables").mkdir()
    for library in place.glob("tools/usr/lib/*/xtables/*.so"):
        shutil.copy(library, built / "xtables")
    (built / "modules").mkdir()
    for module in sources.rglob("*.ko"):
        shutil.copy(module, built / "modules")
    return version


def _chosen_source(packages: PackageSource, version: str | None) -> Offer:
    offers = packages.offers(LINUX_SOURCE)
    wanted = [offer for offer in offers if version in (None, offer.package.rpartition("-")[2])]
    if not wanted:
        series = sorted({offer.package.rpartition("-")[2] for offer in offers}, key=version_key)
        raise TestBedError(
            what=f"Debian has no sources of Linux {version or ''}".rstrip(),
            where="package sources of this machine",
            fix=f"it has {', '.join(series)}" if series else "see `apt-cache search linux-source`",
        )
    return max(wanted, key=lambda offer: (version_key(offer.package), version_key(offer.version)))


def _require(folder: Path) -> None:
    """Raise TestBedError if a program or room is missing."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        raise TestBedError(
            what=f"programs are missing: {', '.join(missing)}",
            where="building a kernel",
            fix=f"as root: apt-get install {' '.join(missing)}",
        )
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_MIN:
        raise TestBedError(
            what=f"{free / 1e9:.1f} GB are free, {FREE_BYTES_MIN / 1e9:.0f} GB are needed while it is built",
            where=str(folder),
            fix="make room there, or set XDG_CACHE_HOME to another folder",
        )


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TestBedError(
            what=f"cannot be written ({error.strerror or error})",
            where=str(folder),
            fix="make room there, or set XDG_CACHE_HOME to another folder",
        ) from error


@contextlib.contextmanager
def _locked(folder: Path, tell: Tell) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with open_lock(folder / "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            tell("another gatemark builds a kernel: waiting for it", 0, 0)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(tree: Path, *words: str) -> list[str]:
    return ["make", "-C", str(tree), "ARCH=um", *words]


def _run(command: Sequence[str]) -> None:
    for _ in _steps(command):
        pass


def _steps(command: Sequence[str]) -> Iterator[int]:
    """Run a command and yield how many lines it has printed; raise TestBedError with the last ones if it fails."""
    lines: list[str] = []
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "ARCH", "M")}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env=environment | {"LC_ALL": "C"},
    )
    assert process.stdout is not None
    try:
        for number, line in enumerate(process.stdout, 1):
            lines = [*lines[-30:], line]
            yield number
        status = process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    if status != 0:
        told = [line for line in lines if "rror" in line] or lines
        raise TestBedError(
            what=f"`{' '.join(command[:1])}` failed with status {status}: {''.join(told)[-600:].strip()}",
            where="building a kernel",
            fix="try another version: gatemark kernel build VERSION",
        )

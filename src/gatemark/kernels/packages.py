"""Debian packages of other suites, fetched without a change to this machine.

A source of packages is made from the machine's own entry with the suite's name replaced, in lists of its own. Only
files are fetched from it; nothing is installed, and apt on this machine does not learn of it. It needs no root.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemark.errors import TestBedError

SUITES = ("stable-backports", "testing", "unstable")
"""Suites that are looked into besides the machine's own."""
OWN_ENTRIES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
WHERE = "Debian packages"
NO_DEBIAN = "it must be a Debian with its package sources in /etc/apt; elsewhere name a kernel of your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One source of packages, as apt has it."""

    uris: str
    suites: tuple[str, ...]
    components: str
    signed_by: str | None

    def with_suites(self, suites: Sequence[str]) -> str:
        """Return the entry as a file of apt, for other suites."""
        lines = ["Types: deb", f"URIs: {self.uris}", f"Suites: {' '.join(suites)}", f"Components: {self.components}"]
        return "\n".join([*lines, *([f"Signed-By: {self.signed_by}"] if self.signed_by else [])]) + "\n"


@dataclass(frozen=True, slots=True, order=True)
class Offer:
    """A package that can be fetched."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


def read_entries(text: str) -> list[Entry]:
    """Read the entries of binary packages of a file of apt, in either of its two forms."""
    entries = []
    for line in re.findall(r"^deb\s+(.+)$", text, flags=re.MULTILINE):
        options, rest = re.fullmatch(r"(?:\[([^]]*)\]\s+)?(.+)", line.strip()).groups()  # type: ignore[union-attr]
        uri, suite, *components = rest.split()
        signed = re.search(r"signed-by=(\S+)", options or "")
        entries.append(
            Entry(uris=uri, suites=(suite,), components=" ".join(components), signed_by=signed and signed[1])
        )
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        fields = dict(line.split(":", 1) for line in lines if re.match(r"[A-Za-z-]+:", line))
        values = {name.lower(): value.strip() for name, value in fields.items()}
        if "deb" in values.get("types", "").split() and values.get("enabled", "yes") != "no":
            suites, signed_by = tuple(values.get("suites", "").split()), values.get("signed-by")
            components = values.get("components", "")
            entries.append(
                Entry(uris=values.get("uris", ""), suites=suites, components=components, signed_by=signed_by)
            )
    return entries


def own_entry() -> Entry:
    """Return this machine's entry of its own Debian; raise TestBedError if it has none."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', _text("/etc/os-release"), flags=re.MULTILINE))
    suites = {release.get("VERSION_CODENAME", ""), "stable", "testing", "unstable", "sid"} - {""}
    entries = [entry for text in _own_texts() for entry in read_entries(text)]
    fits = (entry for entry in entries if suites & set(entry.suites) and "main" in entry.components.split())
    entry = next(fits, None)
    if release.get("ID") != "debian" or entry is None:
        raise TestBedError(what="this machine has no source of Debian's packages", where=WHERE, fix=NO_DEBIAN)
    return entry


class PackageSource:
    """Packages of the machine's own suites and of `SUITES`, with lists in a folder of its own."""

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        """Read what there is, in the suites `more` as well; raise TestBedError if that fails."""
        for program in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(program) is None:
                raise TestBedError(what=f"program `{program}` is not installed", where=WHERE, fix=NO_DEBIAN)
        entry = own_entry()
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "packages.sources").write_text(
            entry.with_suites(list(dict.fromkeys((*entry.suites, *SUITES, *more)))), encoding="utf-8"
        )
        settings = {
            "Dir::Etc::SourceList": folder / "packages.sources",
            "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled": "false",
            "Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled": "false",
            "APT::Update::Post-Invoke::": "true",
        }
        self._options = [f"--option={name}={value}" for name, value in settings.items()]
        self._run("apt-get", "update", "--quiet", fix="see whether this machine reaches its package sources")

    def offers(self, pattern: str) -> list[Offer]:
        """Return all versions of the packages whose names match a regular expression."""
        names = self._run("apt-cache", "pkgnames").split()
        chosen = sorted(name for name in names if re.fullmatch(pattern, name))
        if not chosen:
            return []
        listed = self._run("apt-cache", "madison", *chosen)
        rows = (line.split("|") for line in listed.splitlines() if line.count("|") == 2)
        return sorted({Offer(name.strip(), version.strip()) for name, version, _ in rows})

    def unpack(self, offer: Offer, into: Path) -> None:
        """Fetch a package and unpack its files below `into`."""
        into.mkdir(parents=True, exist_ok=True)
        fetched = into / ".fetched"
        fetched.mkdir()
        self._run("apt-get", "download", "--quiet", f"{offer.package}={offer.version}", folder=fetched)
        (archive,) = fetched.glob("*.deb")
        self._run("dpkg-deb", "--extract", str(archive), str(into))
        shutil.rmtree(fetched)

    def _run(self, program: str, *words: str, folder: Path | None = None, fix: str = "") -> str:
        options = self._options if program.startswith("apt") else []
        done = subprocess.run(
            [program, *options, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or re.search(r"^(E|Err:|W: Failed)", done.stderr, flags=re.MULTILINE):
            said = (done.stderr.strip() or done.stdout.strip() or "no output")[-600:]
            hint = fix or "see whether the disk is full and this machine reaches its package sources"
            raise TestBedError(what=f"`{program} {words[0]}` failed: {said}", where=WHERE, fix=hint)
        return done.stdout


def _own_texts() -> list[str]:
    single, folder = (Path(name) for name in OWN_ENTRIES)
    files = [single, *sorted((*folder.glob("*.sources"), *folder.glob("*.list")))]
    return [_text(path) for path in files if path.is_file()]


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

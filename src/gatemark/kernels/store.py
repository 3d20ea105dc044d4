"""Where built kernels lie, and which there are.

::

    ~/.cache/gatemark/kernels/            $XDG_CACHE_HOME, if it is set
      lock                                locked while one is built
      7.3/linux                           the kernel: an ordinary program
      7.3/modules/*.ko                    modules of others, for this kernel
      7.3/bin/*                           their tools
      7.3/xtables/*.so                    what iptables needs for their rules
      7.3/kernel.json                     versions and where they came from; written last
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from gatemark.errors import TestBedError

BUILD_COMMAND = "gatemark kernel build"
FACTS_FILE = "kernel.json"
CONFIGURATION_FILES = ("uml.config", "jool-compat.h")
"""What a kernel is made with besides its sources."""
SOURCE_CHANGES = (("arch/um/drivers/vector_transports.c", "NETIF_F_RXCSUM | NETIF_F_HW_CSUM", "NETIF_F_RXCSUM"),)
"""What is changed in its sources: file, text, and what stands in its place.

The driver of the interfaces says that it makes checksums, cannot be told otherwise, and leaves them to who reads the
tap. One that the gateway's kernel leaves to it would reach the Tester unmade, and look like the gateway's fault.
"""
PARTS = ("linux", "modules", "bin", "xtables")
"""What lies beside each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """What is known of a kernel that was built here, as `kernel.json` has it."""

    version: str
    """Its series, as the package of its sources is named: `7.3`."""
    release: str
    """What `uname -r` prints: `7.3.4`."""
    source: str
    """Package of its sources, with version."""
    jool: str | None
    """Version of Jool's modules and tools; None if they do not fit this kernel."""
    configuration: str
    """Digest of what this gatemark configures kernels with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel that can be started."""

    program: Path
    facts: KernelFacts | None = None
    """None for one of the user's own."""

    @property
    def modules(self) -> Path:
        """Folder of modules of others that were built for it."""
        return self.program.parent / "modules"

    @property
    def tools(self) -> Path:
        """Folder of their tools."""
        return self.program.parent / "bin"

    @property
    def xtables(self) -> Path:
        """Folder of what iptables needs for rules of those modules."""
        return self.program.parent / "xtables"

    @property
    def is_current(self) -> bool:
        """Whether this gatemark would build it in the same way."""
        return self.facts is not None and self.facts.configuration == configuration_digest()

    @property
    def words(self) -> str:
        """What it is, for reports; without its place, which differs from machine to machine."""
        with self.program.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        origin = "the user's own" if self.facts is None else f"{self.facts.release}, made of {self.facts.source}"
        return f"User-Mode Linux, {origin}, sha256 {digest}"


def kernels_folder() -> Path:
    """Return the folder of all kernels of this user; it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gatemark" / "kernels"


def kernels() -> list[Kernel]:
    """Return all kernels that were built, the newest first."""
    listed = (read_kernel(path.parent) for path in kernels_folder().glob(f"*/{FACTS_FILE}"))
    known = [(version_key(kernel.facts.version), kernel) for kernel in listed if kernel and kernel.facts]
    return [kernel for _, kernel in sorted(known, key=lambda pair: pair[0], reverse=True)]


def read_kernel(folder: Path) -> Kernel | None:
    """Return the kernel of a folder; None if there is no whole one."""
    try:
        facts = KernelFacts(**json.loads((folder / FACTS_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    program = folder / "linux"
    return Kernel(program=program, facts=facts) if os.access(program, os.X_OK) else None


def write_facts(folder: Path, facts: KernelFacts) -> None:
    """Write down what a kernel is."""
    (folder / FACTS_FILE).write_text(json.dumps(asdict(facts), indent=2) + "\n", encoding="utf-8")


def newest_kernel() -> Kernel | None:
    """Return the newest kernel that this gatemark would build in the same way; None if there is none."""
    return next((kernel for kernel in kernels() if kernel.is_current), None)


def kernel_at(path: Path) -> Kernel:
    """Return the kernel of a path, one that was built or the user's own; raise TestBedError if there is none."""
    if not path.is_file() or not os.access(path, os.X_OK):
        raise TestBedError(
            what="no User-Mode Linux kernel is there: it must be an executable file",
            where=f"testbed.kernel {path}",
            fix=f'build one with `{BUILD_COMMAND}` and write kernel = "uml", or name the executable',
        )
    built = read_kernel(path.parent)
    return built if built is not None and built.program == path else Kernel(program=path)


def configuration_digest() -> str:
    """Return the digest of what this gatemark configures kernels with and of which parts it makes them."""
    digest = hashlib.sha256(repr((PARTS, SOURCE_CHANGES)).encode())
    for name in CONFIGURATION_FILES:
        digest.update(data_file(name).encode())
    return digest.hexdigest()[:16]


def data_file(name: str) -> str:
    """Return the text of a file of this package."""
    return (resources.files("gatemark.kernels") / name).read_text(encoding="utf-8")


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are sorted by: `7.10` is newer than `7.3`."""
    return tuple(int(part) for part in re.findall(r"\d+", version))

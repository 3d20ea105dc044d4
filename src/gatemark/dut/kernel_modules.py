"""Which kernel modules a recipe needs that this machine's kernel has not."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gatemark.dut.commands import try_command

MODULES = Path("/sys/module")
OPTION_PREFIX = "CONFIG_"
"""Begin of the name of an option of the kernel; anything else is the Debian package that has the module."""


def missing_modules(modules: Mapping[str, str]) -> list[str]:
    """Return which modules this kernel neither has nor can load.

    `modules`: by name, the option of the kernel that builds it, or its Debian package. Where a kernel does not tell its
    options, one that is built from the kernel's sources is taken to be there: what needs it says so if it is not.
    """
    return [name for name, origin in modules.items() if not _is_there(name, origin)]


def load_modules(modules: Mapping[str, str]) -> None:
    """Load the modules that do not come with the kernel: nothing else asks for them."""
    for name, origin in modules.items():
        if not comes_with_the_kernel(origin) and not _is_loaded(name):
            try_command(["modprobe", name])


def comes_with_the_kernel(origin: str) -> bool:
    """Whether a module is built from the kernel's own sources, by its origin in a recipe."""
    return origin.startswith(OPTION_PREFIX)


def _is_there(name: str, origin: str) -> bool:
    if _is_loaded(name) or try_command(["modprobe", "--dry-run", "--quiet", name]) is not None:
        return True
    if not comes_with_the_kernel(origin):
        return False
    options = kernel_options()
    return options is None or f"{origin}=y" in options


def _is_loaded(name: str) -> bool:
    return (MODULES / name.replace("-", "_")).exists()


@cache
def kernel_options() -> frozenset[str] | None:
    """Return the options of the running kernel, such as `CONFIG_TUN=y`; None if it does not tell."""
    for path in (Path("/proc/config.gz"), Path(f"/boot/config-{os.uname().release}")):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
        return frozenset(re.findall(r"^CONFIG_\w+=[ym]$", text, flags=re.MULTILINE))
    return None

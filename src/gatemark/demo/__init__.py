"""The bundled campaigns of `gatemark demo`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path

DEMOS = ("tayga-nat64", "nft-nat44", "linux-router4", "linux-router6", "tayga-siit64", "tayga-mapt-br")
"""Names of the demonstrations, in the order in which they run."""
IPV4AAS = "ipv4aas"
"""The one that runs only if it is named: a series, in a kernel that must have been built."""


def demo_file(name: str) -> AbstractContextManager[Path]:
    """A bundled campaign file as a path, valid inside the `with` block."""
    return resources.as_file(resources.files("gatemark.demo").joinpath(f"{name}.toml"))

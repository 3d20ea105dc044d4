"""The bundled campaign files of `gatemark demo`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Literal, get_args

DemoName = Literal[
    "tayga-nat64", "nft-nat44", "linux-router4", "linux-router6", "tayga-siit64", "tayga-mapt-br", "ipv4aas"
]
DEMOS: tuple[DemoName, ...] = get_args(DemoName)[:-1]
"""Those that run if none is named, in this order. The last one is a series, in a kernel that must have been built."""


def demo_file(name: DemoName) -> Path:
    """Return the campaign file of a demonstration."""
    return Path(str(resources.files("gatemark.demo") / f"{name}.toml"))

"""A reference gateway that takes another configuration while it runs."""

from __future__ import annotations

from gatemark.refdut.document import Configuration
from gatemark.refdut.process import RefDut


def reload(gateway: RefDut, configuration: Configuration) -> None:
    """Raise TestBedError, with the old one kept, if it is refused."""
    gateway.file.write_text(configuration.to_toml(), encoding="utf-8")
    gateway.ask("reload")

"""Consoles and streams on which nothing but gatemark itself controls the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gatemark.harmless import visible

WIDTH_MAX = 100
"""Tables are no wider, so that they can be pasted."""


class SafeConsole(Console):
    """Shows control characters in a text; those of styles and of the live display are its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield what is written, made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def stdout_console() -> SafeConsole:
    """A console on standard output, as wide as every table of gatemark may be."""
    console = SafeConsole()
    return SafeConsole(highlight=False, width=min(WIDTH_MAX, console.width) if console.is_terminal else WIDTH_MAX)


def stderr_console() -> SafeConsole:
    """A console on standard error, for progress."""
    return SafeConsole(stderr=True, highlight=False, markup=False)


class _VisibleStream:
    """A text stream that shows control characters."""

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream
        """Where consoles write, which show control characters themselves."""

    def write(self, text: str) -> int:
        """Write a text, made visible."""
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Show control characters in all that is printed; write what the encoding lacks as an escape."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (_VisibleStream(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before

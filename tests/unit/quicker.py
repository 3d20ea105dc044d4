"""What tests need not do over and over: wait for the disk, render the plots of a page.

The conftest.py of each folder that has such tests takes all of it from here.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import matplotlib
import pytest
from markupsafe import escape
from matplotlib.text import Text

from gatemark.report.plot_style import Drawing


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Nothing here takes the power away. `test_disk_faults.py` lets fsync() fail, in processes of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def _element(drawing: Drawing) -> str:
    """It holds the words of the whole one."""
    with matplotlib.rc_context(drawing._settings):
        texts = [text.get_text() for text in drawing._axes().findobj(Text)]
    words = "".join(f"<text>{escape(text)}</text>" for text in texts if text)
    return f'<svg role="img" aria-label="{drawing.name}">{words}</svg>'


@pytest.fixture(scope="module")
def plots_not_rendered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plots of pages are drawn, but make no lines and letters of it, which takes most of the time of a page.

    For modules that look at what a page says. `make endure` renders all of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--endure"):
            svg = functools.cached_property(_element)
            svg.__set_name__(Drawing, "svg")
            patch.setattr(Drawing, "svg", svg)
        yield

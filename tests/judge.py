"""`scripts/judge`, which shares no code with gatemark, as a module."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

_PATH = Path(__file__).parents[1] / "scripts" / "judge"


def _module() -> Any:
    loader = SourceFileLoader("judge", str(_PATH))
    spec = importlib.util.spec_from_loader("judge", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_JUDGE = _module()


def judged(folders: Iterable[Path]) -> list[str]:
    """Return what in result folders does not follow from their journals; each has a result."""
    return [f"{folder.name}: {words}" for folder in folders for words in _JUDGE.judged(folder)]

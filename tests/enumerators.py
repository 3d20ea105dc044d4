"""Names that the engine has from the enumerators of its sources."""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "engine" / "src"


def enumerators(file: str, name: str) -> list[str]:
    """Return the enumerators of an enumeration: what messages call them."""
    text = re.sub(r"//.*", "", (ENGINE / file).read_text(encoding="utf-8"))
    body = re.search(rf"enum class {name} : [^{{]*{{(.*?)}};", text, re.DOTALL)
    assert body is not None, name
    return re.findall(r"\w+", body[1])

"""Names that the engine has from the enumerators of its sources, and the words beside them."""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "engine" / "src"

ENUMERATOR = re.compile(r"(?m)((?:^ *///[^<].*\n)*)^ *(\w+)(?:,|$)(?: *///< (.*))?")


def enumerators(file: str, name: str) -> list[str]:
    """Return the enumerators of an enumeration: what messages call them."""
    return re.findall(r"\w+", re.sub(r"//.*", "", _body(file, name)))


def described(file: str, name: str) -> dict[str, str]:
    """Return the enumerators of an enumeration, each with the comment above or behind it."""
    words = {
        match[2]: match[3] or " ".join(re.sub(r"(?m)^ *///", "", match[1]).split())
        for match in ENUMERATOR.finditer(_body(file, name))
    }
    bare = [enumerator for enumerator in enumerators(file, name) if not words.get(enumerator)]
    assert not bare, f"{name} in {file}: no words beside {', '.join(bare)}"
    return words


def _body(file: str, name: str) -> str:
    text = (ENGINE / file).read_text(encoding="utf-8")
    body = re.search(rf"enum class {name} : [^{{]*{{(.*?)}};", text, re.DOTALL)
    assert body is not None, name
    return body[1]

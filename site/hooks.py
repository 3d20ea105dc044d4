"""Makes the navigation of the site from the table of docs/README.md, so that a page is listed in one place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

TABS = {"learn": "Learn", "do": "Do", "look up": "Look up", "understand": "Understand"}
ENGINEERS = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "engine/README.md",
    "protocol/README.md",
    "protocol/messages.md",
    "bench/README.md",
)


def on_config(config: Any) -> Any:
    """Set the navigation."""
    pages = Path(config["docs_dir"])
    config["nav"] = [
        {"Home": "README.md"},
        *navigation((pages / "docs" / "README.md").read_text(encoding="utf-8")),
        {"Gallery": ["gallery/README.md"]},
        {"Examples": ["examples/README.md", "examples/papers/README.md"]},
        {"Contribute": list(ENGINEERS)},
    ]
    return config


def navigation(index: str) -> list[dict[str, list[Any]]]:
    """Return the tabs of the site: the rows of the index, each link to a page of docs/ below the word of its row."""
    tabs: dict[str, list[Any]] = {}
    word = ""
    for row in index.splitlines():
        if not row.startswith("|"):
            continue
        first = row.split("|")[1].strip().strip("*")
        word = first if first in TABS else word
        if word:
            links = re.findall(r"\[([^]]+)\]\(((?!\.\.)[^)#]+\.md)\)", row)
            tabs.setdefault(TABS[word], []).extend({title.replace("`", ""): f"docs/{path}"} for title, path in links)
    tabs["Learn"].insert(0, {"All documentation": "docs/README.md"})
    tabs["Look up"].append({"Library": "docs/reference/library.md"})
    return [{tab: pages} for tab, pages in tabs.items()]

#!/usr/bin/env python3
"""The version, by the latest tag: of the wheel, of the installed package and of the engine. Prints it.

Commit of the tag v1.2.0: 1.2.0; five commits later: 1.2.0.post5+g1a2b3c4. Without a tag or without git:
BEFORE_ANY_TAG. In a source distribution: the version that it was made with.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEFORE_ANY_TAG = "0.1.0"
TAG = re.compile(r"v(?P<release>\d+(\.\d+)*((a|b|rc)\d+)?)-(?P<commits>\d+)-(?P<commit>g[0-9a-f]+)")


def version_of(root: Path) -> str:
    """Return the version of a checkout, or of an unpacked source distribution."""
    facts = root / "PKG-INFO"
    if facts.is_file():
        lines = facts.read_text(encoding="utf-8").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("Version: "))
    command = ("git", "-C", str(root), "describe", "--tags", "--long", "--abbrev=7", "--match", "v[0-9]*")
    if not (root / ".git").exists():
        return BEFORE_ANY_TAG
    try:
        described = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return BEFORE_ANY_TAG
    match = TAG.fullmatch(described)
    if match is None:
        sys.exit(f"{described.rsplit('-', 2)[0]} is the tag of no version: v1.2.0 and v1.2.0rc1 are")
    return (
        match["release"] if match["commits"] == "0" else f"{match['release']}.post{match['commits']}+{match['commit']}"
    )


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Give the build backend the version (`[[tool.dynamic-metadata]]` in pyproject.toml)."""
    del settings, project
    return {"version": version_of(Path(__file__).resolve().parents[1])}


if __name__ == "__main__":
    print(version_of(Path(__file__).resolve().parents[1]))

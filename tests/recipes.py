"""Built-in recipes as text, and others made of them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def recipe_text(name: str) -> str:
    """Return the file of a built-in recipe."""
    return (resources.files("gatemark.dut") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")


def changed_recipe(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """Write a built-in recipe with some of its text replaced; return the new file."""
    text = recipe_text(name)
    for old, new in changes:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    path = folder / f"{name}-changed.toml"
    path.write_text(text, encoding="utf-8")
    return path

"""Recipes that are made of built-in ones."""

from __future__ import annotations

from pathlib import Path

from gatemark.dut.recipe import recipe_text


def changed_recipe(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """Write a built-in recipe with some of its text replaced; return the new file."""
    text = recipe_text(name)
    for old, new in changes:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    path = folder / f"{name}-changed.toml"
    path.write_text(text, encoding="utf-8")
    return path

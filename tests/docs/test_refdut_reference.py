"""The page of the reference gateway names every key and command that its C++ sources have."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from tests.enumerators import described
from tests.references import refdut

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "engine" / "src" / "refdut"
PAGE = (ROOT / "docs" / "reference" / "refdut.md").read_text(encoding="utf-8")
NAMED = {
    name for pattern in (r"`\"?([^`\s\"]+)\"?`", r"\b(\w+) = ", r"\[(\w+)\]") for name in re.findall(pattern, PAGE)
}


def source(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


def names_in(text: str, array: str) -> set[str]:
    """Words of a constexpr array of names."""
    listed = re.search(rf"{array}\{{(.*?)\}}", text, re.DOTALL)
    assert listed is not None, array
    return set(re.findall(r'"(\w+)"', listed.group(1)))


def test_the_tables_of_keys_have_those_that_the_gateway_reads() -> None:
    text = source("config.cpp")
    getters = "text|integer|boolean|choice|duration|probability|address|mac|prefix|table|tables|array"
    keys = set(re.findall(rf'\b(?:{getters})\("(\w+)"', text))
    keys |= set(re.findall(r'read_selectors\(reader, "(\w+)"', text))
    stated = {key for table in refdut.TABLES.values() for field in fields(table) for key in refdut.keys_of(field)}
    assert stated - keys == {"left", "right", "forward", "reverse"}, "read by variables"
    assert keys - stated == {"kind", "value", "minimum", "maximum", "values", "by", "field"}, "within values"


def test_an_enumerator_without_words_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"Side in refdut/packet\.hpp: no words beside left, right"):
        described("refdut/packet.hpp", "Side")


def test_every_rule_of_dont_fragment_is_on_the_page() -> None:
    assert sorted(names_in(source("config.cpp"), "dont_fragment_rules") - NAMED) == []


def test_every_count_is_on_the_page() -> None:
    counts = set(re.findall(r'\{"(\w+)"', source("write_counts.cpp")))
    assert len(counts) > 20
    assert sorted(counts - {"ok", "errors"} - NAMED) == []


def test_every_command_is_on_the_page() -> None:
    commands = set(re.findall(r'command == "(\w+)"', source("controller.cpp")))
    assert commands == {"counts", "connections", "reset_counts", "clear", "reload", "load", "reset", "stop"}
    assert sorted(commands - NAMED) == []


def test_the_examples_are_toml() -> None:
    blocks = re.findall(r"(?ms)^```toml\n(.*?)^```$", PAGE)
    assert [tomllib.loads(block)["mode"] for block in blocks] == ["nat44", "map_t_br", "map_e_br"]

"""Documents as TOML text: whatever they hold, they are read back as they are."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.results.toml_text import to_toml

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
TIMES = st.datetimes() | st.dates() | st.times()
ODD = st.text(alphabet=st.sampled_from("\n\r\t\x00\x1b\x7f\x85\u2028\u202eé#\"'\\\\[]={}.- a"), max_size=20)
TEXTS = st.text(max_size=20) | ODD
VALUES = st.recursive(
    TEXTS | NUMBERS | TIMES | st.booleans(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
    max_leaves=8,
)


def test_a_campaign_reads_back() -> None:
    document = {
        "name": 'a "b" \\ c',
        "seed": 7,
        "list": [1, 2],
        "gateway": {"eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}], "on": True},
        "trial": {"duration": "2s"},
    }
    assert tomllib.loads(to_toml(document)) == document


@pytest.mark.parametrize("document", [{"a": "x\x7fy"}, {"é": 1}, {"a b": {"c": 1}}, {"x": {"\n": "\n"}}, {"²": 1}])
def test_what_tomllib_refuses_is_escaped(document: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(document)) == document


@given(document=st.dictionaries(TEXTS, VALUES, max_size=4), comment=TEXTS)
def test_every_document_reads_back_and_comments_stay_comments(document: dict[str, Any], comment: str) -> None:
    paths = [
        *document,
        *(f"{key}.{inner}" for key, table in document.items() if isinstance(table, dict) for inner in table),
    ]
    assert tomllib.loads(to_toml(document, dict.fromkeys(paths, comment))) == document

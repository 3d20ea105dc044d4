"""Text, JSON and TOML of others, made harmless where it is shown or read: names, output, files of any origin. Pure."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

_UNSEEN = (
    *(code for code in range(0x20) if chr(code) not in "\t\n"),
    *range(0x7F, 0xA0),
    *(0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    *(0x2028, 0x2029, 0xFEFF),
)
"""Control characters, what changes the direction of writing, and line ends that are none in a file."""
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _UNSEEN}
_SHOWN_IN_LINE = _SHOWN | {ord("\n"): r"\x0a"}
_IN_JSON = {code: f"\\u{code:04x}" for code in _UNSEEN if code > 0x20}

DEPTH_MAX = 64
"""Objects and lists below each other, and parts of a key with dots; results and campaigns have fewer than ten."""
TOML_CHARACTERS_MAX = 1 << 18
"""Of a file in TOML; campaigns have a few thousand. The parser takes some hundred octets for each."""
_DEEP = "it is nested too deeply"

_FORMULA = re.compile(r"[=+\-@\t\r]")
_FIGURES = re.compile(r"-?[\d., -]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?""")
_IN_TOML = re.compile(
    rf"""
    \#[^\n]*+                                  # a comment
    | "{{3}} (?:\\.|[^\\])*? (?:"{{3,5}}|\Z)   # texts of several lines
    | '{{3}} .*? (?:'{{3,5}}|\Z)
    | (?P<key> (?:{_KEY_PART.pattern}) (?:[ \t]*+\.[ \t]*+(?:{_KEY_PART.pattern}))*+ )
    """,
    re.DOTALL | re.VERBOSE,
)
"""What has to be told apart to find keys. A text without an end is one as well: the parser reads no further."""
_WHOLE = {10: re.compile(r"-?[0-9]{1,20}"), 16: re.compile(r"[0-9a-f]{1,16}")}


def visible(text: str) -> str:
    r"""Return a text whose control characters can be seen: `\x1b` for an escape. Line ends and tabs stay."""
    return text.translate(_SHOWN)


def visible_line(text: str) -> str:
    r"""Return a text on a line of its own: as `visible`, and a line end is `\x0a`."""
    return text.translate(_SHOWN_IN_LINE)


def visible_json(text: str) -> str:
    """Return JSON, or a value of TOML, with escapes for what `json.dumps` leaves as it is."""
    return text.translate(_IN_JSON)


def whole_number(text: str, base: Literal[10, 16] = 10) -> int | None:
    """Return the whole number that a text is; None if it is none, or has more digits than a kernel counts with."""
    return int(text, base) if _WHOLE[base].fullmatch(text) else None


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV. A text that a spreadsheet would compute as a formula begins with an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if _FORMULA.match(shown) and not _FIGURES.fullmatch(shown) else shown


def json_of(text: str) -> Any:
    """Return a JSON document. Raises ValueError for everything that is damaged: NaN and Infinity are, too.

    So are objects with a key that stands twice: programs differ in the value that they take.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_number, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(_DEEP) from None
    if _is_deeper(value, DEPTH_MAX):
        raise ValueError(_DEEP)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a character") from None
    return value


def toml_of(text: str) -> dict[str, Any]:
    """Return a TOML document. Raises ValueError for everything that is damaged, too large or too deep to be a campaign.

    The parser's memory grows with the square of the parts of a key, so those are counted before it runs.
    """
    if len(text) > TOML_CHARACTERS_MAX:
        raise ValueError(f"it has more than {TOML_CHARACTERS_MAX:,} characters")
    keys = (match["key"] for match in _IN_TOML.finditer(text))
    if any(len(_KEY_PART.findall(key)) > DEPTH_MAX for key in keys if key):
        raise ValueError(_DEEP)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_DEEP) from None
    if _is_deeper(document, DEPTH_MAX):
        raise ValueError(_DEEP)
    if _has_endless(document):
        raise ValueError("it has a number of more than 64 bits")
    return document


def _has_endless(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() > 64
    return any(map(_has_endless, _parts(value)))


def _parts(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_deeper(value: object, depth: int) -> bool:
    return any(depth == 0 or _is_deeper(part, depth - 1) for part in _parts(value))


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {key!a} stands twice")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is larger than any number that can be kept")
    return value

"""What a reader of the C++ half relies on: short functions, comments of a screen's width."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

FUNCTION_LINES_MAX = 70


def cpp_files() -> list[Path]:
    """Every C++ file, in the form that clang-format gives it."""
    return sorted(path for place in ("engine", "bench") for path in (ROOT / place).rglob("*.[ch]pp"))


NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|union|extern|concept)\b|\s*}")


STATEMENT_END = re.compile(r"(^|[;{}:>]|//.*)$")


def statement_start(lines: list[str], number: int) -> int:
    """Return the first line of the statement that goes on in a line."""
    while number > 0 and not STATEMENT_END.search(lines[number - 1]):
        number -= 1
    return number


def block_lines(lines: list[str], start: int) -> int:
    """Count the lines between a line that ends with `{` and the line that closes its block."""
    first = statement_start(lines, start)
    depth = len(lines[first]) - len(lines[first].lstrip())
    for end in range(start + 1, len(lines)):
        text = lines[end].lstrip()
        if text.startswith("}") and len(lines[end]) - len(text) <= depth:
            return end - start - 1
    return len(lines) - start


def long_functions(text: str) -> list[tuple[int, int]]:
    """List the blocks that are longer than a function may be: number of the first line, length."""
    lines = text.splitlines()
    blocks = [
        (number + 1, block_lines(lines, number))
        for number, line in enumerate(lines)
        if line.endswith("{") and not NO_FUNCTION.match(lines[statement_start(lines, number)])
    ]
    return [(number, length) for number, length in blocks if length > FUNCTION_LINES_MAX]


def test_a_long_function_is_noticed() -> None:
    body = "    if (x) {\n    }\n" * (FUNCTION_LINES_MAX // 2)
    assert long_functions(f"namespace a {{\n\nvoid f() {{\n{body}}}\n\n}}  // namespace a\n") == []
    assert long_functions(f"void f(int one,\n       int two) {{\n{body}    step();\n}}\n") == [
        (2, FUNCTION_LINES_MAX + 1)
    ]


def test_cpp_functions_are_short() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{number}": length
        for path in cpp_files()
        for number, length in long_functions(path.read_text(encoding="utf-8"))
    }
    assert long == {}


COMMENT_COLUMNS_MAX = 100


def test_comments_fit_a_screen() -> None:
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in cpp_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip().startswith("//") and len(line) > COMMENT_COLUMNS_MAX
    ]
    assert wide == []

"""`scripts/references`."""

from __future__ import annotations

import sys

from tests.references.files import MADE, ROOT, made


def main(arguments: list[str]) -> int:
    """Return the exit status."""
    stale = [path for path in MADE if made(path) != (path.read_text(encoding="utf-8") if path.exists() else "")]
    for path in stale:
        print(path.relative_to(ROOT))
        if "--check" not in arguments:
            path.write_text(made(path), encoding="utf-8")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

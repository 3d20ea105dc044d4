"""Where the programs of the engine lie: installed with the package, or built in the checkout."""

from __future__ import annotations

import os
from pathlib import Path

from gatemark.errors import GatemarkError


def find_program(name: str, variable: str, executable: Path | None, error: type[GatemarkError]) -> Path:
    """Return an executable: the one given, that of an environment variable, the installed one, or that of the checkout.

    Raises `error` if there is none.
    """
    package = Path(__file__).resolve().parent
    named = executable or (Path(os.environ[variable]) if os.environ.get(variable) else None)
    built = [package / "_engine" / name, package.parents[1] / "build" / "release" / "engine" / name]
    candidates = built if named is None else [named]
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.resolve()
    raise error(
        what="no executable there",
        where=" or ".join(str(candidate) for candidate in candidates),
        fix=f"build it with `make`, or name it in {variable}",
    )

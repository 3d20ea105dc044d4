from __future__ import annotations

import pytest

from gatemark.errors import (
    ConfigError,
    EngineError,
    GatemarkError,
    Interrupted,
    Problem,
    ResultError,
    TestBedError,
)


@pytest.mark.parametrize(
    ("kind", "status"),
    [(GatemarkError, 1), (ConfigError, 2), (TestBedError, 1), (EngineError, 1), (ResultError, 3), (Interrupted, 130)],
)
def test_each_error_has_its_exit_status(kind: type[GatemarkError], status: int) -> None:
    error = kind(what="it broke", where="here", fix="mend it")
    assert error.exit_status == status
    assert str(error) == "here: it broke\n  hint: mend it"
    assert (error.what, error.where, error.fix) == ("it broke", "here", "mend it")


def test_an_error_holds_all_problems() -> None:
    problems = [Problem(what=f"wrong {i}", where="file", fix="") for i in range(3)]
    error = ConfigError(problems=problems)
    assert error.problems == tuple(problems)
    assert str(error) == "file: wrong 0\nfile: wrong 1\nfile: wrong 2"

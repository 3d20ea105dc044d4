from __future__ import annotations

import errno

import pytest

from gatemark.cli.main import main
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


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_without_memory_a_command_ends_with_one_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("gatemark.cli.main.make_app", lambda _chosen: fail)
    assert main(["plan", "x.toml"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: this machine: no memory is left\n") and "--resume" in said


def test_an_error_holds_all_problems() -> None:
    problems = [Problem(what=f"wrong {i}", where="file", fix="") for i in range(3)]
    error = ConfigError(problems=problems)
    assert error.problems == tuple(problems)
    assert str(error) == "file: wrong 0\nfile: wrong 1\nfile: wrong 2"

"""Every error that a user may meet, as one tree.

::

    GatemarkError                    something could not be done
    ├── ConfigError                  the campaign file or the command line is wrong
    ├── TestBedError                 the test bed or the gateway failed
    │   ├── GatewayCollapsed         the gateway stopped working while it was measured
    │   ├── HostBootError            the gateway's host was booted and does not work
    │   ├── HostBootedError          the gateway's host booted, and nobody here asked for it
    │   ├── OutsideGatewayError      what failed is not the gateway
    │   │   ├── TesterPortError      a port of the Tester is gone
    │   │   └── HostConnectionError  the connection to the gateway's host failed or was lost
    │   └── ImpossibleTimeError      a time that a host told cannot be
    ├── EngineError                  the engine failed or refused a request
    ├── ResultError                  the result folder or the disk failed
    └── Interrupted                  stopped by the user; the journal is kept

An error carries all problems that were found, not only the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

RESUME = "`gatemark run --resume DIR`, or `gatemark pair --resume DIR` where pairs were measured"
"""What continues a measurement, in a remedy of code that does not know which one it is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, in words for the user."""

    what: str
    """What was found, with the value."""
    where: str
    """File and key path, interface, process or command; never empty."""
    fix: str
    """What to do about it; empty only if nothing can be said."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}\n  hint: {self.fix}" if self.fix else f"{self.where}: {self.what}"

    def to_json(self) -> dict[str, str]:
        """Return the problem as the engine protocol writes it."""
        return {"what": self.what, "where": self.where, "fix": self.fix}


class GatemarkError(Exception):
    """Base of every error a user may meet: what happened, where, what to do."""

    exit_status: ClassVar[int] = 1

    def __init__(
        self, *, what: str = "", where: str = "gatemark", fix: str = "", problems: Sequence[Problem] = ()
    ) -> None:
        first = (Problem(what=what, where=where, fix=fix),) if what or not problems else ()
        self.problems: tuple[Problem, ...] = first + tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    @property
    def what(self) -> str:
        """What the first problem is."""
        return self.problems[0].what

    @property
    def where(self) -> str:
        """Where the first problem is."""
        return self.problems[0].where

    @property
    def fix(self) -> str:
        """What to do about the first problem."""
        return self.problems[0].fix


class ConfigError(GatemarkError):
    """The campaign file or the command line is wrong; `problems` lists everything that is."""

    exit_status = 2


class TestBedError(GatemarkError):
    """The test bed could not be made, or the gateway in it stopped working."""

    __test__ = False  # not a test class, whatever its name suggests to pytest


class GatewayCollapsed(TestBedError):  # noqa: N818 - a result where it is expected
    """The gateway stopped working while it was measured."""


class HostBootError(TestBedError):
    """The gateway's host was booted during a campaign, and it did not come back, or not as it was."""


class HostBootedError(TestBedError):
    """The gateway's host booted, and nobody here asked for it: what was set up there may be gone."""


class OutsideGatewayError(TestBedError):
    """What failed is not the gateway, so nothing that depends on it may be taken for a result."""


class TesterPortError(OutsideGatewayError):
    """A port of the Tester is gone."""


class ImpossibleTimeError(TestBedError):
    """A time that a host told cannot be: its clock was set meanwhile. The trial says nothing."""


class HostConnectionError(OutsideGatewayError):
    """No command reaches the gateway's host, or the connection was lost before a command had ended."""

    def __init__(self, *, what: str, where: str, fix: str, began: bool) -> None:
        """`began`: the command had begun, so it may have been run to its end."""
        super().__init__(what=what, where=where, fix=fix)
        self.began = began


class EngineError(GatemarkError):
    """The engine could not be started, died, or refused a request."""


class ResultError(GatemarkError):
    """The result folder could not be read or written."""

    exit_status = 3


class Interrupted(GatemarkError):  # noqa: N818 - an interruption is not a fault
    """The user stopped the measurement; what was measured is kept and the run can be resumed."""

    exit_status = 130


EXIT_STATUSES: Mapping[int, str] = {
    0: "done",
    GatemarkError.exit_status: "gateway or measurement failed",
    ConfigError.exit_status: "bad input",
    ResultError.exit_status: "result folder or disk",
    Interrupted.exit_status: "interrupted",
}
"""What the exit status of the command line says."""

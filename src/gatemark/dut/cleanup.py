"""What dead processes of gatemark left on this machine, and its removal."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import Any

from gatemark.dut import machine, naming
from gatemark.errors import TestBedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBed:
    """What is left of one test bed."""

    name: str
    namespaces: tuple[str, ...]
    processes: tuple[int, ...]
    """In its namespaces, by number."""
    folder: str | None
    """Its configuration files and logs; None if they are gone."""

    def __str__(self) -> str:
        parts = [f"namespace {space}" for space in self.namespaces]
        parts += [f"process {pid}" for pid in self.processes]
        parts += [] if self.folder is None else [f"folder {self.folder}"]
        return f"test bed {self.name}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftSetting:
    """A kernel setting of the whole machine that is still as a dead process set it."""

    name: str
    now: str
    before: str
    """What it is to be again."""

    def __str__(self) -> str:
        return f"setting {self.name}: is {self.now}, was {self.before}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """All that dead processes left."""

    beds: tuple[LeftBed, ...]
    settings: tuple[LeftSetting, ...]

    def __bool__(self) -> bool:
        return bool(self.beds or self.settings)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.beds, *self.settings)))

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON output has it."""
        return asdict(self)


def find_leftovers() -> Leftovers:
    """Look for what dead processes left, and change nothing; what a living process owns is not among it."""
    return Leftovers(
        beds=tuple(_left_bed(name) for name in sorted(naming.leftovers(), key=lambda name: name.stem)),
        settings=tuple(LeftSetting(name=name, **values) for name, values in sorted(machine.leftovers().items())),
    )


def remove_leftovers() -> Leftovers:
    """Remove test beds and write settings back; return what could not be removed."""
    naming.remove_leftovers()
    with contextlib.suppress(TestBedError):  # what it is about is found again
        machine.release_leftovers()
    return find_leftovers()


def _left_bed(name: naming.BedName) -> LeftBed:
    spaces = naming.namespaces_of(name)
    return LeftBed(
        name=name.stem,
        namespaces=tuple(spaces),
        processes=tuple(pid for space in spaces for pid in naming.processes_in(space)),
        folder=str(name.folder) if name.folder.exists() else None,
    )

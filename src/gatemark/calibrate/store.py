"""The folder of a calibration: its table, rewritten after each check, so that it can be stopped and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from gatemark.calibrate.checks import all_checks
from gatemark.calibrate.links import LinkKind
from gatemark.calibrate.model import Check, CheckResult, SelfError
from gatemark.calibrate.table import CalibrationDocument, Circumstances, to_markdown
from gatemark.engine.process import find_engine
from gatemark.errors import ResultError
from gatemark.refdut.process import find_refdut
from gatemark.results.store import ResultFolder, default_folder, writing
from gatemark.results.this_machine import gatemark_version, machine_facts, now_iso

JSON_FILE = "calibration.json"
PAGE_FILE = "calibration.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCalibration:
    """What a calibration is to check, and the results so far."""

    folder: Path
    where: Circumstances
    checks: tuple[Check, ...]
    """All that were chosen, in order."""
    results: tuple[CheckResult, ...] = ()
    self_error: SelfError | None = None

    @classmethod
    def create(cls, output: Path | None, checks: Sequence[Check], *, ports: LinkKind, quick: bool) -> StoredCalibration:
        """Make a folder for a new calibration; by default below results/."""
        folder = output or default_folder("calibration")
        if (folder / JSON_FILE).exists():
            raise ResultError(
                what="the folder already holds a calibration",
                where=str(folder),
                fix=f"name another folder with --output, or resume this one with: gatemark calibrate --resume {folder}",
            )
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        new = cls(folder=folder, where=_here(ports=ports, quick=quick), checks=tuple(checks))
        new.write((), None)
        return new

    @classmethod
    def open(cls, folder: Path) -> StoredCalibration:
        """Read the folder of a calibration that was begun before; only the same programs may go on with it."""
        data = ResultFolder(path=folder).read_json(JSON_FILE)
        try:
            begun = CalibrationDocument.model_validate(data)
            known = {check.name: check for check in all_checks(quick=begun.quick)}
            checks = tuple(known[name] for name in begun.chosen)
        except (KeyError, ValidationError) as error:
            raise ResultError(
                what=f"{JSON_FILE} is damaged or of another gatemark: {error!r}",
                where=str(folder),
                fix="begin a new calibration",
            ) from error
        here = _here(ports=begun.ports, quick=begun.quick)
        for name in Circumstances.model_fields:
            was = getattr(begun, name)
            if name != "measured_at" and getattr(here, name) != was:
                raise ResultError(
                    what=f"the calibration was begun with another {name}: {was}",
                    where=str(folder),
                    fix="begin a new calibration",
                )
        return cls(
            folder=folder,
            where=here.model_copy(update={"measured_at": begun.measured_at}),
            checks=checks,
            results=begun.checks,
            self_error=begun.self_error,
        )

    def write(self, results: Sequence[CheckResult], self_error: SelfError | None) -> CalibrationDocument:
        """Replace table and data; returns the data."""
        chosen = tuple(check.name for check in self.checks)
        document = CalibrationDocument(
            **self.where.model_dump(), chosen=chosen, self_error=self_error, checks=tuple(results)
        )
        files = ResultFolder(path=self.folder)
        files.write_json(JSON_FILE, document.model_dump(mode="json"))
        files.write_text(PAGE_FILE, to_markdown(results, self.where, self_error, chosen=len(self.checks)))
        return document


def _here(*, ports: LinkKind, quick: bool) -> Circumstances:
    digest = hashlib.sha256()
    for program in (find_engine(), find_refdut()):
        digest.update(program.read_bytes())
    return Circumstances(
        measured_at=now_iso(),
        machine=machine_facts().cpu_model or "unknown CPU",
        gatemark=gatemark_version(),
        programs=digest.hexdigest(),
        ports=ports,
        quick=quick,
    )

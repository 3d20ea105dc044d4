"""The runner of a calibration on fakes: what is made again, what is kept, and how it is gone on with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.calibration_evidence import PATH, SECOND, delays, throughput, throughput_check

from gatemark.calibrate import truth
from gatemark.calibrate.checks import all_checks, chosen_checks
from gatemark.calibrate.checks_delays import SPREAD_NS_MAX
from gatemark.calibrate.model import Check, CheckResult, Evidence, Reference, Status
from gatemark.calibrate.run import ATTEMPTS, Calibration, limit_of_tester
from gatemark.calibrate.store import StoredCalibration
from gatemark.calibrate.table import rows_of
from gatemark.cli.main import main
from gatemark.dut.steering import CorePlan
from gatemark.errors import Interrupted, ResultError, TestBedError


class FakeCalibration(Calibration):
    """Answers with evidence, or errors, in turn."""

    answers: Sequence[Evidence | Exception] = ()
    answered = 0

    def _measure(self, check: Check, folder: Path) -> Evidence:
        answer = self.answers[min(type(self).answered, len(self.answers) - 1)]
        type(self).answered += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def calibration(tmp_path: Path, *answers: Evidence | Exception) -> FakeCalibration:
    FakeCalibration.answers, FakeCalibration.answered = answers, 0
    cores = CorePlan(tester=(1,), gateway=(0,))
    return FakeCalibration(ports="memif", output=tmp_path, on_event=print, tell=lambda _: None, cores=cores)


def evidence(off: int = 0, **reference: int) -> Evidence:
    true = int(truth.throughput(20_000, throughput_check().forward.queue or 0, SECOND))
    return Evidence(results=(throughput(true + off),), trials=(), reference=Reference(**reference))


@pytest.mark.parametrize(("answers", "status", "attempts"), [
    ((evidence(),), "passed", 1),
    ((evidence(off=-500),), "failed", 1),
    ((evidence(own_drops=1), evidence()), "passed", 2),
    ((evidence(own_drops=1),), "reference not kept", ATTEMPTS),
    ((TestBedError(what="gone", where="gateway"), evidence()), "passed", 2),
    ((TestBedError(what="gone", where="gateway"),), "no result", ATTEMPTS),
])  # fmt: skip
def test_a_check_is_made_again_only_where_the_gateway_did_not_keep_its_truth(
    tmp_path: Path, answers: tuple[Evidence | Exception, ...], status: Status, attempts: int
) -> None:
    (result,) = calibration(tmp_path, *answers).run([throughput_check()])
    assert (result.status, result.attempts) == (status, attempts)


def test_delays_are_not_compared_without_a_steady_path(tmp_path: Path) -> None:
    (delay, check) = chosen_checks(["delay-fixed-50us"])
    busy = delays({**PATH, "p99.9": PATH["p50"] + SPREAD_NS_MAX + 1})
    calm = delays(typical_ns=55_000, worst_case_ns=55_000, pdv_ns=6_000)
    unsteady, steady = (Evidence(results=(run,), trials=(), reference=Reference()) for run in (busy, calm))
    results = calibration(tmp_path, unsteady).run([delay, check])
    assert [result.status for result in results] == ["no result", "no result"]
    assert "too busy" in results[0].problem
    assert calibration(tmp_path, steady).run([delay])[0].status == "passed"


def test_a_tester_at_its_limit_is_no_result(tmp_path: Path) -> None:
    evidence = Evidence(results=(throughput(100, limited_by="tester"),), trials=(), reference=Reference())
    assert "the Tester was the limit" in limit_of_tester(evidence)
    (result,) = calibration(tmp_path, evidence).run([throughput_check()])
    assert result.status == "no result"


def test_checks_are_made_again_after_all_others(tmp_path: Path) -> None:
    checks = chosen_checks(["throughput"])
    told: list[str] = []
    calibration_ = calibration(tmp_path, evidence(own_drops=1), *[evidence()] * 9)
    calibration_.tell = told.append
    results = calibration_.run(checks)
    assert [line.split(": ")[1] for line in told[::2]] == [*(check.name for check in checks), checks[0].name]
    assert "min left" in told[2]
    assert [result.attempts for result in results] == [2, 1, 1]
    assert [result.name for result in results] == [check.name for check in checks]


def test_delays_wait_for_a_known_path_of_the_tester(tmp_path: Path) -> None:
    (delay, check) = chosen_checks(["delay-fixed-50us"])
    result = delays(typical_ns=55_000, worst_case_ns=55_000, pdv_ns=6_000)
    steady = Evidence(results=(result,), trials=(), reference=Reference())
    gone = TestBedError(what="gone", where="gateway")
    results = calibration(tmp_path, gone, steady).run([delay, check])
    assert [result.status for result in results] == ["passed", "failed"], "the delays were compared in the second round"
    assert [result.attempts for result in results] == [2, 2]
    assert FakeCalibration.answered == 3, "without the path nothing was measured"


class TestGoingOn:
    @pytest.fixture
    def checks(self) -> list[Check]:
        return chosen_checks(["throughput"])

    @pytest.fixture
    def begun(self, tmp_path: Path, checks: list[Check]) -> StoredCalibration:
        return StoredCalibration.create(tmp_path / "c", checks, ports="memif", quick=False)

    def stopped(self, begun: StoredCalibration, *answers: Evidence | Exception) -> list[CheckResult]:
        """Make checks until one of them is stopped."""
        calibration_ = calibration(begun.folder, *answers)
        calibration_.keep = begun.write
        with pytest.raises(Interrupted):
            calibration_.run(begun.checks, begun.results)
        return list(StoredCalibration.open(begun.folder).results)

    def test_only_what_is_missing_or_without_result_is_made(self, begun: StoredCalibration) -> None:
        stop = Interrupted(what="stopped", where="here")
        results = self.stopped(begun, evidence(), evidence(own_drops=1), stop)
        assert [result.status for result in results] == ["passed", "reference not kept"]
        (begun.folder / "02-nothing").mkdir()
        again = StoredCalibration.open(begun.folder)
        assert list(rows_of(again.results)) == list(rows_of(results))
        assert (begun.folder / "calibration.md").read_text().count("2 of 3 checks") == 1
        assert json.loads((begun.folder / "calibration.json").read_text())["passed"] is False
        calibration_ = calibration(begun.folder, evidence())
        finished = calibration_.run(again.checks, again.results)
        assert [result.status for result in finished] == ["passed", "failed", "failed"], "it is evidence for the first"
        assert [result.attempts for result in finished] == [1, 2, 1]
        assert FakeCalibration.answered == 2
        assert [check.status for check in again.write(finished, None).checks] == ["passed", "failed", "failed"]

    def test_what_is_written_is_what_is_read(self, begun: StoredCalibration, checks: list[Check]) -> None:
        results = calibration(begun.folder, evidence(), evidence(off=-500), evidence(own_drops=1)).run(checks[:2])
        written = begun.write(results, None)
        again = StoredCalibration.open(begun.folder)
        assert again.write(again.results, again.self_error).model_dump() == written.model_dump()

    def test_an_attempt_that_was_stopped_keeps_its_folder(self, begun: StoredCalibration) -> None:
        calibration_ = calibration(begun.folder, evidence())
        (begun.folder / f"01-{begun.checks[0].name}").mkdir()
        result = calibration_.make(begun.checks[0], 1)
        assert result.folder == f"01-{begun.checks[0].name}-2"

    def test_another_program_begins_anew(self, begun: StoredCalibration) -> None:
        path = begun.folder / "calibration.json"
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "programs": "0"}))
        with pytest.raises(ResultError, match="another programs"):
            StoredCalibration.open(begun.folder)
        path.write_text(json.dumps({**document, "chosen": ["luck"]}))
        with pytest.raises(ResultError, match="damaged"):
            StoredCalibration.open(begun.folder)
        with pytest.raises(ResultError, match="already holds"):
            StoredCalibration.create(begun.folder, [], ports="memif", quick=False)

    def test_the_command_takes_no_other_checks(self, begun: StoredCalibration) -> None:
        assert main(["calibrate", "--resume", str(begun.folder), "--only", "reset"]) == 2
        assert main(["calibrate", "--resume", str(begun.folder / "nothing")]) == 3


def test_the_command_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--list", "--only", "reset"]) == 0
    listed = capsys.readouterr().out
    assert listed.splitlines()[0].startswith("reset-100ms")
    assert main(["calibrate", "--list", "--json", "--quick"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(all_checks(quick=True))
    assert main(["calibrate", "--ports", "ring"]) == 2
    assert '"memif", "veth"' in capsys.readouterr().err
    assert main(["calibrate", "--only", "luck"]) == 2

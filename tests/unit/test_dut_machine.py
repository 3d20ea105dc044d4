"""Settings that Linux has once for the whole machine: leave for real-time threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatemark.dut import machine, naming


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for /proc/sys and for the file that says who holds what."""
    monkeypatch.setattr(machine, "SYSCTL_FOLDER", tmp_path / "sys")
    monkeypatch.setattr(naming, "ROOT_FOLDER", tmp_path / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "STATE_FILE", naming.run_folder() / "settings.json")
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    return tmp_path / "sys" / "kernel" / "sched_rt_runtime_us"


def test_real_time_threads_are_not_stopped_while_it_lasts(settings: Path) -> None:
    settings.write_text("950000")
    with machine.unthrottled_real_time():
        assert settings.read_text() == "-1"
        with machine.unthrottled_real_time():
            assert settings.read_text() == "-1"
        assert settings.read_text() == "-1"
    assert settings.read_text() == "950000"


def test_a_kernel_without_the_setting_is_left_alone(settings: Path) -> None:
    with machine.unthrottled_real_time():
        assert not settings.exists()


def test_a_setting_that_may_not_be_written_is_left_alone(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text("950000")

    def refuse(_name: str, _value: str) -> None:
        raise PermissionError

    monkeypatch.setattr(machine, "_write", refuse)
    with machine.unthrottled_real_time():
        assert settings.read_text() == "950000"

"""Tests that run side by side have a CPU each."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep a process of pytest-xdist and all that it starts on a CPU of its own: test beds claim their CPUs."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[int(worker.removeprefix("gw")) % len(cpus)]})

"""Long versions of tests, which `make endure` runs; and Ctrl-C that works in the programs that the tests start."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that: tests of Ctrl-C
# would send it in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ENDURE_SECONDS_MAX = 6 * 3600
EXAMPLES = 40
"""Of a property that does not say how many."""
ENDURE_EXAMPLES = 20_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--endure", action="store_true", help="run the long version of the tests that have one")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "endure: has a long version, which `make endure` runs")
    config.addinivalue_line("markers", "nightly(why): runs in `make endure` alone, for a reason")
    config.addinivalue_line("markers", "alone: needs all CPUs or looks at the whole machine, so nothing runs beside it")
    config.addinivalue_line("markers", "cpus(number, why): alone, and skipped where there are fewer")
    examples = ENDURE_EXAMPLES if config.getoption("--endure") else EXAMPLES
    patient = [HealthCheck.too_slow]  # no example is too slow on a busy machine
    settings.register_profile("gatemark", max_examples=examples, deadline=None, suppress_health_check=patient)
    settings.load_profile("gatemark")


@pytest.hookimpl(tryfirst=True)  # before `-m "not alone"` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    usable = len(os.sched_getaffinity(0))
    for item in items:
        cpus = item.get_closest_marker("cpus")
        if cpus is not None:
            number, why = cpus.args
            item.add_marker(pytest.mark.alone)
            if usable < number:
                item.add_marker(pytest.mark.skip(reason=f"{why}: needs {number} CPUs"))
        nightly = item.get_closest_marker("nightly")
        if config.getoption("--endure"):
            item.add_marker(pytest.mark.timeout(ENDURE_SECONDS_MAX))
        elif nightly is not None:
            item.add_marker(pytest.mark.skip(reason=f"{nightly.args[0]}; make endure"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests last a seventh longer if what was imported is looked at for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def endures(request: pytest.FixtureRequest) -> bool:
    """Whether the long version of a test is wanted."""
    return bool(request.config.getoption("--endure"))

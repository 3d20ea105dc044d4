"""The table of the benchmarks and the program that runs them name the same cases."""

from __future__ import annotations

import subprocess

from bench.cases import BY_HAND, GROUPS
from bench.run import PROGRAMS


def test_every_case_of_the_program_is_in_the_table_or_run_by_hand() -> None:
    command = [str(PROGRAMS / "gatemark-bench"), "--benchmark_list_tests=true"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(listed) == BY_HAND | {case for group in GROUPS for case in group.cases}

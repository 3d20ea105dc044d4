"""Cores, masks and names of test beds: pure arithmetic, checked against the obvious."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.dut import naming
from gatemark.dut.steering import cpu_mask, plan_cores
from gatemark.errors import ConfigError


def test_last_cpu_is_the_testers() -> None:
    plan = plan_cores([0, 1, 2, 5])
    assert plan.tester == (5,)
    assert plan.gateway == (0, 1, 2)
    assert not plan.shared


def test_one_cpu_serves_both() -> None:
    plan = plan_cores([3])
    assert plan.tester == plan.gateway == (3,)
    assert plan.shared


def test_named_cores_are_kept() -> None:
    assert plan_cores([0, 1, 2, 3], tester=[0]).gateway == (1, 2, 3)
    assert plan_cores([0, 1, 2, 3], gateway=[3]).tester == (2,)
    assert plan_cores([0, 1], tester=[0, 1]).shared


def test_unusable_cpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="CPU 9 is not usable"):
        plan_cores([0, 1], tester=[9])


@given(st.sets(st.integers(0, 300)))
def test_mask_reads_back(cores: set[int]) -> None:
    text = cpu_mask(cores)
    mask = int(text.replace(",", ""), 16)
    assert {core for core in range(400) if mask >> core & 1} == cores
    assert all(len(group) == 8 for group in text.split(",")[1:])


@given(st.integers(1, 4_194_304), st.integers(0, 10**15), st.integers(0, 10**6))
def test_names_read_back_and_fit(pid: int, start: int, number: int) -> None:
    name = naming.BedName(pid=pid, start_ticks=start, number=number)
    for text in (name.tester_namespace, name.gateway_namespace, name.folder.name):
        assert naming.parse_name(text) == name
    assert len(name.interface("gm", "right")) <= 15


@pytest.mark.parametrize("text", ["gatemark", "gatemark-1-tester", "gatemark-1-2-3-other", "xgatemark-1-2-3-tester"])
def test_foreign_names_are_left_alone(text: str) -> None:
    assert naming.parse_name(text) is None


def test_names_within_a_process_differ() -> None:
    first, second = naming.new_name(), naming.new_name()
    assert first != second
    assert first.pid == os.getpid()
    assert first.start_ticks == naming.start_ticks(os.getpid())


def test_no_process_has_no_start_time() -> None:
    assert naming.start_ticks(2**22 + 1) is None

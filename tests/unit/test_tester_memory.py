"""How much memory is there? The kernel's files are those of a test."""

from pathlib import Path

import pytest

from gatemark.campaign import tester_memory
from gatemark.campaign.tester_memory import available_bytes


class Kernel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="ascii")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    told = Kernel(tmp_path)
    told.write("meminfo", "MemTotal: 2000 kB\nMemFree: 10 kB\nMemAvailable:   1000 kB\n")
    told.write("cgroup", "")
    monkeypatch.setattr(tester_memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(tester_memory, "MEMBERSHIPS", tmp_path / "cgroup")
    monkeypatch.setattr(tester_memory, "CONTROL_GROUPS", tmp_path / "groups")
    return told


def test_the_machine_is_the_limit_where_no_group_is(kernel: Kernel) -> None:
    assert available_bytes() == 1000 * 1024
    kernel.write("cgroup", "1:cpu:/job\n0::/job\n")
    kernel.write("groups/job/memory.max", "max\n")
    kernel.write("groups/job/memory.current", "5\n")
    assert available_bytes() == 1000 * 1024


def test_a_kernel_without_control_groups_limits_nothing(kernel: Kernel) -> None:
    (kernel.folder / "cgroup").unlink()
    assert available_bytes() == 1000 * 1024


def test_the_tightest_group_above_us_is_the_limit(kernel: Kernel) -> None:
    kernel.write("cgroup", "0::/slice/run.scope\n")
    kernel.write("groups/slice/memory.max", "100000\n")
    kernel.write("groups/slice/memory.current", "70000\n")
    assert available_bytes() == 30_000
    kernel.write("groups/slice/memory.stat", "anon 60000\ninactive_file 10000\n")
    assert available_bytes() == 40_000, "what the kernel can drop is available"
    kernel.write("groups/slice/memory.max", "50000\n")
    assert available_bytes() == 0, "the group is above its limit"


@pytest.mark.parametrize("place", ["memory/job", "memory"], ids=["seen from outside", "in a container"])
def test_groups_of_the_first_version_are_read_as_well(kernel: Kernel, place: str) -> None:
    kernel.write("cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n")
    kernel.write(f"groups/{place}/memory.limit_in_bytes", "5000\n")
    kernel.write(f"groups/{place}/memory.usage_in_bytes", "3000\n")
    kernel.write(f"groups/{place}/memory.stat", "total_inactive_file 500\n")
    assert available_bytes() == 2500

"""What a kernel counts that commands alone reach, from what a host prints and from what it should not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.test_kernel_counters import CONNTRACK, DEV, SNMP, SNMP6, SOFTNET

from gatemark.dut.asked_counters import BOOT_ID, FAILURES_MAX, AskedCounters
from gatemark.dut.base import KernelCounts
from gatemark.dut.kernel_counters import OCTETS_MAX
from gatemark.dut.shell import shell_at
from gatemark.errors import HostConnectionError, TestBedError

BOOT = "7a1b6ab2-6ba0-4d33-9a9c-1f2e3d4c5b6a"
QUEUES = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc mq 0: dev eth1 root
 Sent 99 bytes 9 pkt (dropped 12, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc fq_codel 0: dev eth1 parent :1 limit 10240p flows 1024
 Sent 99 bytes 9 pkt (dropped 12, overlimits 0 requeues 0)
  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0
qdisc ingress ffff: dev eth1 parent ffff:fff1 ----------------
 Sent 0 bytes 0 pkt (dropped 3, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc tbf 8001: dev gw1x0-left root refcnt 2 rate 1Mbit burst 2Kb lat 0us
 Sent 0 bytes 1 pkts (dropped 3857, overlimits 4000)
"""
FILES = {
    "net/stat/nf_conntrack": CONNTRACK,
    "net/snmp": SNMP,
    "net/snmp6": SNMP6,
    "net/dev": DEV,
    "net/softnet_stat": SOFTNET,
    "1/net/stat/arp_cache": "entries table_fulls\n00000009 00000002\n",
    BOOT_ID: f"{BOOT}\n",
}


def printed(**changes: str) -> str:
    """Return what a host prints, with other texts in place of some files, by the end of their names."""
    texts = {name: changes.get(name.rpartition("/")[2], text) for name, text in FILES.items()}
    return "".join(f"/proc/{name}:{line}\n" for name, text in texts.items() for line in text.splitlines()) + QUEUES


class Host:
    """A host that prints given texts, in turn, the last one for ever; or raises what is given."""

    def __init__(self, *answers: str | TestBedError) -> None:
        self._answers: Iterator[str | TestBedError] = iter(answers)
        self._last = answers[-1]
        self.asked = 0

    def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = 0.0) -> str:
        self.asked += 1
        answer = next(self._answers, self._last)
        if isinstance(answer, TestBedError):
            raise answer
        return answer


def read(answer: str, proc: Path = Path("/nowhere")) -> KernelCounts:
    return AskedCounters(Host(answer), {"gw1x0-left": "gateway-left"}, proc=proc).read()


def test_each_file_is_read_as_on_this_machine() -> None:
    counted = read(printed())
    assert counted.boot_ids == (f"{BOOT}\n",)
    assert not counted.is_this_machines
    wanted = {
        "conntrack.chaintoolong": 26,
        "ip.InDiscards": 12,
        "ip6.InNoRoutes": 2**64 - 1,
        "interface.gateway-left.tx_dropped": 29,
        "softnet.dropped": 18,
        "neighbours.ipv4.table_fulls": 2,
        "qdisc.lo.dropped": 0,
        "qdisc.eth1.dropped": 15,
        "qdisc.gateway-left.dropped": 3857,
    }
    assert {name: counted.counters.get(name) for name in wanted} == wanted


def test_a_damaged_or_endless_file_counts_nothing_and_all_others_do() -> None:
    whole = read(printed()).counters
    for text in ("Ip: InDiscards\nIp: x\n", "Ip: InDiscards\n", "Ip: 1 2\n" * OCTETS_MAX):
        counted = read(printed(snmp=text)).counters
        assert counted == {name: count for name, count in whole.items() if not name.startswith(("ip.", "tcp."))}


def test_a_namespace_of_this_machine_has_its_tables(tmp_path: Path) -> None:
    (tmp_path / BOOT_ID).parent.mkdir(parents=True)
    (tmp_path / BOOT_ID).write_text(f"{BOOT}\n")
    assert read(printed(), tmp_path).is_this_machines
    assert not read(printed(boot_id="another\n"), tmp_path).is_this_machines
    assert read(printed(boot_id="\x1b[31m" * 9), tmp_path).boot_ids == ("",)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "sh: grep: not found\n",
        TestBedError(what="no", where="host", fix=""),
        HostConnectionError(what="no", where="host", fix="", began=True),
    ],
)
def test_a_host_that_tells_nothing_is_left_in_peace(answer: str | TestBedError) -> None:
    host = Host(answer)
    counters = AskedCounters(host, {})
    assert [counters.read() for _ in range(2 * FAILURES_MAX)] == [KernelCounts()] * 2 * FAILURES_MAX
    assert host.asked == FAILURES_MAX


def test_a_host_that_fails_now_and_then_is_asked_again() -> None:
    once = TestBedError(what="no", where="host", fix="")
    counters = AskedCounters(Host(once, once, printed(), once, once, printed()), {})
    assert [bool(counters.read().counters) for _ in range(6)] == [False, False, True, False, False, True]


@given(st.text(alphabet="/proc/net/snmp:qdisc dev root Sent (dropped 0, \n\x00٣", max_size=400))
def test_whatever_a_host_prints_nothing_is_raised(text: str) -> None:
    for answer in (text, printed() + text, printed(dev=text)):
        assert all(isinstance(count, int) for count in read(answer).counters.values())


def test_this_machine_tells_its_own() -> None:
    counted = AskedCounters(shell_at(None, ["sh", "-s"]), {}).read()
    assert counted.is_this_machines == Path("/proc", BOOT_ID).exists()
    assert counted.counters["ip.InDiscards"] >= 0
    assert counted.counters["interface.lo.rx_dropped"] >= 0

"""What a kernel counts, from files as it writes them and from damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.dut import kernel_counters
from gatemark.dut.kernel_counters import (
    KernelCounters,
    neighbours_held,
    parse_by_cpu,
    parse_interfaces,
    parse_ipv6,
    parse_named_lines,
    parse_softnet,
)

CONNTRACK = """\
entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error
000003e8  00000000 00000000 00000000 00000002 00000000 00000000 0000000a 00000000 0000000b 00000000 00000000 00000000
000003e8  00000000 00000000 00000000 00000001 00000000 00000000 00000010 00000000 00000011 00000000 00000000 00000000
"""
SNMP = """\
Ip: Forwarding DefaultTTL InReceives InDiscards
Ip: 1 64 186770 12
Tcp: MaxConn InSegs
Tcp: -1 7
"""
SNMP6 = """\
Ip6InReceives                   \t1
Ip6InNoRoutes                   \t18446744073709551615
Icmp6OutDestUnreachs            \t3
UdpLite6NoPorts                 \t4
"""
SOFTNET = """\
00000011 00000007 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0 0
000048e8 0000000a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 0 0
000048e8 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003 0 0
"""
DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
gw1x0-left: 5020320 78412 1 2 3 4 5 6 5019872 78405 7 29 8 9 10 11
 tun.7: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""  # noqa: E501  # the kernel's own lines
PARSERS: dict[str, tuple[Callable[[str], kernel_counters.Counters], str]] = {
    "conntrack": (lambda text: parse_by_cpu(text, "conntrack", kernel_counters.CONNTRACK_NAMES), CONNTRACK),
    "snmp": (parse_named_lines, SNMP),
    "snmp6": (parse_ipv6, SNMP6),
    "softnet": (lambda text: parse_softnet(text, [1, 3]), SOFTNET),
    "dev": (lambda text: parse_interfaces(text, {"gw1x0-left": "gateway-left"}), DEV),
}


def counted(name: str) -> dict[str, int]:
    parse, text = PARSERS[name]
    return dict(parse(text))


def test_what_each_cpu_counts_is_added_and_what_there_is_now_is_left_out() -> None:
    told = counted("conntrack")
    assert (told["conntrack.chaintoolong"], told["conntrack.insert_failed"], told["conntrack.invalid"]) == (26, 28, 3)
    assert "conntrack.entries" not in told and "conntrack.chainlength" not in told


def test_names_stand_above_their_numbers() -> None:
    told = counted("snmp")
    assert (told["ip.InReceives"], told["ip.InDiscards"], told["tcp.MaxConn"]) == (186770, 12, -1)


def test_each_line_of_ipv6_has_a_name_and_a_number() -> None:
    assert counted("snmp6") == {"ip6.InReceives": 1, "ip6.InNoRoutes": 2**64 - 1, "icmp6.OutDestUnreachs": 3}


def test_input_queues_are_those_of_the_gateways_cpus() -> None:
    assert counted("softnet") == {"softnet.dropped": 11}
    assert dict(parse_softnet(SOFTNET, [1], tester_cpus=[0, 3])) == {
        "softnet.dropped": 10,
        "softnet.received_by_tester": 0x11 + 0x48E8,
    }
    older = "\n".join(" ".join(line.split()[:11]) for line in SOFTNET.splitlines())
    assert dict(parse_softnet(older, [0, 1, 3])) == {}, "it does not say which CPU a line is of"
    assert dict(parse_softnet(older, None)) == {"softnet.dropped": 18}, "of all CPUs it need not"
    assert dict(parse_softnet("00000001\n", None)) == {}


def test_interfaces_have_names_that_stay_the_same() -> None:
    told = counted("dev")
    names = ("rx_errors", "rx_dropped", "tx_errors", "tx_dropped")
    assert [told[f"interface.gateway-left.{name}"] for name in names] == [1, 2, 7, 29]
    assert told["interface.tun.7.tx_dropped"] == 0


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("conntrack", lambda text: text[:-9]),
        ("conntrack", lambda text: text.replace("0000000a", "0x00000a")),
        ("conntrack", lambda text: text.replace("0000000a", "0" * 17)),
        ("snmp", lambda text: text.replace("186770", "9" * 5000)),
        ("snmp", lambda text: text.replace("Tcp: MaxConn", "Udp: MaxConn")),
        ("snmp", lambda text: text.replace(" 12\n", "\n")),
        ("snmp", lambda text: text.rpartition("Tcp")[0]),
        ("snmp6", lambda text: text.replace("\t3", "")),
        ("snmp6", lambda text: text.replace("\t3", "\t٣")),
        ("softnet", lambda text: text.replace("0000000a", "g")),
        ("dev", lambda text: text.replace(" 7 29 8", "")),
        ("dev", lambda text: text.replace("29", "twenty")),
    ],
)
def test_a_damaged_file_is_noticed(name: str, damage: Callable[[str], str]) -> None:
    parse, text = PARSERS[name]
    with pytest.raises(ValueError):  # noqa: PT011  # it says nothing: the file counts nothing
        dict(parse(damage(text)))


@given(st.sampled_from(sorted(PARSERS)), st.text(alphabet="Ip6:Tc \n\t-0129afx|٣\x00", max_size=200))
def test_whatever_a_file_says_nothing_else_is_raised(name: str, text: str) -> None:
    try:
        told = dict(PARSERS[name][0](text))
    except ValueError:
        return
    assert all(isinstance(count, int) for count in told.values())


def test_a_namespace_that_is_not_there_counts_what_is_the_machines(tmp_path: Path) -> None:
    files = {
        "1/net/stat/arp_cache": "entries table_fulls\n00000009 00000002\n",
        "1/net/stat/ndisc_cache": "entries\nx\n",
        "thread-self/net/softnet_stat": SOFTNET,
    }
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    counters = KernelCounters(["gatemark-none"], [0], {}, proc=tmp_path)
    assert counters.read().counters == {"neighbours.ipv4.table_fulls": 2, "softnet.dropped": 7}
    (tmp_path / "thread-self/net/softnet_stat").write_text(SOFTNET + "0" * kernel_counters.OCTETS_MAX)
    assert counters.read().counters == {"neighbours.ipv4.table_fulls": 2}, "a file that takes too long is left out"
    counters.close()
    counters.close()
    assert counters.read().counters == {}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("entries  allocs\n000003b6 00000403\n000003b6 00000000\n", 950),
        ("allocs entries\n1 2\n", 2),
        ("", 0),
        ("entries\n", 0),
        ("allocs\n1\n", 0),
        ("allocs entries\n1\n", 0),
        ("entries\n-1\n", 0),
    ],
)
def test_neighbours_that_all_namespaces_hold_are_on_the_line_of_each_cpu(text: str, held: int, tmp_path: Path) -> None:
    assert neighbours_held("ipv4", tmp_path) == 0
    (tmp_path / "1/net/stat").mkdir(parents=True)
    (tmp_path / "1/net/stat/arp_cache").write_text(text)
    assert neighbours_held("ipv4", tmp_path) == held

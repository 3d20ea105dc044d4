"""What the gateway's host counted in a trial: which counters are kept, which grew by about the losses, and in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.trial_facts import blank, record_of

from gatemark.campaign.engine_trial import host_facts
from gatemark.cli.trial import in_words
from gatemark.dut.base import CpuTimes, HostReading, KernelCounts
from gatemark.trial.host import HostFacts, MiddleFacts
from gatemark.trial.host_counters import COUNTERS_MAX, HOST_COUNTERS, counter_words, full_tables, grown_by_about, growth

CHAIN = "conntrack.chaintoolong"


def test_what_grew_is_kept_and_nothing_else() -> None:
    before = {CHAIN: 5, "ip.InDiscards": 7, "ip.OutDiscards": 2**64 - 1, "ip.InReceives": 0}
    after = {CHAIN: 9, "ip.InDiscards": 7, "ip.OutDiscards": 3, "ip.InReceives": 99, "ip.InHdrErrors": 4}
    assert growth(before, after) == {CHAIN: 4}, "one shrank, one is no loss, one was not read before"
    assert growth({}, after) == {}


def test_an_interface_is_named_and_a_name_that_hurts_is_left_out() -> None:
    names = ["gateway-left", "tun.7", "a\x1b[31m", "x" * 33, ""]
    read = {f"interface.{name}.rx_dropped": 6 for name in names}
    assert growth(dict.fromkeys(read, 0), read) == {
        "interface.gateway-left.rx_dropped": 6,
        "interface.tun.7.rx_dropped": 6,
    }


def test_the_many_are_cut_and_those_that_grew_most_are_kept() -> None:
    read = {f"interface.v{number}.tx_dropped": number for number in range(1, 1000)}
    kept = growth(dict.fromkeys(read, 0), read)
    assert list(kept.values()) == list(range(999, 999 - COUNTERS_MAX, -1))


@pytest.mark.parametrize(
    ("count", "lost", "is_about"),
    [(1000, 1000, True), (1050, 1000, True), (950, 1000, True), (1051, 1000, False), (949, 1000, False),
     (4, 1, True), (5, 1, False), (13, 10, True), (14, 10, False), (3, 0, False)],
)  # fmt: skip
def test_about_is_a_twentieth_or_three_frames(count: int, lost: int, is_about: bool) -> None:
    about = grown_by_about({CHAIN: count, "ip.InDiscards": 10**9}, lost)
    assert [(grown.name, grown.count, grown.counter.speaks_of) for grown in about] == (
        [(CHAIN, count, "connections")] if is_about else []
    )


def test_each_counter_has_a_name_and_words_of_its_own() -> None:
    assert len({row.pattern for row in HOST_COUNTERS}) == len(HOST_COUNTERS)
    assert len({(row.speaks_of, row.words) for row in HOST_COUNTERS}) == len(HOST_COUNTERS)
    assert all(row.pattern.count("*") == row.words.count("*") <= 1 for row in HOST_COUNTERS)


def test_what_explains_the_losses_comes_first() -> None:
    counters = {"interface.gateway-left.rx_dropped": 5000, CHAIN: 1204, "not.known": 1}
    assert counter_words(counters, 1200) == (
        "the gateway's host counted meanwhile: connections: refused, the hash chain was too long (chaintoolong) +1,204,"
        " about as many as frames were lost; interface: gateway-left dropped on arrival +5,000"
    )
    assert counter_words({}, 1200) == ""
    many = {f"interface.v{number}.rx_dropped": 1 for number in range(20)}
    assert counter_words(many, 0).endswith("; 12 more")


def test_a_full_neighbour_table_is_a_fault_of_the_machine_where_frames_were_lost() -> None:
    counters = {"neighbours.ipv6.table_fulls": 33_355, "neighbours.ipv4.res_failed": 7}
    (said,) = full_tables(counters, 1)
    assert "IPv6 neighbour table" in said and "33,355 times" in said and "net.ipv6.neigh.default.gc_thresh3" in said
    assert full_tables(counters, 0) == (), "somebody else met a full table"
    assert full_tables({}, 5) == ()


def reading(counters: dict[str, int], cpus: dict[int, CpuTimes]) -> HostReading:
    counted = KernelCounts(counters=counters)
    return HostReading(at_ns=1, step_ns=1, queue_frames=1, cpus=cpus, threads={}, all_ran_ns=None, counted=counted)


def test_a_host_that_shows_counters_alone_says_nothing_of_its_cpus() -> None:
    facts = host_facts(reading({CHAIN: 1}, {}), reading({CHAIN: 8}, {}))
    assert facts is not None and not facts.sees_work and facts.counters == {CHAIN: 7}
    busy = {0: CpuTimes(idle_ns=0, stolen_ns=0)}
    facts = host_facts(reading({}, busy), reading({}, busy))
    assert facts is not None and facts.sees_work and facts.counters == {}


def test_the_link_between_two_gateways_is_read_where_both_readings_have_all_of_it() -> None:
    names = [f"interface.middle-{side}.tx_{what}" for side in ("left", "right") for what in ("packets", "dropped")]
    before, after = dict.fromkeys(names, 5), dict(zip(names, (105, 6, 25, 5), strict=True))
    facts = host_facts(reading(before, {}), reading(after, {}))
    assert facts is not None and facts.middle == MiddleFacts(forward=101, reverse=20)
    for name in names:
        for first, last in (({**before, name: -1}, after), (before, {**after, name: -1})):
            readings = ({key: count for key, count in each.items() if count >= 0} for each in (first, last))
            facts = host_facts(*(reading(each, {}) for each in readings))
            assert facts is not None and facts.middle is None


def test_a_host_that_booted_meanwhile_began_to_count_again() -> None:
    before, same, later = (
        replace(reading({}, {}), counted=KernelCounts(counters={CHAIN: count}, boot_ids=(boot,)))
        for count, boot in ((1, "a"), (4, "a"), (9, "b"))
    )
    facts = [host_facts(before, after) for after in (same, later)]
    assert [None if told is None else told.counters for told in facts] == [{CHAIN: 3}, {}]


def test_a_trial_says_what_the_host_counted() -> None:
    host = blank(HostFacts, read_ns=1, counters={CHAIN: 3})
    words = in_words(record_of(host=host))
    assert "counted meanwhile: connections: refused" in words and "gateway's host: busy" not in words

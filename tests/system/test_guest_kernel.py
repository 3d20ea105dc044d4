"""Gateways in a kernel of their own: frames, commands, counters and ends are those of a gateway in a namespace."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.inet6 import ICMPv6TimeExceeded, IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tests.recipes import changed_recipe
from tests.system.beds import (
    ATTEMPTS,
    faults,
    lost_nothing_itself,
    netns_campaign,
    netns_document,
    open_bed,
    report_of,
)
from tests.system.machine import missing_for_guest
from tests.system.stateful_beds import ONE_SIZE, stateful_campaign
from tests.system.test_netns import CROSSINGS, exchange, frame
from tests.system.test_stateful import COUNT, assert_counts_agree, measured

from gatemark.calibrate.checks import chosen_checks
from gatemark.calibrate.run import Calibration
from gatemark.campaign.file import campaign_from_dict
from gatemark.dut import naming
from gatemark.dut.choose_kernel import choose_kernel
from gatemark.dut.gateway_kernel import MAC_ADDRESSES
from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.errors import TestBedError
from gatemark.kernels.store import newest_kernel
from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.technology import SIDES
from gatemark.trial.record import TrialRecord
from gatemark.trial.verdict import judge

MISSING = missing_for_guest("tayga", "conntrack", "insmod")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a gateway in a kernel of its own needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]

a_guest_of_its_own = pytest.mark.nightly("each of these tests starts a kernel of its own, which takes minutes together")


def new_bed(name: str, kernel: str = "uml") -> NetnsTestBed:
    recipe = load_recipe(name)
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    return NetnsTestBed(recipe, sides, plan_cores(usable_cpus()), kernel=choose_kernel(kernel, recipe))


def in_guest(bed: NetnsTestBed, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command where the gateway is."""
    return subprocess.run(
        bed.kernel.places[0].command(*words), input=given, capture_output=True, text=True, timeout=30, check=False
    )


@pytest.fixture(scope="module")
def router() -> Iterator[NetnsTestBed]:
    with new_bed("linux-router4") as bed:
        yield bed


@pytest.mark.parametrize("crossing", [row for row in CROSSINGS if row[0] == "linux-router4"])
def test_frames_cross_a_router(router: NetnsTestBed, crossing: tuple[str, ...]) -> None:
    _, side, source, destination, _, _ = crossing
    ((other, packet),), _ = exchange(router, [frame(side, source, destination)])
    assert other != side
    assert (packet.payload.src, packet.payload.dst) == (source, destination)


def test_jumbo_frames_pass_whole(router: NetnsTestBed) -> None:
    ((_, packet),), _ = exchange(router, [frame("left", "198.18.0.2", "198.19.0.2", 8900)])
    assert packet.payload.len == 8900 + 28


@a_guest_of_its_own
def test_a_daemon_of_user_space_translates_in_it() -> None:
    with new_bed("tayga-siit64") as bed:
        for name, side, source, destination, seen_source, seen_destination in CROSSINGS:
            if name == "tayga-siit64":
                ((_, packet),), _ = exchange(bed, [frame(side, source, destination)])
                expected = [ipaddress.ip_address(text) for text in (seen_source, seen_destination)]
                assert [ipaddress.ip_address(text) for text in (packet.payload.src, packet.payload.dst)] == expected


def test_commands_give_input_output_errors_and_status(router: NetnsTestBed) -> None:
    done = in_guest(router, "sh", "-c", "cat; echo 'it\"s' >&2; exit 7", given="one\ntwo $HOME 'x'\n")
    assert (done.stdout, done.stderr, done.returncode) == ("one\ntwo $HOME 'x'\n", 'it"s\n', 7)
    large = in_guest(router, "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; cat | wc -c", given="y" * 1_000_000)
    assert large.stdout == "x" * 3_000_000 + "1000000\n"
    assert in_guest(router, "printf", "%s|", "a b", "*", "", "'").stdout == "a b|*||'|"


def test_it_is_another_kernel_with_the_files_of_this_machine(router: NetnsTestBed) -> None:
    release = in_guest(router, "uname", "-r").stdout.strip()
    kernel = newest_kernel()
    assert kernel is not None and kernel.facts is not None
    assert release == kernel.facts.release != os.uname().release
    assert in_guest(router, "cat", "/etc/os-release").stdout == Path("/etc/os-release").read_text()
    written = in_guest(router, "touch", "/usr/gatemark-was-here")
    assert written.returncode != 0 and "Read-only" in written.stderr
    described = router.describe()
    assert f"in User-Mode Linux {release}" in described.name
    assert f"User-Mode Linux, {release}, made of linux-source-" in described.configuration
    assert release in described.version


def test_commands_run_beside_each_other_and_a_killed_one_ends_inside(router: NetnsTestBed) -> None:
    sleeping = [subprocess.Popen(router.kernel.places[0].command("sleep", str(3000 + number))) for number in range(3)]
    until = time.monotonic() + 10
    while (running := in_guest(router, "pgrep", "-fc", "sleep 300[0-9]").stdout.strip()) != "3":
        assert time.monotonic() < until, running
    sleeping[0].terminate()
    assert sleeping[0].wait(10) == 128 + signal.SIGTERM
    sleeping[1].kill()
    sleeping[1].wait(10)
    while (running := in_guest(router, "pgrep", "-fa", "sleep 300[0-9]").stdout.strip()).count("\n"):
        assert time.monotonic() < until, running
    assert running.endswith("sleep 3002")
    sleeping[2].kill()
    sleeping[2].wait(10)


@a_guest_of_its_own
def test_two_test_beds_describe_it_alike_and_share_nothing() -> None:
    with new_bed("linux-router4") as first, new_bed("linux-router4") as second:
        assert first.describe() == second.describe()
        in_guest(first, "touch", "/run/mine")
        assert in_guest(second, "test", "-e", "/run/mine").returncode == 1


@a_guest_of_its_own
def test_a_router_forwards_every_frame_and_its_throughput_is_measured(tmp_path: Path) -> None:
    document = netns_document("linux-router4", throughput={"resolution": "10%"}, traffic=ONE_SIZE)
    document["testbed"] |= {"kernel": "uml"}
    result, records = measured(
        complete_campaign(campaign_from_dict({**document, "repetitions": 1})), tmp_path / "result"
    )
    run = next(part for part in result.document.runs if isinstance(part, ThroughputResult))
    assert run.lower_bounds[0] > 10_000, run.limited_by
    assert not any(counts.faulty for record in records for _, _, counts in record.report.counts())
    assert "in User-Mode Linux" in (result.folder / "report.html").read_text(encoding="utf-8")


@a_guest_of_its_own
def test_what_an_overloaded_guest_drops_is_the_gateways_loss() -> None:
    testbed = {"kind": "netns", "recipe": "linux-router4", "kernel": "uml"}
    traffic = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}}
    with open_bed(netns_campaign("linux-router4", testbed=testbed, traffic=traffic)) as bed:
        assert judge(report_of(bed), Fraction(0)).passed
        record = bed.trial(frames_per_second=250_000, duration_ns=300_000_000)  # however late: nothing is lost by that
        (direction,) = record.report.directions
        assert direction.foreground.offered == direction.foreground.intended, record.validity.reasons
        assert direction.foreground.lost == record.report.ports["left"].peer_queue_drops > 0
        assert sum(record.gateway_drops.values()) == direction.foreground.lost
        assert not direction.foreground.faulty


@a_guest_of_its_own
def test_what_the_guest_counted_explains_a_loss() -> None:
    testbed = {"kind": "netns", "recipe": "linux-router4", "kernel": "uml"}
    traffic = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}}
    with open_bed(netns_campaign("linux-router4", testbed=testbed, traffic=traffic)) as bed:
        bed.in_gateway("ip", "rule", "add", "fwmark", "7", "unreachable")
        with bed.rules("numgen random mod 4 0 meta mark set 7", hook="prerouting"):
            record = next(
                record for _ in range(ATTEMPTS) if lost_nothing_itself(record := bed.trial(frames_per_second=2000))
            )
    assert record.host is not None
    assert abs(record.host.counters["ipext.InNoRoutes"] - record.report.lost_count) <= 3, record.host
    assert [cause.cause for cause in record.causes] == ["counted"], record.causes


IMPAIRED = {
    "delay_us": 501, "jitter_us": 100, "loss_ppm": 100_001, "duplicate_ppm": 200_000, "reorder_ppm": 250_000,
    "rate_kbit": 20_000, "queue_frames": 5000,
}  # fmt: skip


@a_guest_of_its_own
def test_netem_takes_every_setting_and_does_all_of_it_at_once() -> None:
    traffic = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}}
    with open_bed(netns_campaign("linux-netem", gateway={"settings": IMPAIRED}, traffic=traffic)) as bed:
        taken = {setting.name: setting.read for setting in bed.bed.describe().settings}
        record = bed.trial(frames_per_second=2000)
        counts = record.report.directions[0].foreground
        assert taken == {name: str(value) for name, value in IMPAIRED.items()}
        assert counts.lost > 0 < counts.duplicate and counts.reordered > 0 and not counts.faulty
        with pytest.raises(TestBedError, match=r"netem\.sh"):
            bed.bed.gateway.ask("sh netem.sh delay_us nonsense")


@a_guest_of_its_own
def test_the_tester_agrees_with_netem(tmp_path: Path) -> None:
    cores = plan_cores(usable_cpus())
    calibration = Calibration(ports="memif", output=tmp_path, on_event=lambda _: None, tell=print, cores=cores)
    results = calibration.run(chosen_checks(["netem"], quick=True))
    assert [result.status for result in results] == ["passed"] * 2, [
        (result.problem, result.skipped, result.comparisons) for result in results
    ]


PREFIXES = [
    "2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64",
    "2001:2:0:6400::/96",
]  # fmt: skip
"""One of each length of RFC 6052 section 2.2."""


@a_guest_of_its_own
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["jool-siit64", "jool-siit46"])
def test_jool_translates_to_the_bit_with_every_length_of_prefix(name: str, prefix: str, tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, name, ("2001:2:0:6400::/96", prefix))
    small = {"frame_sizes": {"family": "ipv4", "octets": [128]}, "mix": "1/2"}
    large = {"frame_sizes": {"family": "ipv4", "octets": [1400]}, "dont_fragment": True}
    for traffic in (small, large):
        with open_bed(netns_campaign(recipe, traffic=traffic)) as bed:
            record = next(record for record in (bed.trial(frames_per_second=2000) for _ in range(6)) if passed(record))
        for _, _, counts in record.report.counts():
            assert counts.received == counts.intended
            assert not counts.faulty


def passed(record: TrialRecord) -> bool:
    """Whether nothing was lost; what comes out wrong is an error at once."""
    assert not [faults(counts) for _, _, counts in record.report.counts() if counts.faulty]
    return record.verdict is not None and record.verdict.passed


@a_guest_of_its_own
@pytest.mark.parametrize(
    ("hook", "rule", "told"),
    [
        ("prerouting", "meta l4proto udp ip6 dscp set 9", {"traffic_class"}),
        ("postrouting", "meta l4proto udp ip ttl set 5", {"hop_limit"}),
        ("postrouting", "meta l4proto udp ip dscp set 9", {"traffic_class"}),
    ],
)
def test_faults_before_and_behind_jool_are_named(hook: str, rule: str, told: set[str]) -> None:
    traffic = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [128]}}
    with open_bed(netns_campaign("jool-siit64", traffic=traffic)) as bed:
        chain = f"type filter hook {hook} priority -500; {rule};"
        with bed.table(f"table inet planted {{\n  chain planted {{ {chain} }}\n}}\n"):
            record = bed.trial(frames_per_second=2000)
        (direction,) = record.report.directions
        assert set(faults(direction.foreground)) == told
        assert direction.foreground.faulty == direction.foreground.offered


HOST, FAR, AS_IPV4, AS_IPV6 = "2001:2::2", "198.19.0.2", "198.18.0.2", "2001:2:0:6400::c613:2"
"""Both hosts, and what Jool makes of their addresses."""


ZERO_IN_IPV6, ZERO_IN_IPV4 = (number.to_bytes(2, "big") + b"g" * 16 for number in (12137, 3421))
"""Data with which the sum over a packet is 0, so that its UDP checksum has to be 0xffff."""


def from_ipv6(
    octets: int = 18, *, load: bytes | None = None, extension: Packet | None = None, **header: Any
) -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", "left"], dst=MAC_ADDRESSES["gw", "left"])
    fields: dict[str, Any] = {"src": HOST, "dst": AS_IPV6, "hlim": 10, **header}
    packet = IPv6(**fields)
    above = UDP(sport=5000, dport=6000) / Raw(load or b"g" * octets)
    return "left", link / packet / above if extension is None else link / packet / extension / above


def from_ipv4(
    octets: int = 18, *, load: bytes | None = None, checksum: int | None = None, **header: Any
) -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", "right"], dst=MAC_ADDRESSES["gw", "right"])
    fields: dict[str, Any] = {"src": FAR, "dst": AS_IPV4, "ttl": 10, **header}
    packet = IP(**fields)
    return "right", link / packet / UDP(sport=5000, dport=6000, chksum=checksum) / Raw(load or b"g" * octets)


OF_IPV6: list[tuple[tuple[str, Packet], dict[str, Any]]] = [
    (from_ipv6(), {"ttl": 9, "tos": 0, "flags": "", "frag": 0, "len": 46}),
    (from_ipv6(1232), {"flags": "", "len": 1260}),
    (from_ipv6(1233), {"flags": "DF", "len": 1261}),
    (from_ipv6(tc=187), {"tos": 187}),
    (from_ipv6(hlim=2), {"ttl": 1}),
    (from_ipv6(fl=0x12345), {"ttl": 9}),
    (from_ipv6(extension=IPv6ExtHdrFragment(id=0x12345678, nh=17)), {"id": 0x5678, "flags": "", "len": 46}),
    (from_ipv6(extension=IPv6ExtHdrFragment(id=0x12345678, nh=17, m=1), octets=16), {"id": 0x5678, "flags": "MF"}),
    (from_ipv6(extension=IPv6ExtHdrHopByHop()), {"proto": 17, "len": 46}),
]
"""What Jool makes of IPv6 packets, as RFC 7915 section 5.1 has it."""
OF_IPV4: list[tuple[tuple[str, Packet], dict[str, Any]]] = [
    (from_ipv4(), {"hlim": 9, "tc": 0, "fl": 0, "nh": 17, "plen": 26}),
    (from_ipv4(flags="DF"), {"nh": 17, "plen": 26}),
    (from_ipv4(1472, flags="DF"), {"nh": 17, "plen": 1480}),
    (from_ipv4(tos=187), {"tc": 187}),
    (from_ipv4(ttl=2), {"hlim": 1}),
    (from_ipv4(options=[IPOption(b"\x01\x01\x01\x00")]), {"nh": 17, "plen": 26}),
    (from_ipv4(16, flags="MF", id=7), {"nh": 44, "plen": 32}),
]
"""What Jool makes of IPv4 packets, as RFC 7915 section 4.1 has it."""


@pytest.fixture(scope="module")
def jool() -> Iterator[NetnsTestBed]:
    with new_bed("jool-siit64", "host") as bed:
        yield bed


def test_jool_translates_headers_as_the_rfc_says(jool: NetnsTestBed) -> None:
    for family, rows in ((IP, OF_IPV6), (IPv6, OF_IPV4)):
        for (side, packet), wanted in rows:
            ((other, arrived),), _ = exchange(jool, [(side, packet)])
            header = arrived[family]
            assert other != side
            assert {name: getattr(header, name) for name in wanted} == wanted, packet.summary()
            assert (header.src, header.dst) == ((AS_IPV4, FAR) if family is IP else (AS_IPV6, HOST))
    for sent, due in ((from_ipv4(load=ZERO_IN_IPV6), 0), (from_ipv6(load=ZERO_IN_IPV4), 0xFFFF)):
        ((_, arrived),), _ = exchange(jool, [sent])
        assert arrived[UDP].chksum == due, "0xffff is right; the recipe states that Jool writes 0 in IPv6"
    assert load_recipe("jool-siit64").gateway.zero_udp_checksum
    numbers = {exchange(jool, [from_ipv6()])[0][0][1][IP].id for _ in range(3)}
    assert len(numbers) == 3, "each packet has an identification of its own"


def test_jool_fragments_what_may_be_and_drops_what_has_no_checksum(jool: NetnsTestBed) -> None:
    (side, packet) = from_ipv4(1272, id=77)
    arrived, _ = exchange(jool, [(side, packet), (side, packet)])  # two frames out of each
    parts = [frame[IPv6] for _, frame in arrived[:2]]
    assert [part.plen + 40 for part in parts] == [1280, 96], "the smallest MTU of IPv6"
    assert {part[IPv6ExtHdrFragment].id for part in parts} == {77}
    for without, said in ((from_ipv4(checksum=0), 13), (from_ipv4(ttl=1), 0)):
        ((other, error),), _ = exchange(jool, [without])
        assert (other, error[ICMP].code) == ("right", said)


def test_jool_keeps_the_answer_to_its_own_question(jool: NetnsTestBed) -> None:
    """The EAM table of the recipe has the gateway's own address, from which Linux asks for the receiver of an error.

    Jool takes that answer, so the error leaves only to a neighbour that is known already, as the Tester is.
    """
    interface = f"dev $(ip -6 route get {HOST} | sed 's/.* dev \\([^ ]*\\) .*/\\1/')"
    in_guest(jool, "sh", "-c", f"ip -6 neigh flush {interface}")
    ((other, arrived),), asked = exchange(jool, [from_ipv6(hlim=1), from_ipv6()], wanted=1)
    assert (other, arrived.haslayer(UDP), ["left", HOST] in asked) == ("right", True, True), "the second alone"
    mac = MAC_ADDRESSES["gm", "left"]
    assert in_guest(jool, "sh", "-c", f"ip -6 neigh replace {HOST} lladdr {mac} nud stale {interface}").returncode == 0
    ((other, error),), _ = exchange(jool, [from_ipv6(hlim=1)])
    assert (other, error[IPv6].src) == ("left", "2001:2::1")
    assert error.haslayer(ICMPv6TimeExceeded)


@a_guest_of_its_own
def test_a_router_tells_that_the_hop_limit_ran_out() -> None:
    with new_bed("linux-router6") as bed:
        ((other, error),), _ = exchange(bed, [from_ipv6(hlim=1, dst="2001:2:0:8000::2")])
        assert other == "left" and error.haslayer(ICMPv6TimeExceeded)


@a_guest_of_its_own
def test_jool_amends_a_checksum_that_is_not_there() -> None:
    settings = {"settings": {"amend_udp_checksum_zero": "true"}}
    traffic = {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [128]}, "udp_checksum": "zero"}
    with open_bed(netns_campaign("jool-siit46", gateway=settings, traffic=traffic)) as bed:
        assert any(passed(bed.trial(frames_per_second=2000)) for _ in range(6))


@a_guest_of_its_own
@pytest.mark.parametrize("inside", ["left", "right"])
def test_jool_counts_the_connections_that_the_tester_makes(inside: str, tmp_path: Path) -> None:
    campaign = stateful_campaign("jool-nat64", repetitions=1, gateway={"inside": inside})
    result, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["established"] == behaviour["public_ports"] == COUNT
    assert behaviour["public_addresses"] == 1
    for name in ("gateway.json", "result.json", "report.html"):
        assert "kernel has no jool" in (result.folder / name).read_text(encoding="utf-8")


@a_guest_of_its_own
def test_rates_and_delays_of_jool_are_measured(tmp_path: Path) -> None:
    """Establishment rate, then throughput and delays in phase 2; tear-down and capacity have tests of their own."""
    campaign = stateful_campaign(
        "jool-nat64",
        repetitions=1,
        frame_loss=None,
        connections={"count": COUNT, "rate": "50%", "timeout": "200ms", "gap": "100ms"},
        connection_establishment_rate={"maximum": "8k", "minimum": "1k", "resolution": "1k"},
        throughput={"maximum": "4k", "minimum": "1k", "resolution": "1k"},
        delay={"load": 1000, "duration": "1s", "first_tag": "200ms", "tags": 100},
    )
    result, records = measured(campaign, tmp_path / "result")
    establishment, throughput, delay = result.runs
    assert isinstance(establishment, EstablishmentResult) and establishment.rate is not None
    assert isinstance(throughput, ThroughputResult) and throughput.lower_bounds[0] >= 1000
    assert isinstance(delay, DelayResult)
    assert [series.negative for series in delay.points[0].series] == [(0,), (0,)]
    assert not [counts.faults for record in records for _, _, counts in record.report.counts() if counts.faulty]


@a_guest_of_its_own
@pytest.mark.parametrize(
    ("hook", "rule"),
    [("prerouting", "meta l4proto udp ip6 dscp set 9"), ("postrouting", "meta l4proto udp ip dscp set 9")],
)
def test_faults_before_and_behind_stateful_jool_are_named(hook: str, rule: str) -> None:
    connections = {"count": 500, "rate": "2k", "timeout": "200ms", "gap": "100ms", "retries": 0}
    with open_bed(stateful_campaign("jool-nat64", connections=connections)) as bed:
        chain = f"type filter hook {hook} priority -500; {rule};"
        with bed.table(f"table inet planted {{\n  chain planted {{ {chain} }}\n}}\n"):
            record = bed.trial(frames_per_second=2000)
        assert record.connections is not None
        (direction,) = record.connections.phase_one[-1].report.directions
        assert set(faults(direction.foreground)) == {"traffic_class"}
        assert direction.foreground.faulty == direction.foreground.offered == 500


@a_guest_of_its_own
def test_jool_takes_every_address_of_its_pool(tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "jool-nat64", ('["198.19.0.1/32"]', '["198.19.0.1/32", "198.19.255.0/30"]'))
    campaign = stateful_campaign(recipe, repetitions=1, gateway={"settings": {"f_args": 15}})
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["established"] == COUNT
    assert behaviour["public_addresses"] == 5


@a_guest_of_its_own
def test_jool_as_a_target_of_iptables_translates_the_same(tmp_path: Path) -> None:
    rules = """
ip6tables -t mangle -A PREROUTING -d {prefix} -j JOOL --instance default
for addresses in {pool}; do iptables -t mangle -A PREROUTING -d "$addresses" -p udp -j JOOL --instance default; done
"""
    recipe = changed_recipe(
        tmp_path, "jool-nat64", ("--netfilter --pool6 {prefix}\n", "--iptables --pool6 {prefix}" + rules)
    )
    result, records = measured(stateful_campaign(recipe, repetitions=1), tmp_path / "result")
    assert_counts_agree(records, COUNT)
    assert "iptables" in (result.folder / "gateway.json").read_text(encoding="utf-8")


@a_guest_of_its_own
def test_removing_the_module_is_a_tear_down(tmp_path: Path) -> None:
    again = "modprobe -r jool; modprobe jool; . {dir}/start.sh"
    recipe = changed_recipe(
        tmp_path,
        "jool-nat64",
        ('clear_state = ["jool pool4 flush", ". {dir}/pool4.sh"]', f'clear_state = ["{again}"]'),
        ('tear_down = "jool pool4 flush && . {dir}/pool4.sh"', 'tear_down = "modprobe -r jool"'),
        ("grep JSTAT_SESSIONS", "grep JSTAT_SESSIONS || echo 0"),
        ('"jool instance status | grep -q Running"', ""),
    )
    campaign = stateful_campaign(recipe, repetitions=1, frame_loss=None, connection_tear_down_rate={})
    result, records = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, TearDownResult)
    assert run.full_ns.values[0]
    assert [record.connections.counted_before for record in records if record.connections][-1] == 0


@a_guest_of_its_own
def test_jool_forgets_every_connection_and_is_timed(tmp_path: Path) -> None:
    campaign = stateful_campaign("jool-nat64", repetitions=2, frame_loss=None, connection_tear_down_rate={})
    result, records = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, TearDownResult)
    assert (len(run.full_ns.values), len(run.empty_ns.values)) == (2, 2)
    assert not [record.connections.counted_before for record in records if record.connections][-1]


@a_guest_of_its_own
def test_the_capacity_of_jool_is_that_of_its_pool(tmp_path: Path) -> None:
    recipe = changed_recipe(tmp_path, "jool-nat64", ("1024-65535", "1024-5023"))
    campaign = stateful_campaign(
        recipe,
        repetitions=1,
        frame_loss=None,
        connections={"rate": "10k", "timeout": "200ms", "gap": "100ms"},
        connection_tracking_table_capacity={"start": 1000, "maximum_rate": "20k", "rate_resolution": "15k"},
    )
    result, _ = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    (search,) = run.repetitions
    assert search.lower_bound == 4000
    if search.kind == "found":  # where others want the guest's CPU, a failed trial may be suspect
        assert (search.upper_bound, search.overflow) == (4001, "refused")


@a_guest_of_its_own
@pytest.mark.parametrize("recipe", ["nft-nat44", "tayga-nat64"])
def test_tester_and_gateway_count_the_same_connections(recipe: str, tmp_path: Path) -> None:
    testbed = {"kind": "netns", "recipe": recipe, "kernel": "uml"}
    before = Path("/proc/sys/net/netfilter/nf_conntrack_max").read_text(encoding="ascii")
    _, records = measured(stateful_campaign(recipe, repetitions=1, testbed=testbed), tmp_path / "result")
    assert_counts_agree(records, COUNT)
    assert Path("/proc/sys/net/netfilter/nf_conntrack_max").read_text(encoding="ascii") == before


def test_a_guest_that_dies_is_noticed_and_started_again() -> None:
    with new_bed("linux-router4") as bed:
        bed.can.check()
        (guest, *_) = [
            pid
            for pid in naming.processes_in(bed.tester_namespace)
            if Path(f"/proc/{pid}/exe").resolve().name == "linux"
        ]
        os.kill(guest, signal.SIGKILL)
        assert "kernel ended" in first_failure(bed)
        bed.gateway.restart()
        ((_, packet),), _ = exchange(bed, [frame("left", "198.18.0.2", "198.19.0.2")])
        assert packet.payload.dst == "198.19.0.2"


def first_failure(bed: NetnsTestBed) -> str:
    """Check a bed until that fails; return the error's words."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            bed.can.check()
        except TestBedError as error:
            return error.what
    return ""


def open_files() -> Iterator[str]:
    """Yield what this process has open, without the numbers of sockets and pipes."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder itself, closed again
            yield re.sub(r"\d", "", os.readlink(f"/proc/self/fd/{entry}"))


SHORT = {"duration": "10ms", "settle": "0s", "learn": "1ms", "drain": "10ms", "rest": "0s"}


@a_guest_of_its_own
def test_a_hundred_trials_in_one_guest_leave_nothing() -> None:
    naming.remove_leftovers()
    before = state_of_the_machine()
    testbed = {"kind": "netns", "recipe": "linux-router4", "kernel": "uml"}
    with open_bed(netns_campaign("linux-router4", testbed=testbed, trial=SHORT)) as bed:

        def used() -> list[object]:
            """What grows if a trial leaves something: programs and files of the guest, files that are open here.

            A worker of the kernel bears the name of its last work, which may have spaces in it. Of each thread of the
            guest that was there in the last trial two files of /proc stay open until the next reading.
            """
            bed.bed.can.check()
            names = bed.in_gateway("sh", "-c", 'names=$(cat /proc/[0-9]*/comm; ls guest /run); echo "$names"')
            inside = sorted(re.sub(r"\d", "", name) for name in names.splitlines() if not name.startswith("kworker"))
            return [inside, sorted(name for name in open_files() if not name.startswith("/proc/"))]

        outcomes, usages = [], []
        for number in range(101):
            outcomes.append(passed(bed.trial(frames_per_second=2000, duration_ns=10_000_000)))
            if number in (0, 100):
                usages.append(used())
        assert sum(outcomes) > 80
        assert usages[0] == usages[1]
    assert state_of_the_machine() == before


OWNER = textwrap.dedent(
    """
    import sys, time
    from gatemark.dut.choose_kernel import choose_kernel
    from gatemark.dut.netns import NetnsTestBed
    from gatemark.dut.recipe import load_recipe
    from gatemark.dut.steering import plan_cores, usable_cpus

    recipe = load_recipe("nft-nat44")
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    print("begun", flush=True)
    with NetnsTestBed(recipe, sides, plan_cores(usable_cpus()), kernel=choose_kernel("uml", recipe)) as bed:
        print(bed.tester_namespace, flush=True)
        time.sleep(60)
    """
)
KILLS = [0.05, 0.15, 0.25, 0.35, 0.45, 0.6, 0.8, 1.0, 1.5, None]
"""When gatemark is killed, in seconds from when it begins to make a test bed; None: when that is made."""


def state_of_the_machine() -> dict[str, object]:
    """All that a guest could leave behind."""
    folders = (naming.NETNS_FOLDER, naming.ROOT_FOLDER)
    guests = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"rootfstype=hostfs" in command.read_bytes():
                guests.append(command.parent.name)
    return {
        "folders": [{name for name in os.listdir(folder) if name.startswith("gatemark")} for folder in folders],
        "guests": guests,
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if "gatemark-" in line],
        "links": subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout,
    }


@a_guest_of_its_own
@pytest.mark.parametrize("after_s", KILLS)
def test_a_killed_owner_leaves_nothing_after_cleanup(after_s: float | None) -> None:
    naming.remove_leftovers()
    before = state_of_the_machine()
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "begun\n"
        if after_s is None:
            assert naming.parse_name(owner.stdout.readline().strip()) is not None
        else:
            time.sleep(after_s)
        owner.kill()
    until = time.monotonic() + 10
    while guests_of(state_of_the_machine()) != guests_of(before):
        assert time.monotonic() < until, "the guest lives on without its owner"
        time.sleep(0.02)
    naming.remove_leftovers()
    assert state_of_the_machine() == before


def guests_of(state: dict[str, object]) -> object:
    return state["guests"]


def test_a_path_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TestBedError, match="no User-Mode Linux kernel is there"):
        new_bed("linux-router4", str(tmp_path / "linux"))
    program = tmp_path / "linux"
    program.write_text("#!/bin/sh\necho I am no kernel; exit 3\n")
    program.chmod(0o755)
    with pytest.raises(TestBedError, match=r"did not start: .*I am no kernel"), new_bed("linux-router4", str(program)):
        pass
    assert not [side for side in SIDES if Path(f"/sys/class/net/gm-{side}").exists()]

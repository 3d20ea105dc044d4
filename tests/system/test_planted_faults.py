"""Faults planted on real gateways: each is counted exactly, named by its reason, and none passes. Needs root."""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import FRAMES, KeptBed, OpenBed, faults, netns_campaign, netns_document, open_bed, report_of
from tests.system.machine import missing, nightly_but, nothing_compared

from gatemark import preflight
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.session import measure
from gatemark.trial.report import Counts, TrialReport
from gatemark.trial.verdict import judge

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "tayga", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"planting faults needs {', '.join(MISSING)}")

FORWARD = {
    "direction": "forward",
    "source_ports": {"mode": "fixed", "range": "40000"},
    "destination_ports": {"mode": "fixed", "range": "7"},
    "dont_fragment": True,
}
"""One flow, from left to right. With DF, because nft sets DF in the copies that it makes."""
FORWARD_IPV6 = {key: value for key, value in FORWARD.items() if key != "dont_fragment"}

Plant = Callable[[], AbstractContextManager[None]]


def router(name: str, **traffic: Any) -> Campaign:
    return netns_campaign(f"linux-{name}", traffic={**(FORWARD if name == "router4" else FORWARD_IPV6), **traffic})


@pytest.fixture(scope="module")
def routers() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(router)) as result:
        yield result


@pytest.fixture
def router4(routers: KeptBed) -> OpenBed:
    return routers.get("router4")


@pytest.fixture
def router6(routers: KeptBed) -> OpenBed:
    return routers.get("router6")


@pytest.fixture
def alone(routers: KeptBed) -> None:
    """No router is open, so that the test may open a gateway of its own."""
    routers.close()


def forward(report: TrialReport) -> Counts:
    """Return the counts of the only class of the only direction."""
    ((direction, kind, counts),) = report.counts()
    assert (direction, kind, counts.offered) == ("forward", "foreground", FRAMES)
    return counts


def refused_because(report: TrialReport) -> str:
    """Return why the trial does not pass; fails if it passes."""
    verdict = judge(report, Fraction(0))
    assert not verdict.passed
    return " ".join(verdict.reasons)


@pytest.mark.parametrize("name", ["router4", "router6"])
def test_without_a_fault_everything_passes(name: str, request: pytest.FixtureRequest) -> None:
    report = report_of(request.getfixturevalue(name))
    assert forward(report).received == FRAMES
    assert judge(report, Fraction(0)).passed
    assert report.kept_frames == ()


CHANGES = [
    ("router4", "ip ttl set 7", {"hop_limit"}),
    ("router4", "udp dport set 9", {"destination_port"}),
    ("router4", "udp sport set 9", {"source_port"}),
    ("router4", "@th,16,16 set 9", {"destination_port", "udp_checksum"}),
    ("router4", "ip dscp set 1", {"traffic_class"}),
    ("router4", "ip ecn set ce", {"traffic_class"}),
    ("router4", "ip saddr set 198.18.0.99", {"source_address"}),
    ("router4", "udp checksum set 0", {"udp_checksum"}),
    ("router4", "ip ttl set 7 udp dport set 9", {"hop_limit", "destination_port"}),
    ("router6", "ip6 hoplimit set 7", {"hop_limit"}),
    ("router6", "udp dport set 9", {"destination_port"}),
    ("router6", "ip6 dscp set 1", {"traffic_class"}),
    ("router6", "ip6 ecn set ce", {"traffic_class"}),
    ("router6", "ip6 saddr set 2001:2::99", {"source_address"}),
]
"""Gateway, what nft does to each frame, and the reasons that must be counted for it."""


@pytest.mark.parametrize(("name", "rule", "reasons"), CHANGES)
def test_a_changed_field_is_named(name: str, rule: str, reasons: set[str], request: pytest.FixtureRequest) -> None:
    bed: OpenBed = request.getfixturevalue(name)
    report = report_of(bed, lambda: bed.rules(f"meta l4proto udp {rule}"))
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.lost, counts.duplicate) == (0, FRAMES, 0, 0)
    assert {reason: count for reason, count in counts.faults.items() if count} == dict.fromkeys(reasons, FRAMES)
    words = refused_because(report)
    assert all(f"{reason} {FRAMES}" in words for reason in reasons)
    assert (f"hop_limit {FRAMES}: the first have 7" in words) == ("hop_limit" in reasons)
    assert {(kept.side, kept.reason) for kept in report.kept_frames} == {("right", reason) for reason in reasons}


UNFINISHED = [("router4", "198.18.0.2", "198.19.0.2", 26), ("router6", "2001:2::2", "2001:2:0:8000::2", 26)]
"""Gateway, source, destination, and octets of the UDP datagrams of its smallest frame."""


@pytest.mark.parametrize("off_by", [0, 1])
@pytest.mark.parametrize(("name", "source", "destination", "octets"), UNFINISHED)
def test_a_checksum_that_is_left_to_hardware_is_told(
    name: str, source: str, destination: str, octets: int, off_by: int, request: pytest.FixtureRequest
) -> None:
    """A kernel leaves the sum of the pseudo-header where it expects a card to compute the rest."""
    bed: OpenBed = request.getfixturevalue(name)
    pseudo = ip_address(source).packed + ip_address(destination).packed + struct.pack("!HH", 17, octets)
    left = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo)) % 0xFFFF
    report = report_of(bed, lambda: bed.rules(f"meta l4proto udp @th,48,16 set {left - off_by}"))
    ((reason, count),) = faults(forward(report)).items()
    assert reason == "udp_checksum"
    assert FRAMES - 6 <= count <= FRAMES  # the sum is the right one of one frame in 65,536
    remark = "the first 4 have the sum of the pseudo-header, so it was left to hardware"
    assert (remark in refused_because(report)) == (off_by == 0)


ECN_CAPABLE = [
    ("router4", 1, "ip ecn ect1 numgen inc mod 20 0 ip ecn set ce"),
    ("router6", 2, "ip6 ecn ect0 numgen inc mod 20 0 ip6 ecn set ce"),
]
"""Gateway, traffic class of frames whose transport understands the mark, and what nft does to one of twenty."""


@pytest.mark.parametrize(("name", "traffic_class", "rule"), ECN_CAPABLE)
@pytest.mark.usefixtures("alone")
def test_congestion_that_a_router_may_mark_is_counted_and_no_fault(name: str, traffic_class: int, rule: str) -> None:
    with open_bed(router(name, traffic_class=traffic_class)) as bed:
        report = report_of(bed, lambda: bed.rules(f"meta l4proto udp {rule}"))
    counts = forward(report)
    assert (counts.received, counts.congestion_experienced, counts.faulty) == (FRAMES, FRAMES // 20, 0)
    assert judge(report, Fraction(0)).passed


LABELS = [
    (0, 5, {}, 1),
    (77, 77, {}, 0),
    (77, 0, {"flow_label"}, 0),
    (77, 5, {"flow_label"}, 0),
]
"""Flow label as sent, what nft makes it, and what must be said."""


@pytest.mark.parametrize(("sent", "becomes", "reasons", "labelled"), LABELS)
@pytest.mark.usefixtures("alone")
def test_a_router_may_label_a_flow_and_may_change_no_label(
    sent: int, becomes: int, reasons: set[str], labelled: int
) -> None:
    with open_bed(router("router6", flow_label=sent)) as bed:
        report = report_of(bed, lambda: bed.rules(f"meta l4proto udp ip6 flowlabel set {becomes}"))
    counts = forward(report)
    assert {reason for reason, count in counts.faults.items() if count} == set(reasons)
    assert (counts.received, counts.flow_label_set) == ((0, 0) if reasons else (FRAMES, labelled * FRAMES))


@pytest.mark.parametrize("name", ["router4", "router6"])
@pytest.mark.usefixtures("alone")
def test_each_flow_keeps_its_class_and_label(name: str) -> None:
    """A router that sets one of several classes to 0 is found by the frames that had another."""
    marks: dict[str, Any] = {"traffic_class": {"by_flow": [0, 0x28, 0xB8]}, "source_ports": {"mode": "pseudorandom"}}
    marks |= {"flow_label": "by_flow"} if name == "router6" else {}
    with open_bed(router(name, **marks)) as bed:
        assert forward(report_of(bed)).received == FRAMES
        family = "ip" if name == "router4" else "ip6"
        counts = forward(report_of(bed, lambda: bed.rules(f"meta l4proto udp {family} dscp ef {family} dscp set 0")))
    assert counts.faults["traffic_class"] == counts.faulty
    assert 0.15 * FRAMES < counts.faulty < 0.5 * FRAMES
    assert counts.received + counts.faulty == FRAMES


CHAINS: list[tuple[str, ...]] = [
    ("hop_by_hop",),
    ("destination_options",),
    ("routing",),
    ("fragment",),
    ("routing", "destination_options", "fragment"),
]
"""Each kind alone, and the chain that RFC 5180 section 5.3 recommends."""


@pytest.mark.parametrize("headers", CHAINS)
@pytest.mark.usefixtures("alone")
def test_a_router_leaves_extension_headers_alone(headers: tuple[str, ...]) -> None:
    sizes = {"family": "ipv6", "octets": 128}
    with open_bed(router("router6", extension_headers=list(headers), frame_sizes=sizes)) as bed:
        counts = forward(report_of(bed))
    assert (counts.received, counts.faulty) == (FRAMES, 0)


@pytest.mark.usefixtures("alone")
def test_a_filter_of_extension_headers_loses_all_of_them() -> None:
    sizes = {"family": "ipv6", "octets": 128}
    with open_bed(router("router6", extension_headers=["hop_by_hop"], frame_sizes=sizes)) as bed:
        counts = forward(report_of(bed, lambda: bed.rules("exthdr hbh exists drop")))
    assert (counts.received, counts.lost) == (0, FRAMES)


SMALLEST: list[tuple[str, dict[str, Any]]] = [
    ("linux-router4", {"family": "ipv4", "octets": 64}),
    ("linux-router6", {"family": "ipv6", "octets": 84}),
    ("tayga-siit64", {"family": "ipv4", "octets": 64}),
]
"""Gateway, and its smallest frame without anything behind the packet."""


@pytest.mark.parametrize("trailer", [1, 46])
@pytest.mark.parametrize(("recipe", "smallest"), SMALLEST)
@pytest.mark.usefixtures("alone")
def test_a_gateway_cuts_off_what_is_behind_the_packet(recipe: str, smallest: dict[str, Any], trailer: int) -> None:
    """With it the smallest packets of both families arrive, as short as they can be."""
    sizes = {**smallest, "octets": smallest["octets"] + trailer}
    with open_bed(netns_campaign(recipe, traffic={"frame_sizes": sizes, "trailer_octets": trailer})) as bed:
        report = report_of(bed)
    assert {direction for direction, _, _ in report.counts()} == {"forward", "reverse"}
    for _, _, counts in report.counts():
        assert counts.with_trailer == 0
        if "tayga" in recipe:  # in user space: it may lose frames on a busy machine, but changes none
            assert (counts.received + counts.lost, counts.faulty) == (FRAMES, 0)
            assert counts.received >= FRAMES // 10
        else:
            assert (counts.received, counts.lost, counts.faulty) == (FRAMES, 0, 0)


@pytest.mark.parametrize("name", ["router4", "router6"])
@pytest.mark.usefixtures("alone")
def test_what_is_behind_the_packet_may_come_back(name: str) -> None:
    """The kernel hands on the frame where it arrives, before its router would cut it."""
    family, octets, host = ("ipv4", 70, "198.19.0.2") if name == "router4" else ("ipv6", 90, "2001:2:0:8000::2")
    sizes, hop = {"family": family, "octets": octets}, "ip ttl" if family == "ipv4" else "ip6 hoplimit"
    with open_bed(router(name, frame_sizes=sizes, trailer_octets=6)) as bed:
        report_of(bed)  # so that the gateway knows its neighbour
        right = bed.interface("right")
        (link,) = json.loads(bed.in_gateway("ip", "-j", "link", "show", right))
        (neighbour,) = json.loads(bed.in_gateway("ip", "-j", "neighbour", "show", "to", host, "dev", right))
        hand_on = (
            f"meta l4proto udp {hop} set 9 ether saddr set {link['address']} ether daddr set {neighbour['lladdr']}"
            f' fwd to "{right}"'
        )
        text = chain_of("netdev", f'type filter hook ingress device "{bed.interface("left")}" priority 0', hand_on)
        report = report_of(bed, lambda: bed.table(text))
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.with_trailer) == (FRAMES, 0, FRAMES)
    assert judge(report, Fraction(0)).passed


def test_source_translation_of_a_router_is_named(router4: OpenBed) -> None:
    """The gateway behaves as a home router: the kernel translates the source address by connection tracking."""
    rule = "type nat hook postrouting priority srcnat; meta l4proto udp snat ip to 198.19.0.1"
    report = report_of(router4, lambda: router4.table(chain_of("ip", rule)))
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.lost) == (0, FRAMES, 0)
    assert {reason for reason, count in counts.faults.items() if count} == {"source_address"}
    assert "source_address" in refused_because(report)


def test_every_four_hundredth_frame_dropped_is_counted_and_located(router4: OpenBed) -> None:
    rule = "meta l4proto udp numgen inc mod 400 0 drop"
    report = report_of(router4, lambda: router4.rules(rule, hook="forward"))
    counts = forward(report)
    assert (counts.received, counts.lost, counts.faulty, counts.duplicate) == (FRAMES - 5, 5, 0, 0)
    assert [(run.index, run.length) for run in counts.loss.first_runs] == [(400 * n, 1) for n in range(5)]
    assert (counts.loss.runs, counts.loss.longest_run) == (5, 1)
    assert [place for place, lost in enumerate(counts.loss.by_slice) if lost] == [0, 20, 40, 60, 80]
    assert f"5 of {FRAMES} frames were lost" in refused_because(report)


def chain_of(family: str, *lines: str) -> str:
    """Return an nftables ruleset of one table with one chain."""
    return f"table {family} planted {{\n chain planted {{\n  " + "\n  ".join(lines) + "\n }\n}\n"


def test_duplicates_are_counted(router4: OpenBed) -> None:
    duplicate = f'meta l4proto udp numgen inc mod 100 0 dup to 198.19.0.2 device "{router4.interface("right")}"'
    text = chain_of("ip", "type filter hook forward priority 0", duplicate)
    report = report_of(router4, lambda: router4.table(text))
    counts = forward(report)
    assert (counts.received, counts.lost, counts.faulty, counts.duplicate) == (FRAMES, 0, 0, FRAMES // 100)
    assert f"{FRAMES // 100} frames arrived more than once" in refused_because(report)


def test_duplicates_never_stand_in_for_lost_frames(router4: OpenBed) -> None:
    duplicate = f'meta l4proto udp numgen inc mod 100 1 dup to 198.19.0.2 device "{router4.interface("right")}"'
    drop = "meta l4proto udp numgen inc mod 100 0 drop"
    text = chain_of("ip", "type filter hook forward priority 0", duplicate, drop)
    report = report_of(router4, lambda: router4.table(text))
    counts = forward(report)
    assert (counts.received, counts.lost, counts.duplicate) == (FRAMES - FRAMES // 100, FRAMES // 100, FRAMES // 100)
    words = refused_because(report)
    assert "were lost" in words
    assert "arrived more than once" in words


ROUTES = [
    ("router4", "-4", "198.19.0.0/16", "icmpv4 3/0"),
    ("router6", "-6", "2001:2:0:8000::/56", "icmpv6 1/0"),
]
UNLIMITED = {"-4": "net.ipv4.icmp_ratemask=0", "-6": "net.ipv6.icmp.ratemask=128"}
"""By what ip calls a family."""
ICMP_AGAIN_S = 6
"""Where no IPv4 route exists, Linux answers each host's first five frames, whatever is set, and five more after 5 s."""
REJECTIONS = [
    ("router4", "icmp type host-unreachable", "icmpv4 3/1", UNLIMITED["-4"]),
    ("router4", "icmp type admin-prohibited", "icmpv4 3/13", UNLIMITED["-4"]),
    ("router6", "icmpv6 type admin-prohibited", "icmpv6 1/1", UNLIMITED["-6"]),
    ("router6", "icmpv6 type no-route", "icmpv6 1/0", UNLIMITED["-6"]),
]
"""What the gateway answers to each frame, how it is counted, and the setting with which Linux sends all of them."""


@pytest.mark.parametrize(("name", "family", "network", "icmp"), ROUTES)
def test_a_route_to_nowhere_is_told_by_its_icmp_errors(
    name: str, family: str, network: str, icmp: str, request: pytest.FixtureRequest
) -> None:
    bed: OpenBed = request.getfixturevalue(name)
    bed.in_gateway("sysctl", "-qw", UNLIMITED[family])  # else one in a second, which may lie between two trials
    attempts = itertools.count()

    @contextlib.contextmanager
    def without_route() -> Iterator[None]:
        if next(attempts) > 0:
            time.sleep(ICMP_AGAIN_S)
        route = bed.in_gateway("ip", family, "route", "show", network).split("\n")[0].split()
        bed.in_gateway("ip", family, "route", "del", *route)
        try:
            yield
        finally:
            bed.in_gateway("ip", family, "route", "add", *(word for word in route if word != "linkdown"))

    report = report_of(bed, without_route)
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.lost) == (0, 0, FRAMES)
    errors = {kind: count for kind, count in report.ports["left"].foreign.icmp.items() if count}
    assert list(errors) == [icmp]
    assert 1 <= errors[icmp] <= FRAMES
    assert ("left", "icmp_error") in {(kept.side, kept.reason) for kept in report.kept_frames}
    assert f"{FRAMES} of {FRAMES} frames were lost" in refused_because(report)


@pytest.mark.parametrize(("name", "answer", "icmp", "unlimited"), REJECTIONS)
def test_every_icmp_error_is_counted_by_type_and_code(
    name: str, answer: str, icmp: str, unlimited: str, request: pytest.FixtureRequest
) -> None:
    bed: OpenBed = request.getfixturevalue(name)
    bed.in_gateway("sysctl", "-qw", unlimited)
    report = report_of(bed, lambda: bed.rules(f"meta l4proto udp reject with {answer}", hook="forward"))
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.lost) == (0, 0, FRAMES)
    assert {kind: count for kind, count in report.ports["left"].foreign.icmp.items() if count} == {icmp: FRAMES}
    refused_because(report)


def assert_translated_wrongly(counts: Counts, reason: str) -> None:
    """Check that every frame that a translator delivered has one fault.

    A translator in user space may lose frames on a busy machine. tayga itself writes 0 where the UDP checksum comes to
    0 (one frame in 65,536), against RFC 768: that is counted beside the planted fault.
    """
    assert counts.received == 0
    assert counts.faulty + counts.lost == FRAMES
    assert counts.faulty >= FRAMES // 10
    faults = {name: count for name, count in counts.faults.items() if count}
    assert faults.pop(reason) == counts.faulty
    assert faults.pop("udp_checksum", 0) <= 5
    assert faults == {}


STATED, OTHER = "\nprefix 2001:2:0:6400::/96\n", "\nprefix 2001:2:0:6500::/96\n"
OTHER_PREFIXES = [
    ("tayga-siit64", STATED, OTHER, "reverse", "source_address"),
    ("tayga-clat", STATED, OTHER, "forward", "destination_address"),
    ("tayga-clat", "/16 2001:2:0:4000::", "/16 2001:2:0:4001::", "forward", "source_address"),
]
"""Recipe, its translator's prefix, another one, the direction of frames with a wrong address, and their reason."""


@pytest.mark.parametrize(("name", "before", "after", "direction", "reason"), OTHER_PREFIXES)
@pytest.mark.usefixtures("alone")
def test_another_translation_prefix_is_named(
    name: str, before: str, after: str, direction: str, reason: str, tmp_path: Path
) -> None:
    """The translator is configured with another prefix than the campaign says."""
    with open_bed(netns_campaign(changed_recipe(tmp_path, name, (before, after)))) as bed:
        report = report_of(bed)
    counts = {way: counts for way, _, counts in report.counts()}
    assert_translated_wrongly(counts.pop(direction), reason)
    (others,) = counts.values()
    assert (others.received, others.lost) == (0, FRAMES)
    assert reason in refused_because(report)


@pytest.mark.parametrize("rule", nightly_but({1}, "the same finding", ["ip dscp set 0", "ip dscp != 0 drop"]))
@pytest.mark.usefixtures("alone")
def test_doctor_says_what_becomes_of_another_traffic_class(tmp_path: Path, rule: str) -> None:
    """A gateway that clears classes, or drops what has one, forwards every frame of class 0."""
    chain = "nft add chain ip planted c '{ type filter hook postrouting priority 0; }'"
    commands = ["nft add table ip planted", chain, f"nft add rule ip planted c meta l4proto udp {rule}"]
    version = 'version = ["uname -sr"]'
    recipe = changed_recipe(tmp_path, "linux-router4", (version, f"setup = {json.dumps(commands)}\n{version}"))
    campaign = netns_campaign(recipe, throughput={})
    findings = {finding.check: finding for finding in preflight.check_gateway_path(campaign)}
    assert "gateway path, forward" in findings, findings
    assert findings["gateway path, forward"].status == "ok"
    probed = findings["traffic class 184, forward"]
    assert probed.status == "warning"
    assert ("10 with another class" if "set" in rule else "10 lost") in probed.observed


@pytest.mark.parametrize(
    ("dont_fragment", "told"),
    nightly_but(
        {1}, "fragments alone", [(False, "10 x wrong fragment"), (True, "the gateway states an MTU of 1000 octets")]
    ),
)
@pytest.mark.usefixtures("alone")
def test_doctor_says_that_the_gateway_has_a_smaller_mtu(tmp_path: Path, dont_fragment: bool, told: str) -> None:
    """Small frames pass; large ones are fragmented, or refused where they must not be."""
    version = 'version = ["uname -sr"]'
    setup = 'setup = ["ip link set {right} mtu 1000"]'
    recipe = changed_recipe(tmp_path, "linux-router4", (version, f"{setup}\n{version}"))
    traffic = {"frame_sizes": {"family": "ipv4", "octets": [64, 1518]}, "dont_fragment": dont_fragment}
    campaign = netns_campaign(recipe, traffic={**traffic, "direction": ["forward"]})
    findings = {finding.check: finding for finding in preflight.check_gateway_path(campaign)}
    assert "gateway path, forward" in findings, findings
    assert findings["gateway path, forward"].status == "ok"
    largest = findings["largest frames, forward"]
    assert largest.status == "failed"
    assert "0 of 10 frames of up to 1518 octets correct" in largest.observed
    assert told in largest.observed
    assert largest.remedy == preflight.MTU_REMEDY


@pytest.mark.usefixtures("alone")
def test_a_campaign_says_so_where_no_frame_passes(tmp_path: Path) -> None:
    """The MTU is asked for once, and named in place of a throughput."""
    version = 'version = ["uname -sr"]'
    setup = 'setup = ["ip link set {right} mtu 1000"]'
    recipe = changed_recipe(tmp_path, "linux-router4", (version, f"{setup}\n{version}"))
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 1518}, "dont_fragment": True, "direction": "forward"}
    search = {"maximum": "2k", "minimum": "1k", "resolution": "1k", "search_duration": "200ms"}
    document = netns_document(recipe, traffic=traffic, throughput=search, repetitions=1)
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    if run.limited_by in NOT_THE_GATEWAY:
        nothing_compared("the Tester could not offer a load")
        return
    assert run.refused is not None
    assert "too large for a link behind the gateway: the gateway states an MTU of 1,000 octets" in run.refused
    assert {loss.cause for loss in run.losses} == {"too_large"}


@pytest.mark.usefixtures("alone")
def test_doctor_says_so_of_a_nat_too(tmp_path: Path) -> None:
    """Its connections are not even established with large frames."""
    setup = 'setup = ["nft -f {dir}/rules.nft"'
    recipe = changed_recipe(tmp_path, "nft-nat44", (setup, f'{setup}, "ip link set {{right}} mtu 1000"'))
    traffic = {"frame_sizes": {"family": "ipv4", "octets": [64, 1518]}, "dont_fragment": True}
    campaign = netns_campaign(recipe, traffic=traffic, connections={"count": 10, "rate": "1k"})
    findings = {finding.check: finding for finding in preflight.check_gateway_path(campaign)}
    assert "the gateway states an MTU of 1000 octets" in findings["largest frames, forward"].observed


@pytest.mark.usefixtures("alone")
def test_another_number_of_hops_is_named(tmp_path: Path) -> None:
    """The campaign expects another hop limit than the chain of hops leaves."""
    recipe = changed_recipe(tmp_path, "tayga-siit64", ("hop_limit_decrement = 3 ", "hop_limit_decrement = 1 "))
    with open_bed(netns_campaign(recipe)) as bed:
        report = report_of(bed)
    for _, _, counts in report.counts():
        assert_translated_wrongly(counts, "hop_limit")
    assert "hop_limit" in refused_because(report)


@pytest.mark.usefixtures("alone")
def test_ipv6_fragments_are_named(tmp_path: Path) -> None:
    """The translator believes IPv6 to carry less than it does, and fragments what has no DF (RFC 7915 section 4)."""
    recipe = changed_recipe(tmp_path, "tayga-siit64", ("\nmtu = 9236\n", "\nmtu = 1500\n"))
    sizes = {"frame_sizes": {"family": "ipv4", "octets": [1400]}}
    told = {"lowest_ipv6_mtu": 1500}
    with open_bed(netns_campaign(recipe, gateway=told, traffic={"direction": "reverse", **sizes})) as bed:
        report = report_of(bed)
    ((_, _, counts),) = report.counts()
    assert counts.received == 0
    assert counts.faulty >= FRAMES // 10
    assert counts.faults["fragment"] == counts.faulty
    assert report.ports["left"].foreign.fragment >= counts.faulty  # the rest of each
    assert "fragment" in refused_because(report)


@pytest.mark.usefixtures("alone")
def test_ipv4_fragments_are_named() -> None:
    """The far link carries less than the campaign believes, and the router fragments."""
    sizes = {"frame_sizes": {"family": "ipv4", "octets": [1518]}}
    with open_bed(netns_campaign("linux-router4", traffic={"direction": "forward", **sizes})) as bed:
        bed.in_gateway("ip", "link", "set", bed.interface("right"), "mtu", "1000")
        report = report_of(bed)
    counts = forward(report)
    assert (counts.received, counts.faulty, counts.faults["fragment"]) == (0, FRAMES, FRAMES)
    assert report.ports["right"].foreign.fragment == FRAMES  # the rest of each
    assert f"fragment {FRAMES}" in refused_because(report)

"""What doctor says of a gateway's tunnels: one remedy a fault, with what simulated frames show."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trial_facts import blank
from tests.unit.test_aftr import aftr
from tests.unit.test_b4 import edge as b4
from tests.unit.test_dut_doctor import report
from tests.unit.test_lwaftr import PART, lwaftr
from tests.unit.test_mesh import MAP_E, mesh
from tests.unit.test_sixrd import relay

from gatemark import preflight
from gatemark.config.model import Campaign
from gatemark.findings import Finding
from gatemark.packets import Flow, Tunnel, build, encapsulated
from gatemark.trial.report import Counts, KeptFrame
from gatemark.tunnel_preflight import sixrd_fits


def frame(
    tunnel: tuple[str, str],
    inner: tuple[str, str],
    *,
    hop_limit: int = 64,
    traffic_class: int = 0,
    inner_class: int = 0,
    reason: str,
) -> KeptFrame:
    """Return a frame that was kept, with a packet in a tunnel."""
    source, destination = map(ip_address, inner)
    flow = Flow(kind="udp", source=source, destination=destination, source_port=1, destination_port=2)
    outer = Tunnel(source=ip_address(tunnel[0]), destination=ip_address(tunnel[1]))
    inside = build(flow, bytes(8), hop_limit=9, traffic_class=inner_class)
    packet = encapsulated(inside, outer, hop_limit=hop_limit, traffic_class=traffic_class)
    ether_type = b"\x08\0" if outer.source.version == 4 else b"\x86\xdd"
    return KeptFrame(side="right", reason=reason, octets=(bytes(12) + ether_type + packet).hex())


def said_of(campaign: Campaign, reasons: Sequence[str], *kept: KeptFrame) -> Finding:
    """Return what is said of a direction in which all frames have these faults."""
    counts = blank(Counts, intended=10, offered=10, faulty=10, faults=dict.fromkeys(reasons, 10))
    (finding,) = preflight.judge_path(campaign, report(counts).model_copy(update={"kept_frames": kept}))
    assert finding.status == "failed"
    return finding


HOSTS = ("198.18.0.2", "198.19.0.2")
B4, AFTR = "2001:2:0:ffff::1", "2001:2:0:8000::2"
ELSEWHERE = "2001:2:0:ffff::9"


@pytest.mark.parametrize(
    ("reason", "shown", "observed", "remedy"),
    [
        (
            "tunnel_source",
            {"tunnel": (ELSEWHERE, AFTR)},
            f"tunnels begin at {ELSEWHERE}, not at {B4}",
            "correct the gateway's end of its tunnels, or set gateway.tunnel.address",
        ),
        (
            "tunnel_destination",
            {"tunnel": (B4, ELSEWHERE)},
            f"tunnels lead to {ELSEWHERE}, not to {AFTR}",
            "correct where the gateway's tunnels lead, or set right.ipv6.address",
        ),
        (
            "tunnel_traffic_class",
            {"tunnel": (B4, AFTR), "traffic_class": 40},
            "outer headers of traffic class 40, not that of the packet inside",
            "correct it in the gateway, or set gateway.tunnel.traffic_class = 40",
        ),
        (
            "tunnel_header",
            {"tunnel": (B4, AFTR), "hop_limit": 63},
            "outer headers of hop limit 63, not 64",
            "correct the hop limit in the gateway, or set gateway.tunnel.hop_limit = 63",
        ),
        (
            "tunnel_option",
            None,
            "options before the packet in the tunnel",
            "keep the gateway from adding options, such as an encapsulation limit: on Linux with `encaplimit none`",
        ),
        (
            "tunnel_missing",
            None,
            "",
            f"the gateway sends packets without their tunnel: route them into the one to {AFTR}",
        ),
        (
            "tunnel_left",
            None,
            "",
            f"the gateway forwards tunnels that end in it: give it {B4}, or set gateway.tunnel.address",
        ),
    ],
)
def test_each_fault_of_a_b4_has_its_remedy(
    reason: str, shown: dict[str, Any] | None, observed: str, remedy: str
) -> None:
    campaign = b4(gateway={"technology": "b4", "tunnel": {"address": B4, "hop_limit": 64}})
    kept = () if shown is None else (frame(inner=HOSTS, reason=reason, **shown),)
    finding = said_of(campaign, [reason], *kept)
    assert finding.remedy == remedy
    told = ", ".join(filter(None, [f"10 x wrong {reason.replace('_', ' ')}", observed]))
    assert finding.observed == f"0 of 10 frames correct; {told}"


def test_all_faults_at_once_have_all_their_remedies_without_a_frame_as_well() -> None:
    campaign = b4(gateway={"technology": "b4", "tunnel": {"address": B4, "hop_limit": 64, "traffic_class": 8}})
    reasons = ["tunnel_header", "tunnel_option", "tunnel_source", "tunnel_destination", "tunnel_traffic_class"]
    remedies = said_of(campaign, reasons).remedy.split("; ")
    assert len(remedies) == 5 and remedies[0].startswith("keep the gateway from adding options")
    assert remedies[3:] == [
        "correct it in the gateway, or set gateway.tunnel.traffic_class to what the gateway writes",
        'correct the hop limit in the gateway, or set gateway.tunnel.hop_limit = "any"',
    ]


def test_a_class_that_is_copied_is_told_where_another_is_stated() -> None:
    campaign = b4(gateway={"technology": "b4", "tunnel": {"address": B4, "traffic_class": 8}})
    kept = frame((B4, AFTR), HOSTS, reason="tunnel_traffic_class")
    finding = said_of(campaign, ["tunnel_traffic_class"], kept)
    assert "outer headers of traffic class 0, not 8" in finding.observed
    assert finding.remedy.endswith('or set gateway.tunnel.traffic_class = "copied"')


def test_a_header_with_the_due_hop_limit_has_another_fault() -> None:
    campaign = b4(gateway={"technology": "b4", "tunnel": {"address": B4, "hop_limit": 64}})
    finding = said_of(campaign, ["tunnel_header"], frame((B4, AFTR), HOSTS, reason="tunnel_header"))
    assert "wrong length or checksum there" in finding.observed and "outer headers" in finding.remedy


def test_tunnels_of_other_subscribers_are_told_with_whose_they_are() -> None:
    kept = frame(("2001:db8:ffff::1", "2001:2::44"), ("198.19.0.2", "10.0.0.1"), reason="tunnel_destination")
    finding = said_of(aftr(), ["tunnel_destination", "other_subscriber"], kept)
    assert "a packet for 10.0.0.1 came in the tunnel to 2001:2::44" in finding.observed
    assert finding.remedy == (
        "the AFTR must tell connections apart by their B4 (RFC 6333 section 6.6); compare the B4s that it knows with"
        " left.ipv6"
    )
    finding = said_of(lwaftr(softwires=[PART]), ["other_subscriber"])
    assert "`gatemark export` prints" in finding.remedy
    assert "without their tunnels" in said_of(aftr(), ["tunnel_missing"]).remedy


def test_a_customer_edge_with_another_address_has_another_rule() -> None:
    finding = said_of(mesh(MAP_E), ["tunnel_source"])
    assert finding.remedy.endswith("or compare its rule with [map] (`gatemark plan`)")


EDGES = ("198.18.0.2", "198.18.0.77", "198.18.0.101")
PREFIX = IPv6Network("2001:db8::/32")


def inner_of(address: str, prefix: IPv6Network = PREFIX, mask: int = 0) -> IPv6Address:
    """Return the host behind a customer edge (RFC 5969 section 4)."""
    below = 32 - mask
    suffix = int(IPv4Address(address)) & ((1 << below) - 1)
    return IPv6Address(int(prefix.network_address) | suffix << (128 - prefix.prefixlen - below) | 1)


def end_of(inner: IPv6Address, length: int, mask: int, base: str) -> IPv4Address:
    """Return the end of the tunnel that a relay with these lengths computes, bit by bit as text."""
    bits = f"{int(inner):0128b}"[length : length + 32 - mask]
    return IPv4Address(int(f"{int(IPv4Address(base)):032b}"[:mask] + bits, 2))


@pytest.mark.parametrize(
    ("length", "mask", "words"),
    [
        (28, 0, 'prefix = "2001:db0::/28"'),
        (24, 0, 'prefix = "2001:d00::/24"'),
        (32, 16, "ipv4_mask_length = 16"),
        (32, 8, "ipv4_mask_length = 8"),
    ],
)
def test_another_6rd_prefix_or_mask_is_named(length: int, mask: int, words: str) -> None:
    kept = [
        frame(
            ("198.18.0.1", str(end_of(inner_of(address), length, mask, address))),
            ("2001:2:0:8000::2", str(inner_of(address))),
            reason="tunnel_destination",
        )
        for address in EDGES
    ]
    finding = said_of(relay(), ["tunnel_destination"], *kept)
    assert f"; the gateway behaves as it would with {words}" in finding.observed
    assert finding.remedy == f"correct the gateway, or set {words} in gateway.tunnel"


@settings(max_examples=60)
@given(length=st.integers(16, 40), mask=st.integers(0, 24))
def test_a_relay_with_other_lengths_is_among_those_that_fit(length: int, mask: int) -> None:
    sixrd = relay().sixrd
    assert sixrd is not None
    arrived = [(inner_of(address), end_of(inner_of(address), length, mask, EDGES[0])) for address in EDGES]
    if any(inner not in IPv6Network((PREFIX.network_address, length), strict=False) for inner, _ in arrived):
        return  # it would forward them to nobody
    if length + 32 - mask > 64 or (length, mask) == (32, 0):
        return
    fits = sixrd_fits(sixrd, arrived)
    assert fits
    if (length == 32) != (mask == 0):
        words = f"ipv4_mask_length = {mask}" if length == 32 else f'"{IPv6Network((PREFIX[0], length), strict=False)}"'
        assert any(words in fit for fit in fits)


def test_what_no_6rd_prefix_explains_is_told_as_it_is() -> None:
    inner = str(inner_of(EDGES[0]))
    kept = frame(("198.18.0.1", "203.0.113.9"), ("2001:2:0:8000::2", inner), reason="tunnel_destination")
    finding = said_of(relay(), ["tunnel_destination"], kept)
    assert finding.observed.endswith(f"a packet for {inner} came in the tunnel to 203.0.113.9")
    assert finding.remedy == "compare the gateway's 6rd prefix and IPv4 mask length with gateway.tunnel"


@pytest.mark.parametrize(
    ("stated", "inside", "outside", "mode"),
    [
        ("copied", 2, 0, "compatibility"),
        ("copied", 3, 2, "full_functionality"),
        (0, 1, 1, "normal"),
        (0, 3, 2, "full_functionality"),
        ("copied", 3, 1, None),
    ],
)
def test_the_way_of_writing_the_congestion_field_is_found(
    stated: int | str, inside: int, outside: int, mode: str | None
) -> None:
    campaign = b4(gateway={"technology": "b4", "tunnel": {"address": B4, "traffic_class": stated}})
    kept = frame((B4, AFTR), HOSTS, traffic_class=outside, inner_class=inside, reason="tunnel_traffic_class")
    remedy = said_of(campaign, ["tunnel_traffic_class"], kept).remedy
    assert remedy.endswith(f'or set gateway.tunnel.ecn = "{mode}"') == (mode is not None)

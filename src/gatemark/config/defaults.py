"""Default values of a campaign, each with the section it comes from. `gatemark plan` prints all of them."""

from __future__ import annotations

from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from typing import Final

SECOND_NS: Final = 1_000_000_000
MILLISECOND_NS: Final = 1_000_000

SEED: Final = 1
REPETITIONS: Final = 20
"""RFC 8219 section 12: at least 20 repetitions."""

TRIAL_DURATION_NS: Final = 60 * SECOND_NS
"""RFC 2544 section 24: at least 60 seconds."""
SETTLE_NS: Final = 2 * SECOND_NS
"""RFC 2544 section 23 a: after a routing update."""
LEARN_NS: Final = 2 * SECOND_NS
"""RFC 2544 section 23 b: after the learning frames."""
DRAIN_NS: Final = 2 * SECOND_NS
"""RFC 2544 section 23 d: for residual frames."""
REST_NS: Final = 5 * SECOND_NS
"""RFC 2544 section 23 e: for the gateway to restabilise."""
SEARCH_DURATION_NS: Final = 1 * SECOND_NS
"""RFC 2544 section 24 allows shorter trials while searching; the result is confirmed at full length."""

SEARCH_START: Final = 10_000
"""First load of a search that finds its maximum itself, per second: few enough that almost every gateway passes it, so
that no trial begins with an overload of many times what it forwards; ten doublings later it is 10 million."""

LATENCY_DURATION_NS: Final = 120 * SECOND_NS
"""RFC 8219 section 7.2: at least 120 seconds."""
FIRST_TAG_NS: Final = 60 * SECOND_NS
"""RFC 8219 section 7.2: after 60 seconds."""
TAGS: Final = 50_000
TAGS_MIN: Final = 500
"""RFC 8219 section 7.2: at least 500; then the 99.9th percentile is the longest delay, and one lost tag spoils it."""

BURST_CEILING_NS: Final = 30 * SECOND_NS
"""RFC 9004 section 6.2."""
BURST_WAIT_NS: Final = 2 * SECOND_NS
"""RFC 9004 section 6.2."""
BURSTS: Final = 50
"""RFC 2544 section 26.4: at least 50 times."""
OVERLOAD: Final = Fraction(11, 10)
"""RFC 2544 section 26.5: 110 % of the throughput."""
BEFORE_RESET_NS: Final = 15 * SECOND_NS
"""RFC 6201 section 4: at least 15 seconds."""
OBSERVE_NS: Final = 60 * SECOND_NS

SOURCE_PORTS: Final = (1024, 65535)
"""RFC 4814 section 4.5."""
DESTINATION_PORTS: Final = (1, 49151)
"""RFC 4814 section 4.5."""
HOP_LIMIT: Final = 10
"""RFC 2544 appendix C.2.6.4: time to live of the test frame."""
HOP_LIMIT_DECREMENT: Final = 1

MTU: Final = 1500
"""Octets of an IP packet on Ethernet."""
STANDARD_SIZES_IPV4: Final = (64, 128, 256, 512, 768, 1024, 1280, 1518, 2048, 4096, 8192, 9216)
"""RFC 8219 section 5.1.1, without 1522: sizes here never include a VLAN tag."""
STANDARD_SIZES_IPV6: Final = (84, 128, 256, 512, 768, 1024, 1280, 1518, 2048, 4096, 8192, 9216)
"""RFC 8219 section 5.1.1: 84 in place of 64, which an IPv6 frame with identifying data cannot have."""
FRAME_OCTETS_IPV4: Final = (64, 9216)
"""Smallest and largest IPv4 frame with FCS; 64 leaves 18 octets of UDP data."""
FRAME_OCTETS_IPV6: Final = (84, 9236)
"""Smallest and largest IPv6 frame with FCS: 20 octets more than IPv4."""
EXTENSION_OCTETS: Final = {"hop_by_hop": 8, "destination_options": 8, "routing": 24, "fragment": 8}
"""RFC 5180 section 5.3; a routing header holds one segment (RFC 8754 section 2)."""
TRAILER_OCTETS_MAX: Final = 64
"""Octets behind an IP packet: padding to 60 octets, an FCS, or what a switch adds are fewer."""
TRANSLATION_OVERHEAD: Final = 20
"""Octets by which an IPv6 header is longer than an IPv4 header (RFC 7915)."""
HEADER_OCTETS: Final = {"ipv4": 20, "ipv6": 40}
"""Octets of an IP header, by which a packet is longer in a tunnel."""
B4_HOST: Final = IPv4Address("10.0.0.1")
"""The host behind each B4."""
B4_HOST_NETWORKS: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "192.0.0.0/29")))
"""Where hosts behind B4s have their addresses (RFC 1918 section 3, RFC 6333 section 5.7)."""
B4_HOSTS_MAX: Final = 1 << 16
"""The engine counts B4s and the hosts behind them in 16 bits."""
TUNNEL_HOP_LIMIT: Final = 64
"""Hop limit of outer headers that the Tester sends, and those of a relay that gatemark makes and nobody states."""
LINK_OVERHEAD: Final = 18
"""Ethernet header (14 octets) and FCS (4 octets)."""
VLAN_TAG_OCTETS: Final = 4
"""IEEE 802.1Q tag; frame sizes are without it."""
LOWEST_IPV6_MTU: Final = 1280
"""RFC 7915 section 4: a translator fragments IPv4 packets without DF whose translation would be larger."""

RETRIES: Final = 3
LATENESS_MAX_NS: Final = MILLISECOND_NS
SUSPECT_RETRIES: Final = 3
KEPT_FRAMES_MAX: Final = 4
"""Bad frames kept for each side and reason."""
PROGRESS_NS: Final = 500 * MILLISECOND_NS
RESOLVE_TIMEOUT_NS: Final = 3 * SECOND_NS

RING_FRAMES: Final = 4096

CONNECTION_SOURCE_PORTS: Final = (1024, 41023)
"""RFC 9693 section 4.1 wants a few times 10,000; none below 1024, which gateways may map to a range of its own
(RFC 6146 section 3.5.1.1)."""
PHASE_ONE_TIMEOUT_NS: Final = 500 * MILLISECOND_NS
PHASE_GAP_NS: Final = 500 * MILLISECOND_NS
PHASE_ONE_RETRIES: Final = 3
CAPACITY_START: Final = 1000
POOL_PORTS: Final = (1024, 65535)
TIMEOUT_MARGIN_NS: Final = 2 * SECOND_NS
"""The gateway's UDP timeout must exceed the length of both phases by this time."""

TELEMETRY_INTERVAL_NS: Final = SECOND_NS
"""Time from one sample of the gateway's host to the next: each costs it about a millisecond."""
TELEMETRY_INTERVAL_LIMITS_NS: Final = (SECOND_NS // 10, 60 * SECOND_NS)

COMMAND_LIMIT_NS: Final = 30 * SECOND_NS
"""How long a command of the gateway may take that only reads or sets something."""
DELETION_LIMIT_NS: Final = 600 * SECOND_NS
"""How long it may take to delete all connections: a large table takes its time."""
BOOT_LIMIT_NS: Final = 600 * SECOND_NS
START_LIMIT_NS: Final = 300 * SECOND_NS
"""How long a gateway may take to start or to be reset: it may be a machine that boots."""

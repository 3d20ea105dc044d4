"""Configuration files of Maptperf, with the values of the experiments that its authors published."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.config.key_value_file import Imported
from gatemark.config.map_tables import MapModel
from gatemark.config.maptperf import read_maptperf
from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.problems import domain_problems

SELF_TEST = """\
# Maptperf.conf
Tester-L-IPv6 2001:db8:6::41
Tester-R-IPv4 203.0.113.56
Tester-R-IPv6 2001:db8:42::2 # for background traffic
Tester-L-MAC ec:f4:bb:dd:07:28
Tester-R-MAC ec:f4:bb:dd:07:2a
DUT-L-MAC ec:f4:bb:dd:07:2a
DUT-R-MAC ec:f4:bb:dd:07:28

FW-dport-min 1
FW-dport-max 49,151
RV-sport-min 1024
RV-sport-max 65,535
bg-dport-min 1
bg-dport-max 49,151
bg-sport-min 1024
bg-sport-max 65,535
FW-var-sport 3
FW-var-dport 1
RV-var-sport 2
RV-var-dport 3
NUM-OF-CEs 1000,000
BMR-IPv6-Prefix 2001:db8:ce::
BMR-IPv6-Prefix-Length 51
BMR-IPv4-Prefix 192.0.2.0
BMR-IPv4-Prefix-Length 24
BMR-EA-Len 20
DMR-IPv6-Prefix 64:ff9b::
DMR-IPv6-Prefix-Length 96
CPU-FW-Send 2
CPU-FW-Receive 4
CPU-RV-Send 6
CPU-RV-Receive 4
Mem-Channels 2
FW 1 #Forward direction
RV 1
Promisc 0
"""
SHORTEST = """\
Tester-L-IPv6 2001:db8:6::41
Tester-R-IPv4 203.0.113.56
NUM-OF-CEs 1000
BMR-IPv6-Prefix 2001:db8:ce::
BMR-IPv6-prefix-length 51
BMR-IPv4-Prefix 192.0.2.0
BMR-IPv4-prefix-length 24
BMR-EA-length 13
DMR-IPv6-Prefix 64:ff9b::
DMR-IPv6-prefix-length 96
"""


def read(text: str) -> Imported:
    return read_maptperf(text, where="Maptperf.conf", technology="any")


def test_a_whole_file() -> None:
    imported = read(SELF_TEST)
    assert imported.document == {
        "name": "maptperf",
        "gateway": {"technology": "any"},
        "testbed": {"kind": "ports", "cores": [2, 4, 6]},
        "left": {"gateway_mac": "ec:f4:bb:dd:07:2a", "ipv6": {"address": "2001:db8:6::41"}},
        "right": {
            "gateway_mac": "ec:f4:bb:dd:07:28",
            "ipv4": {"address": "203.0.113.56"},
            "ipv6": {"address": "2001:db8:42::2"},
        },
        "traffic": {
            "direction": "bidirectional",
            "forward": {
                "source_ports": {"mode": "pseudorandom", "range": "1024-65535"},
                "destination_ports": {"mode": "increasing", "range": "1-49151"},
            },
            "reverse": {
                "source_ports": {"mode": "decreasing", "range": "1024-65535"},
                "destination_ports": {"mode": "pseudorandom", "range": "1-49151"},
            },
        },
        "map": {
            "edges": 1_000_000,
            "order": "pseudorandom",
            "choice": "cycle",
            "forward_ports": "pseudorandom",
            "reverse_ports": "pseudorandom",
            "domains": [
                {
                    "ipv6": "2001:db8:ce::/51",
                    "ipv4": "192.0.2.0/24",
                    "ea_bits": 20,
                    "psid_offset": 0,
                    "dmr": "64:ff9b::/96",
                    "exclude": ["first_and_last_suffix"],
                }
            ],
        },
    }
    assert imported.notes == (
        "Tester-L-MAC, line 5: is left out: the left port has an address of its own.",
        "Tester-R-MAC, line 6: is left out: the right port has an address of its own.",
        "Mem-Channels, line 34: is left out: the engine does not need it.",
        "64:ff9b::/96 must not represent 203.0.113.56, which is not global (RFC 6052 section 3.1): add"
        " gateway.well_known_prefix_allowed = true if the gateway translates it anyway.",
    )
    assert MapModel.model_validate(imported.document["map"]).rules[0].edge_count == 254 * 4096


def test_the_shortest_file() -> None:
    imported = read(SHORTEST)
    assert imported.document["testbed"] == {"kind": "ports", "cores": []}
    assert imported.document["left"] == {"ipv6": {"address": "2001:db8:6::41"}}
    assert imported.document["right"] == {"ipv4": {"address": "203.0.113.56"}}
    assert imported.document["traffic"]["direction"] == "bidirectional"
    assert imported.document["traffic"]["forward"]["destination_ports"]["range"] == "1-49151"
    assert len(imported.notes) == 1


@pytest.mark.parametrize(("switched_off", "direction"), [("RV", "forward"), ("FW", "reverse")])
def test_a_single_direction(switched_off: str, direction: str) -> None:
    cpus = "".join(f"CPU-{way}-{work} {number}\n" for number, (way, work) in enumerate(
        [("FW", "Send"), ("FW", "Receive"), ("RV", "Send"), ("RV", "Receive")]
    ))  # fmt: skip
    document = read(f"{SHORTEST}{cpus}{switched_off} 0\n").document
    assert document["traffic"]["direction"] == direction
    assert set(document["traffic"]) == {"direction", direction}
    assert document["testbed"]["cores"] == ([0, 1] if direction == "forward" else [2, 3])


def test_ports_of_the_background_that_are_lost_are_told() -> None:
    imported = read(f"{SHORTEST}bg-dport-min 5000\n")
    assert imported.document["traffic"]["reverse"]["destination_ports"]["range"] == "5000-49151"
    assert imported.notes[0] == (
        "bg-dport 5000-49151 is left out for forward frames: their background has the ports 1-49151 of FW-dport, like"
        " the foreground."
    )


def test_everything_that_is_wrong_is_told_at_once() -> None:
    text = SHORTEST.replace("203.0.113.56", "203.0.113.256").replace("prefix-length 51", "prefix-length 151")
    text += "FW-var-sport 4\nNUM-OF-CEs 10\nBMR-PSID 7\nsalt\nRV-sport-min 2000\nRV-sport-max 1000\nFW\nRV 1 0\n"
    with pytest.raises(ConfigError) as error:
        read(text)
    assert {problem.where: problem.what for problem in error.value.problems} == {
        "Maptperf.conf: line 2: Tester-R-IPv4": "'203.0.113.256' is not an IPv4 address",
        "Maptperf.conf: line 5: BMR-IPv6-prefix-length": "'151' is not between 0 and 128",
        "Maptperf.conf: line 11: FW-var-sport": "'4' is not between 1 and 3",
        "Maptperf.conf: line 12: NUM-OF-CEs": "is written in line 3 as well",
        "Maptperf.conf: line 13: BMR-PSID": "unknown key",
        "Maptperf.conf: line 14: salt": "unknown key",
        "Maptperf.conf: line 16: RV-sport-max": "1000 is below the 2000 of RV-sport-min",
        "Maptperf.conf: line 17: FW": "has no value",
        "Maptperf.conf: line 18: RV": "has 2 values",
    }
    assert all(problem.fix for problem in error.value.problems)
    with pytest.raises(ConfigError) as error:
        read("FW 0\nRV 0\nDUT-L-MAX 02:00:00:00:00:01\n")
    fixes = {problem.where: problem.fix for problem in error.value.problems}
    assert len(fixes) == 12
    assert fixes["Maptperf.conf: line 3: DUT-L-MAX"] == "did you mean DUT-L-MAC?"
    assert "Maptperf.conf: BMR-EA-length" in fixes
    assert "Maptperf.conf: line 2: RV" in fixes


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("EA-length 13", "EA-length 30", "line 8: BMR-EA-length"),
        ("2001:db8:ce::", "2001:db8:ce::1", "line 4: BMR-IPv6-Prefix"),
        ("NUM-OF-CEs 1000", "NUM-OF-CEs 8,129", "line 3: NUM-OF-CEs"),  # 254 suffixes of 32 PSIDs
        (
            "64:ff9b::\nDMR-IPv6-prefix-length 96",
            "2001:db8::\nDMR-IPv6-prefix-length 40",
            "line 10: DMR-IPv6-prefix-length",
        ),
        ("DMR-IPv6-prefix-length 96", "DMR-IPv6-prefix-length 80", "line 10: DMR-IPv6-prefix-length"),
    ],
)
def test_contradictions_of_the_rule_have_the_names_of_the_file(old: str, new: str, place: str) -> None:
    assert old in SHORTEST
    with pytest.raises(ConfigError) as error:
        read(SHORTEST.replace(old, new))
    assert [problem.where for problem in error.value.problems] == [f"Maptperf.conf: {place}"]


@given(
    ea_bits=st.integers(min_value=0, max_value=48),
    lengths=st.tuples(
        st.integers(min_value=0, max_value=128), st.integers(min_value=0, max_value=32), st.sampled_from([32, 64, 96])
    ),
    edges=st.integers(min_value=1, max_value=1 << 40),
)
def test_a_rule_is_taken_or_refused(ea_bits: int, lengths: tuple[int, int, int], edges: int) -> None:
    prefixes = (IPv6Network(("2001:db8::", lengths[0]), strict=False), IPv4Network(("192.0.2.0", lengths[1]), False))
    values = (edges, prefixes[0].network_address, lengths[0], prefixes[1].network_address, lengths[1], ea_bits)
    text = "".join(
        f"{line.split()[0]} {value}\n" for line, value in zip(SHORTEST.splitlines()[2:8], values, strict=True)
    )
    text += "Tester-L-IPv6 2001:db8:6::41\nTester-R-IPv4 203.0.113.56\nDMR-IPv6-Prefix 64:ff9b::\n"
    text += f"DMR-IPv6-prefix-length {lengths[2]}\n"
    problems: tuple[Problem, ...] = ()
    try:
        document = read(text).document
    except ConfigError as error:
        problems = error.problems
    else:
        model = MapModel.model_validate(document["map"])
        assert list(domain_problems(model.rules, edges=model.edges)) == []
    assert all(problem.where.startswith("Maptperf.conf: line ") for problem in problems)

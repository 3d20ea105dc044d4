"""Configuration files and scripts of siitperf: the file it comes with, and the settings that its author published."""

from __future__ import annotations

import contextlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.campaign.journal import records_of
from gatemark.cli.main import main
from gatemark.cli.trial import siitperf_lines
from gatemark.config.siitperf import KEYS, read_siitperf
from gatemark.config.siitperf_script import read_script
from gatemark.errors import ConfigError, TestBedError
from gatemark.results.toml_text import to_toml
from gatemark.session import measure
from gatemark.technology import TECHNOLOGIES
from gatemark.tester import Equipment

COMMON = """\
MAC-L-Tester 24:6e:96:3c:3f:40 # port of the Tester
MAC-R-Tester 24:6e:96:3c:3f:42
MAC-L-DUT b8:ca:3a:5e:25:a8
MAC-R-DUT b8:ca:3a:5e:25:aa

Forward 1
Reverse 1
Promisc 0
Num-L-Nets 1
Num-R-Nets 1
CPU-L-Send 2
CPU-R-Recv 4
CPU-R-Send 6
CPU-L-Recv 8
MEM-Channels 4
Fwd-var-sport 3
Fwd-var-dport 3
Fwd-sport-min 1024
Fwd-sport-max 65535
Fwd-dport-min 1
Fwd-dport-max 49151
Rev-var-sport 3
Rev-var-dport 3
Rev-sport-min 1024
Rev-sport-max 65535
Rev-dport-min 1
Rev-dport-max 49151
"""
FEW_PORTS = (
    COMMON.replace("1024", "1")
    .replace("Fwd-sport-max 65535", "Fwd-sport-max 40000")
    .replace("dport-max 49151", "dport-max 100")
)
SHIPPED = f"""\
IP-L-Vers 6
IP-R-Vers 6
IPv4-L-Real 198.18.0.2
# IPv6-R-Virt 64:ff9b::198.19.0.2
IPv4-R-Real 198.19.0.2
IPv6-L-Real 2001:2:0:0::2
IPv6-R-Real 2001:2:0:8000::2
{COMMON}
IP-L-var 0
IP-R-var 0
IP-L-min 11
IP-L-max 20
IP-R-min 21
IP-R-max 30
IPv4-L-offset 2
IPv4-R-offset 2
IPv6-L-offset 14
IPv6-R-offset 14
Stateful 0
Enumerate-ports 0
Enumerate-ips 0
Responder-tuples 3
"""
SIIT64 = f"""\
IP-L-Vers 6
IP-R-Vers 4
IPv6-L-Real 2001:2:0:0::2
IPv6-L-Virt ::
IPv6-R-Real 2001:2:0:8000::2
IPv6-R-Virt 2001:2:0:1000::2
IPv4-L-Real 0.0.0.0
IPv4-L-Virt 198.18.0.2
IPv4-R-Real 198.19.0.2
IPv4-R-Virt 0.0.0.0
{COMMON}"""
NAT64 = f"""\
IP-L-Vers 6
IP-R-Vers 4
IPv6-L-Real 2001:2:0:0::2
IPv6-R-Real ::
IPv6-R-Virt 64:ff9b::198.19.0.2
IPv4-R-Real 0.0.0.0
{FEW_PORTS}
Stateful 1
Enumerate-ports 3
Responder-ports 3
"""
VARY = "IP-L-var 3\nIP-R-var 3\nIP-L-min {}\nIP-L-max {}\nIP-R-min {}\nIP-R-max {}\n"
ROUTER44 = f"IP-L-Vers 4\nIP-R-Vers 4\nIPv4-L-Real 198.18.0.2\nIPv4-R-Real 198.19.0.2\n{COMMON}"
ROUTER66 = f"IP-L-Vers 6\nIP-R-Vers 6\nIPv6-L-Real 2001:2::2\nIPv6-R-Real 2001:2:0:8000::2\n{COMMON}"
NAT44 = f"IP-L-Vers 4\nIP-R-Vers 4\nIPv4-L-Real 10.0.0.2\nIPv4-R-Real 198.19.0.2\n{COMMON}Stateful 1\nEnumerate-ips 3\n"
FIGURE_4 = ROUTER44 + VARY.format(2, 65534, 2, 65534) + "IPv4-L-offset 2\nIPv4-R-offset 2\n"
FIGURE_5 = ROUTER66 + VARY.format(0, "0xffff", 0, "0xffff") + "IPv6-L-offset 12\nIPv6-R-offset 12\n"
FIGURE_6 = NAT44 + VARY.format(0, 65535, 0, 65534) + "IPv4-L-offset 1\nIPv4-R-offset 2\n"
FIGURE_7 = (
    NAT64.replace("Enumerate-ports 3", "Enumerate-ports 0\nEnumerate-ips 3")
    + VARY.format(0, "0xffff", 0, 65534)
    + "IPv6-L-offset 12\nIPv6-R-offset 14\n"
)
FIGURE_8 = NAT44 + VARY.format(2, 65534, 0, 65534) + "IPv4-L-offset 2\nIPv4-R-offset 2\n"
LISTINGS = {
    "shipped": SHIPPED, "siit64": SIIT64, "nat64": NAT64, "figure-4": FIGURE_4, "figure-5": FIGURE_5,
    "figure-6": FIGURE_6, "figure-7": FIGURE_7, "figure-8": FIGURE_8,
}  # fmt: skip

COMMON_VARIABLES = "to=2000 n=2 m=2 sleept=10"
SCRIPTS = {
    name: "".join(f"{assignment} # what it means\n" for assignment in f"{variables} {COMMON_VARIABLES}".split(" "))
    for name, variables in {
        "binary-rate-alg.sh": 'impl="gateway" dir="b" max=8000000 fs=84 xpts=60 e=1000 no_exp=10 res_dir="results"',
        "binary-rate-alg.sh-R": 'max=16000000 N=4000000 M=4000000 T=500 D=0 dir="b" fs=84 xpts=60 e=1000 no_exp=10',
        "binary-rate-alg.sh-sf": "max=8000000 N=4000000 M=4000000 R=8000000 T=500 D=$((1000*N/R+2*T))"
        ' DUT_IP=172.16.28.95 dir="b" fs=84 xpts=60 e=1000 no_exp=20',
        "binary-rate-alg.sh-pdv": 'dir="b" max=2000000 fs=84 xpts=60 fto=10 e=1 no_exp=20',
        "frame-loss.sh-scan": "rate_start=100000 rate_end=300000 rate_step=100000 fsizes='84,1518' xpts=60 no_exp=20",
        "latency.sh": 'dir="b" r=426576 fs=84 xpts=120 delay=60 tags=50000 no_exp=20',
        "pdv.sh": 'dir="b" r=426576 fs=84 xpts=60 no_exp=20',
        "cttc.sh": "C0=1000000 alpha=1 beta=2/10 gamma=4/10 E=1 max=4000000 conntrack=22 timeout=10000 x=1"
        ' impl="a-hcp${x}" T=500 D=0 startcmd="ssh-${x}" fs=84 e=100000 no_exp=10',
    }.items()
}
"""The variables of each script, a line each."""
SCRIPTS["frame-loss.sh-scan"] = SCRIPTS["frame-loss.sh-scan"].replace("84,1518", "84 1518")
SCRIPTS["binary-rate-alg.sh-pdv"] = SCRIPTS["binary-rate-alg.sh-pdv"].replace("m=2", "m=0")


def imported(text: str, script: str, folder: Path) -> dict[str, Any]:
    """Import a file with a script by the command, and return the campaign that it wrote."""
    (folder / "siitperf.conf").write_text(text, encoding="utf-8")
    (folder / "script").write_text(SCRIPTS[script], encoding="utf-8")
    target = folder / "campaign.toml"
    arguments = ["--left-port", "af_packet:a", "--right-port", "af_packet:b", "--output", str(target)]
    assert (
        main(["import", "siitperf", str(folder / "siitperf.conf"), "--script", str(folder / "script"), *arguments]) == 0
    )
    return tomllib.loads(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("first", ["1", "-999999999999999"])
def test_a_script_of_endless_loads_is_refused(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "frame-loss.sh-scan"
    endless = (
        SCRIPTS[name].replace("100000", first, 1).replace("300000", "999999999999999").replace("step=100000", "step=1")
    )
    monkeypatch.setitem(SCRIPTS, name, endless)
    with pytest.raises(AssertionError):
        imported(SHIPPED, name, tmp_path)
    said = capsys.readouterr().err
    assert "error" in said and "rate_start" in said
    assert not (tmp_path / "campaign.toml").exists()


def test_the_file_has_fifty_keys() -> None:
    assert len(KEYS) == 50


def test_the_shipped_file_with_its_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ports = {
        "source_ports": {"mode": "pseudorandom", "range": "1024-65535"},
        "destination_ports": {"mode": "pseudorandom", "range": "1-49151"},
    }
    assert imported(SHIPPED, "binary-rate-alg.sh", tmp_path) == {
        "name": "gateway",
        "repetitions": 10,
        "gateway": {"technology": "router66"},
        "testbed": {"kind": "ports", "cores": [2, 4, 6, 8]},
        "left": {"port": "af_packet:a", "gateway_mac": "b8:ca:3a:5e:25:a8", "ipv6": {"address": "2001:2::2"}},
        "right": {"port": "af_packet:b", "gateway_mac": "b8:ca:3a:5e:25:aa", "ipv6": {"address": "2001:2:0:8000::2"}},
        "traffic": {
            "direction": "bidirectional",
            "forward": ports,
            "reverse": ports,
            "mix": "1/1",
            "frame_sizes": {"family": "ipv6", "octets": [84]},
        },
        "trial": {"duration": "60s", "drain": "2000ms", "rest": "10s"},
        "throughput": {"maximum": 8000000, "resolution": 1000, "search_duration": "60s"},
    }
    told = capsys.readouterr().out.splitlines()[1:]
    assert told == [
        "- MAC-L-Tester, line 8: is left out: the left port has an address of its own.",
        "- MAC-R-Tester, line 9: is left out: the right port has an address of its own.",
        "- MEM-Channels, line 22: is left out: the engine does not need it.",
    ]
    text = (tmp_path / "campaign.toml").read_text(encoding="utf-8")
    assert 'technology = "router66"  # IP-L-Vers, line 1; IP-R-Vers, line 2; Stateful, line 46\n' in text
    assert "\nrepetitions = 10  # script " in text and ": no_exp in line 7\n" in text


def small(campaign: dict[str, Any]) -> dict[str, Any]:
    """The same campaign in small: short trials, few connections, and what the tester did not know of the gateway."""
    text = json.loads(json.dumps(campaign))
    text["repetitions"] = 1
    text["trial"] |= {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}
    text["testbed"]["cores"] = []
    for table in ("throughput", "connection_establishment_rate"):
        if table in text:
            text[table] |= {"maximum": 100_000, "resolution": 10_000}
    if "throughput" in text:
        text["throughput"]["search_duration"] = "1s"
    if "frame_loss" in text:
        text["frame_loss"]["rates"] = [10_000]
    if "delay" in text:
        text["delay"] |= {"load": 10_000, "duration": "1s"}
        text["delay"] |= {"first_tag": "0s", "tags": 10} if "tags" in text["delay"] else {}
    if "connections" in text:
        text["connections"]["count"] = 100
        text["connections"]["rate"] = min(text["connections"].get("rate", 1000), 1000)
        text["gateway"] |= {"pool": ["203.0.113.0/24"], "control": {"clear_state": "true", "tear_down": "true"}}
        text["gateway"].pop("table", None)
    if "connection_tracking_table_capacity" in text:
        text["connection_tracking_table_capacity"] |= {"start": 100, "maximum": 400, "maximum_rate": 10_000}
        text["connection_tracking_table_capacity"] |= {"rate_resolution": 1000, "resolution": 50}
    return text  # type: ignore[no-any-return]


STATELESS = ("binary-rate-alg.sh", "frame-loss.sh-scan", "latency.sh", "pdv.sh")
STATEFUL = ("binary-rate-alg.sh-R", "binary-rate-alg.sh-sf", "cttc.sh")
CASES = [
    (name, script)
    for name, text in LISTINGS.items()
    for script in (STATEFUL if "Stateful 1" in text else STATELESS)
]  # fmt: skip


def equipment() -> Equipment:
    return simulated_equipment(SimulatedDevice(capacity_forward=50_000, establishment_rate=5_000, table_size=300))


@pytest.mark.parametrize(("name", "script"), CASES)
def test_each_listing_is_imported_planned_and_run_in_small(
    name: str, script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = imported(LISTINGS[name], script, tmp_path)
    if "Stateful 1" in LISTINGS[name]:
        told = capsys.readouterr().out
        assert "add gateway.pool" in told
        campaign["gateway"] |= {"pool": ["203.0.113.0/24"], "control": {"clear_state": "true"}}
    if TECHNOLOGIES[campaign["gateway"]["technology"]].is_translation:  # which would fragment frames of 1518 octets
        campaign["gateway"]["lowest_ipv6_mtu"] = 1500
    (tmp_path / "whole.toml").write_text(to_toml(campaign), encoding="utf-8")
    assert main(["plan", str(tmp_path / "whole.toml")]) == 0, capsys.readouterr().err
    (tmp_path / "small.toml").write_text(to_toml(small(campaign)), encoding="utf-8")
    result = measure(tmp_path / "small.toml", output=tmp_path / "out", equipment=equipment(), report=False)
    assert result.document.status == "complete"
    assert [run.refused for run in result.runs] == [None] * len(result.runs)
    assert any(row.quantity.is_measured for row in result.document.rows())


def test_what_each_script_measures(tmp_path: Path) -> None:
    def of(script: str, text: str = SHIPPED) -> dict[str, Any]:
        folder = tmp_path / script
        folder.mkdir()
        return imported(text, script, folder)

    assert of("frame-loss.sh-scan")["frame_loss"] == {"rates": [100_000, 200_000, 300_000]}
    assert of("latency.sh")["delay"] == {
        "metrics": ["latency"], "load": 426576, "duration": "120s", "first_tag": "60s", "tags": 50000,
    }  # fmt: skip
    assert of("pdv.sh")["delay"] == {"metrics": ["pdv"], "load": 426576, "duration": "60s"}
    timed = of("binary-rate-alg.sh-pdv")
    assert timed["throughput"]["frame_timeout"] == "10ms"
    assert timed["traffic"]["mix"] == "0/2"
    rate = of("binary-rate-alg.sh-R", NAT64)
    assert rate["connection_establishment_rate"] == {"maximum": 16_000_000, "resolution": 1000}
    assert rate["connections"] == {
        "source_ports": "1-40000", "destination_ports": "1-100", "order": "pseudorandom",
        "read_order": "pseudorandom", "send_order": "pseudorandom", "count": 4_000_000, "timeout": "500ms",
        "gap": "500ms",
    }  # fmt: skip
    assert rate["right"]["ipv4"] == {"address": "198.19.0.2"}
    assert rate["gateway"] == {
        "technology": "nat64", "inside": "left", "prefix": "64:ff9b::/96", "well_known_prefix_allowed": True,
    }  # fmt: skip
    stateful = of("binary-rate-alg.sh-sf", NAT64)
    assert stateful["connections"]["rate"] == 8_000_000
    capacity = of("cttc.sh", NAT64)
    assert capacity["connection_tracking_table_capacity"] == {
        "start": 1_000_000, "resolution": 1, "maximum_rate": 4_000_000, "rate_resolution": 100_000, "alpha": "1",
        "beta": "2/10", "gamma": "4/10",
    }  # fmt: skip
    assert capacity["gateway"]["table"] == {"size": 1 << 22, "hash_size": 1 << 22, "udp_timeout": "10000s"}


def document(text: str) -> dict[str, Any]:
    return read_siitperf(text, where="siitperf.conf").document


def test_translators_get_mappings_or_a_prefix() -> None:
    assert document(SIIT64)["gateway"] == {
        "technology": "siit64",
        "eam": [
            {"ipv4": "198.18.0.2/32", "ipv6": "2001:2::2/128"},
            {"ipv4": "198.19.0.2/32", "ipv6": "2001:2:0:1000::2/128"},
        ],
    }
    varying = SIIT64 + VARY.format(2, 254, 2, 254)
    assert document(varying)["gateway"]["eam"][0] == {"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}
    turned = SIIT64.replace("IP-L-Vers 6", "IP-L-Vers 4").replace("IP-R-Vers 4", "IP-R-Vers 6")
    turned = turned.replace("IPv4-L-Real 0.0.0.0", "IPv4-L-Real 198.18.0.2")
    turned = turned.replace("IPv4-R-Virt 0.0.0.0", "IPv4-R-Virt 198.19.0.2")
    turned = turned.replace("IPv6-L-Virt ::", "IPv6-L-Virt 2001:2::2")
    assert document(turned)["gateway"]["technology"] == "siit46"


def test_ports_that_do_not_vary_are_those_of_rfc_2544() -> None:
    fixed = SHIPPED.replace("-var-sport 3", "-var-sport 0").replace("-var-dport 3", "-var-dport 0")
    assert document(fixed)["traffic"]["forward"] == {
        "source_ports": {"mode": "fixed", "range": "49184"},
        "destination_ports": {"mode": "fixed", "range": "7"},
    }


def test_the_initiator_may_be_on_the_right() -> None:
    turned = FIGURE_8.replace("Stateful 1", "Stateful 2")
    assert document(turned)["gateway"] == {"technology": "nat44", "inside": "right"}


def test_the_octets_that_vary_are_those_of_the_file() -> None:
    sides = document(FIGURE_5)
    assert [sides[side]["ipv6"]["hosts"]["offset"] for side in ("left", "right")] == [12, 12]


def test_what_cannot_be_expressed_is_said_with_its_line() -> None:
    repeated = FIGURE_8.replace("Enumerate-ips 3", "Enumerate-ips 0")
    assert any("repeated four-tuples" in note for note in read_siitperf(repeated, where="siitperf.conf").notes)


def lines_of(campaign: dict[str, Any], device: SimulatedDevice, folder: Path) -> list[str]:
    """Measure a campaign and return the lines of all its trials."""
    folder.mkdir()
    (folder / "small.toml").write_text(to_toml(small(campaign)), encoding="utf-8")
    with contextlib.suppress(TestBedError):  # the gateway does not hold that many connections
        measure(folder / "small.toml", output=folder / "out", equipment=simulated_equipment(device), report=False)
    return [line for record in records_of(folder / "out" / "trials.jsonl") for line in siitperf_lines(record)]


def test_a_trial_has_the_lines_for_which_scripts_look(tmp_path: Path) -> None:
    stateless = imported(SHIPPED, "binary-rate-alg.sh", tmp_path)
    lines = lines_of(stateless, SimulatedDevice(capacity_forward=50_000), tmp_path / "whole")
    assert lines[:4] == [
        "Forward frames sent: 100000", "Forward frames received: 50000",
        "Reverse frames sent: 100000", "Reverse frames received: 50000",
    ]  # fmt: skip
    assert lines[4:6] == ["Forward frames sent: 50000", "Forward frames received: 50000"]
    faulty = SimulatedDevice(capacity_forward=200_000, faults={"hop_limit": 100})
    assert "Forward frames received: 99000" in lines_of(stateless, faulty, tmp_path / "faulty")
    twice = lines_of(stateless, SimulatedDevice(capacity_forward=200_000, duplicate_every=2), tmp_path / "twice")
    assert twice[:6] == [
        "Forward frames sent: 100000", "Forward frames received: 100000",
        "Reverse frames sent: 100000", "Reverse frames received: 100000",
        "Error: forward foreground: 50000 frames arrived more than once",
        "Error: reverse foreground: 50000 frames arrived more than once",
    ]  # fmt: skip
    late = lines_of(stateless, SimulatedDevice(capacity_forward=50_000, tester_limit=10_000), tmp_path / "late")
    assert any("invalid" in line for line in late)
    (tmp_path / "campaign.toml").unlink()
    stateful = imported(NAT64, "binary-rate-alg.sh-sf", tmp_path)
    lines = lines_of(stateful, SimulatedDevice(capacity_forward=50_000), tmp_path / "stateful")
    assert lines[0] == "Preliminary frames received: 100"
    assert "Error" not in "".join(lines)
    full = SimulatedDevice(capacity_forward=50_000, table_size=60)
    lines = lines_of(stateful, full, tmp_path / "full")
    assert "Error: Failed to fill state table: 60 of 100 connections" in lines


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SHIPPED.replace("IP-L-Vers 6", "IP-L-Vers 5").replace("Forward 1", "Forward 2").replace("Num-L", "Num-X")
    text += "IP-L-min 3\nEnumerate-ips 0x1\n"
    with pytest.raises(ConfigError) as error:
        read_siitperf(text, where="siitperf.conf")
    assert [problem.where for problem in error.value.problems] == [
        "siitperf.conf: line 13: Forward", "siitperf.conf: line 16: Num-X-Nets", "siitperf.conf: line 50: IP-L-min",
        "siitperf.conf: line 51: Enumerate-ips", "siitperf.conf: line 1: IP-L-Vers",
    ]  # fmt: skip
    assert all(problem.fix for problem in error.value.problems)
    (tmp_path / "conf").write_text(SHIPPED, encoding="utf-8")
    for number, script in enumerate((SCRIPTS["cttc.sh"], "echo hello\n", "max=many\n", SCRIPTS["pdv.sh"])):
        (tmp_path / f"{number}.sh").write_text(script, encoding="utf-8")
    command = ["import", "siitperf", str(tmp_path / "conf")]
    assert main([*command, "--script", str(tmp_path / "0.sh")]) == 2
    assert "Stateful is 0" in capsys.readouterr().err
    assert main([*command, "--script", str(tmp_path / "1.sh"), "--script", str(tmp_path / "2.sh")]) == 2
    shown = capsys.readouterr().err
    assert "1.sh" in shown and "2.sh: line 1" in shown
    (tmp_path / "latency.sh").write_text(SCRIPTS["latency.sh"], encoding="utf-8")
    assert main([*command, "--script", str(tmp_path / "3.sh"), "--script", str(tmp_path / "latency.sh")]) == 2
    shown = capsys.readouterr().err
    assert "import the scripts one by one" in shown
    assert shown.count("error: ") == 3  # what is measured, its duration, and that of trials
    assert main(["import", "maptperf", str(tmp_path / "conf"), "--script", str(tmp_path / "3.sh")]) == 2


EVIL = "\n[gateway.control.set.name]\napply = 'curl #{value}'\n[gateway.settings]\n#"


def test_no_name_of_a_file_and_no_text_in_it_becomes_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of strangers have any names; what the campaign file says is what their contents say."""
    (tmp_path / f"conf{EVIL}").write_text(SHIPPED, encoding="utf-8")
    named = tmp_path / f"script{EVIL}.sh"
    script = SCRIPTS["binary-rate-alg.sh"].replace('impl="gateway"', 'impl="g\x1b[2J\x7f"')
    named.write_text(script.replace('dir="b"', "dir='b\x1b[2J\x85'"), encoding="utf-8")
    command = ["import", "siitperf", str(tmp_path / f"conf{EVIL}"), "--script", str(named)]
    target = tmp_path / "campaign.toml"
    assert main([*command, "--output", str(target)]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if not line.startswith(("wrote", "- "))]
    text = target.read_text(encoding="utf-8")
    assert not {character for character in text if not character.isprintable()} - {"\n"}
    read = tomllib.loads(text)
    assert read["gateway"] == {"technology": "router66"}
    assert read["name"] == "g\x1b[2J\x7f"


@given(text=st.text(alphabet=st.sampled_from("ab =\"'$`#\n0159NRTE"), max_size=200))
def test_no_script_is_too_strange(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert "max" in read_script(text, where="script").values

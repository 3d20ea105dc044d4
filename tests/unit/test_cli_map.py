"""`gatemark import` and `gatemark export`: files of other testers, and MAP rules as gateways are told them."""

from __future__ import annotations

import json
import tomllib
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_maptperf import SELF_TEST, read

from gatemark.campaign.file import load_campaign
from gatemark.cli.main import main
from gatemark.dut.recipe import recipe_text
from gatemark.linux_aftr import PRIVATE, nat_rules
from gatemark.results.toml_text import to_toml

EXAMPLES = Path(__file__).parents[2] / "examples"
CAMPAIGN = """\
[gateway]
technology = "map_t_br"
[testbed]
kind = "ports"
[left]
port = "af_packet:a"
ipv6 = {address = "2001:db8:6::41", gateway = "2001:db8:6::1"}
[right]
port = "af_packet:b"
ipv4 = {address = "203.0.113.56", gateway = "203.0.113.1"}
[map]
edges = 2
order = "increasing"
domains = [{ipv6 = "2001:db8:ce::/51", ipv4 = "192.0.2.0/24", ea_bits = 13, psid_offset = 0, dmr = "2001:db8:ff::/96"}]
[throughput]
maximum = 1000
"""
RULE = "2001:db8:ce::/51"
RECIPE_OF = {"map_e_br": "mape-br", "lwaftr": "lwaftr", "aftr": "aftr", "sixrd_br": "sixrd-br"}
HOSTS: dict[str, Any] = {"mode": "pseudorandom", "range": "2-15"}


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    file = tmp_path / "campaign.toml"
    file.write_text(CAMPAIGN, encoding="utf-8")
    return file


@pytest.fixture
def maptperf(tmp_path: Path) -> Path:
    file = tmp_path / "Maptperf.conf"
    file.write_text(SELF_TEST, encoding="utf-8")
    return file


def test_a_file_of_maptperf_becomes_a_campaign_file(
    maptperf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "maptperf", str(maptperf)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "# Imported from Maptperf.conf, a configuration file of Maptperf.\n#\n# - Add what the file does not give: "
    )
    assert "\n# - 64:ff9b::/96 must not represent 203.0.113.56" in text
    assert max(map(len, text.partition("\nname")[0].splitlines())) <= 100
    expected = read(SELF_TEST)
    expected.document["gateway"]["technology"] = "map_t_br"
    assert tomllib.loads(text) == expected.document
    output = tmp_path / "new.toml"
    assert main(["import", "maptperf", str(maptperf), "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == text
    assert capsys.readouterr().out.startswith(f"wrote {output}\n- Add what the file does not give")
    assert main(["import", "maptperf", str(maptperf), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    missing = "Add what the file does not give: left.port, right.port, the table of a procedure."
    assert document == {"campaign": expected.document, "notes": [missing, *expected.notes]}


def test_with_what_the_comments_ask_for_it_is_a_campaign(
    maptperf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new.toml"
    assert main(["import", "maptperf", str(maptperf), "--output", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    for table, line in (
        ("[gateway]", "well_known_prefix_allowed = true"),
        ("[left]", 'port = "af_packet:a"'),
        ("[right]", 'port = "af_packet:b"'),
    ):
        assert text.count(f"\n{table}\n") == 1
        text = text.replace(f"\n{table}\n", f"\n{table}\n{line}\n")
    file.write_text(text + "\n[throughput]\nmaximum = 1000\n", encoding="utf-8")
    campaign = load_campaign(file)
    assert campaign.map is not None
    assert campaign.map.edge_count == 1_000_000


def test_nothing_is_overwritten(maptperf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "maptperf", str(maptperf), "--output", str(maptperf)]) == 2
    assert maptperf.read_text(encoding="utf-8") == SELF_TEST
    assert "exists and is not overwritten\n\nhint: name another file" in capsys.readouterr().err
    assert main(["import", "maptperf", str(maptperf), "--output", str(maptperf.parent / "no" / "new.toml")]) == 3
    assert "cannot be written" in capsys.readouterr().err


def test_what_is_wrong_with_such_a_file_is_told_with_line_and_key(
    maptperf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maptperf.write_text(SELF_TEST.replace("BMR-EA-Len 20", "BMR-EA-Len 30"), encoding="utf-8")
    assert main(["import", "maptperf", str(maptperf), "--output", str(tmp_path / "new.toml")]) == 2
    assert f"{maptperf}: line 27: BMR-EA-length: 30 behind 192.0.2.0/24" in capsys.readouterr().err
    assert not (tmp_path / "new.toml").exists()
    assert main(["import", "maptperf", str(tmp_path / "none")]) == 2
    assert "hint: name an existing configuration file of Maptperf" in capsys.readouterr().err
    assert main(["import", "siitperf", str(maptperf)]) == 2


def test_rules_are_printed_for_gateways(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "jool", str(campaign)]) == 0
    assert capsys.readouterr().out == (
        "modprobe jool_mapt\n"
        'jool_mapt instance add "BR" --netfilter --dmr 2001:db8:ff::/96\n'
        'jool_mapt -i "BR" fmrt add 2001:db8:ce::/51 192.0.2.0/24 13 0\n'
        'jool_mapt -i "BR" global update map-t-type BR\n'
        "ip -6 route add 2001:db8:ce::/51 via 2001:db8:6::41\n"
    )
    assert main(["export", "vpp", str(campaign), "--interface", "left0", "--interface", "right0"]) == 0
    assert capsys.readouterr().out == (
        "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8:ce::/51 ip6-src 2001:db8:ff::/96"
        " ea-bits-len 13 psid-offset 0 psid-len 5\n"
        "map interface left0 map-t\n"
        "map interface right0 map-t\n"
        "ip route add 2001:db8:ce::/51 via 2001:db8:6::41\n"
    )
    assert main(["export", "tayga", str(campaign)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cat > tayga.conf <<'END'"
    assert "map 10.0.0.3 2001:db8:ce:1:0:c000:200:1" in lines
    assert lines[-4:] == [
        "ip route add 10.0.0.0/16 dev mapt",
        "ip -6 route add 2001:db8:ff::/96 dev mapt",
        'tayga --config "$PWD/tayga.conf"',
        f"ip -6 route add {RULE} via 2001:db8:6::41",
    ]
    assert main(["export", "jool", str(campaign), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["gateway"], document["commands"].splitlines()[0]) == ("jool", "modprobe jool_mapt")


def test_the_route_leads_through_the_router_if_there_is_one(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    router = 'address_mode = "nexthop"\nipv6 = {router = "2001:db8:6::7", address = "2001:db8:7::41"'
    campaign.write_text(CAMPAIGN.replace('ipv6 = {address = "2001:db8:6::41"', router, 1), encoding="utf-8")
    assert main(["export", "vpp", str(campaign)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"ip route add {RULE} via 2001:db8:6::7"
    campaign.write_text(CAMPAIGN.replace("[map]\n", "[map]\nonlink = true\n"), encoding="utf-8")
    assert main(["export", "vpp", str(campaign)]) == 0
    assert "ip route" not in capsys.readouterr().out


def test_what_cannot_be_exported(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "jool", str(campaign), "--interface", "left0"]) == 2
    assert "--interface: does not apply to jool" in capsys.readouterr().err
    example = EXAMPLES / "2-linux-router4.toml"
    assert main(["export", "jool", str(example)]) == 2
    printed = capsys.readouterr().err
    assert "gateway.technology: is router44, and export knows no IPv4 router for jool" in printed
    assert "hint: name the campaign of a border relay, an lwAFTR or an AFTR" in printed
    assert main(["export", "linux", str(campaign)]) == 2
    assert (
        "hint: gatemark export jool FILE or gatemark export tayga FILE or gatemark export vpp"
        in capsys.readouterr().err
    )
    single = CAMPAIGN.replace("ea_bits = 13, psid_offset = 0", "ea_bits = 0, psid_bits = 6, psid = 1")
    single = single.replace("192.0.2.0/24", "192.0.2.1/32").replace("edges = 2", "edges = 1")
    campaign.write_text(single, encoding="utf-8")
    assert main(["export", "vpp", str(campaign)]) == 2
    assert f"{campaign}: map.domains[0].psid_bits: the rule of a single PSID" in capsys.readouterr().err


def test_ends_of_tunnels_are_printed_for_gateways(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    aftr, sixrd = (str(EXAMPLES / f"{name}.toml") for name in ("31-two-ports-aftr", "34-two-ports-6rd"))
    assert main(["export", "vpp", aftr]) == 0
    assert capsys.readouterr().out == (
        "dslite set aftr-tunnel-endpoint-address 2001:2:0:ffff::1\ndslite add pool address 198.19.0.1 - 198.19.0.1\n"
    )
    assert main(["export", "linux", aftr]) == 0
    script = capsys.readouterr().out
    assert script.count("\nroute add 100.64.0.") == 100
    assert '        ip saddr 100.64.0.0/10 oifname != "dslite" snat to 198.19.0.1\n' in script
    assert "ip -6 address add 2001:2:0:ffff::1/128 dev lo\nip link add dslite type ip6tnl external\n" in script
    assert "\nip link set dslite mtu 1500 up\n" in script, "the left link has 1540"
    assert main(["export", "vpp", sixrd]) == 0
    assert capsys.readouterr().out == "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 0.0.0.0/0 ip4-src 198.18.0.1\n"
    assert main(["export", "linux", sixrd]) == 0
    script = capsys.readouterr().out
    assert "ip tunnel 6rd dev sixrd 6rd-prefix 2001:db8::/32 6rd-relay_prefix 0.0.0.0/0\n" in script
    assert "\nip link set sixrd mtu 1500 up\n" in script, "the left link has 1520"
    apart = tmp_path / "6rd.toml"
    text = Path(sixrd).read_text().replace("ipv4_mask_length = 0", "ipv4_mask_length = 16")
    apart.write_text(text.replace('address = "198.18.0.1"  ', 'address = "192.0.2.1"  '))
    assert main(["export", "vpp", str(apart)]) == 0
    assert "ip4-pfx 198.18.0.0/16 ip4-src 192.0.2.1\n" in capsys.readouterr().out, "edges have a network of their own"
    assert main(["export", "linux", str(apart)]) == 0
    assert "6rd-relay_prefix 198.18.0.0/16\n" in capsys.readouterr().out
    elsewhere = tmp_path / "aftr.toml"
    elsewhere.write_text(Path(aftr).read_text().replace('"198.19.0.', '"100.64.0.'))
    assert main(["export", "linux", str(elsewhere)]) == 2
    assert "100.64.0.0/10 holds hosts outside, to which the AFTR would not forward" in capsys.readouterr().err
    assert main(["export", "vpp", aftr, "--interface", "left0"]) == 2
    assert "does not apply to vpp as DS-Lite AFTR" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "stated", "sent", "told"),
    [
        ("31-two-ports-aftr", "copied", {"traffic_class": 40}, "class 40 would have class 0, not 40"),
        ("36-two-ports-lwaftr", "copied", {"reverse": {"traffic_class": 8}}, "class 8 would have class 0, not 8"),
        ("31-two-ports-aftr", 40, {}, "class 0 would have class 0, not 40"),
        ("34-two-ports-6rd", 0, {"traffic_class": 40}, "class 40 would have class 40, not 0"),
        ("31-two-ports-aftr", 0, {"traffic_class": 40}, None),
        ("36-two-ports-lwaftr", "copied", {"forward": {"traffic_class": 8}}, None),
        ("34-two-ports-6rd", "copied", {"traffic_class": 40}, None),
    ],
)
def test_outer_traffic_classes_that_linux_would_not_write_are_refused(
    name: str,
    stated: str | int,
    sent: dict[str, Any],
    told: str | None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    campaign = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    campaign["gateway"]["tunnel"]["traffic_class"] = stated
    campaign["traffic"] |= sent
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(campaign))
    assert main(["export", "linux", str(file)]) == (0 if told is None else 2)
    printed = capsys.readouterr().err
    if told is not None:
        assert f"gateway.tunnel.traffic_class: is {stated}: outer headers of packets of {told}\n" in printed
        assert ("write traffic_class = 0" in printed) == (name != "34-two-ports-6rd")


TUNNEL_EXAMPLES = ("29-two-ports-map-e", "31-two-ports-aftr", "34-two-ports-6rd", "36-two-ports-lwaftr")


@pytest.mark.parametrize("name", TUNNEL_EXAMPLES)
def test_the_exported_tunnels_hold_what_a_recipe_gives_theirs(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A tunnel of Linux with many ends has an MTU of 1452 or 1480 unless it is set, whatever its link has."""
    campaign = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    campaign["left"]["mtu"] = 9236
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(campaign))
    assert main(["export", "linux", str(file)]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("ip link set"))
    assert f'"{line}"' in recipe_text(f"linux-{RECIPE_OF[campaign['gateway']['technology']]}")


@pytest.mark.parametrize(
    ("name", "family", "hosts", "told"),
    [
        (
            "31-two-ports-aftr",
            "ipv6",
            {
                "address": "2001:2:0:1::2",
                "router": "2001:2::2",
                "gateway": "2001:2::1",
                "hosts": HOSTS | {"offset": 14},
            },
            ["2001:2:0:1::2/127", "2001:2:0:1::4/126", "2001:2:0:1::8/125"],
        ),
        (
            "34-two-ports-6rd",
            "ipv4",
            {"address": "198.18.64.2", "router": "198.18.0.2", "gateway": "198.18.0.1", "hosts": HOSTS | {"offset": 1}},
            ["198.0.2.0/23", "198.0.4.0/22", "198.0.8.0/21"],
        ),
        (
            "34-two-ports-6rd",
            "ipv4",
            {"address": "198.18.64.2", "router": "198.18.0.2", "gateway": "198.18.0.1"},
            ["198.18.64.2/32"],
        ),
    ],
)
def test_subscribers_behind_a_router_have_routes(
    name: str,
    family: str,
    hosts: dict[str, Any],
    told: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    campaign = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    campaign["left"] |= {"address_mode": "nexthop", family: hosts}
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(campaign))
    for gateway, add in (("linux", "ip -6 route add" if family == "ipv6" else "ip route add"), ("vpp", "ip route add")):
        assert main(["export", gateway, str(file)]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if " via " in line]
        assert lines == [f"{add} {network} via {hosts['router']}" for network in told]


@pytest.mark.parametrize(
    ("name", "tunnel", "sent", "told"),
    [
        ("29-two-ports-map-e", {"hop_limit": 33}, {}, {"hop_limit": "is 33, but this gateway always writes 64"}),
        ("36-two-ports-lwaftr", {"hop_limit": 33}, {}, {"hop_limit": "is 33, but this gateway always writes 64"}),
        ("31-two-ports-aftr", {"hop_limit": 64}, {}, {"hop_limit": "always writes that of the packet inside"}),
        ("31-two-ports-aftr", {"traffic_class": 0}, {"traffic_class": 40}, {"traffic_class": "have class 40, not 0"}),
        (
            "34-two-ports-6rd",
            {"hop_limit": 33},
            {"traffic_class": 40},
            {"hop_limit": "is 33, but this gateway always writes 64", "traffic_class": "have class 0, not 40"},
        ),
        ("29-two-ports-map-e", {"hop_limit": 64}, {"traffic_class": 40}, {}),
        ("34-two-ports-6rd", {"hop_limit": 64}, {}, {}),
    ],
)
def test_outer_headers_that_vpp_would_not_write_are_refused(
    name: str,
    tunnel: dict[str, Any],
    sent: dict[str, Any],
    told: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    campaign = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    campaign["gateway"]["tunnel"] |= tunnel
    campaign["traffic"] |= sent
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(campaign))
    assert main(["export", "vpp", str(file)]) == (2 if told else 0)
    printed = capsys.readouterr().err
    for key, words in told.items():
        assert f"gateway.tunnel.{key}: " in printed and words in printed


@pytest.mark.parametrize("name", ["29-two-ports-map-e", "36-two-ports-lwaftr"])
def test_vpp_writes_the_class_of_outer_headers_that_is_stated(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    campaign = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    campaign["gateway"]["tunnel"]["traffic_class"] = 40
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(campaign))
    assert main(["export", "vpp", str(file)]) == 0
    assert "\nmap params traffic-class 28\n" in capsys.readouterr().out


def test_a_pool_of_several_networks_takes_connections_in_turn() -> None:
    pool = [IPv4Network("192.0.2.0/30"), IPv4Network("198.51.100.1"), IPv4Network("203.0.113.0/31")]
    lines = [line.strip() for line in nat_rules(PRIVATE, pool, "1024-65535").splitlines() if "snat" in line]
    begin = 'ip saddr 100.64.0.0/10 oifname != "dslite" meta l4proto { tcp, udp, icmp } '
    assert lines == [
        begin + "numgen inc mod 3 == 0 snat to 192.0.2.0-192.0.2.3:1024-65535",
        begin + "numgen inc mod 2 == 0 snat to 198.51.100.1:1024-65535",
        begin + "snat to 203.0.113.0-203.0.113.1:1024-65535",
    ]

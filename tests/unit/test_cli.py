from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import dpkt
import pytest

from gatemark.campaign.columns import varies
from gatemark.cli.frame import decode, in_words, write_pcap
from gatemark.cli.main import COMMANDS, function_of, main
from gatemark.cli.output import print_json

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
LOOPBACK = str(ROOT / "examples" / "1-loopback-router4.toml")
GOLDEN = json.loads((ROOT / "protocol" / "examples" / "frames_answer.json").read_text(encoding="utf-8"))["frames"]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
def test_plan_shows_settings_runs_deviations_and_duration(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), *(["--column", "1"] if varies(file) else [])]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    for heading in ("# Settings", "# Runs", "# Layout", "# Commands", "# Deviations", "# Duration"):
        assert heading in shown.out
    assert "[validity]\nretries = 3" in shown.out


def test_plan_says_for_which_gateways_mlrsearch_is_estimated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(LOOPBACK).read_text(encoding="utf-8")
    assert "\n[throughput]\n" not in text
    (tmp_path / "a.toml").write_text(f'{text}\n[throughput]\nsearch = "mlrsearch"\nmaximum = "1k"\n', encoding="utf-8")
    assert main(["plan", str(tmp_path / "a.toml")]) == 0
    assert "keeps no more than 1ms of frames" in capsys.readouterr().out


def test_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", LOOPBACK, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "campaign", "map_domains", "gateway_edge", "runs", "layout", "kernel", "commands", "telemetry", "estimate",
        "deviations",
    }  # fmt: skip
    assert set(document["layout"]) in ({"queues", "workers", "why"}, {"unknown"})
    assert document["estimate"]["trials_max"] == len(document["runs"]) == 8


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ("8-tayga-nat64", r"these run as root, .* every file of this machine:\n(- .*\n)*- setup: tayga --config"),
        ("2-linux-router4", r"these run as root, .* every file of this machine:\n"),
        (
            "8-tayga-nat64",
            r"these run .*\n(- .*\n|    .*\n)*- read_udp_timeout.nf_conntrack_udp_timeout_stream: cat /proc/",
        ),
        (
            "10-nat64-between-ports",
            r"ports of this machine that are opened: left pci:0000:01:00.0, right pci:0000:01:00.1\n"
            r"these run at root@192.0.2.1 as the user that ssh logs in as, through `ssh .* sh -s`:\n- clear_state: ",
        ),
        ("1-loopback-router4", r"none\n"),
    ],
)
def test_plan_says_which_commands_run_as_whom_and_where(
    example: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(ROOT / "examples" / f"{example}.toml")]) == 0
    assert re.search(rf"(?m)^# Commands\n\n{said}|^# Commands\n\nthese run .*{said}", capsys.readouterr().out)


def test_a_folder_to_trust_is_one_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", LOOPBACK, "--trust-commands"]) == 2
    assert "--resume" in capsys.readouterr().err


def test_plan_says_where_the_engine_cannot_be_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEMARK_ENGINE", "/nowhere")
    assert main(["plan", LOOPBACK]) == 0
    assert "# Layout\n\nnot known: /nowhere: no executable there; build it with `make`" in capsys.readouterr().out
    assert main(["plan", LOOPBACK, "--json"]) == 0
    (problem,) = json.loads(capsys.readouterr().out)["layout"]["unknown"]
    assert problem["where"] == "/nowhere"


@pytest.fixture
def no_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel was built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))


@pytest.mark.usefixtures("no_kernels")
def test_plan_says_which_kernel_the_gateway_gets_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = os.uname().release
    assert main(["plan", str(ROOT / "examples" / "2-linux-router4.toml")]) == 0
    shown = re.search(r"(?m)^# Kernel of the gateway\n\n(.*)\n", capsys.readouterr().out)
    assert shown is not None and shown[1].startswith(f"this machine's, Linux {release}, ")
    assert shown[1].endswith(": it has all that recipe linux-router4 needs")
    file = tmp_path / "guest.toml"
    file.write_text(
        'testbed = {kind = "netns", recipe = "linux-router4", kernel = "uml"}\nframe_loss = {rates = ["1k"]}'
    )
    assert main(["plan", str(file)]) == 0
    assert "# Kernel of the gateway\n\nnot known: testbed.kernel: no separate kernel" in capsys.readouterr().out
    program = tmp_path / "linux.uml"
    program.write_text("")
    program.chmod(0o755)
    file.write_text(file.read_text().replace('"uml"', f'"{program}"'))
    assert main(["plan", str(file), "--json"]) == 0
    kernel = json.loads(capsys.readouterr().out)["kernel"]
    assert (kernel["runs_in"], kernel["program"], kernel["cpus"]) == ("User-Mode Linux", str(program), 1)
    assert main(["plan", LOOPBACK, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernel"] is None


def test_json_has_a_list_of_numbers_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"by_slice": [0, -1, 2.5, None, 1e-07], "texts": ["[\\n 1,\\n", "2"], "empty": [], "lists": [[1, 2], [3]]}
    print_json(value)
    text = capsys.readouterr().out
    assert json.loads(text) == value
    assert '  "by_slice": [0, -1, 2.5, null, 1e-07],\n' in text
    assert "    [1, 2],\n    [3]\n" in text


def test_errors_go_to_standard_error_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[testbed]\nkind = "loopback"\n[gateway]\ntechnology = "router4"\n[trial]\nduraton = "1s"\n')
    assert main(["plan", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"error: {file}: gateway.technology: 'router4' is not one of" in shown.err
    assert f"error: {file}: trial.duraton: unknown key\n\nhint: did you mean duration?" in shown.err
    assert main(["plan", str(file), "--json"]) == 2
    shown = capsys.readouterr()
    assert [error["where"] for error in json.loads(shown.out)["errors"]] == [
        f"{file}: gateway.technology",
        f"{file}: trial.duraton",
    ]


@pytest.mark.parametrize("arguments", [["plam"], ["plan"], ["plan", "--nothing"], ["frame", LOOPBACK, "--count", "x"]])
def test_a_wrong_command_line_is_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: command line: ")
    assert "hint: see gatemark --help" in shown.err


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["trial", LOOPBACK, "--rate", "0"], "--rate"),
        (["trial", LOOPBACK, "--rate", "fast"], "--rate"),
        (["trial", LOOPBACK, "--rate", "50%"], "--rate"),
        (["trial", LOOPBACK, "--rate", "1k", "--duration", "5"], "--duration"),
        (["trial", LOOPBACK, "--rate", "1k", "--size", "63"], "--size: 63 is not between 64"),
        (["trial", LOOPBACK, "--rate", "1k", "--mix", "2/1"], "--mix"),
        (["frame", LOOPBACK, "--direction", "up"], "--direction"),
        (["frame", LOOPBACK, "--count", "0"], "--count"),
    ],
)
def test_bad_options_are_named(arguments: list[str], where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert where in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not (ROOT / "src" / "gatemark" / "cli" / f"{function_of(command)}.py").exists():
        pytest.skip(f"gatemark {command} is not part of this build")
    assert main([command, "--help"]) == 0
    assert f"Usage: gatemark {command}" in capsys.readouterr().out


def test_schema_prints_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    published = ROOT / "docs" / "reference" / "campaign-file.schema.json"
    assert capsys.readouterr().out == published.read_text(encoding="utf-8")


def test_frames_are_decoded_and_their_checksums_verified() -> None:
    sent = decode(GOLDEN[0]["sent"])
    assert (sent["family"], sent["octets"], sent["hop_limit"], sent["udp_checksum_correct"]) == ("ipv6", 84, 10, True)
    expected = decode(GOLDEN[0]["expected"])
    assert (expected["family"], expected["octets"], expected["hop_limit"]) == ("ipv4", 64, 7)
    assert in_words(expected).endswith("UDP 40000 > 7, checksums correct, 64 octets")
    longer = in_words(decode(GOLDEN[0]["expected"] + "010203"))
    assert longer.endswith("checksums correct, 67 octets, 3 of them behind the packet")
    broken = GOLDEN[0]["expected"][:-2] + "ff"
    assert "wrong udp_checksum" in in_words(decode(broken))


@pytest.mark.parametrize("vlan", [False, True])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_echo_requests_are_decoded_and_their_checksums_verified(family: str, *, vlan: bool) -> None:
    from scapy.layers.inet import ICMP, IP
    from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
    from scapy.layers.l2 import Dot1Q, Ether

    ethernet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    link = ethernet / Dot1Q(vlan=5) if vlan else ethernet
    upper = {
        "ipv4": IP(src="198.18.0.2", dst="198.19.0.2") / ICMP(type=8, id=7, seq=3),
        "ipv6": IPv6(src="2001:2::2", dst="2001:2:0:8000::2") / ICMPv6EchoRequest(id=7, seq=3),
    }
    octets = bytes(link / upper[family] / bytes(range(56))).hex()
    fields = decode(octets)
    names = ("family", "identifier", "sequence", "icmp_type", "icmp_checksum_correct")
    assert [fields[name] for name in names] == [family, 7, 3, 8 if family == "ipv4" else 128, True]
    assert "echo request, identifier 7, sequence 3, checksums correct" in in_words(fields)
    assert "wrong icmp_checksum" in in_words(decode(octets[:-2] + "00"))


def with_field(octets: str, at: int, value: str) -> str:
    """A frame with other octets at an offset."""
    return octets[: 2 * at] + value + octets[2 * at + len(value) :]


def test_a_udp_checksum_is_missed_only_where_it_is_due() -> None:
    ipv6, ipv4 = GOLDEN[0]["sent"], GOLDEN[0]["expected"]
    bare4, bare6 = with_field(ipv4, 14 + 20 + 6, "0000"), with_field(ipv6, 14 + 40 + 6, "0000")
    none = decode(bare4, without_checksum=True)
    assert (none["udp_checksum"], none["udp_checksum_correct"]) == (0, True)
    assert "UDP checksum none (0), header checksum correct, 64" in in_words(none)
    assert "UDP checksum none (0), wrong udp_checksum, 64" in in_words(decode(bare4))
    assert in_words(decode(ipv4, without_checksum=True)).endswith("wrong udp_checksum, 64 octets"), "none was asked for"
    assert "UDP checksum none (0), wrong udp_checksum, 84" in in_words(decode(bare6, without_checksum=True))
    assert in_words(decode(ipv6, without_checksum=True)).endswith("checksums correct, 84 octets")


def test_a_header_checksum_of_zero_is_wrong() -> None:
    broken = with_field(GOLDEN[0]["expected"], 14 + 10, "0000")
    assert "wrong header_checksum" in in_words(decode(broken))


def test_a_tagged_frame_shows_its_vlan() -> None:
    sent = GOLDEN[0]["sent"]
    tagged = sent[:24] + "81000064" + sent[24:]
    assert decode(tagged)["vlan"] == 100
    assert "VLAN 100" in in_words(decode(tagged))


def test_the_pcap_holds_the_frames_as_sent(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    write_pcap(path, GOLDEN)
    with path.open("rb") as file:
        assert [octets.hex() for _, octets in dpkt.pcap.Reader(file)] == [GOLDEN[0]["sent"]]


def completed(words: list[str], folder: Path) -> list[str]:
    """Return what bash offers for the last of these words, by the script that `gatemark completion bash` prints."""
    script = folder / "completion"
    quoted = " ".join(f"'{word}'" for word in words)
    text = (
        f"source {script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n_gatemark\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    return subprocess.run(["bash", "-c", text], check=True, capture_output=True, text=True).stdout.split()


def test_bash_completes_commands_options_and_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out, encoding="utf-8")
    assert completed(["gatemark", "comp"], tmp_path) == ["compare", "completion"]
    assert set(completed(["gatemark", "compare", "--f"], tmp_path)) == {"--fail-if", "--format"}
    assert completed(["gatemark", "import", "sii"], tmp_path) == ["siitperf"]
    assert completed(["gatemark", "report", "--format", "la"], tmp_path) == ["latex"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_completed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell, "--json"]) == 0
    script = json.loads(capsys.readouterr().out)["script"]
    assert [command for command in COMMANDS if command not in script] == []

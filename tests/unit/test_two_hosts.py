"""Two gateways of a row on two hosts: what a campaign says of them, what is asked of both, and what follows."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.trial_facts import record_of
from tests.unit.test_host_counters import reading as host_reading
from tests.unit.test_telemetry import facts_of, reading, steady

from gatemark.campaign.engine_trial import IdleMiddle
from gatemark.campaign.facts import TrialTally
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.telemetry import samples_text
from gatemark.cli.main import main
from gatemark.config.tables import GatewayControlModel, OtherHostModel
from gatemark.dut.base import HostReading, KernelCounts, TelemetryReading
from gatemark.dut.open import open_testbed
from gatemark.dut.other_gateway import BothSamplers, of_both
from gatemark.dut.ports import PortsTestBed
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, TestBedError
from gatemark.results.toml_text import to_toml
from gatemark.trial.record import TrialRecord
from gatemark.trial.telemetry import TelemetryFacts, unit_of, words_of
from gatemark.trial.verdict import Verdict

HANDED = "echo packets 7"


def document(technology: str = "ds_lite", kind: str = "ports", **gateway: Any) -> dict[str, Any]:
    """A campaign of a row on two hosts, both of them shells of this machine."""
    sides = {"left": ("10.0.0.2", "10.0.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    control = {"clear_state": "true", "count_middle": HANDED, "describe": "echo of the first"}
    other = {"shell": "sh -s --", "count_middle": "echo 40", "describe": "echo of the other", "health": "true"}
    return {
        "gateway": {
            "technology": technology,
            "pool": ["198.19.0.1/32"],
            "mapping": "endpoint_dependent",
            "control": control,
            "other_host": other,
            **gateway,
        },
        "testbed": {"kind": kind},
        **{
            side: {"port": "ring", "ipv4": {"address": address, "gateway": router}}
            for side, (address, router) in sides.items()
        },
        "connections": {"count": 100, "rate": "1k"},
        "frame_loss": {"rates": ["1k"]},
    }


def problems(changed: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        complete_campaign(campaign_from_dict(changed))
    return {problem.where.removeprefix("campaign: "): str(problem) for problem in caught.value.problems}


def bed_of(changed: dict[str, Any]) -> PortsTestBed:
    bed = open_testbed(complete_campaign(campaign_from_dict(changed)))
    assert isinstance(bed, PortsTestBed)
    return bed


def test_one_gateway_has_no_other_host() -> None:
    (said,) = problems(document("nat44", control={"clear_state": "true"})).items()
    assert said[0] == "gateway.other_host" and "nat44, which is one gateway" in said[1]


def test_the_other_host_must_be_somewhere_else() -> None:
    said = problems(document(other_host={"count_middle": "echo 1"}))
    assert "its commands would run on this machine" in said["gateway.other_host.host"]


@pytest.mark.parametrize(
    ("gateway", "key"),
    [
        ({"control": {"clear_state": "true"}}, "gateway.control.count_middle"),
        ({"other_host": {"host": "root@192.0.2.2"}}, "gateway.other_host.count_middle"),
    ],
)
def test_both_gateways_count_what_they_hand_over_or_none_does(gateway: dict[str, Any], key: str) -> None:
    (said,) = problems(document(**gateway)).items()
    assert said[0] == key and "only if both gateways count" in said[1]


def test_frames_are_captured_on_all_three_links_or_on_none() -> None:
    control = {"clear_state": "true", "count_middle": HANDED}
    said = problems(document(control={**control, "middle_interface": "eth1"}))
    assert set(said) == {"gateway.control.outer_interface", "gateway.other_host.outer_interface"}
    assert all("captured on all three links or on none" in words for words in said.values())
    assert set(problems(document(control={**control, "outer_interface": "eth0; reboot"}))) == {
        "gateway.control.outer_interface"
    }


def test_a_shell_of_the_other_host_that_calls_ssh_is_refused() -> None:
    said = problems(document(other_host={"shell": "ssh gw sh -s", "count_middle": "echo 1"}))
    assert "gateway.other_host.host = " in said["gateway.other_host.shell"]


@pytest.mark.parametrize(("technology", "keeper"), [("ds_lite", "right"), ("464xlat", "right")])
def test_frames_are_counted_by_the_side_on_which_a_gateway_stands(technology: str, keeper: str) -> None:
    changed = document(technology)
    bed = bed_of(changed)
    read = bed.can.host
    assert read is not None
    reading_ = read.read()
    assert reading_ is not None
    other = "left" if keeper == "right" else "right"
    assert reading_.counted.counters == {
        f"interface.middle-{keeper}.tx_packets": 7,
        f"interface.middle-{keeper}.tx_dropped": 0,
        f"interface.middle-{other}.tx_packets": 40,
        f"interface.middle-{other}.tx_dropped": 0,
    }
    bed.close()


def test_a_command_that_runs_at_either_host_while_frames_are_sent_is_told() -> None:
    bed, began_ns = bed_of(document()), time.monotonic_ns()
    control, host = bed.can.control, bed.can.host
    assert control is not None and host is not None
    assert control.commands_since(began_ns) == ()
    host.read()
    told = ("gateway.control: count_middle", "gateway.other_host: count_middle")
    assert control.commands_since(began_ns) == told
    assert control.commands_since(time.monotonic_ns()) == ()
    bed.close()


def test_a_command_that_counts_nothing_is_known_before_the_first_trial() -> None:
    bed = bed_of(document(other_host={"shell": "sh -s --", "count_middle": "echo none"}))
    with pytest.raises(TestBedError, match=r"gateway\.other_host: count_middle: printed no number"), bed:
        pass


def test_both_gateways_are_described_and_must_be_healthy() -> None:
    changed = document()
    changed["gateway"]["other_host"]["health"] = "false"
    with bed_of(changed) as bed:
        configuration = bed.describe().configuration
        with pytest.raises(TestBedError, match=r"gateway\.other_host: health"):
            bed.can.check()
    assert configuration == "# echo of the first\nof the first\n\n# the other gateway: echo of the other\nof the other"


def test_counters_of_both_hosts_are_added_and_a_boot_of_either_is_noticed() -> None:
    first = KernelCounts(counters={"ip.x": 1, "tcp.y": 2}, boot_ids=("a",))
    before, behind = (of_both(first, KernelCounts(counters={"ip.x": 3}, boot_ids=(boot,))) for boot in ("b", "c"))
    assert before.counters == {"ip.x": 4, "tcp.y": 2}
    assert (before.boot_ids, behind.boot_ids) == (("a", "b"), ("a", "c"))


def handed(forward: int, reverse: int) -> HostReading:
    """A reading just before or after a trial."""
    counters: dict[str, int] = {}
    for side, count in (("left", forward), ("right", reverse)):
        counters |= {f"interface.middle-{side}.tx_packets": count, f"interface.middle-{side}.tx_dropped": 0}
    return host_reading(counters, {})


def test_frames_between_trials_are_none_of_the_testers() -> None:
    idle = IdleMiddle()
    idle.begin(handed(100, 100))
    idle.end(handed(200, 150))
    idle.begin(handed(200, 150))
    assert idle.strays == 0
    idle.end(handed(300, 200))
    idle.begin(handed(301, 202))
    assert idle.strays == 3
    idle.end(None)
    idle.begin(handed(400, 300))
    assert idle.strays == 3
    idle.begin(handed(500, 300))  # behind a trial that failed
    assert idle.strays == 3
    idle.end(handed(500, 300))
    idle.forget()  # packets that no reading surrounds
    idle.begin(handed(600, 300))
    assert idle.strays == 3


def both(share: float, other: float) -> TelemetryReading:
    """Samples of two hosts with one CPU each."""
    return replace(reading(*steady(share, 0, 10)), other=reading(*steady(other, 0, 10)))


def record() -> TrialRecord:
    return record_of(telemetry=facts_of(both(0.75, 0.25)), verdict=Verdict(passed=True))


def test_samples_of_the_other_host_are_its_own() -> None:
    facts = facts_of(both(0.75, 0.25))
    assert facts.other is not None
    levels = [of.level("sending", "busy") for of in (facts, facts.other)]
    assert [level.mean for level in levels if level is not None] == [75.0, 25.0]
    rows = list(csv.DictReader(io.StringIO(samples_text(record()))))
    assert len(rows) == 2 * 17
    assert all(bool(row["cpu.0"]) != bool(row["other.cpu.0"]) for row in rows if row["cpu.0"] or row["other.cpu.0"])
    kept = TelemetryFacts.model_validate_json(facts.model_dump_json())
    assert kept.other is not None and kept.other.spans == facts.other.spans


def test_the_figures_of_a_run_are_those_of_both_hosts() -> None:
    tally = TrialTally()
    tally.add(record())
    figures = {level.series: (level.values, level.name) for level in tally.telemetry}
    assert figures["busy"][0] == (75,)
    assert figures["other.busy"] == ((25,), "the other gateway: busy share, mean of the cores")
    assert (unit_of("other.busy"), words_of("other.cpu.3")) == ("%", "the other gateway: busy share, core 3")


def test_what_one_of_two_hosts_does_not_tell_is_said_of_it() -> None:
    facts = facts_of(replace(reading(*steady(0.5, 0, 10)), other=TelemetryReading(reason="the sampler has ended")))
    assert facts.complaints == ("the other gateway: the sampler has ended",)


class Sampler:
    """Notes for how long it was asked to sample."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def start(self, seconds: float) -> None:
        self.asked.append(seconds)

    def read(self) -> TelemetryReading:
        return TelemetryReading(reason=f"asked {len(self.asked)} times")


def test_both_hosts_are_sampled() -> None:
    first, other = Sampler(), Sampler()
    samplers = BothSamplers(first, other)
    samplers.start(2.0)
    read = samplers.read()
    assert (first.asked, other.asked) == ([2.0], [2.0])
    assert read.other is not None and read.other.reason == "asked 1 times"


def test_all_commands_of_both_hosts_are_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = document(telemetry={"interval": "1s"})
    changed["gateway"]["control"] |= {"host": "first", "outer_interface": "eth0", "middle_interface": "eth1"}
    other = {"host": "second", "sudo": True, "count_middle": "echo 1", "outer_interface": "eth7"}
    changed["gateway"]["other_host"] = other
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(changed))
    assert main(["plan", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "- other_host: count_middle, through `ssh second sudo -n sh -s`: echo 1" in shown
    captures = [line.split(" -p ")[0] for line in shown.splitlines() if "tcpdump" in line]
    at_other = "- other_host: capture, through `ssh second sudo -n sh -s`: tcpdump -i eth7"
    assert captures == ["- capture: tcpdump -i eth0", "- capture: tcpdump -i eth1", at_other]
    assert "\nand on second: busy share of each CPU, memory, connections, interrupts of its network cards" in shown
    assert main(["plan", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["telemetry"]["other_host"] == "second"


OTHER_HOST: dict[str, Any] = {
    "host": "second",
    "sudo": True,
    "shell": "sh -s --",
    "describe": "echo description",
    "count_middle": "echo 1",
    "health": ["echo up", "echo well"],
    "outer_interface": "eth0",
}
CONTROL: dict[str, Any] = {
    **OTHER_HOST,
    "host": "first",
    "middle_interface": "eth1",
    "commands": "linux",
    "clear_state": "echo clear",
    "count_connections": "echo connections",
    "tear_down": "echo tear down",
    "set_table_size": "echo table {size}",
    "set_hash_size": "echo {size}",
    "set_udp_timeout": "echo {seconds}",
    "read_table_size": "echo size",
    "read_hash_size": "echo buckets",
    "read_udp_timeout": {"replied": "echo timeout"},
    "reset": "echo reset",
    "start": "echo start",
    "stop": "echo stop",
    "set": {"clock": {"apply": "echo {value}", "read": "echo clock", "at_boot": True}},
    "boot": "column",
    "boot_after_collapse": True,
    "power_cycle": "echo cycle",
    "reboot": "echo reboot",
    "boot_id": "echo boot",
    "after_boot": "echo after",
    "limits": {"boot": "100s", "set": "2s"},
}


def echoes(value: object) -> list[str]:
    """The commands among the values of a table, all of which are `echo` here."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    texts = [value] if isinstance(value, str) and value.startswith("echo") else []
    return sorted([*texts, *(line for part in inner for line in echoes(part))])


def keys_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("other_way", ["power_cycle", "reboot"])
def test_commands_and_nothing_else_are_planned_as_commands(
    other_way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (keys_of(GatewayControlModel), keys_of(OtherHostModel)) == (set(CONTROL), set(OTHER_HOST))
    control = {key: value for key, value in CONTROL.items() if key != other_way}
    table = {"size": 1000, "hash_size": 100, "udp_timeout": "1000s"}
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(document(control=control, other_host=OTHER_HOST, settings={"clock": 5}, table=table)))
    assert main(["plan", str(file)]) == 0
    shown = [line.removeprefix("- ").rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()]
    assert {*echoes(control), *echoes(OTHER_HOST)} <= set(shown)
    assert main(["plan", str(file), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["commands"]["by_occasion"]
    assert echoes(planned) == sorted([*echoes(control), *echoes(OTHER_HOST)])
    captures = [line for lines in planned.values() for line in lines if line.startswith("tcpdump -i eth")]
    assert len(captures) == 3
    assert sum(map(len, planned.values())) == len(echoes(planned)) + len(captures)

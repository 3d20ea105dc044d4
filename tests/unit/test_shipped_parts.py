"""What a wheel and a .deb say of the parts of others that they hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

SCRIPT = Path(__file__).parents[2] / "scripts" / "shipped-parts"
LICENCE = "The Some Licence\n\nCopyright (c) 2020 Some Body\n  * Copyright 2021 Other Body\n\nDo as you like.\n"


def said(*arguments: str | Path) -> str:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    return str(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def bill() -> str:
    """Of a wheel; these packages every machine of the tests has."""
    return said("bill", "zlib1g-dev", "nlohmann-json3-dev")


@pytest.fixture
def installed(bill: str, tmp_path: Path) -> Path:
    """A folder of Python packages, as pip leaves it."""
    site = tmp_path / "site"
    put(site / "gatemark-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: gatemark\nVersion: 1.0\n")
    put(site / "gatemark-1.0.dist-info/sboms/gatemark.cdx.json", bill)
    put(site / "gatemark-1.0.dist-info/licenses/zlib1g-dev.txt", "License of zlib\n")
    put(site / "gatemark/_engine/gatemark-engine", "")
    metadata = "Metadata-Version: 2.1\nName: Some.Thing\nVersion: 2.0\nLicense: MIT\n"
    put(site / "some_thing-2.0.dist-info/METADATA", metadata)
    put(site / "some_thing-2.0.dist-info/licenses/LICENSE", LICENCE)
    put(site / "some_thing/__init__.py", "")
    put(site / "some_thing.libs/libpart-1.so.2", "shared")
    for name in ("gatemark-1.0", "some_thing-2.0"):
        files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
        listed = [path for path in files if path.parts[0].startswith(name.partition("-")[0])]
        put(site / f"{name}.dist-info/RECORD", "".join(f"{path},,\n" for path in listed))
    return site


def test_the_bill_of_a_wheel_names_what_is_linked_in(bill: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    document = json.loads(bill)
    assert document["metadata"]["component"]["name"] == "gatemark"
    assert document["metadata"]["timestamp"].startswith("2023-11-14T22:13:20")
    parts = {part["name"]: part for part in document["components"]}
    assert set(parts) == {"zlib1g-dev", "nlohmann-json3-dev"}
    installed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "zlib1g-dev"], check=True, capture_output=True, text=True
    ).stdout
    assert parts["zlib1g-dev"]["version"] == installed
    assert parts["zlib1g-dev"]["purl"].startswith("pkg:deb/")
    assert {"license": {"name": "Zlib"}} in parts["zlib1g-dev"]["licenses"]
    assert said("bill", "nlohmann-json3-dev", "zlib1g-dev") == bill, "two runs print the same"


def test_the_bill_of_a_deb_has_the_packages_their_libraries_and_what_the_wheel_links(installed: Path) -> None:
    text = said("deb-bill", installed)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    parts = {part["name"]: part for part in json.loads(text)["components"]}
    assert set(parts) == {"zlib1g-dev", "nlohmann-json3-dev", "Some.Thing", "some_thing.libs/libpart-1.so.2"}
    assert parts["Some.Thing"]["purl"] == "pkg:pypi/some-thing@2.0"
    (digest,) = parts["some_thing.libs/libpart-1.so.2"]["hashes"]
    assert (digest["alg"], len(digest["content"])) == ("SHA-256", 64)


def test_the_file_of_copyrights_has_every_licence_word_for_word(installed: Path) -> None:
    paragraphs = said("deb-copyright", installed, "usr/lib/x").split("\n\n")
    head, whole, programs, other, linked = paragraphs
    assert head.startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n")
    assert "libelf and libnuma" in head and "make wheel" in head
    assert whole.startswith("Files: *\n") and "Apache-2.0" in whole
    assert "usr/lib/x/gatemark/_engine/*" in programs and "zlib1g-dev" in programs
    for place in ("some_thing/*", "some_thing-2.0.dist-info/*", "some_thing.libs/*"):
        assert f"\n usr/lib/x/{place}\n" in other
    assert "\n Copyright (c) 2020 Some Body\n Copyright 2021 Other Body\n" in other
    for line in LICENCE.splitlines():
        assert f"\n {line or '.'}\n" in other
    assert linked == "License: zlib1g-dev\n License of zlib\n"
    for paragraph in paragraphs:
        assert all(line[0] == " " or ":" in line for line in paragraph.rstrip("\n").split("\n")), paragraph

"""One version, by the latest tag: of the package, of the wheel, of what CMake gives the programs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from gatemark.errors import EngineError
from gatemark.programs import find_program

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "version_of_tag.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("version_of_tag", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *arguments: str) -> None:
    names = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    command = ("git", "-C", str(folder), *arguments)
    subprocess.run(command, check=True, capture_output=True, env={"PATH": os.environ["PATH"], **names, **settings})


def commit(folder: Path) -> None:
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


@pytest.mark.parametrize("tag", ["1.2.0", "0.10", "2.0.0rc1"])
def test_a_tag_is_the_version_of_its_commit_and_counts_those_behind_it(tag: str, checkout: Path) -> None:
    version_of = script().version_of
    assert version_of(checkout) == script().BEFORE_ANY_TAG
    git(checkout, "tag", f"v{tag}")
    assert version_of(checkout) == tag
    commit(checkout)
    commit(checkout)
    git(checkout, "tag", "of-something-else")
    assert re.fullmatch(rf"{re.escape(tag)}\.post2\+g[0-9a-f]{{7,}}", version_of(checkout))


def test_a_tag_of_no_version_is_told(checkout: Path) -> None:
    git(checkout, "tag", "v2-final")
    with pytest.raises(SystemExit, match="v2-final is the tag of no version"):
        script().version_of(checkout)


def test_without_git_it_is_that_of_the_source_distribution_or_the_one_before_any_tag(tmp_path: Path) -> None:
    assert script().version_of(tmp_path) == script().BEFORE_ANY_TAG
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.2\nName: gatemark\nVersion: 3.4.5\n", encoding="utf-8")
    assert script().version_of(tmp_path) == "3.4.5"


def test_the_wheel_has_the_version_of_the_checkout(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    code = "import sys; from scikit_build_core.build import *; prepare_metadata_for_build_wheel(sys.argv[1])"
    subprocess.run((sys.executable, "-c", code, str(tmp_path)), cwd=ROOT, check=True, capture_output=True)
    (facts,) = tmp_path.glob("gatemark-*.dist-info/METADATA")
    assert f"\nVersion: {script().version_of(ROOT)}\n" in facts.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_takes_the_version_of_the_wheel_or_of_the_checkout() -> None:
    def shown(*options: str) -> str:
        command = ("cmake", *options, "-P", str(ROOT / "cmake" / "version.cmake"))
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert shown() == f"-- gatemark {script().version_of(ROOT)}\n"
    assert shown("-DSKBUILD_PROJECT_VERSION_FULL=1.2.0.post5+g1a2b3c4") == "-- gatemark 1.2.0.post5+g1a2b3c4\n"


@pytest.mark.parametrize("name", ["gatemark-engine", "gatemark-refdut"])
def test_programs_have_the_version_of_the_package(name: str) -> None:
    try:
        program = find_program(name, "GATEMARK_NOTHING", None, EngineError)
    except EngineError:
        pytest.skip(f"{name} is not built")
    shown = subprocess.run((program, "--version"), check=True, capture_output=True, text=True).stdout
    assert shown == f"{name} {metadata.version('gatemark')}\n"


def test_what_is_cited_is_this_version_or_the_one_that_is_prepared() -> None:
    cited = re.search(r"(?m)^version: ([0-9.]+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    here = re.match(r"[0-9.]*[0-9]", script().version_of(ROOT).partition(".post")[0])
    assert cited is not None and here is not None
    assert [int(part) for part in cited[1].split(".")] >= [int(part) for part in here[0].split(".")]

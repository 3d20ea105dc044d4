"""What a reader relies on: the arrows between modules, the length of functions, no loose ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.tidy.modules import MODULES, belongs, imports, own_imports

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "engine" / "src"

FUNCTION_LINES_MAX = 70

ARROWS: dict[str, set[str]] = {
    "units": set(),
    "errors": set(),
    "files": set(),
    "harmless": set(),
    "consoles": {"harmless"},
    "technology": set(),
    "port_kinds": set(),
    "bed_kinds": {"port_kinds"},
    "facts": {"technology"},
    "embedded_ipv4": set(),
    "linux_aftr": {"map_domains"},
    "map_domains": {"embedded_ipv4", "errors", "facts"},
    "stats": set(),
    "search": set(),
    "programs": {"errors"},
    "config": {
        "bed_kinds", "embedded_ipv4", "errors", "facts", "files", "harmless", "linux_aftr", "map_domains", "port_kinds",
        "technology", "units",
    },
    "trial": {"config", "errors", "facts", "map_domains", "packets", "search", "technology", "units"},
    "causes": {"facts", "trial", "units"},
    "damage": {"bed_kinds", "config", "embedded_ipv4", "facts", "packets", "technology", "trial"},
    "results": {
        "bed_kinds", "errors", "facts", "files", "harmless", "port_kinds", "search", "stats", "technology", "units",
    },
    "report": {"consoles", "facts", "harmless", "results", "stats", "technology", "trial", "units"},
    "packets": set(),
    "procedures": {
        "config", "embedded_ipv4", "errors", "facts", "map_domains", "packets", "report", "results", "search",
        "stats", "technology", "trial", "units",
    },
    "engine": {"errors", "facts", "files", "programs", "technology", "trial", "units"},
    "kernels": {"errors", "files"},
    "findings": {"errors"},
    "dut": {
        "bed_kinds", "config", "errors", "facts", "files", "harmless", "kernels", "map_domains", "port_kinds",
        "technology",
    },
    "refdut": {"errors", "programs", "results.toml_text", "technology"},
    "campaign": {
        "causes", "config", "consoles", "damage", "dut", "embedded_ipv4", "engine.answers", "engine.client", "errors",
        "facts", "files",
        "harmless", "map_domains", "packets", "port_kinds", "procedures", "results", "search", "technology", "trial",
        "units",
    },
    "series": {
        "begun", "campaign", "config", "consoles", "errors", "report", "results", "session", "stats", "stored",
        "technology", "tester", "trial.telemetry", "units",
    },
    "compare": {
        "bed_kinds", "config", "errors", "facts", "report", "results", "series", "stats", "stored", "units",
    },
    "pairs": {
        "begun", "campaign", "compare", "config", "consoles", "dut", "errors", "facts", "procedures", "report",
        "results", "search", "stats", "tester", "trial", "units",
    },
    "laboratory": {"campaign", "config", "errors", "files", "harmless", "results", "series", "session"},
    "archive": {
        "begun", "campaign", "config", "dut.recipe", "engine.client", "errors", "facts", "files", "harmless",
        "port_kinds", "results", "selftest.document", "series", "session", "stored", "tester",
    },
    "starter": {"campaign", "config", "dut.recipe", "errors", "procedures", "results", "technology", "units"},
    "selftest": {
        "bed_kinds", "campaign", "config", "dut", "errors", "facts", "files", "port_kinds", "procedures.loads",
        "results.ceiling",
        "results.this_machine", "search", "technology", "tester", "trial",
    },
    "calibrate": {
        "campaign", "config", "dut", "engine.process", "errors", "procedures", "refdut", "report", "results", "session",
        "technology", "tester", "trial", "units",
    },
}  # fmt: skip
"""Package: what it may import besides itself. Single modules at the top of the package put these together."""

ASSEMBLY = {
    "",
    "begun",
    "demo",
    "doctor",
    "map_preflight",
    "preflight",
    "session",
    "stored",
    "tester",
    "tunnel_preflight",
    "cli",
}
"""Modules that wire the packages to each other; only `cli` may import every one of them."""

PURE = (
    "units", "errors", "facts", "harmless", "consoles", "technology", "port_kinds", "bed_kinds", "embedded_ipv4",
    "linux_aftr", "map_domains", "packets", "stats", "search", "trial", "causes", "damage",
    "procedures", "report", "config.model", "config.tables", "config.types", "config.check", "config.complete",
    "config.b4_gateway", "config.sixrd", "config.flows", "config.hosts", "config.merge", "config.only", "config.recipe",
    "config.reserved", "config.sizes", "config.defaults", "config.load_types", "config.problems", "config.stateful",
    "config.map_check", "config.map_gateway", "config.map_tables", "config.key_value_file", "config.maptperf",
    "config.siitperf", "config.siitperf_script", "config.complete_stateful", "config.control", "config.keys",
    "config.vary",
    "config.views", "archive.layout",
    "compare.condition", "compare.document", "compare.judge", "compare.report", "compare.setup",
    "pairs.conclude", "pairs.document", "pairs.evidence", "pairs.figure", "pairs.load", "pairs.options", "pairs.pair",
    "pairs.report", "pairs.setup",
    "campaign.plan", "campaign.deviations", "campaign.estimate", "campaign.facts", "campaign.requests",
    "results.ceiling", "results.connections", "results.coordinates", "results.document",
    "results.header_changes", "results.part",
    "results.provenance", "results.quantity", "results.run", "results.search", "results.telemetry",
    "results.tester_parts", "results.unit",
    "series.degradation", "series.document", "series.join", "series.memory", "series.page", "series.parameters",
    "series.report", "series.services",
)  # fmt: skip
"""Modules without effects; everything that they import of gatemark must be in this list too."""

EFFECTS = {
    "asyncio", "concurrent", "ctypes", "datetime", "fcntl", "multiprocessing", "os", "pathlib", "pyroute2", "random",
    "secrets", "select", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time",
}  # fmt: skip
"""Modules of others that a pure module has no use for."""

ENGINE_ORDER = (
    "base", "net", "enumerate", "pace", "frame", "record", "state", "io", "loop", "trial", "control", "app",
)  # fmt: skip
"""Lower first. `frame` writes time stamps, so it stands above `pace`."""


REFDUT_SHARES = (
    "base/available_memory.hpp", "base/bytes.hpp", "base/counts.hpp", "base/enum_set.hpp", "base/names.hpp",
    "base/paged_memory.hpp", "base/random.hpp", "base/result.hpp", "base/wide.hpp", "net/address.hpp",
    "pace/calibrate.hpp", "pace/clock.hpp", "pace/tick_scale.hpp", "io/",
)  # fmt: skip
"""All that the reference gateway has in common with the Tester: no checksum, no translation, no frame. Whatever it does
to packets is written a second time, so that one mistake cannot hide itself."""


def test_an_import_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "if TYPE_CHECKING:\n    from gatemark.config import model\n"
        "def f():\n    import gatemark.units\n"
        "from gatemark.dut import TestBed, shell\nimport os\n"
    )
    assert set(own_imports(tmp_path / "a.py")) == {"config.model", "units", "dut", "dut.shell"}


def circles(graph: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """List the groups of modules that import each other, directly or through others."""
    reached = {module: reached_from(module, graph) for module in graph}
    members = ([other for other in reached[module] if module in reached[other]] for module in graph)
    return sorted({tuple(sorted(group)) for group in members if group})


def reached_from(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Return all that a module imports, and what that imports; a module of a circle is among it."""
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def test_a_circle_is_noticed() -> None:
    graph = {"above": {"a"}, "a": {"b", "below"}, "b": {"c"}, "c": {"a"}, "below": set(), "self": {"self"}}
    assert circles(graph) == [("a", "b", "c"), ("self",)]


def test_no_module_imports_itself_through_others() -> None:
    assert circles({module: set(own_imports(path)) for module, path in MODULES.items()}) == []


@pytest.mark.parametrize("package", ARROWS)
def test_python_arrows_point_one_way(package: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        if belongs(module, package)
        for name in own_imports(path)
        if not belongs(name, package) and not any(belongs(name, allowed) for allowed in ARROWS[package])
    ]
    assert wrong == []


def test_every_package_has_its_arrows() -> None:
    assert {module.partition(".")[0] for module in MODULES} == set(ARROWS) | ASSEMBLY


def test_the_table_of_packages_has_each_once() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = [name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)", row)]
    assert sorted(listed) == sorted({*ARROWS, *ASSEMBLY} - {""})


def test_nothing_imports_the_command_line() -> None:
    wrong = [
        module
        for module, path in MODULES.items()
        if not belongs(module, "cli") and any(belongs(name, "cli") for name in own_imports(path))
    ]
    assert wrong == []


def test_pure_modules_have_no_effects() -> None:
    wrong = []
    for module, path in MODULES.items():
        if any(belongs(module, pure) for pure in PURE):
            impure = [name for name in own_imports(path) if not any(belongs(name, pure) for pure in PURE)]
            foreign = [name for name in imports(path) if name.partition(".")[0] in EFFECTS]
            wrong += [f"{module} imports {name}" for name in (*impure, *foreign)]
    assert wrong == []


def engine_files() -> list[Path]:
    return sorted(path for path in ENGINE.rglob("*") if path.suffix in (".hpp", ".cpp"))


def test_lower_modules_of_the_engine_never_include_higher_ones() -> None:
    wrong = []
    for path in engine_files():
        module = path.relative_to(ENGINE).parts[0]
        for header in re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8")):
            other = header.partition("/")[0]
            if "refdut" in (module, other):
                if module != other and not header.startswith(REFDUT_SHARES):
                    wrong.append(f"{path.relative_to(ROOT)} includes {header}")
                continue
            allowed = ENGINE_ORDER.index(other) <= ENGINE_ORDER.index(module)
            if module == "loop" and other == "io":
                allowed = header == "io/port.hpp"  # the concept, no port
            if not allowed:
                wrong.append(f"{path.relative_to(ROOT)} includes {header}")
    assert wrong == []


def test_only_io_knows_dpdk() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in engine_files()
        if path.parent != ENGINE / "io" and re.search(r"#include <rte_", path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def written_files() -> list[Path]:
    """Files that people write: no build output, no caches, no generated schemas."""
    suffixes = {".py", ".cpp", ".hpp", ".md", ".toml", ".j2", ".txt", ".svg", ""}
    places = ("src", "engine", "protocol", "tests", "docs", "examples", "scripts", "bench", "changelog.d", ".ci")
    files = [path for path in ROOT.iterdir() if path.is_file()]
    for place in places:
        files += [path for path in (ROOT / place).rglob("*") if path.is_file()]
    hidden = re.compile(r"/(\.[a-z_]*cache|__pycache__|\.hypothesis|_engine|[^/]*\.egg-info)/")
    return sorted(path for path in files if path.suffix in suffixes and not hidden.search(str(path)))


def test_python_functions_are_short() -> None:
    long = {}
    for path in written_files():
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long[f"{path.relative_to(ROOT)}: {node.name}"] = lines
    assert long == {}


EMPTY_NAMES = {"found", "made", "one", "own", "seen"}
"""They say that there is something, and not what."""


def names_bound_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each variable and argument that the code binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def test_names_of_variables_say_what_they_hold() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in written_files()
        if path.suffix == ".py"
        for name, line in names_bound_in(ast.parse(path.read_text(encoding="utf-8")))
        if name in EMPTY_NAMES
    ]
    assert wrong == []


LOOSE_ENDS = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b|\b[MT]-\d{2,3}\b")
"""Notes to oneself, and citations of notes that are not part of the project."""


def test_no_loose_ends() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in written_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if LOOSE_ENDS.search(line)
    ]
    assert wrong == []


NUMBER_OF_CPUS = re.compile(r"len\((?:usable_cpus\(\)|os\.sched_getaffinity\(0\))\)")


def test_no_system_test_asks_how_many_cpus_there_are() -> None:
    """Beside others it has a single one on any machine, and its cases would be left out unnoticed: mark them `cpus`."""
    paths = (ROOT / "tests" / "system").glob("*.py")
    assert [path.name for path in paths if NUMBER_OF_CPUS.search(path.read_text(encoding="utf-8"))] == []

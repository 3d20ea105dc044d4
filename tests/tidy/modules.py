"""The modules of gatemark, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "gatemark"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def belongs(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function, for types or for good."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0, f"{path}:{node.lineno}: a relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from dict.fromkeys(
                name if name.removeprefix("gatemark.") in MODULES else node.module for name in inner
            )


def own_imports(path: Path) -> Iterator[str]:
    for name in imports(path):
        if belongs(name, "gatemark"):
            yield name.removeprefix("gatemark").removeprefix(".")


def stored_names(tree: ast.AST) -> Iterator[ast.Name]:
    """Yield each name to which the code binds a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node


def top_level_names(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield what a module defines, with its definition; not the names that Python itself looks for."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [name.id for target in targets for name in stored_names(target)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                continue
        yield from ((name, node) for name in names if not name.startswith("__"))

"""Gathers the pages of the site from the checkout, so that every relative link of a document works there too.

Documents are copied. A file that one links to becomes a page that shows it, a folder a page that lists it; both are
followed in turn. A link to an archive of the gallery leads to the report in it. The API reference is made of the names
that `import gatemark` publishes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import gatemark

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "engine", "protocol", "bench", "examples/papers", "gallery")
LINK = re.compile(r"(?P<before>\]\(|(?:src|href)=\")(?P<target>[^)\s\"]+)(?P<after>[)\"])")
FENCED = re.compile(r"(?ms)^(```\w*)[^\n]*(.*?^```$)")
"""A block of code; what follows its language on the first line is for tests alone."""
COPIED = {".svg", ".png", ".json", ".html", ".csv", ".css", ".gz"}
"""Files that a browser shows as they are."""
ARCHIVE = ".tar.gz"
LANGUAGES = {".toml": "toml", ".py": "python", ".hpp": "cpp", ".cpp": "cpp", ".sh": "bash", "": "text"}


def documents() -> Iterator[Path]:
    """Yield every document of the checkout."""
    yield from sorted(ROOT.glob("*.md"))
    yield ROOT / "changelog.d/README.md"
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.md"))


class Gathering:
    """Writes pages, and what they link to, below one folder."""

    def __init__(self, pages: Path) -> None:
        self._pages = pages
        self._made: set[Path] = set()

    def document(self, path: Path) -> None:
        """Copy a document; its links lead to pages."""
        text = path.read_text(encoding="utf-8")
        parts: list[str] = []
        end = 0
        for fence in FENCED.finditer(text):
            parts += [self._with_links(text[end : fence.start()], path.parent), "".join(fence.groups())]
            end = fence.end()
        self._write(path, "".join([*parts, self._with_links(text[end:], path.parent)]))

    def _with_links(self, text: str, folder: Path) -> str:
        def replaced(match: re.Match[str]) -> str:
            target, archive = match["target"], match["target"].endswith(ARCHIVE)
            page = self._page_of(target, folder)
            report = f"{self._report(folder / target)}), [archive](" if archive else ""
            return match["before"] + report + page + match["after"]

        return LINK.sub(replaced, text)

    def _page_of(self, target: str, folder: Path) -> str:
        """Return the link to the page of a target, which is made if it is not a document."""
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        file = (folder / path).resolve()
        if file.is_dir():
            self._folder(file)
            return os.path.join(path, "README.md")
        if file.suffix in COPIED:
            self._copy(file)
        elif file.suffix != ".md":
            self._source(file)
            return f"{path}.md"
        return f"{path}#{anchor}" if anchor else path

    def _copy(self, file: Path) -> None:
        if self._is_new(file):
            place = self._pages / file.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def _report(self, archive: Path) -> str:
        """Unpack the reports of an archive, of a series those of its columns as well; return where the first is."""
        name = archive.name.removesuffix(ARCHIVE)
        with tarfile.open(archive) as files:
            for member in files:
                source = files.extractfile(member)
                if source is not None and Path(member.name).name == "report.html":
                    place = self._pages / archive.parent.relative_to(ROOT) / member.name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(source.read())
        return f"{name}/report.html"

    def _source(self, file: Path) -> None:
        """Make the page of a file that is no document."""
        if self._is_new(file):
            text = file.read_text(encoding="utf-8").replace("```", "'''")
            shown = (
                f"# {file.name}\n\n`{file.relative_to(ROOT)}`\n\n```{LANGUAGES.get(file.suffix, 'text')}\n{text}```\n"
            )
            self._write(file.with_name(f"{file.name}.md"), shown)

    def _folder(self, folder: Path) -> None:
        """Make the page of a folder that has none of its own."""
        if not self._is_new(folder) or (folder / "README.md").exists():
            return
        files = sorted(path for path in folder.iterdir() if path.is_file())
        for file in files:
            self._source(file)
        lines = [f"- [{file.name}]({file.name}.md)" for file in files]
        self._write(folder / "README.md", f"# {folder.relative_to(ROOT)}\n\n" + "\n".join(lines) + "\n")

    def examples(self) -> None:
        """Make a page of every example, in the order of their numbers."""
        folder = ROOT / "examples"
        files = sorted(folder.glob("*.toml"), key=lambda file: int(file.name.partition("-")[0]))
        lines = ["# Examples", ""]
        for file in files:
            self._source(file)
            comment = " ".join(map(_shown, _first_comment(file.read_text(encoding="utf-8"))))
            lines += [f"[{file.name}]({file.name}.md): {comment}", ""]
        self._write(folder / "README.md", "\n".join(lines))
        for file in (folder / "papers").rglob("*.toml"):
            self._source(file)

    def api(self) -> None:
        """Make the page of the names that the package publishes."""
        lines = ["# Library", "", (gatemark.__doc__ or "").replace("\n::\n", "\n").strip(), ""]
        for name in gatemark.__all__:
            module = getattr(gatemark, name).__module__
            lines += [f"::: {module}.{name}", ""]
        self._write(ROOT / "docs" / "reference" / "library.md", "\n".join(lines))

    def _is_new(self, path: Path) -> bool:
        if path in self._made:
            return False
        self._made.add(path)
        return True

    def _write(self, path: Path, text: str) -> None:
        place = self._pages / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _first_comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#") or line.startswith("#:schema"):
            return
        yield line


def _shown(line: str) -> str:
    """Return a line of a comment without its mark, a command as such."""
    words = line[1:].strip()
    return f"`{words}`" if words.startswith("gatemark ") else words


def main() -> None:
    """Gather into the folder that is given, which is made anew."""
    pages = Path(sys.argv[1]).resolve()
    shutil.rmtree(pages, ignore_errors=True)
    gathering = Gathering(pages)
    for path in documents():
        gathering.document(path)
    gathering.examples()
    gathering.api()
    shutil.copy(ROOT / "site" / "site.css", pages / "site.css")


if __name__ == "__main__":
    main()

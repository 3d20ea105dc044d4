"""The documentation as a site: every page is in it, and every link of it leads somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gatemark

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it as `make docs` does, elsewhere; a link that leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("site")
    pages, html = folder / "pages", folder / "html"
    subprocess.run([sys.executable, ROOT / "site/gather.py", pages], check=True)
    settings = (ROOT / "site/mkdocs.yml").read_text(encoding="utf-8")
    for name, here, there in (
        ("docs_dir", "../build/site/pages", pages),
        ("site_dir", "../build/site/html", html),
        ("paths", "[../src]", f"[{ROOT / 'src'}]"),
        ("hooks", "[hooks.py]", f"[{ROOT / 'site/hooks.py'}]"),
    ):
        assert f"{name}: {here}" in settings
        settings = settings.replace(f"{name}: {here}", f"{name}: {there}")
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command: list[str | Path] = [
        sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", folder / "mkdocs.yml",
    ]  # fmt: skip
    built = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return html


def test_every_document_is_a_page_and_in_the_navigation(site: Path) -> None:
    start = (site / "docs" / "index.html").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").with_suffix(".html")
        if path.name != "README.md":
            assert (site / "docs" / page).exists()
            assert re.search(rf'class="md-nav__link"[^>]*|href="{re.escape(str(page))}" class="md-nav__link"', start)
            assert f'href="{page}"' in start


def test_every_block_of_code_is_one_and_every_link_has_its_target(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    assert not [path for path, text in pages.items() if "<p>```" in text]
    broken: list[str] = []
    for path, text in pages.items():
        for target, _, anchor in (link.partition("#") for link in re.findall(r'<a [^>]*href="([^":?]+)"', text)):
            file = (path.parent / target).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (anchor and file in pages and f'id="{anchor}"' not in pages[file]):
                broken.append(f"{path.relative_to(site)}: {target}#{anchor}")
    assert not broken


def test_every_example_and_schema_is_there(site: Path) -> None:
    for path in (*(ROOT / "examples").glob("*.toml"), *(ROOT / "examples/papers").rglob("*.toml")):
        assert (site / path.relative_to(ROOT).parent / f"{path.name}.html").exists(), path
    for path in (ROOT / "docs/reference").glob("*.schema.json"):
        assert (site / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_the_library_shows_every_public_name(site: Path) -> None:
    page = (site / "docs/reference/library.html").read_text(encoding="utf-8")
    for name in gatemark.__all__:
        assert f'id="{getattr(gatemark, name).__module__}.{name}"' in page


def test_every_result_of_the_gallery_has_its_report(site: Path) -> None:
    index = (site / "gallery/index.html").read_text(encoding="utf-8")
    archives = sorted((ROOT / "gallery").glob("*.tar.gz"))
    assert archives
    for archive in archives:
        name = archive.name.removesuffix(".tar.gz")
        assert f'href="{name}/report.html"' in index and f'href="{archive.name}"' in index
        page = site / "gallery" / name / "report.html"
        for link in re.findall(r'href="([^":#]+)"', page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (name, link)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(?:https?:)?//", text), path

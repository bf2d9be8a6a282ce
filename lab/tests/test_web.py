from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wqlab_lab import web

PACKAGE = '{"name": "pages", "scripts": {"build": "%s", "hello": "cat ../server/openapi.json >../../schema"}}'
LOCK = '{"name": "pages", "lockfileVersion": 3, "packages": {"": {"name": "pages"}}}'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Create a checkout whose pages need no package, so that no registry is used."""
    pages = tmp_path / "checkout" / "web"
    pages.mkdir(parents=True)
    (pages / "package.json").write_text(PACKAGE % "mkdir dist && cp page.html dist/index.html")
    (pages / "package-lock.json").write_text(LOCK)
    (pages / ".npmrc").write_text("fund=false\n")
    (pages / "page.html").write_text("<h1>")
    (tmp_path / "checkout" / "server").mkdir()
    (tmp_path / "checkout" / "server" / "openapi.json").write_text("{}")
    styles = tmp_path / "checkout" / "report/wqlab_report/templates/first_screen.css"
    styles.parent.mkdir(parents=True)
    styles.write_text("")
    return tmp_path / "checkout"


def test_pages_are_built_once_per_content(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = web.build(cache, checkout)
    assert first == web.pages(cache, checkout)
    assert (first / "index.html").read_text() == "<h1>"
    made = (first / "index.html").stat().st_mtime_ns
    assert web.build(cache, checkout) == first
    assert (first / "index.html").stat().st_mtime_ns == made

    (checkout / "web" / "page.html").write_text("<h2>")
    second = web.build(cache, checkout)
    assert second != first
    assert (second / "index.html").read_text() == "<h2>"


def test_installed_and_built_files_do_not_change_the_key(checkout: Path, tmp_path: Path) -> None:
    before = web.pages(tmp_path, checkout)
    for folder in ("node_modules", "dist", "src/api/gen"):
        (checkout / "web" / folder).mkdir(parents=True)
        (checkout / "web" / folder / "x").write_text("x")
    assert web.pages(tmp_path, checkout) == before
    with web.working_copy(tmp_path / "cache", checkout) as copy:
        assert not (copy / "dist").exists()
        assert not (copy / "src/api/gen").exists()


def test_type_check_state_is_reused(checkout: Path, tmp_path: Path) -> None:
    made = PACKAGE.replace("cat ../server/openapi.json", "touch .tsbuildinfo; cat ../server/openapi.json")
    (checkout / "web" / "package.json").write_text(made % "true")
    for known in (False, True):
        with web.working_copy(tmp_path / "cache", checkout) as copy:
            assert (copy / ".tsbuildinfo").exists() == known
            web.npm(["run", "hello"], copy)


def test_failed_build_raises_its_output_and_leaves_no_files(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (checkout / "web" / "package.json").write_text(PACKAGE % "mkdir dist && echo broken here && exit 3")
    with pytest.raises(web.WebError, match="broken here"):
        web.build(cache, checkout)
    assert not web.pages(cache, checkout).exists()
    assert [path.name for path in (cache / "web").iterdir() if path.name.startswith("work-")] == []


def test_script_runs_in_a_copy_with_the_schema(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with web.working_copy(cache, checkout) as copy:
        assert checkout not in copy.parents
        web.npm(["run", "hello"], copy)
    assert (cache / "web" / "schema").read_text() == "{}"


def test_unused_packages_are_removed(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name, days in (("packages-old", 31), ("packages-recent", 29)):
        (cache / "web" / name).mkdir(parents=True)
        os.utime(cache / "web" / name, (0, time.time() - days * 86400))
    with web.working_copy(cache, checkout):
        pass
    kept = {path.name for path in (cache / "web").glob("packages-*")}
    assert "packages-old" not in kept
    assert len(kept) == 2

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wqlab_lab import web

PACKAGE = '{"name": "pages", "scripts": {"build": "%s", "hello": "cat ../server/openapi.json >../../said"}}'
LOCK = '{"name": "pages", "lockfileVersion": 3, "packages": {"": {"name": "pages"}}}'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose pages need no package, so that no registry is asked."""
    pages = tmp_path / "checkout" / "web"
    pages.mkdir(parents=True)
    (pages / "package.json").write_text(PACKAGE % "mkdir dist && cp page.html dist/index.html")
    (pages / "package-lock.json").write_text(LOCK)
    (pages / ".npmrc").write_text("fund=false\n")
    (pages / "page.html").write_text("<h1>")
    (tmp_path / "checkout" / "server").mkdir()
    (tmp_path / "checkout" / "server" / "openapi.json").write_text("{}")
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


def test_what_somebody_installed_or_built_in_the_checkout_changes_nothing(checkout: Path, tmp_path: Path) -> None:
    before = web.pages(tmp_path, checkout)
    for folder in ("node_modules", "dist"):
        (checkout / "web" / folder).mkdir()
        (checkout / "web" / folder / "x").write_text("x")
    assert web.pages(tmp_path, checkout) == before
    with web.workplace(tmp_path / "cache", checkout) as place:
        assert not (place / "dist").exists()


def test_what_the_type_checker_found_out_is_there_the_next_time(checkout: Path, tmp_path: Path) -> None:
    made = PACKAGE.replace("cat ../server/openapi.json", "touch .tsbuildinfo; cat ../server/openapi.json")
    (checkout / "web" / "package.json").write_text(made % "true")
    for known in (False, True):
        with web.workplace(tmp_path / "cache", checkout) as place:
            assert (place / ".tsbuildinfo").exists() == known
            web.npm(["run", "hello"], place)


def test_a_build_that_fails_says_why_and_leaves_nothing_behind(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (checkout / "web" / "package.json").write_text(PACKAGE % "mkdir dist && echo broken here && exit 3")
    with pytest.raises(web.WebError, match="broken here"):
        web.build(cache, checkout)
    assert not web.pages(cache, checkout).exists()
    assert [path.name for path in (cache / "web").iterdir() if path.name.startswith("work-")] == []


def test_a_script_sees_the_schema_and_not_the_checkout(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with web.workplace(cache, checkout) as place:
        assert checkout not in place.parents
        web.npm(["run", "hello"], place)
    assert (cache / "web" / "said").read_text() == "{}"


def test_packages_that_nobody_uses_are_forgotten(checkout: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name, days in (("packages-old", 31), ("packages-recent", 29)):
        (cache / "web" / name).mkdir(parents=True)
        os.utime(cache / "web" / name, (0, time.time() - days * 86400))
    with web.workplace(cache, checkout):
        pass
    kept = {path.name for path in (cache / "web").glob("packages-*")}
    assert "packages-old" not in kept
    assert len(kept) == 2

"""Files of the web pages: paths, caching, and protection of other files."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from wqlab_server.app import create_app
from wqlab_server.http.static_pages import POLICY, RESERVED
from wqlab_server.settings import Settings

SCRIPT = "assets/main-0123abcd.js"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A small build, with a file beside it that must not be served."""
    folder = tmp_path / "dist"
    for name, text in (
        ("index.html", "<!doctype html>"),
        ("index.html.br", "squeezed"),
        ("theme.js", "theme"),
        ("favicon.svg", "<svg/>"),
        (SCRIPT, "script"),
        (f"{SCRIPT}.br", "br"),
        (f"{SCRIPT}.gz", "gz"),
        ("assets/plain-0123abcd.css", "css"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "secret").write_text("for nobody's eyes")
    (folder / "assets" / "link.js").symlink_to(tmp_path / "secret")
    return folder


def client_of(tmp_path: Path, web_dir: Path | None, docs_dir: Path | None = None) -> TestClient:
    settings = Settings(
        database_url="postgresql+psycopg:///nowhere", broker_url="memory://", data_dir=tmp_path,
        artifact_dir=tmp_path / "artifacts", web_dir=web_dir, docs_dir=docs_dir, public_url="http://lab.test",
    )  # fmt: skip
    return TestClient(create_app(settings), headers={"Accept-Encoding": "identity"})


@pytest.fixture
def client(tmp_path: Path, build: Path) -> TestClient:
    return client_of(tmp_path, build)


@pytest.mark.parametrize(
    ("path", "status", "there"),
    [
        ("/docs", 308, "/docs/"),
        ("/docs/runbook", 308, "/docs/runbook/"),
        ("/redoc", 308, "/docs/api/"),
        ("/docs/", 200, "overview"),
        ("/docs/runbook/", 200, "runbook"),
        ("/docs/assets/docs.js", 200, "script"),
        ("/docs/assets/none.js", 404, "no file"),
        ("/docs/none/", 404, "no such page"),
        ("/docs/%2e%2e/secret", 404, "no such page"),
    ],
)
def test_documentation_is_served_under_docs(tmp_path: Path, path: str, status: int, there: str) -> None:
    for name, text in (
        ("index.html", "overview"),
        ("runbook/index.html", "runbook"),
        ("assets/docs.js", "script"),
        ("404.html", "no such page"),
    ):
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "secret").write_text("outside the site")
    answer = client_of(tmp_path, None, docs_dir=tmp_path / "site").get(path, follow_redirects=False)
    assert answer.status_code == status
    assert there in (answer.headers["Location"] if status == 308 else answer.text)
    assert "outside the site" not in answer.text
    if status == 200:
        assert answer.headers["Content-Security-Policy"] == POLICY


def test_documentation_that_is_not_built_names_the_command(client: TestClient) -> None:
    answer = client.get("/docs/")
    assert answer.status_code == 503
    assert "make docs" in answer.text


@pytest.mark.parametrize(
    "path", ["/", "/submissions", "/submissions/7", "/devices/xeon-2s.local", "/index.html", "/%2e"]
)
def test_every_page_is_the_application_and_not_cached(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (200, "<!doctype html>")
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert client.head(path).status_code == 200


def test_assets_are_cached_without_limit(client: TestClient) -> None:
    answer = client.get(f"/{SCRIPT}")
    assert (answer.text, answer.headers["Cache-Control"]) == ("script", "public, max-age=31536000, immutable")
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_other_files_are_revalidated(client: TestClient) -> None:
    first = client.get("/theme.js")
    assert (first.text, first.headers["Cache-Control"]) == ("theme", "no-cache")
    again = client.get("/theme.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("accepted", "sent", "encoding"),
    [
        ("gzip, deflate, br", "br", "br"),
        ("gzip", "gz", "gzip"),
        ("br;q=0, gzip", "gz", "gzip"),
        ("br;q=0.0, gzip;q=0", "script", None),
        ("*", "br", "br"),
        ("identity", "script", None),
        ("", "script", None),
    ],
)
def test_smallest_accepted_encoding_is_sent(client: TestClient, accepted: str, sent: str, encoding: str | None) -> None:
    with client.stream("GET", f"/{SCRIPT}", headers={"Accept-Encoding": accepted}) as answer:
        assert b"".join(answer.iter_raw()).decode() == sent
        assert answer.headers.get("Content-Encoding") == encoding
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["Content-Type"].startswith("text/javascript")


def test_file_without_compressed_copy_is_sent_unchanged(client: TestClient) -> None:
    answer = client.get("/assets/plain-0123abcd.css", headers={"Accept-Encoding": "br"})
    assert answer.text == "css"
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/assets/gone-0123abcd.js", "/assets", "/missing.js", "/robots.txt", "/assets/../../secret.js"]
)
def test_missing_file_is_not_found(client: TestClient, path: str) -> None:
    if path == "/assets":
        assert client.get(path).text == "<!doctype html>", "a folder's name is a page like any other"
        return
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    ["/..%2fsecret", "/%2e%2e/secret", "/assets/..%2f..%2fsecret", "/assets/link.js", "//etc/passwd", "/%00",
     "/a%00.js", "/" + "x/" * 3000, "/" + "y" * 5000],
)  # fmt: skip
def test_files_outside_the_build_are_not_reachable(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert "nobody" not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code in {200, 404}


@pytest.mark.parametrize("first", sorted(RESERVED - {"docs", "redoc", "openapi.json", "healthz", "readyz", "metrics"}))
def test_api_paths_are_never_pages(client: TestClient, first: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = client.request(method, f"/{first}/there/is/no/such/thing")
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.get("/healthz").json() == {"status": "ok"}


def test_pages_allow_only_get_and_head(client: TestClient) -> None:
    assert client.post("/submissions").status_code == 405


@pytest.mark.parametrize("unset", [True, False])
def test_missing_build_is_reported(tmp_path: Path, unset: bool) -> None:
    folder = None if unset else tmp_path / "nothing"
    answer = client_of(tmp_path, folder).get("/submissions/7")
    assert answer.status_code == 503
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "WQLAB_WEB_DIR" in answer.text
    assert "not set" in answer.text if unset else str(folder) in answer.text
    assert "http://lab.test/api/v1" in answer.text


def test_later_build_is_served_without_a_restart(tmp_path: Path) -> None:
    client = client_of(tmp_path, tmp_path / "late")
    assert client.get("/").status_code == 503
    (tmp_path / "late").mkdir()
    (tmp_path / "late/index.html").write_text("here")
    assert client.get("/").text == "here"

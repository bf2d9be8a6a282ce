"""Report links such as /r/7: access, formats, and that a finished report does not change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from report_support import hostile
from sqlalchemy import func, select

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm, Outcome, Scope
from wqlab_server.models import Comparison, KeptReport, Run
from wqlab_server.reports import assemble, stored_report
from wqlab_server.reports.page import render_page
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.scene import PLAN, TINY, Scene

pytestmark = pytest.mark.integration
LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}
FORMATS = {
    "": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".json": "application/json",
    ".xml": "application/xml; charset=utf-8",
    ".mmtests": "text/plain; charset=utf-8",
    ".kcidb.json": "application/vnd.kcidb+json",
}


@pytest.fixture
def number(scene: Scene) -> int:
    """A finished submission."""
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, LOCKS)
    scene.finish(number)
    return number


def test_unauthenticated_browser_gets_a_page_and_program_a_problem(live: Live, number: int) -> None:
    with live.client(None) as client:
        client.headers["Accept"] = "text/html,*/*;q=0.8"
        for name in (f"{number}", f"{number}.txt", "99", "nonsense"):
            page = expect(client.get(f"/r/{name}"), 401)
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert f'href="/sign-in?next=/r/{name}"' in page.text
            assert page.headers["cache-control"] == "no-store"
            assert "script" not in page.text
        client.headers["Accept"] = "*/*"
        for suffix in ("", ".html", ".txt", ".json", ".md", ".xml"):
            refused = expect(client.get(f"/r/{number}{suffix}"), 401)
            assert refused.headers["content-type"] == "application/problem+json"
    with live.client(Scope.WORKER) as worker:
        expect(worker.get(f"/r/{number}"), 401)


def test_reader_with_cookie_or_token_gets_every_format(live: Live, number: int) -> None:
    for client in (live.browser("read"), live.client(Scope.READ)):
        with client:
            for suffix, media in FORMATS.items():
                answer = expect(client.get(f"/r/{number}{suffix}"))
                assert answer.headers["content-type"] == media
                assert "panic in flush" in answer.text
                if suffix == "":
                    continue
                assert "sandbox" in answer.headers["content-security-policy"]
                api = {".txt": "text", ".md": "markdown", ".xml": "junit", ".kcidb.json": "kcidb"}.get(
                    suffix, suffix[1:]
                )
                same = client.get(f"/api/v1/submissions/{number}/report", params={"format": api})
                assert same.content == answer.content
            Report.model_validate_json(client.get(f"/r/{number}.json").content)
            for missing in ("99", "99.txt", "0", "x", f"{number}.pdf", "9999999999", f"{number}.txt.txt"):
                assert (
                    "no such report" in expect(client.get(f"/r/{missing}", headers={"Accept": "text/html"}), 404).text
                )


def test_visitors_can_only_read_with_public_reading(live: Live, number: int, scene: Scene) -> None:
    live.allow_public_reading()
    run_id = scene.run_id(number)
    with live.client(None) as visitor:
        assert visitor.get("/api/v1/session").json() == {
            "user": None, "csrf_token": None, "expires_at": None, "public_reading": True, "provider": None,
            "notice": "",
        }  # fmt: skip
        for suffix in FORMATS:
            expect(visitor.get(f"/r/{number}{suffix}"))
        expect(visitor.head(f"/r/{number}"))
        for url in ("", f"/{number}", f"/{number}/report", f"/{number}/events"):
            expect(visitor.get(f"/api/v1/submissions{url}", headers={"Accept": "application/json"}))
        for url in (f"runs/{run_id}", f"runs/{run_id}/console", "devices", "device-types", "plans", "trees"):
            expect(visitor.get(f"/api/v1/{url}"))
        for url in ("tokens", "users"):
            expect(visitor.get(f"/api/v1/{url}"), 401)
        for method, url in (
            ("POST", "submissions"), ("POST", f"submissions/{number}/cancel"), ("POST", f"submissions/{number}/retry"),
            ("POST", "tokens"), ("POST", "tokens/1/revoke"), ("POST", "users"), ("PATCH", "users/admin"),
            ("POST", "devices/tiny-1/quarantine"), ("PUT", "session/password"),
        ):  # fmt: skip
            expect(visitor.request(method, f"/api/v1/{url}", json={}), 401)
        assert visitor.get("/api/worker/v1/labs/local/leases").status_code == 401
        # With an expired cookie a visitor may still read; a wrong token is refused.
        visitor.cookies.set("wqlab_session", "of-yesterday")
        expect(visitor.get(f"/r/{number}"))
        expect(visitor.get(f"/api/v1/submissions/{number}"))
        expect(visitor.get(f"/api/v1/submissions/{number}", headers={"Authorization": "Bearer wql_wrong"}), 401)


def test_page_is_the_application_with_the_first_screen_and_the_report(
    client: httpx.Client, number: int, live: Live, tmp_path: Path
) -> None:
    bare = expect(client.get(f"/r/{number}")).text
    assert 'class="report-first"' in bare, "without built pages too"
    build = {"index.html": {"file": "a.js", "imports": ["s"]}, "s": {"file": "s.js"}}
    build["src/pages/report/ReportPage.tsx"] = {"file": "r.js", "imports": ["s", "own"]}
    build["own"] = {"file": "o.js"}
    (tmp_path / ".vite").mkdir()
    (tmp_path / ".vite/manifest.json").write_text(json.dumps(build))
    index = "<html><head><title>wqlab</title></head><body><main><!--page--></main></body></html>"
    (tmp_path / "index.html").write_text(index)
    live.app.state.settings = live.app.state.settings.model_copy(update={"web_dir": tmp_path})
    answer = expect(client.get(f"/r/{number}"))
    page = answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert page.startswith(f"<html><head><title>Report {number}: [PATCH] wq: faster · wqlab</title>")
    assert page.count("<link") == 2 and 'href="/r.js"' in page and 'href="/o.js"' in page
    assert f'href="/r/{number}.txt"' in page.partition("<noscript>")[0]
    mail = expect(client.get(f"/r/{number}.txt")).text
    assert f"http://lab.test/r/{number}" in mail
    data = json.loads(page.partition('id="report">')[2].partition("</script>")[0])
    assert data == {"report": client.get(f"/r/{number}.json").json(), "text": mail}


def test_hostile_report_adds_no_element_to_its_page() -> None:
    page = render_page(hostile(), None)
    assert page.count("<script") == page.count("</script>") == 1
    assert "<img" not in page


def test_finished_report_is_revalidated_by_etag(client: httpx.Client, number: int, scene: Scene) -> None:
    url = f"/api/v1/submissions/{number}/report"
    for url_, params in ((f"/r/{number}", {}), (f"/r/{number}.txt", {}), (url, {"format": "json"})):
        first = expect(client.get(url_, params=params))
        etag = first.headers["etag"]
        assert first.headers["cache-control"] == "private, no-cache"
        for header in (etag, f'"other", W/{etag}', "*"):
            again = expect(client.get(url_, params=params, headers={"If-None-Match": header}), 304)
            assert (again.content, again.headers["etag"]) == (b"", etag)
        assert expect(client.get(url_, params=params, headers={"If-None-Match": '"other"'})).content == first.content
    unfinished = scene.submission()
    answer = expect(client.get(f"/r/{unfinished}"))
    assert "Not finished" in answer.text
    assert "etag" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def test_finished_report_never_changes(
    client: httpx.Client, number: int, scene: Scene, live: Live, scene_data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report stays the same although plan, device type, code, artifacts and rows have changed."""
    before = {suffix: expect(client.get(f"/r/{number}{suffix}")).content for suffix in FORMATS}
    assert b"CONFIG_NEW" in before[""]

    (scene_data_dir / "testplans/flush/plan.yaml").write_text(PLAN.replace("locks per flush", "nothing of note"))
    (scene_data_dir / "device-types/tiny.yaml").write_text(TINY.replace("two CPUs", "some CPUs"))
    live.app.state.data._checked_at = float("-inf")
    for artifact in scene.settings.artifact_dir.rglob("*"):
        if artifact.is_file():
            artifact.unlink()
    with transaction(scene.sessions) as session:
        for row in session.scalars(select(Comparison)):
            session.delete(row)
        run = session.scalars(select(Run).where(Run.submission_id == number)).one()
        run.plan = run.plan.model_copy(update={"summary": "rewritten"})

    def fail(*_: Any) -> Any:
        raise AssertionError("a stored report was assembled again")

    monkeypatch.setattr(stored_report, "assemble", fail)
    monkeypatch.setattr("wqlab_report.content.shared_text.METHOD", "Another method.")
    monkeypatch.setattr(assemble, "conclusion_of", fail)
    assert {suffix: expect(client.get(f"/r/{number}{suffix}")).content for suffix in FORMATS} == before


def test_report_links_use_the_labs_current_address(live: Live, number: int) -> None:
    with live.client() as client:
        expect(client.get(f"/r/{number}"))
        settings = live.app.state.settings
        live.app.state.settings = settings.model_copy(update={"public_url": "http://moved.example.org/"})
        assert f"http://moved.example.org/r/{number}" in client.get(f"/r/{number}.txt").text


def test_first_request_stores_a_report_that_was_not_stored(
    client: httpx.Client, number: int, sessions: SessionFactory
) -> None:
    with transaction(sessions) as session:
        assert (
            session.scalar(select(func.count()).select_from(KeptReport)) == 0
        )  # the scene finishes without the pipeline
    expect(client.get(f"/r/{number}"))
    with transaction(sessions) as session:
        kept = session.scalars(select(KeptReport)).one()
    assert Report.model_validate_json(kept.document).submission.outcome is Outcome.PASSED

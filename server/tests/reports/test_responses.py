"""HTTP responses with a report: media type, file name and caching."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import Request
from instrument_examples import instrumented
from report_examples import improvement

from wqlab_contracts.enums import SubmissionState
from wqlab_report.formats import CONTENT_TYPES, SUFFIXES, ReportFormat
from wqlab_server.http.problems import ApiProblem
from wqlab_server.reports.responses import report_response
from wqlab_server.settings import Settings


def request(public_url: str = "https://lab.test", **headers: str) -> Request:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    settings = Settings(
        database_url="postgresql+psycopg:///", broker_url="memory://", data_dir=Path(), artifact_dir=Path(),
        public_url=public_url,
    )  # fmt: skip
    app = SimpleNamespace(state=SimpleNamespace(settings=settings))
    return Request({"type": "http", "headers": fields, "app": app})


@pytest.mark.parametrize("format_", ReportFormat)
def test_response_has_media_type_and_file_name(format_: ReportFormat) -> None:
    report = instrumented() if format_ is ReportFormat.PROFILE else improvement()
    response = report_response(request(), report, format_)
    assert response.headers["content-type"] == CONTENT_TYPES[format_]
    name = f"wqlab-{report.submission.id}.{SUFFIXES[format_]}"
    assert response.headers["content-disposition"] == f'inline; filename="{name}"'


def test_a_lab_without_a_public_url_writes_no_mail() -> None:
    with pytest.raises(ApiProblem, match="set WQLAB_PUBLIC_URL") as raised:
        report_response(request("http://localhost:8750"), improvement(), ReportFormat.MAIL)
    assert raised.value.status == 409


def test_finished_report_is_revalidated_by_its_etag() -> None:
    first = report_response(request(), improvement(), ReportFormat.TEXT)
    etag = first.headers["etag"]
    for header in (etag, f'"x", W/{etag}', "*"):
        assert report_response(request(if_none_match=header), improvement(), ReportFormat.TEXT).status_code == 304
    assert report_response(request(if_none_match='"x"'), improvement(), ReportFormat.TEXT).body == first.body


def test_unfinished_report_is_not_cached() -> None:
    report = improvement()
    running = report.submission.model_copy(update={"state": SubmissionState.RUNNING})
    response = report_response(request(), report.model_copy(update={"submission": running}), ReportFormat.TEXT)
    assert response.headers["cache-control"] == "no-store"
    assert "etag" not in response.headers

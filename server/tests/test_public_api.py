"""The committed OpenAPI document. Its conformance to the running API is tested in test_conformance.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from wqlab_server.app import create_app
from wqlab_server.cli.commands import app as command
from wqlab_server.settings import Settings

COMMITTED = Path(__file__).parents[1] / "openapi.json"
SCHEMA: dict[str, Any] = json.loads(COMMITTED.read_text())


def test_committed_schema_equals_that_of_the_code() -> None:
    printed = CliRunner().invoke(command, ["openapi"])
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.output) == SCHEMA, "run `make openapi` and commit server/openapi.json"


def test_operation_ids_are_unique_identifiers() -> None:
    ids = [operation["operationId"] for methods in SCHEMA["paths"].values() for operation in methods.values()]
    assert len(set(ids)) == len(ids)
    assert all(name.isidentifier() and not name.startswith("_") for name in ids)


FOR_BROWSERS = ("/api/v1/session/oidc/", "/api/v1/mail-address/confirm/", "/api/v1/unsubscribe/")
"""Paths that a provider redirects a browser to, or that a mail has a link to."""


def test_every_error_is_documented_as_a_problem() -> None:
    """A browser gets some as a page."""
    for path, methods in SCHEMA["paths"].items():
        pages = {"text/html"} if path.startswith(FOR_BROWSERS) else set()
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if status.startswith("4") and status != "416":
                    assert set(answer["content"]) - pages == {"application/problem+json"}, (method, path, status)


def test_worker_api_is_not_in_the_schema() -> None:
    assert not any("/worker/" in path for path in SCHEMA["paths"])


@pytest.mark.parametrize("public_reading", [False, True])
def test_document_says_what_visitors_may_read(public_reading: bool) -> None:
    settings = Settings(
        database_url="postgresql+psycopg:///",
        broker_url="memory://",
        data_dir=Path(),
        artifact_dir=Path(),
        public_reading=public_reading,
    )
    paths = create_app(settings).openapi()["paths"]
    operations = {each["operationId"]: each for methods in paths.values() for each in methods.values()}
    public = {name for name, operation in operations.items() if operation.get("x-public-reading")}
    assert len(public) >= 30
    assert {"list_submissions", "get_report", "stream_submission_events", "list_plans", "create_quote"} <= public
    assert not public & {"list_users", "list_tokens", "list_git_branches", "create_submission"}
    for name, operation in operations.items():
        assert ({} in operation.get("security", [])) is (public_reading and name in public), name


def test_schema_describes_the_events_of_a_stream() -> None:
    events = SCHEMA["paths"]["/api/v1/submissions/{submission_id}/events"]["get"]["responses"]["200"]["content"]
    event = events["text/event-stream"]["schema"]
    assert event["required"] == ["id", "event", "data"]
    assert event["properties"]["data"]["contentSchema"] == {"$ref": "#/components/schemas/Event"}

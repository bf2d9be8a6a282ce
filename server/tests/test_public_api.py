"""The committed OpenAPI document, and responses that conform to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks as conforms
from typer.testing import CliRunner

from wqlab_contracts.enums import Arm, Scope
from wqlab_server.cli import app as command

from .support.live_server import Live
from .support.scene import Scene

COMMITTED = Path(__file__).parents[1] / "openapi.json"
SCHEMA: dict[str, Any] = json.loads(COMMITTED.read_text())
CHECKS = [
    not_a_server_error,
    conforms.status_code_conformance,
    conforms.content_type_conformance,
    conforms.response_schema_conformance,
    conforms.response_headers_conformance,
]
OPERATIONS = [
    (method, path)
    for path, methods in SCHEMA["paths"].items()
    for method in methods
    # A stream does not end and readiness is 503 without a broker; both have tests of their own.
    if not path.endswith("/events") and path != "/readyz"
]


def test_committed_schema_equals_that_of_the_code() -> None:
    printed = CliRunner().invoke(command, ["openapi"])
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.output) == SCHEMA, "run `make openapi` and commit server/openapi.json"


def test_operation_ids_are_unique_identifiers() -> None:
    ids = [operation["operationId"] for methods in SCHEMA["paths"].values() for operation in methods.values()]
    assert len(set(ids)) == len(ids)
    assert all(name.isidentifier() and not name.startswith("_") for name in ids)


def test_every_error_is_documented_as_a_problem() -> None:
    for path, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if status.startswith("4") and status != "416":
                    assert set(answer["content"]) == {"application/problem+json"}, (method, path, status)


def test_worker_api_is_not_in_the_schema() -> None:
    assert not any("/worker/" in path for path in SCHEMA["paths"])


@pytest.mark.integration
@pytest.mark.parametrize("examples", [8, pytest.param(40, marks=pytest.mark.nightly)])
def test_responses_conform_to_the_schema(live: Live, scene: Scene, examples: int) -> None:
    """No 5xx, no undocumented status or media type, no body outside its schema, no invalid input accepted.

    All operations use the same server, so one operation sees what another has created or revoked.
    """
    scene.devices()
    number = scene.submission()
    builds = scene.builds(number)
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    existing = {"submission_id": number, "build_id": builds[Arm.CANDIDATE], "run_id": run_id}
    names = [("/devices/", "tiny-1"), ("/device-types/", "tiny"), ("/plans/", "flush")]
    schema = schemathesis.openapi.from_dict(SCHEMA)
    headers = {"Authorization": f"Bearer {live.secrets[Scope.ADMIN]}"}
    for method, path in OPERATIONS:
        known: dict[str, Any] = {key: value for key, value in existing.items() if f"{{{key}}}" in path}
        known |= next(({"name": name} for part, name in names if part in path), {})
        probe(schema[path][method.upper()], live.url, headers, known if "{sha256}" not in path else {}, examples)
    answered = live.app.state.metrics.text().decode()
    for operation in ("get_run", "get_build", "get_submission", "get_report", "get_device", "get_plan"):
        assert f'operation="{operation}",status="200"' in answered, f"{operation} never found its resource"


def probe(operation: Any, url: str, headers: dict[str, str], known: dict[str, Any], examples: int) -> None:
    """Call an operation with generated input. `known` are path parameters of an existing resource."""
    good_and_bad = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE, path_parameters=known or None),
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=good_and_bad)
    def ask(case: schemathesis.Case) -> None:
        # A generated id must not revoke the token of this test.
        if case.path_parameters.get("token_id") not in range(1, 10):
            case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)

    ask()

"""Inspection of an mbox over HTTP."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.api.series import SeriesInspection

from ..support.scene import MBOX

pytestmark = pytest.mark.integration
INSPECT, BRANCHES = "/api/v1/series/inspect", "/api/v1/git/branches"


def test_mbox_is_inspected(client: httpx.Client) -> None:
    answer = client.post(INSPECT, json={"text": MBOX})
    assert answer.status_code == 200, answer.text
    found = SeriesInspection.model_validate_json(answer.content)
    assert (found.subject, found.usable) == ("wq: faster", True)


def test_text_that_is_not_an_mbox_is_reported_as_a_problem(client: httpx.Client) -> None:
    found = SeriesInspection.model_validate_json(client.post(INSPECT, json={"text": "hello"}).content)
    assert not found.usable
    assert [problem.defect for problem in found.problems] == ["not_an_mbox"]


def test_mbox_above_the_size_limit_is_refused(client: httpx.Client) -> None:
    assert client.post(INSPECT, json={"text": "x" * 20_000_001}).status_code == 422
    assert client.post(INSPECT, json={"text": "x" * 25_000_000}).status_code == 413
    nul = client.post(INSPECT, json={"text": "a\0b"})
    assert nul.status_code == 422
    assert "NUL" in nul.json()["errors"][0]["detail"]

"""Endpoints of a submission's page: unknown submissions."""

from __future__ import annotations

import httpx
import pytest

from ..support.live_server import expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


@pytest.mark.parametrize("path", ["9/steps", "9/versions", "9/compare/1", "1/compare/9"])
def test_unknown_submission_is_not_found(client: httpx.Client, scene: Scene, path: str) -> None:
    assert scene.submission() == 1
    assert expect(client.get(f"{URL}/{path}"), 404).json()["detail"] == "no submission 9"


def test_submission_cannot_be_compared_with_itself(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    refused = expect(client.get(f"{URL}/{number}/compare/{number}"), 422).json()
    assert refused["errors"][0]["parameter"] == "other_id"

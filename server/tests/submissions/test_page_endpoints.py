"""Endpoints of a submission's page: unknown submissions."""

from __future__ import annotations

import httpx
import pytest

from ..support.live_server import expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


@pytest.mark.parametrize("path", ["9/steps", "9/versions", "9/range-diff/1"])
def test_unknown_submission_is_not_found(client: httpx.Client, scene: Scene, path: str) -> None:
    assert scene.submission() == 1
    assert expect(client.get(f"{URL}/{path}"), 404).json()["detail"] == "no submission 9"

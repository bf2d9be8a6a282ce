"""An mbox is inspected in the process with limits, by every endpoint that takes one."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest

from wqlab_contracts.mails import inspection, mbox
from wqlab_server.http import inspection_process

from ..support.live_server import Live, expect
from ..support.scene import long_series
from .test_validate import MBOX

pytestmark = pytest.mark.integration

LONG_SERIES = long_series()
TWO = MBOX.replace("[PATCH]", "[PATCH 1/2]") + MBOX.replace("[PATCH]", "[PATCH 2/2]")


def request_of(text: str, **more: Any) -> dict[str, Any]:
    target = {"plan": "flush", "device_type": "tiny"}
    return {"series": {"mbox": {"text": text}}, "tree": "t", "targets": [target], **more}


@pytest.mark.parametrize("path", ["quotes", "submissions"])
@pytest.mark.parametrize("walk", [False, True])
def test_the_api_parses_no_mbox_itself(
    live: Live, client: httpx.Client, path: str, walk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is that of all other requests, which regular expressions over 20 MB stop for minutes."""
    parse, own = mbox.parse_mails, os.getpid()

    def refuse(*arguments: Any, **options: Any) -> Any:
        assert os.getpid() != own, "parsed in the process of the API"
        return parse(*arguments, **options)

    monkeypatch.setattr(mbox, "parse_mails", refuse)
    monkeypatch.setattr(inspection.mbox, "parse_mails", refuse)
    answer = client.post(f"/api/v1/{path}", json=request_of(TWO, walk=walk))
    assert answer.status_code in {200, 201}, answer.text
    if path == "submissions":
        number = answer.json()["id"]
        expect(client.post(f"/api/v1/submissions/{number}/cancel"))


@pytest.mark.parametrize("path", ["quotes", "submissions"])
def test_an_mbox_beyond_the_limits_is_refused(client: httpx.Client, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_process, "CPU_S", 0)
    answer = expect(client.post(f"/api/v1/{path}", json=request_of(LONG_SERIES)), 422)
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/series/mbox/text" and "of CPU time" in error["detail"]


def test_processes_are_used_again_after_the_limit(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for cpu_s, status in ((0, 422), (30, 200), (0, 422), (30, 200)):
        monkeypatch.setattr(inspection_process, "CPU_S", cpu_s)
        expect(client.post("/api/v1/quotes", json=request_of(MBOX if status == 200 else LONG_SERIES)), status)


def test_an_mbox_that_is_large_is_inspected_too(client: httpx.Client) -> None:
    """The limit is the process's, so that a mistake in a large mbox is known at once."""
    large = MBOX.partition("diff --git")[0] + "x\n" * 1_500_000
    answer = expect(client.post("/api/v1/submissions", json=request_of(large)), 422)
    assert "contains a diff" in answer.text

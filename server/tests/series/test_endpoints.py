"""Inspection of an mbox over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.enums import Scope
from wqlab_contracts.mails.mbox import decode
from wqlab_server.http import inspection_process

from ..support.live_server import Live
from ..support.scene import MBOX, long_series

pytestmark = pytest.mark.integration
DECODE, INSPECT, BRANCHES = "/api/v1/series/decode", "/api/v1/series/inspect", "/api/v1/git/branches"


def test_mbox_is_inspected(client: httpx.Client) -> None:
    answer = client.post(INSPECT, json={"text": MBOX})
    assert answer.status_code == 200, answer.text
    found = SeriesInspection.model_validate_json(answer.content)
    assert (found.subject, found.usable) == ("wq: faster", True)


def test_mails_of_a_file_are_read_in_their_character_sets(client: httpx.Client) -> None:
    names = {"iso-8859-1": "Koutn\u00fd", "gb18030": "\u90ed\u8d85", "utf-8": "\u0418\u0432\u0430\u043d"}
    data = b"".join(
        MBOX.replace("[PATCH]", f"[PATCH {number}/3]")
        .replace(
            "\n\n", f"\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n{name}\n\n", 1
        )
        .encode(charset)
        for number, (charset, name) in enumerate(names.items(), 1)
    )
    answer = client.post(DECODE, content=data)
    assert answer.status_code == 200, answer.text
    assert answer.text == decode(data)
    assert all(name in answer.text for name in names.values())
    found = SeriesInspection.model_validate_json(client.post(INSPECT, json={"text": answer.text}).content)
    assert (len(found.patches), found.usable) == (3, True)
    unnamed = client.post(DECODE, content=MBOX.replace("\n\n", "\n\nKoutn\u00fd\n\n", 1).encode("iso-8859-1"))
    assert unnamed.status_code == 422
    assert "patch 'wq: faster' is not UTF-8" in unnamed.json()["detail"]


def test_inspections_of_one_client_are_limited(live: Live) -> None:
    mail = MBOX.replace("Subject: [PATCH]", "Subject: [PATCH 1/1]") + "+x\n" * 200
    body = {"text": mail * 4_000}
    with live.client(Scope.READ) as reader, live.client(Scope.ADMIN) as other, ThreadPoolExecutor(10) as threads:
        posted = [threads.submit(reader.post, INSPECT, json=body) for _ in range(8)]
        assert other.post(INSPECT, json={"text": MBOX}).status_code == 200
        assert other.get("/api/v1/plans").status_code == 200
        answers = [each.result() for each in posted]
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "3 inspections in progress" in refused.json()["detail"]


def test_inspection_that_takes_too_long_is_stopped(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_process, "CPU_S", 0)
    refused = client.post(INSPECT, json={"text": long_series()})
    assert refused.status_code == 422
    assert "give the series as a git URL and branch" in refused.json()["detail"]
    monkeypatch.undo()
    assert client.post(INSPECT, json={"text": MBOX}).status_code == 200


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

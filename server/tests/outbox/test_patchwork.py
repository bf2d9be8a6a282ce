"""Checks sent to a Patchwork that gives the answers of Patchwork 3.2.1: what is accepted, repeated and ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from wqlab_contracts.archives_file import FILE
from wqlab_contracts.enums import AttemptOutcome
from wqlab_server.http.forge_api import Answer, ForgeUnreachable, Reach
from wqlab_server.outbox.patchwork import PatchCheck, send
from wqlab_server.outbox.post_webhook import Result

RECORDED = Path(__file__).parent / "patchwork-3.2.1.json"
URL = "https://patchwork.example.org"
CHECK = PatchCheck(
    archive="pw", message_id="less-v1-2@x", context="wqlab-locks-tiny-1", state="warning",
    description="emulated: improvement: 34 -> 4", target_url="https://lab.example.org/r/7",
)  # fmt: skip


class Exchange:
    """Gives recorded answers, a GET's first, and keeps the requests."""

    def __init__(self, found: str, posted: str = "") -> None:
        self.names = [f"GET {found}", f"POST {posted}"]
        self.requests: list[tuple[str, str, Mapping[str, str], bytes | None]] = []

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, reach: Reach
    ) -> Answer:
        assert not reach.private
        self.requests.append((method, url, dict(headers), content))
        recorded = json.loads(RECORDED.read_text())[self.names.pop(0)]
        return Answer(recorded["status"], {}, recorded["body"].encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token-of-the-bot\n")
    checks = {"project": "wq", "token_file": f"{tmp_path}/token", "owners": ["dev"]}
    archive = {"name": "pw", "kind": "patchwork", "summary": "s", "url": URL, "checks": checks}
    (tmp_path / "intake").mkdir()
    (tmp_path / FILE).write_text(yaml.safe_dump({"archives": [archive]}))
    return tmp_path


def test_check_is_posted_to_the_patch_of_its_message_id(folder: Path) -> None:
    exchange = Exchange("found", "bot")
    assert send(CHECK.model_dump_json(), folder, exchange).outcome is AttemptOutcome.ACCEPTED
    (_, found, headers, _), (_, posted, _, content) = exchange.requests
    assert found == f"{URL}/api/1.3/patches/?project=wq&msgid=less-v1-2%40x"
    assert headers["Authorization"] == "Token token-of-the-bot"
    assert posted == f"{URL}/api/1.3/patches/2/checks/"
    assert json.loads(content or b"") == {
        "context": "wqlab-locks-tiny-1", "state": "warning", "description": "emulated: improvement: 34 -> 4",
        "target_url": "https://lab.example.org/r/7",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("found", "posted", "outcome", "problem"),
    [
        (
            "none",
            "",
            AttemptOutcome.FAILED,
            "project wq has no patch <less-v1-2@x>: it was deleted, or has not arrived",
        ),
        ("wrong token", "", AttemptOutcome.FAILED, "Patchwork answered 403: Invalid token.; check token_file"),
        ("found", "stranger", AttemptOutcome.FAILED, "403: You do not have permission to perform this action.; check"),
        ("found", "deleted", AttemptOutcome.FAILED, "404: No Patch matches the given query.; the patch was deleted"),
        ("found", "bad context", AttemptOutcome.REFUSED, "Patchwork answered 400"),
    ],
)
def test_refusal_says_what_to_do(folder: Path, found: str, posted: str, outcome: AttemptOutcome, problem: str) -> None:
    result = send(CHECK.model_dump_json(), folder, Exchange(found, posted))
    assert result.outcome is outcome
    assert problem in result.problem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", "the list of patches is not that of REST API 1.3"),
        (b'[{"id": "2"}]', "the list of patches is not that of REST API 1.3"),
        (b"[7]", "the list of patches is not that of REST API 1.3"),
    ],
)
def test_check_is_retried_after_an_invalid_list_of_patches(folder: Path, body: bytes, problem: str) -> None:
    result = send(CHECK.model_dump_json(), folder, lambda *_: Answer(200, {}, body))
    assert (result.outcome, result.problem) == (AttemptOutcome.FAILED, problem)


def test_check_waits_for_the_limit_of_requests(folder: Path) -> None:
    limited = send(CHECK.model_dump_json(), folder, lambda *_: Answer(429, {"retry-after": "90"}, b""))
    assert (limited.outcome, limited.wait_s) == (AttemptOutcome.FAILED, 90)


@pytest.mark.parametrize(("sent", "outcome"), [(False, AttemptOutcome.FAILED), (True, AttemptOutcome.UNKNOWN)])
def test_patchwork_that_is_gone_is_tried_again(folder: Path, sent: bool, outcome: AttemptOutcome) -> None:
    def gone(*_: object) -> Answer:
        raise ForgeUnreachable("no answer within 15 s", sent=sent)

    assert send(CHECK.model_dump_json(), folder, gone) == Result(outcome, problem="no answer within 15 s")


def test_private_address_needs_the_operators_permission(folder: Path) -> None:
    (folder / FILE).write_text((folder / FILE).read_text().replace(URL, "https://127.0.0.1:9"))
    problem = send(CHECK.model_dump_json(), folder).problem
    assert "127.0.0.1" in problem and "`private: true` in intake/archives.yaml" in problem


def test_check_waits_for_its_configuration(folder: Path) -> None:
    (folder / "token").unlink()
    assert "token_file" in send(CHECK.model_dump_json(), folder, Exchange("found")).problem
    (folder / FILE).write_text("archives: []\n")
    result = send(CHECK.model_dump_json(), folder, Exchange("found"))
    assert result == Result(
        AttemptOutcome.FAILED, problem="Patchwork pw has no checks in intake/archives.yaml, or the file has mistakes"
    )

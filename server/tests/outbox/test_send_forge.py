"""Statuses and comments sent to a stub of each forge's API: limits, lost answers, and refusals with what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from wqlab_contracts.enums import AttemptOutcome, DeliveryKind
from wqlab_contracts.forges_file import FILE
from wqlab_server.http.forge_api import Answer, ForgeApi, wait_s
from wqlab_server.outbox.forge_messages import ForgeComment, ForgeStatus, StatusState
from wqlab_server.outbox.post_webhook import Result
from wqlab_server.outbox.send_forge import send
from wqlab_server.pipeline.forges import comment_text

from ..support.forge import BOT, Fault, StubForge, stub_forge

MARKER = "<!-- wqlab hub 7 -->"
COMMIT = "a" * 40


class Lab:
    """A data folder with one forge."""

    def __init__(self, stub: StubForge, folder: Path, *, private: bool = True) -> None:
        self.stub, self.folder = stub, folder
        (folder / "intake").mkdir()
        forge = stub.config(folder).model_dump(mode="json", exclude_defaults=True)
        if not private:
            forge |= {"private": False, "url": f"https://127.0.0.1:{stub.port}"}
        (folder / FILE).write_text(yaml.safe_dump({"forges": [forge]}))

    def status(self, state: StatusState = "pending", forge: str = "hub") -> Result:
        status = ForgeStatus(
            forge=forge, commit=COMMIT, context="wqlab", state=state, description="d", target_url="http://lab.test/r/1"
        )
        return send(DeliveryKind.FORGE_STATUS, status.model_dump_json(), None, self.folder)

    def comment(self, text: str = "report", comment_id: str | None = None) -> Result:
        comment = ForgeComment(forge="hub", change_id=1, number=7, marker=MARKER, body=f"{MARKER}\n{text}")
        return send(DeliveryKind.FORGE_COMMENT, comment.model_dump_json(), comment_id, self.folder)


@pytest.fixture(params=["github", "gitlab", "gitea"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    with stub_forge(request.param) as stub:
        yield Lab(stub, tmp_path)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Lab]:
    with stub_forge("github") as stub:
        yield Lab(stub, tmp_path)


@pytest.mark.parametrize("state", ["pending", "success", "failure", "error", "canceled"])
def test_every_state_is_one_that_the_forge_knows(lab: Lab, state: StatusState) -> None:
    assert lab.status(state).outcome is AttemptOutcome.ACCEPTED
    assert lab.status(state).outcome is AttemptOutcome.ACCEPTED, "the same state again"


def test_a_comment_is_made_once_and_then_edited(lab: Lab) -> None:
    made = lab.comment("first")
    assert (made.outcome, made.reference) == (AttemptOutcome.ACCEPTED, "100")
    assert lab.comment("second", "100").outcome is AttemptOutcome.ACCEPTED
    assert [each["body"] for each in lab.stub.comments] == [f"{MARKER}\nsecond"]


def test_a_comment_whose_answer_was_lost_is_found_by_its_marker(lab: Lab) -> None:
    lab.stub.add_comment("mallory", f"{MARKER}\nnot the lab's")
    for number in range(150):
        lab.stub.add_comment("ada", f"comment {number}")
    lists = 1 if lab.stub.kind == "gitea" else 2
    lab.stub.faults = [None] * lists + [Fault(200, after=True, hang_up=True)]
    assert lab.comment("first").outcome is AttemptOutcome.UNKNOWN
    assert lab.comment("second").reference == "251"
    own = [each["body"] for each in lab.stub.comments if BOT in str(each)]
    assert own == [f"{MARKER}\nsecond"]
    assert [method for method, _ in lab.stub.requests].count("GET") == 2 * lists
    assert lab.stub.comments[0]["body"] == f"{MARKER}\nnot the lab's"


def test_a_deleted_comment_is_made_again(lab: Lab) -> None:
    assert lab.comment("again", "77").reference == "100"


@pytest.mark.parametrize(
    ("fault", "outcome", "problem"),
    [
        (Fault(500), AttemptOutcome.FAILED, "the forge answered 500"),
        (Fault(401, {"message": "Bad credentials"}), AttemptOutcome.FAILED, "401: Bad credentials; check token_file"),
        (Fault(403, {"message": "Resource not accessible"}), AttemptOutcome.FAILED, "the token needs the right"),
        (Fault(404, {"message": "Not Found"}), AttemptOutcome.FAILED, "does not exist, or the token may not"),
        (Fault(422, {"message": "No commit found for SHA"}), AttemptOutcome.REFUSED, "422: No commit found for SHA"),
        (Fault(301, {}, {"Location": "http://127.0.0.1:9/"}), AttemptOutcome.FAILED, "the forge answered 301"),
        (Fault(200, hang_up=True), AttemptOutcome.UNKNOWN, "the connection ended before the answer"),
    ],
)
def test_refusals_say_what_to_do(github: Lab, fault: Fault, outcome: AttemptOutcome, problem: str) -> None:
    github.stub.faults = [fault]
    result = github.status()
    assert (result.outcome, problem in result.problem) == (outcome, True), result.problem
    assert len(github.stub.requests) == 1


@pytest.mark.parametrize(
    ("status", "headers", "waits"),
    [
        (429, {"Retry-After": "90"}, 90),
        (403, {"Retry-After": "60"}, 60),
        (429, {}, 60),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "in 1000 s"}, 1000),
    ],
)
def test_a_forge_that_limits_requests_says_when_to_try_again(
    github: Lab, status: int, headers: dict[str, str], waits: int
) -> None:
    reset = {"X-RateLimit-Reset": f"{int(time.time()) + 1000}"} if "X-RateLimit-Reset" in headers else {}
    github.stub.faults = [Fault(status, {"message": "API rate limit exceeded"}, headers | reset)]
    result = github.status()
    assert result.outcome is AttemptOutcome.FAILED
    assert result.wait_s == pytest.approx(waits, abs=5)


def test_a_refusal_is_no_limit() -> None:
    assert wait_s(Answer(403, {"x-ratelimit-remaining": "4000"}, b""), 0) is None
    assert wait_s(Answer(429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b""), 0) == 60


def test_private_addresses_are_not_connected_to(tmp_path: Path) -> None:
    with stub_forge("github") as stub:
        result = Lab(stub, tmp_path, private=False).status()
        assert result.outcome is AttemptOutcome.FAILED
        assert "127.0.0.1 is the private address 127.0.0.1; set `private: true`" in result.problem
        assert stub.requests == []


def test_a_name_that_changes_its_address_reaches_nothing_else(github: Lab) -> None:
    forge = github.stub.config(github.folder).model_copy(update={"private": False, "url": "https://forge.example"})
    api = ForgeApi(forge, "t", find=lambda *_: ["10.0.0.1"])
    with pytest.raises(Exception, match=r"forge.example is the private address 10.0.0.1"):
        api.get("/pulls/7")


def test_missing_forge_and_token_are_tried_again_after_the_operator_has_corrected_them(github: Lab) -> None:
    assert "forge other is not in intake/forges.yaml" in github.status(forge="other").problem
    (github.folder / "token").unlink()
    result = github.status()
    assert result.outcome is AttemptOutcome.FAILED
    assert "token_file" in result.problem


def test_a_comment_mentions_nobody_and_is_not_too_long() -> None:
    text = comment_text("by @mallory and `x@y` of a@example.org\n", "http://lab.test/r/1")
    assert "@mallory" not in text
    assert "`x@y` of a@example.org" in text
    long = comment_text("```\n" + "line\n" * 20_000, "http://lab.test/r/1")
    assert len(long) < 61_000
    assert "line\n```\n\nThe report is longer" in long
    fenced = comment_text("````\n```\n````\n`````\n" + "line\n" * 20_000, "http://lab.test/r/1")
    assert "line\n`````\n\nThe report is longer" in fenced
    assert long.endswith("all of it: http://lab.test/r/1\n")

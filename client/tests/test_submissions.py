"""`wqlab list`, `show`, `cancel` and `retry`: output, requests and exit codes."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from example_views import VIEWS, at, submission
from fakelab import FakeLab, Reply, Request, problem

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary
from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome, SubmissionState, Verdict
from wqlab_contracts.messages import Artifact, Failure, TakenThread, ThreadMail

FINISHED = VIEWS[-1]


pytestmark = pytest.mark.usefixtures("frozen_clock")


def summary(number: int, **changes: object) -> SubmissionSummary:
    fields = {name: getattr(FINISHED, name) for name in SubmissionSummary.model_fields}
    return SubmissionSummary(**{**fields, "id": number, **changes})


# --- list, show -------------------------------------------------------------------------------------------------


def test_list_prints_a_table_and_the_next_cursor(wqlab: Wqlab, lab: FakeLab) -> None:
    rows = [
        summary(120, state=SubmissionState.RUNNING, outcome=None, verdicts={}, title="wq: \x1b[31mred"),
        summary(12, verdicts={Verdict.REGRESSION: 1, Verdict.BELOW_THRESHOLD: 2}),
    ]
    lab.serve("/submissions", Page[SubmissionSummary](items=rows, total=7, next="c2"))
    ended = wqlab("list", "--state", "running", "--owner", "dev", "-q", "flush", "--limit", "2")
    assert ended.code == 0
    assert ended.out == (
        "ID   STATE    TREE        OWNER  AGE     PRIMARY VERDICTS                 TITLE\n"
        "120  running  linux-6.12  dev    10 min                                   wq: ^[[31mred\n"
        "12   passed   linux-6.12  dev    10 min  regression 1, below threshold 2  "
        "workqueue: Take each pool lock once per flush\n"
    )
    assert ended.err == "2 of 7; next page: --cursor c2\n"
    assert lab.requests[0].query == {"state": "running", "owner": "dev", "q": "flush", "limit": "2"}
    assert [each["id"] for each in json.loads(wqlab("list", "--json").out)["items"]] == [120, 12]


def test_list_all_fetches_every_page(wqlab: Wqlab, lab: FakeLab) -> None:
    def page(request: Request) -> Reply:
        first = "cursor" not in request.query
        return Reply(body=Page(items=[summary(2 if first else 1)], total=2, next="c" if first else None))

    lab.answers[("GET", "/api/v1/submissions")] = page
    found = json.loads(wqlab("list", "--all", "--json").out)
    assert [each["id"] for each in found["items"]] == [2, 1]
    assert found["next"] is None


def test_empty_list_prints_no_header(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions", Page[SubmissionSummary](items=[], total=0))
    assert (wqlab("list").out, wqlab("list").err) == ("", "no submissions yet\n")
    assert wqlab("list", "--tree", "x").err == "no submission matches\n"


def test_show_prints_every_step(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12", VIEWS[3])
    ended = wqlab("show", "12")
    assert ended.code == 0
    assert ended.out == (
        "Submission 12: workqueue: Take each pool lock once per flush\n"
        "  tree linux-6.12, owner dev, priority 50, 2026-01-02 10:00 UTC, for 10:00\n"
        "  running: measuring; 4/6 boots, about 2 min left\n"
        "  apply: passed, base 0123456789ab (6.12.48), 1 patch, checkpatch: 1 warning\n"
        "    [PATCH] workqueue: Take each pool lock once per flush\n"
        "  build 3 (baseline x86_64 measure): passed, reused\n"
        "  build 4 (candidate x86_64 measure): passed, in 1:35\n"
        "  run 7 (xfs-fsync on xeon-2s): running, on xeon-2s-1: block 2 of 3, attempt 2: measuring^[[2J"
        " repetition 2 of 3\n"
        "    1/3 blocks  A B  B a  . .\n"
        "    block 2 attempt 1, candidate, boot 3 on xeon-2s-1: panic: workqueue: pool lock held\n"
        "    block 2 attempt 1, candidate: panic: Kernel panic - not syncing: pool lock held\n"
        "      [   12.3] Kernel panic\n"
        "  A baseline, B candidate; lower case: now, x: failed, .: to do\n"
    )
    assert json.loads(wqlab("show", "12", "--json").out) == VIEWS[3].model_dump(mode="json")


def test_show_prints_which_mails_were_taken(wqlab: Wqlab, lab: FakeLab) -> None:
    mails = [
        ThreadMail(role="cover", subject="c", author="a", date=None, message_id="c@x", url="https://lore.example/c@x/"),
        ThreadMail(role="patch", subject="p", author="a", date=None, message_id="p@x", url="https://lore.example/p@x/"),
    ]
    thread = TakenThread(
        revision=2, revisions=[1, 2], subject="c", author="a", series_key="c", mails=mails, replies=0,
        notes=["v2 was sent 2 times"], message_id="p@x", archive="lore", url=mails[0].url, taken_at=at(0),
        mbox=Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.SERIES, name="thread.mbox"),
    )  # fmt: skip
    view = VIEWS[3].model_copy(update={"apply": VIEWS[3].apply.model_copy(update={"thread": thread})})
    lab.serve("/submissions/12", view)
    out = wqlab("show", "12").out
    assert "    v2 of v1, v2 from archive lore\n    cover https://lore.example/c@x/\n" in out
    assert "    patch https://lore.example/p@x/\n    v2 was sent 2 times\n" in out


def test_show_prints_the_failure_of_a_series_that_does_not_apply(wqlab: Wqlab, lab: FakeLab) -> None:
    failure = Failure(
        kind=ErrorKind.USER,
        summary="patch 2/3 does not apply",
        excerpt="\n".join(f"line {n}" for n in range(20)),
        advice="rebase it on 6.12.48, or name its base with --base",
    )
    lab.serve(
        "/submissions/12",
        submission(SubmissionState.FINISHED, outcome=Outcome.FAILED, failure=failure, exit_code=3),
    )
    text = wqlab("show", "12").out
    assert "  failed (the series or request: patch 2/3 does not apply)\n    line 0\n" in text
    assert "    line 11\n    ... 8 more lines\n    rebase it on 6.12.48, or name its base with --base\n" in text


def test_cancel_and_retry_print_the_new_state(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions/12/cancel", submission(SubmissionState.FINISHED, outcome=Outcome.CANCELED), "POST")
    ended = wqlab("cancel", "12")
    assert (ended.code, ended.out, ended.err) == (0, "submission 12: canceled\n", "")
    lab.serve("/submissions/12/retry", VIEWS[2].model_copy(update={"id": 13}), "POST", status=201)
    ended = wqlab("retry", "12")
    assert (ended.code, ended.out) == (0, "submission 13: running\n"), "a retry is a submission of its own"
    assert ended.err == "watch it with `wqlab watch 13`\n"
    wqlab("retry", "12", "--blocks", "24")
    assert lab.requests[-1].query == {"blocks": "24"}
    lab.answers[("POST", "/api/v1/submissions/12/retry")] = problem(409, "submission 12 still runs; cancel it first")
    ended = wqlab("retry", "12")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "wqlab: error: retry submission 12: submission 12 still runs; cancel it first\n"


# --- watch ------------------------------------------------------------------------------------------------------


# --- report, logs, console --------------------------------------------------------------------------------------


# --- compare ----------------------------------------------------------------------------------------------------

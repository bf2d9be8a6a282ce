"""Answers to b4 about a mail, as a table, and the `wqlab b4-check` command with the JSON that b4 reads."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import b4
import pytest
from b4.review.checks import _run_external_cmd
from commandline import Wqlab
from example_views import VIEWS
from fakelab import FakeLab, Reply, Request

from wqlab_client.b4_check import as_complaints, check_of, identify_series, newest_result, prepared_change_id
from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary, TargetSummary
from wqlab_contracts.enums import ErrorKind, ExitCode, JobState, Outcome, SubmissionState, Verdict
from wqlab_contracts.messages import Failure

MAIL = b"""\
From: Ada <ada@example.org>
Subject: =?utf-8?q?=5BPATCH_v2_1/2=5D?= workqueue: Take fewer locks
Message-ID: <p1@example.org>
In-Reply-To: <cover@example.org>
References: <v1@example.org> <cover@example.org>

text
---
diff --git a/kernel/workqueue.c b/kernel/workqueue.c
"""


def target(verdict: Verdict | None, **changes: Any) -> TargetSummary:
    fields: dict[str, Any] = {
        "run_id": 1, "plan": "xfs-fsync", "device_type": "xeon-2s", "emulated": False, "device": "xeon-2s-1",
        "state": JobState.FINISHED, "outcome": Outcome.PASSED, "verdict": verdict, "headline": "bandwidth +1 %",
        "done_boots": 4, "total_boots": 12,
    }  # fmt: skip
    return TargetSummary(**{**fields, **changes})


def submission(*targets: TargetSummary, **changes: Any) -> SubmissionSummary:
    fields = {name: getattr(VIEWS[-1], name) for name in SubmissionSummary.model_fields}
    return SubmissionSummary(**{**fields, "failure": None, "version": 2, "targets": list(targets), **changes})


FAILURE = Failure(kind=ErrorKind.KERNEL, summary="oops in 2 of 2 boots")
LOST = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power")


@pytest.mark.parametrize(
    ("found", "status", "summary"),
    [
        (submission(target(Verdict.IMPROVEMENT)), "pass", "improvement"),
        (submission(target(Verdict.EQUIVALENT), target(Verdict.BELOW_THRESHOLD)), "pass", "equivalent"),
        (submission(target(Verdict.IMPROVEMENT), target(Verdict.REGRESSION)), "fail", "regression"),
        (submission(target(Verdict.REGRESSION, emulated=True)), "warn", "(emulated): regression"),
        (submission(target(Verdict.REGRESSION, emulated=True, modelled=True)), "warn", "(modelled): regression"),
        (submission(target(Verdict.INCONCLUSIVE), target(Verdict.IMPROVEMENT)), "warn", "inconclusive"),
        (submission(target(Verdict.FAILED), failure=FAILURE), "fail", "kernel: oops in 2 of 2 boots"),
        (submission(target(Verdict.FAILED, failure_kind=LOST.kind), failure=LOST), "warn", "infrastructure: no power"),
        (submission(target(None), failure=LOST), "warn", "infrastructure: no power"),
        (submission(target(None), state=SubmissionState.RUNNING), "warn", "in progress"),
        (submission(target(Verdict.IMPROVEMENT), state=SubmissionState.COMPARING), "warn", "in progress"),
    ],
)
def test_status_and_summary(found: SubmissionSummary, status: str, summary: str) -> None:
    result = check_of(found, "https://lab.test/")
    assert (result.tool, result.status, result.url) == ("wqlab", status, f"https://lab.test/r/{found.id}")
    assert summary in result.summary
    complaints = as_complaints(result)
    assert bool(complaints) is (status != "pass")
    assert all(("ERROR:" in line) is (status == "fail") for line in complaints)


def test_series_is_named_by_the_thread_and_the_subject() -> None:
    found = identify_series(MAIL)
    assert list(found.message_ids) == ["p1@example.org", "cover@example.org", "v1@example.org"]
    assert (found.series_key, found.version) == ("workqueue: take fewer locks", 2)
    assert identify_series(MAIL + b"change-id: 20260101-fewer-abc\n").series_key == "20260101-fewer-abc"


@pytest.mark.parametrize(
    "mail",
    [
        *(b"", b"\x00\xff" * 100, b"Subject: =?x-none?q?a?=\n\n", b"Subject: =?utf-8?b?A?=\n\n", b"From " * 1000),
        b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (each, each) for each in range(3_000)),
    ],
)
def test_any_bytes_can_be_read(mail: bytes) -> None:
    assert identify_series(mail).message_ids == []


def test_newest_finished_result_counts() -> None:
    running = submission(id=9, state=SubmissionState.RUNNING, outcome=None)
    canceled = submission(id=8, outcome=Outcome.CANCELED)
    old = submission(id=10, version=1)
    assert newest_result([running, canceled, submission(id=5), submission(id=7), old], 2) == submission(id=7)
    assert newest_result([running, canceled], 2) == running
    assert newest_result([submission(id=3, version=None)], 2) == submission(id=3, version=None)
    assert newest_result([canceled, old], 2) is None, "a version is often sent in reply to the one before"


def pipe(monkeypatch: pytest.MonkeyPatch, mail: bytes = MAIL) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(mail)))


def serve(lab: FakeLab, seen: dict[str, SubmissionSummary]) -> None:
    """Let the lab have seen the series of these mails, by Message-ID."""

    def page(request: Request) -> Reply:
        one = seen.get(request.query.get("message_id", ""))
        return Reply(body=Page(items=[one] if one else [], total=1, next=None))

    lab.answers[("GET", "/api/v1/submissions")] = page


def test_a_patch_of_a_measured_series_has_its_result(
    wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(lab, {"cover@example.org": submission(target(Verdict.REGRESSION), id=12)})
    pipe(monkeypatch)
    ended = wqlab("b4-check")
    assert ended.code == 0
    (result,) = json.loads(ended.out)
    assert result.keys() == {"tool", "status", "summary", "url", "details"}
    assert (result["status"], result["url"]) == ("fail", f"{lab.url}/r/12")
    assert result["summary"] == "xfs-fsync on xeon-2s: regression: bandwidth +1 %"
    pipe(monkeypatch)
    assert wqlab("b4-check", "--lines").out.startswith("ERROR: xfs-fsync on xeon-2s: regression: bandwidth +1 % (http")


def test_a_mail_that_the_lab_never_saw_says_so_and_passes(
    wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(lab, {})
    pipe(monkeypatch)
    ended = wqlab("b4-check")
    assert (ended.code, json.loads(ended.out)) == (0, [])
    assert "the lab has not seen this mail" in ended.err
    pipe(monkeypatch)
    ended = wqlab("b4-check", "--lines")
    assert (ended.code, ended.out, ended.err) == (
        0,
        "WARNING: not measured: the lab has not seen this mail\n",
        "",
    )
    assert all(request.query.keys() <= {"message_id", "series_key", "limit"} for request in lab.requests)


def test_b4_reads_the_answers(lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of b4 that start a check command, with the command itself."""
    serve(lab, {"cover@example.org": submission(target(Verdict.REGRESSION), id=12)})
    monkeypatch.setenv("WQLAB_URL", lab.url)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    mail = message_from_bytes(MAIL, _class=EmailMessage, policy=b4.emlpolicy)
    (shown,) = _run_external_cmd(["wqlab", "b4-check"], mail, str(home))
    assert (shown["tool"], shown["status"], shown["url"]) == ("wqlab", "fail", f"{lab.url}/r/12")
    monkeypatch.setattr(b4, "MAIN_CONFIG", dict(b4.DEFAULT_CONFIG))
    ((flag, text),) = b4.LoreMessage.run_local_check(["wqlab", "b4-check", "--lines"], "x", mail, nocache=True)
    assert flag == "fail"
    assert text.startswith("wqlab: ERROR: xfs-fsync on xeon-2s: regression")
    del mail["Message-ID"], mail["In-Reply-To"], mail["References"]
    assert _run_external_cmd(["wqlab", "b4-check"], mail, str(home)) == [], "the lab never saw it"


def test_b4_prep_finds_the_series_of_its_branch(lab: FakeLab, tmp_path: Path) -> None:
    """The real `b4 prep --check` runs the command of docs/ci.md."""
    change_ids: list[str] = []

    def page(request: Request) -> Reply:
        found = request.query.get("series_key", "") in change_ids
        return Reply(
            body=Page(
                items=[submission(target(Verdict.REGRESSION), id=12, version=1)] if found else [], total=1, next=None
            )
        )

    lab.answers[("GET", "/api/v1/submissions")] = page
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "WQLAB_URL": lab.url,
        "WQLAB_TOKEN": "token", "NO_COLOR": "1",
    }  # fmt: skip

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    run("git", "init", "--quiet", "--initial-branch=master")
    for name, value in (("name", "Ada"), ("email", "ada@example.org")):
        run("git", "config", f"user.{name}", value)
    run("git", "config", "b4.prep-perpatch-check-cmd", "wqlab b4-check --lines")
    run("git", "commit", "--quiet", "--allow-empty", "-m", "start")
    run("b4", "--no-interactive", "prep", "-n", "fewer-locks", "-f", "master")
    for number in (1, 2):
        (tmp_path / "workqueue.c").write_text(f"int locks = {number};\n")
        run("git", "add", "workqueue.c")
        run("git", "commit", "--quiet", "-s", "-m", f"workqueue: take {number} locks\n\nWhy.")
    told = run("b4", "--no-interactive", "prep", "--check")
    assert told.count("WARNING: not measured: the lab has not seen this mail") == 2
    change_ids += [
        each.query["series_key"] for each in lab.requests if "fewer-locks" in each.query.get("series_key", "")
    ]
    (tmp_path / "workqueue.c").write_text("int locks = 3;\n")
    run("git", "commit", "--quiet", "--all", "--amend", "--no-edit")  # b4 caches the answer for a patch
    told = run("b4", "--no-interactive", "prep", "--check")
    assert f"ERROR: xfs-fsync on xeon-2s: regression: bandwidth +1 % ({lab.url}/r/12)" in told


@pytest.mark.parametrize("message", ["start", "cover\n\n--- b4-submit-tracking ---\n# for tracking purposes.\n[7]"])
def test_repository_without_a_prepared_branch_has_no_change_id(tmp_path: Path, message: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    assert prepared_change_id(tmp_path) == ""
    for command in (["init", "--quiet"], [*identity, "commit", "--quiet", "--allow-empty", "-m", message]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert prepared_change_id(tmp_path) == ""


def test_a_lab_that_is_away_is_an_error_and_no_result(
    wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.stop()
    pipe(monkeypatch)
    ended = wqlab("b4-check")
    assert (ended.code, ended.out) == (ExitCode.INFRASTRUCTURE, "")

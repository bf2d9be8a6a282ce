"""Checks that a Patchwork gets for a submission: for which series and owners, when, and with which text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import select

from wqlab_contracts.archives_file import FILE
from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import Arm, ArtifactKind, DeliveryKind, DeliveryState, FindingKind, JobKind, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, Artifact, Failure, Series, ThreadSeries
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_contracts.specs import Archive
from wqlab_server.models import Delivery
from wqlab_server.outbox.patchwork import PatchCheck
from wqlab_server.pipeline.patchwork_checks import is_told
from wqlab_server.submissions import service as submissions

from ..support.lab import LabUnderTest, ScriptedWorker, infrastructure_result, passing_apply
from ..support.threads import taken_thread
from .test_advance_failures import candidate_panics, with_finding

pytestmark = pytest.mark.integration
SERIES = Series(thread=ThreadSeries(message_id="https://patchwork.example.org/series/12/"))
CHECKS = {"project": "wq", "token_file": "/etc/wqlab/pw.token", "owners": ["dev"]}
ARCHIVE = {
    "name": "pw", "kind": "patchwork", "summary": "s", "url": "https://patchwork.example.org", "checks": CHECKS,
}  # fmt: skip
MAILS = Artifact(sha256="a" * 64, size=9, kind=ArtifactKind.SERIES, name="thread.mbox")


@pytest.fixture
def data_dir(data_dir: Path) -> Path:
    (data_dir / FILE).write_text(yaml.safe_dump({"archives": [ARCHIVE]}))
    return data_dir


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_apply = applied


def applied(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
    thread = taken_thread(worker.upload(ArtifactKind.SERIES, "thread.mbox", b"mails"))
    return passing_apply(job, worker).model_copy(update={"thread": thread.model_copy(update={"archive": "pw"})})


def told(lab: LabUnderTest) -> list[tuple[str, str, str, DeliveryState]]:
    """Return context, state and text of each check, and the state of its delivery, oldest first."""
    with lab.transaction() as session:
        rows = session.scalars(
            select(Delivery).where(Delivery.kind == DeliveryKind.PATCHWORK_CHECK).order_by(Delivery.id)
        ).all()
        checks = [(PatchCheck.model_validate_json(row.body or ""), row) for row in rows]
        assert all(check.message_id == "less-v2-2@x" for check, _ in checks), "the last patch"
        assert all(check.target_url.endswith(f"/r/{row.submission_id}") for check, row in checks)
        return [(check.context, check.state, check.description, row.state) for check, row in checks]


def test_each_plan_and_device_type_has_a_check_whose_newest_state_is_sent(lab: LabUnderTest) -> None:
    lab.finished(lab.submit("locks@single", "affinity@device", series=SERIES))
    began, ended = told(lab)[:2], told(lab)[2:]
    assert began == [
        ("wqlab-locks-single", "pending", "emulated: to be measured", DeliveryState.DROPPED),
        ("wqlab-affinity-device", "pending", "emulated: to be measured", DeliveryState.DROPPED),
    ]
    assert [(context, state) for context, state, *_ in ended] == [
        ("wqlab-locks-single", "success"), ("wqlab-affinity-device", "warning"),
    ]  # fmt: skip
    assert ended[0][2].startswith("emulated: improvement: 33 -> 5 lock acquisitions per flush; a code path count")


def failing(kind: str) -> Any:
    def apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        result = applied(job, worker)
        failure = Failure(kind=kind, summary="patch 2 does not apply to kernel/workqueue.c")
        return ApplyResult(outcome=Outcome.FAILED, failure=failure, thread=result.thread)

    return apply


@pytest.mark.parametrize(("kind", "state"), [("user", "fail"), ("infrastructure", "warning")])
def test_failure_blames_the_series_only_for_its_own_faults(lab: LabUnderTest, kind: str, state: str) -> None:
    lab.worker.on_apply = failing(kind)
    lab.finished(lab.submit("locks@single", series=SERIES))
    last = told(lab)[-1]
    assert last[:3] == ("wqlab-locks-single", state, f"{kind}: patch 2 does not apply to kernel/workqueue.c")


def test_check_fails_for_a_kernel_and_warns_without_a_passing_baseline_or_a_device(lab: LabUnderTest) -> None:
    for on_run, state, text in (
        (with_finding(FindingKind.LOCKDEP, (0, Arm.CANDIDATE), (1, Arm.CANDIDATE)), "fail", "emulated: failed: "),
        (candidate_panics, "warning", "emulated: inconclusive: the candidate showed panic in 2 of 2 boots"),
        (lambda run: infrastructure_result(), "warning", "emulated: not measured (infrastructure"),
    ):
        lab.worker.on_run = on_run
        lab.finished(lab.submit("locks@single", series=SERIES, force=True))
        last = told(lab)[-1]
        assert (last[1], last[2][: len(text)]) == (state, text)


def test_canceled_submission_does_not_stay_pending(lab: LabUnderTest) -> None:
    number = lab.submit("locks@single", series=SERIES)
    lab.work(JobKind.APPLY, ADVANCE)
    with lab.transaction() as session:
        submissions.cancel(session, number)
    lab.finished(number)
    assert told(lab)[-1][1:3] == ("warning", "canceled, not measured")


@pytest.mark.parametrize(
    ("changes", "taken_from", "owner", "to", "expected"),
    [
        ({}, "pw", "dev", "", True),
        ({}, "pw", "eve", "", False),
        ({"checks": None}, "pw", "dev", "", False),
        ({}, "lore", "dev", "wq@lists.example.org", False),
        ({"list": "wq@lists.example.org"}, "lore", "dev", "WQ <wq@lists.EXAMPLE.org>", True),
        ({"list": "wq@lists.example.org"}, "lore", "dev", "other@lists.example.org", False),
        ({"list": "wq@lists.example.org"}, "lore", "eve", "wq@lists.example.org", False),
    ],
)  # fmt: skip
def test_series_and_owners_that_get_checks(
    changes: dict[str, Any], taken_from: str, owner: str, to: str, expected: bool
) -> None:
    source = SourceMail(message_id="a@b", sender="ada@example.org", to=[to] if to else [], subject="s")
    thread = taken_thread(MAILS).model_copy(update={"archive": taken_from, "source": source})
    assert is_told(Archive.model_validate(ARCHIVE | changes), thread, owner) is expected

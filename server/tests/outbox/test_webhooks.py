"""Which events a webhook's filter lets through."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wqlab_contracts.api.webhooks import (
    CulpritNotice,
    DeviceNotice,
    LabNotice,
    Notice,
    SubmissionNotice,
    WebhookCulprit,
    WebhookDevice,
    WebhookFilter,
    WebhookLab,
    WebhookSubmission,
    WebhookTarget,
)
from wqlab_contracts.enums import BisectionState, JobState, OutboxEvent, Outcome, UserRole, Verdict
from wqlab_server.models import Webhook
from wqlab_server.outbox.webhooks import is_for, matches

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def submission(*targets: tuple[str, str], event: OutboxEvent = OutboxEvent.SUBMISSION_FINISHED) -> SubmissionNotice:
    return SubmissionNotice(
        type=event,
        timestamp=NOW,
        data=WebhookSubmission(
            submission=1, url="http://lab.test/r/1", title="t", series_key="k", version=1, author="a", owner="ann",
            tree="t", outcome=Outcome.PASSED, exit_code=0,
            targets=[
                WebhookTarget(
                    run_id=1, plan=plan, device_type=device_type, emulated=False, state=JobState.FINISHED,
                    outcome=Outcome.PASSED, verdict=Verdict.REGRESSION, headline="",
                )
                for plan, device_type in targets
            ],
        ),
    )  # fmt: skip


DEVICE = DeviceNotice(
    type=OutboxEvent.DEVICE_QUARANTINED,
    timestamp=NOW,
    data=WebhookDevice(device="xeon-1", device_type="xeon", lab="local", reason="r", by="run 1", url="u"),
)
LAB = LabNotice(
    type=OutboxEvent.LAB_LOST, timestamp=NOW, data=WebhookLab(lab="b", last_seen_at=NOW, devices=1, url="u")
)
CULPRIT = CulpritNotice(
    type=OutboxEvent.CULPRIT_FOUND, timestamp=NOW,
    data=WebhookCulprit(
        bisection=1, url="u", headline="h", owner="ann", tree="t", watch=None, shift=None, plan="fsync",
        device_type="xeon", scenario="fsync", setting=None, metric="locks", failure="", good="a" * 40, bad="b" * 40,
        submission=1, confirmed_by=2, state=BisectionState.FOUND, first="b" * 40, culprit="b" * 40, subject="s",
        author="a", is_merge=False, probability=0.97, verdict=Verdict.REGRESSION, effect=2.0, ci95=None,
        effect_unit="locks",
    ),
)  # fmt: skip
BOTH = submission(("fsync", "xeon"), ("crypt", "ryzen"))


@pytest.mark.parametrize(
    ("wanted", "notice", "expected"),
    [
        (WebhookFilter(mine=True), BOTH, True),
        (WebhookFilter(device_types=["xeon"]), BOTH, True),
        (WebhookFilter(device_types=["tiny"]), BOTH, False),
        (WebhookFilter(plans=["crypt", "other"]), BOTH, True),
        (WebhookFilter(plans=["crypt"], device_types=["ryzen"]), BOTH, True),
        # No target is of this plan on this device type.
        (WebhookFilter(plans=["crypt"], device_types=["xeon"]), BOTH, False),
        (WebhookFilter(mine=True, plans=["other"]), BOTH, False),
        (WebhookFilter(device_types=["xeon"]), DEVICE, True),
        (WebhookFilter(device_types=["tiny"]), DEVICE, False),
        (WebhookFilter(mine=True), DEVICE, False),
        (WebhookFilter(device_types=["xeon"], plans=["fsync"]), DEVICE, False),
        (WebhookFilter(device_types=["xeon"]), LAB, False),
        (WebhookFilter(mine=True), CULPRIT, True),
        (WebhookFilter(device_types=["xeon"], plans=["fsync"]), CULPRIT, True),
        (WebhookFilter(device_types=["tiny"], plans=["fsync"]), CULPRIT, False),
        (WebhookFilter(plans=["crypt"]), CULPRIT, False),
    ],
)
def test_filters(wanted: WebhookFilter, notice: Notice, expected: bool) -> None:
    assert matches(wanted, "ann", notice) is expected


def test_others_submissions_are_not_mine() -> None:
    assert not matches(WebhookFilter(mine=True), "bob", BOTH)
    assert not matches(WebhookFilter(mine=True), "bob", CULPRIT)
    assert matches(WebhookFilter(device_types=["xeon"]), "bob", BOTH)


@pytest.mark.parametrize("notice", [BOTH, CULPRIT, DEVICE, LAB])
def test_without_a_filter_everything_goes_to_administrators_only(notice: Notice) -> None:
    webhook = Webhook(owner="ann", filter=WebhookFilter())
    assert is_for(webhook, UserRole.ADMIN, notice)
    assert not is_for(webhook, UserRole.MAINTAINER, notice)  # was an administrator when it was created

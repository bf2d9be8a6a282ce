"""A budget of blocks for all targets of a submission is spent where it decides most."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wqlab_contracts.enums import JobState, Outcome, Verdict
from wqlab_contracts.messages import RunResult
from wqlab_contracts.messages.looks import LookReason
from wqlab_server.estimates import lab_snapshot
from wqlab_server.lab import queries
from wqlab_server.reports.render.html import render_html
from wqlab_server.reports.render.markdown import render_markdown
from wqlab_server.reports.render.text import render_text
from wqlab_server.submissions import service as submissions

from ..support.lab import LabUnderTest, RunSession, infrastructure_result, passing_run
from .test_looks import LOOKS, locks, steps

pytestmark = pytest.mark.integration

TARGETS = ("locks@device", "locks@single")
UNDECIDED = (-0.45, 1.2)
"""Effect and spread with which a run takes all looks."""
ALMOST_DECIDED = (-1.3, 1.2)
"""Undecided after six blocks, decided after ten."""


def by_type(lab: LabUnderTest, **of_type: tuple[float, float]) -> Callable[[RunSession], RunResult]:
    """Return a worker whose devices differ in effect and spread."""

    def run(session: RunSession) -> RunResult:
        lab.worker.value = locks(*of_type[session.job.device.device_type])
        return passing_run(session)

    return run


def blocks_of(lab: LabUnderTest, submission_id: int) -> dict[str, int]:
    return {run.device_type: run.looked[-1].blocks for run in lab.runs(submission_id)}


def test_blocks_go_to_the_target_that_they_probably_decide(lab: LabUnderTest) -> None:
    lab.worker.on_run = by_type(lab, device=UNDECIDED, single=ALMOST_DECIDED)
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=16)
    assert lab.finished(submission_id).outcome is Outcome.PASSED
    device, single = lab.runs(submission_id)
    assert blocks_of(lab, submission_id) == {"device": 6, "single": 10}
    assert (device.looked[-1].reason, single.looked[-1].reason) == (LookReason.BUDGET, LookReason.EFFECT)
    assert "its next look needs 4 blocks, and the budget of 16 has 0 left" in device.looked[-1].text
    (granted,) = [look.share for look in single.looked if look.share]
    assert granted.startswith("4 blocks of 4 left, as number 1 of 2 waiting targets")
    assert device.boots_done + single.boots_done == 2 * 16
    assert (device.verdict, single.verdict) == (Verdict.INCONCLUSIVE, Verdict.IMPROVEMENT)


def test_blocks_that_one_target_saves_go_to_the_other(lab: LabUnderTest) -> None:
    lab.worker.on_run = by_type(lab, device=UNDECIDED, single=(-8, 1))
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=22)
    lab.finished(submission_id)
    assert blocks_of(lab, submission_id) == {"device": 16, "single": 6}


def test_run_waits_without_a_device_until_the_others_are_looked_at(lab: LabUnderTest) -> None:
    lab.worker.value = locks(*UNDECIDED)
    lab.worker.on_run = lambda run: passing_run(run) if run.job.device.device_type == "device" else None
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=20)
    lab.until_idle()
    lab.tick()
    device, _ = lab.runs(submission_id)
    assert (device.state, device.looked[-1].reason) == (JobState.QUEUED, LookReason.HELD)
    assert device.boots_done == 12
    view = steps(lab, submission_id)
    assert view.runs[0].queue_position is None, "it waits for no device"
    with lab.transaction() as session:
        assert "device" not in queries.queued_by_type(session)
        assert device.id not in {run.run_id for run in lab_snapshot.load(session, lab.settings).runs}
    metrics = lab.client.get("/metrics", headers={"Authorization": f"Bearer {lab.token}"}).text.splitlines()
    assert 'wqlab_queue_age_seconds{device_type="device",kind="run"} 0.0' in metrics
    assert not [line for line in metrics if line.startswith('wqlab_queued_runs{device_type="device"}')]


@pytest.mark.nightly
def test_failed_run_returns_its_blocks(lab: LabUnderTest) -> None:
    lab.worker.value = locks(*UNDECIDED)

    def fail_on_single(run: RunSession) -> RunResult:
        return passing_run(run) if run.job.device.device_type == "device" else infrastructure_result()

    lab.worker.on_run = fail_on_single
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=16)
    lab.finished(submission_id)
    assert lab.runs(submission_id)[0].looked[-1].blocks == 16


def test_blocks_of_a_finished_run_are_counted_if_their_boots_differ(lab: LabUnderTest) -> None:
    """A walk stops booting a kernel that fails, so its later blocks have fewer boots."""
    measure = by_type(lab, device=UNDECIDED, single=(-8, 1))

    def run(session: RunSession) -> RunResult:
        first = """UPDATE runs SET blocks = jsonb_set(blocks, '{0}', '["baseline", "candidate", "patch-1"]')"""
        lab.sql(f"{first} WHERE device_type = 'single' AND state = 'finished'")
        return measure(session)

    lab.worker.on_run = run
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=20)
    lab.until_idle()
    assert blocks_of(lab, submission_id) == {"device": 10, "single": 6}


def test_canceled_submission_ends_runs_that_wait(lab: LabUnderTest) -> None:
    lab.worker.value = locks(*UNDECIDED)
    lab.worker.on_run = lambda run: passing_run(run) if run.job.device.device_type == "device" else None
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=20)
    lab.until_idle()
    lab.post(f"submissions/{submission_id}/cancel")
    lab.until_idle()
    assert lab.runs(submission_id)[0].outcome is Outcome.CANCELED
    assert not [line for line in lab.report(submission_id).budget if "waits" in line]


def test_report_says_where_the_blocks_went(lab: LabUnderTest) -> None:
    lab.worker.on_run = by_type(lab, device=UNDECIDED, single=ALMOST_DECIDED)
    submission_id = lab.submit(*TARGETS, looks=LOOKS, budget=16)
    lab.finished(submission_id)
    report = lab.report(submission_id)
    for render in (render_text, render_markdown, render_html):
        text = " ".join(render(report).split())
        assert "Budget of 16 blocks, 16 used" in text
        assert "locks on device 6" in text
        assert "locks on single 10" in text


@pytest.mark.nightly
def test_more_blocks_have_no_budget(lab: LabUnderTest) -> None:
    lab.worker.value = locks(*UNDECIDED)
    first = lab.submit(*TARGETS, looks=LOOKS, budget=12)
    lab.finished(first)
    with lab.transaction() as session:
        again = submissions.retry(session, lab.data, lab.settings, first, "dev", blocks=12)
        assert again.request.budget is None
        assert submissions.retry(session, lab.data, lab.settings, first, "dev").request.budget == 12


@pytest.mark.parametrize(
    ("more", "detail"),
    [
        ({"budget": 20}, "a budget needs looks, such as 6, 10, 16"),
        (
            {"budget": 11, "looks": LOOKS},
            "2 targets need 12 blocks up to their first look; give a budget of at least 12",
        ),
    ],
)
def test_mistakes_in_budgets(lab: LabUnderTest, more: dict[str, object], detail: str) -> None:
    targets = [{"plan": "locks", "device_type": name} for name in ("device", "single")]
    body = {"series": None, "tree": "lab-tree", "targets": targets, **more}
    answer = lab.client.post("/api/v1/submissions", json=body, headers={"Authorization": f"Bearer {lab.token}"})
    assert answer.status_code == 422
    assert {error["pointer"]: error["detail"] for error in answer.json()["errors"]}["/budget"] == detail

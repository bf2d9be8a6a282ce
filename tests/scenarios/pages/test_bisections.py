"""The pages of bisections, in Chromium on the real API, with rows as the pipeline writes them."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from sqlalchemy import select
from sqlalchemy.orm import Session

from server.tests.support.scene import Scene
from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.enums import BisectionState, JobState, Outcome, Scale, ShiftSource, ShiftState
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as StepState
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult, ListedCommit
from wqlab_contracts.specs import Tree
from wqlab_server.models import Bisection, BisectionStep, CommitList, HistoryShift
from wqlab_server.storage.db import SessionFactory, clock, transaction

from .conftest import MakePerson
from .test_history import write_heads, write_line, write_tree

pytestmark = pytest.mark.scenario

COMMITS, CULPRIT = 64, 37
"""Number of commits, and position of the culprit."""
EFFECT = 0.023
BROKEN = 34


def oid(position: int) -> str:
    return sha1(f"commit {position}".encode()).hexdigest()


def listed() -> CommitListResult:
    commits = [
        ListedCommit(
            commit=oid(position), parents=[oid(position - 1), *([oid(900 + position)] if position % 9 == 0 else [])],
            subject=f"workqueue: take the pool's lock {'twice' if position == CULPRIT else 'once'} ({position})",
            author="Ada Lovelace <ada@example.org>",
        )
        for position in range(1, COMMITS + 1)
    ]  # fmt: skip
    return CommitListResult(outcome=Outcome.PASSED, good=oid(0), bad=oid(COMMITS), ref="for-next", commits=commits)


def write_step(session: Session, row: Bisection, kind: Kind, position: int, submission: int, blocks: int) -> None:
    noise = random.Random(position)
    shift = EFFECT if position >= CULPRIT else 0.0
    broken = position == BROKEN
    confirms = kind is Kind.CONFIRM
    list_id = session.scalars(select(CommitList.id).where(CommitList.bisection_id == row.id)).one()
    session.add(
        BisectionStep(
            bisection_id=row.id, list_id=list_id, kind=kind, first=position if confirms else 1, last=position,
            state=StepState.UNUSABLE if broken else StepState.MEASURED,
            baseline=oid(position - 1) if confirms else oid(0), candidate=oid(position), blocks=blocks,
            submission_id=submission, submitted_at=clock(session), ended_at=clock(session),
            reason=f"commit {oid(position)[:12]} does not build: kernel/workqueue.c:12: error" if broken else "",
            differences=[] if broken else [shift + noise.gauss(0, 0.008) for _ in range(blocks)],
            differs=kind is not Kind.PROBE, effect=None if broken else 2.3, boots=0 if broken else 2 * blocks,
            ci_low=1.6 if kind is not Kind.PROBE else None, ci_high=3.0 if kind is not Kind.PROBE else None,
        )
    )  # fmt: skip
    session.flush()


def write_bisection(session: Session, number: int, state: BisectionState, **more: object) -> None:
    request = BisectionRequest(
        tree="t", good="v6.16", bad="for-next", plan="flush", device_type="tiny", scenario="fsync",
        setting="scope=cache", metric="locks", blocks=10,
    )  # fmt: skip
    values: dict[str, Any] = {
        "request": request, "owner": "submit", "limited": True, "good": oid(0), "bad": oid(COMMITS),
        "ref": "for-next", "commits": COMMITS, "scale": Scale.RATIO, "unit": "locks", "effect": 2.4, "ci_low": 1.7,
        "ci_high": 3.1, "plain_boots": 120, "repository": Tree(name="t", summary="s", url="https://example.org/t"),
        "created_at": clock(session) - timedelta(hours=number), **more,
    }  # fmt: skip
    session.add(Bisection(id=number, state=state, **values))
    session.flush()
    job = CommitListJob(tree=values["repository"], good="v6.16", bad="for-next")
    session.add(
        CommitList(
            bisection_id=number, level=0, payload=job, state=JobState.FINISHED, outcome=Outcome.PASSED,
            result=listed(),
        )
    )  # fmt: skip
    session.flush()


def write_bisections(scene: Scene, sessions: SessionFactory) -> None:
    """Write a bisection of a shift that has found its commit, one that goes on, and one that failed."""
    submission = scene.submission()
    run = scene.run_id(submission)
    with transaction(sessions) as session:
        write_tree(session)
        write_heads(session, 60)
        write_line(session, 1, run, "tiny", "locks", 1.0, 60)
        culprit = {
            "first": oid(CULPRIT), "culprit": oid(CULPRIT), "culprit_author": "Ada Lovelace <ada@example.org>",
            "culprit_subject": f"workqueue: take the pool's lock twice ({CULPRIT})", "probability": 0.986,
            "culprit_effect": 2.3, "culprit_ci_low": 1.6, "culprit_ci_high": 3.0,
        }  # fmt: skip
        ended = clock(session)
        write_bisection(session, 1, BisectionState.FOUND, boots=32, ended_at=ended, watch="next", **culprit)
        write_bisection(session, 2, BisectionState.SEARCHING, boots=8, reason="waits: quiet hours")
        write_bisection(
            session, 3, BisectionState.FAILED, good=None, bad=None, commits=None, plain_boots=0, effect=None,
            ci_low=None, ci_high=None, ended_at=ended,
            reason="good v6.16 is not an ancestor of bad for-next; their merge base is 0123456789ab. "
            "Bisect from the merge base: --good 0123456789ab.",
        )  # fmt: skip
        session.scalars(select(CommitList).where(CommitList.bisection_id == 3)).one().result = None
        for number, positions in ((1, (32, 48, 40, 34, 36, 38, 37, 36, 37)), (2, (32, 48))):
            row = session.get_one(Bisection, number)
            write_step(session, row, Kind.ENDS, COMMITS, submission, 10)
            for position in positions:
                write_step(session, row, Kind.PROBE, position, submission, 2)
        write_step(session, session.get_one(Bisection, 1), Kind.CONFIRM, CULPRIT, submission, 10)
        session.add(
            HistoryShift(
                id=1, line_id=1, before_id=40, after_id=41, state=ShiftState.CONFIRMED, source=ShiftSource.VERDICT,
                suspected_effect=2.5, submission_id=submission, effect=2.4, ci_low=1.7, ci_high=3.1, bisection_id=1,
                created_at=ended, decided_at=ended, changed_at=ended,
            )
        )  # fmt: skip


def test_a_shift_leads_to_its_commit_and_to_every_measurement(
    person: MakePerson, scene: Scene, sessions: SessionFactory
) -> None:
    write_bisections(scene, sessions)
    reader = person("read")
    page = reader.page
    reader.open("/history/shifts/1")
    expect(page.get_by_text("workqueue: take the pool's lock twice (37)")).to_be_visible()
    page.get_by_role("link", name="bisection 1").click()
    expect(page.get_by_role("heading", level=1, name="Bisection of locks on tiny")).to_be_visible()
    expect(page.get_by_text("a plain bisection with all blocks at each step: 120")).to_be_visible()
    expect(page.get_by_text("+2.30 % [+1.60, +3.00]").first).to_be_visible()
    commits = page.get_by_role("table", name="Commits")
    found = commits.get_by_role("row", name=re.compile(oid(CULPRIT)[:12]))
    expect(found).to_contain_text("culprit")
    expect(found).to_contain_text("%")
    expect(commits.get_by_role("row", name=re.compile(oid(BROKEN)[:12]))).to_contain_text("does not build")
    expect(commits.get_by_role("row", name=re.compile("^31 commits not measured"))).to_be_visible()
    measurements = page.get_by_role("table", name="Measurements")
    expect(measurements.get_by_role("row")).to_have_count(12)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    page.get_by_role("link", name="shift 1").click()
    page.wait_for_url("**/history/shifts/1")


def test_the_owner_cancels_a_bisection(person: MakePerson, scene: Scene, sessions: SessionFactory) -> None:
    write_bisections(scene, sessions)
    owner = person("submit")
    page = owner.page
    owner.open("/history")
    page.get_by_role("navigation", name="Trends").get_by_role("link", name="Bisections").click()
    table = page.get_by_role("table", name="Bisections")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row", name=re.compile("found"))).to_contain_text(oid(CULPRIT)[:12])
    table.get_by_role("row", name=re.compile("searching")).get_by_role("link").click()
    expect(page.get_by_text("waits: quiet hours")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel bisection").click()
    expect(page.get_by_text("Bisection 2 is being canceled.")).to_be_visible()
    with transaction(sessions) as session:
        assert session.get_one(Bisection, 2).cancel_requested_at is not None


def test_a_lab_without_bisections_says_how_to_begin_one(person: MakePerson) -> None:
    reader = person("read")
    reader.open("/bisections")
    expect(reader.page.get_by_text("No bisections")).to_be_visible()
    expect(reader.page.get_by_text("wqlab bisect --good")).to_be_visible()


def test_a_submitter_begins_one_from_what_a_submission_has_shown(
    person: MakePerson, scene: Scene, sessions: SessionFactory
) -> None:
    submission = scene.submission()
    submitter = person("submit")
    page = submitter.page
    submitter.open(f"/bisections/new?good=v6.16&bad=for-next&submission={submission}&metric=no_such_metric")
    expect(page.get_by_label("Good", exact=True)).to_have_value("v6.16")
    expect(page.get_by_text(re.compile("^wqlab bisect --good v6.16 --bad for-next"))).to_be_visible()
    page.get_by_role("button", name="Begin bisection").click()
    expect(page.get_by_text("has no metric 'no_such_metric'").first).to_be_visible()
    what = page.get_by_label("What has changed")
    what.select_option(index=1)  # the first metric that the plan has
    metric = what.input_value()
    page.get_by_role("button", name="Begin bisection").click()
    page.wait_for_url(re.compile(r"/bisections/\d+$"))
    expect(page.get_by_role("heading", level=1, name=re.compile(f"^Bisection of {metric} on "))).to_be_visible()
    submitter.errors.clear()  # the refused request is on the console
    with transaction(sessions) as session:
        (row,) = session.query(Bisection).all()
        assert (row.owner, row.request.submission, row.request.metric) == ("submit", submission, metric)
    submitter.open(f"/submissions/{submission}")
    page.get_by_role("link", name=f"bisection {row.id}").click()
    page.wait_for_url(f"**/bisections/{row.id}")


def test_a_shift_that_is_not_searched_fills_in_the_form(
    person: MakePerson, scene: Scene, sessions: SessionFactory
) -> None:
    write_bisections(scene, sessions)
    with transaction(sessions) as session:
        session.get_one(HistoryShift, 1).bisection_id = None
    submitter = person("submit")
    page = submitter.page
    submitter.open("/history/shifts/1")
    page.get_by_role("link", name="Bisect", exact=True).click()
    page.wait_for_url("**/bisections/new?**")
    expect(page.get_by_label("Good", exact=True)).not_to_be_empty()
    expect(page.get_by_label("What has changed")).to_have_value("locks")
    reader = person("read")
    reader.open("/history/shifts/1")
    expect(reader.page.get_by_role("link", name="Bisect", exact=True)).to_have_count(0)
    reader.open("/bisections/new")
    expect(reader.page.get_by_text("Your account may only read")).to_be_visible()


PAGES = {
    "bisections": "/bisections",
    "bisection-found": "/bisections/1",
    "bisection-searching": "/bisections/2",
    "bisection-failed": "/bisections/3",
    "bisection-new": "/bisections/new?good=v6.16&bad=for-next&submission=1",
    "shift-bisected": "/history/shifts/1",
}


def test_pages_are_accessible_and_fit_in_both_themes_and_widths(
    person: MakePerson, scene: Scene, sessions: SessionFactory, pictures: Path
) -> None:
    write_bisections(scene, sessions)
    maintainer = person("maintain")
    faults: list[str] = []
    for name, path in PAGES.items():
        maintainer.open(path)
        expect(maintainer.page.locator("main table, main dl, main form").first).to_be_visible()
        faults += maintainer.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)

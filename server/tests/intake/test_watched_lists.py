"""Mails of a watched list become submissions: once each, with the watch's limits, whatever happens in between."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import AuditAction, DecisionReason, DecisionState, ErrorKind, Outcome, UserRole
from wqlab_contracts.messages.list_mails import ListMails, ListPosition
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_server.intake.decide import decide
from wqlab_server.models import AuditEntry, SeenMail, Watch, WatchDecisionRow, WatchedList
from wqlab_server.orders.orders import minutes_used
from wqlab_server.sources.lists import ListSource
from wqlab_server.storage.db import clock
from wqlab_server.tick.run_sources import admit_orders, place_orders

from ..support.datafolder import ARCHIVES, write_data_folder
from ..support.lab import LabUnderTest, failed
from ..support.people import add_user
from ..support.watched_list import EPOCHS, SOON, List, mails, patch

pytestmark = pytest.mark.integration


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_data_folder(folder)
    (folder / "intake/archives.yaml").write_text(ARCHIVES + EPOCHS + "    dkim_checked: true\n")
    return folder


@pytest.fixture
def wq(lab: LabUnderTest) -> List:
    return List(lab)


@pytest.fixture
def unchecked(data_dir: Path) -> None:
    """Let the archive say nothing about the senders of its mails, before the server reads the data folder."""
    (data_dir / "intake/archives.yaml").write_text(ARCHIVES + EPOCHS)


TAKEN = ("wq", 1, DecisionState.TAKEN, None)


def test_series_that_asks_becomes_a_submission_of_the_owner(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails())
    (made,) = wq.submissions()
    assert made.owner == "dev" and made.request.tree == "lab-tree"
    thread = made.request.series.thread if made.request.series else None
    assert thread is not None and (thread.message_id, thread.revision) == ("less-v1-0@x", 1)
    assert [(target.plan, target.device_type) for target in made.request.targets] == [("locks", "single")]
    row = wq.decision()
    assert (row.submission_id, row.state, row.subject) == (made.id, DecisionState.TAKEN, "[PATCH 0/2] workqueue: less")
    with wq.lab.transaction() as session:
        assert minutes_used(session, "wq") > 0
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == AuditAction.CREATE_SUBMISSION)).one()
        assert (entry.actor, entry.detail["owner"]) == ("watch wq", "dev")


TABLE = """\
touches:
  - name: flush
    paths: [kernel/workqueue.c]
    symbols: [flush_*]
    plans:
      - {plan: locks, asks: "Does a flush take fewer locks?"}
      - {plan: affinity, devices: [multi_l3], asks: "Does a flush change where works run?"}
"""


@pytest.fixture
def table(data_dir: Path) -> None:
    """Write the table before the server reads the data folder, which it reads again only after seconds."""
    (data_dir / "testplans/touches.yaml").write_text(TABLE)


@pytest.mark.usefixtures("table")
def test_watch_measures_what_a_series_touches(wq: List) -> None:
    wq.watch(only_if_asked=False, what_it_touches=True, targets=[])
    wq.arrive(*mails(name="less", asks=False, symbols={"kernel/workqueue.c": ["flush_work"]}))
    (made,) = wq.submissions()
    targets = [(target.plan, target.device_type) for target in made.request.targets]
    assert targets == [("locks", "single"), ("affinity", "device")]
    wq.arrive(*mails(name="other", asks=False, symbols={"kernel/workqueue.c": ["insert_work"]}))
    assert len(wq.submissions()) == 1
    row = wq.decision()
    assert (row.state, row.reason) == (DecisionState.NOT_TAKEN, DecisionReason.PATHS)
    assert row.detail == "the lab has no plan for the files and functions that it changes"


def test_nothing_is_taken_twice(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails())
    # The archive's history was rewritten, so all mails are read again.
    wq.arrive(*mails())
    wq.lab.sql("DELETE FROM list_mails")
    wq.arrive(*mails())
    wq.watch("again")
    wq.arrive(*mails(name="other"))
    assert [made.owner for made in wq.submissions()] == ["dev", "dev"]
    assert wq.decisions() == [
        TAKEN,
        ("again", 1, DecisionState.TAKEN, None),
        ("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.OTHER_WATCH),
    ]


def arrived(wq: List) -> None:
    """Let a series arrive, decide on it and order it."""
    wq.watch()
    read_id, claim = wq.claim()
    result = ListReadResult(outcome=Outcome.PASSED, found=ListMails(position=None, mails=mails()))
    wq.finish(read_id, claim.fence, result)
    with wq.lab.transaction() as session:
        decide(session, "lore", clock(session))
    place_orders(wq.lab.sessions, wq.lab.settings, wq.lab.data)


def test_two_servers_submit_a_series_once(wq: List) -> None:
    arrived(wq)
    started = threading.Barrier(2)

    def serve() -> None:
        started.wait()
        admit_orders(wq.lab.sessions, wq.lab.settings, wq.lab.data)

    servers = [threading.Thread(target=serve) for _ in range(2)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert len(wq.submissions()) == 1 and wq.decisions() == [TAKEN]


def test_crash_between_submission_and_decision_repeats_both(wq: List, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived(wq)

    def crash(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(ListSource, "submitted", crash)
        admit_orders(wq.lab.sessions, wq.lab.settings, wq.lab.data)
    assert wq.submissions() == []
    wq.lab.tick()
    assert len(wq.submissions()) == 1 and wq.decisions() == [TAKEN]


def test_position_and_mails_are_stored_together(wq: List) -> None:
    wq.watch()
    read_id, claim = wq.claim()
    assert claim.job.source.position is None and not claim.job.heads_only
    assert claim.job.source.archive.epochs == "https://lore.example.org/wq/{epoch}"
    found = ListMails(position=ListPosition(epoch=3, commit="a" * 40), mails=mails()[:2], is_complete=True)
    result = ListReadResult(outcome=Outcome.PASSED, found=found)
    wq.finish(read_id, claim.fence, result)
    wq.finish(read_id, claim.fence, result)  # its answer was lost
    assert wq.unfinished() is None
    row = wq.watched()
    assert (row.epoch, row.commit, row.mails, row.failure) == (3, "a" * 40, 2, None)
    assert wq.claim()[1].job.source.position == found.position


def test_more_mails_are_read_without_waiting_for_a_tick(wq: List) -> None:
    wq.watch()
    replies = [patch(f"r{number}@x", is_reply=True, archived_at=SOON) for number in range(1_000)]
    wq.arrive(*replies, *mails()[:1], more=True)
    following = wq.unfinished()
    assert following is not None and following.payload.source.position == ListPosition(epoch=0, commit=f"{1:040x}")
    with wq.lab.transaction() as session:
        assert [row.message_id for row in session.scalars(select(SeenMail))] == ["less-v1-0@x"], "replies are not kept"
    wq.arrive(*mails()[1:])
    assert wq.decisions() == [TAKEN]


def test_lost_worker_loses_nothing(wq: List) -> None:
    wq.watch()
    read_id, claim = wq.claim()
    wq.lab.expire(read_id)
    wq.lab.tick()
    row = wq.watched()
    assert row.failure is not None and "stopped responding" in row.failure.summary and row.failures == 1
    late = ListReadResult(outcome=Outcome.PASSED, found=ListMails(position=None, mails=mails()))
    wq.finish(read_id, claim.fence, late, expect=409)
    wq.arrive(*mails())
    assert wq.decisions() == [TAKEN] and wq.watched().failure is None


def test_archive_that_does_not_answer_is_shown_and_asked_later(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails()[:1])
    read_id, claim = wq.claim()
    failure = failed(ErrorKind.INFRASTRUCTURE, "cannot fetch https://lore.example.org/wq/0")
    wq.finish(read_id, claim.fence, ListReadResult(outcome=Outcome.FAILED, failure=failure))
    wq.lab.tick()
    assert wq.unfinished() is None, "it is not asked again at once"
    view = get(wq, "watches/wq")["mailing_list"]
    assert view["failure"]["summary"] == "cannot fetch https://lore.example.org/wq/0"
    assert view["failing_since"] and view["read_at"] and view["undecided"] == 1
    assert wq.watched().commit == f"{1:040x}"


def get(wq: List, path: str) -> Any:
    headers = {"Authorization": f"Bearer {wq.lab.token}"}
    return wq.lab.client.get(f"/api/v1/{path}", headers=headers).raise_for_status().json()


def test_incomplete_series_waits_a_day_for_its_patches(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails()[:2])
    assert wq.decisions() == []
    wq.lab.sql("UPDATE list_mails SET seen_at = now() - interval '25 hours'")
    wq.lab.tick()
    assert wq.decisions() == [("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.INCOMPLETE)]
    assert wq.decision().detail == "after a day the list has no 2/2"
    wq.arrive(mails()[2])
    assert wq.submissions() == []


def test_series_waits_for_the_cover_letter_that_asks(wq: List) -> None:
    wq.watch()
    cover, *patches = mails()
    wq.arrive(*patches)
    assert wq.decisions() == []
    wq.arrive(cover)
    assert wq.decisions() == [TAKEN]


def test_removed_series_is_not_taken(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails()[:2])
    wq.arrive(removed=["less-v1-1@x"])
    wq.arrive(mails()[2])
    assert wq.decisions() == [("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.REMOVED)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"asks": False}, DecisionReason.NOT_ASKED),
        ({"paths": ["fs/inode.c"]}, DecisionReason.PATHS),
    ],
)
def test_reason_is_kept(wq: List, changes: dict[str, Any], reason: DecisionReason) -> None:
    wq.watch()
    wq.arrive(*mails(**changes))
    assert wq.decisions() == [("wq", 1, DecisionState.NOT_TAKEN, reason)] and wq.submissions() == []
    (shown,) = get(wq, "watches/wq/decisions")["items"]
    assert shown["detail"] and shown["url"] == "https://lore.example.org/all/less-v1-0@x/"


def test_series_is_not_taken_for_a_device_type_that_the_lab_has_no_more(wq: List) -> None:
    wq.watch()
    with wq.lab.transaction() as session:
        row = session.scalars(select(Watch)).one()
        row.spec = row.spec.model_copy(update={"targets": ["locks@nothing"]})
    wq.arrive(*mails())
    assert wq.decisions() == [("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.INVALID)] and wq.submissions() == []


def test_budget_of_a_day_makes_series_wait(wq: List) -> None:
    wq.watch(minutes_a_day=100)
    wq.arrive(*mails("one"))
    with wq.lab.transaction() as session:
        assert 0 < minutes_used(session, "wq") <= 100
    wq.lab.sql("UPDATE orders SET quoted_s = 98 * 60")
    wq.arrive(*mails("two"))
    row = wq.decision()
    assert (row.state, row.reason) == (DecisionState.WAITING, DecisionReason.OVER_BUDGET)
    assert "98 of 100 a day are used" in row.detail
    wq.lab.sql("UPDATE orders SET submitted_at = submitted_at - interval '25 hours', due_at = now()")
    wq.lab.tick()
    assert [state for _, _, state, _ in wq.decisions()] == [DecisionState.TAKEN, DecisionState.TAKEN]


def test_series_larger_than_the_budget_is_refused(wq: List) -> None:
    wq.watch(minutes_a_day=1)
    wq.arrive(*mails())
    row = wq.decision()
    assert (row.state, row.reason) == (DecisionState.NOT_TAKEN, DecisionReason.OVER_BUDGET)
    assert "raise minutes_a_day" in row.detail


def test_quiet_hours_make_series_wait_but_not_for_ever(wq: List) -> None:
    now = datetime.now(UTC)
    hours = [{"begins": f"{now - timedelta(hours=1):%H:%M}", "ends": f"{now + timedelta(hours=2):%H:%M}"}]
    wq.watch(quiet_hours=hours)
    wq.arrive(*mails())
    assert wq.decisions() == [("wq", 1, DecisionState.WAITING, DecisionReason.QUIET_HOURS)]
    wq.lab.sql("UPDATE orders SET created_at = now() - interval '4 days', due_at = now()")
    wq.lab.tick()
    assert wq.decisions() == [("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.QUIET_HOURS)]


def test_quota_of_the_owner_makes_series_wait(wq: List) -> None:
    with wq.lab.transaction() as session:
        add_user(session, "lists", UserRole.SUBMITTER)
    wq.watch(owner="lists")
    for number in range(wq.lab.settings.quota_waiting):
        wq.lab.submit("locks@single", owner="lists", priority=number)
    wq.arrive(*mails())
    row = wq.decision()
    assert (row.state, row.reason) == (DecisionState.WAITING, DecisionReason.QUOTA)
    assert "quota is used up" in row.detail


def test_later_revision_supersedes_an_earlier_one_that_has_not_begun(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails())
    wq.arrive(*mails(version=2))
    first, second = wq.submissions()
    assert first.cancel_requested_at is not None and second.cancel_requested_at is None
    with wq.lab.transaction() as session:
        row = session.scalars(select(WatchDecisionRow).where(WatchDecisionRow.revision == 1)).one()
        assert row.detail == "canceled before it was measured: v2 has arrived"


@pytest.mark.usefixtures("unchecked")
def test_no_revision_supersedes_another_if_nobody_checks_senders(wq: List) -> None:
    """Anybody could mail a v99 with the From of somebody else."""
    wq.watch()
    wq.arrive(*mails())
    wq.arrive(*mails(version=99))
    wq.arrive(*mails(version=2))
    assert [each.cancel_requested_at for each in wq.submissions()] == [None, None, None]


def test_revision_that_is_being_measured_goes_on(wq: List) -> None:
    wq.watch()
    wq.arrive(*mails())
    wq.lab.sql("UPDATE jobs SET started_at = now() WHERE kind = 'run'")
    wq.arrive(*mails(version=2))
    assert [each.cancel_requested_at for each in wq.submissions()] == [None, None]


def test_revision_that_waits_is_superseded_and_a_late_one_not_taken(wq: List) -> None:
    now = datetime.now(UTC)
    hours = [{"begins": f"{now - timedelta(hours=1):%H:%M}", "ends": f"{now + timedelta(hours=2):%H:%M}"}]
    wq.watch(quiet_hours=hours)
    wq.arrive(*mails(version=2))
    wq.arrive(*mails(version=3))
    wq.arrive(*mails(version=1))
    assert wq.decisions() == [
        ("wq", 2, DecisionState.NOT_TAKEN, DecisionReason.SUPERSEDED),
        ("wq", 3, DecisionState.WAITING, DecisionReason.QUIET_HOURS),
        ("wq", 1, DecisionState.NOT_TAKEN, DecisionReason.SUPERSEDED),
    ]


def test_only_series_that_arrive_after_the_watch_was_enabled_are_taken(wq: List) -> None:
    wq.watch()
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    wq.arrive(*(mail.model_copy(update={"archived_at": long_ago}) for mail in mails()))
    assert wq.decisions() == [] and wq.submissions() == []
    with wq.lab.transaction() as session:
        assert [row.settled for row in session.scalars(select(SeenMail))] == [True] * len(mails())


def test_list_without_enabled_watch_is_not_read(wq: List) -> None:
    wq.watch()
    wq.arrive()
    wq.lab.post("watches/wq/disable")
    wq.lab.tick()
    with wq.lab.transaction() as session:
        assert session.scalars(select(WatchedList)).all() == []
    assert wq.unfinished() is None


def test_series_that_waits_is_not_taken_once_its_watch_is_disabled_or_removed(wq: List) -> None:
    hours = [{"begins": "00:00", "ends": "12:00"}, {"begins": "12:00", "ends": "00:00"}]
    for name, end in (("one", wq.disable), ("two", wq.remove)):
        wq.watch(name, quiet_hours=hours)
        wq.arrive(*mails(name))
        assert wq.decision().state is DecisionState.WAITING
        end(name)
        wq.lab.sql("UPDATE orders SET due_at = now()")
        wq.lab.tick()
        assert wq.decision().reason is DecisionReason.DISABLED


def test_watch_of_the_data_folder_is_read_and_removed_with_its_file(wq: List, data_dir: Path) -> None:
    file = data_dir / "intake/watches/flushes.yaml"
    file.parent.mkdir()
    file.write_text(
        "kind: list\nname: flushes\narchive: lore\ntargets: [locks@single]\ntree: lab-tree\nowner: dev\nenabled: true\n"
    )
    live = wq.lab.app.state.data
    live._checked_at = float("-inf")
    wq.lab.tick()
    wq.arrive(*mails())
    assert wq.decisions() == [("flushes", 1, DecisionState.TAKEN, None)]
    (view,) = get(wq, "watches")
    assert view["from_file"] and view["changed_by"] == "operator" and view["problems"] == []
    file.unlink()
    live._checked_at = float("-inf")
    wq.lab.tick()
    assert get(wq, "watches") == [] and wq.unfinished() is None
    assert len(get(wq, "watches/flushes/decisions")["items"]) == 1

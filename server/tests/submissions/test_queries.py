"""Lists of submissions: rows, filters, orders and pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary
from wqlab_contracts.enums import Arm, JobState, Outcome, SubmissionState, Verdict
from wqlab_server.models import Run, Submission
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_server.submissions import queries, service

from ..support.scene import MBOX, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def listed(client: httpx.Client, **query: Any) -> Page[SubmissionSummary]:
    answer = client.get(URL, params=query)
    assert answer.status_code == 200, answer.text
    return Page[SubmissionSummary].model_validate_json(answer.content)


def ids(client: httpx.Client, **query: Any) -> list[int]:
    """Return the ids on all pages of two rows each."""
    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = listed(client, limit=2, **query, **cursor)
        found += [row.id for row in page.items]
        assert len(found) <= page.total
        if page.next is None:
            assert len(found) == page.total
            return found
        cursor = {"cursor": page.next}


def mailed(subject: str, author: str = "Ada <ada@example.org>") -> dict[str, Any]:
    text = MBOX.replace("Subject: [PATCH] wq: faster", f"From: {author}\nSubject: {subject}")
    return REQUEST | {"series": {"mbox": {"text": text}}}


def test_row_shows_owner_author_targets_and_progress(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    scene.devices()
    number = scene.submission("bob", mailed("[PATCH v3 1/1] wq: faster"))
    scene.builds(number)
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    with transaction(sessions) as session:
        run = session.get_one(Run, run_id)
        run.verdict, run.headline = Verdict.IMPROVEMENT, "locks fall"
    (row,) = listed(client).items
    assert (row.owner, row.author, row.version, row.tree) == ("bob", "Ada <ada@example.org>", 3, "t")
    (target,) = row.targets
    assert (target.run_id, target.plan, target.device_type, target.emulated) == (run_id, "flush", "tiny", True)
    assert (target.device, target.state, target.outcome) == ("tiny-1", JobState.FINISHED, Outcome.PASSED)
    assert (target.verdict, target.headline) == (Verdict.IMPROVEMENT, "locks fall")
    assert (row.done_boots, row.total_boots) == (target.done_boots, target.total_boots) == (4, 4)
    whole = client.get(f"{URL}/{number}").json()
    assert whole["targets"] == [target.model_dump(mode="json")], "the submission's own page shows the same"


def test_settings_study_has_no_author(client: httpx.Client, scene: Scene) -> None:
    scene.submission("bob", REQUEST | {"series": None})
    (row,) = listed(client).items
    assert (row.author, row.version) == ("", None)


@pytest.fixture
def crowd(scene: Scene, sessions: SessionFactory) -> dict[str, int]:
    """Four submissions that differ in every column."""
    scene.devices()
    made = {
        "faster": scene.submission("alice", mailed("[PATCH] wq: faster")),
        "slower": scene.submission("bob", mailed("[PATCH] mm: 100%_slow\\er", "Bo <bo@example.org>")),
        "study": scene.submission("carol", REQUEST | {"series": None}),
        "branch": scene.submission(
            "dora", REQUEST | {"series": {"git": {"url": "https://example.org/x.git", "ref": "wq/faster"}}}
        ),
    }
    with transaction(sessions) as session:
        now = clock(session)
        for age, (name, number) in enumerate(reversed(made.items())):
            row = session.get_one(Submission, number)
            row.created_at = now - timedelta(days=age)
            row.priority = len(name)
        done = session.get_one(Submission, made["faster"])
        done.state, done.outcome, done.exit_code, done.finished_at = SubmissionState.FINISHED, Outcome.PASSED, 1, now
        done.facets = service.facets(done.request, [Verdict.REGRESSION, Verdict.IMPROVEMENT])
        lost = session.get_one(Submission, made["slower"])
        lost.state, lost.outcome, lost.exit_code = SubmissionState.FINISHED, Outcome.FAILED, 4
        lost.finished_at = now - timedelta(hours=1)
        lost.tree = "u"
    return made


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["branch", "study", "slower", "faster"]),
        ({"sort": "oldest"}, ["faster", "slower", "study", "branch"]),
        ({"sort": "ended"}, ["branch", "study", "faster", "slower"]),
        ({"sort": "title"}, ["slower", "faster", "study", "branch"]),
        ({"sort": "owner"}, ["faster", "slower", "study", "branch"]),
        ({"sort": "tree"}, ["faster", "study", "branch", "slower"]),
        ({"sort": "priority"}, ["branch", "slower", "faster", "study"]),
        ({"verdict": "regression"}, ["faster"]),
        ({"verdict": "failed"}, []),
        ({"plan": "flush"}, ["branch", "study", "slower", "faster"]),
        ({"plan": "flush", "device_type": "tiny"}, ["branch", "study", "slower", "faster"]),
        ({"plan": "tiny"}, []),
        ({"device_type": "flush"}, []),
        ({"plan": "flush", "verdict": "improvement"}, ["faster"]),
        ({"tree": "u"}, ["slower"]),
        ({"owner": "carol"}, ["study"]),
        ({"author": "ADA"}, ["faster"]),
        ({"author": "@example.org"}, ["slower", "faster"]),
        ({"author": "alice"}, []),
        ({"active": "true"}, ["branch", "study"]),
        ({"active": "false"}, ["slower", "faster"]),
        ({"state": "finished", "outcome": "failed"}, ["slower"]),
        ({"q": "FASTER"}, ["branch", "faster"]),
        ({"q": "100%_slow\\er"}, ["slower"]),
        ({"q": "_"}, ["slower"]),
        ({"q": "%%"}, []),
        ({"q": "dora"}, ["branch"]),
        ({"q": "bo@example"}, ["slower"]),
        ({"q": "faster", "sort": "oldest", "active": "false"}, ["faster"]),
    ],
)
def test_list_is_filtered_and_sorted(
    client: httpx.Client, crowd: dict[str, int], query: dict[str, str], names: list[str]
) -> None:
    by_id = {number: name for name, number in crowd.items()}
    assert [by_id[number] for number in ids(client, **query)] == names


def test_list_is_filtered_by_date(client: httpx.Client, crowd: dict[str, int], sessions: SessionFactory) -> None:
    with sessions() as session:
        at = {row.id: row.created_at for row in session.scalars(select(Submission))}
    since = at[crowd["slower"]].isoformat()
    until = at[crowd["study"]].isoformat()
    assert ids(client, since=since, until=until) == [crowd["slower"]]
    assert ids(client, since=until) == [crowd["branch"], crowd["study"]]


def test_list_is_filtered_by_id(client: httpx.Client, crowd: dict[str, int]) -> None:
    assert crowd["study"] in ids(client, q=str(crowd["study"]))


def test_rows_with_equal_sort_keys_are_all_listed(client: httpx.Client, scene: Scene) -> None:
    numbers = [scene.submission() for _ in range(5)]
    for sort in ("title", "owner", "tree"):
        assert ids(client, sort=sort) == numbers
    for sort in ("priority", "ended", "newest"):
        assert ids(client, sort=sort) == numbers[::-1]


def test_new_rows_do_not_shift_pages(client: httpx.Client, scene: Scene) -> None:
    old = [scene.submission() for _ in range(3)]
    first = listed(client, limit=2)
    scene.submission()
    second = listed(client, limit=2, cursor=first.next)
    assert [row.id for row in (*first.items, *second.items)] == old[::-1]


def test_page_needs_a_constant_number_of_queries(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    from sqlalchemy import event

    scene.devices()
    scene.many(30)
    counts = []
    for limit in (1, 30):
        statements: list[str] = []

        def note(_: Any, __: Any, statement: str, *___: Any, into: list[str] = statements) -> None:
            into.append(statement)

        engine = sessions.kw["bind"]
        event.listen(engine, "before_cursor_execute", note)
        listed(client, limit=limit)
        event.remove(engine, "before_cursor_execute", note)
        counts.append(len([statement for statement in statements if statement.startswith("SELECT")]))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    "query", [{"sort": "best"}, {"verdict": "good"}, {"active": "perhaps"}, {"q": "a\0b"}, {"cursor": "x"}]
)
def test_invalid_filters_are_named(client: httpx.Client, query: dict[str, str]) -> None:
    answer = client.get(URL, params=query)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] in query


def test_total_is_limited(client: httpx.Client, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_COUNT", 3)
    for number in range(1, 6):
        scene.submission()
        page = listed(client, limit=1)
        assert (page.total, page.at_least) == (min(number, 3), number > 3)
    assert len(page.items) == 1


def test_list_shows_a_series_once(client: httpx.Client, scene: Scene) -> None:
    first, last = (scene.submission("bob", mailed(f"[PATCH v{n}] wq: faster")) for n in (1, 2))
    other = scene.submission("bob", mailed("[PATCH] wq: slower"))
    studies = [scene.submission("bob", REQUEST | {"series": None}) for _ in range(2)]
    scene.finish(first)
    assert ids(client, one_per_series=True) == [*reversed(studies), other, last]
    assert ids(client, one_per_series=True, active=False) == [first]

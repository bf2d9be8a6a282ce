"""A watched mailing list for tests: a scripted worker sends its mails to the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.jobs import Claim, FinishJob
from wqlab_contracts.messages.list_mails import ListMail, ListMails, ListPosition
from wqlab_contracts.messages.list_reads import ListReadResult
from wqlab_server.models import ListRead, Submission, WatchDecisionRow, WatchedList

from .lab import LabUnderTest

EPOCHS = "    list: wq@lists.example.org\n    epochs: https://lore.example.org/wq/{epoch}\n"
"""Keys by which the lab reads an archive as a list; they follow `ARCHIVES`."""
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SOON = datetime.now(UTC) + timedelta(days=1)
"""Arrival of a mail; later than any watch was enabled."""


def patch(message_id: str, number: int | None = None, total: int | None = None, **changes: Any) -> ListMail:
    """Return a mail of a series; without a number, a single patch. Number 0 is the cover letter."""
    counter = f" {number}/{total}" if number is not None else ""
    fields: dict[str, Any] = {
        "message_id": message_id,
        "subject": f"[PATCH{counter}] workqueue: lock less",
        "author": "Ada <ada@example.org>",
        "archived_at": NOON,
        "has_patch": number != 0,
        "number": number,
        "total": total,
        "paths": [] if number == 0 else ["kernel/workqueue.c"],
    }
    return ListMail(**{**fields, **changes})


def mails(name: str = "less", version: int = 1, **changes: Any) -> list[ListMail]:
    """Return a cover letter, which asks unless `asks` is False, and two patches."""
    asks = changes.pop("asks", True)
    subject = changes.pop("subject", f"workqueue: {name}")
    mark = f"v{version} " if version > 1 else ""

    def one(number: int, **more: Any) -> ListMail:
        return patch(
            f"{name}-v{version}-{number}@x",
            number,
            2,
            subject=f"[PATCH {mark}{number}/2] {subject}",
            version=version,
            archived_at=SOON,
            **{**changes, **more},
        )

    cover = f"{name}-v{version}-0@x"
    return [one(0, asks=asks), one(1, in_reply_to=cover), one(2, in_reply_to=cover)]


class List:
    """A list that the scripted worker reads: `commit` counts the reads."""

    def __init__(self, lab: LabUnderTest) -> None:
        self.lab = lab
        self.commits = 0

    def watch(self, name: str = "wq", **changes: Any) -> None:
        fields: dict[str, Any] = {
            "kind": "list",
            "name": name,
            "archive": "lore",
            "tree": "lab-tree",
            "owner": "dev",
            "paths": ["kernel/workqueue.c"],
            "targets": ["locks@single"],
        }
        self.lab.post("watches", {**fields, **changes})
        self.lab.post(f"watches/{name}/enable")
        self.lab.tick()

    def disable(self, name: str) -> None:
        self.lab.post(f"watches/{name}/disable")

    def remove(self, name: str) -> None:
        headers = {"Authorization": f"Bearer {self.lab.token}"}
        self.lab.client.delete(f"/api/v1/watches/{name}", headers=headers).raise_for_status()

    def unfinished(self) -> ListRead | None:
        with self.lab.transaction() as session:
            return session.scalar(select(ListRead).where(ListRead.state != JobState.FINISHED))

    def claim(self) -> tuple[int, Claim]:
        self.lab.sql("UPDATE watched_lists SET next_read_at = now()")
        self.lab.tick()
        read = self.unfinished()
        assert read is not None, "no read is ordered"
        claim = self.lab.worker.claim(read.id)
        assert claim is not None
        return read.id, Claim.model_validate(claim)

    def arrive(self, *found: ListMail, removed: list[str] | None = None, more: bool = False) -> None:
        """Let the worker read mails of the list, and let the server decide on them."""
        read_id, claim = self.claim()
        self.commits += 1
        position = ListPosition(epoch=0, commit=f"{self.commits:040x}")
        result = ListReadResult(
            outcome=Outcome.PASSED,
            found=ListMails(position=position, mails=list(found), removed=removed or [], is_complete=not more),
        )
        self.finish(read_id, claim.fence, result)
        self.lab.tick()

    def finish(self, read_id: int, fence: int, result: ListReadResult, expect: int = 204) -> None:
        body = FinishJob(fence=fence, result=result).model_dump(mode="json")
        self.lab.worker.post(f"jobs/{read_id}/finish", body, expect)

    def decisions(self) -> list[tuple[str, int, str, str | None]]:
        """Return watch, revision of the series, state and reason of each decision, the first decision first."""
        with self.lab.transaction() as session:
            rows = session.scalars(select(WatchDecisionRow).order_by(WatchDecisionRow.id))
            return [(row.watch, row.revision, row.state, row.reason) for row in rows]

    def decision(self) -> WatchDecisionRow:
        with self.lab.transaction() as session:
            return session.scalars(select(WatchDecisionRow).order_by(WatchDecisionRow.id.desc())).all()[0]

    def submissions(self) -> list[Submission]:
        with self.lab.transaction() as session:
            return list(session.scalars(select(Submission).order_by(Submission.id)))

    def watched(self) -> WatchedList:
        with self.lab.transaction() as session:
            return session.scalars(select(WatchedList)).one()

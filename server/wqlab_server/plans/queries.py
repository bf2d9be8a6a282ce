"""Queries for the current commits of the kernel trees."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import Failure

from ..models import Apply


@dataclass(frozen=True)
class Head:
    """The commit that a tree's branch last resolved to."""

    commit: str | None
    release: str | None
    resolved_at: datetime | None
    failure: Failure | None
    """Failure of a later attempt to resolve the branch; None if there was none."""


def heads(session: Session) -> dict[str, Head]:
    """Return the head of each tree by the tree's name.

    Only apply jobs without a series are used, because a series can have a base commit of its own.
    """
    tree = type_coerce(Apply.payload, JSONB)["tree"]["name"].astext
    result = type_coerce(Apply.result, JSONB)
    resolved = {
        name: (id_, commit, release, at)
        for name, id_, commit, release, at in session.execute(
            select(
                tree, Apply.id, result["baseline"]["base_commit"].astext, result["baseline"]["release"].astext,
                Apply.finished_at,
            )
            .where(Apply.outcome == Outcome.PASSED, result["candidate"].astext.is_(None))
            .ext(distinct_on(tree))
            .order_by(tree, Apply.id.desc())
        )
    }  # fmt: skip
    failed = {
        name: (id_, failure)
        for name, id_, failure in session.execute(
            select(tree, Apply.id, Apply.failure)
            .where(Apply.outcome == Outcome.FAILED, Apply.submission_id.is_(None))
            .ext(distinct_on(tree))
            .order_by(tree, Apply.id.desc())
        )
    }
    found = {}
    for name in resolved.keys() | failed.keys():
        passed_id, commit, release, at = resolved.get(name, (0, None, None, None))
        failed_id, failure = failed.get(name, (0, None))
        found[name] = Head(commit, release, at, failure if failed_id > passed_id else None)
    return found

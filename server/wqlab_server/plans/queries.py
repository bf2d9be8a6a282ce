"""Where the kernel trees are."""

from __future__ import annotations

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Outcome

from ..models import Apply


def heads(session: Session) -> dict[str, str]:
    """Tree -> commit its branch was at when it was last resolved.

    Only a resolution without a series tells: a series can stand on a base of its own.
    """
    tree = type_coerce(Apply.tree, JSONB)["name"].astext
    result = type_coerce(Apply.result, JSONB)
    rows = session.execute(
        select(tree, result["baseline"]["base_commit"].astext)
        .where(Apply.outcome == Outcome.PASSED, result["candidate"].astext.is_(None))
        .ext(distinct_on(tree))
        .order_by(tree, Apply.id.desc())
    )
    return {name: commit for name, commit in rows if commit is not None}

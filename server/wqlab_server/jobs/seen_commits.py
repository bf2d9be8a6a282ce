"""Find the commits that the lab has seen as heads of a repository, which it may therefore fetch by their id."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import false, or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.specs import Tree

from ..models import Watch, WatchedHead


def seen_commits(session: Session, tree: Tree, commits: Collection[str]) -> list[str]:
    """Return those of `commits` that were heads of a watched tree in the repository of `tree`.

    By its id, a server also sends a commit that only a fork has. So a head of another repository does not count, even
    if it was watched as commits of a tree of this name.
    """
    spec = type_coerce(Watch.spec, JSONB)
    url = spec["url"].astext
    found = session.scalars(
        select(WatchedHead.commit)
        .where(WatchedHead.commit.in_(commits))
        .join(Watch, Watch.name == WatchedHead.watch)
        .where(
            spec["tree"].astext == tree.name,
            or_(url == tree.url, url.is_(None) if tree.origin == "operator" else false()),
        )
    )
    return sorted(set(found))

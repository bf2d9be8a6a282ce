"""Rows of watches for tests of what uses them."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_server.models import Watch
from wqlab_server.storage.db import clock


def add_watch(session: Session, spec: ListWatch | TreeWatch, **columns: Any) -> Watch:
    """Add a watch that its owner has made and enabled."""
    defaults = {"from_file": False, "enabled_at": clock(session), "created_by": spec.owner, "changed_by": spec.owner}
    row = Watch(name=spec.name, spec=spec, **(defaults | columns))
    session.add(row)
    session.flush()
    return row


def add_tree_watch(session: Session, name: str = "next", *, owner: str, tree: str, target: str) -> Watch:
    """Add the watch of the branch for-next of a tree."""
    spec = TreeWatch(kind="tree", name=name, tree=tree, branches=["for-next"], targets=[target], owner=owner)
    return add_watch(session, spec)

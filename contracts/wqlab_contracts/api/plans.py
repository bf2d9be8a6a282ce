"""REST resources of test plans and trees."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..messages import Failure, Message
from ..specs import TestPlan, Tree


class Names(Message):
    """Names that filters and forms offer."""

    plans: dict[str, list[str]]
    """Metrics by plan."""
    device_types: list[str]
    trees: list[str]


class PlanView(Message):
    """A test plan; with its files if the request asks for them."""

    plan: TestPlan
    script: str = ""
    """Text of the script that runs on the device."""
    files: dict[str, str] = Field(default_factory=dict)
    """Other files sent to the device: name -> text."""
    readme: str = ""
    """README.md of the plan; empty if it has none."""


class TreeView(Message):
    """A tree with its resolved base commit."""

    tree: Tree
    base_commit: str | None
    """Commit of the tree's branch when last resolved."""
    release: str | None = None
    """Kernel release of that commit."""
    resolved_at: datetime | None = None
    failure: Failure | None = None
    """Failure of a later attempt to resolve the branch."""
    default: bool = False
    """True for the tree used when a request names none."""

"""Read the plan.yaml of a test plan."""

from __future__ import annotations

from pathlib import Path

from .yamlfile import Document

PLAN_FILE = "plan.yaml"


def read_plan(path: Path, file: str) -> Document:
    """Read `testplans/<plan>/plan.yaml`, as `Document.read` does.

    An entry of `references` may have a list `figures`, whose items share its other fields. A plan with `files_of` uses
    the script of another plan. If one of its metrics leaves out a field, the metric of the same name in the other plan
    gives it.
    """
    document = Document.read(path, file).spread("references", "figures")
    content = {} if document.problems else document.plain()
    lender = content.get("files_of") if isinstance(content, dict) else None
    lent = path.parents[1] / str(lender) / PLAN_FILE
    if not isinstance(lender, str) or "/" in lender or not lent.is_file():
        return document
    return document.over_named("metrics", Document.read(lent, f"testplans/{lender}/{PLAN_FILE}"))

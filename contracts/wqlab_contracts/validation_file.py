"""Read `testplans/validation.yaml`: the plans that cost profiles of modelled devices are validated for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .specs import Strict, TestPlan, Validation
from .yamlfile import Document, Problem, suggest_name

FILE = "testplans/validation.yaml"


class _Validations(Strict):
    validations: list[Validation]


def read_validations(
    root: Path, plans: Mapping[str, TestPlan] | None = None
) -> tuple[tuple[Validation, ...], list[Problem]]:
    """Return the rows of the data folder's file, and its problems. Plans and metrics are checked if plans are given."""
    path = root / FILE
    if not path.exists():
        return (), []
    document = Document.read(path, FILE)
    value = document.validate_as(_Validations)
    problems = list(document.problems)
    rows = value.validations if value is not None else []
    seen: set[tuple[str, str, str]] = set()
    for index, row in enumerate(rows):
        keys = {(row.sha256, row.plan, metric) for metric in row.metrics or [""]}
        if again := seen & keys:
            what = next(iter(again))[2] or "the whole plan"
            message = f"{row.plan}: {what} is listed twice with one hash"
            problems.append(document.problem(("validations", index, "plan"), message))
        seen |= keys
        if plans is None:
            continue
        if row.plan not in plans:
            message = f"no plan {row.plan!r}; {suggest_name(row.plan, set(plans))}"
            problems.append(document.problem(("validations", index, "plan"), message))
            continue
        known = {metric.name for metric in plans[row.plan].metrics}
        for number, metric in enumerate(row.metrics or []):
            if metric not in known:
                message = f"plan {row.plan} has no metric {metric!r}; {suggest_name(metric, known)}"
                problems.append(document.problem(("validations", index, "metrics", number), message))
    return (() if problems else tuple(rows)), problems

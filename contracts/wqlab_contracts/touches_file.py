"""Read `testplans/touches.yaml`: the plans that are proposed for the files and symbols that a series changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from .specs import Strict, TestPlan
from .specs.touches import DeviceKind, Touch
from .yamlfile import Document, Location, Problem

FILE = "testplans/touches.yaml"


class _Touches(Strict):
    touches: list[Touch]


class Known(Protocol):
    """The table, and what it refers to."""

    @property
    def touches(self) -> Sequence[Touch]: ...
    @property
    def plans(self) -> Mapping[str, TestPlan]: ...
    def marks_window(self, plan: str) -> bool: ...


def read_touches(root: Path) -> tuple[Document | None, tuple[Touch, ...]]:
    """Return the file's document, with its problems, and its rows; None and no rows if there is no file."""
    path = root / FILE
    if not path.exists():
        return None, ()
    document = Document.read(path, FILE)
    value = document.validate_as(_Touches)
    return document, () if value is None else tuple(value.touches)


def reference_problems(document: Document, known: Known) -> list[Problem]:
    """Return where the table contradicts the plans of the lab, and the fix. A plan that the lab lacks is no problem."""
    found: list[tuple[Location, str]] = []
    first: dict[str, int] = {}
    for index, row in enumerate(known.touches):
        if first.setdefault(row.name, index) != index:
            found.append((("touches", index, "name"), f"{row.name} is defined twice"))
        for number, proposed in enumerate(row.plans):
            where = ("touches", index, "plans", number)
            plan = known.plans.get(proposed.plan)
            if plan is None:
                continue
            if plan.checks_health:
                found.append(((*where, "plan"), f"plan {plan.name} is a health check, which compares no kernels"))
            elif DeviceKind.INSTRUMENTED in proposed.devices and not known.marks_window(plan.name):
                detail = f"plan {plan.name} marks no window in which an instrumented device counts"
                found.append(((*where, "devices"), detail))
            for position, setting in enumerate(proposed.settings or []):
                try:
                    plan.check_setting(setting)
                except ValueError as error:
                    found.append(((*where, "settings", position), str(error)))
    return [document.problem(location, message) for location, message in found]


def notes(known: Known) -> list[str]:
    """Return which plans of the table are not proposed because the lab does not have them."""
    missing: dict[str, dict[str, None]] = {}
    for row in known.touches:
        for proposed in row.plans:
            if proposed.plan not in known.plans:
                missing.setdefault(proposed.plan, {})[row.name] = None
    return [f"{FILE}: no plan {plan!r}: rows {', '.join(rows)} do not propose it" for plan, rows in missing.items()]

"""What the validation of modelled devices covers: plans that a cost profile was compared for with publications."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Name, Strict

FACT = "cost profile"
"""Fact of a modelled boot: name and hash of the costs by which its virtual time passed, `NAME sha256:HASH`."""
_FACT = re.compile(r"(?P<name>\S+) sha256:(?P<sha256>[0-9a-f]{64})")


class CostProfileId(NamedTuple):
    """A cost profile as a boot reports it."""

    name: str
    sha256: str

    @classmethod
    def parse(cls, fact: str) -> CostProfileId | None:
        """Read the fact of a boot; None if it is none."""
        found = _FACT.fullmatch(fact)
        return None if found is None else cls(found["name"], found["sha256"])


class Cells(Strict):
    """Published cells with which a model was compared."""

    right: int = Field(ge=0)
    """Cells whose sign the model has."""
    of: int = Field(ge=1)

    @model_validator(mode="after")
    def _check_right(self) -> Self:
        if self.right > self.of:
            raise ValueError(f"{self.right} of {self.of} cells cannot be right")
        return self


class Validation(Strict):
    """Result of comparing a plan on a cost profile with published figures."""

    profile: Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """Hash of the profile that was compared. Another hash is another profile, which nobody has validated."""
    plan: Name
    metrics: list[Name] | None = Field(default=None, min_length=1)
    """Metrics that were compared; None: all of the plan."""
    validated: bool
    """False: modelled verdicts of these metrics are withheld."""
    cells: Cells
    reason: str = Field(min_length=10, max_length=300)
    """What was compared with which publication, or what came out wrong: the end of `not validated: ...`."""


def why_withheld(validations: Iterable[Validation], facts: Iterable[str], plan: str, metric: str) -> str:
    """Return why modelled verdicts of a metric are withheld; empty if they are stated.

    `facts`: what the boots report as their cost profile. Whatever is not listed as validated is withheld. Of several
    rows, one that names the metric precedes one of the whole plan.
    """
    named = {CostProfileId.parse(fact) for fact in facts}
    if len(named) > 1:
        return f"not validated: the boots had {len(named)} cost profiles"
    if not named or (profile := named.pop()) is None:
        return "not validated: no boot reported its cost profile"
    rows = [
        each
        for each in validations
        if (each.sha256, each.plan) == (profile.sha256, plan) and metric in (each.metrics or [metric])
    ]
    row = min(rows, key=lambda each: each.metrics is None, default=None)
    if row is None:
        what = f"{plan} {metric} on the costs {profile.name} sha256:{profile.sha256[:12]}"
        return f"not validated: {what} was compared with no published figure"
    return "" if row.validated else f"not validated: {row.cells.right} of {row.cells.of} cells right; {row.reason}"

"""Failures carried by exceptions."""

from __future__ import annotations

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import EXCERPT_LIMIT
from wqlab_worker.failures import InfrastructureError, JobError, UserError


def test_each_exception_has_its_kind() -> None:
    kinds = {error: error("x").failure.kind for error in (JobError, InfrastructureError, UserError)}
    assert kinds == {
        JobError: ErrorKind.INFRASTRUCTURE,
        InfrastructureError: ErrorKind.INFRASTRUCTURE,
        UserError: ErrorKind.USER,
    }


def test_long_excerpt_keeps_beginning_and_end() -> None:
    text = "start" + "x" * EXCERPT_LIMIT + "end"
    excerpt = UserError("summary", excerpt=text).failure.excerpt
    assert len(excerpt) <= EXCERPT_LIMIT
    assert excerpt.startswith("startx") and excerpt.endswith("xend")
    assert "characters left out" in excerpt

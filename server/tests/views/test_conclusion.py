"""Conclusion of a run without comparisons."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from wqlab_comparison.target import Accusation, Conclusion
from wqlab_contracts.enums import PAIR, Arm, ErrorKind, Outcome, Verdict
from wqlab_contracts.messages import Failure
from wqlab_server.views.build import RunRows
from wqlab_server.views.conclusion import conclusion_of, kernel_failure


def rows(*, compared: bool = True, figures: bool = True, failure: Failure | None = None) -> RunRows:
    run: Any = SimpleNamespace(
        blocks=[[Arm.BASELINE, Arm.CANDIDATE]],
        failure=failure,
        plan=None,
        byte_identical=False,
        device_type="device",
        device_spec=SimpleNamespace(emulated=True, emulation=None),
        profile=SimpleNamespace(settings=[""], spreads={}),
        looks=[],
        walk=[],
        compared_at=datetime(2026, 1, 1, tzinfo=UTC) if compared else None,
        recipe=SimpleNamespace(name="debug", figures=figures),
    )
    boots: Any = [
        SimpleNamespace(id=number, arm=arm, valid=True, outcome=Outcome.PASSED) for number, arm in enumerate(PAIR)
    ]
    return RunRows(run, boots)


def test_run_that_was_not_compared_is_inconclusive() -> None:
    found = conclusion_of(rows(compared=False), [])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "not compared" in found.headline


def test_recipe_without_figures_gives_no_evidence() -> None:
    found = conclusion_of(rows(figures=False), [])
    assert found.verdict is Verdict.NO_EVIDENCE
    assert "no problem found in 1 boot of the baseline and 1 boot of the candidate" in found.headline


def test_kernel_failure_is_reported_once() -> None:
    passed = Conclusion(Verdict.IMPROVEMENT, "better")
    failed = Conclusion(Verdict.FAILED, "the candidate panics", [cast(Accusation, SimpleNamespace(excerpt="Oops"))])
    assert kernel_failure(rows(), passed) is None
    found = kernel_failure(rows(), failed)
    assert found is not None
    assert (found.kind, found.summary, found.excerpt) == (ErrorKind.KERNEL, "the candidate panics", "Oops")
    own = Failure(kind=ErrorKind.KERNEL, summary="panic")
    assert kernel_failure(rows(failure=own), failed) is None
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="power lost")
    assert kernel_failure(rows(failure=lost), failed) is not None
    assert kernel_failure(rows(failure=lost), Conclusion(Verdict.FAILED, "power lost")) is None

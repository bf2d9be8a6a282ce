"""Results of jobs in KernelCI's words."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import ErrorKind, Verdict
from wqlab_contracts.messages import Failure
from wqlab_server.intake.kernelci.results import NodeResult, measured


@pytest.mark.parametrize(
    ("kind", "applied", "expected"),
    [
        (ErrorKind.KERNEL, True, NodeResult("fail", None, "why")),
        (ErrorKind.USER, True, NodeResult("fail", None, "why")),
        (ErrorKind.USER, False, NodeResult("incomplete", "invalid_job_params", "why")),
        (ErrorKind.INFRASTRUCTURE, True, NodeResult("incomplete", "Infrastructure", "why")),
        (ErrorKind.INFRASTRUCTURE, False, NodeResult("incomplete", "Infrastructure", "why")),
        (ErrorKind.CANCELED, True, NodeResult("incomplete", "Canceled", "why")),
    ],
)
def test_a_failure_is_fail_only_if_the_code_is_at_fault(kind, applied, expected):
    assert measured(Failure(kind=kind, summary="why"), {Verdict.REGRESSION}, applied=applied) == expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({Verdict.IMPROVEMENT, Verdict.REGRESSION}, NodeResult("fail", None, "regression")),
        ({Verdict.FAILED}, NodeResult("fail", None, "the kernel failed")),
        ({Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE}, NodeResult("pass")),
        ({Verdict.EQUIVALENT}, NodeResult("pass")),
        ({Verdict.BELOW_THRESHOLD}, NodeResult("pass")),
        (
            {Verdict.INCONCLUSIVE, Verdict.NO_EVIDENCE},
            NodeResult("skip", None, "not decided: inconclusive, no evidence"),
        ),
        (set(), NodeResult("skip", None, "not decided: nothing was measured")),
    ],
)
def test_what_was_not_decided_is_not_called_passed(verdicts, expected):
    assert measured(None, verdicts, applied=True) == expected

"""Whether kernels survived, as CI and database are told it."""

from __future__ import annotations

import pytest
from all_examples import EXAMPLES
from failed_examples import FAILED
from report_examples import panic

from wqlab_contracts.enums import Arm, ErrorKind
from wqlab_report.content.survival import State, arm_under_test, of_arm, of_kernels
from wqlab_report.document.checks import SURVIVAL, Result, suites


@pytest.mark.parametrize("name", [*EXAMPLES, *FAILED])
def test_check_fails_if_a_kernel_of_the_target_failed(name):
    report = (EXAMPLES | FAILED)[name]()
    checks = [check.result for suite in suites(report) for check in suite.checks if check.name == SURVIVAL]
    kernels = dict.fromkeys((Arm.BASELINE, arm_under_test(report)))
    blamed = [
        any(
            (boots := of_arm(report, target, arm)).state is State.FAILED and boots.kind is ErrorKind.KERNEL
            for arm in kernels
        )
        for target in report.targets
    ]
    assert [result is Result.FAILURE for result in checks] == blamed


def test_finding_without_a_failed_run_fails_the_kernels():
    (one,) = panic().targets
    boots = of_kernels(one.model_copy(update={"failure": None}))
    assert (boots.state, boots.kind) == (State.FAILED, ErrorKind.KERNEL)
    assert "NULL pointer" in boots.excerpt

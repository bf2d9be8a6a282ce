"""The failure of a submission, stated once."""

from __future__ import annotations

import pytest
from failed_examples import FAILED, lab_failure, panics_at_boot
from report_examples import failed_attempt, finding, improvement, kernel_report, panic
from report_parts import NULL_POINTER, OOPS, STACK

from wqlab_contracts.enums import ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import Failure
from wqlab_report.content import failures

OTHER_STACK = [STACK[0].model_copy(update={"function": "drain_workqueue"}), *STACK[1:]]


def with_targets(report, **update):
    return report.model_copy(update={"targets": [one.model_copy(update=update) for one in report.targets]})


def test_report_without_a_failure_is_complete():
    report = improvement()
    assert failures.main_failure(report) is None
    assert failures.applies_method(report) and failures.applies_rebuilding(report)
    assert sum(len(group.places) for group in failures.other_attempts(report)) == len(report.attempts)


@pytest.mark.parametrize("make", [*FAILED.values(), panic])
def test_every_failure_has_place_and_advice(make):
    main = failures.main_failure(make())
    assert main.places
    assert main.advice


def test_oops_with_another_call_trace_is_another_failure():
    report = panic()
    other = kernel_report(FindingKind.OOPS, NULL_POINTER, "another trace", OTHER_STACK)
    found = finding(FindingKind.OOPS, NULL_POINTER, "another trace", 2, stack=OTHER_STACK)
    report = with_targets(report, findings=[*report.targets[0].findings, found])
    report = report.model_copy(update={"attempts": [*report.attempts, failed_attempt(other, 2)]})
    assert failures.main_failure(report).places == ["xfs-fsync on xeon-2s-1, candidate, block 1, attempts 1 and 2"]
    assert [group.failure for group in failures.other_attempts(report)] == [other]
    (group,) = failures.other_findings(report, report.targets[0])
    assert (group.place, group.finding) == ("candidate, block 1, attempt 3", found)


def test_attempt_of_the_run_is_not_listed_beside_its_boots():
    report = panic()
    whole = report.attempts[0].model_copy(update={"block": None, "arm": None, "attempt": 1})
    report = report.model_copy(update={"attempts": [*report.attempts, whole]})
    assert failures.main_failure(report).places == ["xfs-fsync on xeon-2s-1, candidate, block 1, attempts 1 and 2"]


def test_equal_findings_are_listed_once():
    report = improvement()
    warnings = [
        finding(FindingKind.WARNING, f"WARNING: CPU: {cpu} PID: 7 at kernel/workqueue.c:9 f+0x1/0x2", OOPS, attempt)
        for attempt, cpu in enumerate((3, 0, 7))
    ]
    warnings.append(warnings[0].model_copy(update={"block": 4}))
    report = with_targets(report, findings=warnings)
    (group,) = failures.other_findings(report, report.targets[0])
    assert group.place == "candidate, block 1, attempts 1 to 3; block 5, attempt 1"


def test_finding_of_a_passed_run_gives_the_place():
    """The kernel failed after its last script, so that no attempt failed."""
    report = panics_at_boot()
    main = report.submission.failure.model_copy(update={"summary": report.targets[0].headline})
    submission = report.submission.model_copy(update={"failure": main})
    report = with_targets(report.model_copy(update={"submission": submission, "attempts": []}), failure=None)
    assert failures.main_failure(report).places == ["xfs-fsync on xeon-2s-1, candidate, block 1, attempts 1 and 2"]


def test_target_with_its_own_failure_keeps_its_verdict():
    report = panic()
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no power")
    other = report.targets[0].model_copy(
        update={"run_id": 14, "failure": lost, "findings": [], "environment": None, "headline": "not measured"}
    )
    idle = other.model_copy(update={"run_id": 15, "failure": None, "outcome": Outcome.CANCELED})
    report = report.model_copy(update={"targets": [*report.targets, other, idle]})
    assert [target.run_id for target in failures.others(report)] == [14], "nothing to say about a run that never began"


def test_failures_of_two_devices_are_both_listed():
    report = lab_failure()
    assert failures.main_failure(report).places == ["xfs-fsync on xeon-2s-2, candidate, block 1, attempt 2"]
    (group,) = failures.other_attempts(report)
    assert group.places == ["xfs-fsync on xeon-2s-1, baseline, block 1, attempt 1"]
    assert not failures.applies_rebuilding(report)


def test_failures_without_description_are_compared_by_text():
    main = Failure(kind=ErrorKind.KERNEL, summary="xfs-fsync: oops: NULL", excerpt="BUG: NULL\nRIP: f")
    assert failures.is_same(Failure(kind=ErrorKind.KERNEL, summary="oops: NULL"), main)
    assert failures.is_same(Failure(kind=ErrorKind.KERNEL, summary="other", excerpt="RIP: f"), main)
    assert not failures.is_same(Failure(kind=ErrorKind.INFRASTRUCTURE, summary="oops: NULL"), main)
    assert not failures.is_same(Failure(kind=ErrorKind.KERNEL, summary=""), main)

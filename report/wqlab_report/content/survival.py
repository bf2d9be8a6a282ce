"""Whether the kernels of a target booted and survived, for formats that state it as a check. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import Arm, ErrorKind, Outcome, Verdict
from wqlab_contracts.messages import Failure

from . import failures, shared_text


class State(Enum):
    SURVIVED = auto()
    FAILED = auto()
    UNKNOWN = auto()
    """No boot was judged."""


@dataclass(frozen=True)
class Survival:
    """How boots ended."""

    state: State
    reason: str = ""
    kind: ErrorKind | None = None
    """Whose failure it is; None if nobody's."""
    excerpt: str = ""


SURVIVED = Survival(State.SURVIVED, "booted and survived")


def of_kernels(target: TargetReport) -> Survival:
    """Judge the boots of all kernels of a target."""
    if target.failure:
        failure = target.failure
        state = State.UNKNOWN if failure.kind is ErrorKind.CANCELED else State.FAILED
        return Survival(state, f"{failure.kind}: {failure.summary}", failure.kind, failure.excerpt)
    if target.verdict is Verdict.FAILED:
        excerpt = "\n".join(finding.excerpt for finding in target.findings)
        return Survival(State.FAILED, target.headline, ErrorKind.KERNEL, excerpt)
    return _of_blocks(target)


def of_arm(report: Report, target: TargetReport, arm: Arm) -> Survival:
    """Judge the boots of one kernel of a target."""
    return _of_arm_under_test(report, target) if arm is arm_under_test(report) else _of_baseline(report, target)


def arm_under_test(report: Report) -> Arm:
    """Return the kernel that the submission is about: the candidate, or the only kernel of a settings study."""
    return Arm.BASELINE if shared_text.is_study(report) else Arm.CANDIDATE


def _of_arm_under_test(report: Report, target: TargetReport) -> Survival:
    """Judge as the verdict does: a candidate is blamed only if the baseline came through."""
    failure = _failure(report, target)
    if failure is not None and failure.kind is not ErrorKind.KERNEL:
        state = State.UNKNOWN if failure.kind is ErrorKind.CANCELED else State.FAILED
        return Survival(state, failure.summary, failure.kind)
    if failure is None and target.verdict is not Verdict.FAILED:
        return _of_blocks(target)
    arm = arm_under_test(report)
    if arm is Arm.CANDIDATE and {finding.arm for finding in target.findings if finding.fatal} == {Arm.BASELINE}:
        return Survival(State.UNKNOWN, f"not judged: the baseline failed ({target.headline})", ErrorKind.KERNEL)
    summary = target.headline or (failure.summary if failure else "")
    return Survival(State.FAILED, summary, ErrorKind.KERNEL, _excerpt(report, target, arm))


def _of_baseline(report: Report, target: TargetReport) -> Survival:
    fatal = [finding for finding in target.findings if finding.fatal and finding.arm is Arm.BASELINE]
    if fatal and not target.blocks_completed:
        excerpt = _excerpt(report, target, Arm.BASELINE)
        return Survival(State.FAILED, f"{fatal[0].kind}: {fatal[0].title}", ErrorKind.KERNEL, excerpt)
    failure = _failure(report, target)
    if failure is None:
        return SURVIVED if target.verdict is Verdict.FAILED else _of_blocks(target)
    if target.blocks_completed or failure.kind is ErrorKind.KERNEL:
        return SURVIVED
    return Survival(State.UNKNOWN, f"not booted: {failure.summary}", failure.kind)


def _of_blocks(target: TargetReport) -> Survival:
    if target.blocks_completed:
        return SURVIVED
    if target.byte_identical:
        return Survival(State.UNKNOWN, target.headline)
    if target.outcome is Outcome.CANCELED:
        return Survival(State.UNKNOWN, "canceled", ErrorKind.CANCELED)
    return Survival(State.UNKNOWN, "no block is completed", ErrorKind.INFRASTRUCTURE)


def _failure(report: Report, target: TargetReport) -> Failure | None:
    """Return the failure of a target: its own, or that of the submission if the target's verdict states it."""
    main = failures.main_failure(report)
    return report.submission.failure if main is not None and main.target is target else target.failure


def _excerpt(report: Report, target: TargetReport, arm: Arm) -> str:
    failure = _failure(report, target)
    texts = [finding.excerpt for finding in target.findings if finding.fatal and finding.arm is arm]
    return next(filter(None, [*texts, failure.excerpt if failure else ""]), "")

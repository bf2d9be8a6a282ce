"""Checks of a report for a CI: checks that passed, failed, or were skipped, with the reason.

There is one check per device type, scenario, setting and primary metric, and one for each other metric that
regressed; on an emulated device, the primary metrics of real hardware are included as skipped (no evidence).
Regressions and failures of the kernel are failures; errors of the lab or of the request are errors; inconclusive, no
evidence and unsupported are skipped, and so is every modelled figure, whatever its verdict: it is no finding. The
type of a skipped check is the cause of the missing figure (`NotMeasuredCause`), if one is missing, `modelled` for a
modelled figure, else the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from wqlab_comparison import is_regression, words
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.enums import ErrorKind, Evidence, Question, Role, Verdict

from ..content import cells, failures, instrument_tables, shared_text, survival
from ..units import readable

SURVIVAL = "kernels boot and survive"
"""Name of a target's check that a failure of its run or kernels fails; its other checks are then skipped."""
_SKIPPED = frozenset(
    {Verdict.INCONCLUSIVE, Verdict.WITHHELD, Verdict.NOT_EXERCISED, Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED}
)


class Result(StrEnum):
    """Result of a check; the values are JUnit's elements."""

    PASSED = "system-out"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Check:
    name: str
    group: str
    result: Result = Result.PASSED
    message: str = ""
    kind: str = ""
    """Type of the result; empty if it passed."""
    text: str = ""


@dataclass(frozen=True)
class Suite:
    """The checks of a target or of a submission."""

    name: str
    checks: Sequence[Check]
    remarks: Sequence[str] = ()


def suites(report: Report) -> list[Suite]:
    """Return a suite per target, and one for a submission that failed before there was a target to blame."""
    report = readable(report)
    found = [_suite(report, target) for target in report.targets]
    main = failures.main_failure(report)
    if not report.targets or (main and main.target is None):
        found.append(Suite("submission", [_main("submission", "wqlab", main)]))
    return found


def _suite(report: Report, target: TargetReport) -> Suite:
    name = f"{target.plan.name}@{target.device_type}"
    on_hardware = {metric.name for metric in target.plan.metrics if metric.role_hardware is Role.PRIMARY}
    shown = bool(failures.comparisons(report, target))
    checks = [
        _figure(cell, target, shown=shown)
        for cell in target.comparisons
        if cell.role is Role.PRIMARY
        or is_regression(cell)
        or (cell.evidence is Evidence.NONE and cell.metric in on_hardware)
    ]
    verdict = f"{words.VERDICT[target.verdict]}: {instrument_tables.headline(target)}"
    remarks = [] if target.verdict is Verdict.FAILED else [verdict, *shared_text.canaries(target)]
    return Suite(name, [*checks, _survival(report, target, name)], remarks)


def _survival(report: Report, target: TargetReport, group: str) -> Check:
    main = failures.main_failure(report)
    if main and main.target is target:
        return _main(SURVIVAL, group, main)
    if target.failure and report.submission.failure and failures.is_same(target.failure, report.submission.failure):
        return Check(SURVIVAL, group, Result.SKIPPED, "not run: see the failure of the submission", "failed")
    boots = survival.of_kernels(target)
    if boots.state is survival.State.SURVIVED:
        return Check(SURVIVAL, group)
    if boots.state is survival.State.UNKNOWN:
        return Check(SURVIVAL, group, Result.SKIPPED, boots.reason, "not booted")
    return Check(SURVIVAL, group, _result(boots.kind), boots.reason, f"{boots.kind}", boots.excerpt)


def _main(name: str, group: str, main: failures.MainFailure | None) -> Check:
    if main is None:
        return Check(name, group)
    places = [f"where: {place}" for place in main.places]
    text = "\n".join([*places, *filter(None, [main.excerpt]), f"What to do: {main.advice}"])
    return Check(name, group, _result(main.kind), f"{main.kind}: {main.summary}", f"{main.kind}", text)


def _figure(cell: Comparison, target: TargetReport, *, shown: bool) -> Check:
    against = f" vs {cell.reference} on {cell.kernel}" if cell.question is Question.SETTING else ""
    name, group = f"{cells.name(cell)}{against}", f"{cell.plan}@{cell.device_type}"
    floor = instrument_tables.noise_floor(target, cell)
    figures = ", ".join(filter(None, (words.effect(cell), words.ci(cell), words.tests(cell), floor)))
    message = f"{words.VERDICT[cell.verdict]}: {cell.reason}" if cell.verdict else cell.reason
    if cell.evidence is Evidence.MODELLED and shown and cell.verdict is not Verdict.FAILED:
        return Check(name, group, Result.SKIPPED, f"modelled, no finding: {message}", "modelled", figures)
    if is_regression(cell):
        return Check(name, group, Result.FAILURE, message, "regression", figures)
    if not shown or (cell.verdict is Verdict.FAILED and target.verdict is Verdict.FAILED):
        return Check(name, group, Result.SKIPPED, f"not measured: see {SURVIVAL}", "failed")
    if cell.verdict is Verdict.FAILED:
        kind = target.failure.kind if target.failure else ErrorKind.KERNEL
        return Check(name, group, _result(kind), message, f"{kind}", figures)
    if cell.verdict is None or cell.verdict in _SKIPPED:
        return Check(name, group, Result.SKIPPED, message, cell.not_measured or cell.verdict or "no verdict")
    means = " and ".join(f"{arm.mean:.6g}" for arm in (cell.baseline, cell.candidate) if arm is not None)
    return Check(name, group, text=f"{message}; {means} {cell.unit}; {figures}")


def _result(kind: ErrorKind | None) -> Result:
    if kind is ErrorKind.CANCELED:
        return Result.SKIPPED
    return Result.FAILURE if kind is ErrorKind.KERNEL else Result.ERROR

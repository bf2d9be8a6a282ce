"""State the failure of a submission once: what failed, where, the excerpt, what to do. Pure.

The same failure is that of the submission, of a run, of its boots and blocks, and a finding. Renderers show it at the
top, and leave out its repetitions and the parts of the report that do not apply to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wqlab_comparison.words import is_evidence
from wqlab_contracts.api.report import AttemptView, Comparison, Report, TargetReport
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import VERDICT_ORDER, ErrorKind, FindingKind, Outcome, Verdict
from wqlab_contracts.keys import defect_key
from wqlab_contracts.messages import Failure

from . import system_text
from .shared_text import folder, is_local, joined, kind

_ADVICE = {
    ErrorKind.USER: "Correct the series or the request, and submit again.",
    ErrorKind.KERNEL: "Correct the series. The console of a boot: `wqlab console {run}`.",
    ErrorKind.INFRASTRUCTURE: "The lab failed, not the series. To run it again: `wqlab retry {id}`.",
    ErrorKind.CANCELED: "To run it again: `wqlab retry {id}`.",
}


_LOCAL_ADVICE = {
    **_ADVICE,
    ErrorKind.KERNEL: "The consoles of the boots are in {folder}/consoles.",
    ErrorKind.INFRASTRUCTURE: "This host or the machine failed, no kernel. To go on: `wqlab ab --resume {folder}`.",
    ErrorKind.CANCELED: "To go on: `wqlab ab --resume {folder}`.",
}
"""The same for a report of `wqlab ab`."""


@dataclass(frozen=True)
class MainFailure:
    """The failure of a submission."""

    kind: ErrorKind
    summary: str
    places: list[str]
    """Where it occurred: boots by run, builds, or the apply."""
    excerpt: str
    advice: str
    target: TargetReport | None
    """The target whose verdict the summary states."""


@dataclass(frozen=True)
class Group:
    """Equal failures or findings."""

    places: list[str]
    failure: Failure


@dataclass(frozen=True)
class FindingGroup:
    """Equal findings of one kernel."""

    place: str
    """`candidate, block 1, attempts 1 to 3`."""
    finding: FindingView

    @property
    def title(self) -> str:
        return f"{kind(self.finding)} on {self.place}: {self.finding.title}"


def main_failure(report: Report) -> MainFailure | None:
    """Return the submission's failure with all places where it occurred; None if it has none."""
    failure = report.submission.failure
    if failure is None:
        return None
    of_job = any(each.what != "run" and is_same(each.failure, failure) for each in report.attempts)
    target = None if of_job else next((each for each in report.targets if _states(each, failure)), None)
    summary = failure.summary
    if target is not None:
        told = target.headline if failure.kind is ErrorKind.KERNEL else failure.summary
        summary = f"{name(target)}: {told}"
    advice = failure.advice or (_LOCAL_ADVICE if is_local(report) else _ADVICE)[failure.kind].format(
        id=report.submission.id, run=target.run_id if target else "RUN", folder=folder(report)
    )
    return MainFailure(failure.kind, summary, _places(report, failure), failure.excerpt, advice, target)


def other_attempts(report: Report) -> list[Group]:
    """Return the failed attempts, equal ones once; without those of the submission's failure."""
    main = report.submission.failure
    groups: dict[tuple[ErrorKind, str], list[AttemptView]] = {}
    for attempt in report.attempts:
        if main is None or not is_same(attempt.failure, main):
            text = attempt.failure.defect or attempt.failure.summary
            groups.setdefault((attempt.failure.kind, text), []).append(attempt)
    return [Group(_attempt_places(report, group), group[0].failure) for group in groups.values()]


def attempt_sentences(report: Report) -> list[str]:
    """Return the places, kind and summary of each failed attempt that is not the submission's failure."""
    groups = other_attempts(report)
    return [f"{'; '.join(each.places)}: {each.failure.kind}: {each.failure.summary}" for each in groups]


def attempts_title(report: Report) -> str:
    return f"{'Other failed' if report.submission.failure else 'Failed'} attempts"


def other_findings(report: Report, target: TargetReport) -> list[FindingGroup]:
    """Return the findings of a target, equal ones once; without those of the submission's failure.

    A panic that follows the oops of the submission's failure in the same boot is left out too.
    """
    main = report.submission.failure
    failed = {_boot(each) for each in target.findings if main and _is_finding(each, main)}
    groups: dict[tuple[str, ...], list[FindingView]] = {}
    for finding in target.findings:
        if main and (_is_finding(finding, main) or (finding.kind is FindingKind.PANIC and _boot(finding) in failed)):
            continue
        key = (finding.arm, finding.kind, finding.defect or defect_key(finding.title))
        groups.setdefault(key, []).append(finding)
    return [
        FindingGroup(f"{group[0].arm}, {_boots([(each.block, each.attempt) for each in group])}", group[0])
        for group in groups.values()
    ]


def comparisons(report: Report, target: TargetReport) -> list[Comparison]:
    """Return the comparisons to show: none if the submission failed before there was anything to compare."""
    compared = any(each.baseline is not None and each.candidate is not None for each in target.comparisons)
    return target.comparisons if compared or report.submission.failure is None else []


def is_shown(report: Report, target: TargetReport) -> bool:
    """Return True unless the target has nothing that the submission's failure does not say already."""
    if report.submission.failure is None:
        return True
    return bool(comparisons(report, target) or target.environment or other_findings(report, target))


def others(report: Report) -> list[TargetReport]:
    """Return the targets whose verdicts the submission's failure does not state; without those that never ran."""
    failure, main = report.submission.failure, main_failure(report)
    if failure is None or main is None:
        return report.targets
    return [
        target
        for target in report.targets
        if target is not main.target
        and ((target.failure and not is_same(target.failure, failure)) or is_shown(report, target))
    ]


def by_severity(targets: Iterable[TargetReport]) -> list[TargetReport]:
    """Return the targets with the most severe verdict first."""
    return sorted(targets, key=lambda target: VERDICT_ORDER.index(target.verdict))


def applies_method(report: Report) -> bool:
    """Return True if the report has a verdict that the statistical method gave, or did not fail at all."""
    return report.submission.failure is None or any(
        is_evidence(each) and each.verdict not in {None, Verdict.FAILED}
        for target in report.targets
        for each in comparisons(report, target)
    )


def applies_rebuilding(report: Report) -> bool:
    """Return True if somebody may want to build the kernels again: for their figures, or to see one fail."""
    failure = report.submission.failure
    booted = any(target.environment or target.findings for target in report.targets)
    return applies_method(report) or (failure is not None and failure.kind is ErrorKind.KERNEL and booted)


def applies_checkpatch(report: Report) -> bool:
    """Return True for a report of a lab with a series, unless it failed before it was applied."""
    submission = report.submission
    applied = submission.failure is None or submission.apply.outcome is Outcome.PASSED
    return submission.request.series is not None and applied and not is_local(report)


def is_same(failure: Failure, main: Failure) -> bool:
    """Return True if `failure` is the submission's failure `main`: one defect, or the summary that `main` ends with."""
    if failure.kind is not main.kind:
        return False
    if failure.defect and main.defect:
        return failure.defect == main.defect
    same_text = bool(failure.summary) and main.summary.endswith(failure.summary)
    return same_text or (bool(failure.excerpt) and failure.excerpt in main.excerpt)


def name(target: TargetReport) -> str:
    """Return `xfs-fsync on xeon-2s (emulated)`."""
    return f"{target.plan.name} on {target.device_type}{device_kind(target)}"


def device_kind(target: TargetReport) -> str:
    """Return ` (emulated)`, ` (instrumented)` or ` (modelled)`; empty for hardware."""
    kind = system_text.kind(target)
    return "" if kind == "hardware" else f" ({kind})"


def _states(target: TargetReport, main: Failure) -> bool:
    """Return True if the target's verdict is the submission's failure."""
    if target.verdict is not Verdict.FAILED:
        return False
    own = target.failure is not None and is_same(target.failure, main)
    return own or main.summary == target.headline or any(_is_finding(each, main) for each in target.findings)


def _is_finding(finding: FindingView, main: Failure) -> bool:
    if main.kind is not ErrorKind.KERNEL:
        return False
    if finding.defect and main.defect:
        return finding.defect == main.defect
    return main.summary.endswith(finding.title) or (bool(finding.excerpt) and finding.excerpt in main.excerpt)


def _boot(finding: FindingView) -> tuple[str, int, int]:
    return finding.arm, finding.block, finding.attempt


def _places(report: Report, main: Failure) -> list[str]:
    attempts = [attempt for attempt in report.attempts if is_same(attempt.failure, main)]
    found = _attempt_places(report, attempts)
    if any(attempt.what == "run" for attempt in attempts):
        return found
    for target in report.targets:
        for arm in dict.fromkeys(each.arm for each in target.findings if _is_finding(each, main)):
            boots = [(f.block, f.attempt) for f in target.findings if f.arm is arm and _is_finding(f, main)]
            found.append(f"{target.plan.name} on {_device(target)}, {arm}, {_boots(boots)}")
    return found


def _device(target: TargetReport) -> str:
    return target.environment.device if target.environment else target.device_type


def _attempt_places(report: Report, attempts: Sequence[AttemptView]) -> list[str]:
    """Return the places of attempts, those of one run and kernel together."""
    places: dict[str, list[tuple[int, int]]] = {}
    in_boots = {(each.run_id, each.device) for each in attempts if each.block is not None}
    for attempt in attempts:
        if attempt.what == "run" and attempt.block is None and (attempt.run_id, attempt.device) in in_boots:
            continue  # the attempt of the run failed because of one of these boots
        if attempt.what != "run":
            place = _job(report, attempt)
        else:
            place = joined([f"{attempt.plan} on {attempt.device or attempt.device_type}", attempt.arm or ""])
        boot = (-1, attempt.attempt - 1) if attempt.block is None else (attempt.block, attempt.attempt)
        places.setdefault(place, []).append(boot)
    return [f"{place}, {_boots(boots)}" for place, boots in places.items()]


def _job(report: Report, attempt: AttemptView) -> str:
    worker = f" by {attempt.device}" if attempt.device else ""
    apply = report.submission.apply
    if attempt.what == "apply":
        base = f" on {report.submission.tree} {apply.base_commit[:12]}" if apply.base_commit else ""
        return f"apply{base}{worker}"
    build = next((each for each in report.submission.builds if each.id == attempt.build_id), None)
    kernel = f" of the {build.arm} ({build.recipe}, {build.arch})" if build and build.arm else ""
    return f"build {attempt.build_id}{kernel}{worker}"


def _boots(boots: Iterable[tuple[int, int]]) -> str:
    """Return `block 1, attempts 1 to 3; block 2, attempt 1` for pairs of block and attempt, counted from zero."""
    blocks: dict[int, set[int]] = {}
    for block, attempt in boots:
        blocks.setdefault(block, set()).add(attempt + 1)
    return "; ".join(
        f"{'' if block < 0 else f'block {block + 1}, '}attempt{'s' if len(found) > 1 else ''} {_numbers(sorted(found))}"
        for block, found in sorted(blocks.items())
    )


def _numbers(numbers: Sequence[int]) -> str:
    if len(numbers) > 2 and all(b - a == 1 for a, b in pairwise(numbers)):
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(filter(None, [", ".join(map(str, numbers[:-1])), str(numbers[-1])]))

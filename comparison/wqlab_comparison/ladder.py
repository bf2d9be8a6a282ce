"""Conclude the verdict of each patch of a walk, and say which patches change something."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from wqlab_contracts.api.comparison import Comparison
from wqlab_contracts.api.ladder import Ladder, LadderRung
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import Arm, FindingKind, Verdict
from wqlab_contracts.messages.walk import MISSING, Rung, StepState, WalkStep, reference_of, rungs

from .runs import RecordedBoot, RecordedRun
from .target import Accusation, Conclusion, as_modelled, conclude_figures, failures_against, is_modelled, of_kernels
from .words import count

_BREAKS = {
    StepState.NOT_BUILT: "does not build",
    StepState.KERNEL_FAILED: "has a kernel that fails",
}
_OF_PATCHES: dict[Verdict, tuple[str, str]] = {
    Verdict.FAILED: ("fails", "fail"),
    Verdict.REGRESSION: ("regresses", "regress"),
    Verdict.IMPROVEMENT: ("improves", "improve"),
}
"""Verb of each verdict that a sentence names, for one patch and for several."""
_OF_COUNTS = _OF_PATCHES | {
    Verdict.REGRESSION: ("takes more kernel instructions", "take more kernel instructions"),
    Verdict.IMPROVEMENT: ("takes fewer kernel instructions", "take fewer kernel instructions"),
}
"""The same for counts, by which alone nothing improves or regresses."""
_OF_MODELS = _OF_PATCHES | {
    Verdict.REGRESSION: ("is modelled as worse", "are modelled as worse"),
    Verdict.IMPROVEMENT: ("is modelled as better", "are modelled as better"),
}
"""The same for a model's figures."""
NO_CHANGE = "no patch changes anything that these boots show"


def ladder_of(
    run: RecordedRun,
    boots: Sequence[RecordedBoot],
    findings: Sequence[FindingView],
    comparisons: Sequence[Comparison],
    lab_discards: Collection[tuple[int, int]],
) -> Ladder | None:
    """Return the ladder of a run; None if its series was not walked. `comparisons` are those of single patches.

    `lab_discards`: see `conclude_run`.
    """
    if not run.walk:
        return None
    counted = [
        finding
        for finding in findings
        if finding.kind is not FindingKind.HANG or (finding.block, finding.attempt) not in lab_discards
    ]
    by_patch: dict[int, list[Comparison]] = defaultdict(list)
    for each in comparisons:
        if each.patch is not None:
            by_patch[each.patch].append(each)
    compared = {rung.patch: rung for rung in rungs(run.walk)}
    attempted = Counter(boot.arm for boot in boots)
    found = []
    for step in run.walk:
        conclusion = _conclude(
            step,
            compared.get(step.patch),
            by_patch[step.patch],
            counted,
            emulated=run.emulated,
            figures=run.figures,
            attempted=attempted,
        )
        found.append(
            LadderRung(
                patch=step.patch,
                subject=step.subject,
                commit=step.commit,
                build_id=step.build_id,
                arm=step.arm,
                state=step.state,
                reference=reference_of(run.walk, step.patch),
                verdict=conclusion.verdict if conclusion else None,
                headline=conclusion.headline if conclusion else "",
                comparisons=by_patch[step.patch],
                failure=step.failure,
            )
        )
    return Ladder(
        rungs=found,
        boots_per_block=len(run.blocks[0]) if run.blocks else 0,
        sentence=sentence(found, instrumented=run.plan.is_instrumented, modelled=run.plan.is_modelled),
    )


def _conclude(
    step: WalkStep,
    rung: Rung | None,
    comparisons: Sequence[Comparison],
    findings: Sequence[FindingView],
    *,
    emulated: bool,
    figures: bool,
    attempted: Mapping[Arm, int],
) -> Conclusion | None:
    if step.state in MISSING:
        if step.failure is None:
            return None
        what = _BREAKS.get(step.state, "has no kernel")
        return Conclusion(Verdict.FAILED, f"{what} ({step.failure.kind}): {step.failure.summary}")
    if rung is None:
        return Conclusion(Verdict.EQUIVALENT, "the kernel is byte-identical with the one before: the same by identity")
    total = attempted.get(rung.arm, 0)
    accused = [
        each for each in failures_against(findings, emulated, rung.arm, rung.reference_arm) if each.is_repeated(total)
    ]
    if accused:
        return Conclusion(Verdict.FAILED, "; ".join(_describe(each, total) for each in accused), accused)
    if not figures and total:
        return Conclusion(Verdict.NO_EVIDENCE, f"no problem found in {count(total, 'boot')}")
    if not of_kernels(comparisons):
        return None
    conclusion, _ = conclude_figures(comparisons, study=False)
    return as_modelled(conclusion) if is_modelled(comparisons) else conclusion


def _describe(failure: Accusation, boots: int) -> str:
    kind = failure.kind.value.replace("_", " ")
    return f"its kernel showed {kind} in {failure.boots} of {count(boots, 'boot')}: {failure.title}"


def sentence(ladder: Iterable[LadderRung], *, instrumented: bool = False, modelled: bool = False) -> str:
    """Return the patches that change something and those that break the series.

    Example: `patch 3 regresses; patch 5 improves; the kernel after patch 6 did not come through`.
    """
    rungs_ = list(ladder)
    parts = []
    verbs = _OF_MODELS if modelled else _OF_COUNTS if instrumented else _OF_PATCHES
    for verdict, (one, several) in verbs.items():
        patches = [each.patch for each in rungs_ if each.verdict is verdict and each.state not in MISSING]
        if patches:
            parts.append(f"{_patches(patches)} {one if len(patches) == 1 else several}")
    missing = [each.patch for each in rungs_ if each.state is StepState.NOT_BUILT]
    if missing:
        verb = "does" if len(missing) == 1 else "do"
        parts.append(f"{_patches(missing)} {verb} not build alone, so the series cannot be bisected there")
    failed = [each.patch for each in rungs_ if each.state is StepState.KERNEL_FAILED]
    if failed:
        parts.append(f"the kernel{'' if len(failed) == 1 else 's'} after {_patches(failed)} did not come through")
    if parts:
        return "; ".join(parts)
    if withheld := [each.patch for each in rungs_ if each.verdict is Verdict.WITHHELD]:
        return f"the verdict on {_patches(withheld)} is withheld"
    undecided = [each.patch for each in rungs_ if each.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        return f"can't tell yet for {_patches(undecided)}"
    return NO_CHANGE if all(each.verdict is not None for each in rungs_) else ""


def _patches(numbers: Sequence[int]) -> str:
    texts = [str(number) for number in numbers]
    joined = " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
    return f"patch{'' if len(texts) == 1 else 'es'} {joined}"

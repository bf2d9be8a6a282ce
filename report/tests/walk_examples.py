"""Make an example report of a walk: made-up counts, for tests of reports. None was measured."""

from __future__ import annotations

from collections.abc import Sequence

from report_parts import FIO, XEON, XFS, build, report, samples, target, xeon

from wqlab_comparison import compare
from wqlab_comparison.ladder import ladder_of
from wqlab_comparison.runs import RecordedBoot, RecordedRun, conclude_run, facts_of_run
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import BETWEEN, PAIR, Arm, ErrorKind
from wqlab_contracts.messages import Failure, PatchSummary
from wqlab_contracts.messages.walk import StepState, WalkStep

SUBJECTS = (
    "workqueue: Name what a buffer is protected by",
    "workqueue: Split out the preparation of one pwq for a flush",
    "workqueue: Count the flushes of a pool under its lock",
    "workqueue: Use a helper that the next patch adds",
    "workqueue: Take a pool's lock once per run of pwqs that share it",
)
ARMS = (Arm.BASELINE, *BETWEEN[:3], Arm.CANDIDATE)
LOCKS: dict[Arm, Sequence[float]] = {
    Arm.BASELINE: (33, 33, 33),
    BETWEEN[1]: (33, 33, 33),
    BETWEEN[2]: (40, 40, 40),
    Arm.CANDIDATE: (33, 33, 33),
}
MISSING = Failure(
    kind=ErrorKind.USER,
    summary="the kernel does not build: kernel/workqueue.c:3871: implicit declaration of function",
    excerpt="kernel/workqueue.c:3871:9: error: implicit declaration of function 'pwq_flush_run'\nmake: *** Error 2",
)


def steps() -> list[WalkStep]:
    """Return the kernels: the first patch changes none, the third regresses, the fourth breaks, the fifth repairs."""
    states = (
        (Arm.BASELINE, StepState.IDENTICAL), (BETWEEN[1], StepState.MEASURED), (BETWEEN[2], StepState.MEASURED),
        (BETWEEN[3], StepState.NOT_BUILT), (Arm.CANDIDATE, StepState.MEASURED),
    )  # fmt: skip
    return [
        WalkStep(
            patch=number,
            subject=subject,
            commit=f"{number}" * 40,
            build_id=number + 1,
            arm=arm,
            state=state,
            failure=MISSING if state is StepState.NOT_BUILT else None,
        )
        for number, (subject, (arm, state)) in enumerate(zip(SUBJECTS, states, strict=True), start=1)
    ]


def walked() -> Report:
    """Return the report."""
    figures = {
        ("fsync", "", name, arm): [value * factor for value in values]
        for arm, values in LOCKS.items()
        for name, factor in (("locks_per_flush", 1.0), ("locks_per_fsync", 1.1), ("bandwidth", 0.25))
    }
    measured = samples(XFS, "xeon-2s", figures)
    blocks = [[Arm.BASELINE, BETWEEN[1], BETWEEN[2], Arm.CANDIDATE]] * 3
    run = RecordedRun(
        plan=XFS, device_type="xeon-2s", emulated=True, settings=[""], blocks=blocks, recipe="wq", figures=True,
        compared=True, byte_identical=False, failure=None, walk=steps(),
    )  # fmt: skip
    compared = compare(measured, [facts_of_run(run, [], [])])
    boots = [RecordedBoot(arm, True, True) for arms in blocks for arm in arms]
    own = [each for each in compared if each.patch is None]
    conclusion = conclude_run(run, boots, [], own, set())
    pair = {key: values for key, values in figures.items() if key[3] in PAIR}
    one = target(
        11, XFS, "xeon-2s", samples(XFS, "xeon-2s", pair), [""], list(PAIR), xeon(), XEON, (3, 3), {"fsync": FIO},
        summary="two sockets, two NUMA nodes, 32 CPUs",
    )  # fmt: skip
    one = one.model_copy(
        update={
            "comparisons": own,
            "verdict": conclusion.verdict,
            "headline": conclusion.headline,
            "ladder": ladder_of(run, boots, [], compared, set()),
        }
    )
    patches = [PatchSummary(subject=subject, author="A <a@example.org>") for subject in SUBJECTS]
    made = report(
        13, "workqueue: Fewer pool locks per flush", [one], True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 6)], patches=patches,
    )  # fmt: skip
    request = made.submission.request.model_copy(update={"walk": True})
    return made.model_copy(update={"submission": made.submission.model_copy(update={"request": request})})

"""Reports of submissions that failed, one of each kind; `report_examples.panic` is another."""

from __future__ import annotations

from typing import Any

from report_examples import failed_attempt, finding, kernel_report
from report_parts import PATCH, XEON, XFS, build, report, samples, target, xeon

from wqlab_contracts.api.report import AttemptView, Report, TargetReport
from wqlab_contracts.api.submissions import ApplyView
from wqlab_contracts.enums import PAIR, Arm, ErrorKind, FindingKind, JobState, Outcome
from wqlab_contracts.messages import Failure, StackFrame


def does_not_apply() -> Report:
    failure = Failure(
        kind=ErrorKind.USER,
        summary="the series does not apply to linux-6.12 c0ffee111111: kernel/workqueue.c, hunk 1 at line 3842",
        excerpt="error: patch failed: kernel/workqueue.c:3842\nerror: kernel/workqueue.c: patch does not apply",
        advice="Rebase the series on linux-6.12, or submit it for the tree that it was made for.",
    )
    apply = ApplyView(
        state=JobState.FINISHED,
        outcome=Outcome.FAILED,
        failure=failure,
        checkpatch_skipped="the series was not applied",
    )
    attempt = _job("apply", None, failure)
    one = _target(None, failure=failure, outcome=Outcome.FAILED)
    return report(
        20, "workqueue: Made for another tree", [one], True, [], apply=apply, failure=failure, attempts=[attempt]
    )


def does_not_compile() -> Report:
    failure = Failure(
        kind=ErrorKind.USER,
        summary="the kernel does not compile: kernel/workqueue.c:3871:2: error: 'pwqs' undeclared (first use in this "
        "function); did you mean 'pwq'?",
        excerpt="kernel/workqueue.c: In function 'flush_workqueue_prep_pwqs':\n"
        "kernel/workqueue.c:3871:2: error: 'pwqs' undeclared (first use in this function); did you mean 'pwq'?\n"
        " 3871 |  pwqs->flush_color = flush_color;\n"
        "      |  ^~~~",
    )
    builds = [
        build(Arm.BASELINE, 1),
        build(
            Arm.CANDIDATE, 3, outcome=Outcome.FAILED, failure=failure, build_id_gnu="", release="", compiler="",
            duration_s=12.0,
        ),
    ]  # fmt: skip
    return report(
        21,
        "workqueue: Use a name that does not exist",
        [_target(None, failure=failure, outcome=Outcome.FAILED)],
        True,
        builds,
        patches=[PATCH],
        failure=failure,
        attempts=[_job("build", 3, failure)],
    )


PANIC_TITLE = "Kernel panic - not syncing: wqlab test series: panic at boot"
PANIC = f"""\
[    0.071204] {PANIC_TITLE}
[    0.071301] CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.117 #1
[    0.071402] Call Trace:
[    0.071455]  <TASK>
[    0.071503]  panic+0x118/0x2f0 (kernel/panic.c:354)  mdelay(PANIC_TIMER_STEP);
[    0.071559]  wq_test_panic+0x14/0x20 (kernel/workqueue.c:8118)  panic("wqlab test series: panic at boot");
[    0.071616]  do_one_initcall+0x59/0x220 (init/main.c:1269)  ret = fn();
[    0.071901]  </TASK>
[    0.072004] ---[ end {PANIC_TITLE} ]---"""


def panics_at_boot() -> Report:
    stack = [StackFrame(function="wq_test_panic", offset=0x14, file="kernel/workqueue.c", line=8118)]
    failure = kernel_report(FindingKind.PANIC, PANIC_TITLE, PANIC, stack)
    findings = [finding(FindingKind.PANIC, PANIC_TITLE, PANIC, attempt, stack=stack) for attempt in range(2)]
    return _kernel_failure(22, "workqueue: Panic in an early initcall", failure, findings)


HANG_TITLE = "the variant did not come up in 30 s; not one byte came on the console after the jump"


def hangs_at_boot() -> Report:
    failure = kernel_report(FindingKind.HANG, HANG_TITLE, "")
    findings = [finding(FindingKind.HANG, HANG_TITLE, "", attempt) for attempt in range(2)]
    return _kernel_failure(23, "workqueue: Sleep forever in a late initcall", failure, findings)


def lab_failure() -> Report:
    """A run that the lab could not do on two devices."""
    failures = [
        Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary=f"the power of xeon-2s-{number} cannot be switched on: connection refused",
            advice="Check the outlet, then `wqlab device check` the device.",
        )
        for number in (1, 2)
    ]
    attempts = [
        failed_attempt(failure, number, arm).model_copy(update={"device": f"xeon-2s-{number + 1}"})
        for number, (failure, arm) in enumerate(zip(failures, (Arm.BASELINE, Arm.CANDIDATE), strict=True))
    ]
    one = _target(None, failure=failures[1], outcome=Outcome.FAILED, discarded={Arm.BASELINE: 1, Arm.CANDIDATE: 1})
    return report(
        24,
        "workqueue: Drop a check that cannot fail",
        [one],
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 3)],
        patches=[PATCH],
        failure=failures[1],
        attempts=attempts,
    )


def _kernel_failure(number: int, title: str, failure: Failure, findings: list[Any]) -> Report:
    """A candidate that fails twice before it is up; the baseline comes up."""
    baseline = {("fsync", "", "locks_per_flush", Arm.BASELINE): (33, 33)}
    measured = samples(XFS, "xeon-2s", baseline)
    one = _target(measured, failure=failure, outcome=Outcome.FAILED, findings=findings, discarded={Arm.CANDIDATE: 2})
    return report(
        number,
        title,
        [one],
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 3)],
        patches=[PATCH],
        failure=failure,
        attempts=[failed_attempt(failure, attempt) for attempt in range(2)],
    )


def _target(measured: Any, **more: Any) -> TargetReport:
    """Return run 13 of xfs-fsync on xeon-2s, with the environment of the baseline's boots if something was measured."""
    topology = xeon() if measured is not None else None
    made = target(13, XFS, "xeon-2s", measured, [""], list(PAIR), topology, XEON, (0, 3), {}, **more)
    if made.environment is None:
        return made
    of_baseline = {
        field: {Arm.BASELINE: value[Arm.BASELINE]}
        for field in ("cmdline", "release", "build_id_gnu")
        if (value := getattr(made.environment, field))
    }
    return made.model_copy(update={"environment": made.environment.model_copy(update=of_baseline)})


def _job(what: Any, build_id: int | None, failure: Failure) -> AttemptView:
    return AttemptView(
        what=what,
        run_id=None,
        build_id=build_id,
        plan=None,
        device_type=None,
        device="builder/17",
        block=None,
        arm=None,
        attempt=1,
        failure=failure,
    )


FAILED = {
    "does-not-apply": does_not_apply,
    "does-not-compile": does_not_compile,
    "panics-at-boot": panics_at_boot,
    "hangs-at-boot": hangs_at_boot,
    "lab-failure": lab_failure,
}

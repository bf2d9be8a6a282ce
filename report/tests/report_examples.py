"""Three example reports, from literal samples through the real comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from report_parts import (
    CRYPT,
    FIO,
    NULL_POINTER,
    OOPS,
    PATCH,
    RYZEN,
    STACK,
    XEON,
    XFS,
    build,
    report,
    ryzen,
    samples,
    target,
    xeon,
)

from wqlab_contracts.api.report import AttemptView, Report, UnsupportedView
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.enums import (
    PAIR,
    Arm,
    ErrorKind,
    FindingKind,
    NotMeasuredCause,
    Outcome,
)
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.messages import (
    CheckpatchFinding,
    CompilerWarning,
    Failure,
    StackFrame,
)


def improvement() -> Report:
    """Return a report with exact counts on a two-socket device."""
    both: dict[tuple[str, str, str, Arm], Sequence[float]] = {}
    for name, before, after in (
        ("locks_per_flush", (33, 33, 33), (3, 3, 3)),
        ("locks_per_fsync", (36.41, 36.28, 36.55), (6.39, 6.44, 6.31)),
        ("flushes_per_fsync", (1.02, 1.01, 1.02), (1.01, 1.02, 1.02)),
        ("bandwidth", (8.2, 11.9, 6.4), (9.1, 7.7, 12.2)),
        ("fsync_p99", (812.0, 640.5, 1020.0), (633.0, 910.4, 702.2)),
    ):
        both["fsync", "", name, Arm.BASELINE], both["fsync", "", name, Arm.CANDIDATE] = before, after
    one = target(
        11,
        XFS,
        "xeon-2s",
        samples(XFS, "xeon-2s", both),
        [""],
        list(PAIR),
        xeon(),
        XEON,
        (3, 3),
        {"fsync": FIO},
        summary="two sockets, two NUMA nodes, 32 CPUs",
        discarded={Arm.CANDIDATE: 1},
    )
    return report(
        7,
        "workqueue: Take a pool's lock once per run of pwqs that share it",
        [one],
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 2, new_warnings=[warning()])],
        patches=[PATCH],
        checkpatch=[CheckpatchFinding(severity="check", text="Blank lines aren't necessary", where="workqueue.c:3871")],
        attempts=[
            AttemptView(
                what="build",
                run_id=None,
                build_id=2,
                plan=None,
                device_type=None,
                device="builder/17",
                block=None,
                arm=None,
                attempt=1,
                failure=Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no space left on the builder"),
            ),
            AttemptView(
                run_id=11,
                plan="xfs-fsync",
                device_type="xeon-2s",
                device="xeon-2s-1",
                block=1,
                arm=Arm.CANDIDATE,
                attempt=0,
                failure=Failure(
                    kind=ErrorKind.INFRASTRUCTURE, summary="the console went silent for 60 s while booting"
                ),
            ),
        ],
    )


def warning() -> CompilerWarning:
    return CompilerWarning(
        where="kernel/workqueue.c:3839:24", text="variable 'current_pool' set but not used", option="[-Wunused]"
    )


def study() -> Report:
    """Settings on one kernel: shares of work executed near the CPU that queued it."""
    settings = ["scope=system,strict=0", "scope=cache,strict=0", "scope=cache,strict=1", "scope=cache_shard,strict=0"]
    rng = np.random.default_rng(1)
    means = {
        "l3_share": (24.5, 83.9, 100.0),
        "core_share": (8.1, 30.2, 36.4),
        "node_share": (100.0, 100.0, 100.0),
        "migrations": (3120.0, 1240.0, 980.0),
        "bandwidth": (59.0, 59.9, 55.9),
        "clat_p99": (41.0, 43.5, 47.0),
        "cpu_util": (98.0, 97.1, 91.0),
    }
    cells: dict[tuple[str, str, str, Arm], Sequence[float]] = {}
    for scenario in ("HIGH", "LOW"):
        for name, centre in means.items():
            for setting, mean in zip(settings, centre, strict=False):
                spread = 0.0 if mean == 100.0 else 0.02 * mean
                values = [round(float(value), 2) for value in mean + rng.normal(0, spread, 6)]
                cells[scenario, setting, name, Arm.BASELINE] = values
    one = target(
        12,
        CRYPT,
        "ryzen-3900x",
        samples(CRYPT, "ryzen-3900x", cells),
        settings,
        [Arm.BASELINE],
        ryzen(),
        RYZEN,
        (6, 6),
        {name: FIO.replace("--name=fsync", f"--name={name}") for name in ("HIGH", "LOW")},
        summary="24 CPUs, four L3 domains of 6",
        unsupported=[
            UnsupportedView(
                scenario=scenario,
                setting="scope=cache_shard,strict=0",
                metric=None,
                arm=Arm.BASELINE,
                cause=NotMeasuredCause.LACKING,
                reason="this kernel has no scope cache_shard (it read back cache)",
            )
            for scenario in ("HIGH", "LOW")
        ],
    )
    return report(8, "dm-crypt under affinity scopes", [one], False, [build(Arm.BASELINE, 1)])


def kernel_report(kind: FindingKind, title: str, excerpt: str, stack: Sequence[StackFrame] = ()) -> Failure:
    """Return the failure of a boot whose console has this report."""
    defect = describe_defect(kind, title, stack)
    summary = f"{kind}: {title}"
    return Failure(kind=ErrorKind.KERNEL, summary=summary, excerpt=excerpt, stack=tuple(stack), defect=defect)


def finding(kind: FindingKind, title: str, excerpt: str, attempt: int, **more: Any) -> FindingView:
    """Return a finding of a boot of the candidate in block 1."""
    stack = more.get("stack", ())
    return FindingView(
        kind=kind,
        arm=Arm.CANDIDATE,
        block=0,
        attempt=attempt,
        title=title,
        excerpt=excerpt,
        console_offset=more.get("console_offset", 70_312),
        fatal=True,
        stack=tuple(stack),
        defect=describe_defect(kind, title, stack),
    )


def failed_attempt(failure: Failure, attempt: int, arm: Arm = Arm.CANDIDATE) -> AttemptView:
    """Return a failed attempt of block 1 of run 13."""
    return AttemptView(
        run_id=13,
        plan="xfs-fsync",
        device_type="xeon-2s",
        device="xeon-2s-1",
        block=0,
        arm=arm,
        attempt=attempt,
        failure=failure,
    )


def panic() -> Report:
    """A candidate that oopses under the workload, twice in the same way, and panics; the baseline does not."""
    baseline = {("fsync", "", "locks_per_flush", Arm.BASELINE): (33, 33)}
    failure = kernel_report(FindingKind.OOPS, NULL_POINTER, OOPS, STACK)
    fatal = "Kernel panic - not syncing: Fatal exception"
    one = target(
        13,
        XFS,
        "xeon-2s",
        samples(XFS, "xeon-2s", baseline),
        [""],
        list(PAIR),
        xeon(),
        XEON,
        (0, 3),
        {"fsync": FIO},
        summary="two sockets, two NUMA nodes, 32 CPUs",
        discarded={Arm.CANDIDATE: 2},
        failure=failure,
        outcome=Outcome.FAILED,
        findings=[
            each
            for attempt in range(2)
            for each in (
                finding(FindingKind.OOPS, NULL_POINTER, OOPS, attempt, stack=STACK),
                finding(FindingKind.PANIC, fatal, f"[   14.201377] {fatal}", attempt, console_offset=72_108),
            )
        ],
    )
    return report(
        9,
        "workqueue: Drop a check that cannot fail",
        [one],
        True,
        [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 3)],
        patches=[PATCH],
        failure=failure,
        config_diff=["CONFIG_WQ_WATCHDOG y -> n"],
        attempts=[failed_attempt(failure, attempt) for attempt in range(2)],
    )

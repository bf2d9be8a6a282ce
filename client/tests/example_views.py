"""Example resources of a lab: builders, and a submission from start to end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.runs import BootView, FindingView, RunView
from wqlab_contracts.api.submissions import ApplyView, Eta, SubmissionView, SubmittedRequest, SubmittedSeries
from wqlab_contracts.enums import (
    Arm,
    BootState,
    ErrorKind,
    FindingKind,
    JobState,
    Outcome,
    RunPurpose,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import CheckpatchFinding, Failure, GitSeries, PatchSummary, Target

START = datetime(2026, 1, 2, 10, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return the time `seconds` after the submission was created."""
    return START + timedelta(seconds=seconds)


SERIES_REQUEST = SubmittedRequest(
    series=SubmittedSeries(git=GitSeries(url="https://git.example.org/linux.git", ref="wq-flush")),
    tree="linux-6.12",
    targets=[Target(plan="xfs-fsync", device_type="xeon-2s")],
)
PATCH = PatchSummary(
    subject="[PATCH] workqueue: Take each pool lock once per flush",
    author="A. Developer <dev@example.org>",
    insertions=12,
    deletions=4,
    files=["kernel/workqueue.c"],
)
APPLIED = ApplyView(
    state=JobState.FINISHED,
    outcome=Outcome.PASSED,
    base_commit="0123456789abcdef0123456789abcdef01234567",
    release="6.12.48",
    patches=[PATCH],
    checkpatch=[CheckpatchFinding(severity="warning", text="line length of 104 exceeds 100 columns", where="#42")],
)


def build(number: int, arm: Arm, state: JobState = JobState.FINISHED, **changes: Any) -> BuildView:
    finished = state is JobState.FINISHED
    return BuildView(
        **{
            "id": number,
            "key": f"{number:064x}",
            "arm": arm,
            "tree": "linux-6.12",
            "base_commit": "0123456789abcdef0123456789abcdef01234567",
            "tree_oid": f"{number:040x}",
            "recipe": "measure",
            "arch": "x86_64",
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "reused": False,
            "build_id_gnu": f"{number:040x}" if finished else "",
            "release": "6.12.48" if finished else "",
            "compiler": "gcc 12.2.0" if finished else "",
            "reproducer": "tuxmake --target-arch x86_64" if finished else "",
            "duration_s": 95.0 if finished else None,
            **changes,
        }
    )


def boot(
    number: int, block: int, position: int, arm: Arm, state: BootState = BootState.FINISHED, **changes: Any
) -> BootView:
    finished = state is BootState.FINISHED
    begin = 120 + 60 * (2 * block + position)
    return BootView(
        **{
            "id": number,
            "run_id": 7,
            "block": block,
            "position": position,
            "arm": arm,
            "attempt": 0,
            "device": "xeon-2s-1",
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "valid": finished,
            "kernel_boot_id": None,
            "token": None,
            "build_id_gnu": None,
            "release": None,
            "cmdline": None,
            "topology": None,
            "environment": {},
            "started_at": at(begin),
            "finished_at": at(begin + 58) if finished else None,
            "golden_s": 20.5 if finished else None,
            "kexec_s": 7.6 if finished else None,
            "workload_s": 29.0 if finished else None,
            "overhead_s": 0.9 if finished else None,
            "console_bytes": 4096,
            "console_truncated": False,
            **changes,
        }
    )


def run(state: JobState, boots: Sequence[BootView] = (), **changes: Any) -> RunView:
    started = state in {JobState.RUNNING, JobState.FINISHED}
    return RunView(
        **{
            "id": 7,
            "submission_id": 12,
            "purpose": RunPurpose.MEASURE,
            "plan": "xfs-fsync",
            "device_type": "xeon-2s",
            "device": "xeon-2s-1" if started else None,
            "state": state,
            "outcome": Outcome.PASSED if state is JobState.FINISHED else None,
            "failure": None,
            "attempt": 1 if started else 0,
            "blocks_planned": 3,
            "blocks_completed": 0,
            "progress": "",
            "queue_position": None,
            "created_at": at(1),
            "started_at": at(118) if started else None,
            "finished_at": at(480) if state is JobState.FINISHED else None,
            "boots": list(boots),
            **changes,
        }
    )


def submission(state: SubmissionState, **changes: Any) -> SubmissionView:
    finished = state is SubmissionState.FINISHED
    return SubmissionView(
        **{
            "id": 12,
            "title": "workqueue: Take each pool lock once per flush",
            "series_key": "workqueue: take each pool lock once per flush",
            "tree": "linux-6.12",
            "owner": "dev",
            "priority": 50,
            "state": state,
            "outcome": Outcome.PASSED if finished else None,
            "failure": None,
            "verdicts": {},
            "created_at": START,
            "finished_at": at(485) if finished else None,
            "request": SERIES_REQUEST,
            "apply": ApplyView(state=JobState.QUEUED, outcome=None) if state is SubmissionState.APPLYING else APPLIED,
            "builds": [],
            "runs": [],
            "eta": Eta(finish_at=None, what=f"{state}", done_boots=0, total_boots=6),
            "exit_code": 0 if finished else None,
            **changes,
        }
    )


# --- a submission from start to end -------------------------------------------------------------------------------

A, B = Arm.BASELINE, Arm.CANDIDATE
PANIC = Failure(kind=ErrorKind.KERNEL, summary="panic: workqueue: pool lock held")
VIEWS = [
    submission(SubmissionState.APPLYING),
    submission(SubmissionState.BUILDING, builds=[build(3, A, reused=True), build(4, B, JobState.RUNNING)]),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[run(JobState.QUEUED, queue_position=2)],
    ),
    submission(
        SubmissionState.RUNNING,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.RUNNING,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, BootState.MEASURING, attempt=1),
                ],
                blocks_completed=1,
                progress="block 2 of 3, attempt 2: measuring\x1b[2J repetition 2 of 3",
                findings=[
                    FindingView(
                        kind=FindingKind.PANIC,
                        arm=B,
                        block=1,
                        attempt=0,
                        title="Kernel panic - not syncing: pool lock held",
                        excerpt="[   12.3] Kernel panic",
                        console_offset=4000,
                        fatal=True,
                    )
                ],
            )
        ],
        eta=Eta(finish_at=at(700), what="measuring", done_boots=4, total_boots=6),
    ),
    submission(
        SubmissionState.FINISHED,
        builds=[build(3, A, reused=True), build(4, B)],
        runs=[
            run(
                JobState.FINISHED,
                [
                    boot(1, 0, 0, A),
                    boot(2, 0, 1, B),
                    boot(3, 1, 0, B, outcome=Outcome.FAILED, failure=PANIC, valid=False),
                    boot(4, 1, 0, B, attempt=1, started_at=at(260), finished_at=at(318)),
                    boot(5, 1, 1, A, attempt=1, started_at=at(320), finished_at=at(378)),
                    boot(6, 2, 0, A, started_at=at(380), finished_at=at(428)),
                    boot(7, 2, 1, B, started_at=at(430), finished_at=at(478)),
                ],
                blocks_completed=3,
            )
        ],
        verdicts={Verdict.IMPROVEMENT: 1, Verdict.EQUIVALENT: 2},
    ),
]

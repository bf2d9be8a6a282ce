"""A small lab with a history, written as database rows, for tests of the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts import messages
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import (
    PAIR,
    Arm,
    ArtifactKind,
    BootState,
    DeviceHealth,
    Direction,
    Evidence,
    FindingKind,
    JobState,
    NotMeasuredCause,
    Outcome,
    Question,
    Role,
    RunPurpose,
    Scale,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import ApplyResult, BuildResult, CompilerWarning, Failure, MeasuredTopology, Source
from wqlab_server.models import (
    Apply,
    BlockAttempt,
    Boot,
    BootValue,
    Build,
    Comparison,
    ConsoleChunk,
    Device,
    Finding,
    Lease,
    Run,
    RunAttempt,
    Sample,
    Submission,
    SubmissionBuild,
    Unsupported,
)
from wqlab_server.settings import Settings
from wqlab_server.storage.artifacts import ArtifactStore
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_server.storage.events import RUN_CHANNEL, emit, notify
from wqlab_server.storage.live_data import LiveData
from wqlab_server.submissions import service

from .datafolder import ARCHIVES
from .lab import fill_pool

TINY = """\
name: tiny
summary: two CPUs
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
emulation: {memory_mib: 512}
units: [{name: tiny-1}, {name: tiny-2}]
"""
PLAN = """\
name: flush
summary: count locks
script: run.sh
parser: locks
scenarios: [{name: fsync, summary: files, parameters: {jobs: 8}}]
axes: [{name: scope, values: [cache, system]}]
reference_setting: scope=system
hardware: {settings: [scope=cache, scope=system]}
emulated: {settings: [scope=cache, scope=system], blocks: 2}
metrics:
  - {name: locks, summary: locks per flush, unit: locks, scale: ratio, direction: lower_is_better,
     class: mechanism, taken_from: traced, role_emulated: primary}
  - {name: bw, summary: bandwidth, unit: MiB/s, scale: ratio, direction: higher_is_better,
     class: performance, taken_from: untraced, role_hardware: primary, delta: 1}
"""
FILES = {
    "intake/archives.yaml": ARCHIVES,
    "device-types/tiny.yaml": TINY,
    "kernels/trees.yaml": "default: t\ntrees: [{name: t, summary: s, url: https://example.org/t.git}]\n",
    "kernels/recipes/measure.yaml": "name: measure\nsummary: s\nfragments: [base]\n",
    "kernels/fragments/base.config": "CONFIG_SMP=y\n",
    "testplans/flush/plan.yaml": PLAN,
    "testplans/flush/run.sh": "echo measuring\n",
    "testplans/health-check/plan.yaml": (
        "name: health-check\nsummary: s\nscript: check.sh\nparser: health\nchecks_health: true\n"
        "scenarios: [{name: alive, summary: s}]\nreference_setting: ''\n"
        "hardware: {settings: ['']}\nemulated: {settings: ['']}\nmetrics: []\n"
    ),
    "testplans/health-check/check.sh": "true\n",
}
MBOX = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] wq: faster\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n"


def long_series() -> str:
    """Return an mbox that takes several seconds of CPU time to inspect: 199 mails with 800 diffs each."""
    mail, diff = MBOX.split("\n\n")
    return "".join(mail.replace("[PATCH]", f"[PATCH {n}/200]") + "\n\n---\n" + 800 * diff for n in range(1, 200))


REQUEST = {"series": {"mbox": {"text": MBOX}}, "tree": "t", "targets": [{"plan": "flush", "device_type": "tiny"}]}
TOPOLOGY = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 0], node=[0, 0], package=[0, 0])
PANIC = Failure(kind="kernel", summary="panic in flush", excerpt="Kernel panic - not syncing")


def write_data_folder(root: Path) -> Path:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


class Scene:
    """Writes submissions, builds, runs and boots as rows."""

    def __init__(self, sessions: SessionFactory, data: LiveData, settings: Settings, store: ArtifactStore) -> None:
        self.sessions, self.data, self.settings, self.store = sessions, data, settings, store

    def devices(self, health: DeviceHealth = DeviceHealth.GOOD) -> None:
        with transaction(self.sessions) as session:
            fill_pool(session, self.data.current())
            session.flush()
            for device in session.scalars(select(Device)):
                device.health = health

    def submission(self, owner: str = "someone", request: dict[str, object] | None = None) -> int:
        """Create a submission through the service and return its id."""
        with transaction(self.sessions) as session:
            submission_request = SubmissionRequest.model_validate(request or REQUEST)
            return service.create(session, self.data.current(), self.settings, submission_request, owner).id

    def emit(self, submission_id: int, kind: str, **data: Any) -> None:
        from wqlab_contracts.enums import EventKind

        with transaction(self.sessions) as session:
            emit(session, submission_id, EventKind(kind), **data)

    def finish(self, submission_id: int, outcome: Outcome = Outcome.PASSED, exit_code: int = 0) -> None:
        from wqlab_contracts.enums import EventKind

        with transaction(self.sessions) as session:
            row = session.get_one(Submission, submission_id)
            row.state, row.outcome, row.exit_code = SubmissionState.FINISHED, outcome, exit_code
            row.finished_at = clock(session)
            session.flush()
            emit(session, submission_id, EventKind.SUBMISSION_STATE, state="finished")

    def builds(self, submission_id: int) -> dict[Arm, int]:
        """Finish the apply and both builds. The candidate has one more warning and another configuration."""
        with transaction(self.sessions) as session:
            tree = self.data.current().trees["t"]
            sources = {
                arm: Source(tree=tree, base_commit="a" * 40, tree_oid=oid * 40, commit=oid * 40, release="6.12.0")
                for arm, oid in ((Arm.BASELINE, "b"), (Arm.CANDIDATE, "c"))
            }
            apply = session.scalars(select(Apply).where(Apply.submission_id == submission_id)).one()
            apply.state, apply.outcome = JobState.FINISHED, Outcome.PASSED
            apply.result = ApplyResult(
                outcome=Outcome.PASSED,
                baseline=sources[Arm.BASELINE],
                candidate=sources[Arm.CANDIDATE],
                patches=[messages.PatchSummary(subject="wq: faster", author="A <a@example.org>")],
            )
            known = CompilerWarning(where="kernel/workqueue.c:10:2", text="unused variable", option="-Wunused")
            ids = {}
            for arm, source in sources.items():
                moved = known.model_copy(update={"where": "kernel/workqueue.c:12:2"})
                new = CompilerWarning(where="kernel/workqueue.c:99:1", text="no return", option="-Wreturn")
                build = Build(
                    key=f"{submission_id:063d}{'b' if arm is Arm.BASELINE else 'c'}",
                    source=source,
                    recipe=self.data.current().recipes["measure"],
                    arch="x86_64",
                    emulated=True,
                    fragments={},
                    modules={},
                    toolchain="gcc",
                    trusted=arm is Arm.BASELINE,
                    state=JobState.FINISHED,
                    outcome=Outcome.PASSED,
                    result=BuildResult(
                        outcome=Outcome.PASSED,
                        build_id_gnu=f"{arm.value}-id",
                        release="6.12.0",
                        compiler="gcc 12",
                        duration_s=60.0,
                        warnings=[known] if arm is Arm.BASELINE else [moved, new],
                        artifacts=[
                            self.artifact(ArtifactKind.BUILD_LOG, "build.log", f"log of {arm}\n"),
                            self.artifact(
                                ArtifactKind.CONFIG,
                                "config",
                                "CONFIG_SMP=y\n" + ("" if arm is Arm.BASELINE else "CONFIG_NEW=y\n"),
                            ),
                        ],
                    ),
                )
                session.add(build)
                session.flush()
                session.add(
                    SubmissionBuild(
                        submission_id=submission_id,
                        build_id=build.id,
                        arm=arm,
                        recipe="measure",
                        arch="x86_64",
                        emulated=True,
                    )
                )
                ids[arm] = build.id
            return ids

    def artifact(self, kind: ArtifactKind, name: str, text: str) -> messages.Artifact:
        sha256, size = self.store.put_bytes(text.encode())
        return messages.Artifact(sha256=sha256, size=size, kind=kind, name=name)

    def run_id(self, submission_id: int) -> int:
        with self.sessions() as session:
            return session.scalars(select(Run.id).where(Run.submission_id == submission_id)).one()

    def boot(
        self,
        run_id: int,
        *,
        block: int = 0,
        position: int = 0,
        arm: Arm = Arm.BASELINE,
        attempt: int = 0,
        finished: bool = True,
        valid: bool = True,
        failure: Failure | None = None,
        values: dict[str, float] | None = None,
        seconds: float = 30.0,
    ) -> int:
        """Write a boot on tiny-1 that took `seconds`. `values` get one warm-up and two repetitions per setting."""
        with transaction(self.sessions) as session:
            now = clock(session)
            boot = Boot(
                run_id=run_id,
                block=block,
                position=position,
                arm=arm,
                attempt=attempt,
                device_name="tiny-1",
                fence=1,
                state=BootState.FINISHED if finished else BootState.MEASURING,
                outcome=(Outcome.FAILED if failure else Outcome.PASSED) if finished else None,
                failure=failure,
                valid=valid and finished,
                kernel_boot_id=f"boot-{block}-{arm}",
                token="t",
                build_id_gnu=f"{arm.value}-id",
                release="6.12.0",
                cmdline="quiet",
                topology=TOPOLOGY,
                environment={"clocksource": "tsc"},
                commands={"fsync": "fio --fsync=1"},
                started_at=now - timedelta(seconds=seconds),
                verified_at=now,
                finished_at=now if finished else None,
                overhead_s=1.5,
            )
            session.add(boot)
            session.flush()
            for metric, value in (values or {}).items():
                for setting in ("scope=cache", "scope=system"):
                    for repetition in range(3):
                        session.add(
                            Sample(
                                run_id=run_id,
                                boot_id=boot.id,
                                scenario="fsync",
                                setting=setting,
                                repetition=repetition,
                                metric=metric,
                                value=value,
                                warmup=repetition == 0,
                            )
                        )
            return boot.id

    def measured(self, submission_id: int, locks: dict[Arm, float]) -> int:
        """Write two completed blocks on tiny-1 and a comparison. The candidate panicked in block 0's first attempt."""
        run_id = self.run_id(submission_id)
        failed = self.boot(run_id, arm=Arm.CANDIDATE, valid=False, failure=PANIC)
        whole: list[tuple[int, Arm, int]] = []
        for block in range(2):
            for position, arm in enumerate(PAIR):
                values = {"locks": locks[arm], "bw": 100.0 + block}
                attempt = 1 if block == 0 else 0
                boot_id = self.boot(run_id, block=block, position=position, arm=arm, attempt=attempt, values=values)
                whole.append((block, arm, boot_id))
        with transaction(self.sessions) as session:
            run = session.get_one(Run, run_id)
            run.state, run.outcome, run.attempts, run.device_name = JobState.FINISHED, Outcome.PASSED, 1, "tiny-1"
            session.add(RunAttempt(run_id=run_id, number=1, device_name="tiny-1", fence=1, outcome=Outcome.PASSED))
            session.add_all(
                [
                    BlockAttempt(run_id=run_id, block=0, attempt=0, finished=False, device_name="tiny-1",
                                 arm=Arm.CANDIDATE, failure=PANIC),
                    BlockAttempt(run_id=run_id, block=0, attempt=1, finished=True, device_name="tiny-1"),
                    BlockAttempt(run_id=run_id, block=1, attempt=0, finished=True, device_name="tiny-1"),
                    Finding(run_id=run_id, boot_id=failed, kind=FindingKind.PANIC, title="panic in flush",
                            excerpt="Kernel panic", console_offset=7, fatal=True, at=clock(session)),
                    Unsupported(run_id=run_id, boot_id=failed, arm=Arm.CANDIDATE, scenario="fsync",
                                setting="scope=cache", metric="bw", reason="no counter",
                                cause=NotMeasuredCause.LACKING),
                ]
            )  # fmt: skip
            for _, arm, boot_id in whole:
                session.add(
                    BootValue(
                        run_id=run_id, boot_id=boot_id, scenario="fsync", setting="scope=system", metric="locks",
                        value=locks[arm],
                    )
                )  # fmt: skip
            session.add(comparison(run_id, 0, locks))
        return run_id

    def console(self, boot_id: int, offset: int, data: bytes) -> None:
        with transaction(self.sessions) as session:
            boot = session.get_one(Boot, boot_id)
            session.add(ConsoleChunk(boot_id=boot_id, offset=offset, data=data))
            boot.console_bytes = offset + len(data)
            notify(session, RUN_CHANNEL, boot.run_id)

    def end_boot(self, boot_id: int) -> None:
        with transaction(self.sessions) as session:
            boot = session.get_one(Boot, boot_id)
            boot.state, boot.outcome, boot.finished_at = BootState.FINISHED, Outcome.PASSED, clock(session)
            notify(session, RUN_CHANNEL, boot.run_id)

    def lease(self, run_id: int, device: str) -> None:
        with transaction(self.sessions) as session:
            now = clock(session)
            session.add(
                Lease(device_name=device, run_id=run_id, fence=9, holder="w/1", expires_at=now + timedelta(minutes=1))
            )

    def many(self, count: int, owner: str = "crowd") -> list[int]:
        """Create finished submissions with one run and one regression each."""
        first = self.submission(owner)
        with transaction(self.sessions) as session:
            model = session.get_one(Submission, first)
            run = session.scalars(select(Run).where(Run.submission_id == first)).one()
            session.add(comparison(run.id, 0, {Arm.BASELINE: 5, Arm.CANDIDATE: 9}, Verdict.REGRESSION))
            ids = [first]
            for number in range(1, count):
                copy = Submission(
                    request=model.request, owner=owner, title=f"wq: number {number}", series_key="wq: faster", tree="t",
                    priority=50, state=SubmissionState.FINISHED, outcome=Outcome.PASSED, exit_code=1,
                )  # fmt: skip
                session.add(copy)
                session.flush()
                ids.append(copy.id)
                session.add(copied := _copy_run(run, copy.id))
                session.flush()
                session.add(comparison(copied.id, 0, {Arm.BASELINE: 5, Arm.CANDIDATE: 9}, Verdict.REGRESSION))
            return ids


def _copy_run(run: Run, submission_id: int) -> Run:
    names: Sequence[str] = (
        "owner", "priority", "device_type", "device_spec", "plan_name", "plan", "profile", "files", "seed", "blocks",
        "recipe", "fragments", "modules",
    )  # fmt: skip
    return Run(submission_id=submission_id, purpose=RunPurpose.MEASURE, **{name: getattr(run, name) for name in names})


def comparison(
    run_id: int, position: int, locks: dict[Arm, float], verdict: Verdict = Verdict.IMPROVEMENT
) -> Comparison:
    data = api_report.Comparison(
        plan="flush",
        device_type="tiny",
        scenario="fsync",
        setting="scope=system",
        question=Question.KERNEL,
        reference="baseline",
        metric="locks",
        unit="locks",
        scale=Scale.RATIO,
        direction=Direction.LOWER_IS_BETTER,
        role=Role.PRIMARY,
        evidence=Evidence.MECHANISM,
        baseline=api_report.ArmSummary(mean=locks[Arm.BASELINE], stddev=0.0, n=2),
        candidate=api_report.ArmSummary(mean=locks[Arm.CANDIDATE], stddev=0.0, n=2),
        exact=True,
        verdict=verdict,
        reason=f"exactly {locks[Arm.BASELINE]:.0f} and {locks[Arm.CANDIDATE]:.0f}",
    )
    return Comparison(
        run_id=run_id, position=position, question=data.question, role=data.role, verdict=verdict, data=data
    )


def part_of(session: Session, submission_id: int) -> list[Run]:
    return list(session.scalars(select(Run).where(Run.submission_id == submission_id)))

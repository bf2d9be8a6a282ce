"""A folder of `wqlab ab` with a plan of the data folder, and a backend with scripted values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from wqlab_client.ab.job import emulated_device, make_job
from wqlab_client.ab.state import KernelNote, Plan, StateFolder
from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, ErrorKind, FindingKind, Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    Failure,
    Finding,
    Kernel,
    MeasuredTopology,
    Progress,
    RunJob,
    RunResult,
    Sample,
    Samples,
)
from wqlab_worker.backends.interface import Cancel, EventSink

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 30, 9, tzinfo=UTC)
BUILD_ID = {Arm.BASELINE: "aa" * 20, Arm.CANDIDATE: "bb" * 20}
RELEASE = {Arm.BASELINE: "6.12.1", Arm.CANDIDATE: "6.12.1-patched"}
METRIC = "context_switches_per_1000_messages"
TOPOLOGY = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 0], node=[0, 0], package=[0, 0])
PANIC = "Kernel panic - not syncing: Fatal exception"


def begun(path: Path, blocks: int = 6, arms: Sequence[Arm] = PAIR) -> StateFolder:
    """Return a folder in which nothing was measured yet: hackbench on the emulated type tiny."""
    folder = StateFolder(path)
    for each in ("consoles", "output"):
        (path / each).mkdir()
    data = load_data(ROOT)
    device_type = data.device_types["tiny"]
    kernels = {}
    for arm in arms:
        image = path / f"{arm.value}.image"
        image.write_bytes(arm.value.encode())
        artifact = folder.add(image, arm, "image", ArtifactKind.KERNEL)
        kernels[arm] = Kernel(build_id_gnu=BUILD_ID[arm], release=RELEASE[arm], image=artifact, recipe="given")
    plan = data.plans["hackbench"].on(device_type).measured(["pipes"], True)
    device = emulated_device(device_type, "")
    job = make_job(data, device_type, device, plan, kernels, seed=7, blocks=blocks, settings=[], parameters={})
    notes = {arm: KernelNote(name=f"/boot/vmlinuz-{RELEASE[arm]}") for arm in arms}
    folder.write_plan(
        Plan(created_at=START, target="qemu", device_type=device_type, kernels=notes, job=job, accelerator="tcg")
    )
    folder.make_key()
    return folder


@dataclass
class ScriptedBackend:
    """Backend whose boots measure `value(arm, block)`.

    `panics`: arms that panic in every boot. `stop_in`: block in which the run is canceled. `late`: (block, attempt)
    of which the candidate reports a panic behind its last script.
    """

    value: Callable[[Arm, int], float] = lambda arm, block: 100.0 + block
    panics: frozenset[Arm] = frozenset()
    stop_in: int | None = None
    late: frozenset[tuple[int, int]] = frozenset()
    executed: list[list[tuple[int, int]]] = field(default_factory=list)
    """Block and first attempt of the blocks of each call."""

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        self.executed.append([(each.block, each.first_attempt) for each in remaining])
        for plan in remaining:
            if failure := self._block(plan, emit):
                return RunResult(
                    outcome=Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED,
                    failure=failure,
                    arm=Arm.CANDIDATE if failure.kind is ErrorKind.KERNEL else None,
                )
        return RunResult(outcome=Outcome.PASSED)

    def _block(self, plan: BlockPlan, emit: EventSink) -> Failure | None:
        place = {"block": plan.block, "attempt": plan.first_attempt}
        for position, arm in enumerate(plan.arms):
            key = BootKey(position=position, arm=arm, **place)
            if failure := self._boot(key, emit):
                against = arm if failure.counts_against_arm else None
                emit.event(BlockDiscarded(at=START, arm=against, failure=failure, **place))
                return failure
        emit.event(BlockFinished(at=START, **place))
        return None

    def _boot(self, key: BootKey, emit: EventSink) -> Failure | None:
        emit.event(BootStarted(at=START, boot=key))
        emit.event(Progress(at=START, text=f"block {key.block + 1}", done=0, total=1))
        emit.console(key, 0, b"Linux version 6.12.1\r\n")
        if self.stop_in == key.block:
            return Failure(kind=ErrorKind.CANCELED, summary="interrupted")
        emit.event(
            BootVerified(
                at=START,
                boot=key,
                kernel_boot_id=f"{key.block}-{key.position}",
                token="t",
                build_id_gnu=BUILD_ID[key.arm],
                release=RELEASE[key.arm],
                cmdline="console=ttyS0",
                topology=TOPOLOGY,
                environment={"governor": "performance"},
                golden_s=0.0,
                kexec_s=3.0,
            )
        )
        if key.arm in self.panics:
            self._report(key, emit)
            failure = Failure(kind=ErrorKind.KERNEL, summary=f"panic: {PANIC}", excerpt=PANIC)
            emit.event(BootFinished(at=START, boot=key, outcome=Outcome.FAILED, failure=failure))
            return failure
        sample = Sample(scenario="pipes", setting="", repetition=0, metric=METRIC, value=self.value(key.arm, key.block))
        emit.event(Samples(at=START, boot=key, samples=[sample], commands={"pipes": "hackbench -p"}, facts={"a": "1"}))
        if (key.block, key.attempt) in self.late and key.arm is Arm.CANDIDATE:
            self._report(key, emit)
        emit.event(BootFinished(at=START, boot=key, outcome=Outcome.PASSED, workload_s=2.0, overhead_s=1.0))
        return None

    def _report(self, key: BootKey, emit: EventSink) -> None:
        emit.event(
            Finding(
                at=START, boot=key, kind=FindingKind.PANIC, title=PANIC, excerpt=PANIC, console_offset=0, fatal=True
            )
        )

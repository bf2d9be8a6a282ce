"""Build the record of a run from its events: boots, blocks, findings and samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wqlab_comparison import Samples
from wqlab_contracts.api.runs import FindingView
from wqlab_contracts.bundle import BlockRecord, BootRecord, RunRecord, UnsupportedRecord
from wqlab_contracts.enums import BootState, ErrorKind, Outcome
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    Failure,
    Finding,
    RunEvent,
    RunJob,
    Sample,
    Unsupported,
)
from wqlab_contracts.messages import Samples as SamplesEvent
from wqlab_contracts.specs import DeviceType

_ONE_RUN = 1


@dataclass
class _Boot:
    id: int
    key: BootKey
    started: BootStarted
    verified: BootVerified | None = None
    finished: BootFinished | None = None
    facts: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unsupported: list[Unsupported] = field(default_factory=list)


@dataclass(frozen=True)
class Recorded:
    """Record of a run, and the samples of its boots that count."""

    record: RunRecord
    samples: Samples | None
    """None if no boot counts."""

    @property
    def finished_blocks(self) -> set[int]:
        """Return the numbers of the blocks that were completed; only their boots are compared."""
        return {each.block for each in self.record.attempts if each.finished}


def record_of(
    job: RunJob, device_type: DeviceType, events: Sequence[RunEvent], outcome: Outcome | None, failure: Failure | None
) -> Recorded:
    """Return the record of a run with these events. `outcome` and `failure`: how it ended; None while it goes on."""
    boots: dict[BootKey, _Boot] = {}
    attempts: dict[tuple[int, int], BlockRecord] = {}
    for event in events:
        if isinstance(event, BootStarted):
            boots.setdefault(event.boot, _Boot(len(boots) + 1, event.boot, event))
        elif isinstance(event, BlockFinished | BlockDiscarded):
            attempts.setdefault((event.block, event.attempt), _attempt(job, event, list(boots.values())))
        elif isinstance(event, BootVerified | SamplesEvent | Unsupported | Finding | BootFinished):
            _add(boots[event.boot], event)
    valid = {place for place, each in attempts.items() if each.finished}
    views = [_view(job, boot, (boot.key.block, boot.key.attempt) in valid) for boot in boots.values()]
    record = RunRecord(
        run_id=_ONE_RUN,
        target=0,
        plan=job.plan,
        profile=job.profile,
        device_type=job.device.device_type,
        device_summary=device_type.summary,
        emulated=device_type.emulated,
        topology=job.device.topology,
        recipe=next(iter(job.kernels.values())).recipe,
        figures=all(kernel.figures for kernel in job.kernels.values()),
        seed=job.seed,
        blocks=[plan.arms for plan in job.blocks],
        outcome=outcome,
        failure=failure,
        compared=failure is None or failure.kind is not ErrorKind.CANCELED,
        byte_identical=False,
        attempts=list(attempts.values()),
        boots=views,
        findings=[_finding_view(each) for boot in boots.values() for each in boot.findings],
        unsupported=[_unsupported(boot, each) for boot in boots.values() for each in boot.unsupported],
    )
    counted = [boot for boot in boots.values() if (boot.key.block, boot.key.attempt) in valid]
    return Recorded(record, _samples(job, device_type, counted))


def _add(boot: _Boot, event: BootVerified | SamplesEvent | Unsupported | Finding | BootFinished) -> None:
    if isinstance(event, BootVerified):
        boot.verified = event
        boot.facts = event.environment | boot.facts
    elif isinstance(event, SamplesEvent):
        # A name that is known keeps its value, as in a lab.
        boot.facts = event.facts | boot.facts
        boot.commands = event.commands | boot.commands
        boot.samples += event.samples
    elif isinstance(event, Unsupported):
        boot.unsupported.append(event)
    elif isinstance(event, Finding):
        boot.findings.append(event)
    else:
        boot.finished = event


def _attempt(job: RunJob, event: BlockFinished | BlockDiscarded, boots: Sequence[_Boot]) -> BlockRecord:
    """Return how an attempt of a block ended. A finished attempt does not count if one of its boots reported a fatal
    error after its last script, when the measuring loop could no longer discard it."""
    arm = failure = None
    if isinstance(event, BlockDiscarded):
        arm, failure = (event.arm if event.failure.counts_against_arm else None), event.failure
    else:
        own = [boot for boot in boots if (boot.key.block, boot.key.attempt) == (event.block, event.attempt)]
        fatal = next((finding for boot in own for finding in boot.findings if finding.fatal), None)
        if fatal is not None:
            arm = fatal.boot.arm
            failure = Failure(
                kind=ErrorKind.KERNEL,
                summary=f"{fatal.kind}: {fatal.title}",
                excerpt=fatal.excerpt,
                stack=fatal.stack,
                defect=fatal.defect,
            )
    return BlockRecord(
        block=event.block,
        attempt=event.attempt,
        finished=failure is None,
        device=job.device.name,
        arm=arm,
        failure=failure,
        at=event.at,
    )


def _view(job: RunJob, boot: _Boot, valid: bool) -> BootRecord:
    verified, finished = boot.verified, boot.finished
    return BootRecord(
        id=boot.id,
        run_id=_ONE_RUN,
        **boot.key.model_dump(),
        device=job.device.name,
        state=BootState.FINISHED,
        outcome=finished.outcome if finished else Outcome.FAILED,
        failure=finished.failure if finished else None,
        valid=valid,
        kernel_boot_id=verified.kernel_boot_id if verified else None,
        token=verified.token if verified else None,
        build_id_gnu=verified.build_id_gnu if verified else None,
        release=verified.release if verified else None,
        cmdline=verified.cmdline if verified else None,
        topology=verified.topology if verified else None,
        environment=boot.facts,
        started_at=boot.started.at,
        finished_at=finished.at if finished else None,
        golden_s=verified.golden_s if verified else None,
        kexec_s=verified.kexec_s if verified else None,
        workload_s=finished.workload_s if finished else None,
        overhead_s=finished.overhead_s if finished else None,
        console_bytes=0,
        console_truncated=False,
        commands=boot.commands,
    )


def _finding_view(finding: Finding) -> FindingView:
    return FindingView(
        kind=finding.kind,
        arm=finding.boot.arm,
        block=finding.boot.block,
        attempt=finding.boot.attempt,
        **finding.model_dump(include={"title", "excerpt", "console_offset", "fatal", "stack", "defect"}),
    )


def _unsupported(boot: _Boot, event: Unsupported) -> UnsupportedRecord:
    cell = event.model_dump(include={"scenario", "setting", "metric", "cause", "reason"})
    return UnsupportedRecord(boot_id=boot.id, arm=boot.key.arm, **cell)


def _samples(job: RunJob, device_type: DeviceType, boots: Sequence[_Boot]) -> Samples | None:
    """Return the samples of these boots, with the metrics described as in the plan; None if there are none."""
    emulated = device_type.emulated
    metrics = {metric.name: metric for metric in job.plan.metrics}
    rows = [(boot, each) for boot in boots for each in boot.samples if each.metric in metrics]
    if not rows:
        return None
    specs = [metrics[each.metric] for _, each in rows]
    described: dict[str, Any] = {
        "unit": [spec.unit for spec in specs],
        "scale": [spec.scale.value for spec in specs],
        "direction": [spec.direction.value for spec in specs],
        "role": [spec.role(emulated).value for spec in specs],
        "evidence": [spec.evidence(emulated).value for spec in specs],
        "delta": [_text(spec.delta) for spec in specs],
        "emulator_delta": [_text(spec.emulator_delta if emulated else None) for spec in specs],
    }
    return Samples.from_columns(
        device_type=job.device.device_type,
        device=job.device.name,
        plan=job.plan.name,
        scenario=[each.scenario for _, each in rows],
        setting=[each.setting for _, each in rows],
        block=[boot.key.block for boot, _ in rows],
        position=[boot.key.position for boot, _ in rows],
        arm=[boot.key.arm.value for boot, _ in rows],
        boot=[str(boot.id) for boot, _ in rows],
        repetition=[each.repetition for _, each in rows],
        warmup=[each.warmup for _, each in rows],
        metric=[each.metric for _, each in rows],
        value=[each.value for _, each in rows],
        **described,
    )


def _text(delta: float | None) -> str:
    return "" if delta is None else repr(delta)

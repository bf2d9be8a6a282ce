"""Send what a claimed run reports: boots, blocks, console, result."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2

from wqlab_contracts.enums import Arm, ErrorKind, FindingKind, Outcome
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
    MeasuredTopology,
    RunJob,
    RunResult,
    Sample,
    Samples,
)

if TYPE_CHECKING:
    from .scripted_worker import ScriptedWorker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOPOLOGY = MeasuredTopology(cpus=4, core=[0, 1, 2, 3], l3=[0, 0, 1, 1], node=[0] * 4, package=[0] * 4)


def failed(kind: ErrorKind, summary: str) -> Failure:
    return Failure(kind=kind, summary=summary, excerpt=f"excerpt of: {summary}")


def infrastructure_result(summary: str = "power switch does not answer", *, suspect: bool = False) -> RunResult:
    """Return the result of a run with an infrastructure failure."""
    return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, summary), device_suspect=suspect)


@dataclass
class RunSession:
    """A claimed run; sends its events one by one."""

    worker: ScriptedWorker
    job: RunJob
    fence: int
    completed: list[int]

    @property
    def remaining(self) -> list[BlockPlan]:
        return [plan for plan in self.job.blocks if plan.block not in self.completed]

    @property
    def first_key(self) -> BootKey:
        """The key of the first boot of block 0."""
        return BootKey(block=0, position=0, arm=self.job.blocks[0].arms[0], attempt=0)

    def send(self, *events: Any, expect: int = 204) -> httpx2.Response:
        body = {"fence": self.fence, "events": [event.model_dump(mode="json") for event in events]}
        return self.worker.post(f"jobs/{self.job.run_id}/events", body, expect)

    def boot_events(self, key: BootKey) -> list[Any]:
        kernel = self.job.kernel(key.arm, key.block)
        plan, repetitions = self.job.plan, self.job.profile.repetitions
        samples = [
            Sample(
                scenario=scenario.name,
                setting=setting,
                repetition=number,
                metric=metric.name,
                value=self.worker.value(key.arm, setting, metric.name, key.block),
                warmup=number < repetitions.warmup,
            )
            for scenario in plan.scenarios
            for setting in self.job.profile.settings
            for metric in plan.metrics
            for number in range(repetitions.warmup + 1)
        ]
        return [
            BootStarted(at=NOW, boot=key),
            BootVerified(
                at=NOW,
                boot=key,
                kernel_boot_id=f"boot {self.job.run_id} {key.block} {key.position} {key.attempt}",
                token=f"token-{key.block}-{key.position}-{key.attempt}",
                build_id_gnu=kernel.build_id_gnu,
                release=kernel.release,
                cmdline="console=ttyS0",
                topology=TOPOLOGY,
                golden_s=9.0,
                kexec_s=7.0,
            ),
            Samples(at=NOW, boot=key, samples=samples, commands={s.name: "fio job" for s in plan.scenarios}),
            BootFinished(at=NOW, boot=key, outcome=Outcome.PASSED, workload_s=3.0, overhead_s=1.0),
        ]

    def send_block(self, plan: BlockPlan, times: int = 1) -> None:
        """Send a whole block, each message `times` times."""
        for position, arm in enumerate(plan.arms):
            key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
            for _ in range(times):
                self.send(*self.boot_events(key))
        for _ in range(times):
            self.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))

    def send_failed_boot(self, plan: BlockPlan, arm: Arm, failure: Failure, attempt: int | None = None) -> None:
        """Send a boot of `arm` that fails with `failure`, and the discarded block."""
        attempt = plan.first_attempt if attempt is None else attempt
        key = BootKey(block=plan.block, position=plan.arms.index(arm), arm=arm, attempt=attempt)
        kernel = failure.kind is ErrorKind.KERNEL
        failed = None if failure.kind is ErrorKind.CANCELED else arm
        finding = Finding(
            at=NOW, boot=key, kind=FindingKind.PANIC, title=failure.summary, excerpt=failure.excerpt,
            console_offset=17, fatal=True,
        )  # fmt: skip
        self.send(
            BootStarted(at=NOW, boot=key),
            *([finding] if kernel else []),
            BootFinished(at=NOW, boot=key, outcome=Outcome.FAILED, failure=failure),
            BlockDiscarded(at=NOW, block=plan.block, attempt=attempt, arm=failed, failure=failure),
        )

    def console(self, key: BootKey, offset: int, data: bytes, expect: int = 200) -> dict[str, Any]:
        body = {
            "fence": self.fence,
            "boot": key.model_dump(mode="json"),
            "offset": offset,
            "data": base64.b64encode(data).decode(),
        }
        answer: dict[str, Any] = self.worker.post(f"jobs/{self.job.run_id}/console", body, expect).json()
        return answer

    def heartbeat(self, expect: int = 200) -> dict[str, Any]:
        answer: dict[str, Any] = self.worker.post(
            f"jobs/{self.job.run_id}/heartbeat", {"fence": self.fence}, expect
        ).json()
        return answer

    def finish(self, result: RunResult | None = None, expect: int = 204) -> httpx2.Response:
        result = result or RunResult(outcome=Outcome.PASSED)
        body = {"fence": self.fence, "result": result.model_dump(mode="json")}
        return self.worker.post(f"jobs/{self.job.run_id}/finish", body, expect)


def passing_run(run: RunSession) -> RunResult:
    for plan in run.remaining:
        run.send_block(plan)
    return RunResult(outcome=Outcome.PASSED)


def results(
    *given: RunResult | Callable[[RunSession], RunResult | None] | None,
) -> Callable[[RunSession], RunResult | None]:
    """Return a handler that gives the results in turn, and repeats the last one."""
    remaining: Sequence[Any] = list(given)

    def next_result(run: RunSession) -> RunResult | None:
        nonlocal remaining
        current, remaining = remaining[0], remaining[1:] or remaining
        result: RunResult | None = current(run) if callable(current) else current
        return result

    return next_result

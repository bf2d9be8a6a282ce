"""Measuring loop: run blocks of alternating boots on one device.

Pure: it takes a device, an event sink and a cancellation, sends events and returns a result; no labgrid, no HTTP, no
clock of its own.

A block is atomic: a failure inside a block discards it. An infrastructure failure is retried once and then returned to
the server. Two kernel failures of the same kind end the run, and so does a workload that fails on the candidate only. A
failure of the lab is never attributed to a kernel.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wqlab_contracts.enums import Arm, ErrorKind, Outcome
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootKey,
    Failure,
    Progress,
    RunJob,
    RunResult,
)

from ..backends.interface import Cancel, EventSink
from .boot import BootFailure, BootRunner, outcome_of
from .device_interface import Device
from .health_check_report import HealthCheckReport
from .script_calls import checks_health

SAME_FAILURE_LIMIT = 2
"""After this many failures with the same signature, a kernel is not booted again."""
FAILURE_LIMIT = 3
"""After this many failures of any kind, a kernel is not booted again."""
INFRASTRUCTURE_RETRIES = 1
"""Retries of one block within one session; the server decides about more, and on which device."""


def measure(
    job: RunJob,
    remaining: Sequence[BlockPlan],
    device: Device,
    emit: EventSink,
    cancel: Cancel,
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunResult:
    """Run the `remaining` blocks in order, then power the device off."""
    try:
        return _Run(job, remaining, device, emit, cancel, clock, now).result()
    finally:
        device.off()


@dataclass
class _Run:
    job: RunJob
    remaining: Sequence[BlockPlan]
    device: Device
    emit: EventSink
    cancel: Cancel
    clock: Callable[[], float]
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        health_check = HealthCheckReport(self.job, self.emit, self.now) if checks_health(self.job) else None
        self._boot_runner = BootRunner(
            self.job, self.device, self.emit, self.cancel, self._report_progress, self.clock, self.now, health_check
        )
        self._failures: Counter[tuple[Arm, str]] = Counter()
        self._failures_of_arm: Counter[Arm] = Counter()
        self._failures_at_boot: Counter[Arm] = Counter()
        self._came_up: set[Arm] = set()
        self._passed: set[Arm] = set()
        """Arms of which a measured boot passed on this device."""
        self._broken: Counter[tuple[Arm, str]] = Counter()
        self._total = sum(len(plan.arms) for plan in self.job.blocks)
        self._done = self._total - sum(len(plan.arms) for plan in self.remaining)

    def result(self) -> RunResult:
        for plan in self.remaining:
            if ended := self._block(plan):
                return ended
        return RunResult(outcome=Outcome.PASSED)

    # --- blocks -------------------------------------------------------------------------------------------------

    def _block(self, plan: BlockPlan) -> RunResult | None:
        """Repeat the block until it is complete; return a result if the run has to end."""
        attempt = plan.first_attempt
        retries = 0
        while True:
            failed_boot = self._attempt(plan, attempt)
            if failed_boot is None:
                self.emit.event(BlockFinished(at=self.now(), block=plan.block, attempt=attempt))
                return None
            # Boots that fail more often on one arm are a result in themselves, unless the lab failed.
            failed = failed_boot.arm if failed_boot.failure.counts_against_arm else None
            self.emit.event(
                BlockDiscarded(
                    at=self.now(), block=plan.block, attempt=attempt, arm=failed, failure=failed_boot.failure
                )
            )
            if failed_boot.failure.kind is ErrorKind.KERNEL:
                ended = self._after_kernel_failure(failed_boot, plan, attempt)
            elif failed_boot.failure.kind is ErrorKind.INFRASTRUCTURE and not self.cancel.is_set():
                retries += 1
                ended = self._attribute_to_variant(failed_boot, plan, attempt)
                if ended is None and retries > INFRASTRUCTURE_RETRIES:
                    ended = _failed(failed_boot)
            else:
                ended = _failed(failed_boot)
            if ended:
                return ended
            attempt += 1

    def _attempt(self, plan: BlockPlan, attempt: int) -> BootFailure | None:
        done = self._done
        for position, arm in enumerate(plan.arms):
            failed_boot = self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt))
            if failed_boot:
                self._done = done
                return failed_boot
            self._done += 1
        return None

    def _boot(self, key: BootKey, *, measured: bool = True) -> BootFailure | None:
        failed_boot = self._boot_runner.run_boot(key, measured=measured)
        if failed_boot is None or not failed_boot.at_boot:
            self._came_up.add(key.arm)
        if failed_boot is None and measured:
            self._passed.add(key.arm)
        return failed_boot

    # --- attribution of failures -----------------------------------------------------------------------------------

    def _after_kernel_failure(self, failed_boot: BootFailure, plan: BlockPlan, attempt: int) -> RunResult | None:
        self._failures[failed_boot.arm, failed_boot.signature] += 1
        self._failures_of_arm[failed_boot.arm] += 1
        self._failures_at_boot[failed_boot.arm] += failed_boot.at_boot
        enough = (
            self._failures[failed_boot.arm, failed_boot.signature] >= SAME_FAILURE_LIMIT
            or self._failures_at_boot[failed_boot.arm] >= SAME_FAILURE_LIMIT
            or self._failures_of_arm[failed_boot.arm] >= FAILURE_LIMIT
        )
        if checks_health(self.job):
            # The golden kernel is known to work: its failure is the device's.
            return _suspect(
                failed_boot.failure, f"the golden kernel failed on this device: {failed_boot.failure.summary}"
            )
        if not enough:
            return None
        other = next((arm for arm in self.job.kernels if arm is not failed_boot.arm), None)
        if other is None or other in (self._came_up if failed_boot.at_boot else self._passed):
            return _failed(failed_boot)
        # A control: the other kernel has not yet come through this place on this device.
        control = self._control_boot(other, plan, attempt, measured=not failed_boot.at_boot)
        if control is None:
            return _failed(failed_boot)
        if control.failure.kind is not ErrorKind.KERNEL:
            return _failed(control)
        place = "comes up" if failed_boot.at_boot else "comes through the workload"
        return _suspect(control.failure, f"neither kernel {place} on this device: {control.failure.summary}")

    def _attribute_to_variant(self, failed_boot: BootFailure, plan: BlockPlan, attempt: int) -> RunResult | None:
        """Attribute a failure that looks like the lab's to the kernel under test; return None if that is not justified.

        It is if the failure occurred twice with the same signature and the baseline passes on the same device.
        """
        if not failed_boot.failure.of_variant:
            return None
        self._broken[failed_boot.arm, failed_boot.signature] += 1
        if failed_boot.arm is Arm.BASELINE or Arm.BASELINE not in self.job.kernels:
            return None
        if (
            self._broken[failed_boot.arm, failed_boot.signature] < SAME_FAILURE_LIMIT
            or self._broken[Arm.BASELINE, failed_boot.signature]
        ):
            return None
        if Arm.BASELINE not in self._passed and self._control_boot(Arm.BASELINE, plan, attempt, measured=True):
            return None
        attributed = failed_boot.failure.model_copy(
            update={
                "kind": ErrorKind.KERNEL,
                "advice": f"{SAME_FAILURE_LIMIT} boots of the {failed_boot.arm.value} failed like this; the baseline "
                "passes on the same device.",
            }
        )
        return RunResult(outcome=Outcome.FAILED, failure=attributed, arm=failed_boot.arm)

    def _control_boot(self, arm: Arm, plan: BlockPlan, attempt: int, *, measured: bool = False) -> BootFailure | None:
        """Boot the other arm once, to find out whether the device works, if no boot of that arm has passed here."""
        position = plan.arms.index(arm) if arm in plan.arms else len(plan.arms)
        return self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt), measured=measured)

    def _report_progress(self, text: str) -> None:
        self.emit.event(Progress(at=self.now(), text=text, done=self._done, total=self._total))


def _failed(failed_boot: BootFailure) -> RunResult:
    return RunResult(
        outcome=outcome_of(failed_boot.failure),
        failure=failed_boot.failure,
        arm=failed_boot.arm if failed_boot.failure.kind is ErrorKind.KERNEL else None,
        device_suspect=failed_boot.suspect,
        equipment_unreachable=failed_boot.unreachable,
    )


def _suspect(failure: Failure, summary: str) -> RunResult:
    attributed = failure.model_copy(update={"kind": ErrorKind.INFRASTRUCTURE, "summary": summary})
    return RunResult(outcome=outcome_of(attributed), failure=attributed, device_suspect=True)

"""The measuring loop: blocks of alternating boots on one device. Pure: a device, an `emit` and a `cancel` come in, events
and a result go out; no labgrid, no HTTP, no clock of its own.

A block is atomic. What fails inside it discards it, and who is to blame decides what follows: an infrastructure failure
is retried once and then handed back to the server; a kernel that dies in the same way twice ends the run, and so does a
candidate on which alone the workload breaks; nothing that the lab did is ever held against a kernel.
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

from ..backends.base import Cancel, Emit
from .boot import Boots, Death, outcome_of
from .device import Device
from .health_check import Walk
from .script_calls import checks_health

SAME_DEATHS = 2
"""A kernel that died so often in the same way is not booted again."""
DEATHS = 3
"""Nor one that died so often, whichever way."""
INFRASTRUCTURE_RETRIES = 1
"""Of one block, within one session; the server decides about more, and on which unit."""


def measure(
    job: RunJob,
    remaining: Sequence[BlockPlan],
    device: Device,
    emit: Emit,
    cancel: Cancel,
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunResult:
    """Runs `remaining` in their order and leaves the device off."""
    try:
        return _Run(job, remaining, device, emit, cancel, clock, now).result()
    finally:
        device.off()


@dataclass
class _Run:
    job: RunJob
    remaining: Sequence[BlockPlan]
    device: Device
    emit: Emit
    cancel: Cancel
    clock: Callable[[], float]
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
        walk = Walk(self.job, self.emit, self.now) if checks_health(self.job) else None
        self._boots = Boots(self.job, self.device, self.emit, self.cancel, self._say, self.clock, self.now, walk)
        self._deaths: Counter[tuple[Arm, str]] = Counter()
        self._deaths_of: Counter[Arm] = Counter()
        self._boot_deaths: Counter[Arm] = Counter()
        self._came_up: set[Arm] = set()
        self._passed: set[Arm] = set()
        """Arms of which a boot has come through everything on this unit."""
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
        """Repeats the block until it is whole; a result when the run has to end."""
        attempt = plan.first_attempt
        retries = 0
        while True:
            death = self._attempt(plan, attempt)
            if death is None:
                self.emit.event(BlockFinished(at=self.now(), block=plan.block, attempt=attempt))
                return None
            # Whatever the failure's kind: boots that fail more often on one arm are a finding of their own.
            failed = None if death.failure.kind is ErrorKind.CANCELED else death.arm
            self.emit.event(
                BlockDiscarded(at=self.now(), block=plan.block, attempt=attempt, arm=failed, failure=death.failure)
            )
            if death.failure.kind is ErrorKind.KERNEL:
                ended = self._after_kernel_death(death, plan, attempt)
            elif death.failure.kind is ErrorKind.INFRASTRUCTURE and not self.cancel.is_set():
                retries += 1
                ended = self._of_candidate(death, plan, attempt)
                if ended is None and retries > INFRASTRUCTURE_RETRIES:
                    ended = _failed(death)
            else:
                ended = _failed(death)
            if ended:
                return ended
            attempt += 1

    def _attempt(self, plan: BlockPlan, attempt: int) -> Death | None:
        done = self._done
        for position, arm in enumerate(plan.arms):
            death = self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt))
            if death:
                self._done = done
                return death
            self._done += 1
        return None

    def _boot(self, key: BootKey, *, measured: bool = True) -> Death | None:
        death = self._boots.make(key, measured=measured)
        if death is None or not death.at_boot:
            self._came_up.add(key.arm)
        if death is None and measured:
            self._passed.add(key.arm)
        return death

    # --- blame --------------------------------------------------------------------------------------------------

    def _after_kernel_death(self, death: Death, plan: BlockPlan, attempt: int) -> RunResult | None:
        self._deaths[death.arm, death.signature] += 1
        self._deaths_of[death.arm] += 1
        self._boot_deaths[death.arm] += death.at_boot
        enough = (
            self._deaths[death.arm, death.signature] >= SAME_DEATHS
            or self._boot_deaths[death.arm] >= SAME_DEATHS
            or self._deaths_of[death.arm] >= DEATHS
        )
        if checks_health(self.job):
            # The golden kernel is known to work: whatever kills it is the device's doing.
            return _suspect(death.failure, f"the golden kernel failed on this device: {death.failure.summary}")
        if not enough:
            return None
        other = next((arm for arm in self.job.kernels if arm is not death.arm), None)
        if other and not self._came_up and (control := self._control_boot(other, plan, attempt)):
            return _suspect(control.failure, f"neither kernel comes up on this device: {control.failure.summary}")
        return _failed(death)

    def _of_candidate(self, death: Death, plan: BlockPlan, attempt: int) -> RunResult | None:
        """What looks like the lab's failure is the candidate's when it comes twice in the same way, and the baseline
        passes the same place on the same unit. None when that is not known."""
        if not death.of_variant:
            return None
        self._broken[death.arm, death.signature] += 1
        if death.arm is not Arm.CANDIDATE or Arm.BASELINE not in self.job.kernels:
            return None
        if self._broken[death.arm, death.signature] < SAME_DEATHS or self._broken[Arm.BASELINE, death.signature]:
            return None
        if Arm.BASELINE not in self._passed and self._control_boot(Arm.BASELINE, plan, attempt, measured=True):
            return None
        blamed = death.failure.model_copy(
            update={
                "kind": ErrorKind.KERNEL,
                "advice": f"{SAME_DEATHS} boots of the candidate failed so; on the same unit the baseline passes.",
            }
        )
        return RunResult(outcome=Outcome.FAILED, failure=blamed)

    def _control_boot(self, arm: Arm, plan: BlockPlan, attempt: int, *, measured: bool = False) -> Death | None:
        """Boots the other arm, once, when it was not seen working on this device: blame needs a device that works."""
        position = plan.arms.index(arm) if arm in plan.arms else len(plan.arms)
        return self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt), measured=measured)

    def _say(self, text: str) -> None:
        self.emit.event(Progress(at=self.now(), text=text, done=self._done, total=self._total))


def _failed(death: Death) -> RunResult:
    return RunResult(outcome=outcome_of(death.failure), failure=death.failure, device_suspect=death.suspect)


def _suspect(failure: Failure, summary: str) -> RunResult:
    blamed = failure.model_copy(update={"kind": ErrorKind.INFRASTRUCTURE, "summary": summary})
    return RunResult(outcome=outcome_of(blamed), failure=blamed, device_suspect=True)

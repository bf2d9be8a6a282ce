"""The measuring loop: blocks of alternating boots on one board. Pure: a board, an `emit` and a `cancel` come in, events
and a result go out; no labgrid, no HTTP, no clock of its own.

A block is atomic. What fails inside it discards it, and who is to blame decides what follows: an infrastructure failure
is retried once and then handed back to the server; a kernel that dies in the same way twice ends the run, and so does a
candidate on which alone the workload breaks; nothing that the lab did is ever held against a kernel.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn

from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, FindingKind, Outcome, RunPurpose, TraceMode
from wqlab_contracts.messages import (
    EXCERPT_LIMIT,
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    Failure,
    Finding,
    Progress,
    RunJob,
    RunResult,
    Sample,
    Samples,
    Unsupported,
)
from wqlab_contracts.specs import Scenario, parse_setting

from .backends.base import Cancel, Emit
from .boards import Board, BoardFailure, Booted, ScriptOutput
from .collect import Measurement, Records, collect, read_records

SETUP_TIMEOUT_S = 600.0
SAME_DEATHS = 2
"""A kernel that died so often in the same way is not booted again."""
DEATHS = 3
"""Nor one that died so often, whichever way."""
INFRASTRUCTURE_RETRIES = 1
"""Of one block, within one session; the server decides about more, and on which unit."""
RAW_OUTPUT_LIMIT = 4 << 20


@dataclass
class _Boot:
    key: BootKey
    started: float
    booted: Booted | None = None
    workload_s: float = 0.0
    raw: list[str] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def overhead_s(self, ended: float) -> float:
        """Seconds that were neither golden boot, kexec boot nor workload."""
        boots = self.booted.golden_s + self.booted.kexec_s if self.booted else 0.0
        return max(0.0, ended - self.started - boots - self.workload_s)


@dataclass(frozen=True)
class _Death:
    """Why a block was discarded."""

    arm: Arm
    failure: Failure
    signature: str
    at_boot: bool
    suspect: bool
    of_variant: bool


def measure(
    job: RunJob,
    remaining: Sequence[BlockPlan],
    board: Board,
    emit: Emit,
    cancel: Cancel,
    *,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunResult:
    """Runs `remaining` in their order and leaves the board off."""
    try:
        return _Run(job, remaining, board, emit, cancel, clock, now).result()
    finally:
        board.off()


class Cell(NamedTuple):
    """What is measured together within a boot."""

    setting: str
    scenario: Scenario

    def __str__(self) -> str:
        return f"{self.scenario.name} {self.setting}".strip()


class Repetition(NamedTuple):
    number: int
    """Counted through the whole cell: samples of a boot are unique by it."""
    warmup: bool
    traced: bool


def cells(job: RunJob, block: int) -> list[Cell]:
    """In the order of this block: shuffled by the run's seed, the same for both arms."""
    order = [Cell(setting, scenario) for setting in job.profile.settings for scenario in job.plan.scenarios]
    random.Random(f"{job.seed}/{block}").shuffle(order)  # noqa: S311 - an order, not a secret
    return order


def repetitions(job: RunJob) -> Iterator[Repetition]:
    """Warm-ups (untraced), then untraced, then traced ones."""
    counts = job.profile.repetitions
    phases = [(True, False)] * counts.warmup + [(False, False)] * counts.untraced + [(False, True)] * counts.traced
    for number, (warmup, traced) in enumerate(phases):
        yield Repetition(number, warmup, traced)


@dataclass
class _Run:
    job: RunJob
    remaining: Sequence[BlockPlan]
    board: Board
    emit: Emit
    cancel: Cancel
    clock: Callable[[], float]
    now: Callable[[], datetime]

    def __post_init__(self) -> None:
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

    @property
    def _checks_health(self) -> bool:
        """The script's complaints are about the board then."""
        return self.job.purpose is RunPurpose.HEALTH_CHECK

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
            blamed = death.arm if death.failure.kind is ErrorKind.KERNEL else None
            self.emit.event(
                BlockDiscarded(at=self.now(), block=plan.block, attempt=attempt, arm=blamed, failure=death.failure)
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

    def _attempt(self, plan: BlockPlan, attempt: int) -> _Death | None:
        done = self._done
        for position, arm in enumerate(plan.arms):
            death = self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt))
            if death:
                self._done = done
                return death
            self._done += 1
        return None

    def _after_kernel_death(self, death: _Death, plan: BlockPlan, attempt: int) -> RunResult | None:
        self._deaths[death.arm, death.signature] += 1
        self._deaths_of[death.arm] += 1
        self._boot_deaths[death.arm] += death.at_boot
        enough = (
            self._deaths[death.arm, death.signature] >= SAME_DEATHS
            or self._boot_deaths[death.arm] >= SAME_DEATHS
            or self._deaths_of[death.arm] >= DEATHS
        )
        if self._checks_health:
            # The golden kernel is known to work: whatever kills it is the board's doing.
            return _suspect(death.failure, f"the golden kernel failed on this board: {death.failure.summary}")
        if not enough:
            return None
        other = next((arm for arm in self.job.kernels if arm is not death.arm), None)
        if other and not self._came_up and (control := self._control_boot(other, plan, attempt)):
            return _suspect(control.failure, f"neither kernel comes up on this board: {control.failure.summary}")
        return _failed(death)

    def _of_candidate(self, death: _Death, plan: BlockPlan, attempt: int) -> RunResult | None:
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

    def _control_boot(self, arm: Arm, plan: BlockPlan, attempt: int, *, measured: bool = False) -> _Death | None:
        """Boots the other arm, once, when it was not seen working on this board: blame needs a board that works."""
        position = plan.arms.index(arm) if arm in plan.arms else len(plan.arms)
        return self._boot(BootKey(block=plan.block, position=position, arm=arm, attempt=attempt), measured=measured)

    # --- one boot -----------------------------------------------------------------------------------------------

    def _boot(self, key: BootKey, *, measured: bool = True) -> _Death | None:
        boot = _Boot(key, self.clock())
        self.emit.event(BootStarted(at=self.now(), boot=key))
        self._say(f"{self._where(key)}: cold boot", key)
        failed: BoardFailure | None = None
        at_boot = True
        try:
            self._check_canceled()
            boot.booted = self.board.boot(key, self.job.kernels[key.arm])
            at_boot = False
            self._came_up.add(key.arm)
            self._setup(boot, boot.booted, run_script=measured)
            if measured:
                self._measure(boot, boot.booted)
        except BoardFailure as error:
            failed = error
        finished = self.clock()
        # The power goes off before the boot is called finished: a report that the console still holds belongs to it.
        self.board.off()
        self._keep_raw_output(boot)
        self.emit.event(
            BootFinished(
                at=self.now(),
                boot=key,
                outcome=_outcome(failed.failure) if failed else Outcome.PASSED,
                failure=failed.failure if failed else None,
                workload_s=round(boot.workload_s, 3),
                overhead_s=round(boot.overhead_s(finished), 3),
            )
        )
        if failed is None:
            if measured:
                self._passed.add(key.arm)
            return None
        return _Death(key.arm, failed.failure, failed.signature, at_boot, failed.suspect, failed.of_variant)

    def _setup(self, boot: _Boot, booted: Booted, *, run_script: bool) -> None:
        """Tells that the boot was verified, with what the plan's setup found out about the environment."""
        facts: dict[str, str] = {}
        try:
            if run_script:
                self._say(f"{self._where(boot.key)}: setup", boot.key)
                facts = dict(self._plain_script(boot, "setup").facts)
        finally:
            self.emit.event(
                BootVerified(
                    at=self.now(),
                    boot=boot.key,
                    kernel_boot_id=booted.kernel_boot_id,
                    token=booted.token,
                    build_id_gnu=booted.build_id_gnu,
                    release=booted.release,
                    cmdline=booted.cmdline,
                    topology=booted.topology,
                    environment={**booted.environment, **facts},
                    golden_s=round(booted.golden_s, 3),
                    kexec_s=round(booted.kexec_s, 3),
                )
            )

    def _measure(self, boot: _Boot, booted: Booted) -> None:
        order = cells(self.job, boot.key.block)
        for number, cell in enumerate(order, start=1):
            self._say(f"{self._where(boot.key)}: {cell} ({number} of {len(order)})", boot.key)
            self._cell(boot, booted, cell)
        self._plain_script(boot, "teardown")

    def _cell(self, boot: _Boot, booted: Booted, cell: Cell) -> None:
        told: set[str] = set()
        for repetition in repetitions(self.job):
            self._check_canceled()
            output = self._script(boot, "measure", self._parameters(cell, repetition.traced), cell)
            measurement = collect(
                output.stdout,
                self.job.plan.parser,
                self.job.plan,
                booted.topology,
                repetition.traced,
                setting=cell.setting,
            )
            self._check(boot, f"measure {cell}", output, measurement.failure)
            for metric, reason in measurement.unsupported:
                if metric is None:
                    self._unsupported(boot, cell, None, reason)
                    return
                if metric not in told:
                    told.add(metric)
                    self._unsupported(boot, cell, metric, reason)
            self._samples(boot, cell, repetition, measurement)

    def _samples(self, boot: _Boot, cell: Cell, repetition: Repetition, measurement: Measurement) -> None:
        mode = TraceMode.TRACED if repetition.traced else TraceMode.UNTRACED
        samples = [
            Sample(
                scenario=cell.scenario.name,
                setting=cell.setting,
                repetition=repetition.number,
                metric=metric.name,
                value=measurement.values[metric.name],
                warmup=repetition.warmup,
            )
            for metric in self.job.plan.metrics
            if metric.taken_from is mode and metric.name in measurement.values
        ]
        commands = {}
        if measurement.command and cell.scenario.name not in boot.commands:
            boot.commands[cell.scenario.name] = commands[cell.scenario.name] = measurement.command
        facts = {name: value for name, value in measurement.facts.items() if boot.facts.get(name) != value}
        boot.facts |= facts
        if samples or commands or facts:
            self.emit.event(Samples(at=self.now(), boot=boot.key, samples=samples, commands=commands, facts=facts))

    # --- the script ---------------------------------------------------------------------------------------------

    def _parameters(self, cell: Cell | None = None, traced: bool = False) -> dict[str, str]:
        """Environment of the script: profile parameters, the scenario's over them, and what is being measured."""
        chosen = {**self.job.profile.parameters, **(cell.scenario.parameters if cell else {})}
        environment = {name.upper(): str(value) for name, value in chosen.items()}
        environment["WQLAB_SCRATCH"] = " ".join(self.job.device.scratch)
        if cell:
            environment["SCENARIO"] = cell.scenario.name
            environment["TRACE"] = "1" if traced else "0"
            for knob, value in parse_setting(cell.setting).items():
                environment[f"SETTING_{knob.upper()}"] = value
        return environment

    def _script(
        self, boot: _Boot, action: str, environment: Mapping[str, str], cell: Cell | None = None
    ) -> ScriptOutput:
        limit_s = float(self.job.profile.measure_timeout_s) if cell else SETUP_TIMEOUT_S
        started = self.clock()
        try:
            output = self.board.script(action, environment, limit_s)
        finally:
            boot.workload_s += self.clock() - started
        wanted = " ".join(f"{name}={value}" for name, value in sorted(environment.items()))
        boot.raw.append(f"# {action} {wanted}\n# exit status {output.status}, {output.seconds:.2f} s\n{output.stdout}")
        if output.stderr:
            boot.raw.append("# stderr\n" + output.stderr)
        return output

    def _plain_script(self, boot: _Boot, action: str) -> Records:
        """Setup or teardown. Raises BoardFailure when the script says that it did not do its work."""
        output = self._script(boot, action, self._parameters())
        records = read_records(output.stdout)
        self._check(boot, action, output, records.failure)
        return records

    def _check(self, boot: _Boot, what: str, output: ScriptOutput, failure: Failure | None) -> None:
        """A failure that was told says more than the exit status."""
        if failure:
            self._fail(
                boot, failure if failure.excerpt else failure.model_copy(update={"excerpt": output.stderr[-4000:]})
            )
        if output.status:
            raise BoardFailure(
                Failure(
                    kind=ErrorKind.INFRASTRUCTURE,
                    summary=f"the plan's script did not measure: `{what}` ended with exit status {output.status}",
                    excerpt=(output.stderr or output.stdout)[-4000:],
                ),
                suspect=self._checks_health,
                of_variant=True,
            )

    def _fail(self, boot: _Boot, failure: Failure) -> NoReturn:
        """A workload whose own verification failed is a finding against the kernel."""
        if failure.kind is not ErrorKind.KERNEL:
            raise BoardFailure(failure, suspect=self._checks_health, of_variant=True)
        self.emit.event(
            Finding(
                at=self.now(),
                boot=boot.key,
                kind=FindingKind.WRONG_RESULT,
                title=failure.summary[:300],
                excerpt=failure.excerpt[-EXCERPT_LIMIT:],
                console_offset=0,
                fatal=True,
            )
        )
        raise BoardFailure(failure, signature=FindingKind.WRONG_RESULT.value)

    # --- telling ------------------------------------------------------------------------------------------------

    def _check_canceled(self) -> None:
        if self.cancel.failure:
            raise BoardFailure(self.cancel.failure)

    def _unsupported(self, boot: _Boot, cell: Cell, metric: str | None, reason: str) -> None:
        self.emit.event(
            Unsupported(
                at=self.now(),
                boot=boot.key,
                scenario=cell.scenario.name,
                setting=cell.setting,
                metric=metric,
                reason=reason,
            )
        )

    def _keep_raw_output(self, boot: _Boot) -> None:
        if not boot.raw:
            return
        key = boot.key
        name = f"output-block{key.block}-{key.position}-{key.arm.value}-attempt{key.attempt}.txt"
        data = "\n".join(boot.raw).encode()[:RAW_OUTPUT_LIMIT]
        self.emit.artifact(ArtifactKind.RAW_OUTPUT, name, data)

    def _where(self, key: BootKey) -> str:
        again = f", attempt {key.attempt + 1}" if key.attempt else ""
        return f"block {key.block + 1} of {len(self.job.blocks)}, {key.arm.value}{again}"

    def _say(self, text: str, key: BootKey) -> None:
        self.emit.event(Progress(at=self.now(), text=text, done=self._done, total=self._total))


def _outcome(failure: Failure) -> Outcome:
    return Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED


def _failed(death: _Death) -> RunResult:
    return RunResult(outcome=_outcome(death.failure), failure=death.failure, device_suspect=death.suspect)


def _suspect(failure: Failure, summary: str) -> RunResult:
    blamed = failure.model_copy(update={"kind": ErrorKind.INFRASTRUCTURE, "summary": summary})
    return RunResult(outcome=_outcome(blamed), failure=blamed, device_suspect=True)

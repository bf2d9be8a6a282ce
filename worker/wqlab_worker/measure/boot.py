"""Run one boot: boot and verify the variant, measure its cells, and send events for each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NoReturn

from wqlab_contracts import traced_counts, workqueue_series
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, FindingKind, Outcome, RunPurpose, TraceMode
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import (
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    Failure,
    Finding,
    MeasuredTopology,
    RunJob,
    Sample,
    Samples,
    Unsupported,
)

from ..backends.interface import Cancel, EventSink
from . import disturbance, monitor, tracer, warmup
from .collect import WHOLE_SETTING, Measurement, NotMeasured, Operations, Records, collect, read_records
from .collect import Unsupported as UnsupportedReason
from .counts import collect_counts, operations
from .device_interface import Device, DeviceFailure, ScriptOutput, VerifiedBoot
from .health_check_report import HealthCheckReport
from .raw_output import RawOutput
from .script_calls import (
    SETUP_TIMEOUT_S,
    Cell,
    Repetition,
    cells,
    checks_health,
    is_monitored,
    parameters,
    repetitions,
    warming_cell,
)


@dataclass(frozen=True)
class BootFailure:
    """Failure of a boot."""

    arm: Arm
    failure: Failure
    signature: str
    at_boot: bool
    """True if the boot failed before the kernel under test was verified."""
    suspect: bool
    unreachable: bool = False
    """True if the lab's own equipment did not answer (`DeviceFailure`)."""


@dataclass
class _Boot:
    key: BootKey
    started: float
    booted: VerifiedBoot | None = None
    workload_s: float = 0.0
    raw: RawOutput = field(default_factory=RawOutput)
    commands: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    workqueue_rows: list[workqueue_series.Row] = field(default_factory=list)
    traced_rows: list[traced_counts.Row] = field(default_factory=list)

    def overhead_s(self, ended: float) -> float:
        """Return the seconds that were neither golden boot, kexec boot nor workload."""
        boots = self.booted.golden_s + self.booted.kexec_s if self.booted else 0.0
        return max(0.0, ended - self.started - boots - self.workload_s)


@dataclass(frozen=True)
class BootRunner:
    """Runner of a run's boots, one at a time. `report_progress` takes a text for the run's progress."""

    job: RunJob
    device: Device
    emit: EventSink
    cancel: Cancel
    report_progress: Callable[[str], None]
    clock: Callable[[], float]
    now: Callable[[], datetime]
    health_check: HealthCheckReport | None = None
    """Report of the steps, for a health check."""

    def run_boot(self, key: BootKey, *, measured: bool = True) -> BootFailure | None:
        """Run a boot from the cold device to power off; return its failure, or None.

        Without `measured`, the kernel only has to come up.
        """
        boot = _Boot(key, self.clock())
        self.emit.event(BootStarted(at=self.now(), boot=key))
        start = "cold boot" if self.job.device.own_system is None else "restart"
        self.report_progress(f"{self._describe(key)}: {start}")
        failed: DeviceFailure | None = None
        at_boot = True
        if self.health_check:
            self.health_check.begin()
        try:
            self._check_canceled()
            boot.booted = self.device.boot(key, self.job.kernel(key.arm, key.block))
            at_boot = False
            if self.health_check:
                self.health_check.record_boot(boot.booted)
            unsupported_reason = self._setup(boot, boot.booted, run_script=measured)
            if unsupported_reason:
                for cell in cells(self.job, key.block):
                    self._emit_unsupported(boot, cell, None, unsupported_reason)
            elif measured:
                self._measure(boot, boot.booted)
            if restored := self._restore():
                self.emit.event(Samples(at=self.now(), boot=key, samples=[], facts=restored))
        except DeviceFailure as error:
            failed = error
            if self.health_check:
                self.health_check.record_failure(error)
        finished = self.clock()
        # Power off before BootFinished: a report still on the console belongs to this boot.
        self.device.off()
        self._keep_raw_output(boot)
        self.emit.event(
            BootFinished(
                at=self.now(),
                boot=key,
                outcome=outcome_of(failed.failure) if failed else Outcome.PASSED,
                failure=failed.failure if failed else None,
                workload_s=round(boot.workload_s, 3),
                overhead_s=round(boot.overhead_s(finished), 3),
            )
        )
        if failed is None:
            return None
        return BootFailure(key.arm, failed.failure, failed.signature, at_boot, failed.suspect, failed.unreachable)

    def _restore(self) -> dict[str, str]:
        """Restore the conditions; return facts about that.

        A device that does not answer any more has still measured the boot, and a power cycle follows.
        """
        try:
            return self.device.restore()
        except DeviceFailure as error:
            infrastructure = error.failure.kind is ErrorKind.INFRASTRUCTURE
            if self.cancel.failure or error.place_lost or not infrastructure:
                raise
            return {"conditions put back": f"not read ({error.failure.summary})"}

    def _setup(self, boot: _Boot, booted: VerifiedBoot, *, run_script: bool) -> UnsupportedReason | None:
        """Run the plan's setup and send BootVerified with its facts.

        Return why this device or kernel cannot be measured at all, or None.
        """
        facts: dict[str, str] = {}
        try:
            if not run_script:
                return None
            self.report_progress(f"{self._describe(boot.key)}: setup")
            records = self._run_setup_or_teardown(boot, "setup")
            facts = dict(records.facts)
            return dict(records.unsupported).get(WHOLE_SETTING)
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
                    ran=list(booted.ran),
                )
            )

    def _measure(self, boot: _Boot, booted: VerifiedBoot) -> None:
        order = cells(self.job, boot.key.block)
        if (warming := warming_cell(self.job, boot.key.block)) is not None:
            self.report_progress(f"{self._describe(boot.key)}: warm-up")
            output = self._script(boot, "measure", parameters(self.job, warming))
            failure = self._collect(output, booted.topology, False, warming.setting).failure
            self._check(boot, f"measure {warming}", output, failure)
        for number, cell in enumerate(order, start=1):
            self.report_progress(f"{self._describe(boot.key)}: {cell} ({number} of {len(order)})")
            self._measure_cell(boot, booted, cell)
        self._run_setup_or_teardown(boot, "teardown")

    def _measure_cell(self, boot: _Boot, booted: VerifiedBoot, cell: Cell) -> None:
        reported: set[str] = set()
        measured: list[tuple[Repetition, Measurement]] = []
        beside_monitor: list[Measurement] = []
        warmups: list[Mapping[str, float]] = []
        for repetition in repetitions(self.job, lambda: warmup.is_stable(self.job.plan, warmups)):
            self._check_canceled()
            output = self._script(boot, "measure", parameters(self.job, cell, repetition.traced), cell, repetition)
            measurement = self._collect(output, booted.topology, repetition.traced, cell.setting)
            if self.health_check:
                self.health_check.record_script(read_records(output.stdout), self.device)
            self._check(boot, f"measure {cell}", output, measurement.failure)
            for metric, reason in measurement.unsupported:
                if metric is None:
                    self._emit_unsupported(boot, cell, None, reason)
                    self._emit_samples(boot, cell, measured)
                    return
                if metric not in reported:
                    reported.add(metric)
                    self._emit_unsupported(boot, cell, metric, reason)
            self._emit_facts(boot, cell, measurement)
            if repetition.beside_monitor:
                beside_monitor.append(measurement)
            else:
                measured.append((repetition, measurement))
            if repetition.warmup:
                warmups.append(measurement.values)
        if self.job.profile.repetitions.warmup_most is not None:
            self._emit_fact(boot, f"{warmup.FACT_PREFIX}{cell}", warmup.stability_text(self.job.plan, warmups))
        self._emit_samples(boot, cell, measured)
        if beside_monitor:
            self._emit_disturbance(boot, cell, measured, beside_monitor)

    def _emit_disturbance(
        self,
        boot: _Boot,
        cell: Cell,
        measured: Sequence[tuple[Repetition, Measurement]],
        beside_monitor: Sequence[Measurement],
    ) -> None:
        plain = [
            measurement.values for repetition, measurement in measured if not (repetition.warmup or repetition.traced)
        ]
        text = disturbance.effect_text(self.job.plan, plain, [measurement.values for measurement in beside_monitor])
        if text is not None:
            self._emit_fact(boot, f"{disturbance.FACT_PREFIX}{cell}", text)

    def _emit_fact(self, boot: _Boot, name: str, text: str) -> None:
        self.emit.event(Samples(at=self.now(), boot=boot.key, samples=[], facts={name: text}))

    def _collect(self, output: ScriptOutput, topology: MeasuredTopology, traced: bool, setting: str) -> Measurement:
        plan = self.job.plan
        if plan.is_instrumented:
            return collect_counts(output.stdout, plan, topology, output.counts, traced, setting=setting)
        return collect(output.stdout, plan.parser, plan, topology, traced, setting=setting)

    def _emit_samples(self, boot: _Boot, cell: Cell, measured: Sequence[tuple[Repetition, Measurement]]) -> None:
        """Send the samples of a whole cell.

        A metric without samples in one repetition is left out for the whole boot, so that the better repetitions do not
        stand for all. This does not apply to warm-ups.
        """
        empty = {
            metric for repetition, measurement in measured if not repetition.warmup for metric in measurement.empty
        }
        samples = [
            Sample(
                scenario=cell.scenario.name,
                setting=cell.setting,
                repetition=repetition.number,
                metric=metric.name,
                value=measurement.values[metric.name],
                warmup=repetition.warmup,
            )
            for repetition, measurement in measured
            for metric in self.job.plan.metrics
            if metric.taken_from is (TraceMode.TRACED if repetition.traced else TraceMode.UNTRACED)
            and metric.name in measurement.values
            and metric.name not in empty
        ]
        if samples and self.job.purpose is not RunPurpose.TRACE:
            self.emit.event(Samples(at=self.now(), boot=boot.key, samples=samples))

    def _emit_facts(self, boot: _Boot, cell: Cell, measurement: Measurement) -> None:
        commands = {}
        if measurement.command and cell.scenario.name not in boot.commands:
            boot.commands[cell.scenario.name] = commands[cell.scenario.name] = measurement.command
        facts = {name: value for name, value in measurement.facts.items() if boot.facts.get(name) != value}
        boot.facts |= facts
        if commands or facts:
            self.emit.event(Samples(at=self.now(), boot=boot.key, samples=[], commands=commands, facts=facts))

    # --- the script ---------------------------------------------------------------------------------------------

    def _script(
        self,
        boot: _Boot,
        action: str,
        environment: Mapping[str, str],
        cell: Cell | None = None,
        repetition: Repetition | None = None,
    ) -> ScriptOutput:
        limit_s = float(self.job.profile.measure_timeout_s) if action == "measure" else SETUP_TIMEOUT_S
        monitored = repetition is not None and is_monitored(self.job, repetition)
        started = self.clock()
        try:
            output = self.device.script(action, environment, limit_s, monitored=monitored)
        finally:
            boot.workload_s += self.clock() - started
        if monitored and cell and repetition:
            take = self._take_counts if self.job.purpose is RunPurpose.TRACE else self._take_series
            output = take(boot, cell, repetition, output)
        arguments = " ".join(f"{name}={value}" for name, value in sorted(environment.items()))
        boot.raw.add(f"# {action} {arguments}\n# exit status {output.status}, {output.seconds:.2f} s\n")
        boot.raw.add(output.stdout + "\n")
        if output.stderr:
            boot.raw.add(f"# stderr\n{output.stderr}\n")
        return output

    def _take_series(self, boot: _Boot, cell: Cell, repetition: Repetition, output: ScriptOutput) -> ScriptOutput:
        stdout, series = monitor.split_output(output.stdout)
        if repetition.beside_monitor:
            return replace(output, stdout=stdout)
        phase = "traced" if repetition.traced else "warmup"
        boot.workqueue_rows += monitor.parse_rows(
            series or ["note\t0\tthe monitor printed nothing"],
            cell.scenario.name,
            cell.setting,
            repetition.number,
            phase,
        )
        monitor.truncate_table(boot.workqueue_rows)
        if repetition.traced and tracer.HISTOGRAMS in self.job.files:
            stdout = self._take_waits(boot, cell, repetition, stdout)
        return replace(output, stdout=stdout)

    def _take_waits(self, boot: _Boot, cell: Cell, repetition: Repetition, output: str) -> str:
        """Take how long work items waited, counted beside a traced repetition; return the script's output."""
        stdout, lines = tracer.split_output(output)
        assert boot.booted is not None  # noqa: S101 - a script runs on a booted device
        boot.traced_rows += tracer.parse_rows(
            lines or [f"note\t{tracer.WAITS_NOT_COUNTED}"],
            cell.scenario.name,
            cell.setting,
            boot.booted.topology,
            repetition.number,
        )
        return stdout

    def _take_counts(self, boot: _Boot, cell: Cell, _repetition: Repetition, output: ScriptOutput) -> ScriptOutput:
        """Take what the tracer counted. A boot whose kernel cannot be traced says so in a note and does not fail."""
        stdout, lines = tracer.split_output(output.stdout)
        assert boot.booted is not None  # noqa: S101 - a script runs on a booted device
        place = (cell.scenario.name, cell.setting)
        boot.traced_rows += tracer.parse_rows(
            lines or ["note\tnothing is counted: the tracer printed nothing"], *place, boot.booted.topology
        )
        try:
            completed: Operations | NotMeasured = operations(read_records(stdout), self.job.plan)
        except NotMeasured as error:
            completed = error
        boot.traced_rows.append(tracer.operations_row(completed, *place))
        return replace(output, stdout=stdout)

    def _run_setup_or_teardown(self, boot: _Boot, action: str) -> Records:
        """Run setup or teardown. Raises DeviceFailure if the script reports a failure."""
        output = self._script(boot, action, parameters(self.job))
        records = read_records(output.stdout)
        if records.failure or WHOLE_SETTING not in dict(records.unsupported):
            self._check(boot, action, output, records.failure)
        return records

    def _check(self, boot: _Boot, what: str, output: ScriptOutput, failure: Failure | None) -> None:
        """Raise DeviceFailure if the script reported a failure (preferred, as it says more) or has an exit status."""
        if failure:
            self._fail(
                boot, failure if failure.excerpt else failure.model_copy(update={"excerpt": output.stderr[-4000:]})
            )
        if output.status:
            raise DeviceFailure(
                Failure(
                    kind=ErrorKind.INFRASTRUCTURE,
                    summary=f"the plan's script did not measure: `{what}` ended with exit status {output.status}",
                    excerpt=(output.stderr or output.stdout)[-4000:],
                    of_variant=True,
                ),
                suspect=checks_health(self.job),
            )

    def _fail(self, boot: _Boot, failure: Failure) -> NoReturn:
        """Raise DeviceFailure. A failed verification by the workload itself becomes a finding against the kernel."""
        if failure.kind is not ErrorKind.KERNEL:
            failure = failure.model_copy(update={"of_variant": True})
            raise DeviceFailure(failure, suspect=checks_health(self.job))
        self.emit.event(
            Finding(
                at=self.now(),
                boot=boot.key,
                kind=FindingKind.WRONG_RESULT,
                title=failure.summary[:300],
                excerpt=shorten(failure.excerpt),
                console_offset=0,
                fatal=True,
            )
        )
        raise DeviceFailure(failure, signature=FindingKind.WRONG_RESULT.value)

    # --- events ------------------------------------------------------------------------------------------------

    def _check_canceled(self) -> None:
        if self.cancel.failure:
            raise DeviceFailure(self.cancel.failure)

    def _emit_unsupported(self, boot: _Boot, cell: Cell, metric: str | None, reason: UnsupportedReason) -> None:
        self.emit.event(
            Unsupported(
                at=self.now(),
                boot=boot.key,
                scenario=cell.scenario.name,
                setting=cell.setting,
                metric=metric,
                cause=reason.cause,
                reason=reason,
            )
        )

    def _keep_raw_output(self, boot: _Boot) -> None:
        if boot.workqueue_rows:
            table = workqueue_series.write(boot.workqueue_rows).encode()
            self.emit.artifact(ArtifactKind.WORKQUEUE_SERIES, workqueue_series.file_name(boot.key), table)
        if boot.traced_rows:
            table = traced_counts.write(boot.traced_rows).encode()
            self.emit.artifact(ArtifactKind.TRACED_COUNTS, traced_counts.file_name(boot.key), table)
        if not boot.raw:
            return
        key = boot.key
        name = f"output-block{key.block}-{key.position}-{key.arm.value}-attempt{key.attempt}.txt"
        self.emit.artifact(ArtifactKind.RAW_OUTPUT, name, boot.raw.text())

    def _describe(self, key: BootKey) -> str:
        again = f", attempt {key.attempt + 1}" if key.attempt else ""
        return f"block {key.block + 1} of {len(self.job.blocks)}, {key.arm.value}{again}"


def outcome_of(failure: Failure) -> Outcome:
    """Return the outcome of a run or boot that ended with this failure."""
    return Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED

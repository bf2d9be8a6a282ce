"""Instrumented device: boots that were made ahead, replayed to the measuring loop.

A block's number is its seed, so that both kernels of a block have the same one.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

import structlog

from wqlab_contracts.enums import ArtifactKind, DeviceStep, FindingKind
from wqlab_contracts.instrument import file_name
from wqlab_contracts.messages import BlockPlan, BootKey, Kernel, RunJob

from ...measure.device_interface import DeviceFailure, ScriptOutput, VerifiedBoot
from ..console_tap import ConsoleTap, Wakeup
from ..interface import Cancel, EventSink
from ..unattended.boot_files import ResultsUnreadable, boots_from
from ..unattended.replay import Replay
from ..verify_boot import infrastructure_failure, kernel_failure, verify_variant
from .boot_output import BootOutput, read_output
from .boots import Boots
from .emulator import Ended, read_console
from .guest import clock_problem, token_of
from .profiles import Profiler

log = structlog.get_logger()

POLL_S = 0.5
_KILLED = {-signal.SIGKILL, 128 + signal.SIGKILL}
"""Exit statuses of an emulator that this machine killed, also below bubblewrap. The guest may cause all others."""


class InstrumentedDevice:
    """Implementation of `measure.device_interface.Device`."""

    def __init__(
        self,
        job: RunJob,
        remaining: Sequence[BlockPlan],
        *,
        boots: Boots,
        profiler: Profiler,
        facts: Mapping[str, str],
        emit: EventSink,
        cancel: Cancel,
        wakeup: Wakeup,
    ) -> None:
        self._job = job
        self._remaining = remaining
        self._boots = boots
        self._profiler = profiler
        self._facts = facts
        self._emit = emit
        self._cancel = cancel
        self._wakeup = wakeup
        self._tap = ConsoleTap(None, emit, wakeup)
        self._replay: Replay | None = None
        self._output: BootOutput | None = None
        self._key: BootKey | None = None
        self._boots.plan([(key.arm, key.block) for plan in remaining for key in _keys(plan)])

    # --- Device interface ---------------------------------------------------------------------------------------

    def boot(self, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        self._replay = self._output = None
        self._tap.begin_boot(key)
        self._tap.begin_variant()
        self._boots.plan([(each.arm, each.block) for each in boots_from(key, self._remaining)])
        ended = self._follow(key)
        self._tap.flush()
        if report := self._tap.fatal:
            raise kernel_failure(report)
        output = self._read(ended)
        token = token_of(key.block)
        seen = verify_variant(
            output.results.probe, output.results.probe_stderr, token=token, golden_boot_id="", kernel=kernel,
            device=self._job.device,
        )  # fmt: skip
        if problem := clock_problem(self._job.device, seen.environment):
            raise infrastructure_failure(problem, of_variant=True)
        replay = Replay(self._job, key.block, output.results, self._tap, f"the boot with seed {key.block}")
        read_back = replay.conditions()
        self._keep_profile(key, output)
        self._replay, self._output, self._key = replay, output, key
        return VerifiedBoot(
            kernel_boot_id=seen.boot_id,
            token=token,
            build_id_gnu=seen.build_id_gnu,
            release=seen.release,
            cmdline=seen.cmdline,
            topology=seen.topology,
            environment={**seen.environment, **read_back, **self._facts, "seed": str(key.block)},
            golden_s=0.0,
            kexec_s=0.0,
            console_bytes=self._tap.offset,
            ran=self._profiler.ran(key, output),
        )

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        assert self._replay and self._output  # noqa: S101 - a script runs on a booted device
        number, result = self._replay.next_call(action, environment, timeout_s, monitored)
        window = self._output.windows.get(number)
        return ScriptOutput(
            stdout=result.stdout,
            stderr=result.stderr,
            status=result.status,
            seconds=result.seconds,
            counts=None if window is None or self._key is None else self._profiler.counts(self._key, window),
        )

    def restore(self) -> dict[str, str]:
        """Nothing to restore: the device ends with its boot."""
        return {}

    def wait_for_console(self, text: str, timeout_s: float) -> bool:
        return self._tap.contains(text)

    def off(self) -> None:
        self._tap.end_boot()

    # --- one boot -----------------------------------------------------------------------------------------------

    def _follow(self, key: BootKey) -> Ended:
        """Wait until the boot has ended, and pass its console on meanwhile. Raises DeviceFailure."""
        boot = (key.arm, key.block)
        future, console = self._boots.boot(boot), self._boots.console(boot)
        future.add_done_callback(lambda _: self._wakeup.notify())
        while True:
            complete = self._wakeup.wait_for(lambda: future.done() or self._cancel.is_set(), POLL_S) and future.done()
            if failure := self._cancel.failure:
                raise DeviceFailure(failure)
            if data := read_console(console, self._tap.offset):
                self._tap.feed(data)
            if complete:
                return future.result()

    def _read(self, ended: Ended) -> BootOutput:
        """Return the results of a boot without a fatal kernel report. Raises DeviceFailure."""
        if ended.timed_out:
            hang = f"the kernel did not switch off (the emulator ran for {ended.seconds:.0f} s)"
            raise kernel_failure(self._tap.add_finding(FindingKind.HANG, hang, ""))
        if failure := emulator_failure(ended):
            raise failure
        try:
            return read_output(ended.output)
        except ResultsUnreadable as error:
            if self._tap.ready is None:
                hang = "the kernel ended before its userland was ready"
                raise kernel_failure(self._tap.add_finding(FindingKind.HANG, hang, "")) from error
            raise infrastructure_failure(f"the results of the boot are unreadable: {error}", of_variant=True) from error

    def _keep_profile(self, key: BootKey, output: BootOutput) -> None:
        if (profile := self._profiler.profile(key, output)) is not None:
            self._emit.artifact(ArtifactKind.INSTRUMENT_PROFILE, file_name(key), profile)


def emulator_failure(ended: Ended) -> DeviceFailure | None:
    """Return the failure of an emulator that did not end as it should; None if it did."""
    if ended.out_of_memory:
        what = "the emulator used more memory than any boot needs, and was killed"
        return infrastructure_failure(what, of_variant=True)
    if not ended.status:
        return None
    return infrastructure_failure(
        f"the emulator ended with {_describe(ended.status)}", excerpt=ended.stderr, stage=DeviceStep.POWER,
        suspect=True, of_variant=ended.status not in _KILLED,
    )  # fmt: skip


def _keys(plan: BlockPlan) -> list[BootKey]:
    return [
        BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
        for position, arm in enumerate(plan.arms)
    ]


def _describe(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"

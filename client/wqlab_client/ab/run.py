"""Measure the blocks of a folder that are left, and write the report."""

from __future__ import annotations

import fcntl
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import structlog

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import Failure, Progress, RunResult
from wqlab_worker.backends.ab.emulator import EmulatorBackend
from wqlab_worker.backends.ab.machine import MachineBackend
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.interface import Backend
from wqlab_worker.backends.ssh import public_key_blob

from ..errors import UsageError
from .journal import Journal, read_events, remaining_blocks
from .machine import machine_of
from .record import Recorded, record_of
from .report import write_report
from .state import INITRAMFS, ROOTFS, Plan, StateFolder

MOST_ROUNDS = 3
"""Most times that the blocks left are measured: a fatal report after its last script, for example, discards a block."""


def measure_all(folder: StateFolder, cache: Path, say: Callable[[str], None]) -> Report:
    """Measure the blocks that are left, and return the report.

    Ctrl-C discards the block that is being measured and ends the run, which can be resumed. Raises UsageError if a file
    of the folder was changed.
    """
    plan = folder.read_plan()
    stop = Stop()
    with _log_into(folder), _stop_on_signal(stop, say):
        return _measure(folder, plan, _backend(folder, plan, cache, say), stop, say)


def report_so_far(folder: StateFolder) -> Report:
    """Write the report of the blocks that are finished, without measuring."""
    plan = folder.read_plan()
    return write_report(folder, plan, _recorded(folder, plan, None), datetime.now(UTC))


def _measure(folder: StateFolder, plan: Plan, backend: Backend, stop: Stop, say: Callable[[str], None]) -> Report:
    journal = Journal(folder, lambda progress: say(_progress_line(progress)))
    try:
        journal.close_open_blocks(read_events(folder.events))
        result = RunResult(outcome=Outcome.PASSED)
        for _ in range(MOST_ROUNDS):
            recorded = _recorded(folder, plan, None)
            remaining = remaining_blocks(plan.job, read_events(folder.events), recorded.finished_blocks)
            if not remaining:
                break
            result = backend.execute(plan.job, remaining, journal, stop)
            if result.outcome is not Outcome.PASSED or stop.is_set():
                break
    finally:
        journal.close()
    return write_report(folder, plan, _recorded(folder, plan, result), datetime.now(UTC))


def _recorded(folder: StateFolder, plan: Plan, result: RunResult | None) -> Recorded:
    events = read_events(folder.events)
    if result is None:
        return record_of(plan.job, plan.device_type, events, None, None)
    return record_of(plan.job, plan.device_type, events, result.outcome, result.failure)


def _backend(folder: StateFolder, plan: Plan, cache: Path, say: Callable[[str], None]) -> Backend:
    if plan.accelerator is None:
        return MachineBackend(
            machine_of(folder, plan),
            initramfs={arm: folder.kernel(arm, INITRAMFS) for arm in plan.job.kernels},
            rootfs=folder.path / ROOTFS,
            fetch=folder.artifact,
            public_key=public_key_blob(folder.key.with_suffix(".pub")),
            say=say,
        )
    return EmulatorBackend(
        plan.device_type,
        plan.accelerator,
        initramfs={arm: folder.kernel(arm, INITRAMFS) for arm in plan.job.kernels},
        fetch=folder.artifact,
        cache=cache,
        keyfile=folder.key,
        public_key=public_key_blob(folder.key.with_suffix(".pub")),
    )


def _progress_line(progress: Progress) -> str:
    return f"[{progress.done}/{progress.total}] {progress.text}"


@contextmanager
def _stop_on_signal(stop: Stop, say: Callable[[str], None]) -> Iterator[None]:
    """Request `stop` on the first SIGINT or SIGTERM; the second one ends the program at once."""

    def request(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        say("stopping: this block is discarded. Again: stop at once")
        stop.request(canceled("interrupted"))

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _log_into(folder: StateFolder) -> Iterator[None]:
    """Write the messages of the measuring code into log.txt. Raises UsageError if another program does."""
    with (folder.path / "log.txt").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another `wqlab ab` measures in {folder.path.name}", "wait until it has ended") from None
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.dev.ConsoleRenderer(colors=False),
            ],
            logger_factory=structlog.WriteLoggerFactory(file),
            cache_logger_on_first_use=False,
        )
        yield
    structlog.reset_defaults()


def is_interrupted(failure: Failure | None) -> bool:
    """Return True if a run ended because its user stopped it."""
    return failure is not None and failure.kind is ErrorKind.CANCELED

"""The labgrid backend: start and supervise one session process per run. This module does not import labgrid."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from wqlab_contracts import bench_addresses
from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BlockPlan, Failure, RunJob, RunResult

from ..build.modules import files_for_kernel
from ..measure.script_calls import repetitions
from .interface import Cancel, EventSink
from .session_messages import (
    HELD_PLACES,
    SESSION_MESSAGES,
    ArtifactMessage,
    ClearRequest,
    ConsoleMessage,
    EventMessage,
    HeldPlace,
    Image,
    SessionCommand,
    SessionRequest,
    holder_name,
)

log = structlog.get_logger()

STOP_GRACE_S = 40.0
"""Time between the stop command and the kill; powering off and releasing the place take a few seconds."""
LOAD_CRASH_KERNEL_S = 300.0
"""Longest time to send a crash kernel to a device and to load it: the sum of the session's limits."""
OWN_SYSTEM_GRACE_S = 360.0
"""The same for a device with an operating system of its own, which may have to end its shutdown and get a power cycle:
killed between off and on, the session would leave the machine without power."""
OWN_SYSTEM_WAITS = 7
"""Largest number of times that one boot waits for the device's own system: twice before the power switch is tried, once
after it, twice before the restart, once for a diagnosis, and once at the end."""
CLEAR_TIMEOUT_S = 90.0


class LabgridBackend:
    """`fetch(artifact)` returns the path of a kernel image or module on this machine and checks its hash."""

    def __init__(
        self, *, coordinator: str, state: Path, ssh_key: Path, logs: Path, fence: int, fetch: Callable[[Artifact], Path]
    ) -> None:
        self._coordinator = coordinator
        self._state = state
        self._ssh_key = ssh_key
        self._logs = logs
        self._fence = fence
        self._fetch = fetch

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        holder = holder_name(job.device.lab, job.run_id, self._fence)
        request = SessionRequest(
            job=job,
            remaining=list(remaining),
            images={
                kernel.image.sha256: Image(path=self._fetch(kernel.image), sha256=kernel.image.sha256)
                for arm in job.kernels
                for kernel in job.kernels_of(arm)
            },
            modules={
                arm: {name: base64.b64encode(data) for name, data in files_for_kernel(job, kernel, self._fetch).items()}
                for arm, kernel in job.kernels.items()
            },
            coordinator=self._coordinator,
            holder=holder,
            ssh_key=self._ssh_key,
            lease_s=max(0.0, cancel.holds_until - time.monotonic()),
            facts=emulator_facts(job.device.name, self._state),
        )
        result = self._run_session(request, emit, cancel, hard_limit_s(job, remaining))
        if result is not None:
            return result
        # The session ended without releasing the place; nothing else frees the device before the lease expires.
        clear(
            ClearRequest(
                coordinator=self._coordinator,
                lab=job.device.lab,
                free=[HeldPlace(place=job.device.name, holder=holder)],
                power={job.device.name: job.device.power} if job.device.power else {},
                own_systems={job.device.name} if job.device.own_system else set(),
            )
        )
        failure = cancel.failure or Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary="the device session ended without a result",
            excerpt=_tail(self._log_path(request)),
        )
        outcome = Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED
        return RunResult(outcome=outcome, failure=failure)

    def _log_path(self, request: SessionRequest) -> Path:
        return self._logs / f"run-{request.job.run_id}-{self._fence}.log"

    def _run_session(
        self, request: SessionRequest, emit: EventSink, cancel: Cancel, limit_s: float
    ) -> RunResult | None:
        self._logs.mkdir(parents=True, exist_ok=True)
        with self._log_path(request).open("ab") as errors:
            process = _start("run", errors.fileno())
        ended = threading.Event()
        supervisor = threading.Thread(target=_supervise, args=(process, request, cancel, ended, limit_s), daemon=True)
        supervisor.start()
        try:
            return _read_messages(process, emit)
        finally:
            ended.set()
            _kill_group(process)
            supervisor.join()


def emulator_facts(device: str, state: Path) -> dict[str, str]:
    """Return the emulator of a device of this worker's virtual bench; empty for any other device."""
    try:
        bench = bench_addresses.read(state)
    except FileNotFoundError:
        return {}
    return {"emulator": bench.emulator} if device in bench.devices and bench.emulator else {}


def _start(mode: str, errors: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "wqlab_worker.backends.labgrid_session", mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
    )


def _read_messages(process: subprocess.Popen[bytes], emit: EventSink) -> RunResult | None:
    """Forward the session's messages to `emit`; return its result, or None if it ended without one."""
    assert process.stdout  # noqa: S101 - a pipe
    for line in process.stdout:
        message = SESSION_MESSAGES.validate_json(line)
        if isinstance(message, EventMessage):
            emit.event(message.event)
        elif isinstance(message, ConsoleMessage):
            emit.console(message.boot, message.offset, message.data)
        elif isinstance(message, ArtifactMessage):
            emit.artifact(message.kind, message.name, message.data)
        else:
            return message.result
    return None


def _supervise(
    process: subprocess.Popen[bytes], request: SessionRequest, cancel: Cancel, ended: threading.Event, limit_s: float
) -> None:
    """Send the request, then each extension of the lease. Send a stop once, and kill the session after its grace."""
    deadline = time.monotonic() + limit_s
    known = cancel.holds_until
    stop: Failure | None = None
    try:
        _send(process, request.model_dump_json())
        while not ended.is_set() and stop is None:
            extended = cancel.wait_extension(known, 1.0)
            if extended != known:
                known = extended
                _send(process, SessionCommand(lease_s=max(0.0, known - time.monotonic())).model_dump_json())
            stop = cancel.failure
            if time.monotonic() > deadline:
                stop = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the run took longer than {limit_s:.0f} s")
        if stop is not None:
            _send(process, SessionCommand(stop=stop).model_dump_json())
    except (BrokenPipeError, ValueError):
        return  # the session has ended; the reader of its output notices
    grace_s = OWN_SYSTEM_GRACE_S if request.job.device.own_system else STOP_GRACE_S
    if not ended.wait(grace_s):
        log.error("session does not stop; killing it", holder=request.holder)
        _kill_group(process)


def _send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin  # noqa: S101 - a pipe
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the session and its children (ssh), which share its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        log.debug("session group already gone", pid=process.pid)
    process.wait()


def hard_limit_s(job: RunJob, remaining: Sequence[BlockPlan]) -> float:
    """Return the longest time of these blocks in seconds: each step takes its limit, each block is repeated once."""
    cells = len(job.plan.scenarios) * len(job.profile.settings)
    # One repetition more, which warms the boot.
    measuring = (len(list(repetitions(job))) * cells + 1) * job.profile.measure_timeout_s
    boot: float = job.device.boot.golden_timeout_s + job.device.boot.variant_timeout_s + 600 + measuring
    if job.device.boot.crash_kernel_mib:
        # After a crash the crash kernel has this time twice: until its first line, and until the end of its log.
        boot += LOAD_CRASH_KERNEL_S + 2 * job.device.boot.variant_timeout_s
    if job.device.own_system:
        boot += OWN_SYSTEM_WAITS * job.device.own_system.timeout_s + OWN_SYSTEM_GRACE_S
    return 600.0 + 2 * sum(len(plan.arms) for plan in remaining) * boot


def clear(request: ClearRequest) -> list[HeldPlace]:
    """List or free places of dead sessions, in a separate process; return them, or an empty list after an error.

    The reaper tries again later.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "wqlab_worker.backends.labgrid_session", "clear"],
            input=request.model_dump_json().encode(),
            capture_output=True,
            timeout=CLEAR_TIMEOUT_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        log.error("clearing places failed", error=repr(error), stderr=getattr(error, "stderr", b"")[-2000:])
        return []
    return HELD_PLACES.validate_json(done.stdout)


def _tail(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[-4000:]
    except OSError:
        return ""

"""The labgrid backend: one session process per run, started and watched here; this module imports no labgrid."""

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
from .base import Cancel, Emit
from .session_messages import (
    HELD,
    SAID,
    ArtifactSaid,
    Clearing,
    ConsoleSaid,
    EventSaid,
    Held,
    Image,
    Order,
    Word,
    holder_name,
)

log = structlog.get_logger()

STOP_GRACE_S = 40.0
"""From the word to stop to the kill: powering off and letting the place go take a few seconds."""
CLEAR_TIMEOUT_S = 90.0


class LabgridBackend:
    """`fetch(artifact)` gives a kernel image's or module's path on this machine, its hash checked."""

    def __init__(
        self, *, coordinator: str, state: Path, ssh_key: Path, logs: Path, fence: int, fetch: Callable[[Artifact], Path]
    ) -> None:
        self._coordinator = coordinator
        self._state = state
        self._ssh_key = ssh_key
        self._logs = logs
        self._fence = fence
        self._fetch = fetch

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: Emit, cancel: Cancel) -> RunResult:
        holder = holder_name(job.device.lab, job.run_id, self._fence)
        order = Order(
            job=job,
            remaining=list(remaining),
            images={
                arm: Image(path=self._fetch(kernel.image), sha256=kernel.image.sha256)
                for arm, kernel in job.kernels.items()
            },
            modules={
                arm: {name: base64.b64encode(data) for name, data in files_for_kernel(job, kernel, self._fetch).items()}
                for arm, kernel in job.kernels.items()
            },
            coordinator=self._coordinator,
            holder=holder,
            ssh_key=self._ssh_key,
            lease_s=max(0.0, cancel.holds_until - time.monotonic()),
            facts=facts_of(job.device.name, self._state),
        )
        result = self._session(order, emit, cancel, hard_limit_s(job, remaining))
        if result is not None:
            return result
        # It died without letting go; nobody else frees the device before our lease is over.
        clear(
            Clearing(
                coordinator=self._coordinator,
                lab=job.device.lab,
                free=[Held(place=job.device.name, holder=holder)],
                power={job.device.name: job.device.power} if job.device.power else {},
            )
        )
        failure = cancel.failure or Failure(
            kind=ErrorKind.INFRASTRUCTURE,
            summary="the device session ended without a result",
            excerpt=_tail(self._log_of(order)),
        )
        outcome = Outcome.CANCELED if failure.kind is ErrorKind.CANCELED else Outcome.FAILED
        return RunResult(outcome=outcome, failure=failure)

    def _log_of(self, order: Order) -> Path:
        return self._logs / f"run-{order.job.run_id}-{self._fence}.log"

    def _session(self, order: Order, emit: Emit, cancel: Cancel, limit_s: float) -> RunResult | None:
        self._logs.mkdir(parents=True, exist_ok=True)
        with self._log_of(order).open("ab") as errors:
            process = _start("run", errors.fileno())
        ended = threading.Event()
        minder = threading.Thread(target=_mind, args=(process, order, cancel, ended, limit_s), daemon=True)
        minder.start()
        try:
            return _follow(process, emit)
        finally:
            ended.set()
            _kill_group(process)
            minder.join()


def facts_of(device: str, state: Path) -> dict[str, str]:
    """How the bench beside this worker emulates the device; nothing for a device that is not the bench's."""
    try:
        bench = bench_addresses.read(state)
    except FileNotFoundError:
        return {}
    return {"emulator": bench.emulator} if device in bench.devices and bench.emulator else {}


def _start(mode: str, errors: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "wqlab_worker.backends.session", mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
    )


def _follow(process: subprocess.Popen[bytes], emit: Emit) -> RunResult | None:
    """Passes on what the session says; its result, or None when it ended without one."""
    assert process.stdout  # noqa: S101 - a pipe
    for line in process.stdout:
        said = SAID.validate_json(line)
        if isinstance(said, EventSaid):
            emit.event(said.event)
        elif isinstance(said, ConsoleSaid):
            emit.console(said.boot, said.offset, said.data)
        elif isinstance(said, ArtifactSaid):
            emit.artifact(said.kind, said.name, said.data)
        else:
            return said.result
    return None


def _mind(
    process: subprocess.Popen[bytes], order: Order, cancel: Cancel, ended: threading.Event, limit_s: float
) -> None:
    """Hands over the order, then every extension of the lease; a stop is said once, and enforced after a while."""
    deadline = time.monotonic() + limit_s
    known = cancel.holds_until
    stop: Failure | None = None
    try:
        _say(process, order.model_dump_json())
        while not ended.is_set() and stop is None:
            extended = cancel.wait_extension(known, 1.0)
            if extended != known:
                known = extended
                _say(process, Word(lease_s=max(0.0, known - time.monotonic())).model_dump_json())
            stop = cancel.failure
            if time.monotonic() > deadline:
                stop = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=f"the run took longer than {limit_s:.0f} s")
        if stop is not None:
            _say(process, Word(stop=stop).model_dump_json())
    except (BrokenPipeError, ValueError):
        return  # it has ended; whoever follows its output sees that
    if not ended.wait(STOP_GRACE_S):
        log.error("session does not stop; killing it", holder=order.holder)
        _kill_group(process)


def _say(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin  # noqa: S101 - a pipe
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kills the session and all its children (ssh): they share its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        log.debug("session group already gone", pid=process.pid)
    process.wait()


def hard_limit_s(job: RunJob, remaining: Sequence[BlockPlan]) -> float:
    """Longest time that these blocks can take when every step takes its own limit and every block is repeated once."""
    counts = job.profile.repetitions
    measuring = (
        (counts.warmup + counts.untraced + counts.traced)
        * len(job.plan.scenarios)
        * len(job.profile.settings)
        * job.profile.measure_timeout_s
    )
    boot = job.device.boot.golden_timeout_s + job.device.boot.variant_timeout_s + 600 + measuring
    return 600.0 + 2 * sum(len(plan.arms) for plan in remaining) * boot


def clear(order: Clearing) -> list[Held]:
    """Lists or frees places of dead sessions, in a process of its own. Failing that, an empty list: the reaper comes
    again."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "wqlab_worker.backends.session", "clear"],
            input=order.model_dump_json().encode(),
            capture_output=True,
            timeout=CLEAR_TIMEOUT_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        log.error("clearing places failed", error=repr(error), stderr=getattr(error, "stderr", b"")[-2000:])
        return []
    return HELD.validate_json(done.stdout)


def _tail(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[-4000:]
    except OSError:
        return ""

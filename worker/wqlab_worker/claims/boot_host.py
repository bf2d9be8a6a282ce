"""Make boots for instrumented runs of other hosts, while this build host has nothing else to do.

One thread asks the server for a boot whenever a core is free; each boot has a thread of its own. Its emulator has the
lowest priority of the host, so a build that starts meanwhile gets the cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import httpx
import structlog

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, Failure
from wqlab_contracts.messages.shared_boots import (
    CONSOLE_BYTES,
    OUTPUT_BYTES,
    BootFiles,
    SharedBootClaim,
    SharedBootJob,
    SharedBootResult,
    console_name,
    output_name,
)
from wqlab_contracts.specs import CpuArch

from ..backends.instrumented import single_boot
from ..backends.instrumented.emulator import Ended
from ..settings import Settings
from ..workspace import Workspace
from .heartbeats import Heartbeats, Stop, canceled
from .jobs import connect_server, failure_of
from .server import JobRef, Server, ServerRefused, StaleFence

log = structlog.get_logger()

ASK_INTERVAL_S = 5.0
FAILED_INTERVAL_S = 60.0
"""Pause after a boot or a request for a boot has failed, because the next one would probably fail too."""
BUILD_MIB = 2048
"""Memory that is left free for a build that starts meanwhile."""

MakeBoot = Callable[[SharedBootJob, Workspace, Path, Stop], Ended]
"""Run a boot in a folder, with files of the workspace, until it ends or a stop is requested."""


class BootHost:
    """Makes boots on this host for runs of other hosts, at most `cores` at once.

    `is_idle()` returns True while no build runs here. `emulators()` returns the identity of each installed emulator.
    """

    def __init__(
        self,
        server: Server,
        workspace: Workspace,
        host: str,
        *,
        cores: int,
        is_idle: Callable[[], bool],
        emulators: Callable[[], Mapping[CpuArch, str]],
        make: MakeBoot,
    ) -> None:
        self._server = server
        self._workspace = workspace
        self._host = host
        self._cores = cores
        self._is_idle = is_idle
        self._emulators = emulators
        self._make = make
        self._changed = threading.Condition()
        self._running: dict[Stop, SharedBootJob] = {}
        self._not_before = 0.0
        self._closed = False
        self._thread = threading.Thread(target=self._ask_repeatedly, name="boot host", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop all emulators; their boots are handed out again, or made by the host of their run."""
        with self._changed:
            self._closed = True
            for stop in self._running:
                stop.request(canceled("the build worker stops"))
            self._changed.notify_all()
        self._server.interrupted.set()

    # --- asking -------------------------------------------------------------------------------------------------

    def _ask_repeatedly(self) -> None:
        while not self._closed:
            try:
                # Several build workers of one machine share its cores.
                with self._workspace.try_lock("boot-host") as is_only:
                    while is_only and not self._closed:
                        if not self._ask():
                            self._wait(ASK_INTERVAL_S)
            except Exception as error:
                # Whatever fails here must not end the thread.
                self._back_off()
                if not self._closed:
                    log.warning("cannot ask for boots; it tries again later", error=repr(error))
            self._wait(FAILED_INTERVAL_S)

    def _ask(self) -> bool:
        """Ask for a boot if there is room for one, and start it. Return True if there may be more of them."""
        pledged = sum(single_boot.footprint_mib(job) for job in self._running.values())
        memory = single_boot.largest_guest_mib(BUILD_MIB + pledged)
        if len(self._running) >= self._cores or not memory or not self._is_idle() or monotonic() < self._not_before:
            return False
        asked_at = monotonic()
        emulators = self._emulators()
        claim = self._server.claim_boot(self._host, emulators, memory) if emulators else None
        if claim is None:
            return False
        stop = Stop()
        with self._changed:
            if self._closed:
                return False
            self._running[stop] = claim.job
        threading.Thread(target=self._run, args=(claim, asked_at, stop), name="shared boot", daemon=True).start()
        return True

    def _wait(self, timeout_s: float) -> None:
        """Wait until a boot ends, `close` is called, or `timeout_s` seconds have passed."""
        running = len(self._running)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._running) < running, timeout_s)

    def _back_off(self) -> None:
        self._not_before = monotonic() + FAILED_INTERVAL_S

    # --- one boot -----------------------------------------------------------------------------------------------

    def _run(self, claim: SharedBootClaim, claimed_at: float, stop: Stop) -> None:
        ref = JobRef("boots", claim.job.boot_id, claim.fence)
        try:
            with Heartbeats(self._server, ref, claim.expires_in_s, claimed_at, stop):
                result = self._result(claim.job, ref, stop)
                if stop.failure is None or stop.failure.kind is not ErrorKind.INFRASTRUCTURE:
                    self._server.finish_boot(ref, result)
            if result.outcome is Outcome.FAILED and not stop.is_set():
                self._back_off()
        except StaleFence:
            log.info("boot is not needed any more", boot=str(ref))
        except (httpx.TransportError, ServerRefused) as error:
            self._back_off()
            log.warning("boot not delivered", boot=str(ref), error=repr(error))
        finally:
            with self._changed:
                del self._running[stop]
                self._changed.notify_all()

    def _result(self, job: SharedBootJob, ref: JobRef, stop: Stop) -> SharedBootResult:
        emulator = self._emulators().get(job.device.arch, "none")
        try:
            if emulator != job.emulator:
                raise _NotMade(f"this host has {emulator}, not {job.emulator}")
            scratch = self._workspace.folder("scratch")
            with (
                self._workspace.session() as workspace,
                TemporaryDirectory(prefix=f"boot-{ref.id}-", dir=scratch) as folder,
            ):
                ended = self._make(job, workspace, Path(folder), stop)
                return self._deliver(job, ref, stop, ended, emulator)
        except StaleFence:
            raise
        except Exception as error:
            failure = failure_of(error)
            log.warning("boot not made", boot=str(ref), reason=failure.summary)
            return SharedBootResult(outcome=Outcome.FAILED, failure=failure, emulator=emulator)

    def _deliver(self, job: SharedBootJob, ref: JobRef, stop: Stop, ended: Ended, emulator: str) -> SharedBootResult:
        """Upload the files of a boot whose guest has switched itself off. Raises _NotMade for any other end."""
        if stop.failure:
            raise _NotMade(stop.failure.summary)
        if ended.timed_out or ended.status:
            # The run's own host finds out whether the kernel or this host is at fault.
            end = "did not end in time" if ended.timed_out else f"ended with status {ended.status}"
            raise _NotMade(f"the emulator {end}: {ended.stderr}")
        files: list[Artifact] = []
        for path, limit, name in (
            (ended.console, CONSOLE_BYTES, console_name(job.arm, job.seed)),
            (ended.output, OUTPUT_BYTES, output_name(job.arm, job.seed)),
        ):
            if not path.exists() or path.stat().st_size > limit:
                raise _NotMade(f"{name} is missing or has more than {limit} bytes")
            files.append(self._server.upload(ref, path, ArtifactKind.BOOT_FILE, name))
        console, output = files
        made = BootFiles(console=console, output=output, stderr=ended.stderr, seconds=ended.seconds)
        return SharedBootResult(outcome=Outcome.PASSED, emulator=emulator, files=made)


class _NotMade(Exception):
    def __init__(self, summary: str) -> None:
        super().__init__(summary)
        self.failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=summary)


def start(settings: Settings, is_idle: Callable[[], bool]) -> BootHost | None:
    """Start making boots for runs on other hosts; return None if the settings allow none."""
    available = len(os.sched_getaffinity(0))
    cores = available if settings.boot_cores < 0 else min(settings.boot_cores, available)
    if not cores:
        return None
    server = connect_server(settings)

    def make(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        def fetch(artifact: Artifact) -> Path:
            workspace.use(workspace.path_of(artifact))
            return server.fetch(artifact, workspace.fetched)

        kernel, initramfs = fetch(job.kernel), fetch(job.initramfs)
        return single_boot.make_boot(
            job, kernel=kernel, initramfs=initramfs, cache=settings.cache, scratch=folder, stop=stop
        )

    host = BootHost(
        server,
        Workspace(settings.cache),
        settings.host_id,
        cores=cores,
        is_idle=is_idle,
        emulators=lambda: single_boot.emulators(settings.cache),
        make=make,
    )
    host.start()
    return host

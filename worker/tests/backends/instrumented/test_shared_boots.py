"""A run whose boots are partly made by another host gives what it gives alone, byte for byte."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from wqlab_bench.instrument import identity
from wqlab_contracts.enums import Arm, ArtifactKind, JobState
from wqlab_contracts.messages import Artifact, Kernel, RunJob
from wqlab_contracts.messages.shared_boots import BootFiles, ShareAnswer, SharedBootJob, SharedBootView
from wqlab_worker.backends import instrumented
from wqlab_worker.backends.instrumented import InstrumentedBackend, single_boot
from wqlab_worker.backends.instrumented.emulator import Seeded
from wqlab_worker.backends.instrumented.sharing import Offer
from wqlab_worker.claims.server import sha256_of

from ..conftest import Golden
from .conftest import job_of
from .test_backend import ProfileSink
from .test_backend import run as run_alone

pytestmark = pytest.mark.device
A, B = Arm.BASELINE, Arm.CANDIDATE
Make = Callable[[], InstrumentedBackend]


class FarHost:
    """The server and another host in one. The host has a cache of its own and makes the boot that is needed last."""

    def __init__(self, job: RunJob, kernel: Path, folder: Path, emulator: str, *, dies: bool) -> None:
        self._job = job
        self._kernel = kernel
        self._folder = folder
        self._emulator = emulator
        self._dies = dies
        self._thread = ThreadPoolExecutor(1)
        self._stop = threading.Event()
        self._boots: dict[Seeded, Future[BootFiles]] = {}
        self._files: dict[str, Path] = {}
        self.fetched: list[str] = []

    def share(self, offer: Offer) -> ShareAnswer:
        assert offer.emulator == self._emulator
        busy = any(not future.done() for future in self._boots.values())
        waiting = [(boot.arm, boot.seed) for boot in offer.boots if (boot.arm, boot.seed) not in self._boots]
        if offer.initramfs and waiting and not busy:
            self._boots[waiting[-1]] = self._thread.submit(self._make, waiting[-1], offer)
        return ShareAnswer(hosts=1, boots=[self._view((boot.arm, boot.seed)) for boot in offer.boots])

    def _view(self, boot: Seeded) -> SharedBootView:
        future = self._boots.get(boot)
        made = future is not None and future.done()
        state = JobState.FINISHED if made else JobState.RUNNING if future else JobState.QUEUED
        files = future.result() if future and made else None
        return SharedBootView(arm=boot[0], seed=boot[1], state=state, holder="far/1", files=files)

    def _make(self, boot: Seeded, offer: Offer) -> BootFiles:
        if self._dies:
            self._stop.wait()
        arm, seed = boot
        image = self._artifact(self._files[offer.initramfs[arm]], "initramfs")
        job = SharedBootJob(
            boot_id=1, run_id=self._job.run_id, arm=arm, seed=seed, device=self._job.device,
            kernel=self._job.kernels[arm].image, initramfs=image, layout=offer.layouts.get(arm, ""),
            emulator=self._emulator, limit_s=offer.limit_s,
        )  # fmt: skip
        ended = single_boot.make_boot(
            job, kernel=self._kernel, initramfs=self._files[image.sha256], cache=self._folder, stop=self._stop,
            scratch=self._folder,
        )  # fmt: skip
        return BootFiles(
            console=self._artifact(ended.console, "console"), output=self._artifact(ended.output, "output"),
            stderr=ended.stderr, seconds=ended.seconds,
        )  # fmt: skip

    def _artifact(self, path: Path, name: str) -> Artifact:
        digest = sha256_of(path)
        self._files[digest] = path
        return Artifact(sha256=digest, size=path.stat().st_size, kind=ArtifactKind.BOOT_FILE, name=name)

    def upload(self, path: Path, name: str) -> Artifact:
        return self._artifact(path, name)

    def fetch(self, artifact: Artifact, folder: Path) -> Path:
        self.fetched.append(artifact.name)
        return self._files[artifact.sha256]

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        self._stop.set()
        self._thread.shutdown(cancel_futures=True)


Share = Callable[..., AbstractContextManager[tuple[FarHost, ProfileSink]]]


@pytest.fixture(scope="module")
def job(kernel: Kernel) -> RunJob:
    return job_of(kernel, [[A, B], [B]])


@pytest.fixture(scope="module")
def alone(backend: Make, job: RunJob) -> ProfileSink:
    return run_alone(backend, job)


@pytest.fixture
def shared(backend: Make, job: RunJob, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Share:
    # With as many cores as boots, this host would make all of them.
    monkeypatch.setattr(instrumented, "parallel_boots", lambda memory_mib: 1)

    @contextmanager
    def run(*, dies: bool) -> Iterator[tuple[FarHost, ProfileSink]]:
        far = FarHost(job, golden.kernel, tmp_path, identity.identify(tmp_path, "x86_64"), dies=dies)

        def with_other_host() -> InstrumentedBackend:
            made = backend()
            made._other_hosts = far
            return made

        try:
            yield far, run_alone(with_other_host, job)
        finally:
            far.close()

    return run


def check_equal(sink: ProfileSink, alone: ProfileSink) -> None:
    assert sink.samples() == alone.samples()
    assert sink.consoles == alone.consoles
    assert sink.profiles == alone.profiles
    assert len(sink.profiles) == len(sink.consoles) == 3


@pytest.mark.nightly
def test_run_with_another_host_is_equal_byte_for_byte(shared: Share, alone: ProfileSink) -> None:
    with shared(dies=False) as (far, sink):
        assert far.fetched[:2] == ["console", "output"], "the other host was faster with the last boot"
        check_equal(sink, alone)


@pytest.mark.nightly
def test_nothing_is_lost_with_a_host_that_dies(shared: Share, alone: ProfileSink) -> None:
    with shared(dies=True) as (far, sink):
        assert far.fetched == []
        check_equal(sink, alone)

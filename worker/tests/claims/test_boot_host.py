"""A build host that makes boots for runs on other hosts, with a server of its own and without emulators."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import Arm, ArtifactKind, Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Artifact, DeviceFacts
from wqlab_contracts.messages.shared_boots import (
    BootHostAnswer,
    BootHostRequest,
    FinishSharedBoot,
    SharedBootClaim,
    SharedBootJob,
)
from wqlab_worker.backends.instrumented.emulator import Ended
from wqlab_worker.claims import boot_host
from wqlab_worker.claims.boot_host import BootHost, MakeBoot
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.workspace import Workspace

from .fakelab import server

ROOT = Path(__file__).resolve().parents[3]
TINY = load_data(ROOT).device_types["instrumented-tiny"]
QEMU = "QEMU 1"


def job_of(number: int) -> SharedBootJob:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="bzImage")
    device = DeviceFacts(
        name="tiny-1", device_type=TINY.name, lab="local", arch="x86_64", topology=TINY.topology, boot=TINY.boot,
        emulated=True, backend="instrumented", emulation=TINY.emulation,
    )  # fmt: skip
    return SharedBootJob(
        boot_id=number, run_id=7, arm=Arm.CANDIDATE, seed=number, device=device, kernel=image, initramfs=image,
        emulator=QEMU, limit_s=60.0,
    )  # fmt: skip


class Lab:
    """The server: hands out `jobs` and keeps what it gets."""

    def __init__(self, jobs: int) -> None:
        self.jobs = [job_of(number) for number in range(1, jobs + 1)]
        self.questions: list[BootHostRequest] = []
        self.uploads: dict[str, bytes] = {}
        self.finished: dict[int, FinishSharedBoot] = {}
        self.stale: set[int] = set()
        self.changed = threading.Condition()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        with self.changed:
            answer = self._answer(request, content)
            self.changed.notify_all()
            return answer

    def _answer(self, request: httpx.Request, content: bytes) -> httpx.Response:
        path = request.url.path.removeprefix("/api/worker/v1/")
        if path == "boots/claim":
            self.questions.append(BootHostRequest.model_validate_json(content))
            job = self.jobs.pop(0) if self.jobs else None
            claim = job and SharedBootClaim(job=job, fence=job.boot_id + 10, expires_in_s=2.0)
            return httpx.Response(200, content=BootHostAnswer(claim=claim).model_dump_json())
        if path.startswith("artifacts/"):
            assert hashlib.sha256(content).hexdigest() == path.removeprefix("artifacts/")
            self.uploads[request.url.params["name"]] = content
            return httpx.Response(200, json={})
        number = int(path.split("/")[1])
        assert json.loads(content)["fence"] == number + 10
        if number in self.stale:
            return httpx.Response(409, json={"detail": "stale"})
        if path.endswith("heartbeat"):
            return httpx.Response(200, json={"expires_in_s": 2.0, "cancel": False})
        self.finished[number] = FinishSharedBoot.model_validate_json(content)
        return httpx.Response(204)

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition)


def guest(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
    """Boot that switches itself off."""
    for name in ("console", "output"):
        (folder / name).write_text(f"{name} {job.seed}")
    return Ended(
        console=folder / "console", output=folder / "output", status=0, stderr="", seconds=2.0, timed_out=False
    )


Start = Callable[..., BootHost]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(boot_host, "ASK_INTERVAL_S", 0.01)
    hosts: list[BootHost] = []

    def start(
        lab: Lab, make: MakeBoot = guest, *, cores: int = 2, idle: Callable[[], bool] = lambda: True, qemu: str = QEMU
    ) -> BootHost:
        host = BootHost(
            server(lab), Workspace(tmp_path), "host-1", cores=cores, is_idle=idle, emulators=lambda: {"x86_64": qemu},
            make=make,
        )  # fmt: skip
        hosts.append(host)
        host.start()
        return host

    yield start
    for host in hosts:
        host.close()


def test_boots_are_made_and_their_files_uploaded(start: Start) -> None:
    lab = Lab(3)
    start(lab)
    lab.wait(lambda: len(lab.finished) == 3)
    assert lab.uploads["console-candidate-2"] == b"console 2"
    assert lab.uploads["output-candidate-3"] == b"output 3"
    result = lab.finished[1].result
    assert (result.outcome, result.emulator) == (Outcome.PASSED, QEMU)
    assert result.files is not None
    assert result.files.output.sha256 == hashlib.sha256(b"output 1").hexdigest()
    question = lab.questions[0]
    assert (question.host, question.emulators) == ("host-1", {"x86_64": QEMU})
    assert question.memory_mib > 0


def test_no_boot_is_asked_for_during_a_build_or_beyond_the_cores(start: Start) -> None:
    lab, building, let_end = Lab(3), threading.Event(), threading.Event()
    building.set()
    checked = threading.Semaphore(0)

    def idle() -> bool:
        checked.release()
        return not building.is_set()

    def held(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        let_end.wait()
        return guest(job, workspace, folder, stop)

    start(lab, held, cores=2, idle=idle)
    for _ in range(3):
        assert checked.acquire()
    assert lab.questions == []
    building.clear()
    lab.wait(lambda: len(lab.questions) == 2)
    assert len(lab.jobs) == 1, "both cores are in use"
    let_end.set()
    lab.wait(lambda: len(lab.finished) == 3)


def test_boot_that_is_not_needed_any_more_is_stopped(start: Start) -> None:
    lab, stopped = Lab(1), threading.Event()
    lab.stale = {1}

    def endless(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        assert stop.wait()
        stopped.set()
        return guest(job, workspace, folder, stop)

    start(lab, endless)
    assert stopped.wait()
    asked = len(lab.questions)
    lab.wait(lambda: len(lab.questions) > asked)
    assert (lab.uploads, lab.finished) == ({}, {})


@pytest.mark.parametrize(
    ("status", "timed_out", "reason"), [(1, False, "status 1: no memory"), (-9, True, "did not end in time")]
)
def test_boot_that_fails_here_delivers_nothing(start: Start, status: int, timed_out: bool, reason: str) -> None:
    lab = Lab(2)

    def fails(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        made = guest(job, workspace, folder, stop)
        return Ended(made.console, made.output, status, "no memory", 2.0, timed_out)

    start(lab, fails, cores=1)
    lab.wait(lambda: 1 in lab.finished)
    result = lab.finished[1].result
    assert (result.outcome, result.files) == (Outcome.FAILED, None)
    assert result.failure is not None
    assert reason in result.failure.summary
    assert lab.uploads == {}
    assert len(lab.jobs) == 1, "the host waits before it asks for another one"


def test_emulator_that_was_updated_makes_no_boot(start: Start) -> None:
    lab = Lab(1)
    start(lab, qemu="QEMU 2")
    lab.wait(lambda: 1 in lab.finished)
    result = lab.finished[1].result
    assert (result.outcome, result.emulator) == (Outcome.FAILED, "QEMU 2")


def test_one_worker_of_a_machine_asks(start: Start, tmp_path: Path) -> None:
    lab, other = Lab(0), Lab(0)
    start(lab)
    lab.wait(lambda: len(lab.questions) > 0)
    start(other)
    asked = len(lab.questions)
    lab.wait(lambda: len(lab.questions) > asked + 5)
    assert other.questions == []


def test_closing_stops_emulators(start: Start) -> None:
    lab, started, stopped = Lab(1), threading.Event(), threading.Event()

    def endless(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        started.set()
        assert stop.wait()
        stopped.set()
        return guest(job, workspace, folder, stop)

    host = start(lab, endless)
    assert started.wait()
    host.close()
    assert stopped.wait()

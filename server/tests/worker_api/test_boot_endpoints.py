"""Shared boots: what a run shares, who gets it, and how it ends."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE, APPLY, BUILD
from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, ErrorKind, JobState, Outcome, Scope
from wqlab_contracts.messages import Artifact, RunResult
from wqlab_contracts.messages.shared_boots import (
    BootFiles,
    BootHostAnswer,
    BootHostRequest,
    SeededBoot,
    ShareAnswer,
    ShareBoots,
    SharedBootClaim,
    SharedBootJob,
    SharedBootResult,
    console_name,
    initramfs_name,
    output_name,
)
from wqlab_server.http.auth import create_token
from wqlab_server.models import Artifact as ArtifactRow
from wqlab_server.models import ArtifactLink, SharedBoot
from wqlab_worker.backends.instrumented.emulator import Ended
from wqlab_worker.backends.instrumented.sharing import Offer
from wqlab_worker.claims.boot_host import BootHost
from wqlab_worker.claims.boot_sharing import ServerOfOtherHosts
from wqlab_worker.claims.heartbeats import Stop
from wqlab_worker.claims.server import JobRef, Server
from wqlab_worker.workspace import Workspace

from ..support.lab import LabUnderTest, RunSession, failed

pytestmark = pytest.mark.integration
A, B = Arm.BASELINE, Arm.CANDIDATE
QEMU = "QEMU 7.2; plugin 1"
COUNTED = """\
name: counted
summary: an instrumented device
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
emulation: {clock: instruction, memory_mib: 512}
units: [{name: counted-1}]
"""


@dataclass
class Host:
    """A build host that asks for boots."""

    lab: LabUnderTest
    name: str
    emulator: str = QEMU
    memory_mib: int = 4096

    def ask(self, nonce: str = "", expect: int = 200) -> SharedBootClaim | None:
        request = BootHostRequest(
            worker=f"{self.name}/1", host=self.name, emulators={"x86_64": self.emulator}, memory_mib=self.memory_mib,
            nonce=nonce or secrets.token_hex(8),
        )  # fmt: skip
        answer = self.lab.worker.post("boots/claim", request.model_dump(mode="json"), expect)
        return BootHostAnswer.model_validate_json(answer.content).claim if expect == 200 else None

    def claimed(self) -> SharedBootClaim:
        claim = self.ask()
        assert claim is not None
        return claim

    def upload(self, claim: SharedBootClaim, expect: int = 200) -> BootFiles:
        job = claim.job
        self.lab.worker._fence = (f"boots/{job.boot_id}", claim.fence)
        text = f"{job.arm} {job.seed}"
        return BootFiles(
            console=self.lab.worker.upload(
                ArtifactKind.BOOT_FILE, console_name(job.arm, job.seed), f"console {text}".encode(), expect
            ),
            output=self.lab.worker.upload(
                ArtifactKind.BOOT_FILE, output_name(job.arm, job.seed), f"output {text}".encode(), expect
            ),
            seconds=4.0,
        )

    def heartbeat(self, claim: SharedBootClaim, expect: int = 200) -> None:
        self.lab.worker.post(f"boots/{claim.job.boot_id}/heartbeat", {"fence": claim.fence}, expect)

    def finish(self, claim: SharedBootClaim, result: SharedBootResult, expect: int = 204) -> str:
        body = {"fence": claim.fence, "result": result.model_dump(mode="json")}
        return self.lab.worker.post(f"boots/{claim.job.boot_id}/finish", body, expect).text

    def make(self, claim: SharedBootClaim) -> BootFiles:
        files = self.upload(claim)
        self.finish(claim, passed(files))
        return files


def passed(files: BootFiles, emulator: str = QEMU) -> SharedBootResult:
    return SharedBootResult(outcome=Outcome.PASSED, emulator=emulator, files=files)


@dataclass
class Shared:
    """A run of three seeds, and the build host `far`."""

    run: RunSession
    far: Host
    initramfs: Artifact

    @property
    def path(self) -> str:
        return f"runs/{self.run.job.run_id}/boots"

    def share(
        self, *boots: tuple[Arm, int], host: str = "near", uploaded: bool = True, expect: int = 200, **more: Any
    ) -> ShareAnswer:
        body = ShareBoots(
            fence=self.run.fence, host=host, emulator=QEMU, limit_s=60.0,
            boots=[{"arm": arm, "seed": seed} for arm, seed in boots],
            initramfs=dict.fromkeys(PAIR, self.initramfs.sha256) if uploaded else {},
        ).model_copy(update=more)  # fmt: skip
        answer = self.run.worker.post(self.path, body.model_dump(mode="json"), expect)
        return ShareAnswer.model_validate_json(answer.content) if expect == 200 else ShareAnswer(hosts=0, boots=[])


@pytest.fixture
def data_dir(data_dir: Path) -> Path:
    (data_dir / "device-types/counted.yaml").write_text(COUNTED)
    return data_dir


@pytest.fixture
def shared(lab: LabUnderTest) -> Shared:
    lab.mark_all_good()
    submission_id = lab.submit("locks@counted", blocks=3)
    lab.work(APPLY, BUILD, ADVANCE)
    run = lab.worker.claim_run(lab.runs(submission_id)[0].id)
    assert run is not None
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    initramfs = lab.worker.upload(ArtifactKind.BOOT_FILE, initramfs_name(A), b"initramfs")
    far = Host(lab, "far")
    assert far.ask() is None
    return Shared(run, far, initramfs)


def test_boot_is_made_by_another_host_and_its_files_come_back(lab: LabUnderTest, shared: Shared) -> None:
    answer = shared.share((A, 1), (B, 1), (A, 2))
    assert answer.hosts == 1
    assert [(boot.arm, boot.seed, boot.state) for boot in answer.boots] == [
        (A, 1, JobState.QUEUED), (B, 1, JobState.QUEUED), (A, 2, JobState.QUEUED),
    ]  # fmt: skip
    claim = shared.far.claimed()
    assert (claim.job.arm, claim.job.seed) == (A, 2), "the boot that the run needs last"
    assert claim.job.kernel == shared.run.job.kernels[A].image
    assert claim.job.initramfs.sha256 == shared.initramfs.sha256
    assert claim.job.device == shared.run.job.device
    assert (claim.job.emulator, claim.job.limit_s) == (QEMU, 60.0)
    shared.far.heartbeat(claim)
    files = shared.far.make(claim)
    shared.far.finish(claim, passed(files))  # a repeated request
    made = shared.share((A, 1), (B, 1), (A, 2)).boots[2]
    assert (made.state, made.holder, made.files) == (JobState.FINISHED, "far/1", files)
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "near", [Scope.WORKER], lab="local")
    assert lab.worker.request("GET", f"artifacts/{files.output.sha256}").content == b"output baseline 2"
    # They are not files of the run that anybody else sees.
    path = f"/api/v1/runs/{shared.run.job.run_id}/artifacts"
    assert lab.client.get(path, headers={"Authorization": f"Bearer {lab.token}"}).json() == []


def test_only_another_host_with_the_same_emulator_and_enough_memory_gets_a_boot(
    lab: LabUnderTest, shared: Shared
) -> None:
    shared.share((A, 0))
    assert Host(lab, "near").ask() is None, "the run's own host"
    assert Host(lab, "newer", emulator="QEMU 10.0; plugin 1").ask() is None
    assert Host(lab, "small", memory_mib=511).ask() is None
    assert shared.share((A, 0)).hosts == 2, "far and small, not newer"
    nonce = secrets.token_hex(8)
    claim = shared.far.ask(nonce)
    assert claim is not None
    assert shared.far.ask(nonce) == claim, "its response was lost"
    assert shared.far.ask() is None


def test_without_another_host_nothing_is_shared(lab: LabUnderTest, shared: Shared) -> None:
    lab.sql("UPDATE boot_hosts SET asked_at = now() - interval '1 minute'")
    assert shared.share((A, 0)) == ShareAnswer(hosts=0, boots=[])
    assert shared.far.ask() is None
    assert shared.share((A, 0), uploaded=False) == ShareAnswer(hosts=1, boots=[])
    assert shared.far.ask() is None
    lab.expire("runs", shared.run.job.run_id)
    lab.tick()
    with lab.transaction() as session:
        assert session.get_one(ArtifactRow, shared.initramfs.sha256).deleted_at is not None


def test_host_whose_cores_a_run_uses_gets_no_boot(lab: LabUnderTest, shared: Shared) -> None:
    shared.share((A, 0))
    shared.share((A, 0), host="far")  # a worker on that host runs the run now
    assert shared.share((A, 0)).hosts == 0
    assert shared.far.ask() is None
    lab.sql("UPDATE boot_hosts SET run_at = now() - interval '1 minute'")
    assert shared.far.ask() is not None


def test_boot_of_a_dead_host_is_handed_out_again(lab: LabUnderTest, shared: Shared) -> None:
    shared.share((A, 0))
    lost = shared.far.claimed()
    lab.expire("shared_boots", lost.job.boot_id)
    other = Host(lab, "other")
    claim = other.claimed()
    assert claim.job.boot_id == lost.job.boot_id
    assert claim.fence > lost.fence
    shared.far.heartbeat(lost, 409)
    shared.far.upload(lost, 409)
    files = other.make(claim)
    shared.far.finish(lost, passed(files), 409)
    assert shared.share((A, 0)).boots[0].files == files


def test_failed_boot_is_tried_by_two_hosts(lab: LabUnderTest, shared: Shared) -> None:
    shared.share((A, 0))
    result = SharedBootResult(
        outcome=Outcome.FAILED, emulator=QEMU, failure=failed(ErrorKind.INFRASTRUCTURE, "no memory")
    )
    for _ in range(2):
        claim = shared.far.claimed()
        shared.far.finish(claim, result)
    assert shared.far.ask() is None, "the run's own host makes it"
    (boot,) = shared.share((A, 0)).boots
    assert (boot.state, boot.files) == (JobState.FINISHED, None)


def test_result_of_another_emulator_is_refused(shared: Shared) -> None:
    shared.share((A, 0))
    claim = shared.far.claimed()
    files = shared.far.upload(claim)
    text = shared.far.finish(claim, passed(files, "QEMU 7.2; plugin 2"), 422)
    assert "needs QEMU 7.2; plugin 1, not QEMU 7.2; plugin 2" in text
    missing = files.model_copy(update={"output": files.console})
    assert "output-baseline-0" in shared.far.finish(claim, passed(missing), 422)
    shared.far.finish(claim, passed(files))


def test_boot_that_the_runs_host_has_made_is_withdrawn(shared: Shared) -> None:
    shared.share((A, 0), (B, 0), (A, 1))
    claim = shared.far.claimed()
    assert (claim.job.arm, claim.job.seed) == (A, 1)
    shared.share((B, 0))
    shared.far.heartbeat(claim, 409)
    assert shared.far.claimed().job.arm is B
    assert shared.far.ask() is None


@pytest.mark.parametrize("end", ["finish", "cancel", "expire"])
def test_boots_end_with_the_attempt_at_their_run(lab: LabUnderTest, shared: Shared, end: str) -> None:
    shared.share((A, 0), (B, 0))
    made, claim = shared.far.claimed(), shared.far.claimed()
    files = shared.far.make(made)
    if end == "finish":
        for plan in shared.run.remaining:
            shared.run.send_block(plan)
        shared.run.finish()
    elif end == "cancel":
        lab.post("submissions/1/cancel")
        lab.work(ADVANCE)
        assert shared.far.ask() is None
        assert shared.run.heartbeat()["cancel"]
        failure = failed(ErrorKind.CANCELED, "canceled")
        shared.run.finish(RunResult(outcome=Outcome.CANCELED, failure=failure))
    else:
        lab.expire("runs", shared.run.job.run_id)
        assert shared.far.ask() is None
        lab.tick()
    shared.far.heartbeat(claim, 409)
    shared.share((A, 0), expect=409)
    with lab.transaction() as session:
        assert session.scalars(select(SharedBoot.id)).all() == []
        kinds = session.scalars(select(ArtifactLink.kind).where(ArtifactLink.run_id == shared.run.job.run_id)).all()
        assert ArtifactKind.BOOT_FILE not in kinds
        gone = [files.console.sha256, files.output.sha256, shared.initramfs.sha256]
        deleted = session.scalars(select(ArtifactRow.deleted_at).where(ArtifactRow.sha256.in_(gone))).all()
        assert len(deleted) == 3
        assert None not in deleted


def test_run_shares_only_its_own_boots_and_files(lab: LabUnderTest, shared: Shared) -> None:
    shared.share((A, 3), expect=422)
    shared.share((A, 0), initramfs={A: "0" * 64}, expect=422)
    shared.share((A, 0), fence=shared.run.fence - 1, expect=409)
    lab.worker._fence = (f"runs/{shared.run.job.run_id}", shared.run.fence)
    lab.worker.upload(ArtifactKind.BOOT_FILE, output_name(A, 0), b"made up", expect=422)
    shared.share((A, 0))
    claim = shared.far.claimed()
    lab.worker._fence = (f"boots/{claim.job.boot_id}", claim.fence)
    lab.worker.upload(ArtifactKind.BOOT_FILE, output_name(A, 1), b"of another boot", expect=422)
    lab.worker.upload(ArtifactKind.KERNEL, console_name(A, 0), b"kernel", expect=422)


def test_lab_token_makes_no_boots_and_shares_none_of_another_lab(lab: LabUnderTest, shared: Shared) -> None:
    shared.share((A, 0))
    claim = shared.far.claimed()
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "local", [Scope.WORKER], lab="local")
        _, elsewhere = create_token(session, "elsewhere", [Scope.WORKER], lab="elsewhere")
    shared.far.ask(expect=403)
    shared.far.heartbeat(claim, 403)
    shared.far.upload(claim, 403)
    shared.share((A, 0))
    lab.worker.token = elsewhere
    shared.share((A, 0), expect=403)


class _OnTestClient(httpx.BaseTransport):
    """Pass the requests of the worker's client on to the application. The test client is one of httpx2."""

    def __init__(self, lab: LabUnderTest) -> None:
        self._client = lab.client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        content, headers = request.read(), dict(request.headers)
        answer = self._client.request(request.method, str(request.url), content=content, headers=headers)
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


def test_real_worker_and_build_host_exchange_a_boot(lab: LabUnderTest, shared: Shared, tmp_path: Path) -> None:
    """The worker's own client shares a boot, its build host makes it, without an emulator, and the files come back."""

    def server(name: str) -> Server:
        return Server("http://lab", lab.worker_token, worker=name, lab="local", transport=_OnTestClient(lab))

    def make(job: SharedBootJob, workspace: Workspace, folder: Path, stop: Stop) -> Ended:
        kernel, initramfs = (far.fetch(each, workspace.fetched) for each in (job.kernel, job.initramfs))
        for name in ("console", "output"):
            (folder / name).write_bytes(name.encode() + kernel.read_bytes() + initramfs.read_bytes())
        return Ended(folder / "console", folder / "output", status=0, stderr="", seconds=2.0, timed_out=False)

    near, far = server("near/1"), server("away/1")
    sharing = ServerOfOtherHosts(near, JobRef("runs", shared.run.job.run_id, shared.run.fence), "near")
    initramfs = tmp_path / "initramfs"
    initramfs.write_bytes(b"archive")
    digest = sharing.upload(initramfs, initramfs_name(B)).sha256
    offer = Offer([SeededBoot(arm=B, seed=2)], {B: digest}, {}, QEMU, 60.0)
    assert sharing.share(offer).boots[0].state is JobState.QUEUED
    host = BootHost(
        far, Workspace(tmp_path / "cache"), "away", cores=1, is_idle=lambda: True, emulators=lambda: {"x86_64": QEMU},
        make=make,
    )  # fmt: skip
    host.start()
    while (made := sharing.share(offer).boots[0]).state is not JobState.FINISHED:
        time.sleep(0.1)  # the server sends no event to a run's worker
    host.close()
    for thread in threading.enumerate():
        if thread.name in {"boot host", "shared boot"}:
            thread.join()  # a request that is open when the fixture stops its event loop would never end
    assert made.files is not None
    kernel = near.fetch(shared.run.job.kernels[B].image, tmp_path).read_bytes()
    assert sharing.fetch(made.files.output, tmp_path).read_bytes() == b"output" + kernel + b"archive"
    assert made.holder == "away/1"

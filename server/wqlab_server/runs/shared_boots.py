"""Shared boots: boots of an instrumented run that build hosts make for the host of the run.

The run's worker says again and again which boots it still needs, and makes them itself in the meantime. A build host
that is idle asks for one. Nobody waits for a shared boot: if its host dies, the run's worker makes the boot when it is
due. A shared boot belongs to one attempt at its run and is deleted with it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, ArtifactKind, JobState, Outcome
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.shared_boots import (
    CONSOLE_BYTES,
    INITRAMFS_BYTES,
    OUTPUT_BYTES,
    BootHostRequest,
    ShareAnswer,
    ShareBoots,
    SharedBootJob,
    SharedBootResult,
    SharedBootView,
    console_name,
    initramfs_name,
    output_name,
)

from ..http.problems import ApiProblem
from ..jobs import claims
from ..jobs.errors import StaleFence, canceled_failure
from ..jobs.state import Retry, decide_job
from ..models import Artifact as ArtifactRow
from ..models import ArtifactLink, BootHost, Build, Device, Run, SharedBoot
from ..settings import Settings
from ..storage.db import clock, fetch_dict
from .service import lock_run

HOST_PRESENT = timedelta(seconds=30)
"""How long a build host counts as present after it asked, and as busy after a run's worker on it shared boots."""
HOST_FORGOTTEN = timedelta(days=1)
ATTEMPTS = 2
"""Attempts of other hosts at a boot; afterwards only the run's own host makes it."""


# --- the run's worker -------------------------------------------------------------------------------------------


def share(session: Session, run_id: int, body: ShareBoots) -> ShareAnswer:
    """Replace the boots that the run shares by `body.boots`, and return the state of these.

    Nothing is shared without an initramfs or another host. Raises StaleFence, ApiProblem 404 for an unknown run and 422
    for a boot or an initramfs that the run does not have.
    """
    run = lock_run(session, run_id)
    now = claims.check_fence(session, run, body.fence)
    session.execute(update(BootHost).where(BootHost.host == body.host).values(run_at=now))
    hosts = [
        host.host
        for host in session.scalars(select(BootHost).where(BootHost.host != body.host, *_is_idle(now)))
        if body.emulator in host.emulators.values()
    ]
    wanted = {(boot.arm, boot.seed): position for position, boot in enumerate(body.boots)}
    _check_planned(run, wanted)
    known = {
        (boot.arm, boot.seed): boot
        for boot in session.scalars(
            select(SharedBoot).where(SharedBoot.run_id == run.id).order_by(SharedBoot.id).with_for_update()
        )
    }
    for key, boot in known.items():
        if key not in wanted and boot.state is not JobState.FINISHED:
            claims.finish(session, boot, Outcome.CANCELED, canceled_failure("the run's own host makes this boot"))
    if hosts and body.initramfs:
        _check_initramfs(session, run, body, {arm for arm, _ in wanted})
        device = session.scalars(select(Device).where(Device.name == run.device_name)).one()
        if device.facts.emulation is None:
            raise ApiProblem(422, f"run {run.id} is on {device.name}, which is not an instrumented device")
        for key in wanted.keys() - known.keys():
            known[key] = SharedBoot(
                run_id=run.id,
                run_fence=body.fence,
                arm=key[0],
                seed=key[1],
                position=wanted[key],
                state=JobState.QUEUED,
                run_host=body.host,
                emulator=body.emulator,
                memory_mib=device.facts.emulation.memory_mib,
                limit_s=body.limit_s,
                initramfs=body.initramfs[key[0]],
                layout=body.layouts.get(key[0], ""),
            )
            session.add(known[key])
    return ShareAnswer(hosts=len(hosts), boots=[_view(known[key]) for key in wanted if key in known])


def _view(boot: SharedBoot) -> SharedBootView:
    return SharedBootView(arm=boot.arm, seed=boot.seed, state=boot.state, holder=boot.holder, files=boot.files)


def _is_idle(now: datetime) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that a host asks for boots, and that no run uses its cores."""
    return (
        BootHost.asked_at > now - HOST_PRESENT,
        or_(BootHost.run_at.is_(None), BootHost.run_at <= now - HOST_PRESENT),
    )


def _check_planned(run: Run, wanted: Collection[tuple[Arm, int]]) -> None:
    for arm, seed in wanted:
        if seed >= len(run.blocks) or arm not in run.blocks[seed]:
            raise ApiProblem(422, f"run {run.id} has no boot of the {arm} with seed {seed}")


def _check_initramfs(session: Session, run: Run, body: ShareBoots, arms: Collection[Arm]) -> None:
    uploaded = set(
        session.scalars(
            select(ArtifactLink.sha256).where(
                ArtifactLink.run_id == run.id,
                ArtifactLink.kind == ArtifactKind.BOOT_FILE,
                ArtifactLink.name.in_([initramfs_name(arm) for arm in Arm]),
            )
        )
    )
    for arm in arms:
        if body.initramfs.get(arm) not in uploaded:
            raise ApiProblem(422, f"the initramfs of the {arm} of run {run.id} was not uploaded")


def drop(session: Session, run: Run) -> Sequence[str]:
    """Delete the shared boots of an ended attempt; return the hashes of the files that the run does not need any more.

    The caller holds the run's lock. Claims of the boots end, so their hosts stop.
    """
    session.execute(delete(SharedBoot).where(SharedBoot.run_id == run.id))
    # Also without a boot: the other hosts may have gone after the initramfs was uploaded.
    links = delete(ArtifactLink).where(ArtifactLink.run_id == run.id, ArtifactLink.kind == ArtifactKind.BOOT_FILE)
    return session.scalars(links.returning(ArtifactLink.sha256)).all()


# --- build hosts ------------------------------------------------------------------------------------------------


def claim(session: Session, request: BootHostRequest, settings: Settings) -> SharedBoot | None:
    """Claim the boot that is needed last, of the run with the highest priority, for a host; None if there is none.

    The host gets no boot while a run's worker uses its cores. A boot whose claim has expired is handed out again.
    """
    now = clock(session)
    _note_host(session, request, now)
    repeated = session.scalar(select(SharedBoot).where(SharedBoot.claim_nonce == request.nonce).with_for_update())
    if repeated is not None and claims.find_repeated_claim(session, repeated, request.nonce):
        claims.extend(repeated, now, settings.claim_s)
        return repeated
    if session.scalar(select(BootHost.host).where(BootHost.host == request.host, *_is_idle(now))) is None:
        return None
    boot = session.scalar(
        select(SharedBoot)
        .join(Run, Run.id == SharedBoot.run_id)
        .where(
            or_(
                SharedBoot.state == JobState.QUEUED,
                and_(SharedBoot.state == JobState.RUNNING, SharedBoot.expires_at <= now),
            ),
            SharedBoot.attempts < ATTEMPTS,
            SharedBoot.run_host != request.host,
            SharedBoot.emulator.in_(request.emulators.values()),
            SharedBoot.memory_mib <= request.memory_mib,
            Run.state == JobState.RUNNING,
            Run.fence == SharedBoot.run_fence,
            Run.expires_at > now,
            Run.cancel_requested_at.is_(None),
        )
        .order_by(Run.priority.desc(), Run.id, SharedBoot.position.desc())
        .limit(1)
        .with_for_update(of=SharedBoot, skip_locked=True)
    )
    if boot is None:
        return None
    if boot.state is JobState.RUNNING:
        claims.requeue(boot)
    claims.take(session, boot, request.worker, settings.claim_s, claims.next_fence(session))
    boot.claim_nonce = request.nonce
    return boot


def _note_host(session: Session, request: BootHostRequest, now: datetime) -> None:
    """Record that the host is present, and forget those that have not asked for a day."""
    values = {"emulators": dict(request.emulators), "asked_at": now}
    session.execute(
        insert(BootHost)
        .values(host=request.host, **values)
        .on_conflict_do_update(index_elements=[BootHost.host], set_=values)
    )
    session.execute(delete(BootHost).where(BootHost.asked_at < now - HOST_FORGOTTEN))


def make_job(session: Session, boot: SharedBoot) -> SharedBootJob:
    """Return everything that a host needs to make the boot. Raises ApiProblem 409 if the kernel is gone."""
    run = session.get_one(Run, boot.run_id)
    device = session.scalars(select(Device).where(Device.name == run.device_name)).one()
    size = session.scalars(select(ArtifactRow.size).where(ArtifactRow.sha256 == boot.initramfs)).one()
    return SharedBootJob(
        boot_id=boot.id,
        run_id=boot.run_id,
        arm=boot.arm,
        seed=boot.seed,
        device=device.facts,
        kernel=_kernel_image(session, run, boot.arm),
        initramfs=Artifact(
            sha256=boot.initramfs, size=size, kind=ArtifactKind.BOOT_FILE, name=initramfs_name(boot.arm)
        ),
        layout=boot.layout,
        emulator=boot.emulator,
        limit_s=boot.limit_s,
    )


def _kernel_image(session: Session, run: Run, arm: Arm) -> Artifact:
    build_id = run.build_ids.get(arm)
    result = session.scalar(select(Build.result).where(Build.id == build_id))
    for artifact in result.artifacts if result else ():
        if artifact.kind is ArtifactKind.KERNEL:
            return artifact
    raise ApiProblem(409, f"run {run.id} has no {arm} kernel")


def lock_boot(session: Session, boot_id: int) -> SharedBoot:
    """Lock and return a shared boot. Raises ApiProblem 409 if it is gone with its run's attempt."""
    boot = session.scalar(select(SharedBoot).where(SharedBoot.id == boot_id).with_for_update())
    if boot is None:
        raise ApiProblem(409, f"there is no shared boot {boot_id}: its run has ended", slug="stale-fence")
    return boot


def lock_with_run(session: Session, boot_id: int) -> SharedBoot:
    """Lock the run of a shared boot, then the boot, and return it. Raises ApiProblem 409 if it is gone."""
    run_id = session.scalar(select(SharedBoot.run_id).where(SharedBoot.id == boot_id))
    if run_id is not None:
        lock_run(session, run_id)
    return lock_boot(session, boot_id)


def check_boot(session: Session, boot: SharedBoot, fence: int) -> datetime:
    """Return the database's time. Raises StaleFence if `fence` does not hold the boot, or the run's attempt is over."""
    now = claims.check_fence(session, boot, fence)
    run_fence = session.scalar(select(Run.fence).where(Run.id == boot.run_id, Run.state == JobState.RUNNING))
    if run_fence != boot.run_fence:
        raise StaleFence(claims.describe(boot), fence)
    return now


def finish(session: Session, boot_id: int, fence: int, result: SharedBootResult) -> None:
    """Store the files of a boot, or queue it again for another host. Repeating the same request changes nothing.

    Raises StaleFence, ApiProblem 409 if the boot is gone, 422 for files that were not uploaded or are of another
    emulator.
    """
    boot = lock_with_run(session, boot_id)
    if boot.state is JobState.FINISHED and boot.fence == fence and boot.outcome is result.outcome:
        return
    check_boot(session, boot, fence)
    if result.emulator != boot.emulator:
        raise ApiProblem(
            422, f"{claims.describe(boot)} needs {boot.emulator}, not {result.emulator}", slug="other-emulator"
        )
    if result.outcome is Outcome.PASSED:
        _check_files(session, boot, result)
        boot.files = result.files
    ended = decide_job(result.outcome, result.failure, attempts=boot.attempts, bound=ATTEMPTS, cancel_requested=False)
    if isinstance(ended, Retry):
        claims.requeue(boot)
    else:
        claims.finish(session, boot, ended.outcome, ended.failure)


def _check_files(session: Session, boot: SharedBoot, result: SharedBootResult) -> None:
    if result.files is None:
        raise ApiProblem(422, f"{claims.describe(boot)} passed, but has no files")
    uploaded = fetch_dict(
        session,
        select(ArtifactLink.name, ArtifactLink.sha256).where(
            ArtifactLink.run_id == boot.run_id, ArtifactLink.kind == ArtifactKind.BOOT_FILE
        ),
    )
    for name, artifact in (
        (console_name(boot.arm, boot.seed), result.files.console),
        (output_name(boot.arm, boot.seed), result.files.output),
    ):
        if uploaded.get(name) != artifact.sha256:
            raise ApiProblem(422, f"{name} of {claims.describe(boot)} was not uploaded")


# --- files ------------------------------------------------------------------------------------------------------


def run_file_limit(name: str) -> int:
    """Return the largest size in bytes of a boot file that a run's worker uploads. Raises ApiProblem 422."""
    names = [initramfs_name(arm) for arm in Arm]
    if name not in names:
        raise ApiProblem(422, f"a run's worker shares {' and '.join(names)}, not {name[:80]!r}")
    return INITRAMFS_BYTES


def boot_file_limit(boot: SharedBoot, kind: ArtifactKind, name: str) -> int:
    """Return the largest size in bytes of a file of a shared boot. Raises ApiProblem 422."""
    limits = {console_name(boot.arm, boot.seed): CONSOLE_BYTES, output_name(boot.arm, boot.seed): OUTPUT_BYTES}
    if kind is not ArtifactKind.BOOT_FILE or name not in limits:
        raise ApiProblem(422, f"{claims.describe(boot)} has the boot files {' and '.join(limits)}, not {name[:80]!r}")
    return limits[name]

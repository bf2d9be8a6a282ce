"""Create, claim and update applies and builds; builds of equal content are shared."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter
from sqlalchemy import or_, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import BUILD, BUILD_QUEUE
from wqlab_contracts.enums import EventKind, JobState, Outcome
from wqlab_contracts.keys import build_key
from wqlab_contracts.messages import (
    ApplyJob,
    BuildJob,
    Progress,
    Source,
    ThreadSource,
)
from wqlab_contracts.specs import CpuArch, KernelRecipe

from ..jobs import claims
from ..models import (
    Apply,
    Bisection,
    BisectionStep,
    Build,
    Submission,
    WatchedHead,
    WatchedTree,
)
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import emit, emit_to_all
from .locks import lock_apply, lock_build

_ARCH: TypeAdapter[CpuArch] = TypeAdapter(CpuArch)


# --- create -----------------------------------------------------------------------------------------------------


def ensure_build(
    session: Session,
    source: Source,
    recipe: KernelRecipe,
    *,
    arch: CpuArch,
    emulated: bool,
    fragments: dict[str, str],
    modules: dict[str, dict[str, str]],
    toolchain: str,
    layouts: int = 1,
) -> Build:
    """Return the passed or unfinished build of this content, or create one.

    A passed build whose kernel retention has deleted is not returned. The returned one is locked against retention.
    """
    key = build_key(source.tree_oid, recipe, arch, fragments, toolchain, modules, layouts)
    live = select(Build).where(Build.key == key, Build.files_deleted_at.is_(None))
    reusable = live.where(or_(Build.outcome.is_(None), Build.outcome == Outcome.PASSED))
    found = session.scalar(live.where(Build.outcome == Outcome.PASSED).with_for_update(read=True)) or session.scalar(
        reusable
    )
    if found is not None:
        return found
    now = clock(session)
    # Two submissions may get here at once: the unique index lets one row in, and the loser reads the winner's.
    created = session.scalar(
        insert(Build)
        .values(
            key=key,
            source=source,
            recipe=recipe,
            arch=arch,
            emulated=emulated,
            fragments=fragments,
            modules=modules,
            toolchain=toolchain,
            layouts=layouts,
            # Only what is in an operator's tree may write the shared compiler cache.
            trusted=source.bundle is None,
            state=JobState.QUEUED,
            attempts=0,
            nudges=0,
            progress="",
            progress_done=0,
            progress_total=0,
        )
        .on_conflict_do_nothing()
        .returning(Build.id)
    )
    build = session.scalars(reusable if created is None else select(Build).where(Build.id == created)).one()
    if created is not None:
        claims.nudge(session, build, BUILD, BUILD_QUEUE, now)
    return build


# --- claimed ----------------------------------------------------------------------------------------------------


def claim_apply(
    session: Session, apply_id: int, holder: str, settings: Settings, nonce: str | None = None
) -> tuple[ApplyJob, int]:
    """Claim the job; return it with its fence, or the live claim if `nonce` made it.

    Raises NotClaimable, ApiProblem 404.
    """
    apply = lock_apply(session, apply_id)
    if now := claims.find_repeated_claim(session, apply, nonce):
        claims.extend(apply, now, settings.claim_s)
    else:
        claims.take(session, apply, holder, settings.claim_s, claims.next_fence(session))
        apply.claim_nonce = nonce
        emit(session, apply.submission_id, EventKind.APPLY_STATE, state=apply.state, holder=holder)
    submission = session.get(Submission, apply.submission_id) if apply.submission_id is not None else None
    job = ApplyJob(
        submission_id=apply.submission_id or 0,
        tree=apply.tree,
        series=submission.request.series if submission else None,
        seen=_seen_commits(session, apply, submission),
        thread=_thread_source(apply),
        walk=submission.request.walk if submission else False,
        toolchain=apply.toolchain,
    )
    return job, apply.fence or 0


def _seen_commits(session: Session, apply: Apply, submission: Submission | None) -> list[str]:
    """Return the commits that the lab has seen as heads of a watched tree in the repository of the apply: those of a
    pair, and the ends of the bisection that it is of."""
    series = submission.request.series if submission is not None else None
    pair = series.commits if series is not None else None
    if pair is None:
        return []
    ends = session.execute(
        select(Bisection.good, Bisection.bad)
        .join(BisectionStep, BisectionStep.bisection_id == Bisection.id)
        .where(BisectionStep.submission_id == apply.submission_id)
        .limit(1)
    ).one_or_none()
    found = session.scalars(
        select(WatchedHead.commit)
        .where(WatchedHead.commit.in_([pair.baseline, pair.candidate, *(ends or ())]))
        .join(WatchedTree, WatchedTree.name == WatchedHead.tree_name)
        .where(type_coerce(WatchedTree.spec, JSONB)["tree"].astext == apply.tree.name)
    )
    return sorted(set(found))


def _thread_source(apply: Apply) -> ThreadSource | None:
    """Return where the series comes from; an earlier attempt may have taken the mails already."""
    if apply.thread is None or apply.result is None or apply.result.thread is None:
        return apply.thread
    return apply.thread.model_copy(update={"taken": apply.result.thread})


def claim_build(
    session: Session, build_id: int, holder: str, settings: Settings, nonce: str | None = None
) -> tuple[BuildJob, int]:
    """Claim the job; return it with its fence, or the live claim if `nonce` made it.

    Raises NotClaimable, ApiProblem 404.
    """
    build, submission_ids = lock_build(session, build_id)
    if now := claims.find_repeated_claim(session, build, nonce):
        claims.extend(build, now, settings.claim_s)
    else:
        claims.take(session, build, holder, settings.claim_s, claims.next_fence(session))
        build.claim_nonce = nonce
        emit_to_all(session, submission_ids, EventKind.BUILD_STATE, build_id=build.id, state=build.state, holder=holder)
    job = BuildJob(
        build_id=build.id,
        key=build.key,
        source=build.source,
        trusted=build.trusted,
        recipe=build.recipe,
        arch=_ARCH.validate_python(build.arch),
        emulated=build.emulated,
        fragments=build.fragments,
        modules=build.modules,
        toolchain=build.toolchain,
        layouts=build.layouts,
    )
    return job, build.fence or 0


# --- progress ---------------------------------------------------------------------------------------------------


def progress_apply(session: Session, apply_id: int, fence: int, events: Sequence[Progress]) -> None:
    """Store the last of the progress events. Raises StaleFence, ApiProblem 404."""
    apply = lock_apply(session, apply_id)
    claims.check_fence(session, apply, fence)
    if events and _update_progress(apply, events[-1]):
        emit(session, apply.submission_id, EventKind.APPLY_STATE, state=apply.state, text=apply.progress)


def progress_build(session: Session, build_id: int, fence: int, events: Sequence[Progress]) -> None:
    """Store the last of the progress events. Raises StaleFence, ApiProblem 404."""
    build, submission_ids = lock_build(session, build_id)
    claims.check_fence(session, build, fence)
    if events and _update_progress(build, events[-1]):
        emit_to_all(
            session,
            submission_ids,
            EventKind.BUILD_PROGRESS,
            build_id=build.id,
            text=build.progress,
            done=build.progress_done,
            total=build.progress_total,
        )


def _update_progress(job: Apply | Build, event: Progress) -> bool:
    """Store the progress; return False if it is unchanged, as for a repeated message."""
    new = (event.text, event.done, event.total)
    if new == (job.progress, job.progress_done, job.progress_total):
        return False
    job.progress, job.progress_done, job.progress_total = new
    return True

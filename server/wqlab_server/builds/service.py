"""Builds: equal content is built once. What a failed or byte-identical build means for the runs that use it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.keys import build_key
from wqlab_contracts.messages import Failure, Source
from wqlab_contracts.specs import CpuArch, KernelRecipe

from ..jobs import claims
from ..jobs.errors import infrastructure_failure
from ..models import Build


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
    build = Build(
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
        trusted=source.bundle is None and source.tree.origin == "operator",
    )
    # Two submissions may get here at once: the unique index lets one row in, and the loser reads the winner's.
    try:
        with session.begin_nested():
            claims.queue(session, build)
    except IntegrityError:
        return session.scalars(reusable).one()
    return build


def failure_for_arm(build: Build, arm_is_baseline: bool) -> Failure:
    """Return a failed build's failure as a run of a submission reports it.

    A user error of a baseline from an operator's tree becomes an infrastructure failure: the tree itself does not
    compile. A failure of a baseline that the user chose, and of every candidate, keeps its kind.
    """
    found = build.failure or infrastructure_failure(f"build {build.id} ended without a reason")
    arm = "baseline" if arm_is_baseline else "candidate"
    kind = found.kind
    if kind is ErrorKind.USER and arm_is_baseline and build.trusted:
        kind = ErrorKind.INFRASTRUCTURE
    return found.model_copy(update={"kind": kind, "summary": f"{arm} kernel: {found.summary}"})


def are_byte_identical(builds: Sequence[Build]) -> bool:
    """Return True for two passed builds of which a device would load the same bytes."""
    if len(builds) != 2:
        return False
    first, second = builds
    digests = {build.result.content_sha256 if build.result else "" for build in builds}
    return first.id == second.id or (len(digests) == 1 and digests != {""})

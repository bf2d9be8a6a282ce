"""Read builds and their artifacts."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts import messages
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import CompilerWarning

from ..http.problems import not_found
from ..models import Build, SubmissionBuild
from ..views.build import new_warnings


def get(session: Session, build_id: int) -> Build:
    """Return the build. Raises ApiProblem 404."""
    row = session.get(Build, build_id)
    if row is None:
        raise not_found("build", build_id)
    return row


def artifact_of_kind(build: Build, kind: ArtifactKind) -> messages.Artifact:
    """Return the build's first artifact of this kind. Raises ApiProblem 404 that gives the build's state."""
    for artifact in build.result.artifacts if build.result else []:
        if artifact.kind is kind:
            return artifact
    hint = f"the build is {build.state}" if build.result is None else f"the build {build.outcome} without one"
    raise not_found(f"{kind.value.replace('_', ' ')} of build", build.id, hint)


def artifact_by_hash(build: Build, sha256: str) -> messages.Artifact:
    """Return the build's artifact with this SHA-256. Raises ApiProblem 404."""
    for artifact in build.result.artifacts if build.result else []:
        if artifact.sha256 == sha256:
            return artifact
    raise not_found(f"artifact of build {build.id} with sha256", sha256)


def own_warnings(session: Session, build: Build) -> list[CompilerWarning]:
    """Return the warnings of a candidate build that its baseline does not have; empty for other builds."""
    part = session.scalar(
        select(SubmissionBuild)
        .where(SubmissionBuild.build_id == build.id, SubmissionBuild.arm == Arm.CANDIDATE)
        .order_by(SubmissionBuild.id.desc())
        .limit(1)
    )
    if part is None:
        return []
    baseline = session.scalar(
        select(Build)
        .join(SubmissionBuild, SubmissionBuild.build_id == Build.id)
        .where(
            SubmissionBuild.submission_id == part.submission_id,
            SubmissionBuild.arm == Arm.BASELINE,
            SubmissionBuild.recipe == part.recipe,
            SubmissionBuild.arch == part.arch,
            SubmissionBuild.emulated == part.emulated,
        )
    )
    return new_warnings(build, baseline)

"""Check that the artifacts of a result were uploaded for its job."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.messages import Artifact

from ..http.problems import ApiProblem
from ..models import ArtifactLink, Job


def uploaded_hashes(session: Session, job: Job) -> set[str]:
    """Return the SHA-256 of the artifacts that were uploaded for the job."""
    return set(session.scalars(select(ArtifactLink.sha256).where(ArtifactLink.job_id == job.id)))


def check_uploaded(artifacts: Sequence[Artifact], uploaded: Collection[str]) -> None:
    """Raise ApiProblem 422 if one of the artifacts was not uploaded."""
    for artifact in artifacts:
        if artifact.sha256 not in uploaded:
            raise ApiProblem(422, f"{artifact.name} ({artifact.sha256}) was not uploaded for this job")

"""Read runs, boots, samples, artifacts and consoles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from wqlab_contracts import messages
from wqlab_contracts.enums import BootState, JobState

from ..http.problems import ApiProblem, not_found
from ..models import ArtifactLink, Boot, ConsoleChunk, Run, Sample

CHUNKS_PER_READ = 32
SAMPLES_PER_READ = 5_000


def get(session: Session, run_id: int) -> Run:
    """Return the run. Raises ApiProblem 404."""
    row = session.get(Run, run_id)
    if row is None:
        raise not_found("run", run_id)
    return row


def boot(session: Session, run: Run, boot_id: int | None) -> Boot:
    """Return one boot of the run, or the newest if `boot_id` is None. Raises ApiProblem 404."""
    if boot_id is None:
        newest = session.scalar(select(Boot).where(Boot.run_id == run.id).order_by(Boot.id.desc()).limit(1))
        if newest is None:
            raise ApiProblem(404, f"run {run.id} has no boot yet; it is {run.state}")
        return newest
    row = session.get(Boot, boot_id)
    if row is None or row.run_id != run.id:
        raise not_found(f"boot of run {run.id} with id", boot_id, "GET the run lists its boots")
    return row


def sample_rows(session: Session, run_id: int, discarded: bool) -> Iterator[list[dict[str, Any]]]:
    """Yield every repetition of every valid boot, in boot order, SAMPLES_PER_READ at a time; with `discarded`, also
    boots of discarded blocks. A row has the fields of SampleRow, which were validated when they were stored."""
    query = (
        select(
            Sample.boot_id,
            Boot.block,
            Boot.position,
            Boot.arm,
            Sample.scenario,
            Sample.setting,
            Sample.repetition,
            Sample.metric,
            Sample.value,
            Sample.warmup,
        )
        .join(Boot, Boot.id == Sample.boot_id)
        .where(Sample.run_id == run_id)
        .order_by(Sample.boot_id, Sample.scenario, Sample.setting, Sample.repetition, Sample.metric)
    )
    if not discarded:
        query = query.where(Boot.valid)
    for rows in session.execute(query.execution_options(yield_per=SAMPLES_PER_READ)).partitions():
        yield [dict(row._mapping) for row in rows]


def artifacts(session: Session, run: Run) -> list[messages.Artifact]:
    """Return the files that workers uploaded for the run, in upload order."""
    links = session.scalars(
        select(ArtifactLink)
        .where(ArtifactLink.job_id == run.id)
        .order_by(ArtifactLink.id)
        .options(joinedload(ArtifactLink.artifact))
    )
    return [
        messages.Artifact(sha256=link.sha256, size=link.artifact.size, kind=link.kind, name=link.name) for link in links
    ]


def artifact_by_hash(session: Session, run: Run, sha256: str) -> messages.Artifact:
    """Return the run's artifact with this SHA-256. Raises ApiProblem 404."""
    for artifact in artifacts(session, run):
        if artifact.sha256 == sha256:
            return artifact
    raise not_found(f"artifact of run {run.id} with sha256", sha256, "GET the run's artifacts lists them")


@dataclass(frozen=True)
class ConsolePart:
    """A piece of a boot's stored console."""

    data: bytes
    ended: bool
    """True if no more bytes will follow `data`."""


def console_part(session: Session, boot_id: int, offset: int) -> ConsolePart:
    """Return a piece of a boot's stored console from byte `offset`, at most CHUNKS_PER_READ chunks."""
    state = session.execute(
        select(Boot.state, Run.state).join(Run, Run.id == Boot.run_id).where(Boot.id == boot_id)
    ).one()
    over = state[0] is BootState.FINISHED or state[1] is JobState.FINISHED
    chunks = session.execute(
        select(ConsoleChunk.offset, ConsoleChunk.data)
        .where(ConsoleChunk.boot_id == boot_id, ConsoleChunk.offset + func.octet_length(ConsoleChunk.data) > offset)
        .order_by(ConsoleChunk.offset)
        .limit(CHUNKS_PER_READ)
    ).all()
    data = b"".join(chunk.data[max(offset - chunk.offset, 0) :] for chunk in chunks)
    return ConsolePart(data, over and len(chunks) < CHUNKS_PER_READ)

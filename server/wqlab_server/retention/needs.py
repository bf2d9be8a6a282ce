"""Find out which jobs still need their files, and since when the others do not.

Files belong to jobs: the bundle and mbox of an apply, the kernel of a build, the raw output and consoles of a run. A
job's files are needed while the job or a submission that uses it is unfinished or pinned. Their age counts from the
last end of these, or from the last reading of the report by its permanent link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import text
from sqlalchemy.orm import Session

Kind = Literal["apply", "build", "run", "consoles"]
"""Kind of the job whose files these are; `consoles`: those of a run's boots."""


@dataclass(frozen=True)
class Need:
    """A job whose files are stored."""

    kind: Kind
    id: int
    bytes: int
    """Size of its files. Artifacts that several jobs share count for each."""
    busy: bool
    """True if the job or a submission that uses it is unfinished."""
    pinned: bool
    used_at: datetime
    """When the files were needed last; the job's creation if it is unfinished."""

    @property
    def deletable(self) -> bool:
        return not self.busy and not self.pinned


# Each part returns one reason to need a job's files: (id, busy, pinned, at).
_REASONS = """
  SELECT j.id, j.state <> 'finished' AS busy, false AS pinned, coalesce(j.finished_at, j.created_at) AS at FROM jobs j
  UNION ALL
  SELECT j.id, s.state <> 'finished', s.pinned_at IS NOT NULL, greatest(s.finished_at, s.linked_at)
    FROM jobs j JOIN submissions s ON s.id = j.submission_id
  UNION ALL  -- an unfinished build of another submission, with equal content, applies this bundle
  SELECT l.job_id, true, false, j.created_at
    FROM builds b JOIN jobs j USING (id) JOIN artifact_links l ON l.sha256 = b.source -> 'bundle' ->> 'sha256'
   WHERE j.state <> 'finished'
  UNION ALL
  SELECT u.build_id, s.state <> 'finished', s.pinned_at IS NOT NULL, greatest(s.finished_at, s.linked_at)
    FROM submission_builds u JOIN submissions s ON s.id = u.submission_id
  UNION ALL
  SELECT u.build_id, j.state <> 'finished', false, j.finished_at
    FROM runs r JOIN jobs j USING (id)
   CROSS JOIN LATERAL (VALUES (r.baseline_build_id), (r.candidate_build_id)) u (build_id)
   WHERE j.submission_id IS NULL
"""
_FILES = f"""
SELECT j.kind, n.id, f.bytes, bool_or(n.busy), bool_or(n.pinned), max(n.at)
  FROM ({_REASONS}) n
  JOIN jobs j ON j.id = n.id
  JOIN (SELECT l.job_id AS id, sum(a.size)::bigint AS bytes
          FROM artifact_links l JOIN artifacts a USING (sha256) WHERE a.deleted_at IS NULL GROUP BY 1) f ON f.id = n.id
 WHERE j.files_deleted_at IS NULL AND (:id = 0 OR n.id = :id)
 GROUP BY j.kind, n.id, f.bytes ORDER BY max(n.at), n.id
"""  # noqa: S608 - constant texts
_CONSOLES = f"""
SELECT 'consoles', n.id, f.bytes, bool_or(n.busy), bool_or(n.pinned), max(n.at)
  FROM ({_REASONS}) n
  JOIN (SELECT run_id AS id, sum(console_bytes)::bigint AS bytes FROM boots GROUP BY 1) f ON f.id = n.id
  JOIN runs r ON r.id = n.id
 WHERE r.consoles_deleted_at IS NULL AND f.bytes > 0 AND (:id = 0 OR n.id = :id)
 GROUP BY n.id, f.bytes ORDER BY max(n.at), n.id
"""  # noqa: S608 - constant texts


def file_needs(session: Session) -> Sequence[Need]:
    """Return all jobs with stored artifacts, those needed longest ago first."""
    return _needs(session, _FILES, id=0)


def console_needs(session: Session) -> Sequence[Need]:
    """Return all runs with stored consoles, those needed longest ago first."""
    return _needs(session, _CONSOLES, id=0)


def need_of(session: Session, kind: Kind, job_id: int) -> Need | None:
    """Return the need of one job; None if it has no files any more."""
    found = _needs(session, _CONSOLES if kind == "consoles" else _FILES, id=job_id)
    return found[0] if found else None


def _needs(session: Session, query: str, **values: object) -> Sequence[Need]:
    return [
        Need(kind, job_id, size, busy, pinned, used_at)
        for kind, job_id, size, busy, pinned, used_at in session.execute(text(query), values)
    ]

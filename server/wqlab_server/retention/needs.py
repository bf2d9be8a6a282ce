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

Kind = Literal["applies", "builds", "runs", "consoles"]


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


# Each part returns one reason to need a job's files: (kind, id, busy, pinned, at).
_REASONS = """
  SELECT 'applies' AS kind, a.id, a.state <> 'finished' AS busy, false AS pinned,
         coalesce(a.finished_at, a.created_at) AS at
    FROM applies a WHERE a.files_deleted_at IS NULL
  UNION ALL
  SELECT 'applies', a.id, s.state <> 'finished', s.pinned_at IS NOT NULL, greatest(s.finished_at, s.linked_at)
    FROM applies a JOIN submissions s ON s.id = a.submission_id WHERE a.files_deleted_at IS NULL
  UNION ALL  -- an unfinished build of another submission, with equal content, applies this bundle
  SELECT 'applies', l.apply_id, true, false, b.created_at
    FROM builds b JOIN artifact_links l ON l.sha256 = b.source -> 'bundle' ->> 'sha256'
   WHERE b.state <> 'finished' AND l.apply_id IS NOT NULL
  UNION ALL
  SELECT 'builds', b.id, b.state <> 'finished', false, coalesce(b.finished_at, b.created_at)
    FROM builds b WHERE b.files_deleted_at IS NULL
  UNION ALL
  SELECT 'builds', u.build_id, s.state <> 'finished', s.pinned_at IS NOT NULL, greatest(s.finished_at, s.linked_at)
    FROM submission_builds u JOIN submissions s ON s.id = u.submission_id
  UNION ALL
  SELECT 'builds', u.build_id, r.state <> 'finished', false, r.finished_at
    FROM runs r CROSS JOIN LATERAL (VALUES (r.baseline_build_id), (r.candidate_build_id)) u (build_id)
   WHERE r.submission_id IS NULL
  UNION ALL  -- a device check measures the noise with the kernel of its health check
  SELECT 'builds', r.baseline_build_id, true, false, c.created_at
    FROM device_checks c JOIN runs r ON r.id = c.health_run_id WHERE c.finished_at IS NULL
  UNION ALL
  SELECT 'runs', r.id, r.state <> 'finished', false, coalesce(r.finished_at, r.created_at) FROM runs r
  UNION ALL
  SELECT 'runs', r.id, s.state <> 'finished', s.pinned_at IS NOT NULL, greatest(s.finished_at, s.linked_at)
    FROM runs r JOIN submissions s ON s.id = r.submission_id
"""
_FILES = f"""
SELECT n.kind, n.id, f.bytes, bool_or(n.busy), bool_or(n.pinned), max(n.at)
  FROM ({_REASONS}) n
  JOIN (SELECT CASE WHEN l.apply_id IS NOT NULL THEN 'applies' WHEN l.build_id IS NOT NULL THEN 'builds' ELSE 'runs' END
                 AS kind, coalesce(l.apply_id, l.build_id, l.run_id) AS id, sum(a.size)::bigint AS bytes
          FROM artifact_links l JOIN artifacts a USING (sha256) WHERE a.deleted_at IS NULL GROUP BY 1, 2) f
    ON f.kind = n.kind AND f.id = n.id
 WHERE (:kind = '' OR n.kind = :kind) AND (:id = 0 OR n.id = :id)
   AND NOT (n.kind = 'builds' AND n.id IN (SELECT id FROM builds WHERE files_deleted_at IS NOT NULL))
   AND NOT (n.kind = 'runs' AND n.id IN (SELECT id FROM runs WHERE files_deleted_at IS NOT NULL))
   AND NOT (n.kind = 'applies' AND n.id IN (SELECT id FROM applies WHERE files_deleted_at IS NOT NULL))
 GROUP BY n.kind, n.id, f.bytes ORDER BY max(n.at), n.kind, n.id
"""  # noqa: S608 - constant texts
_CONSOLES = f"""
SELECT 'consoles', n.id, f.bytes, bool_or(n.busy), bool_or(n.pinned), max(n.at)
  FROM ({_REASONS}) n
  JOIN (SELECT run_id AS id, sum(console_bytes)::bigint AS bytes FROM boots GROUP BY 1) f ON f.id = n.id
  JOIN runs r ON r.id = n.id
 WHERE n.kind = 'runs' AND r.consoles_deleted_at IS NULL AND f.bytes > 0 AND (:id = 0 OR n.id = :id)
 GROUP BY n.id, f.bytes ORDER BY max(n.at), n.id
"""  # noqa: S608 - constant texts


def file_needs(session: Session) -> Sequence[Need]:
    """Return all jobs with stored artifacts, those needed longest ago first."""
    return _needs(session, _FILES, kind="", id=0)


def console_needs(session: Session) -> Sequence[Need]:
    """Return all runs with stored consoles, those needed longest ago first."""
    return _needs(session, _CONSOLES, id=0)


def need_of(session: Session, kind: Kind, job_id: int) -> Need | None:
    """Return the need of one job; None if it has no files any more."""
    if kind == "consoles":
        found = _needs(session, _CONSOLES, id=job_id)
    else:
        found = _needs(session, _FILES, kind=kind, id=job_id)
    return found[0] if found else None


def _needs(session: Session, query: str, **values: object) -> Sequence[Need]:
    return [
        Need(kind, job_id, size, busy, pinned, used_at)
        for kind, job_id, size, busy, pinned, used_at in session.execute(text(query), values)
    ]

"""Keep the points of a line as JSON text in chunks, so that a chart of thousands of points is read without joins.

Chunks are copies: the rows of `history_points` are the truth, and a chunk is written from them.
"""

from __future__ import annotations

import itertools

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from ..models import HistoryChunk, HistoryLine, HistoryPoint

MOST_POINTS = 250
"""Points of a chunk after which the next head begins another. The last chunk is written anew for each added point."""

_WRITE = text("""
    INSERT INTO history_chunks (line_id, first_head_id, points, series)
    SELECT :line, :first, count(*), string_agg(row_to_json(point)::text, ',' ORDER BY (point.head ->> 'id')::integer)
    FROM (
        SELECT
            json_build_object('id', p.head_id, 'name', h.name, 'commit', h.commit) AS head,
            to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
            p.value, p.stddev, p.n, p.effect,
            CASE WHEN p.ci_low IS NOT NULL AND p.ci_high IS NOT NULL
                THEN json_build_array(p.ci_low, p.ci_high) END AS ci95,
            p.verdict, p.run_id, r.submission_id, p.cut
        FROM history_points AS p
        JOIN watched_heads AS h ON h.id = p.head_id
        JOIN runs AS r ON r.id = p.run_id
        WHERE p.line_id = :line AND p.head_id >= :low AND p.head_id < :high
    ) AS point
    HAVING count(*) > 0
    ON CONFLICT (line_id, first_head_id) DO UPDATE SET points = excluded.points, series = excluded.series
""")
_NO_HEAD = 2**31 - 1
"""Above the id of every head."""


def add_to_chunk(session: Session, line_id: int, head_id: int) -> None:
    """Write the chunk with the point of a head. The caller has locked the line and has written the point's row."""
    chunks = session.execute(
        select(HistoryChunk.first_head_id, HistoryChunk.points)
        .where(HistoryChunk.line_id == line_id)
        .order_by(HistoryChunk.first_head_id)
    ).all()
    begins = [chunk.first_head_id for chunk in chunks]
    newest = session.scalar(select(func.max(HistoryPoint.head_id)).where(HistoryPoint.line_id == line_id))
    if not chunks or (chunks[-1].points >= MOST_POINTS and head_id == newest):
        begins.append(head_id)
    at = max((place for place, begin in enumerate(begins) if begin <= head_id), default=0)
    values = {
        "line": line_id,
        "first": begins[at],
        "low": begins[at] if at else 0,
        "high": begins[at + 1] if at + 1 < len(begins) else _NO_HEAD,
    }
    session.execute(_WRITE, values)


def series_json(session: Session, line: HistoryLine) -> str | None:
    """Return the points of a line as the items of a JSON array; None if its chunks do not have all points."""
    chunks = session.execute(
        select(HistoryChunk.points, HistoryChunk.series)
        .where(HistoryChunk.line_id == line.id)
        .order_by(HistoryChunk.first_head_id)
    ).all()
    if sum(chunk.points for chunk in chunks) != line.points:
        return None
    return ",".join(chunk.series for chunk in chunks)


def write_chunks(session: Session, line_id: int) -> None:
    """Write all chunks of a line from its points."""
    heads = session.scalars(
        select(HistoryPoint.head_id).where(HistoryPoint.line_id == line_id).order_by(HistoryPoint.head_id)
    ).all()
    begins = [*heads[::MOST_POINTS], _NO_HEAD]
    for first, high in itertools.pairwise(begins):
        session.execute(_WRITE, {"line": line_id, "first": first, "low": first, "high": high})

"""Keep the points of a line as JSON text in chunks of 250."""

import sqlalchemy as sa
from alembic import op

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None

FILL = """
    INSERT INTO history_chunks (line_id, first_head_id, points, series)
    SELECT line_id, min(head_id), count(*), string_agg(row_to_json(point)::text, ',' ORDER BY head_id)
    FROM (
        SELECT
            p.line_id, p.head_id, (row_number() OVER (PARTITION BY p.line_id ORDER BY p.head_id) - 1) / 250 AS chunk,
            json_build_object('id', p.head_id, 'name', h.name, 'commit', h.commit) AS head,
            to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
            p.value, p.stddev, p.n, p.effect,
            CASE WHEN p.ci_low IS NOT NULL AND p.ci_high IS NOT NULL
                THEN json_build_array(p.ci_low, p.ci_high) END AS ci95,
            p.verdict, p.run_id, r.submission_id, p.cut
        FROM history_points AS p
        JOIN watched_heads AS h ON h.id = p.head_id
        JOIN runs AS r ON r.id = p.run_id
    ) AS every
    CROSS JOIN LATERAL (
        SELECT head, at, value, stddev, n, effect, ci95, verdict, run_id, submission_id, cut
    ) AS point
    GROUP BY line_id, chunk
"""


def upgrade() -> None:
    op.create_table('history_chunks',
    sa.Column('line_id', sa.Integer(), nullable=False),
    sa.Column('first_head_id', sa.Integer(), nullable=False),
    sa.Column('points', sa.Integer(), nullable=False),
    sa.Column('series', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['line_id'], ['history_lines.id'], name=op.f('fk_history_chunks_line_id')),
    sa.PrimaryKeyConstraint('line_id', 'first_head_id', name=op.f('pk_history_chunks'))
    )
    op.execute(FILL)


def downgrade() -> None:
    op.drop_table('history_chunks')

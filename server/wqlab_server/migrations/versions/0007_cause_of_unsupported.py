"""Add the cause to rows of `unsupported`. Until now it was the beginning of the reason."""

import sqlalchemy as sa
from alembic import op

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None

CAUSES = (
    'lacking', 'setting_not_used', 'no_samples', 'events_lost', 'unreliable', 'run_failed', 'unpaired', 'not_run',
)
PREFIX = 'not measured: '


def upgrade() -> None:
    cause = sa.Enum(*CAUSES, name='not_measured_cause', native_enum=False, create_constraint=True, length=32)
    op.add_column('unsupported', sa.Column('cause', cause, server_default='lacking', nullable=False))
    op.execute(
        "UPDATE unsupported SET cause = CASE WHEN reason LIKE '%the trace buffer lost %' THEN 'events_lost' "
        f"ELSE 'no_samples' END, reason = substr(reason, {len(PREFIX) + 1}) WHERE reason LIKE '{PREFIX}%'"
    )
    op.alter_column('unsupported', 'cause', server_default=None)


def downgrade() -> None:
    op.execute(
        f"UPDATE unsupported SET reason = '{PREFIX}' || reason WHERE cause IN ('no_samples', 'events_lost', 'unreliable')"
    )
    op.drop_column('unsupported', 'cause')

"""Add the tables of KernelCI's jobs and of the cursor in its events."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0016'
down_revision = '0015'
branch_labels = None
depends_on = None


def upgrade() -> None:
    timestamp = postgresql.TIMESTAMP(timezone=True)
    op.create_table('kernelci_cursors',
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('runtime', sa.Text(), nullable=False),
    sa.Column('read_until', timestamp, nullable=False),
    sa.PrimaryKeyConstraint('url', 'runtime', name=op.f('pk_kernelci_cursors'))
    )
    op.create_table('kernelci_jobs',
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('platform', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('definition_url', sa.Text(), nullable=False),
    sa.Column('state', sa.Enum('seen', 'claimed', 'running', 'reporting', 'reported', 'lost', name='kernel_ci_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('result', sa.Text(), nullable=True),
    sa.Column('error_code', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('seen_at', timestamp, server_default=sa.text('now()'), nullable=False),
    sa.Column('due_at', timestamp, server_default=sa.text('now()'), nullable=False),
    sa.Column('ended_at', timestamp, nullable=True),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_kernelci_jobs_submission_id')),
    sa.PrimaryKeyConstraint('node_id', name=op.f('pk_kernelci_jobs'))
    )
    op.create_index(op.f('ix_kernelci_jobs_submission_id'), 'kernelci_jobs', ['submission_id'])
    op.create_index(
        'ix_kernelci_jobs_open', 'kernelci_jobs', ['due_at'],
        postgresql_where=sa.text("state NOT IN ('reported', 'lost')"),
    )


def downgrade() -> None:
    op.drop_table('kernelci_jobs')
    op.drop_table('kernelci_cursors')

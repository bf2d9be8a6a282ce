"""Add columns for retention and pins, and the table of storage reports."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

TIMESTAMP = postgresql.TIMESTAMP(timezone=True)
NEEDED = "outcome IS NULL OR outcome = 'passed'"


def upgrade() -> None:
    op.add_column('artifacts', sa.Column('deleted_at', TIMESTAMP, nullable=True))
    op.add_column('artifacts', sa.Column('stored', sa.Boolean(), server_default=sa.text('true'), nullable=False))
    for table in ('applies', 'builds', 'runs'):
        op.add_column(table, sa.Column('files_deleted_at', TIMESTAMP, nullable=True))
    op.add_column('runs', sa.Column('consoles_deleted_at', TIMESTAMP, nullable=True))
    op.add_column('submissions', sa.Column('pinned_at', TIMESTAMP, nullable=True))
    op.add_column('submissions', sa.Column('pinned_by', sa.Text(), nullable=True))
    op.add_column('submissions', sa.Column('linked_at', TIMESTAMP, nullable=True))
    op.drop_index('uq_builds_key_live', table_name='builds')
    op.create_index('uq_builds_key_live', 'builds', ['key'], unique=True, postgresql_where=sa.text(f"({NEEDED}) AND files_deleted_at IS NULL"))
    op.create_table('storage_reports',
    sa.Column('lab', sa.Text(), nullable=False),
    sa.Column('machine', sa.Text(), nullable=False),
    sa.Column('areas', postgresql.JSONB(), nullable=False),
    sa.Column('reported_at', TIMESTAMP, server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('lab', 'machine', name=op.f('pk_storage_reports'))
    )


def downgrade() -> None:
    op.drop_table('storage_reports')
    op.drop_index('uq_builds_key_live', table_name='builds')
    op.create_index('uq_builds_key_live', 'builds', ['key'], unique=True, postgresql_where=sa.text(NEEDED))
    for column in ('linked_at', 'pinned_by', 'pinned_at'):
        op.drop_column('submissions', column)
    op.drop_column('runs', 'consoles_deleted_at')
    for table in ('runs', 'builds', 'applies'):
        op.drop_column(table, 'files_deleted_at')
    op.drop_column('artifacts', 'stored')
    op.drop_column('artifacts', 'deleted_at')

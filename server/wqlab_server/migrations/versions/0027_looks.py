"""Add the looks at a run: planned, taken, and those of the runs that it continues."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None


def upgrade() -> None:
    empty = sa.text("'[]'::jsonb")
    op.add_column('runs', sa.Column('looks', postgresql.JSONB(), server_default=empty, nullable=False))
    op.add_column('runs', sa.Column('looked', postgresql.JSONB(), server_default=empty, nullable=False))
    op.add_column('runs', sa.Column('earlier_looks', sa.Integer(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    for name in ('earlier_looks', 'looked', 'looks'):
        op.drop_column('runs', name)

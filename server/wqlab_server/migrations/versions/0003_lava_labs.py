"""Add columns for LAVA labs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('labs', sa.Column('pool', postgresql.JSONB(), nullable=True))
    op.add_column('devices', sa.Column('backend', sa.Text(), server_default='labgrid', nullable=False))
    op.add_column('runs', sa.Column('wanted_backend', sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column('runs', 'wanted_backend')
    op.drop_column('devices', 'backend')
    op.drop_column('labs', 'pool')

"""Add the table with the time of the last tick."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('last_tick',
    sa.Column('id', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('seconds', sa.Float(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_last_tick'))
    )


def downgrade() -> None:
    op.drop_table('last_tick')

"""Add the layouts in which kernels are linked, and canaries that compare them."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

CONSTRAINT = 'ck_runs_canary_kind'
KINDS = ('same_kernel', 'nops')


def upgrade() -> None:
    for table in ('builds', 'runs'):
        op.add_column(table, sa.Column('layouts', sa.Integer(), server_default=sa.text('1'), nullable=False))
    set_kinds(*KINDS, 'other_layout')


def downgrade() -> None:
    """Runs of this kind keep their rows, so the constraint keeps allowing them."""
    for table in ('runs', 'builds'):
        op.drop_column(table, 'layouts')


def set_kinds(*kinds: str) -> None:
    op.drop_constraint(op.f(CONSTRAINT), 'runs')
    op.create_check_constraint(op.f(CONSTRAINT), 'runs', f"canary IN ({', '.join(map(repr, kinds))})")

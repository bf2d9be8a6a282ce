"""Allow runs that are canaries: A/A comparisons on idle devices."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0028'
down_revision = '0027'
branch_labels = None
depends_on = None

CONSTRAINT = 'ck_runs_run_purpose'
PURPOSES = ('measure', 'health_check', 'noise')


def upgrade() -> None:
    set_purposes(*PURPOSES, 'canary')
    kind = sa.Enum('same_kernel', 'nops', name='canary_kind', native_enum=False, create_constraint=True, length=32)
    op.add_column('runs', sa.Column('canary', kind, nullable=True))
    op.add_column('runs', sa.Column('floor_jump', postgresql.JSONB(), nullable=True))
    op.create_index(
        'ix_runs_canaries', 'runs', ['wanted_device', 'id'], postgresql_where=sa.text("purpose = 'canary'")
    )


def downgrade() -> None:
    """Runs of this purpose keep their rows, so the constraint keeps allowing them."""
    op.drop_index('ix_runs_canaries', 'runs')
    op.drop_column('runs', 'floor_jump')
    op.drop_column('runs', 'canary')


def set_purposes(*purposes: str) -> None:
    op.drop_constraint(op.f(CONSTRAINT), 'runs')
    op.create_check_constraint(op.f(CONSTRAINT), 'runs', f"purpose IN ({', '.join(map(repr, purposes))})")

"""Allow the arms between base and whole series, for series that are walked patch by patch."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

TABLES = ('block_attempts', 'boots', 'shared_boots', 'submission_builds', 'unsupported')
PAIR = ('baseline', 'candidate')
BETWEEN = tuple(f'patch-{number}' for number in range(1, 16))


def upgrade() -> None:
    for table in TABLES:
        op.drop_constraint(op.f(f'ck_{table}_arm'), table)
        arms = ', '.join(map(repr, PAIR + BETWEEN))
        op.create_check_constraint(op.f(f'ck_{table}_arm'), table, f'arm IN ({arms})')
    for column in ('walk', 'rung_comparisons'):
        op.add_column(
            'runs',
            sa.Column(column, postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        )


def downgrade() -> None:
    """Rows of these arms stay, so the constraints keep allowing them."""
    op.drop_column('runs', 'rung_comparisons')
    op.drop_column('runs', 'walk')

"""Allow deliveries to KernelCI's results database."""

import sqlalchemy as sa
from alembic import op

revision = '0023'
down_revision = '0022'
branch_labels = None
depends_on = None

CONSTRAINT = 'ck_deliveries_delivery_kind'


def upgrade() -> None:
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': CONSTRAINT}
    )
    values = [value for value in (known or '').split("'")[1::2] if value != 'kcidb']
    values.insert(values.index('mail') + 1, 'kcidb')
    op.drop_constraint(op.f(CONSTRAINT), 'deliveries')
    op.create_check_constraint(op.f(CONSTRAINT), 'deliveries', f"kind IN ({', '.join(map(repr, values))})")


def downgrade() -> None:
    """Deliveries keep their rows of this kind, so the constraint keeps allowing them."""

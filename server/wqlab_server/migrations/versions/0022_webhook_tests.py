"""Add the test of a webhook to the actions of the audit log."""

import sqlalchemy as sa
from alembic import op

revision = '0022'
down_revision = '0017'
branch_labels = None
depends_on = None

ACTION = 'webhook.test'


def upgrade() -> None:
    """Add a value to the check constraint of the audit log's actions, whatever other revisions have added."""
    name = op.f('ck_audit_log_audit_action')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [value for value in (known or '').split("'")[1::2] if value not in {'request', ACTION}]
    op.drop_constraint(name, 'audit_log')
    op.create_check_constraint(name, 'audit_log', f"action IN ({', '.join(map(repr, [*values, ACTION, 'request']))})")


def downgrade() -> None:
    """Change nothing: the audit log is append-only, so its entries of this action stay, and stay allowed."""

"""Pause webhooks, and add their test and pause to the actions of the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None

ACTIONS = ['webhook.test', 'webhook.pause', 'webhook.resume']


def upgrade() -> None:
    op.add_column('webhooks', sa.Column('paused_at', postgresql.TIMESTAMP(timezone=True), nullable=True))
    _allow(ACTIONS)


def downgrade() -> None:
    op.drop_column('webhooks', 'paused_at')
    # The audit log is append-only: its entries of these actions stay, and the constraint keeps allowing them.


def _allow(add: list[str]) -> None:
    """Add values to the check constraint of the audit log's actions, whatever other revisions have added."""
    name = op.f('ck_audit_log_audit_action')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [value for value in (known or '').split("'")[1::2] if value not in {'request', *add}]
    op.drop_constraint(name, 'audit_log')
    op.create_check_constraint(name, 'audit_log', f"action IN ({', '.join(map(repr, [*values, *add, 'request']))})")

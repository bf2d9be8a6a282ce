"""Add device trials."""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table('device_trials',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('device', postgresql.JSONB(), nullable=False),
    sa.Column('lab', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('write', sa.Boolean(), nullable=False),
    sa.Column('steps', postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
    sa.Column('result', postgresql.JSONB(), nullable=True),
    sa.Column('changes', sa.Integer(), nullable=False),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=True),
    sa.Column('holder', sa.Text(), nullable=True),
    sa.Column('claim_nonce', sa.Text(), nullable=True),
    sa.Column('expires_at', TIME, nullable=True),
    sa.Column('cancel_requested_at', TIME, nullable=True),
    sa.Column('nudged_at', TIME, nullable=True),
    sa.Column('nudges', sa.Integer(), nullable=False),
    sa.Column('progress', sa.Text(), nullable=False),
    sa.Column('progress_done', sa.Integer(), nullable=False),
    sa.Column('progress_total', sa.Integer(), nullable=False),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('started_at', TIME, nullable=True),
    sa.Column('finished_at', TIME, nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_device_trials'))
    )
    op.create_index('ix_device_trials_lab', 'device_trials', ['lab'], unique=False)
    op.create_index('ix_device_trials_state', 'device_trials', ['state'], unique=False)
    _allow(add=['device.try'])


def downgrade() -> None:
    op.drop_table('device_trials')
    # The audit log is append-only: its entries of these actions stay, and the constraint keeps allowing them.


def _allow(add: list[str]) -> None:
    """Add values to the check constraint of the audit log's actions, whatever other revisions have added."""
    name = op.f('ck_audit_log_audit_action')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [*(value for value in _literals(known or '') if value != 'request' and value not in add), *add, 'request']
    op.drop_constraint(name, 'audit_log')
    op.create_check_constraint(name, 'audit_log', f"action IN ({', '.join(map(repr, values))})")


def _literals(definition: str) -> list[str]:
    return definition.split("'")[1::2]

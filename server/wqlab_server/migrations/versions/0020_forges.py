"""Add the tables of forges, and deliveries of statuses and comments."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
ACTIONS = ['forge.event']
KINDS = ['forge_status', 'forge_comment']


def closed(name: str, *values: str) -> sa.Enum:
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=32)


def upgrade() -> None:
    op.create_table('forge_events',
    sa.Column('forge', sa.Text(), nullable=False),
    sa.Column('delivery', sa.Text(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('received_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('forge', 'delivery', name=op.f('pk_forge_events'))
    )
    op.create_index('ix_forge_events_received_at', 'forge_events', ['received_at'])
    op.create_table('forge_changes',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('forge', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=True),
    sa.Column('branch', sa.Text(), nullable=False),
    sa.Column('title', sa.Text(), nullable=False),
    sa.Column('author', sa.Text(), nullable=False),
    sa.Column('from_fork', sa.Boolean(), nullable=False),
    sa.Column('closed', sa.Boolean(), nullable=False),
    sa.Column('head', sa.Text(), nullable=False),
    sa.Column('updated_at', TIME, nullable=True),
    sa.Column('labels', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('pushed_head', sa.Text(), nullable=False),
    sa.Column('label_head', sa.Text(), nullable=False),
    sa.Column('label_by', sa.Text(), nullable=False),
    sa.Column('label_by_id', sa.Integer(), nullable=True),
    sa.Column('events', sa.Integer(), nullable=False),
    sa.Column('due_at', TIME, nullable=True),
    sa.Column('nudged_at', TIME, nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.Column('comment_id', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_forge_changes')),
    sa.UniqueConstraint('forge', 'key', name=op.f('uq_forge_changes_forge_key'))
    )
    op.create_index(
        'ix_forge_changes_due', 'forge_changes', ['due_at'], postgresql_where=sa.text('due_at IS NOT NULL')
    )
    op.create_table('forge_heads',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('change_id', sa.Integer(), nullable=False),
    sa.Column('head', sa.Text(), nullable=False),
    sa.Column('base_branch', sa.Text(), nullable=False),
    sa.Column('trusted', sa.Boolean(), nullable=False),
    sa.Column('allowed', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('result', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('decided_at', TIME, nullable=True),
    sa.Column('due_at', TIME, nullable=True),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('withdrawn_at', TIME, nullable=True),
    sa.Column('told_at', TIME, nullable=True),
    sa.Column('ended_at', TIME, nullable=True),
    sa.Column('state', closed('job_state', 'waiting', 'queued', 'running', 'finished'), nullable=False),
    sa.Column('outcome', closed('outcome', 'passed', 'failed', 'canceled'), nullable=True),
    sa.Column('failure', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
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
    sa.ForeignKeyConstraint(['change_id'], ['forge_changes.id'], name=op.f('fk_forge_heads_change_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_forge_heads_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_forge_heads'))
    )
    op.create_index(op.f('ix_forge_heads_state'), 'forge_heads', ['state'])
    op.create_index(op.f('ix_forge_heads_submission_id'), 'forge_heads', ['submission_id'])
    op.create_index(
        'ix_forge_heads_current', 'forge_heads', ['change_id', 'head'], unique=True,
        postgresql_where=sa.text('withdrawn_at IS NULL'),
    )
    op.create_index('ix_forge_heads_open', 'forge_heads', ['id'], postgresql_where=sa.text('ended_at IS NULL'))
    _allow('deliveries', 'delivery_kind', 'kind', KINDS)
    _allow('audit_log', 'audit_action', 'action', ACTIONS)


def downgrade() -> None:
    for table in ('forge_heads', 'forge_changes', 'forge_events'):
        op.drop_table(table)
    # Deliveries and the audit log keep their rows of these kinds, and the constraints keep allowing them.


def _allow(table: str, enum: str, column: str, add: list[str]) -> None:
    """Add values to the check constraint of a column, whatever other revisions have added."""
    name = op.f(f'ck_{table}_{enum}')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [value for value in (known or '').split("'")[1::2] if value not in add]
    at = values.index('request') if 'request' in values else len(values)
    op.drop_constraint(name, table)
    op.create_check_constraint(name, table, f"{column} IN ({', '.join(map(repr, [*values[:at], *add, *values[at:]]))})")

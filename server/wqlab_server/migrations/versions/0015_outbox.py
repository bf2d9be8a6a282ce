"""Add the tables of the outbox, and the actions on them to the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
ACTIONS = [
    'webhook.create', 'webhook.rotate', 'webhook.remove', 'delivery.replay', 'mail.approve', 'mail.edit', 'mail.drop',
]


def closed(name: str, *values: str) -> sa.Enum:
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=32)


def upgrade() -> None:
    op.create_table('outbox_events',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('event', closed('outbox_event', 'submission.accepted', 'submission.finished', 'regression.found', 'device.quarantined', 'lab.lost'), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('device_name', sa.Text(), nullable=True),
    sa.Column('lab', sa.Text(), nullable=True),
    sa.Column('detail', postgresql.JSONB(), nullable=False),
    sa.Column('at', TIME, server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('handled_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_outbox_events_submission_id')),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_outbox_events_device_name')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_outbox_events')),
    sa.UniqueConstraint('key', name=op.f('uq_outbox_events_key'))
    )
    op.create_index('ix_outbox_events_unhandled', 'outbox_events', ['id'], postgresql_where=sa.text('handled_at IS NULL'))
    op.create_table('webhooks',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('events', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('filter', postgresql.JSONB(), nullable=False),
    sa.Column('secret', sa.Text(), nullable=False),
    sa.Column('previous_secret', sa.Text(), nullable=True),
    sa.Column('previous_until', TIME, nullable=True),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('removed_at', TIME, nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhooks'))
    )
    op.create_index(op.f('ix_webhooks_owner'), 'webhooks', ['owner'])
    op.create_table('deliveries',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('kind', closed('delivery_kind', 'webhook', 'mail'), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('destination', sa.Text(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=False),
    sa.Column('webhook_id', sa.Integer(), nullable=True),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('body', sa.Text(), nullable=True),
    sa.Column('mail', postgresql.JSONB(), nullable=True),
    sa.Column('thread', sa.Text(), nullable=True),
    sa.Column('says', postgresql.JSONB(), nullable=True),
    sa.Column('state', closed('delivery_state', 'waiting_for_review', 'waiting', 'delivered', 'given_up', 'dropped'), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('tries', sa.Integer(), nullable=False),
    sa.Column('next_at', TIME, nullable=True),
    sa.Column('nudged_at', TIME, nullable=True),
    sa.Column('fence', sa.BigInteger(), nullable=True),
    sa.Column('claimed_until', TIME, nullable=True),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('finished_at', TIME, nullable=True),
    sa.Column('decided_by', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_deliveries_webhook_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_deliveries_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_deliveries')),
    sa.UniqueConstraint('key', name=op.f('uq_deliveries_key')),
    sa.UniqueConstraint('message_id', name=op.f('uq_deliveries_message_id'))
    )
    op.create_index('ix_deliveries_due', 'deliveries', ['next_at'], postgresql_where=sa.text("state = 'waiting'"))
    op.create_index('ix_deliveries_state', 'deliveries', ['state', 'id'])
    op.create_index('ix_deliveries_webhook_id', 'deliveries', ['webhook_id', 'id'])
    op.create_index('ix_deliveries_submission_id', 'deliveries', ['submission_id', 'id'])
    op.create_index('ix_deliveries_thread', 'deliveries', ['thread', 'id'])
    op.create_table('delivery_attempts',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('delivery_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=False),
    sa.Column('started_at', TIME, nullable=False),
    sa.Column('finished_at', TIME, nullable=True),
    sa.Column('outcome', closed('attempt_outcome', 'accepted', 'failed', 'unknown', 'refused'), nullable=True),
    sa.Column('status', sa.Integer(), nullable=True),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['delivery_id'], ['deliveries.id'], name=op.f('fk_delivery_attempts_delivery_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_delivery_attempts')),
    sa.UniqueConstraint('delivery_id', 'number', name=op.f('uq_delivery_attempts_delivery_id_number'))
    )
    op.create_table('source_mails',
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=False),
    sa.Column('source', postgresql.JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_source_mails_submission_id')),
    sa.PrimaryKeyConstraint('submission_id', name=op.f('pk_source_mails'))
    )
    op.create_index(op.f('ix_source_mails_message_id'), 'source_mails', ['message_id'])
    op.add_column('last_tick', sa.Column('running_since', TIME, server_default=sa.text('now()'), nullable=False))
    _allow(add=ACTIONS)


def downgrade() -> None:
    op.drop_column('last_tick', 'running_since')
    for table in ('source_mails', 'delivery_attempts', 'deliveries', 'webhooks', 'outbox_events'):
        op.drop_table(table)
    # The audit log is append-only: its entries of these actions stay, and the constraint keeps allowing them.


def _allow(add: list[str]) -> None:
    """Add values to the check constraint of the audit log's actions, whatever other revisions have added."""
    name = op.f('ck_audit_log_audit_action')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [*(value for value in _literals(known or '') if value != 'request'), *add, 'request']
    op.drop_constraint(name, 'audit_log')
    op.create_check_constraint(name, 'audit_log', f"action IN ({', '.join(map(repr, values))})")


def _literals(definition: str) -> list[str]:
    return definition.split("'")[1::2]

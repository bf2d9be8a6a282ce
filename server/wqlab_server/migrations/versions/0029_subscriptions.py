"""Add subscriptions, mail addresses of accounts, personal mails, and the actions on them to the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
ACTIONS = [
    'mail_address.ask', 'mail_address.confirm', 'mail_address.remove', 'subscription.create', 'subscription.remove',
    'subscription.unsubscribe',
]
KINDS = ['personal_mail']


def upgrade() -> None:
    op.create_table('mail_addresses',
    sa.Column('user_id', sa.Integer(), nullable=False),
    sa.Column('secret', sa.Text(), nullable=False),
    sa.Column('address', sa.Text(), nullable=True),
    sa.Column('confirmed_at', TIME, nullable=True),
    sa.Column('asked_address', sa.Text(), nullable=True),
    sa.Column('asked_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_mail_addresses_user_id')),
    sa.PrimaryKeyConstraint('user_id', name=op.f('pk_mail_addresses'))
    )
    op.create_table('subscriptions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('user_id', sa.Integer(), nullable=False),
    sa.Column('kind', sa.Enum('my_series', 'device_type', 'regressions', name='subscription_kind', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('device_type', sa.Text(), nullable=True),
    sa.Column('plan', sa.Text(), nullable=True),
    sa.Column('webhook_id', sa.Integer(), nullable=True),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('removed_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_subscriptions_user_id')),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_subscriptions_webhook_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_subscriptions'))
    )
    op.create_index('ix_subscriptions_active', 'subscriptions', ['kind', 'user_id'], postgresql_where=sa.text('removed_at IS NULL'))
    op.create_index('ix_subscriptions_user_id', 'subscriptions', ['user_id', 'id'])
    op.add_column('deliveries', sa.Column('user_id', sa.Integer(), nullable=True))
    op.create_foreign_key(op.f('fk_deliveries_user_id'), 'deliveries', 'users', ['user_id'], ['id'])
    op.create_index('ix_deliveries_user_id', 'deliveries', ['user_id', 'id'])
    op.create_table('subscribed_results',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('user_id', sa.Integer(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('thread', sa.Text(), nullable=False),
    sa.Column('subscription_ids', postgresql.ARRAY(sa.Integer()), nullable=False),
    sa.Column('says', postgresql.JSONB(), nullable=False),
    sa.Column('at', TIME, nullable=False),
    sa.Column('delivery_id', sa.Integer(), nullable=True),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_subscribed_results_user_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_subscribed_results_submission_id')),
    sa.ForeignKeyConstraint(['delivery_id'], ['deliveries.id'], name=op.f('fk_subscribed_results_delivery_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_subscribed_results')),
    sa.UniqueConstraint('user_id', 'submission_id', name=op.f('uq_subscribed_results_user_id_submission_id'))
    )
    op.create_index('ix_subscribed_results_thread', 'subscribed_results', ['thread', 'id'])
    op.create_index('ix_subscribed_results_delivery_id', 'subscribed_results', ['delivery_id'])
    op.create_index('ix_subscribed_results_uncollected', 'subscribed_results', ['user_id'], postgresql_where=sa.text('delivery_id IS NULL'))
    _allow('audit_log', 'action', 'ck_audit_log_audit_action', ACTIONS, before='forge.event')
    _allow('deliveries', 'kind', 'ck_deliveries_delivery_kind', KINDS, before='kcidb')


def downgrade() -> None:
    op.drop_table('subscribed_results')
    op.drop_index('ix_deliveries_user_id', 'deliveries')
    op.drop_constraint(op.f('fk_deliveries_user_id'), 'deliveries')
    op.drop_column('deliveries', 'user_id')
    op.drop_table('subscriptions')
    op.drop_table('mail_addresses')
    # The audit log is append-only, and deliveries keep their rows: the constraints keep allowing the new values.


def _allow(table: str, column: str, name: str, add: list[str], before: str) -> None:
    """Add values to a check constraint before a value that it has, whatever other revisions have added."""
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [value for value in (known or '').split("'")[1::2] if value not in add]
    place = values.index(before)
    values[place:place] = add
    op.drop_constraint(op.f(name), table)
    op.create_check_constraint(op.f(name), table, f"{column} IN ({', '.join(map(repr, values))})")

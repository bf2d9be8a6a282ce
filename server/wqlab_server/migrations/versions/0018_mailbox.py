"""Add the tables of commands in mails to the lab and of bounces."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def closed(name: str, *values: str) -> sa.Enum:
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=32)


def upgrade() -> None:
    op.create_table('received_commands',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('sender', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('command', closed('mail_command', 'retry', 'more blocks', 'stop'), nullable=True),
    sa.Column('state', closed('command_state', 'done', 'refused'), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('delivery_id', sa.Integer(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('thread', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['delivery_id'], ['deliveries.id'], name=op.f('fk_received_commands_delivery_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_received_commands_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_received_commands')),
    sa.UniqueConstraint('key', name=op.f('uq_received_commands_key'))
    )
    op.create_index(op.f('ix_received_commands_delivery_id'), 'received_commands', ['delivery_id'])
    op.create_index('ix_received_commands_thread', 'received_commands', ['thread', 'command'])
    op.create_table('mail_bounces',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('delivery_id', sa.Integer(), nullable=False),
    sa.Column('at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('recipient', sa.Text(), nullable=False),
    sa.Column('action', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['delivery_id'], ['deliveries.id'], name=op.f('fk_mail_bounces_delivery_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_mail_bounces')),
    sa.UniqueConstraint('delivery_id', 'recipient', 'action', name=op.f('uq_mail_bounces_delivery_id_recipient_action'))
    )


def downgrade() -> None:
    op.drop_table('mail_bounces')
    op.drop_table('received_commands')

"""Add the table of replies found in archives, which are stored until they are handled, and Message-IDs of commands."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0026'
down_revision = '0025'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table('list_replies',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('archive', sa.Text(), nullable=False),
    sa.Column('raw', sa.LargeBinary(), nullable=False),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('due_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('nudged_at', TIME, nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_list_replies'))
    )
    op.create_index(op.f('ix_list_replies_due_at'), 'list_replies', ['due_at'])
    op.add_column('received_commands', sa.Column('message_id', sa.Text(), server_default='', nullable=False))
    op.alter_column('received_commands', 'message_id', server_default=None)
    op.create_index(op.f('ix_received_commands_message_id'), 'received_commands', ['message_id'])


def downgrade() -> None:
    op.drop_index(op.f('ix_received_commands_message_id'), table_name='received_commands')
    op.drop_column('received_commands', 'message_id')
    op.drop_table('list_replies')

"""Add tables of lab invitations and lab hosts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('lab_invites',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('lab', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('invited_by', sa.Text(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expires_at', postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column('used_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('withdrawn_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_lab_invites')),
    sa.UniqueConstraint('digest', name=op.f('uq_lab_invites_digest'))
    )
    op.create_index(op.f('ix_lab_invites_lab'), 'lab_invites', ['lab'], unique=False)
    op.create_table('lab_hosts',
    sa.Column('lab', sa.Text(), nullable=False),
    sa.Column('invited_by', sa.Text(), nullable=False),
    sa.Column('token_id', sa.Integer(), nullable=False),
    sa.Column('broker_digest', sa.Text(), nullable=False),
    sa.Column('joined_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('removed_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['token_id'], ['tokens.id'], name=op.f('fk_lab_hosts_token_id')),
    sa.PrimaryKeyConstraint('lab', name=op.f('pk_lab_hosts'))
    )


def downgrade() -> None:
    op.drop_table('lab_hosts')
    op.drop_index(op.f('ix_lab_invites_lab'), table_name='lab_invites')
    op.drop_table('lab_invites')

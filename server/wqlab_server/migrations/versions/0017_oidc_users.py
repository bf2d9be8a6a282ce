"""Add users of an OpenID provider, who have no password, and the end of their sessions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column('users', 'password_hash', existing_type=sa.Text(), nullable=True)
    op.add_column('users', sa.Column('issuer', sa.Text(), nullable=True))
    op.add_column('users', sa.Column('subject', sa.Text(), nullable=True))
    op.add_column('users', sa.Column('without_role_since', postgresql.TIMESTAMP(timezone=True), nullable=True))
    op.create_unique_constraint(op.f('uq_users_issuer_subject'), 'users', ['issuer', 'subject'])
    op.create_check_constraint(
        op.f('ck_users_password_or_provider'), 'users',
        '(password_hash IS NULL) = (issuer IS NOT NULL) AND (issuer IS NULL) = (subject IS NULL)',
    )
    op.add_column('browser_sessions', sa.Column('ends_at', postgresql.TIMESTAMP(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column('browser_sessions', 'ends_at')
    op.drop_constraint(op.f('ck_users_password_or_provider'), 'users')
    op.drop_constraint(op.f('uq_users_issuer_subject'), 'users')
    # Rows are never deleted, because submissions name their owner. No password has this text as its hash.
    op.execute("UPDATE users SET password_hash = '', disabled_at = coalesce(disabled_at, now()) WHERE password_hash IS NULL")
    op.drop_column('users', 'without_role_since')
    op.drop_column('users', 'subject')
    op.drop_column('users', 'issuer')
    op.alter_column('users', 'password_hash', existing_type=sa.Text(), nullable=False)

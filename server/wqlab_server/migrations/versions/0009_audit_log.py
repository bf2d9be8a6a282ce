"""Add the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('audit_log',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('actor', sa.Text(), nullable=False),
    sa.Column('token_id', sa.Integer(), nullable=True),
    sa.Column('token_name', sa.Text(), nullable=True),
    sa.Column('address', sa.Text(), nullable=True),
    sa.Column('action', sa.Enum('session.sign_in', 'session.sign_out', 'session.change_password', 'token.create', 'token.revoke', 'user.create', 'user.change', 'user.reset_password', 'submission.create', 'submission.cancel', 'submission.retry', 'submission.pin', 'submission.unpin', 'device.quarantine', 'device.release', 'device.health_check', 'device.check', 'device.change', 'lab.invite', 'lab.join', 'lab.register', 'lab.remove', 'data.change', 'settings.change', 'audit.prune', 'request', name='audit_action', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('resource', sa.Text(), nullable=False),
    sa.Column('outcome', sa.Enum('done', 'refused', name='audit_outcome', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('detail', postgresql.JSONB(), nullable=False),
    sa.Column('state', postgresql.JSONB(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_audit_log'))
    )
    op.create_index('ix_audit_log_at', 'audit_log', ['at'], unique=False)
    op.create_index('ix_audit_log_actor', 'audit_log', ['actor', 'id'], unique=False)
    op.create_index('ix_audit_log_action', 'audit_log', ['action', 'id'], unique=False)
    op.create_index('ix_audit_log_resource', 'audit_log', ['resource', 'id'], unique=False)
    op.execute("""
CREATE FUNCTION keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '365 days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only; entries can be deleted after 365 days';
END $$
""")
    op.execute("""
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION keep_audit_log()
""")
    op.execute("""
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION keep_audit_log()
""")


def downgrade() -> None:
    op.drop_table('audit_log')
    op.execute("DROP FUNCTION keep_audit_log()")

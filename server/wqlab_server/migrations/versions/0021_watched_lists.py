"""Add rules of watched lists, list positions, list reads, mails that await a decision, and decisions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None

ACTIONS = ['rule.create', 'rule.change', 'rule.switch_on', 'rule.switch_off', 'rule.remove']
REASONS = ['paths', 'subjects', 'authors', 'not_asked', 'not_allowed', 'incomplete', 'removed', 'other_rule',
           'superseded', 'switched_off', 'quiet_hours', 'over_budget', 'quota', 'invalid']
TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table('list_rules',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('rule', postgresql.JSONB(), nullable=False),
    sa.Column('from_file', sa.Boolean(), nullable=False),
    sa.Column('enabled_at', TIME, nullable=True),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('changed_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('changed_by', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_list_rules'))
    )
    op.create_table('watched_lists',
    sa.Column('archive', sa.Text(), nullable=False),
    sa.Column('epochs', sa.Text(), nullable=False),
    sa.Column('since', TIME, nullable=False),
    sa.Column('epoch', sa.Integer(), nullable=True),
    sa.Column('commit', sa.Text(), nullable=True),
    sa.Column('mails', sa.BigInteger(), nullable=False),
    sa.Column('last_mail_at', TIME, nullable=True),
    sa.Column('read_at', TIME, nullable=True),
    sa.Column('next_read_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('failures', sa.Integer(), nullable=False),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('failing_since', TIME, nullable=True),
    sa.PrimaryKeyConstraint('archive', name=op.f('pk_watched_lists'))
    )
    op.create_table('list_reads',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('archive', sa.Text(), nullable=False),
    sa.Column('source', postgresql.JSONB(), nullable=False),
    sa.Column('mail_limit', sa.Integer(), nullable=False),
    sa.Column('rule_name', sa.Text(), nullable=True),
    sa.Column('rule', postgresql.JSONB(), nullable=True),
    sa.Column('days', sa.Integer(), nullable=True),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('preview', postgresql.JSONB(), nullable=True),
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
    sa.PrimaryKeyConstraint('id', name=op.f('pk_list_reads'))
    )
    op.create_index(op.f('ix_list_reads_state'), 'list_reads', ['state'])
    op.create_index('ix_list_reads_rule_name', 'list_reads', ['rule_name', 'id'])
    op.create_index(
        'uq_list_reads_unfinished', 'list_reads', ['archive'], unique=True,
        postgresql_where=sa.text("rule IS NULL AND state <> 'finished'"),
    )
    op.create_table('list_mails',
    sa.Column('archive', sa.Text(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=False),
    sa.Column('mail', postgresql.JSONB(), nullable=False),
    sa.Column('seen_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('settled', sa.Boolean(), nullable=False),
    sa.Column('removed', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('archive', 'message_id', name=op.f('pk_list_mails'))
    )
    op.create_index('ix_list_mails_seen_at', 'list_mails', ['seen_at'])
    op.create_index(
        'ix_list_mails_unsettled', 'list_mails', ['archive', 'seen_at'], postgresql_where=sa.text('NOT settled')
    )
    op.create_table('list_decisions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('rule', sa.Text(), nullable=False),
    sa.Column('archive', sa.Text(), nullable=False),
    sa.Column('root', sa.Text(), nullable=False),
    sa.Column('revision', sa.Integer(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('author', sa.Text(), nullable=False),
    sa.Column('author_address', sa.Text(), nullable=False),
    sa.Column('subject_key', sa.Text(), nullable=False),
    sa.Column('targets', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('minutes', sa.Float(), nullable=True),
    sa.Column('state', sa.Enum('waiting', 'taken', 'not_taken', name='decision_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('reason', sa.Enum(*REASONS, name='decision_reason', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('detail', sa.Text(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('decided_at', TIME, nullable=True),
    sa.Column('retry_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_list_decisions_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_list_decisions')),
    sa.UniqueConstraint('rule', 'root', 'revision', name=op.f('uq_list_decisions_rule_root_revision'))
    )
    op.create_index(op.f('ix_list_decisions_submission_id'), 'list_decisions', ['submission_id'])
    op.create_index('ix_list_decisions_of_rule', 'list_decisions', ['rule', 'id'])
    op.create_index('ix_list_decisions_series', 'list_decisions', ['author_address', 'subject_key'])
    op.create_index(
        'ix_list_decisions_waiting', 'list_decisions', ['retry_at'], postgresql_where=sa.text("state = 'waiting'")
    )
    op.create_index(
        'uq_list_decisions_taken', 'list_decisions', ['root', 'revision'], unique=True,
        postgresql_where=sa.text("state IN ('waiting', 'taken')"),
    )
    _allow(add=ACTIONS)


def downgrade() -> None:
    for table in ('list_decisions', 'list_mails', 'list_reads', 'watched_lists', 'list_rules'):
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

"""Add bisections with their commit lists and steps, and the bisection of a shift."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.create_table('bisections',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('request', postgresql.JSONB(), nullable=False),
    sa.Column('repository', postgresql.JSONB(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('limited', sa.Boolean(), nullable=False),
    sa.Column('watched_tree', sa.Text(), nullable=True),
    sa.Column('state', sa.Enum('listing', 'ends', 'searching', 'confirming', 'found', 'range', 'no_difference', 'not_confirmed', 'failed', 'canceled', name='bisection_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('good', sa.Text(), nullable=True),
    sa.Column('bad', sa.Text(), nullable=True),
    sa.Column('ref', sa.Text(), nullable=False),
    sa.Column('commits', sa.Integer(), nullable=True),
    sa.Column('device', sa.Text(), nullable=True),
    sa.Column('scale', sa.Enum('ratio', 'difference', name='scale', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('unit', sa.Text(), nullable=False),
    sa.Column('effect', sa.Double(), nullable=True),
    sa.Column('ci_low', sa.Double(), nullable=True),
    sa.Column('ci_high', sa.Double(), nullable=True),
    sa.Column('culprit_effect', sa.Double(), nullable=True),
    sa.Column('culprit_ci_low', sa.Double(), nullable=True),
    sa.Column('culprit_ci_high', sa.Double(), nullable=True),
    sa.Column('failure_rate', sa.Double(), nullable=True),
    sa.Column('failure_title', sa.Text(), nullable=False),
    sa.Column('first', sa.Text(), nullable=True),
    sa.Column('culprit', sa.Text(), nullable=True),
    sa.Column('culprit_subject', sa.Text(), nullable=False),
    sa.Column('culprit_author', sa.Text(), nullable=False),
    sa.Column('culprit_is_merge', sa.Boolean(), nullable=False),
    sa.Column('probability', sa.Double(), nullable=True),
    sa.Column('boots', sa.Integer(), nullable=False),
    sa.Column('plain_boots', sa.Integer(), nullable=False),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('cancel_requested_at', TIME, nullable=True),
    sa.Column('ended_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['watched_tree'], ['watched_trees.name'], name=op.f('fk_bisections_watched_tree')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_bisections'))
    )
    op.create_index('ix_bisections_culprit', 'bisections', ['culprit'], unique=False)
    op.create_index('ix_bisections_open', 'bisections', ['id'], unique=False, postgresql_where=sa.text("state IN ('listing', 'ends', 'searching', 'confirming')"))
    op.create_index('ix_bisections_owner', 'bisections', ['owner'], unique=False)
    op.create_index('ix_bisections_watched_tree', 'bisections', ['watched_tree'], unique=False)
    op.create_table('commit_lists',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('bisection_id', sa.Integer(), nullable=False),
    sa.Column('level', sa.Integer(), nullable=False),
    sa.Column('merge', sa.Text(), nullable=False),
    sa.Column('good', sa.Text(), nullable=False),
    sa.Column('bad', sa.Text(), nullable=False),
    sa.Column('result', postgresql.JSONB(), nullable=True),
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
    sa.ForeignKeyConstraint(['bisection_id'], ['bisections.id'], name=op.f('fk_commit_lists_bisection_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_commit_lists'))
    )
    op.create_index('ix_commit_lists_state', 'commit_lists', ['state'], unique=False)
    op.create_index('uq_commit_lists_bisection_id_merge', 'commit_lists', ['bisection_id', 'merge'], unique=True)
    op.create_table('bisection_steps',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('bisection_id', sa.Integer(), nullable=False),
    sa.Column('list_id', sa.Integer(), nullable=False),
    sa.Column('kind', sa.Enum('ends', 'probe', 'confirm', name='bisection_step_kind', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('state', sa.Enum('running', 'measured', 'unusable', 'repeated', 'canceled', name='bisection_step_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('first', sa.Integer(), nullable=False),
    sa.Column('last', sa.Integer(), nullable=False),
    sa.Column('baseline', sa.Text(), nullable=False),
    sa.Column('candidate', sa.Text(), nullable=False),
    sa.Column('blocks', sa.Integer(), nullable=True),
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('quoted_s', sa.Double(), nullable=True),
    sa.Column('submitted_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('ended_at', TIME, nullable=True),
    sa.Column('identical', sa.Boolean(), nullable=False),
    sa.Column('exact', sa.Boolean(), nullable=False),
    sa.Column('differs', sa.Boolean(), nullable=False),
    sa.Column('differences', postgresql.JSONB(), nullable=False),
    sa.Column('effect', sa.Double(), nullable=True),
    sa.Column('ci_low', sa.Double(), nullable=True),
    sa.Column('ci_high', sa.Double(), nullable=True),
    sa.Column('verdict', sa.Enum('improvement', 'regression', 'equivalent', 'below_threshold', 'inconclusive', 'no_evidence', 'unsupported', 'failed', name='verdict', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('passed', sa.Integer(), nullable=False),
    sa.Column('failed', sa.Integer(), nullable=False),
    sa.Column('boots', sa.Integer(), nullable=False),
    sa.Column('titles', postgresql.JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['bisection_id'], ['bisections.id'], name=op.f('fk_bisection_steps_bisection_id')),
    sa.ForeignKeyConstraint(['list_id'], ['commit_lists.id'], name=op.f('fk_bisection_steps_list_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_bisection_steps_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_bisection_steps'))
    )
    op.create_index('ix_bisection_steps_bisection_id', 'bisection_steps', ['bisection_id', 'id'], unique=False)
    op.create_index('ix_bisection_steps_submission_id', 'bisection_steps', ['submission_id'], unique=False)
    op.create_index('ix_bisection_steps_submitted_at', 'bisection_steps', ['submitted_at'], unique=False)
    op.add_column('history_shifts', sa.Column('bisection_id', sa.Integer(), nullable=True))
    op.create_foreign_key(op.f('fk_history_shifts_bisection_id'), 'history_shifts', 'bisections', ['bisection_id'], ['id'])
    op.create_index(op.f('ix_history_shifts_bisection_id'), 'history_shifts', ['bisection_id'])
    _allow(add=['bisection.create', 'bisection.cancel'])


def downgrade() -> None:
    op.drop_index(op.f('ix_history_shifts_bisection_id'), 'history_shifts')
    op.drop_constraint(op.f('fk_history_shifts_bisection_id'), 'history_shifts')
    op.drop_column('history_shifts', 'bisection_id')
    op.drop_table('bisection_steps')
    op.drop_table('commit_lists')
    op.drop_table('bisections')
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

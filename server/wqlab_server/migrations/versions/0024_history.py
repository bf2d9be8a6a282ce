"""Add the history of watched trees: lines, environments, points and shifts."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0024'
down_revision = '0023'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)


def upgrade() -> None:
    op.add_column('watched_heads', sa.Column('in_history_at', TIME, nullable=True))
    op.create_index(
        'ix_watched_heads_not_in_history', 'watched_heads', ['id'],
        postgresql_where=sa.text("state = 'measured' AND in_history_at IS NULL"),
    )
    op.create_table('history_lines',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('tree_name', sa.Text(), nullable=False),
    sa.Column('ref', sa.Text(), nullable=False),
    sa.Column('plan_name', sa.Text(), nullable=False),
    sa.Column('device_type', sa.Text(), nullable=False),
    sa.Column('scenario', sa.Text(), nullable=False),
    sa.Column('setting', sa.Text(), nullable=False),
    sa.Column('metric', sa.Text(), nullable=False),
    sa.Column('unit', sa.Text(), nullable=False),
    sa.Column('scale', sa.Enum('ratio', 'difference', name='scale', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('direction', sa.Enum('higher_is_better', 'lower_is_better', 'none', name='direction', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('role', sa.Enum('primary', 'secondary', 'explanatory', name='role', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('evidence', sa.Enum('mechanism', 'performance', 'instrumented', 'none', name='evidence', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('delta', sa.Double(), nullable=True),
    sa.Column('points', sa.Integer(), nullable=False),
    sa.Column('recent', postgresql.JSONB(), nullable=False),
    sa.Column('levels', postgresql.JSONB(), nullable=False),
    sa.Column('last_at', TIME, nullable=True),
    sa.ForeignKeyConstraint(['tree_name'], ['watched_trees.name'], name=op.f('fk_history_lines_tree_name')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_history_lines')),
    sa.UniqueConstraint('tree_name', 'ref', 'plan_name', 'device_type', 'scenario', 'setting', 'metric', name='uq_history_lines_key')
    )
    op.create_index(op.f('ix_history_lines_last_at'), 'history_lines', ['last_at'], unique=False)
    op.create_table('history_environments',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('facts', postgresql.JSONB(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_history_environments')),
    sa.UniqueConstraint('digest', name=op.f('uq_history_environments_digest'))
    )
    op.create_table('history_points',
    sa.Column('line_id', sa.Integer(), nullable=False),
    sa.Column('head_id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('environment_id', sa.Integer(), nullable=False),
    sa.Column('value', sa.Double(), nullable=False),
    sa.Column('stddev', sa.Double(), nullable=True),
    sa.Column('n', sa.Integer(), nullable=False),
    sa.Column('effect', sa.Double(), nullable=True),
    sa.Column('ci_low', sa.Double(), nullable=True),
    sa.Column('ci_high', sa.Double(), nullable=True),
    sa.Column('verdict', sa.Enum('improvement', 'regression', 'equivalent', 'below_threshold', 'inconclusive', 'no_evidence', 'unsupported', 'failed', name='verdict', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('cut', sa.Text(), nullable=False),
    sa.Column('at', TIME, nullable=False),
    sa.ForeignKeyConstraint(['environment_id'], ['history_environments.id'], name=op.f('fk_history_points_environment_id')),
    sa.ForeignKeyConstraint(['head_id'], ['watched_heads.id'], name=op.f('fk_history_points_head_id')),
    sa.ForeignKeyConstraint(['line_id'], ['history_lines.id'], name=op.f('fk_history_points_line_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_history_points_run_id')),
    sa.PrimaryKeyConstraint('line_id', 'head_id', name=op.f('pk_history_points'))
    )
    op.create_index(op.f('ix_history_points_run_id'), 'history_points', ['run_id'], unique=False)
    op.create_table('history_shifts',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('line_id', sa.Integer(), nullable=False),
    sa.Column('before_id', sa.Integer(), nullable=False),
    sa.Column('after_id', sa.Integer(), nullable=False),
    sa.Column('source', sa.Enum('verdict', 'level', name='shift_source', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('state', sa.Enum('new', 'confirmed', 'not_reproduced', 'explained', 'fixed', name='shift_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('suspected_effect', sa.Double(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('quoted_s', sa.Double(), nullable=True),
    sa.Column('submitted_at', TIME, nullable=True),
    sa.Column('effect', sa.Double(), nullable=True),
    sa.Column('ci_low', sa.Double(), nullable=True),
    sa.Column('ci_high', sa.Double(), nullable=True),
    sa.Column('verdict', sa.Enum('improvement', 'regression', 'equivalent', 'below_threshold', 'inconclusive', 'no_evidence', 'unsupported', 'failed', name='verdict', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('notes', sa.Text(), nullable=False),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('decided_at', TIME, nullable=True),
    sa.Column('changed_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('changed_by', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['after_id'], ['watched_heads.id'], name=op.f('fk_history_shifts_after_id')),
    sa.ForeignKeyConstraint(['before_id'], ['watched_heads.id'], name=op.f('fk_history_shifts_before_id')),
    sa.ForeignKeyConstraint(['line_id'], ['history_lines.id'], name=op.f('fk_history_shifts_line_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_history_shifts_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_history_shifts')),
    sa.UniqueConstraint('line_id', 'after_id', name=op.f('uq_history_shifts_line_id_after_id'))
    )
    op.create_index('ix_history_shifts_created_at', 'history_shifts', ['created_at'], unique=False)
    op.create_index('ix_history_shifts_open', 'history_shifts', ['state'], unique=False, postgresql_where=sa.text("state = 'new'"))
    op.create_index(op.f('ix_history_shifts_submission_id'), 'history_shifts', ['submission_id'], unique=False)
    _allow(add=['shift.change'])


def downgrade() -> None:
    op.drop_table('history_shifts')
    op.drop_table('history_points')
    op.drop_table('history_environments')
    op.drop_table('history_lines')
    op.drop_index('ix_watched_heads_not_in_history', 'watched_heads')
    op.drop_column('watched_heads', 'in_history_at')
    # The audit log is append-only: its entries of this action stay, and the constraint keeps allowing them.


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

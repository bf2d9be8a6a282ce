"""Add watched trees and their heads, lookups of tags, and the actions on watched trees to the audit log."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0022'
down_revision = '0021'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
ACTIONS = [
    'watched_tree.create', 'watched_tree.change', 'watched_tree.enable', 'watched_tree.disable', 'watched_tree.remove',
    'watched_tree.check',
]


def upgrade() -> None:
    op.add_column('lookups', sa.Column('refs', postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False))
    op.add_column('lookups', sa.Column('private_network', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.create_table('watched_trees',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('spec', postgresql.JSONB(), nullable=False),
    sa.Column('from_file', sa.Boolean(), nullable=False),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('due_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('lookup_id', sa.Integer(), nullable=True),
    sa.Column('looked_at', TIME, nullable=True),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.Column('waiting_for', sa.Text(), nullable=False),
    sa.Column('created_by', sa.Text(), nullable=False),
    sa.Column('created_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('changed_at', TIME, server_default=sa.text('now()'), nullable=False),
    sa.Column('removed_at', TIME, nullable=True),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_watched_trees'))
    )
    op.create_table('watched_heads',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('tree_name', sa.Text(), nullable=False),
    sa.Column('ref', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('commit', sa.Text(), nullable=False),
    sa.Column('state', sa.Enum('start', 'waiting', 'running', 'measured', 'skipped', 'failed', name='watched_head_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('seen_at', TIME, nullable=False),
    sa.Column('returned_at', TIME, nullable=True),
    sa.Column('parent_id', sa.Integer(), nullable=True),
    sa.Column('skipped_by_id', sa.Integer(), nullable=True),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('due_at', TIME, nullable=True),
    sa.Column('submitted_at', TIME, nullable=True),
    sa.Column('quoted_s', sa.Float(), nullable=True),
    sa.Column('ended_at', TIME, nullable=True),
    sa.Column('verdicts', postgresql.JSONB(), nullable=False),
    sa.Column('related', postgresql.JSONB(), nullable=True),
    sa.Column('devices', postgresql.JSONB(), nullable=False),
    sa.Column('cut', sa.Text(), nullable=False),
    sa.Column('ranged', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['tree_name'], ['watched_trees.name'], name=op.f('fk_watched_heads_tree_name')),
    sa.ForeignKeyConstraint(['parent_id'], ['watched_heads.id'], name=op.f('fk_watched_heads_parent_id')),
    sa.ForeignKeyConstraint(['skipped_by_id'], ['watched_heads.id'], name=op.f('fk_watched_heads_skipped_by_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_watched_heads_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_watched_heads')),
    sa.UniqueConstraint('tree_name', 'ref', 'commit', name=op.f('uq_watched_heads_tree_name_ref_commit'))
    )
    op.create_index(op.f('ix_watched_heads_commit'), 'watched_heads', ['commit'])
    op.create_index(op.f('ix_watched_heads_submission_id'), 'watched_heads', ['submission_id'])
    op.create_index('ix_watched_heads_submitted_at', 'watched_heads', ['tree_name', 'submitted_at'])
    op.create_index(
        'ix_watched_heads_open', 'watched_heads', ['tree_name'],
        postgresql_where=sa.text("state IN ('waiting', 'running')"),
    )
    _allow(add=ACTIONS)


def downgrade() -> None:
    op.drop_table('watched_heads')
    op.drop_table('watched_trees')
    op.drop_column('lookups', 'private_network')
    op.drop_column('lookups', 'refs')
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

"""Add the table of forges' repositories, the times of failed queries of a change, and polls on request."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None

TIME = postgresql.TIMESTAMP(timezone=True)
JSONB = postgresql.JSONB(astext_type=sa.Text())


def upgrade() -> None:
    op.create_table('forge_repositories',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('forge', sa.Text(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('listing', JSONB, nullable=True),
    sa.Column('start', JSONB, nullable=False),
    sa.Column('due_at', TIME, nullable=True),
    sa.Column('nudged_at', TIME, nullable=True),
    sa.Column('polled_at', TIME, nullable=True),
    sa.Column('problem', sa.Text(), nullable=False),
    sa.Column('problem_at', TIME, nullable=True),
    sa.Column('missed', sa.Integer(), nullable=False),
    sa.Column('missed_at', TIME, nullable=True),
    sa.Column('refused', sa.Text(), nullable=False),
    sa.Column('refused_at', TIME, nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_forge_repositories')),
    sa.UniqueConstraint('forge', name=op.f('uq_forge_repositories_forge'))
    )
    op.add_column('forge_changes', sa.Column('problem_at', TIME, nullable=True))
    op.create_index(
        'ix_deliveries_forge', 'deliveries', ['destination', 'id'],
        postgresql_where=sa.text("kind IN ('forge_status', 'forge_comment')"),
    )
    _allow('audit_log', 'audit_action', 'action', ['forge.poll'])


def downgrade() -> None:
    op.drop_index('ix_deliveries_forge', table_name='deliveries')
    op.drop_column('forge_changes', 'problem_at')
    op.drop_table('forge_repositories')
    # The audit log keeps its rows of this action, and the constraint keeps allowing it.


def _allow(table: str, enum: str, column: str, add: list[str]) -> None:
    """Add values to the check constraint of a column, whatever other revisions have added."""
    name = op.f(f'ck_{table}_{enum}')
    known = op.get_bind().scalar(
        sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name"), {'name': name}
    )
    values = [value for value in (known or '').split("'")[1::2] if value not in add]
    at = values.index('forge.event') + 1
    op.drop_constraint(name, table)
    op.create_check_constraint(name, table, f"{column} IN ({', '.join(map(repr, [*values[:at], *add, *values[at:]]))})")

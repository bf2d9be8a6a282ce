"""Add the call traces of findings, and the source archives of builds."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

KINDS = [
    'series', 'bundle', 'kernel', 'vmlinux', 'system_map', 'config', 'modules', 'module', 'build_log', 'metadata',
    'console', 'raw_output', 'sources', 'workqueue_layout', 'workqueue_series',
]


def upgrade() -> None:
    op.add_column('findings', sa.Column('stack', postgresql.JSONB(), server_default='[]', nullable=False))
    op.add_column('findings', sa.Column('defect', sa.Text(), server_default='', nullable=False))
    _allow(KINDS)


def downgrade() -> None:
    op.execute("DELETE FROM artifact_links WHERE kind = 'sources'")
    _allow([kind for kind in KINDS if kind != 'sources'])
    op.drop_column('findings', 'defect')
    op.drop_column('findings', 'stack')


def _allow(kinds: list[str]) -> None:
    """Replace the check constraint of the kinds of artifacts."""
    op.drop_constraint(op.f('ck_artifact_links_artifact_kind'), 'artifact_links')
    op.create_check_constraint(
        op.f('ck_artifact_links_artifact_kind'), 'artifact_links', f"kind IN ({', '.join(map(repr, kinds))})"
    )

"""Allow the artifact kind of instrument profiles."""

from alembic import op

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None

KINDS = [
    'series', 'bundle', 'kernel', 'vmlinux', 'system_map', 'config', 'modules', 'module', 'build_log', 'metadata',
    'console', 'raw_output', 'sources', 'workqueue_layout', 'workqueue_series', 'instrument_profile',
]


def upgrade() -> None:
    _allow(KINDS)


def downgrade() -> None:
    op.execute("DELETE FROM artifact_links WHERE kind = 'instrument_profile'")
    _allow([kind for kind in KINDS if kind != 'instrument_profile'])


def _allow(kinds: list[str]) -> None:
    """Replace the check constraint of the kinds of artifacts."""
    op.drop_constraint(op.f('ck_artifact_links_artifact_kind'), 'artifact_links')
    op.create_check_constraint(
        op.f('ck_artifact_links_artifact_kind'), 'artifact_links', f"kind IN ({', '.join(map(repr, kinds))})"
    )

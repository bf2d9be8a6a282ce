"""Allow runs of traced boots, and the artifacts that they produce."""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

PURPOSES = ['measure', 'health_check', 'noise', 'canary']
KINDS = [
    'series', 'bundle', 'kernel', 'vmlinux', 'system_map', 'config', 'modules', 'module', 'build_log', 'metadata',
    'console', 'raw_output', 'sources', 'workqueue_layout', 'workqueue_series', 'instrument_profile', 'traced_counts',
    'boot_file',
]


def upgrade() -> None:
    _allow('runs', 'run_purpose', 'purpose', [*PURPOSES, 'trace'])
    _allow('artifact_links', 'artifact_kind', 'kind', KINDS)


def downgrade() -> None:
    """Rows of these kinds are kept, so the constraints keep allowing them."""


def _allow(table: str, name: str, column: str, values: list[str]) -> None:
    op.drop_constraint(op.f(f'ck_{table}_{name}'), table)
    op.create_check_constraint(op.f(f'ck_{table}_{name}'), table, f"{column} IN ({', '.join(map(repr, values))})")

"""Add the tables of shared boots and their hosts, and the artifact kind of their files."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None

KINDS = [
    'series', 'bundle', 'kernel', 'vmlinux', 'system_map', 'config', 'modules', 'module', 'build_log', 'metadata',
    'console', 'raw_output', 'sources', 'workqueue_layout', 'workqueue_series', 'instrument_profile', 'boot_file',
]


def upgrade() -> None:
    op.create_table('boot_hosts',
    sa.Column('host', sa.Text(), nullable=False),
    sa.Column('emulators', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('asked_at', postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column('run_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('host', name=op.f('pk_boot_hosts'))
    )
    op.create_table('shared_boots',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('run_fence', sa.BigInteger(), nullable=False),
    sa.Column('arm', sa.Enum('baseline', 'candidate', name='arm', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('run_host', sa.Text(), nullable=False),
    sa.Column('emulator', sa.Text(), nullable=False),
    sa.Column('memory_mib', sa.Integer(), nullable=False),
    sa.Column('limit_s', sa.Float(), nullable=False),
    sa.Column('initramfs', sa.Text(), nullable=False),
    sa.Column('layout', sa.Text(), nullable=False),
    sa.Column('files', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=True),
    sa.Column('holder', sa.Text(), nullable=True),
    sa.Column('claim_nonce', sa.Text(), nullable=True),
    sa.Column('expires_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('cancel_requested_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('nudged_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('nudges', sa.Integer(), nullable=False),
    sa.Column('progress', sa.Text(), nullable=False),
    sa.Column('progress_done', sa.Integer(), nullable=False),
    sa.Column('progress_total', sa.Integer(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('started_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_shared_boots_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_shared_boots')),
    sa.UniqueConstraint('run_id', 'arm', 'seed', name=op.f('uq_shared_boots_run_id_arm_seed'))
    )
    op.create_index(op.f('ix_shared_boots_state'), 'shared_boots', ['state'])
    _allow(KINDS)


def downgrade() -> None:
    op.drop_table('shared_boots')
    op.drop_table('boot_hosts')
    op.execute("DELETE FROM artifact_links WHERE kind = 'boot_file'")
    _allow([kind for kind in KINDS if kind != 'boot_file'])


def _allow(kinds: list[str]) -> None:
    """Replace the check constraint of the kinds of artifacts."""
    op.drop_constraint(op.f('ck_artifact_links_artifact_kind'), 'artifact_links')
    op.create_check_constraint(
        op.f('ck_artifact_links_artifact_kind'), 'artifact_links', f"kind IN ({', '.join(map(repr, kinds))})"
    )

"""Create the initial schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence('fences')))
    op.execute('CREATE EXTENSION IF NOT EXISTS pg_trgm')
    op.create_table('artifacts',
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('sha256', name=op.f('pk_artifacts'))
    )
    op.create_table('builds',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('source', postgresql.JSONB(), nullable=False),
    sa.Column('recipe', postgresql.JSONB(), nullable=False),
    sa.Column('arch', sa.Text(), nullable=False),
    sa.Column('emulated', sa.Boolean(), nullable=False),
    sa.Column('fragments', postgresql.JSONB(), nullable=False),
    sa.Column('modules', postgresql.JSONB(), nullable=False),
    sa.Column('toolchain', sa.Text(), nullable=False),
    sa.Column('trusted', sa.Boolean(), nullable=False),
    sa.Column('result', postgresql.JSONB(), nullable=True),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
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
    sa.PrimaryKeyConstraint('id', name=op.f('pk_builds'))
    )
    op.create_index('ix_builds_key', 'builds', ['key'], unique=False)
    op.create_index(op.f('ix_builds_state'), 'builds', ['state'], unique=False)
    op.create_index('uq_builds_key_live', 'builds', ['key'], unique=True, postgresql_where=sa.text("outcome IS NULL OR outcome = 'passed'"))
    op.create_table('devices',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('device_type', sa.Text(), nullable=False),
    sa.Column('lab', sa.Text(), nullable=False),
    sa.Column('facts', postgresql.JSONB(), nullable=False),
    sa.Column('health', sa.Enum('unknown', 'good', 'suspect', 'quarantined', name='device_health', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('health_reason', sa.Text(), nullable=False),
    sa.Column('health_checked_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('check_requested_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('measured_topology', postgresql.JSONB(), nullable=True),
    sa.Column('dirty', sa.Boolean(), nullable=False),
    sa.Column('retired_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_devices'))
    )
    op.create_index(op.f('ix_devices_device_type'), 'devices', ['device_type'], unique=False)
    op.create_table('labs',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('capacity', sa.Integer(), nullable=False),
    sa.Column('published_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('name', name=op.f('pk_labs'))
    )
    op.create_table('submissions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('request', postgresql.JSONB(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('idempotency_key', sa.Text(), nullable=True),
    sa.Column('retry_of', sa.Integer(), nullable=True),
    sa.Column('title', sa.Text(), nullable=False),
    sa.Column('series_key', sa.Text(), nullable=False),
    sa.Column('author', sa.Text(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=True),
    sa.Column('tree', sa.Text(), nullable=False),
    sa.Column('priority', sa.Integer(), nullable=False),
    sa.Column('facets', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('search', sa.Text(), sa.Computed('title || chr(10) || series_key || chr(10) || author || chr(10) || owner', persisted=True), nullable=False),
    sa.Column('state', sa.Enum('applying', 'building', 'running', 'comparing', 'finished', name='submission_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('exit_code', sa.Integer(), nullable=True),
    sa.Column('cancel_requested_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('event_seq', sa.Integer(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['retry_of'], ['submissions.id'], name=op.f('fk_submissions_retry_of')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_submissions')),
    sa.UniqueConstraint('owner', 'idempotency_key', name=op.f('uq_submissions_owner_idempotency_key'))
    )
    # Collect statistics for rare facets too: without them a filter by a rare facet scans row by row.
    op.execute('ALTER TABLE submissions ALTER COLUMN facets SET STATISTICS 1000')
    op.create_index('ix_submissions_created_at', 'submissions', ['created_at'], unique=False)
    op.create_index('ix_submissions_ended', 'submissions', [sa.text("coalesce(finished_at, 'infinity')"), 'id'], unique=False)
    op.create_index('ix_submissions_facets', 'submissions', ['facets'], unique=False, postgresql_using='gin')
    op.create_index('ix_submissions_outcome', 'submissions', ['outcome', 'id'], unique=False)
    op.create_index('ix_submissions_owner', 'submissions', ['owner', 'id'], unique=False)
    op.create_index('ix_submissions_priority', 'submissions', ['priority', 'id'], unique=False)
    op.create_index('ix_submissions_search', 'submissions', ['search'], unique=False, postgresql_using='gin', postgresql_ops={'search': 'gin_trgm_ops'})
    op.create_index('ix_submissions_title', 'submissions', ['title', 'id'], unique=False)
    op.create_index('ix_submissions_tree', 'submissions', ['tree', 'id'], unique=False)
    op.create_index(op.f('ix_submissions_series_key'), 'submissions', ['series_key'], unique=False)
    op.create_index('ix_submissions_unfinished', 'submissions', ['id'], unique=False, postgresql_where=sa.text("state <> 'finished'"))
    op.create_table('kept_reports',
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('document', sa.Text(), nullable=False),
    sa.Column('kept_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_kept_reports_submission_id')),
    sa.PrimaryKeyConstraint('submission_id', name=op.f('pk_kept_reports'))
    )
    op.create_table('sign_in_throttles',
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('since', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('key', name=op.f('pk_sign_in_throttles'))
    )
    op.create_index(op.f('ix_sign_in_throttles_since'), 'sign_in_throttles', ['since'], unique=False)
    op.create_table('users',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('role', sa.Enum('viewer', 'submitter', 'maintainer', 'admin', name='user_role', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('password_hash', sa.Text(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('last_sign_in_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('disabled_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_users')),
    sa.UniqueConstraint('name', name=op.f('uq_users_name'))
    )
    op.create_table('browser_sessions',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('user_id', sa.Integer(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('last_used_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_browser_sessions_user_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_browser_sessions')),
    sa.UniqueConstraint('digest', name=op.f('uq_browser_sessions_digest'))
    )
    op.create_index(op.f('ix_browser_sessions_user_id'), 'browser_sessions', ['user_id'], unique=False)
    op.create_table('tick_faults',
    sa.Column('what', sa.Text(), nullable=False),
    sa.Column('item', sa.Text(), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.Column('error', sa.Text(), nullable=False),
    sa.Column('first_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('last_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('what', 'item', name=op.f('pk_tick_faults'))
    )
    op.create_table('tokens',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('user_id', sa.Integer(), nullable=True),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('scopes', postgresql.ARRAY(sa.String()), nullable=False),
    sa.Column('lab', sa.Text(), nullable=True),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expires_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('last_used_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('revoked_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.CheckConstraint("(user_id IS NULL) = (scopes = '{worker}')", name=op.f('ck_tokens_people_or_worker')),
    sa.ForeignKeyConstraint(['user_id'], ['users.id'], name=op.f('fk_tokens_user_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_tokens')),
    sa.UniqueConstraint('digest', name=op.f('uq_tokens_digest'))
    )
    op.create_index(op.f('ix_tokens_user_id'), 'tokens', ['user_id'], unique=False)
    op.create_table('applies',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('tree', postgresql.JSONB(), nullable=False),
    sa.Column('toolchain', sa.Text(), nullable=False),
    sa.Column('result', postgresql.JSONB(), nullable=True),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
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
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_applies_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_applies')),
    sa.UniqueConstraint('submission_id', name=op.f('uq_applies_submission_id'))
    )
    op.create_index(op.f('ix_applies_state'), 'applies', ['state'], unique=False)
    op.create_table('events',
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('seq', sa.Integer(), nullable=False),
    sa.Column('at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('kind', sa.Enum('submission_state', 'apply_state', 'build_state', 'build_progress', 'run_state', 'run_progress', 'boot_state', 'block_finished', 'block_discarded', 'samples', 'unsupported', 'finding', 'attempt_failed', 'report_ready', name='event_kind', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('build_id', sa.Integer(), nullable=True),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('boot_id', sa.Integer(), nullable=True),
    sa.Column('data', postgresql.JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_events_submission_id')),
    sa.PrimaryKeyConstraint('submission_id', 'seq', name=op.f('pk_events'))
    )
    op.create_table('runs',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=True),
    sa.Column('purpose', sa.Enum('measure', 'health_check', 'noise', name='run_purpose', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('target', sa.Integer(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('priority', sa.Integer(), nullable=False),
    sa.Column('device_type', sa.Text(), nullable=False),
    sa.Column('device_spec', postgresql.JSONB(), nullable=False),
    sa.Column('plan_name', sa.Text(), nullable=False),
    sa.Column('plan', postgresql.JSONB(), nullable=False),
    sa.Column('profile', postgresql.JSONB(), nullable=False),
    sa.Column('files', postgresql.JSONB(), nullable=False),
    sa.Column('recipe', postgresql.JSONB(), nullable=False),
    sa.Column('fragments', postgresql.JSONB(), nullable=False),
    sa.Column('modules', postgresql.JSONB(), nullable=False),
    sa.Column('baseline_build_id', sa.Integer(), nullable=True),
    sa.Column('candidate_build_id', sa.Integer(), nullable=True),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('blocks', postgresql.JSONB(), nullable=False),
    sa.Column('wanted_device', sa.Text(), nullable=True),
    sa.Column('device_name', sa.Text(), nullable=True),
    sa.Column('steps', postgresql.JSONB(), nullable=False),
    sa.Column('boots_done', sa.Integer(), nullable=False),
    sa.Column('compared_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('verdict', sa.Enum('improvement', 'regression', 'equivalent', 'below_threshold', 'inconclusive', 'no_evidence', 'unsupported', 'failed', name='verdict', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('headline', sa.Text(), nullable=False),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
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
    sa.ForeignKeyConstraint(['baseline_build_id'], ['builds.id'], name=op.f('fk_runs_baseline_build_id')),
    sa.ForeignKeyConstraint(['candidate_build_id'], ['builds.id'], name=op.f('fk_runs_candidate_build_id')),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_runs_device_name')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_runs_submission_id')),
    sa.ForeignKeyConstraint(['wanted_device'], ['devices.name'], name=op.f('fk_runs_wanted_device')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_runs'))
    )
    op.create_index(op.f('ix_runs_device_name'), 'runs', ['device_name'], unique=False)
    op.create_index(op.f('ix_runs_device_type'), 'runs', ['device_type'], unique=False)
    op.create_index('ix_runs_plan_name_device_type_id', 'runs', ['plan_name', 'device_type', 'id'], unique=False)
    op.create_index(op.f('ix_runs_state'), 'runs', ['state'], unique=False)
    op.create_index(op.f('ix_runs_submission_id'), 'runs', ['submission_id'], unique=False)
    op.create_index(op.f('ix_runs_wanted_device'), 'runs', ['wanted_device'], unique=False)
    op.create_table('device_checks',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('health_run_id', sa.Integer(), nullable=True),
    sa.Column('noise_run_id', sa.Integer(), nullable=True),
    sa.Column('changes', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_device_checks_device_name')),
    sa.ForeignKeyConstraint(['health_run_id'], ['runs.id'], name=op.f('fk_device_checks_health_run_id')),
    sa.ForeignKeyConstraint(['noise_run_id'], ['runs.id'], name=op.f('fk_device_checks_noise_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_device_checks'))
    )
    op.create_index('ix_device_checks_device_name', 'device_checks', ['device_name', 'id'], unique=False)
    op.create_index(op.f('ix_device_checks_health_run_id'), 'device_checks', ['health_run_id'], unique=False)
    op.create_index(op.f('ix_device_checks_noise_run_id'), 'device_checks', ['noise_run_id'], unique=False)
    op.create_index('uq_device_checks_unfinished', 'device_checks', ['device_name'], unique=True, postgresql_where=sa.text('finished_at IS NULL'))
    op.create_table('health_changes',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('health', sa.Enum('unknown', 'good', 'suspect', 'quarantined', name='device_health', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_health_changes_device_name')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_health_changes_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_health_changes'))
    )
    op.create_index('ix_health_changes_device_name', 'health_changes', ['device_name', 'id'], unique=False)
    op.create_table('lookups',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('result', postgresql.JSONB(), nullable=True),
    sa.Column('state', sa.Enum('waiting', 'queued', 'running', 'finished', name='job_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
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
    sa.PrimaryKeyConstraint('id', name=op.f('pk_lookups'))
    )
    op.create_index(op.f('ix_lookups_state'), 'lookups', ['state'], unique=False)
    op.create_index(op.f('ix_lookups_url'), 'lookups', ['url'], unique=False)
    op.create_table('submission_builds',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('submission_id', sa.Integer(), nullable=False),
    sa.Column('build_id', sa.Integer(), nullable=False),
    sa.Column('arm', sa.Enum('baseline', 'candidate', name='arm', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('recipe', sa.Text(), nullable=False),
    sa.Column('arch', sa.Text(), nullable=False),
    sa.Column('emulated', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['build_id'], ['builds.id'], name=op.f('fk_submission_builds_build_id')),
    sa.ForeignKeyConstraint(['submission_id'], ['submissions.id'], name=op.f('fk_submission_builds_submission_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_submission_builds')),
    sa.UniqueConstraint('submission_id', 'arm', 'recipe', 'arch', 'emulated', name=op.f('uq_submission_builds_submission_id_arm_recipe_arch_emulated'))
    )
    op.create_index(op.f('ix_submission_builds_build_id'), 'submission_builds', ['build_id'], unique=False)
    op.create_table('artifact_links',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('apply_id', sa.Integer(), nullable=True),
    sa.Column('build_id', sa.Integer(), nullable=True),
    sa.Column('run_id', sa.Integer(), nullable=True),
    sa.Column('kind', sa.Enum('series', 'bundle', 'kernel', 'vmlinux', 'system_map', 'config', 'modules', 'module', 'build_log', 'metadata', 'console', 'raw_output', 'workqueue_layout', 'workqueue_series', name='artifact_kind', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['apply_id'], ['applies.id'], name=op.f('fk_artifact_links_apply_id')),
    sa.ForeignKeyConstraint(['build_id'], ['builds.id'], name=op.f('fk_artifact_links_build_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_artifact_links_run_id')),
    sa.ForeignKeyConstraint(['sha256'], ['artifacts.sha256'], name=op.f('fk_artifact_links_sha256')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_artifact_links')),
    sa.UniqueConstraint('apply_id', 'build_id', 'run_id', 'kind', 'name', name=op.f('uq_artifact_links_apply_id_build_id_run_id_kind_name'), postgresql_nulls_not_distinct=True)
    )
    op.create_index(op.f('ix_artifact_links_sha256'), 'artifact_links', ['sha256'], unique=False)
    op.create_table('block_attempts',
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('block', sa.Integer(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('finished', sa.Boolean(), nullable=False),
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('arm', sa.Enum('baseline', 'candidate', name='arm', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_block_attempts_device_name')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_block_attempts_run_id')),
    sa.PrimaryKeyConstraint('run_id', 'block', 'attempt', name=op.f('pk_block_attempts'))
    )
    op.create_table('boots',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('block', sa.Integer(), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('arm', sa.Enum('baseline', 'candidate', name='arm', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=False),
    sa.Column('state', sa.Enum('booting', 'measuring', 'finished', name='boot_state', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('valid', sa.Boolean(), nullable=False),
    sa.Column('kernel_boot_id', sa.Text(), nullable=True),
    sa.Column('token', sa.Text(), nullable=True),
    sa.Column('build_id_gnu', sa.Text(), nullable=True),
    sa.Column('release', sa.Text(), nullable=True),
    sa.Column('cmdline', sa.Text(), nullable=True),
    sa.Column('topology', postgresql.JSONB(), nullable=True),
    sa.Column('environment', postgresql.JSONB(), nullable=False),
    sa.Column('commands', postgresql.JSONB(), nullable=False),
    sa.Column('started_at', postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column('verified_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.Column('golden_s', sa.Double(), nullable=True),
    sa.Column('kexec_s', sa.Double(), nullable=True),
    sa.Column('workload_s', sa.Double(), nullable=True),
    sa.Column('overhead_s', sa.Double(), nullable=True),
    sa.Column('console_bytes', sa.BigInteger(), nullable=False),
    sa.Column('console_truncated', sa.Boolean(), nullable=False),
    sa.Column('console_started_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_boots_device_name')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_boots_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_boots')),
    sa.UniqueConstraint('run_id', 'block', 'position', 'arm', 'attempt', name=op.f('uq_boots_run_id_block_position_arm_attempt'))
    )
    op.create_index('ix_boots_device_name', 'boots', ['device_name', 'id'], unique=False)
    op.create_table('comparisons',
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('question', sa.Enum('kernel', 'setting', name='question', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('role', sa.Enum('primary', 'secondary', 'explanatory', name='role', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('verdict', sa.Enum('improvement', 'regression', 'equivalent', 'below_threshold', 'inconclusive', 'no_evidence', 'unsupported', 'failed', name='verdict', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('data', postgresql.JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_comparisons_run_id')),
    sa.PrimaryKeyConstraint('run_id', 'position', name=op.f('pk_comparisons'))
    )
    op.create_table('leases',
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=False),
    sa.Column('holder', sa.Text(), nullable=False),
    sa.Column('expires_at', postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.Column('created_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_leases_device_name')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_leases_run_id')),
    sa.PrimaryKeyConstraint('device_name', name=op.f('pk_leases')),
    sa.UniqueConstraint('run_id', name=op.f('uq_leases_run_id'))
    )
    op.create_table('run_attempts',
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('device_name', sa.Text(), nullable=False),
    sa.Column('fence', sa.BigInteger(), nullable=False),
    sa.Column('holder', sa.Text(), nullable=False),
    sa.Column('outcome', sa.Enum('passed', 'failed', 'canceled', name='outcome', native_enum=False, create_constraint=True, length=32), nullable=True),
    sa.Column('failure', postgresql.JSONB(), nullable=True),
    sa.Column('started_at', postgresql.TIMESTAMP(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('finished_at', postgresql.TIMESTAMP(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['device_name'], ['devices.name'], name=op.f('fk_run_attempts_device_name')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_run_attempts_run_id')),
    sa.PrimaryKeyConstraint('run_id', 'number', name=op.f('pk_run_attempts'))
    )
    op.create_index('ix_run_attempts_device_name', 'run_attempts', ['device_name', 'started_at'], unique=False)
    op.create_index('ix_run_attempts_finished_at', 'run_attempts', ['finished_at'], unique=False)
    op.create_index('ix_run_attempts_started_at', 'run_attempts', ['started_at', 'run_id', 'number'], unique=False)
    op.create_table('boot_values',
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('boot_id', sa.Integer(), nullable=False),
    sa.Column('scenario', sa.Text(), nullable=False),
    sa.Column('setting', sa.Text(), nullable=False),
    sa.Column('metric', sa.Text(), nullable=False),
    sa.Column('value', sa.Double(), nullable=False),
    sa.ForeignKeyConstraint(['boot_id'], ['boots.id'], name=op.f('fk_boot_values_boot_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_boot_values_run_id')),
    sa.PrimaryKeyConstraint('boot_id', 'scenario', 'setting', 'metric', name=op.f('pk_boot_values'))
    )
    op.create_index(op.f('ix_boot_values_run_id'), 'boot_values', ['run_id'], unique=False)
    op.create_table('console_chunks',
    sa.Column('boot_id', sa.Integer(), nullable=False),
    sa.Column('offset', sa.BigInteger(), nullable=False),
    sa.Column('data', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['boot_id'], ['boots.id'], name=op.f('fk_console_chunks_boot_id')),
    sa.PrimaryKeyConstraint('boot_id', 'offset', name=op.f('pk_console_chunks'))
    )
    op.create_table('findings',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('boot_id', sa.Integer(), nullable=False),
    sa.Column('kind', sa.Enum('panic', 'oops', 'bug', 'warning', 'lockdep', 'hung_task', 'lockup', 'workqueue_stall', 'rcu_stall', 'kasan', 'hang', 'wrong_result', name='finding_kind', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('title', sa.Text(), nullable=False),
    sa.Column('excerpt', sa.Text(), nullable=False),
    sa.Column('console_offset', sa.BigInteger(), nullable=False),
    sa.Column('fatal', sa.Boolean(), nullable=False),
    sa.Column('at', postgresql.TIMESTAMP(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['boot_id'], ['boots.id'], name=op.f('fk_findings_boot_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_findings_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_findings')),
    sa.UniqueConstraint('boot_id', 'kind', 'console_offset', 'title', name=op.f('uq_findings_boot_id_kind_console_offset_title'))
    )
    op.create_index(op.f('ix_findings_run_id'), 'findings', ['run_id'], unique=False)
    op.create_table('samples',
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('boot_id', sa.Integer(), nullable=False),
    sa.Column('scenario', sa.Text(), nullable=False),
    sa.Column('setting', sa.Text(), nullable=False),
    sa.Column('repetition', sa.Integer(), nullable=False),
    sa.Column('metric', sa.Text(), nullable=False),
    sa.Column('value', sa.Double(), nullable=False),
    sa.Column('warmup', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['boot_id'], ['boots.id'], name=op.f('fk_samples_boot_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_samples_run_id')),
    sa.PrimaryKeyConstraint('boot_id', 'scenario', 'setting', 'repetition', 'metric', name=op.f('pk_samples'))
    )
    op.create_index('ix_samples_run_id', 'samples', ['run_id'], unique=False)
    op.create_table('unsupported',
    sa.Column('id', sa.Integer(), nullable=False),
    sa.Column('run_id', sa.Integer(), nullable=False),
    sa.Column('boot_id', sa.Integer(), nullable=False),
    sa.Column('arm', sa.Enum('baseline', 'candidate', name='arm', native_enum=False, create_constraint=True, length=32), nullable=False),
    sa.Column('scenario', sa.Text(), nullable=False),
    sa.Column('setting', sa.Text(), nullable=False),
    sa.Column('metric', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['boot_id'], ['boots.id'], name=op.f('fk_unsupported_boot_id')),
    sa.ForeignKeyConstraint(['run_id'], ['runs.id'], name=op.f('fk_unsupported_run_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_unsupported')),
    sa.UniqueConstraint('boot_id', 'scenario', 'setting', 'metric', name=op.f('uq_unsupported_boot_id_scenario_setting_metric'), postgresql_nulls_not_distinct=True)
    )
    op.create_index(op.f('ix_unsupported_run_id'), 'unsupported', ['run_id'], unique=False)


def downgrade() -> None:
    op.drop_index(op.f('ix_unsupported_run_id'), table_name='unsupported')
    op.drop_table('unsupported')
    op.drop_index('ix_samples_run_id', table_name='samples')
    op.drop_table('samples')
    op.drop_index(op.f('ix_findings_run_id'), table_name='findings')
    op.drop_table('findings')
    op.drop_table('console_chunks')
    op.drop_index(op.f('ix_boot_values_run_id'), table_name='boot_values')
    op.drop_table('boot_values')
    op.drop_table('run_attempts')
    op.drop_table('leases')
    op.drop_table('comparisons')
    op.drop_table('boots')
    op.drop_table('block_attempts')
    op.drop_index(op.f('ix_artifact_links_sha256'), table_name='artifact_links')
    op.drop_table('artifact_links')
    op.drop_index(op.f('ix_submission_builds_build_id'), table_name='submission_builds')
    op.drop_table('submission_builds')
    op.drop_table('lookups')
    op.drop_table('health_changes')
    op.drop_table('device_checks')
    op.drop_index(op.f('ix_runs_submission_id'), table_name='runs')
    op.drop_index(op.f('ix_runs_state'), table_name='runs')
    op.drop_index(op.f('ix_runs_device_type'), table_name='runs')
    op.drop_index(op.f('ix_runs_device_name'), table_name='runs')
    op.drop_index(op.f('ix_runs_wanted_device'), table_name='runs')
    op.drop_table('runs')
    op.drop_table('events')
    op.drop_index(op.f('ix_applies_state'), table_name='applies')
    op.drop_table('applies')
    op.drop_index(op.f('ix_tokens_user_id'), table_name='tokens')
    op.drop_table('tokens')
    op.drop_index(op.f('ix_browser_sessions_user_id'), table_name='browser_sessions')
    op.drop_table('browser_sessions')
    op.drop_table('users')
    op.drop_index(op.f('ix_sign_in_throttles_since'), table_name='sign_in_throttles')
    op.drop_table('sign_in_throttles')
    op.drop_table('kept_reports')
    op.drop_table('tick_faults')
    op.drop_index('ix_submissions_unfinished', table_name='submissions', postgresql_where=sa.text("state <> 'finished'"))
    op.drop_index(op.f('ix_submissions_series_key'), table_name='submissions')
    op.drop_index(op.f('ix_submissions_owner'), table_name='submissions')
    op.drop_table('submissions')
    op.drop_table('labs')
    op.drop_index(op.f('ix_devices_device_type'), table_name='devices')
    op.drop_table('devices')
    op.drop_index('uq_builds_key_live', table_name='builds', postgresql_where=sa.text("outcome IS NULL OR outcome = 'passed'"))
    op.drop_index(op.f('ix_builds_state'), table_name='builds')
    op.drop_index('ix_builds_key', table_name='builds')
    op.drop_table('builds')
    op.drop_table('artifacts')
    op.execute(sa.schema.DropSequence(sa.Sequence('fences')))

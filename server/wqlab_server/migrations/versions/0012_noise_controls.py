"""Mark the submissions whose series is the control series."""

import sqlalchemy as sa
from alembic import op

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('submissions', sa.Column('noise_control', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.create_index(
        'ix_submissions_noise_control', 'submissions', ['id'], postgresql_where=sa.text('noise_control')
    )


def downgrade() -> None:
    op.drop_index('ix_submissions_noise_control', 'submissions')
    op.drop_column('submissions', 'noise_control')

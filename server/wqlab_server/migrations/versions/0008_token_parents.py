"""Record the token that each token was created with."""

import sqlalchemy as sa
from alembic import op

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('tokens', sa.Column('parent_id', sa.Integer(), nullable=True))
    op.create_foreign_key(op.f('fk_tokens_parent_id'), 'tokens', 'tokens', ['parent_id'], ['id'])
    op.create_index(op.f('ix_tokens_parent_id'), 'tokens', ['parent_id'], unique=False)


def downgrade() -> None:
    op.drop_index(op.f('ix_tokens_parent_id'), table_name='tokens')
    op.drop_constraint(op.f('fk_tokens_parent_id'), 'tokens', type_='foreignkey')
    op.drop_column('tokens', 'parent_id')

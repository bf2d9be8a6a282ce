"""Allow the event of a bisection that has found its commit."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

EVENTS = [
    'submission.accepted', 'submission.finished', 'regression.found', 'culprit.found', 'device.quarantined', 'lab.lost',
]


def upgrade() -> None:
    name = op.f('ck_outbox_events_outbox_event')
    op.drop_constraint(name, 'outbox_events')
    op.create_check_constraint(name, 'outbox_events', f"event IN ({', '.join(map(repr, EVENTS))})")


def downgrade() -> None:
    """Events of this kind are kept, so the constraint keeps allowing them."""

"""Watch mailing lists: order reads, and decide on the series that have arrived."""

from __future__ import annotations

from sqlalchemy import delete, select

from wqlab_contracts.data_folder import DataFolder

from ..intake import decide, watched_lists
from ..intake.proposals import proposer
from ..models import SeenMail, WatchDecisionRow
from ..settings import Settings
from ..storage.db import SessionFactory, clock, transaction
from . import list_replies
from .tick_errors import isolate_errors


def watch_lists(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Do what is due for watched lists. The caller makes sure that one process does this at a time."""
    with isolate_errors(factory, "lists", "reads"), transaction(factory) as session:
        watched_lists.order_reads(session, data)
    with isolate_errors(factory, "lists", "replies"), transaction(factory) as session:
        list_replies.nudge_due(session, clock(session))
    with transaction(factory) as session:
        archives = session.scalars(select(SeenMail.archive).where(~SeenMail.settled).distinct()).all()
    for archive in archives:
        with isolate_errors(factory, "lists", archive), transaction(factory) as session:
            decide.decide(session, archive, clock(session), proposer(session, settings, data), data.checked_archives)
    with isolate_errors(factory, "lists", "old"), transaction(factory) as session:
        before = clock(session) - decide.DECISIONS_KEPT
        session.execute(delete(WatchDecisionRow).where(decide.unwanted_before(before)))

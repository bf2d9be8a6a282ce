"""Run the sources of submissions in a tick: take results, place new orders, submit those that are due."""

from __future__ import annotations

from sqlalchemy import select

from wqlab_contracts.enums import OrderState, SubmissionState
from wqlab_contracts.loading import DataFolder

from ..models import Order, Submission
from ..orders.source import Context, Source, Stop, is_correctable
from ..pipeline import admission
from ..pipeline.tick_errors import isolate_errors
from ..settings import Settings
from ..sources import SOURCES
from ..storage.db import SessionFactory, clock, transaction
from ..wait import Wait


def take_results(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Give the results of finished submissions to the sources of their orders."""
    with transaction(factory) as session:
        finished = session.execute(
            select(Order.id, Order.source)
            .join(Submission, Submission.id == Order.submission_id)
            .where(Order.state == OrderState.SUBMITTED, Submission.state == SubmissionState.FINISHED)
            .order_by(Order.id)
        ).all()
    for order_id, name in finished:
        with isolate_errors(factory, "order", order_id), transaction(factory) as session:
            order = session.get_one(Order, order_id, with_for_update=True)
            submission = session.get_one(Submission, order.submission_id)
            admission.conclude(Context(session, settings, data), SOURCES[name], order, submission)


def place_orders(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Let each source place orders for what is new."""
    for source in SOURCES.values():
        with isolate_errors(factory, "source", source.name):
            with transaction(factory) as session:
                items = source.items(Context(session, settings, data))
            for item in items:
                with isolate_errors(factory, "source", f"{source.name} {item}"), transaction(factory) as session:
                    source.find(Context(session, settings, data), item)


def admit_orders(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Submit the orders that are due, oldest first; what prevents one does not keep the others."""
    with transaction(factory) as session:
        due = session.execute(
            select(Order.id, Order.source)
            .where(Order.state == OrderState.WAITING, Order.due_at <= clock(session))
            .order_by(Order.id)
        ).all()
    for order_id, name in due:
        with isolate_errors(factory, "order", order_id):
            _admit(factory, SOURCES[name], order_id, settings, data)


def _admit(factory: SessionFactory, source: Source, order_id: int, settings: Settings, data: DataFolder) -> None:
    """Submit an order. What prevents it is recorded in a transaction of its own: that of the attempt is rolled back."""
    try:
        with transaction(factory) as session:
            order = session.get_one(Order, order_id, with_for_update=True)
            if order.state is OrderState.WAITING:
                admission.submit(Context(session, settings, data), source, order)
        return
    except (Wait, Stop) as error:
        obstacle = error
    with transaction(factory) as session:
        order = session.get_one(Order, order_id, with_for_update=True)
        context = Context(session, settings, data)
        if order.state is not OrderState.WAITING:
            return
        try:
            if isinstance(obstacle, Stop) and not is_correctable(obstacle):
                raise obstacle
            admission.defer(context, source, order, obstacle)
        except Stop as why:
            admission.stop(context, source, order, why)

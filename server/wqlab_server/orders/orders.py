"""Place and withdraw orders, and check the device time of their watches."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import ColumnElement, String, cast, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from wqlab_contracts.api.queue import WaitingOrder
from wqlab_contracts.enums import ErrorKind, OrderState
from wqlab_contracts.specs.watches import is_quiet

from ..models import Order, Watch
from ..storage.db import clock
from ..wait import Wait
from .source import TooLarge

DAY = timedelta(days=1)
_BUDGET_RETRY = timedelta(minutes=10)
_SHOWN = 100
"""Most orders that the queue shows."""


class QuietHours(Wait):
    """The watch submits nothing at this time of day."""


class BudgetUsedUp(Wait):
    """The watch has used up its device time of the last 24 hours."""


def place(session: Session, source: str, key: int | str, *, watch: str | None = None) -> None:
    """Order something, unless it was ordered before and not withdrawn.

    `watch`: its device time is used and its quiet hours are kept, and a change of it makes the order due.
    """
    again = {"state": OrderState.WAITING, "reason": "", "due_at": clock(session), "ended_at": None}
    values = {"source": source, "key": str(key), "watch": watch, "tries": 0, "quoted_s": 0.0, **again}
    session.execute(
        insert(Order)
        .values(values)
        .on_conflict_do_update(
            index_elements=[Order.source, Order.key], set_=again, where=Order.state == OrderState.WITHDRAWN
        )
    )


def find(session: Session, source: str, key: int | str) -> Order | None:
    """Return the order of a key, if it was placed."""
    return session.scalar(select(Order).where(Order.source == source, Order.key == str(key)))


def place_instead(session: Session, source: str, keys: Collection[int], *, watch: str, reason: str) -> None:
    """Order what is wanted for a watch now, and withdraw its other orders that wait. They can be placed again."""
    session.execute(
        update(Order)
        .where(
            Order.source == source,
            Order.watch == watch,
            Order.state == OrderState.WAITING,
            Order.key.not_in([str(key) for key in keys]),
        )
        .values(state=OrderState.WITHDRAWN, reason=reason, ended_at=clock(session))
    )
    for key in keys:
        place(session, source, key, watch=watch)


def try_again(session: Session, watch: str) -> None:
    """Make the waiting orders of a watch due: what they wait for has changed. Pauses after failures are kept."""
    session.execute(
        update(Order)
        .where(Order.watch == watch, Order.state == OrderState.WAITING, Order.tries == 0)
        .values(due_at=clock(session))
    )


def forget(session: Session, source: str, key: int | str) -> None:
    """Let something that was ordered and has ended be ordered again. The device time that it used stays used."""
    ended = (OrderState.FINISHED, OrderState.STOPPED, OrderState.WITHDRAWN)
    session.execute(
        update(Order)
        .where(Order.source == source, Order.key == str(key), Order.state.in_(ended))
        .values(key=Order.key + "#" + cast(Order.id, String))
    )


def not_ordered(source: str, key: InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Return the condition for rows of a source, by their ids, that it has not ordered."""
    return ~exists().where(Order.source == source, Order.key == cast(key, String))


def minutes_used(session: Session, watch: str) -> float:
    """Return the device time (minutes), by quotes, of what a watch has started in the last 24 hours."""
    used = select(func.sum(Order.quoted_s)).where(Order.watch == watch, Order.submitted_at > clock(session) - DAY)
    return (session.scalar(used) or 0.0) / 60


def why_orders_wait(session: Session, source: str, watch: str) -> str:
    """Return why the oldest waiting order that a source has placed for a watch waits; an empty string if none does."""
    waiting = select(Order.reason).where(
        Order.source == source, Order.watch == watch, Order.state == OrderState.WAITING, Order.reason != ""
    )
    return session.scalar(waiting.order_by(Order.id).limit(1)) or ""


def waiting_orders(session: Session) -> list[WaitingOrder]:
    """Return the oldest orders that wait, of all sources."""
    columns = (Order.source, Order.key, Order.watch, Order.reason, Order.due_at.label("retry_at"))
    oldest = select(*columns).where(Order.state == OrderState.WAITING).order_by(Order.id).limit(_SHOWN)
    return [WaitingOrder.model_validate(dict(row)) for row in session.execute(oldest).mappings()]


# --- device time of watches --------------------------------------------------------------------------------------


def check_quiet_hours(session: Session, watch: Watch) -> None:
    """Raise QuietHours if a watch submits nothing now."""
    if is_quiet(watch.spec.quiet_hours, clock(session)):
        raise QuietHours("it waits for the end of the quiet hours")


def check_budget(session: Session, watch: Watch, quoted_s: float, mistakes: ErrorKind) -> None:
    """Raise BudgetUsedUp if less is left than the quoted time, TooLarge of kind `mistakes` if a day's time is less."""
    now, allowed = clock(session), watch.spec.minutes_a_day
    if quoted_s > allowed * 60:
        raise TooLarge(
            mistakes,
            f"it needs {quoted_s / 60:.0f} minutes of devices and watch {watch.name} has {allowed} a day; "
            "raise minutes_a_day",
        )
    used = minutes_used(session, watch.name)
    if used + quoted_s / 60 <= allowed:
        return
    first = session.scalar(
        select(func.min(Order.submitted_at)).where(Order.watch == watch.name, Order.submitted_at > now - DAY)
    )
    again = f"; some is left again at {first + DAY:%Y-%m-%d %H:%M} UTC" if first is not None else ""
    raise BudgetUsedUp(
        f"it needs {quoted_s / 60:.0f} minutes of devices; {used:.0f} of {allowed} a day are used{again}",
        pause=_BUDGET_RETRY,
    )

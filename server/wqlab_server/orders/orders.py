"""Place and withdraw orders, and check the budgets that they use."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, String, cast, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from wqlab_contracts.enums import OrderState
from wqlab_contracts.specs.watches import is_quiet

from ..models import Order
from ..storage.db import clock
from ..wait import Wait
from .source import Budget, TooLarge

DAY = timedelta(days=1)
_BUDGET_RETRY = timedelta(minutes=10)


class QuietHours(Wait):
    """The watch submits nothing at this time of day."""


class BudgetUsedUp(Wait):
    """The watch has used up its device time of the last 24 hours."""


def place(session: Session, source: str, key: int | str, *, budget: str = "") -> None:
    """Order something, unless it was ordered before and not withdrawn.

    `budget`: that of the proposal to come, if orders are to be withdrawn, tried again or shown by the budget's name.
    """
    again = {"state": OrderState.WAITING, "reason": "", "due_at": clock(session), "ended_at": None}
    values = {"source": source, "key": str(key), "budget": budget, "tries": 0, "quoted_s": 0.0, **again}
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


def withdraw_others(session: Session, source: str, budget: str, keep: Iterable[int | str], reason: str) -> None:
    """Withdraw the orders on a budget that wait, but those of `keep`. They can be placed again."""
    session.execute(
        update(Order)
        .where(
            Order.source == source,
            Order.budget == budget,
            Order.state == OrderState.WAITING,
            Order.key.not_in([str(key) for key in keep]),
        )
        .values(state=OrderState.WITHDRAWN, reason=reason, ended_at=clock(session))
    )


def try_again(session: Session, budget: str) -> None:
    """Make the waiting orders of a budget due: what they wait for has changed. Pauses after failures are kept."""
    session.execute(
        update(Order)
        .where(Order.budget == budget, Order.state == OrderState.WAITING, Order.tries == 0)
        .values(due_at=clock(session))
    )


def forget(session: Session, source: str, key: int | str) -> None:
    """Let something that was ordered and has ended be ordered again. What it used of its budget stays used."""
    ended = (OrderState.FINISHED, OrderState.STOPPED, OrderState.WITHDRAWN)
    session.execute(
        update(Order)
        .where(Order.source == source, Order.key == str(key), Order.state.in_(ended))
        .values(key=Order.key + "#" + cast(Order.id, String))
    )


def not_ordered(source: str, key: InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Return the condition for rows of a source, by their ids, that it has not ordered."""
    return ~exists().where(Order.source == source, Order.key == cast(key, String))


def minutes_used(session: Session, budget: str) -> float:
    """Return the device time (minutes), by quotes, of what a budget has started in the last 24 hours."""
    used = select(func.sum(Order.quoted_s)).where(Order.budget == budget, Order.submitted_at > clock(session) - DAY)
    return (session.scalar(used) or 0.0) / 60


def why_orders_wait(session: Session, source: str, budget: str) -> str:
    """Return why the oldest waiting order that a source has placed on a budget waits; an empty string if none does."""
    waiting = select(Order.reason).where(
        Order.source == source, Order.budget == budget, Order.state == OrderState.WAITING, Order.reason != ""
    )
    return session.scalar(waiting.order_by(Order.id).limit(1)) or ""


# --- budgets ----------------------------------------------------------------------------------------------------


def check_quiet_hours(session: Session, budget: Budget) -> None:
    """Raise QuietHours if nothing is submitted now. A source calls it before it does work for a proposal."""
    if is_quiet(budget.quiet_hours, clock(session)):
        raise QuietHours("it waits for the end of the quiet hours")


def check_budget(session: Session, budget: Budget, quoted_s: float, now: datetime) -> None:
    """Raise BudgetUsedUp if less is left than the quoted time, TooLarge if the budget of a day is less."""
    check_quiet_hours(session, budget)
    allowed = budget.minutes_a_day
    if quoted_s > allowed * 60:
        raise TooLarge(
            f"it needs {quoted_s / 60:.0f} minutes of devices and {budget.name} has {allowed} a day; "
            "raise minutes_a_day"
        )
    used = minutes_used(session, budget.name)
    if used + quoted_s / 60 <= allowed:
        return
    first = session.scalar(
        select(func.min(Order.submitted_at)).where(Order.budget == budget.name, Order.submitted_at > now - DAY)
    )
    again = f"; some is left again at {first + DAY:%Y-%m-%d %H:%M} UTC" if first is not None else ""
    raise BudgetUsedUp(
        f"it needs {quoted_s / 60:.0f} minutes of devices; {used:.0f} of {allowed} a day are used{again}",
        pause=_BUDGET_RETRY,
    )

"""Sentences that say where the virtual time of a modelled device went: locks, idle CPUs, functions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell, LockChange, LockTimes, PerOperation
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER

from .instrument_sentences import count

MAX_SENTENCES = 6
_MAX_LOCKS = 3
_LEAST_SHARE = 0.01
"""Change, as a share of the virtual time of an operation, from which something gets a sentence."""

_Value = TypeVar("_Value")


def time_sentences(cell: InstrumentCell) -> list[str]:
    """Return at most MAX_SENTENCES sentences, of what changed most first: locks, idle CPUs, functions.

    With one kernel they state what takes most of the time. Empty without a model.

    Example: `pool->lock of pool 3, taken by __queue_work (kernel/workqueue.c:2310): waited 41.0 -> 29.0 % of the CPUs'
    busy time; held 610 -> 380 ns each time, under 6 of 6 seeds`.
    """
    times = {arm: each.virtual_ns for arm, each in cell.totals.items()}
    if not all(times.values()):
        return []
    found = [_lock(cell, times, each) for each in cell.locks[:_MAX_LOCKS] if _is_shown(each.per_op, _wait, times)]
    found += _idle(cell)
    named = [each for each in cell.functions if each.name != OTHER]
    changed = sorted(named, key=lambda each: -_change(each.per_op, _virtual))
    found += [_function(cell, each) for each in changed if _is_shown(each.per_op, _virtual, times)]
    return found[:MAX_SENTENCES]


def _lock(cell: InstrumentCell, times: Mapping[Arm, float], lock: LockChange) -> str:
    where = f"{lock.site} ({lock.site_line})" if lock.site_line else lock.site
    shares = _arrow(lock.per_op, lambda arm, each: count(100 * each.wait_ns / times[arm]))
    held = _arrow(lock.per_op, lambda _, each: count(each.held_ns / each.acquisitions) if each.acquisitions else "none")
    seeds = f", under {lock.seeds} of {len(cell.seeds)} seeds" if len(cell.totals) > 1 else ""
    return f"{lock.lock}, taken by {where}: waited {shares} % of the CPUs' busy time; held {held} ns each time{seeds}"


def _idle(cell: InstrumentCell) -> list[str]:
    """Return how long CPUs idled while work waited that they were allowed to run."""
    if not cell.idle or not any(each.while_work_waits_ns for each in cell.idle.values()):
        return []
    waiting = _arrow(cell.idle, lambda _, each: count(each.while_work_waits_ns))
    idle = _arrow(cell.idle, lambda _, each: count(each.idle_ns))
    return [f"CPUs idled for {waiting} ns per {cell.operation} while work waited, of {idle} ns that they idled"]


def _function(cell: InstrumentCell, function: FunctionChange) -> str:
    facts = ", ".join(filter(None, [function.file, "changed by the series" if function.touched else ""]))
    name = f"{function.name} ({facts})" if facts else function.name
    return f"{name}: {_arrow(function.per_op, lambda _, each: count(each.virtual_ns))} ns per {cell.operation}"


def _is_shown(per_op: Mapping[Arm, _Value], value: Callable[[_Value], float], times: Mapping[Arm, float]) -> bool:
    return _change(per_op, value) > _LEAST_SHARE * max(times.values())


def _change(per_op: Mapping[Arm, _Value], value: Callable[[_Value], float]) -> float:
    """Return the size of the change between two kernels, or with one kernel the value."""
    values = [value(each) for each in per_op.values()]
    return abs(values[-1] - values[0]) if len(values) > 1 else values[0]


def _wait(waits: LockTimes) -> float:
    return waits.wait_ns


def _virtual(counts: PerOperation) -> float:
    return counts.virtual_ns


def _arrow(per_op: Mapping[Arm, _Value], text: Callable[[Arm, _Value], str]) -> str:
    return " -> ".join(text(arm, each) for arm, each in per_op.items())

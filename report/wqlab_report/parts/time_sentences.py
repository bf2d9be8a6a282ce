"""Sentences about the spinlocks and functions that took the virtual time of a modelled device. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from wqlab_comparison.words import time
from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell, PerOperation, SpinChange, SpinTimes
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER

from .instrument_sentences import count

MAX_SENTENCES = 6
_MAX_LOCKS = 3
_LEAST_SHARE = 0.01
"""Change, as a share of the virtual time of an operation, from which a lock or a function gets a sentence."""

_Value = TypeVar("_Value")


def time_sentences(cell: InstrumentCell) -> list[str]:
    """Return at most MAX_SENTENCES sentences: the spinlocks whose waits changed most, then the functions.

    With one kernel they state what takes most of the time. Empty if the device is not modelled.

    Examples: `lock in unbound worker_pool, taken by __queue_work (kernel/workqueue.c:2310): CPUs waited 41.0 -> 29.0 %
    of their busy time; a wait took 610 -> 380 ns, under 6 of 6 seeds`; `flush_workqueue_prep_pwqs
    (kernel/workqueue.c, changed by the series): 1900 -> 1200 ns per fsync`.
    """
    times = {arm: each.virtual_ns for arm, each in cell.totals.items()}
    if not all(times.values()):
        return []
    locks = [_lock(cell, times, each) for each in cell.spins if _is_shown(each.per_op, _wait, times)][:_MAX_LOCKS]
    named = [each for each in cell.functions if each.name != OTHER]
    changed = sorted(named, key=lambda each: -_change(each.per_op, _time))
    functions = [_function(cell, each) for each in changed if _is_shown(each.per_op, _time, times)]
    return [*locks, *functions][:MAX_SENTENCES]


def _lock(cell: InstrumentCell, times: Mapping[Arm, float], spin: SpinChange) -> str:
    where = f"{spin.site} ({spin.site_line})" if spin.site_line else spin.site
    lock = f"lock in {spin.lock}" if spin.lock else "lock"
    shares = " -> ".join(count(100 * each.wait_ns / times[arm]) for arm, each in spin.per_op.items())
    each_wait = " -> ".join(time(each.wait_ns / each.count if each.count else 0, "ns") for each in spin.per_op.values())
    seeds = f", under {spin.seeds} of {len(cell.seeds)} seeds" if len(cell.totals) > 1 else ""
    return f"{lock}, taken by {where}: CPUs waited {shares} % of their busy time; a wait took {each_wait}{seeds}"


def _function(cell: InstrumentCell, function: FunctionChange) -> str:
    facts = ", ".join(filter(None, [function.file, "changed by the series" if function.touched else ""]))
    name = f"{function.name} ({facts})" if facts else function.name
    times = " -> ".join(time(each.virtual_ns, "ns") for each in function.per_op.values())
    return f"{name}: {times} per {cell.operation}"


def _is_shown(per_op: Mapping[Arm, _Value], value: Callable[[_Value], float], times: Mapping[Arm, float]) -> bool:
    return _change(per_op, value) > _LEAST_SHARE * max(times.values())


def _change(per_op: Mapping[Arm, _Value], value: Callable[[_Value], float]) -> float:
    """Return the size of the change between two kernels, or with one kernel the value, in virtual nanoseconds."""
    values = [value(each) for each in per_op.values()]
    return abs(values[-1] - values[0]) if len(values) > 1 else values[0]


def _wait(waits: SpinTimes) -> float:
    return waits.wait_ns


def _time(counts: PerOperation) -> float:
    return counts.virtual_ns

"""Sentences that say in which functions the virtual time of a modelled device was spent. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell, PerOperation
from wqlab_contracts.enums import Arm
from wqlab_contracts.instrument import OTHER

from .instrument_sentences import count

MAX_SENTENCES = 6
_LEAST_SHARE = 0.01
"""Change, as a share of the virtual time of an operation, from which a function gets a sentence."""


def time_sentences(cell: InstrumentCell) -> list[str]:
    """Return at most MAX_SENTENCES sentences, one for each function whose virtual time changed most.

    With one kernel they state which functions take most of the time. Empty if the device is not modelled.

    Example: `flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series): 1900 -> 1200 ns per fsync`.
    """
    times = [each.virtual_ns for each in cell.totals.values()]
    if not all(times):
        return []
    named = [each for each in cell.functions if each.name != OTHER]
    changed = sorted(named, key=lambda each: -_change(each.per_op))
    return [_function(cell, each) for each in changed if _change(each.per_op) > _LEAST_SHARE * max(times)][
        :MAX_SENTENCES
    ]


def _function(cell: InstrumentCell, function: FunctionChange) -> str:
    facts = ", ".join(filter(None, [function.file, "changed by the series" if function.touched else ""]))
    name = f"{function.name} ({facts})" if facts else function.name
    times = " -> ".join(count(each.virtual_ns) for each in function.per_op.values())
    return f"{name}: {times} ns per {cell.operation}"


def _change(per_op: Mapping[Arm, PerOperation]) -> float:
    """Return the size of the change between two kernels, or with one kernel the value, in virtual nanoseconds."""
    values = [each.virtual_ns for each in per_op.values()]
    return abs(values[-1] - values[0]) if len(values) > 1 else values[0]

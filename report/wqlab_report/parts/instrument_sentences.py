"""Sentences that say where the counts of an instrumented device come from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wqlab_comparison.words import number
from wqlab_contracts.api.instrument import FunctionChange, InstrumentCell, LineChange, Moves, PairChange, PerOperation
from wqlab_contracts.enums import Arm

_MAX_FUNCTIONS = 3
"""Functions that get a sentence."""
_LEAST_SHARE = 0.02
"""Change of a function's transfers, as a share of all transfers, from which it gets a sentence."""


def sentences(cell: InstrumentCell) -> list[str]:
    """Return the totals in a sentence, then one for each function whose transfers changed most, then the data line.

    A function that the series changes has a sentence however small its change, if it is the same under every seed.

    Example: `flush_workqueue_prep_pwqs (kernel/workqueue.c, changed by the series): 41.0 -> 12.3 cache lines per fsync,
    under 6 of 6 seeds; 34.0 -> 4.0 of them at kernel/workqueue.c:3987 raw_spin_lock_irq(&pool->lock), written last by
    try_to_wake_up`.
    """
    found = [_totals(cell)]
    movers = sorted(cell.changed, key=lambda each: -_transfer_change(each.per_op))
    least = _LEAST_SHARE * max(each.transfers for each in cell.totals.values())
    shown = [each for each in movers[:_MAX_FUNCTIONS] if _transfer_change(each.per_op) > least]
    shown += [each for each in _touched_movers(cell) if each.name not in {other.name for other in shown}]
    found += [_function(cell, each) for each in shown[:_MAX_FUNCTIONS]]
    instructions = max(cell.changed, key=lambda each: _instruction_change(each.per_op), default=None)
    if instructions is not None and _instruction_change(instructions.per_op):
        found.append(_instructions(cell, instructions))
    if cell.lines and _transfer_change(cell.lines[0].per_op):
        found.append(_line(cell, cell.lines[0]))
    if len(cell.totals) > 1 and not (cell.changed or cell.pairs or cell.lines):
        found.append(f"no function and no cache line differs between the kernels under {len(cell.seeds)} seeds")
    return found


def _touched_movers(cell: InstrumentCell) -> list[FunctionChange]:
    """Return the functions of the series whose transfers changed in one direction under every seed."""
    if len(cell.totals) < 2:
        return []
    moved = [each for each in cell.functions if each.touched and each.transfer_seeds == len(cell.seeds)]
    return sorted(moved, key=lambda each: -_transfer_change(each.per_op))


def count(value: float) -> str:
    """Format a count per operation with about three significant digits: `41.0`, `268412`, `0.052`."""
    if value == 0:
        return "0"
    size = abs(value)
    return number(value, 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 else 4)


def _totals(cell: InstrumentCell) -> str:
    lines = _arrow(cell.totals)
    across = _join([count(each.across_l3) for each in cell.totals.values()])
    instructions = _join([count(each.instructions) for each in cell.totals.values()])
    return (
        f"{lines} cache lines move per {cell.operation}, {across} of them across last-level cache domains; "
        f"{instructions} instructions"
    )


def _function(cell: InstrumentCell, function: FunctionChange) -> str:
    text = f"{_name(function)}: {_arrow(function.per_op)} cache lines per {cell.operation}"
    text += _seeds(function.transfer_seeds, cell)
    own = [pair for pair in cell.pairs if pair.taker == function.name]
    return f"{text}; {_pair(own[0])}" if own else text


def _instructions(cell: InstrumentCell, function: FunctionChange) -> str:
    counts = [count(each.instructions) for each in function.per_op.values()]
    seeds = _seeds(function.instruction_seeds, cell)
    return f"{_name(function)}: {_join(counts)} instructions per {cell.operation}{seeds}"


def _pair(pair: PairChange) -> str:
    where = " ".join(part for part in (pair.taker_line, pair.taker_source.rstrip(";")) if part)
    text = f"{_arrow(pair.per_op)} of them at {where}" if where else f"{_arrow(pair.per_op)} of them"
    return f"{text}, written last by {pair.writer}" if pair.writer else text


def _line(cell: InstrumentCell, line: LineChange) -> str:
    what = f"up to {line.addresses} lines of data named" if line.addresses > 1 else "the line of data"
    return f"{what} {line.symbol}: {_arrow(line.per_op)} transfers per {cell.operation}"


def _name(function: FunctionChange) -> str:
    facts = [function.file, "changed by the series" if function.touched else ""]
    known = ", ".join(fact for fact in facts if fact)
    return f"{function.name} ({known})" if known else function.name


def _seeds(agreeing: int, cell: InstrumentCell) -> str:
    return f", under {agreeing} of {len(cell.seeds)} seeds" if len(cell.totals) > 1 else ""


def _arrow(per_op: Mapping[Arm, Moves]) -> str:
    return _join([count(each.transfers) for each in per_op.values()])


def _join(counts: list[str]) -> str:
    return " -> ".join(counts)


def _transfer_change(per_op: Mapping[Arm, Moves]) -> float:
    return _size([each.transfers for each in per_op.values()])


def _instruction_change(per_op: Mapping[Arm, PerOperation]) -> float:
    return _size([each.instructions for each in per_op.values()])


def _size(counts: list[float]) -> float:
    return abs(counts[-1] - counts[0]) if len(counts) > 1 else counts[0]

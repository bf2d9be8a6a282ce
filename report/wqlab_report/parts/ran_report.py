"""List the lines or functions of a series that ran on a target, that did not, and that are not known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from wqlab_comparison.exercised import lines_of_boots, why_not_exercised
from wqlab_comparison.words import count
from wqlab_contracts.api.ran import RanReport
from wqlab_contracts.enums import Arm, Ran
from wqlab_contracts.messages import ApplyResult, RanLines
from wqlab_contracts.traced_counts import Row, TracedTopic

MAX_PLACES = 5
"""Maximum number of places that a sentence names."""
_GAP = 10
"""Maximum number of lines without code between two lines of one place."""


def ran_report(
    boots: Iterable[Sequence[RanLines]], changes: ApplyResult | None, traced: Iterable[Row]
) -> RanReport | None:
    """Return the lines and functions of a series that ran; None if neither boots nor traced boots report any.

    `boots`: the changed lines that each valid boot reports. `changes`: the changes of the series; None without one.
    `traced`: the counts of the traced boots.
    """
    if changes is None:
        return None
    touched = changes.touched
    lines = lines_of_boots(boots)
    calls: dict[str, bool] = {}
    for row in traced:
        if row.topic is TracedTopic.CALLED:
            calls[row.name] = calls.get(row.name, False) or row.count > 0
    functions = {name: calls[name] for name in touched if name in calls}
    if not lines and not functions:
        return None
    number = {ran: sum(len(each.lines) for each in lines if each.ran is ran) for ran in Ran}
    return RanReport(
        measured=number[Ran.MEASURED],
        outside=number[Ran.OUTSIDE],
        never=number[Ran.NEVER],
        lines=lines,
        functions=functions,
        not_exercised=why_not_exercised(lines, {each.arm for each in changes.changed}),
        sentences=[*_of_lines(lines, number), *_of_functions(functions, touched)],
    )


def _of_lines(lines: Sequence[RanLines], number: Mapping[Ran, int]) -> Iterator[str]:
    with_code = number[Ran.MEASURED] + number[Ran.OUTSIDE] + number[Ran.NEVER]
    if with_code:
        text = f"the plan executed {number[Ran.MEASURED]} of {count(with_code, 'changed line')} with code"
        if outside := number[Ran.OUTSIDE]:
            text += f"; {outside} of the others ran only while the kernel booted or the plan prepared its runs"
        never = [place for each in lines if each.ran is Ran.NEVER for place in _places(each)]
        yield f"{text}; the figures say nothing about {_list(never)}" if never else text
    if elsewhere := sorted({each.file for each in lines if each.ran is Ran.UNKNOWN and each.lines}):
        yield f"not part of the kernel's image, so that nothing is known of its lines: {_list(elsewhere)}"


def _places(lines: RanLines) -> Iterator[str]:
    """Yield `lines 2410 to 2416 of kernel/workqueue.c (alloc_unbound_pwq)`."""
    removed = "removed " if lines.arm is Arm.BASELINE else ""
    function = f" ({lines.function})" if lines.function else ""
    start = 0
    for at, line in enumerate(lines.lines, start=1):
        if at == len(lines.lines) or lines.lines[at] > line + _GAP:
            first = lines.lines[start]
            text = f"line {line}" if first == line else f"lines {first} to {line}"
            yield f"{removed}{text} of {lines.file}{function}"
            start = at


def _of_functions(functions: Mapping[str, bool], touched: Sequence[str]) -> Iterator[str]:
    if not functions:
        return
    never = [name for name, ran in functions.items() if not ran]
    text = f"{len(functions) - len(never)} of {count(len(functions), 'changed function')} ran in the traced boots"
    yield f"{text}; the figures say nothing about {_list(never)}" if never else text
    if hidden := [name for name in touched if name not in functions]:
        yield f"not traced, because they are inlined or closed to tracers: {_list(hidden)}"


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_PLACES} more" if len(names) > MAX_PLACES else ""
    return ", ".join(names[:MAX_PLACES]) + more

"""Combine the changed lines that ran in the boots of a run, and decide if a series was not exercised. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set

from wqlab_contracts.enums import Arm, Ran
from wqlab_contracts.messages import RanLines

_ORDER = tuple(Ran)
"""Precedence: a line has the first of these states that any of its boots reports."""


def lines_of_boots(boots: Iterable[Sequence[RanLines]]) -> list[RanLines]:
    """Return which lines ran in any of the boots, by file, function, side and state.

    A boot reports lines of its own kernel. Entries without lines are kept: they stand for changes without code.
    """
    states: dict[tuple[str, str, Arm], dict[int, Ran]] = defaultdict(dict)
    without: dict[tuple[str, str, Arm, Ran], None] = {}
    for each in (lines for boot in boots for lines in boot):
        own = states[each.file, each.function, each.arm]
        for line in each.lines:
            own[line] = min(own.get(line, each.ran), each.ran, key=_ORDER.index)
        if not each.lines:
            without[each.file, each.function, each.arm, each.ran] = None
    found = [
        RanLines(file=file, function=function, arm=arm, ran=ran, lines=sorted(lines))
        for (file, function, arm), own in states.items()
        for ran in _ORDER
        if (lines := [line for line, state in own.items() if state is ran])
    ]
    return found + [
        RanLines(file=file, function=function, arm=arm, ran=ran, lines=[]) for file, function, arm, ran in without
    ]


def why_not_exercised(lines: Sequence[RanLines], changed: Set[Arm]) -> str:
    """Return the reason for the verdict `not_exercised`; empty if a changed line ran or may have run.

    `lines` is the result of `lines_of_boots`. `changed` are the kernels that have changed lines; the reason is empty
    unless boots of each of them reported lines. A change without code, such as of a variable, may have an effect
    without running.
    """
    never = sum(len(each.lines) for each in lines if each.ran is Ran.NEVER)
    if not never or changed - {each.arm for each in lines} or any(each.ran is not Ran.NEVER for each in lines):
        return ""
    which = (
        "the only changed line with code did not run"
        if never == 1
        else f"none of the {never} changed lines with code ran"
    )
    return f"not exercised: {which}"

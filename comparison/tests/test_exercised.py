"""Which changed lines ran in the boots of a run, and when a series counts as not exercised."""

from __future__ import annotations

import pytest

from wqlab_comparison.exercised import lines_of_boots, why_not_exercised
from wqlab_contracts.enums import Arm, Ran
from wqlab_contracts.messages import RanLines

BOTH = frozenset({Arm.BASELINE, Arm.CANDIDATE})


def lines(ran: Ran, *numbers: int, arm: Arm = Arm.CANDIDATE, function: str = "f") -> RanLines:
    return RanLines(file="kernel/workqueue.c", function=function, arm=arm, ran=ran, lines=list(numbers))


def test_line_counts_as_run_if_it_ran_in_one_boot() -> None:
    boots = [
        [lines(Ran.NEVER, 1, 2, 3), lines(Ran.OUTSIDE, 4)],
        [lines(Ran.MEASURED, 2, 4), lines(Ran.OUTSIDE, 3), lines(Ran.NEVER, 1)],
    ]
    assert lines_of_boots(boots) == [lines(Ran.MEASURED, 2, 4), lines(Ran.OUTSIDE, 3), lines(Ran.NEVER, 1)]


def test_lines_are_grouped_by_function_and_side_and_changes_without_code_are_kept() -> None:
    boot = [
        lines(Ran.NEVER, 1),
        lines(Ran.NEVER, 1, arm=Arm.BASELINE),
        lines(Ran.MEASURED, 7, function="g"),
        lines(Ran.UNKNOWN, function=""),
    ]
    assert lines_of_boots([boot, boot]) == boot


@pytest.mark.parametrize(
    ("found", "changed", "reason"),
    [
        ([lines(Ran.NEVER, 1, 2)], {Arm.CANDIDATE}, "not exercised: none of the 2 changed lines with code ran"),
        ([lines(Ran.NEVER, 1), lines(Ran.NEVER, 9, arm=Arm.BASELINE)], BOTH, "not exercised: none of the 2 changed"),
        ([lines(Ran.NEVER, 1), lines(Ran.MEASURED, 9, arm=Arm.BASELINE)], BOTH, ""),
        ([lines(Ran.NEVER, 1), lines(Ran.OUTSIDE, 2)], {Arm.CANDIDATE}, ""),
        ([lines(Ran.NEVER, 1), lines(Ran.MEASURED)], {Arm.CANDIDATE}, ""),  # the rest of a statement that ran
        ([lines(Ran.NEVER, 1), lines(Ran.UNKNOWN, function="")], {Arm.CANDIDATE}, ""),  # a variable
        ([lines(Ran.NEVER, 1)], BOTH, ""),  # no boot of the baseline reports lines
        ([lines(Ran.NEVER)], {Arm.CANDIDATE}, ""),
        ([], set(), ""),
    ],
)
def test_series_is_not_exercised_only_if_all_of_it_is_known_not_to_run(
    found: list[RanLines], changed: set[Arm], reason: str
) -> None:
    text = why_not_exercised(found, changed)
    assert text.startswith(reason) if reason else not text

"""Lines that a series changes, and whether they ran in a boot."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from ..enums import Arm, Ran
from .base import Message

CHANGED_LIMIT = 4_000
"""Maximum number of ranges of changed lines in a message. The lines of a series with more are not reported."""
LINES_LIMIT = 20_000
"""Maximum number of changed lines in a message, with the same consequence."""

SourcePath = Annotated[str, StringConstraints(max_length=240)]
FunctionName = Annotated[str, StringConstraints(max_length=160)]
Line = Annotated[int, Field(ge=1)]


class ChangedLines(Message):
    """Consecutive lines of one function that a series adds or removes, without blank lines, comments and braces."""

    file: SourcePath
    """Path in the source tree."""
    function: FunctionName = ""
    """Empty outside of functions."""
    arm: Arm
    """Removed lines are numbered in the source of the baseline, added lines in the source of the candidate."""
    first: Line
    last: Line


class RanLines(Message):
    """Changed lines of one function with the same answer to whether they ran."""

    file: SourcePath
    function: FunctionName = ""
    arm: Arm
    ran: Ran
    lines: list[Line] = Field(max_length=LINES_LIMIT)
    """Line numbers in ascending order. If no line has code of its own, the list is empty and `ran` is that of the line
    before them. For a file that is not part of the kernel's image, all changed lines."""


RAN_LIMIT = CHANGED_LIMIT * len(Ran)
"""Maximum number of `RanLines` of a boot."""

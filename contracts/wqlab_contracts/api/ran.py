"""Which lines or functions of a series ran on a target."""

from __future__ import annotations

from pydantic import Field

from ..messages import Message, RanLines


class RanReport(Message):
    """Changed lines (on instrumented devices) or functions (in traced boots) of a series that ran."""

    measured: int = 0
    """Changed lines with code that ran while the device counted, in any boot of their kernel."""
    outside: int = 0
    """Changed lines with code that ran only while the kernel booted, or in the plan's preparation."""
    never: int = 0
    """Changed lines with code that ran in no boot."""
    lines: list[RanLines] = Field(default_factory=list)
    functions: dict[str, bool] = Field(default_factory=dict)
    """Changed function -> whether it ran in a traced boot. Functions that cannot be traced (inlined) are missing."""
    not_exercised: str = ""
    """Reason for the verdict `not_exercised`; empty if a changed line ran, or if that is not known."""
    sentences: list[str] = Field(default_factory=list)
    """The same facts as sentences."""

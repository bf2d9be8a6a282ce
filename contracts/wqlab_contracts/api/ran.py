"""Which lines or functions of a series ran on a target."""

from __future__ import annotations

from pydantic import Field

from ..messages import Message, RanLines


class RanReport(Message):
    """What ran of a series: lines on instrumented devices, functions in traced boots."""

    measured: int = 0
    """Changed lines with code that ran while the device counted, in any boot of their kernel."""
    outside: int = 0
    """Those that ran only at other times: while the kernel booted, or in the plan's preparation."""
    never: int = 0
    """Those that ran in no boot."""
    lines: list[RanLines] = Field(default_factory=list)
    functions: dict[str, bool] = Field(default_factory=dict)
    """Changed function -> whether it ran in a traced boot; one that cannot be traced, as it is inlined, is missing."""
    not_exercised: str = ""
    """Why no figure says anything about the series, so that verdicts are `not_exercised`; empty if one does."""
    sentences: list[str] = Field(default_factory=list)
    """The same as text."""

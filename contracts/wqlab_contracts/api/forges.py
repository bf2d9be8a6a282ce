"""REST resources of forges."""

from __future__ import annotations

from ..messages import Message


class ForgeEventAnswer(Message):
    """What the lab does with an event."""

    result: str
    """`taken: pull/7`, `ignored: ...` or `repeated: ...`."""

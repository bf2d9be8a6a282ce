"""Something that is possible, but not now: each source of submissions tries again, the HTTP API answers 429."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta


class Wait(Exception):
    """A request cannot be carried out yet; the text says what it waits for.

    `pause`: time until it may be possible, if known.
    """

    def __init__(self, reason: str, *, pause: timedelta | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class QuotaUsedUp(Wait):
    """A submitter has used up a quota. Each item of `errors` has `quota`, `detail` and, if known, `available_at`."""

    def __init__(self, reason: str, *, pause: timedelta, errors: Sequence[Mapping[str, str]]) -> None:
        super().__init__(reason, pause=pause)
        self.errors = errors

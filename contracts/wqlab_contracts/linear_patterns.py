"""Compile patterns for text of submitted code, builds and devices.

RE2 matches in time linear in the text, whatever pattern and text are. Python's re backtracks: one line of a build log
that is made for its pattern can take hours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import re2


class Match(Protocol):
    """Result of a match; the part of `re.Match` that RE2's has too."""

    def __getitem__(self, group: int | str, /) -> str: ...
    def groups(self) -> tuple[str, ...]: ...
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...


class LinearPattern:
    """A pattern in RE2's syntax: no look-around and no back references, and `$` is the end of the text.

    `\\d`, `\\w` and `\\s` are ASCII. Lone surrogates in a text match as `?`. Raises re2.error for an invalid
    pattern.
    """

    def __init__(self, pattern: str, needs: Collection[str] = ()) -> None:
        """`needs`: texts of which each match contains one. A search for them is many times as fast as one by RE2."""
        self._compiled = re2.compile(pattern)
        self._needs = tuple(needs)

    def _may_match(self, text: str) -> bool:
        for needed in self._needs:
            if needed in text:
                return True
        return not self._needs

    def match(self, text: str) -> Match | None:
        """Match at the beginning of `text`."""
        if not self._may_match(text):
            return None
        found: Match | None = self._compiled.match(_encodable(text))
        return found

    def fullmatch(self, text: str) -> Match | None:
        found: Match | None = self._compiled.fullmatch(_encodable(text))
        return found

    def search(self, text: str) -> Match | None:
        if not self._may_match(text):
            return None
        found: Match | None = self._compiled.search(_encodable(text))
        return found

    def finditer(self, text: str) -> Iterator[Match]:
        found: Iterator[Match] = self._compiled.finditer(_encodable(text))
        return found

    def sub(self, replacement: str, text: str) -> str:
        replaced: str = self._compiled.sub(replacement, _encodable(text))
        return replaced


def _encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced by `?`, so that it can be encoded as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text

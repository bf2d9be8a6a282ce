"""Compare two versions of a series patch by patch, as git-range-diff(1) does, from their mboxes. Pure.

git range-diff needs the commits of both versions in one repository; a lab has mails, and a reader may not have their
bases.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wqlab_contracts.mails.mbox import parse_mails
from wqlab_contracts.messages import normalised_subject

LEAST_SIMILAR = 0.4
"""Smallest share of equal lines of two patches with different subjects that are taken for one patch."""
LINES_LIMIT = 20_000
"""Most lines of a patch that are compared; a longer one is only said to differ."""
INDENT = "    "
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)")
_FILE = re.compile(r'diff --git (?:"?a/.*) "?b/(.*?)"?$')
_NO_CONTENT = ("index ", "--- ", "+++ ", "similarity index ", "dissimilarity index ")
_SIGNATURE = "-- "


class Change(StrEnum):
    """How a patch differs between the versions; the values are the signs of git range-diff."""

    EQUAL = "="
    CHANGED = "!"
    REMOVED = "<"
    ADDED = ">"


@dataclass(frozen=True)
class Patch:
    """A patch of a version."""

    subject: str
    lines: tuple[str, ...]
    """Subject, commit message and diff, without line numbers and object ids."""


@dataclass(frozen=True)
class Pair:
    """A patch in both versions, or in one of them."""

    first: int | None
    """Number of the patch in the first version, from 1."""
    second: int | None
    change: Change
    subject: str
    """Subject in the first version if that has the patch, else in the second."""
    difference: tuple[str, ...] = ()
    """Lines of the diff between the two diffs; empty for an equal, removed or added patch."""


def patches_of(mbox: str) -> list[Patch]:
    """Return the patches of an mbox, in order; mails without a diff are left out."""
    return [
        Patch(mail.title, tuple(_comparable(mail.title, mail.body)))
        for mail in parse_mails(mbox)
        if "\ndiff --git " in f"\n{mail.body}"
    ]


def range_diff(first: Sequence[Patch], second: Sequence[Patch]) -> list[Pair]:
    """Return a pair for each patch, in the order of the second version. A removed patch comes before the first pair
    with a later patch of the first version."""
    partner = _matched(first, second)
    pairs: list[Pair] = []
    removed = [number for number in range(len(first)) if number not in partner.values()]
    for number, patch in enumerate(second):
        before = partner.get(number)
        while removed and before is not None and removed[0] < before:
            pairs.append(_removed(first, removed.pop(0)))
        if before is None:
            pairs.append(Pair(None, number + 1, Change.ADDED, patch.subject))
        else:
            difference = _difference(first[before].lines, patch.lines)
            change = Change.CHANGED if difference else Change.EQUAL
            pairs.append(Pair(before + 1, number + 1, change, first[before].subject, difference))
    return [*pairs, *(_removed(first, number) for number in removed)]


def text_of(pairs: Sequence[Pair]) -> list[str]:
    """Return the lines of a range-diff."""
    width = max((len(str(number)) for pair in pairs for number in (pair.first, pair.second) if number), default=1)
    lines: list[str] = []
    for pair in pairs:
        sides = [f"{number or '-':>{width}}:" for number in (pair.first, pair.second)]
        lines.append(f"{sides[0]} {pair.change} {sides[1]} {pair.subject}")
        lines += [f"{INDENT}{line}".rstrip() for line in pair.difference]
    return lines


def _removed(first: Sequence[Patch], number: int) -> Pair:
    return Pair(number + 1, None, Change.REMOVED, first[number].subject)


def _matched(first: Sequence[Patch], second: Sequence[Patch]) -> dict[int, int]:
    """Return number in the second version -> number in the first: equal patches, then equal subjects, then the most
    similar."""
    partner: dict[int, int] = {}

    def free() -> Iterator[tuple[int, int]]:
        for after in range(len(second)):
            for before in range(len(first)):
                if after not in partner and before not in partner.values():
                    yield after, before

    for after, before in free():
        if first[before].lines == second[after].lines:
            partner[after] = before
    for after, before in free():
        if normalised_subject(first[before].subject) == normalised_subject(second[after].subject):
            partner[after] = before
    rest = [(_similarity(first[before], second[after]), after, before) for after, before in free()]
    for similarity, after, before in sorted(rest, reverse=True):
        if similarity >= LEAST_SIMILAR and after not in partner and before not in partner.values():
            partner[after] = before
    return partner


def _similarity(one: Patch, other: Patch) -> float:
    """Return the share of lines that both patches have, from 0 to 1."""
    lines = [set(patch.lines[:LINES_LIMIT]) for patch in (one, other)]
    return 2 * len(lines[0] & lines[1]) / max(1, len(lines[0]) + len(lines[1]))


def _comparable(subject: str, body: str) -> Iterator[str]:
    """Yield commit message and diff of a mail without what changes with every version: line numbers and object ids."""
    text = body.replace("\r\n", "\n").split("\n")
    start = next((number for number, line in enumerate(text) if line.startswith("diff --git ")), len(text))
    message = text[:start]
    cut = next((number for number, line in enumerate(message) if line == "---"), len(message))
    yield from (" ## Commit message ##", f"{INDENT}{subject}", "")
    yield from (f"{INDENT}{line.rstrip()}".rstrip() for line in _stripped(message[:cut]))
    name = ""
    for line in text[start:]:
        if line == _SIGNATURE:
            return
        if match := _FILE.match(line):
            name = match[1]
            yield f" ## {name} ##"
        elif hunk := _HUNK.match(line):
            yield f"@@ {name}: {hunk[1]}".rstrip(": ")
        elif line and not line.startswith(_NO_CONTENT):
            yield line.rstrip()


def _stripped(lines: Sequence[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n")


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    if before == after:
        return ()
    if max(len(before), len(after)) > LINES_LIMIT:
        return (f"(differs; more than {LINES_LIMIT} lines)",)
    found: list[str] = []
    for line in list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]:
        if hunk := _HUNK.match(line):
            found.append(_heading(before, int(re.split(r"[-,+ ]+", hunk[0])[1])))
        else:
            found.append(line)
    return tuple(found)


def _heading(lines: Sequence[str], at: int) -> str:
    """Return the hunk's heading: the file or function of the patch that it begins in."""
    above = (line for line in reversed(lines[: max(0, at - 1)]) if line.startswith((" ## ", "@@")))
    return f"@@ {next(above, '').strip('@# ')}".rstrip()

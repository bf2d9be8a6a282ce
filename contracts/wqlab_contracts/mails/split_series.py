"""Put together a series whose mails are in several threads: a cover letter without its patches, or some of the patches.

Pure. Parts belong together if author, version, total and the other words of the brackets are equal, if all mails were
sent one after the other within hours, and if together they have each number once. Otherwise they stay apart, so that
the series is refused as incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from .mbox import Mail
from .revision_mails import Group, date_of, position

LONGEST = timedelta(hours=4)
"""Longest time between the first and the last mail of a series that was sent in parts."""
_SHORTLOG = re.compile(r"^\S.{0,100} \(\d{1,4}\):$", re.MULTILINE)
"""Line of `git shortlog` above the titles of an author."""

T = TypeVar("T")


@dataclass(frozen=True)
class Part(Generic[T]):
    """Mails of one thread that are not a whole series with its cover letter."""

    value: T
    author: str
    """Address in lower case."""
    version: int
    total: int
    words: frozenset[str]
    """Words of the subjects' brackets beside version and number, in lower case."""
    sent: tuple[tuple[int, datetime | None], ...]
    """Number and time of each mail; 0 is the cover letter."""
    cover: str | None = None
    """Title of the cover letter."""
    change_id: str | None = None

    @property
    def first_at(self) -> datetime | None:
        """Return the time of its first mail; None if the time of one is unknown."""
        times = [at for _, at in self.sent if at is not None]
        return min(times) if len(times) == len(self.sent) and times else None


def find_whole(parts: Sequence[Part[T]]) -> list[list[T]]:
    """Return a list for each series that is whole and unambiguous: the values of its parts, the first part first."""
    return [[part.value for part in near] for near in _sent_together(parts) if len(near) > 1 and _is_whole(near)]


def find_unclear(parts: Sequence[Part[T]]) -> list[list[T]]:
    """Return lists of the values of parts that were sent together and may not be one whole series."""
    return [[part.value for part in near] for near in _sent_together(parts) if len(near) > 1 and not _is_whole(near)]


def _sent_together(parts: Sequence[Part[T]]) -> Iterator[list[Part[T]]]:
    by_key: dict[tuple[str, int, int, frozenset[str]], list[tuple[datetime, Part[T]]]] = {}
    for part in parts:
        if part.author and (at := part.first_at) is not None:
            by_key.setdefault((part.author, part.version, part.total, part.words), []).append((at, part))
    for timed in by_key.values():
        near: list[tuple[datetime, Part[T]]] = []
        for at, part in sorted(timed, key=lambda each: (each[0], each[1].sent[0][0])):
            if near and at - near[-1][0] > LONGEST:
                yield [each for _, each in near]
                near = []
            near.append((at, part))
        yield [each for _, each in near]


def _is_whole(parts: Sequence[Part[T]]) -> bool:
    sent = sorted((number, at) for part in parts for number, at in part.sent if at is not None)
    covers = [each for each in sent if each[0] == 0]
    sent = [*covers[:1], *sent[len(covers) :]]  # a cover letter may be sent again with the rest of the patches
    times = [at for _, at in sent]
    return (
        [number for number, _ in sent] == list(range(0 if covers else 1, parts[0].total + 1))
        and times == sorted(times)
        and times[-1] - times[0] <= LONGEST
        and len({part.cover for part in parts} - {None}) <= 1
        and len({part.change_id for part in parts} - {None}) <= 1
    )


# --- parts of the threads of an archive -----------------------------------------------------------------------------


def with_parts(groups: Sequence[Group]) -> list[Group]:
    """Return the groups; those that are parts of one series in several threads are one group."""
    parts = parts_of(groups)
    of_others = {
        id(group)
        for joined in find_whole(parts)
        for group in joined
        if group.covers and lists_others(group.covers[0], _joined_parts(joined).patches)
    }
    whole = [
        _joined_parts(joined) for joined in find_whole([part for part in parts if id(part.value) not in of_others])
    ]
    parted = {id(mail): group for group in whole for mail in group.heads}
    found = [parted.get(id(group.heads[0]), group) for group in groups]
    return list({id(group): group for group in found}.values())


def _joined_parts(parts: Sequence[Group]) -> Group:
    covers = [mail for part in parts for mail in part.covers]
    patches = [mail for part in parts for mail in part.patches]
    return Group(parts[0].root, parts[0].version, parts[0].total, covers, patches)


def lists_others(cover: Mail, patches: Sequence[Mail]) -> bool:
    """Return True if a cover letter has git's list of its patches, and another patch."""
    listed = " ".join(cover.body.split())
    return _SHORTLOG.search(cover.body) is not None and any(
        " ".join(mail.title.split()) not in listed for mail in patches
    )


def parts_of(groups: Sequence[Group]) -> list[Part[Group]]:
    """Return the groups that may be parts of a series in several threads."""
    return [
        Part(
            value=group,
            author=group.address,
            version=group.version,
            total=group.total,
            words=frozenset().union(*(mail.parsed.words for mail in group.heads)),
            sent=tuple((position(mail), date_of(mail)) for mail in group.heads),
            cover=group.covers[0].title if group.covers else None,
            change_id=group.change_id,
        )
        for group in groups
        if group.total is not None and (group.missing or not group.covers)
    ]

"""Parse the subject of a mail: `[list] [PATCH v2 1/3] title`. The only parser of subjects; all others ask it.

A counter or a version is a word of its own in any of the brackets before the title, between spaces or commas, as in
`[PATCH v3,net-next,2/4]`, so `[PATCH 5.10/5.15]` has no counter. The first of each counts, because a commit's own
subject may begin with brackets; of versions the first without a dot, because `v6.1` may be a kernel. A bracket of a
list may be before `Re:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BRACKET = re.compile(r"\s*\[((?:[^\[\]]*\[[^\[\]]*\]){1,3}[^\[\]]*|[^\]]*)\]\s*")
"""A bracket may contain others: `[[PATCH v3] 1/4]`."""
_REPLY = re.compile(r"(?:re|aw|fwd?):|\w{2,3}:\s*\[", re.IGNORECASE)
"""The rule of b4."""
_REPLY_BEHIND_LIST = re.compile(r"(?:re|aw|fwd?):", re.IGNORECASE)
_REPLIES = re.compile(r"(?:\s*(?:\[[^\]]{0,80}\]\s*){0,3}(?:re|aw|fwd?):\s*){1,20}", re.IGNORECASE)
_LEADING = re.compile(r"(?:re:|[\s:]){1,50}", re.IGNORECASE)
"""What git removes at the beginning of a title."""
_SEPARATORS = re.compile(r"[\s,;:\[\]()]+")
_SPACED = re.compile(r"\b(v|version) {1,3}(?=\d)|(?<=\d) {0,3}(/|\bof\b) {0,3}(?=\d)", re.IGNORECASE)
"""Space in a version or a counter, and the `1 of 3` of Mercurial."""
_COUNTER = re.compile(r"(?:patch)?(\d{1,4})/(\d{1,4})", re.IGNORECASE)
_VERSION = re.compile(
    r"-?(?:(?:patch|patches|patchset|series|rfc|resend)[-_.]?)?v(\d{1,4})"
    r"(?:((?:\.\d{1,4}){1,2})|([a-z])|r(\d{1,2})\w{0,9}|-(?:resend|rfc)|-([\w-]{1,30})|/[a-z]\w{0,20})?",
    re.IGNORECASE,
)
_NEWEST_KERNEL = 9
_LONGTERM_KERNELS = {(4, 4), (4, 9), (5, 4), (6, 1), (6, 6)}
"""Kernels whose minor number could be the version of a series; later longterm kernels have minor numbers from 10."""
_BEFORE_KERNEL = re.compile(r"for|on|stable|linux|lts", re.IGNORECASE)
_PATCH_WORD = re.compile(r"patch|rfc|resend", re.IGNORECASE)
_LAST_WORD = re.compile(r"[\s,]\(?v(\d{1,3})\)?$", re.IGNORECASE)
_SET_WORD = re.compile(r"patch-?(?:set|series|bomb|deluge)|series", re.IGNORECASE)


@dataclass(frozen=True)
class Subject:
    """What the subject of a mail says."""

    title: str
    """Without brackets; of a reply the whole subject."""
    is_reply: bool = False
    counter: tuple[int, int] | None = None
    """(2, 3) for `[PATCH 2/3]`."""
    version: int | None = None
    """Version of the series, such as 2 for `[PATCH v2]`; None if the subject names none."""
    reroll: int = 0
    """1 for `[PATCH v2.1 2/3]`, `[PATCH v2a 2/3]` and `[PATCH v2-fix 2/3]`: the patch was sent again."""
    names_patch: bool = False
    """True if a bracket has one of the words PATCH, RFC and RESEND."""
    names_set: bool = False
    """True for `[PATCHSET]`, which a cover letter has. Its counter is that of a set among sets."""
    words: frozenset[str] = frozenset()
    """Other words of the brackets in lower case, such as `rfc`, `net-next` and the names of lists."""


def parse_subject(subject: str) -> Subject:
    """Return what a subject says."""
    subject = subject.strip()
    if _REPLY.match(subject):
        return Subject(subject, is_reply=True)
    words: list[str] = []
    end = 0
    while (bracket := _BRACKET.match(subject, end)) is not None:
        words += [word for each in _SEPARATORS.split(_SPACED.sub(_unspaced, bracket[1])) if (word := each.rstrip("."))]
        end = bracket.end()
        if _REPLY_BEHIND_LIST.match(subject, end) and not _is_patch(words):
            return Subject(subject, is_reply=True)
    counters = [(int(found[1]), int(found[2])) for word in words if (found := _COUNTER.fullmatch(word))]
    version, reroll = _version(words)
    return Subject(
        title=_without_leading(subject[end:]) if end else subject,
        counter=counters[0] if counters else None,
        version=version,
        reroll=reroll,
        names_patch=any(_PATCH_WORD.match(word) for word in words),
        names_set=any(_SET_WORD.match(word) for word in words),
        words=frozenset(word.casefold() for word in words if not _is_common(word)),
    )


def _unspaced(found: re.Match[str]) -> str:
    return "v" if found[1] else "/"


def _is_common(word: str) -> bool:
    """Return True for the words that all mails of a series have, or that differ between them."""
    version = _VERSION.fullmatch(word)
    return bool(
        _COUNTER.fullmatch(word) or (version and version[2] is None) or _SET_WORD.match(word) or word.lower() == "patch"
    )


def _version(words: list[str]) -> tuple[int | None, int]:
    """Return version and reroll. A kernel, as in `[PATCH v5.15]` and `[PATCH for v6.1]`, is no version."""
    dotted: tuple[int | None, int] = (None, 0)
    for before, word in zip(["", *words], words, strict=False):
        if (found := _VERSION.fullmatch(word)) is None:
            continue
        version, dots, letter, number, suffix = int(found[1]), *found.groups()[1:]
        if dots is None:
            return version, ord(letter.lower()) - ord("a") + 1 if letter else int(number or bool(suffix))
        minor, *more = (int(each) for each in dots[1:].split("."))
        is_kernel = version <= _NEWEST_KERNEL and (minor >= 10 or more or _BEFORE_KERNEL.fullmatch(before))
        is_kernel = is_kernel or (version, minor) in _LONGTERM_KERNELS
        if dotted[0] is None and not is_kernel:
            dotted = version, minor
    return dotted


def without_reply(subject: str) -> str:
    """Return the subject of the mail that a reply answers."""
    found = _REPLIES.match(subject)
    return subject[found.end() :] if found else subject


def split_version(title: str) -> tuple[str, int | None]:
    """Return a title without the version that is its last word, and the version: `my series v2` is `my series`, 2."""
    found = _LAST_WORD.search(title)
    left = title[: found.start()].rstrip(" ,") if found else ""
    return (left, int(found[1])) if found and left and int(found[1]) > 1 else (title, None)


def _without_leading(title: str) -> str:
    found = _LEADING.match(title)
    return title[found.end() :] if found else title


def format_subject(title: str, version: int, counter: tuple[int, int] | None) -> str:
    """Return `[PATCH v2 1/3] title`, which every tool reads alike."""
    named = f" v{version}" if version != 1 else ""
    numbered = f" {counter[0]}/{counter[1]}" if counter else ""
    return f"[PATCH{named}{numbered}] {title}"


def _is_patch(words: list[str]) -> bool:
    return any(_PATCH_WORD.match(word) or _COUNTER.fullmatch(word) for word in words)

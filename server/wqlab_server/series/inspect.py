"""What an mbox holds and what is wrong with it. Pure; nothing of it is run.

Version, order and completeness are judged as `b4 am` judges them, which the worker applies the series with: replies are
no patches, the version that was sent last is taken, its patches are ordered by their counters, and a re-sent part of a
series takes the rest from the version before. Where b4 would guess between several series, this says so instead.
"""

from __future__ import annotations

import email.utils
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from wqlab_contracts import mbox
from wqlab_contracts.api.series import CoverLetter, SeriesDefect, SeriesInspection, SeriesPatch, SeriesProblem
from wqlab_contracts.mbox import Mail
from wqlab_contracts.messages import normalised_subject

from .diff import files_of

MESSAGE_LIMIT = 10_000
COVER_LIMIT = 20_000
_NAMED = 5
"""How many things a problem names before it counts the rest."""
_DIFF_START = re.compile(r"^(?:diff --git |--- [^\s].*\n\+\+\+ |---\s*$)", re.MULTILINE)
_IN_BODY_FROM = re.compile(r"\s*From: (.+)")
_FORMAT_PATCH = "`git format-patch --stdout --base=auto`"


@dataclass
class _Findings:
    problems: list[SeriesProblem] = field(default_factory=list)

    def error(self, defect: SeriesDefect, detail: str) -> None:
        self._add(defect, "error", detail)

    def warning(self, defect: SeriesDefect, detail: str) -> None:
        self._add(defect, "warning", detail)

    def _add(self, defect: SeriesDefect, severity: Literal["error", "warning"], detail: str) -> None:
        self.problems.append(SeriesProblem(defect=defect, severity=severity, detail=detail))


def inspect(text: str) -> SeriesInspection:
    """Never raises for any text: what cannot be read is a problem of the answer."""
    findings = _Findings()
    parts = mbox.split(text)
    if len(parts) > mbox.MAIL_LIMIT:
        findings.error(
            SeriesDefect.TOO_LARGE,
            f"{len(parts)} mails; at most {mbox.MAIL_LIMIT} are read. Save the one thread that is meant",
        )
        return _nothing(len(parts), findings)
    if not parts:
        detail = f"no mail in it: expected the output of {_FORMAT_PATCH}, or a thread saved by `b4 mbox`"
        findings.error(SeriesDefect.NOT_AN_MBOX, detail)
        return _nothing(0, findings)
    mails = _each_once(mbox.mails_of(text))
    for mail in mails:
        if not mail.readable:
            detail = f"{_shown(mail.subject)} has more than {mbox.PART_LIMIT} MIME parts; send patches as plain text"
            findings.error(SeriesDefect.UNREADABLE_MAIL, detail)
    patches = [mail for mail in mails if mail.has_patch and not mail.is_reply]
    if not patches:
        replies = sum(mail.has_patch for mail in mails)
        hint = " (diffs in replies are not taken)" if replies else " (a cover letter alone is not enough)"
        findings.error(SeriesDefect.NO_PATCH, f"{_count(len(mails), 'mail')}, but none with a diff{hint}")
        return _nothing(len(parts), findings)
    version = _newest(patches)
    chosen = _ordered(patches, version, mails, findings)
    if len(chosen) > mbox.PATCH_LIMIT:
        detail = f"{len(chosen)} patches; at most {mbox.PATCH_LIMIT} are taken"
        findings.error(SeriesDefect.TOO_LARGE, detail)
        chosen = chosen[: mbox.PATCH_LIMIT]
    return _inspection(mails, chosen, version, findings, received=len(parts))


def _each_once(mails: Sequence[Mail]) -> list[Mail]:
    return list({mail.known_as: mail for mail in reversed(mails)}.values())[::-1]


# --- which patches ----------------------------------------------------------------------------------------------


def _newest(patches: Sequence[Mail]) -> int:
    """The version that was begun last; of several without dates the highest."""
    begun: dict[int, datetime] = {}
    for mail in patches:
        at = _date(mail) or datetime.min.replace(tzinfo=UTC)
        begun[mail.version] = min(begun.get(mail.version, at), at)
    return max(begun, key=lambda version: (begun[version], version))


def _ordered(patches: Sequence[Mail], version: int, mails: Sequence[Mail], findings: _Findings) -> list[Mail]:
    """The chosen version's patches by their counters, completed from the version before where that is what was sent."""
    others = sorted({mail.version for mail in patches} - {version})
    if others:
        names = ", ".join(f"v{other}" for other in others)
        findings.warning(SeriesDefect.OLDER_VERSION, f"{names} is in the mbox too; v{version} is taken")
    chosen = [mail for mail in patches if mail.version == version]
    _check_one_series(chosen, findings)
    lacking = mbox.missing(chosen)
    if lacking and _re_sent(chosen, version, mails):
        before = {mail.counter: mail for mail in patches if mail.version == version - 1}
        total = max(mail.counter[1] for mail in chosen if mail.counter)
        added = [before[number, total] for number in range(1, total + 1) if (number, total) in before]
        known = {mail.counter for mail in chosen}
        chosen += [mail for mail in added if mail.counter not in known]
        lacking = mbox.missing(chosen)
        if not lacking:
            detail = f"v{version} is a part of the series that was sent again; the rest is taken from v{version - 1}"
            findings.warning(SeriesDefect.MERGED_VERSIONS, detail)
    if lacking:
        findings.error(SeriesDefect.MISSING_PATCH, f"patch {_listed(lacking)} is missing")
    return sorted(chosen, key=lambda mail: mail.counter[0] if mail.counter else 1)


def _check_one_series(chosen: Sequence[Mail], findings: _Findings) -> None:
    totals = {mail.counter[1] for mail in chosen if mail.counter}
    places = Counter(mail.counter[0] if mail.counter else 1 for mail in chosen)
    uncounted = [mail for mail in chosen if mail.counter is None]
    if len(totals) > 1:
        sizes = " and one of ".join(str(total) for total in sorted(totals))
        detail = f"one series of {sizes} patches; keep the one that is meant"
    elif len(uncounted) > 1 or (uncounted and totals):
        names = _listed([_shown(mail.title) for mail in uncounted])
        detail = f"{len(chosen)} patches, of which {names} say no place: number them with `git format-patch -n`"
    elif twice := sorted(place for place, times in places.items() if times > 1):
        names = _listed([_shown(mail.title) for mail in chosen if mail.counter and mail.counter[0] == twice[0]])
        detail = f"patch {twice[0]} is there more than once: {names}; keep the one that is meant"
    else:
        return
    findings.error(SeriesDefect.SEVERAL_SERIES, f"more than one series: {detail}")


def _re_sent(chosen: Sequence[Mail], version: int, mails: Sequence[Mail]) -> bool:
    """Whether every patch answers the one in its place of an earlier version: then b4 completes the series."""
    if version < 2:
        return False
    by_id = {mail.message_id: mail for mail in mails if mail.message_id}
    for mail in chosen:
        seen: set[str] = set()
        above = mail.in_reply_to
        while above is not None and above not in seen and above in by_id and by_id[above].counter != mail.counter:
            seen.add(above)
            above = by_id[above].in_reply_to
        if above is None or above in seen or above not in by_id:
            return False
    return True


# --- the answer -------------------------------------------------------------------------------------------------


def _inspection(
    mails: list[Mail], chosen: list[Mail], version: int, findings: _Findings, received: int
) -> SeriesInspection:
    of_version = mbox.of_one_version(mails, chosen)
    cover = mbox.cover_letter(of_version)
    texts = [mail.body for mail in of_version]
    base = mbox.base_commit(texts)
    if base is None:
        detail = f"it names no base-commit, so it is applied to the tree's head; {_FORMAT_PATCH} names it"
        findings.warning(SeriesDefect.NO_BASE_COMMIT, detail)
    patches = [_patch(position, mail) for position, mail in enumerate(chosen, 1)]
    binary = [change.path for patch in patches for change in patch.files if change.binary]
    if binary:
        findings.warning(SeriesDefect.BINARY_PATCH, f"binary changes: {_listed(binary)}; their size is not counted")
    subject = (cover or chosen[0]).title
    change_id = mbox.change_id(texts)
    return SeriesInspection(
        subject=subject,
        version=version,
        series_key=change_id or normalised_subject(subject),
        change_id=change_id,
        authors=list(dict.fromkeys(patch.author for patch in patches)),
        cover=CoverLetter(subject=cover.title, text=cover.body[:COVER_LIMIT].strip()) if cover else None,
        patches=patches,
        base_commit=base,
        files=len({change.path for patch in patches for change in patch.files}),
        insertions=sum(patch.insertions for patch in patches),
        deletions=sum(patch.deletions for patch in patches),
        mails=received,
        problems=findings.problems,
        usable=not any(problem.severity == "error" for problem in findings.problems),
    )


def _nothing(received: int, findings: _Findings) -> SeriesInspection:
    return SeriesInspection(
        subject="", version=1, series_key="", change_id=None, authors=[], cover=None, patches=[], base_commit=None,
        files=0, insertions=0, deletions=0, mails=received, problems=findings.problems, usable=False,
    )  # fmt: skip


def _patch(position: int, mail: Mail) -> SeriesPatch:
    files = files_of(mail.body)
    start = _DIFF_START.search(mail.body)
    message = mail.body[: start.start()] if start else mail.body
    author = mail.author
    if named := _IN_BODY_FROM.match(message):
        author, message = named[1].strip(), message[named.end() :]
    return SeriesPatch(
        position=position,
        subject=mail.title,
        author=author,
        date=_date(mail),
        message_id=mail.message_id,
        message=message.strip()[:MESSAGE_LIMIT],
        files=files,
        insertions=sum(change.insertions for change in files),
        deletions=sum(change.deletions for change in files),
    )


def _date(mail: Mail) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(mail.date)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

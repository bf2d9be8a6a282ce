"""Inspection of an mbox: its patches and its problems. Pure; no code in it is run.

Replies are not patches, the version sent last is used, its patches are ordered by their counters, and a partially
re-sent series is completed from the previous version. The worker applies the mails that are chosen here, and refuses
what is refused here. Where b4 would guess between several series, the inspection reports a problem.
"""

from __future__ import annotations

import email.utils
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from ..api.series import CoverLetter, SeriesDefect, SeriesInspection, SeriesPatch, SeriesProblem
from ..diffstat import changed_files
from ..messages import normalised_subject
from . import mbox
from .canonical_mails import ChosenMails
from .mail_threads import address_of, ancestors_of, find_sent_again, parent_of, with_roles
from .mbox import Mail
from .split_series import lists_others

MESSAGE_LIMIT = 10_000
COVER_LIMIT = 20_000
_MAX_NAMES = 5
"""Number of names that a problem lists before it counts the rest."""
_DIFF_START = re.compile(r"^(?:diff --git |--- [^\s].*\n\+\+\+ |---\s*$)", re.MULTILINE)
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


@dataclass(frozen=True)
class InspectedSeries:
    """What an inspection shows, and the mails that it chose."""

    inspection: SeriesInspection
    chosen: ChosenMails | None = None
    """None if there is no patch."""


def inspect(text: str) -> SeriesInspection:
    """Inspect an mbox. Raises no exception for any text: whatever cannot be read is reported as a problem."""
    found = choose_patches(text).inspection
    problem = mbox.header_problem(text)
    if problem is None or any(each.defect is SeriesDefect.TOO_LARGE for each in found.problems):
        return found
    refused = SeriesProblem(defect=SeriesDefect.UNREADABLE_MAIL, severity="error", detail=problem)
    return found.model_copy(update={"problems": [refused, *found.problems], "usable": False})


def choose_patches(text: str, *, escaped: bool = False, version: int | None = None) -> InspectedSeries:
    """Choose the patches of an mbox, of a version or of the newest one. Raises no exception for any text.

    `escaped`: as of `mbox.parse_mails`.
    """
    findings = _Findings()
    parts = mbox.split(text)
    if (problem := mbox.size_problem(parts)) is not None:
        findings.error(SeriesDefect.TOO_LARGE, problem)
        return InspectedSeries(_empty_inspection(len(parts), findings))
    if not parts:
        detail = f"the mbox contains no mail: give the output of {_FORMAT_PATCH}, or a thread saved by `b4 mbox`"
        findings.error(SeriesDefect.NOT_AN_MBOX, detail)
        return InspectedSeries(_empty_inspection(0, findings))
    mails = with_roles(_without_duplicates(mbox.parse_mails(text, escaped=escaped)))
    for mail in mails:
        if not mail.readable:
            detail = f"{_quoted(mail.subject)} has more than {mbox.PART_LIMIT} MIME parts; send patches as plain text"
            findings.error(SeriesDefect.UNREADABLE_MAIL, detail)
    patches = _without_comments([mail for mail in mails if mail.is_patch], mails, findings)
    patches = patches or [patch for mail in mails if (patch := mail.patch_in_reply)]
    if not patches:
        replies = sum(mail.has_patch for mail in mails)
        hint = (
            " (a diff in a reply counts only below scissors: `-- >8 --`)"
            if replies
            else " (a cover letter alone is not enough)"
        )
        detail = f"none of the mbox's {_count(len(mails), 'mail')} contains a diff{hint}"
        findings.error(SeriesDefect.NO_PATCH, detail)
        return InspectedSeries(_empty_inspection(len(parts), findings))
    known = {mail.version for mail in patches}
    used = version if version in known else _newest_version(patches)
    chosen = _select_patches(patches, used, mails, findings)
    for mail in chosen:
        if problem := mail.problem or _invisible_character(mail.patch):
            findings.error(SeriesDefect.UNREADABLE_MAIL, f"{_quoted(mail.title)} cannot be applied: {problem}")
    if len(chosen) > mbox.PATCH_LIMIT:
        detail = f"the series has {len(chosen)} patches; at most {mbox.PATCH_LIMIT} are allowed: submit it as a branch"
        findings.error(SeriesDefect.TOO_LARGE, detail)
        chosen = chosen[: mbox.PATCH_LIMIT]
    cover = _cover_letter(mails, chosen, used)
    taken = {id(mail) for mail in (cover, *chosen)}
    others = [mail for mail in mails if id(mail) not in taken]
    return InspectedSeries(
        _inspection(chosen, cover, used, findings, received=len(parts)), ChosenMails(used, chosen, cover, others)
    )


def _without_duplicates(mails: Sequence[Mail]) -> list[Mail]:
    return list({mail.effective_message_id: mail for mail in reversed(mails)}.values())[::-1]


# --- selection of the patches -----------------------------------------------------------------------------------


def _without_comments(patches: list[Mail], mails: Sequence[Mail], findings: _Findings) -> list[Mail]:
    """Return the patches without diffs in mails that answer others and whose subjects name no patch.

    Such are proposals of reviewers who have changed the subject, and the mails that tell that a patch is in a tree.
    """
    by_id = {mail.effective_message_id: mail for mail in mails}
    named = [
        mail
        for mail in patches
        if mail.counter or mail.parsed.names_patch or mail.parsed.version or parent_of(mail, by_id) is None
    ]
    if named and len(named) < len(patches):
        names = _list_names([_quoted(mail.title) for mail in patches if mail not in named])
        detail = f"left out, because it answers another mail and its subject names no patch: {names}"
        findings.warning(SeriesDefect.SEVERAL_SERIES, detail)
    return named or patches


def _newest_version(patches: Sequence[Mail]) -> int:
    """Return the version whose first patch was sent last; without dates the highest version."""
    first_sent: dict[int, datetime] = {}
    for mail in patches:
        at = _date(mail) or datetime.min.replace(tzinfo=UTC)
        first_sent[mail.version] = min(first_sent.get(mail.version, at), at)
    return max(first_sent, key=lambda version: (first_sent[version], version))


def _select_patches(patches: Sequence[Mail], version: int, mails: Sequence[Mail], findings: _Findings) -> list[Mail]:
    """Return the patches of a version, ordered by counter and, if only a part was re-sent, completed from the previous
    version."""
    others = sorted({mail.version for mail in patches} - {version})
    if others:
        names = ", ".join(f"v{other}" for other in others)
        findings.warning(SeriesDefect.OLDER_VERSION, f"the mbox also contains {names}; v{version} is used")
    chosen = _without_superseded([mail for mail in patches if mail.version == version])
    chosen = _without_sent_again(chosen, mails, findings)
    _check_one_series(chosen, findings)
    missing = mbox.missing(chosen)
    if missing and _is_partial_resend(chosen, version, mails):
        previous = {mail.counter: mail for mail in patches if mail.version == version - 1}
        total = max(mail.counter[1] for mail in chosen if mail.counter)
        added = [previous[number, total] for number in range(1, total + 1) if (number, total) in previous]
        known = {mail.counter for mail in chosen}
        chosen += [mail for mail in added if mail.counter not in known]
        missing = mbox.missing(chosen)
        if not missing:
            detail = f"v{version} re-sends only some patches; the other patches are taken from v{version - 1}"
            findings.warning(SeriesDefect.MERGED_VERSIONS, detail)
    if missing:
        verb = "is missing; add it" if len(missing) == 1 else "are missing; add them"
        findings.error(SeriesDefect.MISSING_PATCH, f"patch {_list_names(missing)} {verb} to the mbox")
    return sorted(chosen, key=lambda mail: mail.counter[0] if mail.counter else 1)


def _without_superseded(chosen: Sequence[Mail]) -> list[Mail]:
    """Return the patches without those that were sent again, as `[PATCH v2.1 2/3]`."""
    last = {mail.counter: mail.parsed.reroll for mail in sorted(chosen, key=lambda mail: mail.parsed.reroll)}
    return [mail for mail in chosen if mail.counter is None or mail.parsed.reroll == last[mail.counter]]


def _without_sent_again(chosen: Sequence[Mail], mails: Sequence[Mail], findings: _Findings) -> list[Mail]:
    """Return the patches; of one that was sent again (in reply to itself, or as a single patch), only the last."""
    ordered = sorted(chosen, key=lambda mail: _date(mail) or datetime.min.replace(tzinfo=UTC))
    found = find_sent_again(ordered, {mail.effective_message_id: mail for mail in mails})
    last = {_as_single_patch(mail): mail for mail in ordered if mail.counter is None}
    replaced = found.replaced + [mail for mail in ordered if last.get(_as_single_patch(mail), mail) is not mail]
    if replaced:
        names = _list_names([_quoted(mail.title) for mail in replaced])
        findings.warning(SeriesDefect.OLDER_VERSION, f"sent again, so that the last is used: {names}")
    left = {id(mail) for mail in (*replaced, *found.replies)}
    return [mail for mail in chosen if id(mail) not in left]


def _as_single_patch(mail: Mail) -> object:
    """Return a key that is equal for a patch without a number and the same patch sent again."""
    return mail.counter, normalised_subject(mail.title), address_of(mail), mail.parsed.words - {"resend"}


def _cover_letter(mails: Sequence[Mail], chosen: Sequence[Mail], version: int) -> Mail | None:
    """Return the cover letter that the patches answer, else the last one of their version and total that lists no other
    patches: `git format-patch` writes no replies.

    A new version in reply to the cover letter of the one before may have none of its own; it then has that one.
    """
    by_id = {mail.effective_message_id: mail for mail in mails}
    answered = [mail for patch in chosen for mail in ancestors_of(patch, by_id) if mail.is_cover]
    totals = {mail.counter[1] if mail.counter else 1 for mail in chosen}
    own = [
        mail
        for mail in reversed(mails)
        if mail.is_cover and mail.version == version and mail.counter is not None and mail.counter[1] in totals
        if not lists_others(mail, chosen)
    ]
    return next((mail for mail in answered if mail.version == version), next(iter([*own, *answered]), None))


def _invisible_character(text: str) -> str:
    """Return what is wrong with a text with invisible characters, by the rule of b4; empty if nothing is."""
    if text.isascii():
        return ""
    for line in text.split("\n"):
        kinds = {} if line.isascii() else {unicodedata.category(each): each for each in line.rstrip("\r")}
        if "Cf" in kinds and "Lo" not in kinds:
            name = unicodedata.name(kinds["Cf"], f"U+{ord(kinds['Cf']):04X}")
            return f"it has the invisible character {name}; remove it"
    return ""


def _check_one_series(chosen: Sequence[Mail], findings: _Findings) -> None:
    """Report a problem if the patches belong to more than one series."""
    totals = {mail.counter[1] for mail in chosen if mail.counter}
    positions = Counter(mail.counter[0] if mail.counter else 1 for mail in chosen)
    uncounted = [mail for mail in chosen if mail.counter is None]
    if len(totals) > 1:
        sizes = " and one of ".join(str(total) for total in sorted(totals))
        detail = f"one series of {sizes} patches; keep only one of them"
    elif len(uncounted) > 1 or (uncounted and totals):
        names = _list_names([_quoted(mail.title) for mail in uncounted])
        detail = f"of {len(chosen)} patches, {names} have no number: number them with `git format-patch -n`"
        detail += ", or keep only one series"
    elif beyond := [mail for mail in chosen if mail.counter and mail.counter[0] > mail.counter[1]]:
        detail = f"{_quoted(beyond[0].subject)} is numbered behind the last patch; keep only one series"
    elif duplicates := sorted(position for position, times in positions.items() if times > 1):
        number = duplicates[0]
        names = _list_names([_quoted(mail.title) for mail in chosen if mail.counter and mail.counter[0] == number])
        detail = f"there is more than one patch {number}: {names}; keep only one of them"
    else:
        return
    findings.error(SeriesDefect.SEVERAL_SERIES, f"the mbox contains more than one series: {detail}")


def _is_partial_resend(chosen: Sequence[Mail], version: int, mails: Sequence[Mail]) -> bool:
    """Return True if every patch replies to the same patch of an earlier version; b4 then completes the series."""
    if version < 2:
        return False
    by_id = {mail.message_id: mail for mail in mails if mail.message_id}
    for mail in chosen:
        seen: set[str] = set()
        parent = mail.in_reply_to
        while parent is not None and parent not in seen and parent in by_id and by_id[parent].counter != mail.counter:
            seen.add(parent)
            parent = by_id[parent].in_reply_to
        if parent is None or parent in seen or parent not in by_id:
            return False
    return True


# --- the result -------------------------------------------------------------------------------------------------


def _inspection(
    chosen: list[Mail], cover: Mail | None, version: int, findings: _Findings, received: int
) -> SeriesInspection:
    texts = texts_of(ChosenMails(version, chosen, cover))
    base = mbox.base_commit(texts)
    if base is None:
        detail = f"the series has no base-commit, so it is applied to the tree's head; {_FORMAT_PATCH} adds it"
        findings.warning(SeriesDefect.NO_BASE_COMMIT, detail)
    patches = [_patch(position, mail) for position, mail in enumerate(chosen, 1)]
    binary = [change.path for patch in patches for change in patch.files if change.binary]
    if binary:
        detail = f"the size of binary changes is not counted: {_list_names(binary)}"
        findings.warning(SeriesDefect.BINARY_PATCH, detail)
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


def texts_of(chosen: ChosenMails) -> list[str]:
    """Return the texts that may name base-commit and change-id of a series, those of its own version first."""
    mails = [*([chosen.cover] if chosen.cover else []), *chosen.patches]
    return [mail.body for mail in sorted(mails, key=lambda mail: mail.version != chosen.version)]


def _empty_inspection(received: int, findings: _Findings) -> SeriesInspection:
    return SeriesInspection(
        subject="", version=1, series_key="", change_id=None, authors=[], cover=None, patches=[], base_commit=None,
        files=0, insertions=0, deletions=0, mails=received, problems=findings.problems, usable=False,
    )  # fmt: skip


def _patch(position: int, mail: Mail) -> SeriesPatch:
    text = mail.in_body.text
    files = changed_files(text)
    start = _DIFF_START.search(text)
    message = text[: start.start()] if start else text
    return SeriesPatch(
        position=position,
        subject=mail.title,
        author=mail.patch_author,
        date=_date(mail),
        message_id=mail.message_id,
        message=message.strip()[:MESSAGE_LIMIT],
        files=files,
        insertions=sum(change.insertions for change in files),
        deletions=sum(change.deletions for change in files),
    )


def _date(mail: Mail) -> datetime | None:
    """Return the time in the mail's Date header, in UTC; None if it is missing or invalid."""
    try:
        found = email.utils.parsedate_to_datetime(mail.date)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

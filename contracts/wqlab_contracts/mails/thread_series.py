"""Find the revisions of a series in the mails of a thread, and choose the mails of one revision.

Pure. The mails are hostile, so a worker runs this in the sandbox only (`parse_thread`).

A revision is a group of mails: a cover letter and patches of one version and one total, in one part of the thread. What
makes two groups revisions of one series is their change-id, or else title and author, or a reply of one to the other by
the same author. A thread may also hold other series, alternatives in replies, and patches that were sent again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from ..messages import normalised_subject
from . import mbox
from .mail_threads import address_of, ancestors_of, find_sent_again, with_roles
from .mbox import Mail
from .revision_mails import NO_DATE, Group, Selection, date_of, position, trailers_of
from .split_series import LONGEST, find_unclear, parts_of, with_parts

MAIL_LIMIT = 10_000
"""Maximum number of mails that are read of a thread and of the search for revisions together."""
REPLY_LIMIT = 1_000
"""Maximum number of replies that are taken."""
_CLOCK_ERROR = timedelta(days=7)
"""How much earlier than a lower revision a higher one may have been sent, by the clocks of the senders."""
_QUERY_DAYS = 400
"""Days before and after the mail in which revisions of a series without change-id are searched."""
_QUERY_TEXT = re.compile(r"[^\w .:/_+-]+")
_QUERY_ADDRESS = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,200}")
_ADVICE_MBOX = "Save the mails of the series you mean with `b4 am` or `b4 mbox`, and submit them as an mbox."


class ThreadProblem(Exception):
    """The thread has no series to take. The text says why; `advice` says what to do."""

    def __init__(self, summary: str, advice: str = "") -> None:
        super().__init__(summary)
        self.advice = advice


class Thread:
    """Mails by id and by parent; the mails of a search may belong to several threads."""

    def __init__(self, mails: Iterable[Mail]) -> None:
        unique: dict[str, Mail] = {}
        for mail in mails:
            unique.setdefault(mail.effective_message_id, mail)
        self.mails = {mail.effective_message_id: mail for mail in with_roles(list(unique.values()))}
        self.groups = self._groups()

    def ancestors(self, mail: Mail) -> Iterator[Mail]:
        """Yield parent, grandparent and so on; ends at a loop."""
        return ancestors_of(mail, self.mails)

    def _groups(self) -> list[Group]:
        groups: dict[tuple[str, int, int | None], Group] = {}
        for mail in self.mails.values():
            if not is_head(mail):
                continue
            root = mail
            for ancestor in self.ancestors(mail):
                if not is_head(ancestor) or ancestor.version != mail.version or mail.counter is None:
                    break
                root = ancestor
            total = mail.counter[1] if mail.counter else None
            # A patch on top of a series is in a group of its own, so it keeps the version that its subject names.
            version = mail.version if mail.counter else mail.parsed.version or mail.version
            key = (root.effective_message_id, version, total)
            group = groups.setdefault(key, Group(root, version, total))
            (group.covers if mail.is_cover else group.patches).append(mail)
        return with_parts(self._with_cover_letters(self._joined(list(groups.values()))))

    def _joined(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups; incomplete ones without cover letter are one if they answer the same mail."""
        joined: dict[tuple[str, int, int | None], Group] = {}
        kept: list[Group] = []
        for group in groups:
            parent = group.root.in_reply_to or next(reversed(group.root.references), None)
            if group.covers or not group.missing or parent is None:
                kept.append(group)
                continue
            key = (parent, group.version, group.total)
            if key in joined:
                joined[key].patches += group.patches
            else:
                joined[key] = group
                kept.append(group)
        return kept

    def _with_cover_letters(self, groups: list[Group]) -> list[Group]:
        """Return the groups; a complete one without cover letter that answers one of its author has that one."""
        for group in groups:
            if group.covers or group.total is None or group.missing:
                continue
            answered = next(self.ancestors(group.root), None)
            if answered is not None and answered.is_cover and address_of(answered) == address_of(group.root):
                group.covers.append(answered)
        return groups

    def group_of(self, message_id: str) -> Group:
        """Return the group of a mail; for a reply, that of the patch below its scissors or of what it answers.

        Raises ThreadProblem.
        """
        mail = self.mails.get(message_id)
        if mail is None:
            raise ThreadProblem(f"the archive's answer does not contain {message_id}")
        if (patch := mail.patch_in_reply) is not None:
            return Group(patch, patch.version, None, patches=[patch])
        is_reply = mail.is_reply or mail.begins_with_quotation or not mail.parsed.names_patch
        for each in (mail, *(self.ancestors(mail) if is_reply else ())):
            for group in self.groups:
                if each in group.covers or each in group.patches:
                    return group
        raise ThreadProblem(
            f"neither {message_id} nor a mail that it answers has a patch"
            if is_reply
            else f"{message_id} has no diff, and is neither a cover letter nor a reply",
            "Give the Message-ID of a patch, of a cover letter, or of a reply to one.",
        )

    def series_of(self, target: Group) -> list[Group]:
        """Return all groups that are revisions of the target's series, the target included."""
        found, left = [target], [group for group in self.groups if group is not target]
        for known in found:  # grows while it is read
            same = [group for group in left if self._same_series(known, group)]
            left = [group for group in left if group not in same]
            found += same
        return [
            group
            for group in found
            if group.version <= target.version or group.sent_at >= target.sent_at - _CLOCK_ERROR
        ]

    def _same_series(self, one: Group, other: Group) -> bool:
        if one.change_id is not None and other.change_id is not None:
            return one.change_id == other.change_id
        if one.address != other.address:
            return False
        if one.title == other.title:
            return True
        if one.version == other.version or not (self._answers(one, other) or self._answers(other, one)):
            return False
        return _may_be_versions(one, other)

    def _answers(self, one: Group, other: Group) -> bool:
        """Return True if the root of `one` is a reply, direct or not, to a mail of `other`."""
        heads = {mail.effective_message_id for mail in (*other.covers, *other.patches)}
        return any(ancestor.effective_message_id in heads for ancestor in self.ancestors(one.root))

    def patches_on_top(self, group: Group) -> list[Mail]:
        """Return the patches without a number that answer mails of a group, and are none of them."""
        heads = {mail.effective_message_id for mail in group.heads}
        return [
            mail
            for mail in self.mails.values()
            if mail.is_patch and mail.counter is None and mail.effective_message_id not in heads
            if any(ancestor.effective_message_id in heads for ancestor in self.ancestors(mail))
        ]

    def replies_to(self, heads: Sequence[Mail]) -> list[Mail]:
        """Return the replies with trailers to the given mails, and the replies between them and these mails."""
        ids = {mail.effective_message_id for mail in heads}
        found: dict[str, Mail] = {}
        for mail in self.mails.values():
            if is_head(mail) or not mail.is_reply or not trailers_of(mail):
                continue
            chain = [mail]
            for ancestor in self.ancestors(mail):
                if ancestor.effective_message_id in ids:
                    found.update({each.effective_message_id: each for each in reversed(chain)})
                    break
                if is_head(ancestor):
                    break
                chain.append(ancestor)
        return list(found.values())


def is_head(mail: Mail) -> bool:
    """Return True for a cover letter or a patch that is not a reply."""
    return mail.is_cover or mail.is_patch


def _may_be_versions(one: Group, other: Group) -> bool:
    """Return False for a patch on top of a series. Cover letters, equal numbers or titles make versions."""
    if one.total is None or other.total is None:
        return one.total == other.total or (len(one.patches) == len(other.patches) == 1)
    titles = [{normalised_subject(mail.title) for mail in group.patches} for group in (one, other)]
    return bool(one.covers and other.covers) or one.total == other.total or bool(titles[0] & titles[1])


# --- the query for other revisions ------------------------------------------------------------------------------


def revision_query(thread: Thread, message_id: str) -> str:
    """Return the search query (public-inbox) for all revisions of the series of a mail. Raises ThreadProblem."""
    target = thread.group_of(message_id)
    title = " ".join(_QUERY_TEXT.sub(" ", target.first.title).split())[:200]
    parts = [f'nq:"change-id: {target.change_id}"'] if target.change_id else []
    if title and _QUERY_ADDRESS.fullmatch(target.address):
        query = f's:"{title}" AND f:{target.address}'
        if target.sent_at != NO_DATE:
            days = timedelta(days=_QUERY_DAYS)
            query += f" AND d:{target.sent_at - days:%Y%m%d}..{target.sent_at + days:%Y%m%d}"
        parts.append(f"({query})")
        if target.sent_at != NO_DATE and parts_of([target]):
            begin, end = target.sent_at - LONGEST, target.sent_at + LONGEST
            parts.append(f"(f:{target.address} AND dt:{begin:%Y%m%d%H%M%S}..{end:%Y%m%d%H%M%S})")
    return " OR ".join(parts)


# --- the choice of one revision ---------------------------------------------------------------------------------


def select(thread: Thread, message_id: str, revision: int | None) -> Selection:
    """Choose the mails of a revision of the series of a mail; of the highest one if `revision` is None.

    Raises ThreadProblem if there is no such revision, if it is incomplete, or if two series cannot be told apart.
    """
    target = thread.group_of(message_id)
    series = thread.series_of(target)
    revisions = sorted({group.version for group in series})
    wanted = revisions[-1] if revision is None else revision
    if wanted not in revisions:
        raise ThreadProblem(
            f"the series has no revision {wanted}; the archive has {_names(revisions)}",
            "Choose one of these revisions, or leave the revision out to take the latest.",
        )
    notes: list[str] = []
    group = _choose(thread, target, series, wanted, notes, explicit=revision is not None)
    for mail in group.heads:
        if not mail.readable:
            raise ThreadProblem(f"{mail.subject[:100]!r} has more than {mbox.PART_LIMIT} MIME parts", _ADVICE_MBOX)
        if mail.problem and not mail.is_cover:
            raise ThreadProblem(f"{mail.subject[:100]!r} cannot be applied: {mail.problem}")
    if len(group.patches) > mbox.PATCH_LIMIT:
        raise ThreadProblem(
            f"the series has {len(group.patches)} patches; at most {mbox.PATCH_LIMIT} are allowed",
            "Submit it as a branch.",
        )
    if left := thread.patches_on_top(group):
        notes.append(f"patches without a number that answer the series are not taken: {_titles(left)}")
    replies = [mail for mail in thread.replies_to(group.heads) if mail.readable and _is_plain(mail)]
    if len(replies) > REPLY_LIMIT:
        notes.append(f"of {len(replies)} replies with trailers, the first {REPLY_LIMIT} are taken")
    return Selection(
        revision=wanted,
        revisions=revisions,
        subject=group.first.title,
        author=group.first.author,
        series_key=group.change_id or normalised_subject(group.first.title),
        covers=group.covers[:1],
        patches=sorted(group.patches, key=position),
        superseded=group.superseded,
        replies=replies[:REPLY_LIMIT],
        notes=notes,
    )


def _choose(
    thread: Thread, target: Group, series: Sequence[Group], version: int, notes: list[str], *, explicit: bool
) -> Group:
    """Return the complete group of a version; the target itself if the user named both it and its version."""
    groups = [group for group in series if group.version == version]
    complete = sorted((group for group in groups if not group.missing and group.patches), key=lambda each: each.sent_at)
    if complete:
        chosen = target if explicit and target in complete else complete[-1]
        if len(complete) > 1:
            notes.append(f"v{version} was sent {len(complete)} times; {_when(chosen)} is taken")
        return _without_duplicates(_without_sent_again(thread, chosen, notes), notes)
    completed = _complete_from_previous(thread, target, series, version, notes)
    if completed is not None:
        return completed
    best = max(groups, key=lambda each: len(each.patches))
    others = sorted({group.version for group in series if not group.missing and group.patches})
    advice = "Submit it again when the archive has the whole series"
    advice += f", or choose a revision that is complete: {_names(others)}." if others else "."
    shown = ", ".join(best.missing[:10]) + (f" and {len(best.missing) - 10} more" if len(best.missing) > 10 else "")
    verb = "is" if len(best.missing) == 1 else "are"
    summary = f"v{version} of the series is incomplete: patch {shown} {verb} missing"
    if unclear := next((parts for parts in find_unclear(parts_of(thread.groups)) if best in parts), None):
        others_there = _titles([group.first for group in unclear if group is not best])
        summary += f", and these mails of the author cannot be told from the rest of it: {others_there}"
        advice = _ADVICE_MBOX
    raise ThreadProblem(summary, advice)


def _complete_from_previous(
    thread: Thread, target: Group, series: Sequence[Group], version: int, notes: list[str]
) -> Group | None:
    """Return patches that were sent again as replies to their predecessors, completed by the version before.

    None if they are not of this kind.
    """
    groups = [group for group in series if group.version == version]
    patches = [mail for group in groups for mail in group.patches]
    before = max((group.version for group in series if group.version < version), default=None)
    if before is None or not patches or any(group.covers for group in groups):
        return None
    for mail in patches:
        if not any(
            is_head(ancestor) and ancestor.version < version and ancestor.counter == mail.counter
            for ancestor in thread.ancestors(mail)
        ):
            return None
    earlier = _choose(thread, target, series, before, notes, explicit=False)
    sent_again = {position(mail): mail for mail in sorted(patches, key=lambda mail: date_of(mail) or NO_DATE)}
    notes.append(f"v{version} re-sends only some patches; the other patches are taken from v{before}")
    kept = [mail for mail in earlier.patches if position(mail) not in sent_again]
    replaced = [mail for mail in earlier.patches if position(mail) in sent_again]
    return Group(
        earlier.root,
        version,
        earlier.total,
        earlier.covers,
        [*kept, *sent_again.values()],
        earlier.superseded + replaced,
    )


def _without_sent_again(thread: Thread, group: Group, notes: list[str]) -> Group:
    """Return the group with the last of each patch that was sent again, and without patches on top of others."""
    ordered = sorted(group.patches, key=lambda mail: date_of(mail) or NO_DATE)
    found = find_sent_again(ordered, thread.mails)
    if found.replaced:
        notes.append(f"sent again, so that the last is taken: {_titles(found.replaced)}")
    if found.on_top:
        notes.append(f"patches on top of others of the series are not taken: {_titles(found.on_top)}")
    superseded = [*group.superseded, *found.replaced]
    return Group(group.root, group.version, group.total, group.covers, found.kept, superseded)


def _titles(mails: Sequence[Mail]) -> str:
    more = f" and {len(mails) - 3} more" if len(mails) > 3 else ""
    return ", ".join(repr(mail.title[:100]) for mail in mails[:3]) + more


def _without_duplicates(group: Group, notes: list[str]) -> Group:
    """Return the group with one patch for each number. Raises ThreadProblem if two series share a cover letter."""
    by_position: dict[int, list[Mail]] = {}
    last = {position(mail): mail.parsed.reroll for mail in sorted(group.patches, key=lambda mail: mail.parsed.reroll)}
    beyond = [mail for mail in group.patches if group.total is not None and position(mail) > group.total]
    if beyond:
        notes.append(f"left out, because it is numbered behind the last patch: {beyond[0].subject[:100]!r}")
    for mail in group.patches:
        if mail in beyond or mail.parsed.reroll != last[position(mail)]:
            continue
        by_position.setdefault(position(mail), []).append(mail)
    if all(len(mails) == 1 for mails in by_position.values()):
        taken = [mail for mails in by_position.values() for mail in mails]
        left = [mail for mail in group.patches if mail not in taken and mail not in beyond]
        return Group(group.root, group.version, group.total, group.covers, taken, [*group.superseded, *left])
    sender = address_of(group.covers[0]) if group.covers else address_of(group.root)
    kept = []
    for number, mails in sorted(by_position.items()):
        own = [mail for mail in mails if address_of(mail) == sender]
        chosen = mails if len(mails) == 1 else own
        if len(chosen) != 1:
            names = " and ".join(repr(mail.title[:80]) for mail in mails[:3])
            raise ThreadProblem(
                f"the thread has more than one series under one cover letter: patch {number}/{group.total} is {names}",
                _ADVICE_MBOX,
            )
        kept += chosen
    notes.append("patches of other senders with the same numbers are left out")
    return Group(group.root, group.version, group.total, group.covers, kept)


def _is_plain(mail: Mail) -> bool:
    """Return True if an mbox with this mail is accepted. Other replies are left out, or the series would fail."""
    return mbox.header_problem(mail.text) is None


def _names(versions: Sequence[int]) -> str:
    shown = [f"v{version}" for version in versions[:20]]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _when(group: Group) -> str:
    return f"that of {group.sent_at:%Y-%m-%d %H:%M}" if group.sent_at != NO_DATE else "one of them"

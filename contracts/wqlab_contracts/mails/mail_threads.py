"""Find out what a mail is in its thread: many cover letters have no number, and many patches no version. Pure.

A cover letter without `0/N` is the mail that the patches of a series answer, by the same author or named `[PATCHSET]`.
That of a single patch may have the patch's number or, like the patch, none.
Patches without a version have that of their cover letter, or of the patch that they answer; a cover letter without a
version has that of its patches. A version may be the last word of its title: `convert to folios v3`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..mail import address_of as mail_address
from ..messages import normalised_subject
from .mbox import Mail, Role
from .subjects import split_version

DEPTH_LIMIT = 200
"""Maximum number of mails that are followed upwards from each mail."""


def parent_of(mail: Mail, mails: Mapping[str, Mail]) -> Mail | None:
    """Return the nearest known mail that a mail answers, by In-Reply-To or References."""
    for message_id in (mail.in_reply_to, *reversed(mail.references)):
        if message_id is not None and message_id in mails and message_id != mail.message_id:
            return mails[message_id]
    return None


def ancestors_of(mail: Mail, mails: Mapping[str, Mail]) -> Iterator[Mail]:
    """Yield parent, grandparent and so on, at most DEPTH_LIMIT mails; ends at a loop."""
    seen = {mail.effective_message_id}
    found = parent_of(mail, mails)
    while found is not None and found.effective_message_id not in seen and len(seen) <= DEPTH_LIMIT:
        yield found
        seen.add(found.effective_message_id)
        found = parent_of(found, mails)


def address_of(mail: Mail) -> str:
    """Return the address of the sender in lower case; without one the whole text of From."""
    return (mail_address(mail.author) or mail.author).casefold()


@dataclass(frozen=True)
class SentAgain:
    """Patches of one version, of which some answer or repeat the patch of the same number and author."""

    kept: list[Mail]
    replaced: list[Mail] = field(default_factory=list)
    """Patches that were sent again with their title, as `[PATCH v5 update 2/3]`, or as `[PATCH v5.1 2/3]`."""
    on_top: list[Mail] = field(default_factory=list)
    """Patches with another title, as `[PATCH v5 2/3 fix]`: they change a patch, and are none of the series."""
    replies: list[Mail] = field(default_factory=list)
    """Replies of programs that leave out `Re:`, with a diff that is not the patch."""


def find_sent_again(patches: Sequence[Mail], mails: Mapping[str, Mail]) -> SentAgain:
    """Return which patches were sent again, and which are on top of another.

    `patches` are in the order in which they were sent. Patches of one number and author that have other titles and do
    not answer each other are kept.
    """
    by_counter: dict[tuple[int, int], list[Mail]] = defaultdict(list)
    for mail in patches:
        if mail.counter is not None:
            by_counter[mail.counter].append(mail)
    replaced: list[Mail] = []
    on_top: list[Mail] = []
    replies: list[Mail] = []
    for same in by_counter.values():
        ids = {mail.effective_message_id for mail in same}
        answering = [
            mail
            for mail in same
            if any(
                each.effective_message_id in ids and address_of(each) == address_of(mail)
                for each in ancestors_of(mail, mails)
            )
            or _repeats(mail, same[0], mails)
        ]
        first = [mail for mail in same if mail not in answering]
        if not answering or len(first) != 1:
            continue
        title = normalised_subject(first[0].title)
        again = [mail for mail in answering if mail.parsed.reroll or normalised_subject(mail.title) == title]
        on_top += [mail for mail in answering if mail not in again]
        replies += [mail for mail in again if mail.begins_with_quotation]
        replaced += [*first, *(mail for mail in again if mail not in replies)][:-1]
    left = {id(mail) for mail in (*replaced, *on_top, *replies)}
    return SentAgain([mail for mail in patches if id(mail) not in left], replaced, on_top, replies)


def _repeats(mail: Mail, first: Mail, mails: Mapping[str, Mail]) -> bool:
    """Return True if a mail has the title and author of another one, and answers the same mail."""
    parent = parent_of(mail, mails)
    return (
        mail is not first
        and parent is not None
        and parent is parent_of(first, mails)
        and (normalised_subject(mail.title), address_of(mail)) == (normalised_subject(first.title), address_of(first))
    )


def with_roles(mails: Sequence[Mail]) -> list[Mail]:
    """Return the mails, with a role where the thread says more than the subject. Their order stays."""
    by_id: dict[str, Mail] = {}
    for mail in mails:
        by_id.setdefault(mail.effective_message_id, mail)
    covers: dict[str, list[Mail]] = {}
    roles: dict[str, Role] = {}
    for mail in by_id.values():
        if not mail.is_patch:
            continue
        if mail.counter is None:
            if (version := _version_below(mail, by_id)) is not None:
                roles[mail.effective_message_id] = Role(version, None)
            elif (answered := parent_of(mail, by_id)) is not None and _is_cover_of_single(answered, mail):
                roles[mail.effective_message_id] = Role(mail.version, (1, 1))
                covers.setdefault(answered.effective_message_id, []).append(mail)
            continue
        version = mail.parsed.version
        for ancestor in ancestors_of(mail, by_id):
            if ancestor.is_reply:
                break
            if not ancestor.has_patch or ancestor.is_cover or ancestor.parsed.names_set:
                if _is_cover_of(ancestor, mail):
                    covers.setdefault(ancestor.effective_message_id, []).append(mail)
                    version = version or _version_of_cover(ancestor)[0]
                break
            if ancestor.counter is None or ancestor.counter[1] != mail.counter[1]:
                break
            version = version or ancestor.parsed.version
        roles[mail.effective_message_id] = Role(version or 1, mail.counter)
    for message_id, patches in covers.items():
        roles[message_id] = _role_of_cover(by_id[message_id], [(roles[each.effective_message_id]) for each in patches])
    return [
        replace(mail, role=roles[mail.effective_message_id]) if mail.effective_message_id in roles else mail
        for mail in mails
    ]


def _version_below(mail: Mail, by_id: Mapping[str, Mail]) -> int | None:
    """Return the version of the series that a patch without a number is on top of; None if it is not on top of one.

    It is the next version of a series if it has the title of the cover letter, or if the series has one patch.
    """
    for ancestor in ancestors_of(mail, by_id):
        if ancestor.is_reply:
            continue
        if (ancestor.is_patch or ancestor.is_cover) and ancestor.counter is not None and ancestor.counter[1] > 1:
            is_next = ancestor.is_cover and ancestor.title == mail.title
            return None if is_next or mail.parsed.version is None else ancestor.version
        return None
    return None


def _is_cover_of(mail: Mail, patch: Mail) -> bool:
    """Return True if a mail that is no patch, and which a patch answers, is its cover letter."""
    subject = mail.parsed
    if subject.names_set:
        return True
    if mail.is_cover:
        return subject.counter is not None and patch.counter is not None and subject.counter[1] == patch.counter[1]
    return subject.counter in (None, (1, 1)) and address_of(mail) == address_of(patch)


def _is_cover_of_single(mail: Mail, patch: Mail) -> bool:
    """Return True if a mail without a diff is the cover letter of a single patch; b4 leaves out the numbers of both."""
    return (
        not (mail.has_patch or mail.is_reply or mail.begins_with_quotation)
        and mail.parsed.names_patch
        and mail.counter is None
        and (mail.version, address_of(mail)) == (patch.version, address_of(patch))
    )


def _version_of_cover(cover: Mail) -> tuple[int | None, str | None]:
    """Return the version that a cover letter names, and the title without it if the title ends with it."""
    if cover.parsed.version is not None or cover.parsed.counter is not None:
        return cover.parsed.version, None
    title, version = split_version(cover.title)
    return version, title if version is not None else None


def _role_of_cover(cover: Mail, patches: Sequence[Role]) -> Role:
    versions = {patch.version for patch in patches}
    named, title = _version_of_cover(cover)
    if title is not None and named not in versions:
        named, title = None, None  # the patches have another, so the title's is a word of it
    version = named or (versions.pop() if len(versions) == 1 else 1)
    totals = [patch.counter[1] for patch in patches if patch.counter and patch.version == version]
    total = (totals or [patch.counter[1] for patch in patches if patch.counter])[0]
    return Role(version, cover.counter if cover.is_cover else (0, total), title)

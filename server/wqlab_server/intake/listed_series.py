"""Put the mails of a list together to series. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.mail import address_of
from wqlab_contracts.mails.mail_threads import with_roles
from wqlab_contracts.mails.mbox import Mail
from wqlab_contracts.mails.split_series import Part, find_whole
from wqlab_contracts.mails.subjects import format_subject, parse_subject
from wqlab_contracts.messages.list_mails import ListMail


@dataclass
class ListedSeries:
    """Cover letter and patches of one revision, as far as they have arrived."""

    root: str
    """Message-ID of the cover letter, or of a patch without one; it identifies the revision."""
    version: int
    total: int
    cover: ListMail | None = None
    patches: dict[int, ListMail] = field(default_factory=dict)
    """Number -> patch."""

    @property
    def mails(self) -> list[ListMail]:
        """Return the cover letter, if any, and the patches that have arrived, in order."""
        ordered = [self.patches[number] for number in sorted(self.patches)]
        return [self.cover, *ordered] if self.cover else ordered

    @property
    def is_complete(self) -> bool:
        """Return True if all patches have arrived."""
        return self.total > 0 and all(number in self.patches for number in range(1, self.total + 1))

    @property
    def awaits_cover_letter(self) -> bool:
        """Return True if the patches reply to a mail that has not arrived; it may be the cover letter."""
        return self.cover is None and all(patch.message_id != self.root for patch in self.patches.values())

    @property
    def missing(self) -> list[int]:
        return [number for number in range(1, self.total + 1) if number not in self.patches]

    @property
    def subject(self) -> str:
        return self.mails[0].subject

    @property
    def author(self) -> str:
        return self.mails[0].author

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(path for patch in self.patches.values() for path in patch.paths))

    @property
    def touched(self) -> list[TouchedFile]:
        """Return the files that its patches change, each once, with the symbols that they change in them."""
        found: dict[str, dict[str, None]] = {path: {} for path in self.paths}
        for patch in self.patches.values():
            for path, symbols in patch.symbols.items():
                found.setdefault(path, {}).update(dict.fromkeys(symbols))
        return [TouchedFile(path=path, symbols=list(symbols)) for path, symbols in found.items()]

    @property
    def asks(self) -> bool:
        """Return True if the cover letter asks to be measured; a single patch is its own cover letter."""
        asking = self.cover or (self.patches.get(1) if self.total == 1 else None)
        return asking is not None and asking.asks

    @property
    def archived_at(self) -> datetime:
        """Return the time at which the archive received the last mail that has arrived."""
        return max(mail.archived_at for mail in self.mails)

    def add(self, mail: ListMail) -> None:
        """Add a cover letter or patch. Of two patches with one number that of the cover letter's author, else the first
        one, stays: anybody may reply to a cover letter."""
        if mail.number == 0:
            self.cover = self.cover or mail
            return
        number = mail.number or 1
        known = self.patches.setdefault(number, mail)
        if self.cover and address_of(known.author) != address_of(self.cover.author) == address_of(mail.author):
            self.patches[number] = mail


def root_of(mail: ListMail, parents: Mapping[str, str]) -> str:
    """Return the Message-ID that identifies the revision to which a cover letter or patch belongs.

    `parents` has, for known cover letters and patches, their root. git-send-email makes patches reply to the cover
    letter, or each to the one before (`--chain-reply-to`); a mail's own revision may reply to an earlier one, which is
    why a cover letter and a patch without a number are always roots.
    """
    if mail.number == 0 or mail.total is None:
        return mail.message_id
    for parent in (mail.in_reply_to, *reversed(mail.references)):
        if parent is not None and parent in parents:
            return parents[parent]
    return mail.in_reply_to or mail.message_id


def collect(mails: Iterable[ListMail]) -> list[ListedSeries]:
    """Return the series whose mails are given, in the order in which they began. Mails may come in any order.

    A series whose mails are in several threads is one if they can belong to no other (`split_series`).
    """
    heads = {mail.message_id: mail for mail in _with_roles(mails)}
    parents: dict[str, str] = {}
    roots: dict[tuple[str, int, int | None], str] = {}
    found: dict[tuple[str, int, int], ListedSeries] = {}
    # Cover letters first: a patch can arrive before its cover letter.
    for mail in sorted(heads.values(), key=lambda mail: mail.number or 0):
        root = root_of(mail, parents)
        if root in heads and heads[root].version != mail.version:
            # A new version in reply to an older one: its first patch is the root.
            root = roots.setdefault((root, mail.version, mail.total), mail.message_id if mail.number == 1 else root)
        parents[mail.message_id] = root
        total = mail.total if mail.total is not None else 1
        series = found.setdefault((root, mail.version, total), ListedSeries(root, mail.version, total))
        series.add(mail)
    for first, *others in find_whole([_part(series) for series in found.values() if not _is_whole(series)]):
        for part in others:
            for mail in part.mails:
                first.add(mail)
            del found[part.root, part.version, part.total]
    order = {message_id: place for place, message_id in enumerate(heads)}
    return sorted(found.values(), key=lambda series: min(order[mail.message_id] for mail in series.mails))


def _is_whole(series: ListedSeries) -> bool:
    return series.is_complete and series.cover is not None


def _part(series: ListedSeries) -> Part[ListedSeries]:
    """Return the series as what may be a part of one in several threads."""
    return Part(
        value=series,
        author=address_of(series.author),
        version=series.version,
        total=series.total,
        words=frozenset().union(*(parse_subject(mail.subject).words for mail in series.mails)),
        sent=tuple((mail.number or (0 if mail is series.cover else 1), mail.date) for mail in series.mails),
        cover=parse_subject(series.cover.subject).title if series.cover else None,
    )


def _with_roles(mails: Iterable[ListMail]) -> list[ListMail]:
    """Return the cover letters and patches, with the version and number that their threads say."""
    known = {mail.message_id: mail for mail in mails if mail.is_head}
    found = []
    for mail in with_roles([_as_mail(mail) for mail in known.values()]):
        if mail.is_cover or mail.is_patch:
            number, total = mail.counter or (None, None)
            changed = {"version": min(mail.version, 9999), "number": number, "total": total}
            found.append(known[mail.effective_message_id].model_copy(update=changed))
    return found


def _as_mail(mail: ListMail) -> Mail:
    """Return the mail as far as threads are concerned. What the worker read in its text counts too."""
    counter = (mail.number, mail.total) if mail.number is not None and mail.total is not None else None
    said = parse_subject(mail.subject)
    is_told = counter in {None, said.counter} and mail.version in {1, said.version}
    return Mail(
        subject=mail.subject if is_told or mail.is_reply else format_subject(said.title, mail.version, counter),
        author=mail.author,
        text="",
        body="",
        message_id=mail.message_id,
        in_reply_to=mail.in_reply_to,
        references=tuple(mail.references),
        patch="patch" if mail.has_patch else "",
    )

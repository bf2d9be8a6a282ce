"""Download a series from a Patchwork by its REST API 1.3, and refuse mails that are not those that it lists.

The answers of the API are small JSON documents; the mails are read in the sandbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from wqlab_contracts.messages.threads import ThreadMail
from wqlab_contracts.specs import Archive
from wqlab_contracts.specs.archives import quoted

from ..failures import UserError
from .archive import ArchiveClient, ArchiveUnavailable
from .mail_parser import MailParser

_MAILS_LIMIT = 1000
_Number = Annotated[int, Field(ge=0, lt=1 << 31)]
_MessageId = Annotated[str, StringConstraints(pattern=r"^<[^<>\s]+>$", max_length=1000)]
T = TypeVar("T")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Mail(_Answer):
    msgid: _MessageId

    @property
    def message_id(self) -> str:
        return self.msgid[1:-1]


class _Project(_Answer):
    link_name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]


class _Series(_Answer):
    id: _Number
    project: _Project
    total: _Number
    received_total: _Number
    received_all: bool
    cover_letter: _Mail | None = None
    patches: list[_Mail] = Field(max_length=_MAILS_LIMIT)

    @property
    def mails(self) -> list[_Mail]:
        return [*([self.cover_letter] if self.cover_letter else []), *self.patches]


class _Numbered(_Answer):
    id: _Number


class _Found(_Answer):
    """A patch or cover letter, in an answer to a search."""

    series: list[_Numbered]


@dataclass(frozen=True)
class PatchworkSeries:
    """A series whose mails were downloaded."""

    archive: Archive
    listed: _Series

    @property
    def message_id(self) -> str:
        """Message-ID of the cover letter, else of the first patch."""
        return self.listed.mails[0].message_id

    @property
    def url(self) -> str:
        return f"{self._project}/list/?series={self.listed.id}"

    @property
    def _project(self) -> str:
        return f"{self.archive.url}/project/{self.listed.project.link_name}"

    def page(self, mail: ThreadMail) -> str:
        """Return the URL of the page of one of its mails."""
        return f"{self._project}/{'cover' if mail.role == 'cover' else 'patch'}/{quoted(mail.message_id)}/"

    def check(self, parser: MailParser) -> None:
        """Check that the downloaded mails are the listed ones. Raises ArchiveUnavailable."""
        parser.run("ids")
        sent, listed = set(parser.text("ids").splitlines()), {mail.message_id for mail in self.listed.mails}
        if sent != listed:
            raise ArchiveUnavailable(
                f"Patchwork {self.archive.name} sends other mails for series {self.listed.id} than it lists",
                excerpt="\n".join(
                    [f"listed only: {each}" for each in sorted(listed - sent)]
                    + [f"sent only: {each[:200]}" for each in sorted(sent - listed)][:20]
                ),
                advice="The series may be changing. Try again in some minutes.",
            )


def find_number(archive: Archive, message_id: str, client: ArchiveClient, folder: Path) -> int | None:
    """Return the number of the series that has this patch or cover letter; None if the Patchwork has none.

    Raises ArchiveUnavailable, and TooLarge.
    """
    for kind in ("patches", "covers"):
        query = f"{kind}/?msgid={quote(message_id, safe='')}"
        found = _ask(archive, query, TypeAdapter(list[_Found]), client, folder) or []
        if numbers := [series.id for each in found for series in each.series]:
            return numbers[0]
    return None


def download(archive: Archive, number: int, client: ArchiveClient, path: Path) -> PatchworkSeries:
    """Write the mails of a series to `path` as an mbox, the cover letter first.

    Raises UserError if there is no such series or it is not complete, ArchiveUnavailable, and TooLarge.
    """
    listed = _ask(archive, f"series/{number}/", TypeAdapter(_Series), client, path.parent)
    if listed is None:
        raise UserError(
            f"Patchwork {archive.name} has no series {number}",
            advice=f"Check the number at {archive.url}. A series that was deleted can be submitted as an mbox.",
        )
    _check_complete(archive, listed, number)
    series = PatchworkSeries(archive, listed)
    sources = [f"{archive.url}/series/{number}/mbox/"]
    if listed.cover_letter is not None:
        cover = f"{archive.url}/project/{listed.project.link_name}/cover/{quoted(listed.cover_letter.message_id)}"
        sources.insert(0, f"{cover}/mbox/")
    with path.open("wb") as mbox:
        for url in sources:
            part = path.with_name("part.mbox")
            if not client.file(archive, url, part, begin=b"From "):
                raise ArchiveUnavailable(
                    f"Patchwork {archive.name} lists mails of series {number} that it does not have", excerpt=url
                )
            mbox.write(part.read_bytes() + b"\n")
            part.unlink()
    return series


def _check_complete(archive: Archive, listed: _Series, number: int) -> None:
    """Raises UserError if patches have not arrived, and ArchiveUnavailable if the answer contradicts itself."""
    name = f"series {number} on Patchwork {archive.name}"
    if listed.id == number and not listed.received_all:
        raise UserError(
            f"{name} is not complete: {listed.received_total} of {listed.total} patches have arrived",
            advice="Submit it again when Patchwork shows all of its patches.",
        )
    if listed.id != number or not listed.patches or len(listed.patches) < listed.total:
        told = f"it answers with series {listed.id}, {len(listed.patches)} patches of {listed.total}"
        raise ArchiveUnavailable(f"{name} cannot be read: {told}")


def _ask(archive: Archive, path: str, kind: TypeAdapter[T], client: ArchiveClient, folder: Path) -> T | None:
    """Return an answer of the REST API; None for 404."""
    url, answer = f"{archive.url}/api/1.3/{path}", folder / "answer.json"
    begin = b"{" if path.startswith("series/") else b"["
    try:
        return kind.validate_json(answer.read_bytes()) if client.file(archive, url, answer, begin=begin) else None
    except ValidationError as error:
        problem = f"Patchwork {archive.name} answers with something else than its REST API 1.3 does"
        raise ArchiveUnavailable(problem, excerpt=f"{url}\n{error}"[:2000]) from error
    finally:
        answer.unlink(missing_ok=True)

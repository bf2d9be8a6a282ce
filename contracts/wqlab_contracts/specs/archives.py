"""Mail archives and Patchwork servers. Both find a series by Message-ID; Patchwork also finds it by its number."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import Field, StringConstraints, model_validator

from .base import Name, Strict, check_address, read_secret

MESSAGE_ID = "{message_id}"
QUERY = "{query}"
EPOCH = "{epoch}"


class Checks(Strict):
    """Where, and for whose submissions, the lab writes checks of patches on a Patchwork."""

    project: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]
    """Project of the patches, by its name in URLs."""
    token_file: Annotated[str, StringConstraints(pattern=r"^/\S+$", max_length=500)]
    """File with the API token of an account that maintains the project, on the server's host."""
    owners: list[Annotated[str, StringConstraints(min_length=1, max_length=64)]] = Field(min_length=1, max_length=200)
    """Accounts of the lab for whose submissions checks are written."""

    def read_token(self) -> str:
        """Return the API token. Raises ValueError, which names the file, if it cannot be used."""
        return read_secret("token_file", self.token_file)


class Archive(Strict):
    """A mail archive run by public-inbox, or a Patchwork server."""

    name: Name
    kind: Literal["public_inbox", "patchwork"] = "public_inbox"
    summary: str
    url: str = Field(max_length=500)
    """Page of a message, with `{message_id}` in the place of its id; the mbox of its thread is at `t.mbox.gz` below.
    For a Patchwork its address, such as https://patchwork.example.org."""
    search: str | None = Field(default=None, max_length=500)
    """Search for whole threads, with `{query}` in the place of the query. Without it only revisions in the thread of
    the message are found."""
    list: str | None = Field(default=None, max_length=200, pattern=r"^[^<>\s@]+@[^<>\s@]+$")
    """Address of the mailing list that is archived; null for an archive of several lists."""
    epochs: str | None = Field(default=None, max_length=500)
    """Git repositories of the list's mails, with `{epoch}` in the place of their number from 0; needed to watch the
    list."""
    dkim_checked: bool = False
    """True if the archive takes only mails whose DKIM signature its mail server has checked. Commands in its replies
    are then followed without another check, which the footer of a mailing list would fail. Only then does From say who
    sent a mail: without it, watches with `authors` take nothing, no revision supersedes another, and answers are
    reviewed."""
    private: bool = False
    """True for an archive in the lab's own network: its addresses may be private, and its URLs may be http."""
    checks: Checks | None = Field(default=None, exclude=True)
    """Checks that the lab writes to a Patchwork; null: none. Workers do not get this field."""

    @model_validator(mode="after")
    def _check_urls(self) -> Self:
        if self.kind == "patchwork":
            if self.search is not None or self.epochs is not None or self.dkim_checked:
                raise ValueError("a Patchwork has no search, epochs or dkim_checked")
            if self.url.endswith("/"):
                raise ValueError("url must not end with a slash: write https://HOST, perhaps with a path")
            check_address("url", self.url, private=self.private)
            return self
        if self.checks is not None:
            raise ValueError("checks are written to a Patchwork: add `kind: patchwork`")
        parts = self._check_template("url", self.url, MESSAGE_ID)
        if not parts.path.endswith(f"{MESSAGE_ID}/"):
            raise ValueError(f"url must end with {MESSAGE_ID}/")
        if self.search is not None:
            found = self._check_template("search", self.search, QUERY)
            if found[:2] != parts[:2]:
                raise ValueError("search must have the same scheme, host and port as url")
        if self.epochs is not None:
            self._check_template("epochs", self.epochs, EPOCH)
            if self.list is None:
                raise ValueError("epochs are of one list: name its address in list")
        return self

    def _check_template(self, field: str, template: str, place: str) -> SplitResult:
        if template.count(place) != 1 or template.count("{") != 1:
            raise ValueError(f"{field} must contain {place} once, and no other braces")
        try:
            parts = urlsplit(template)
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"{field} is not a URL: {error}") from None
        if parts.scheme != "https" and not (self.private and parts.scheme == "http"):
            hint = "http is allowed only with `private: true`" if parts.scheme == "http" else "write https://..."
            raise ValueError(f"{field}: {hint}")
        if not parts.hostname or "{" in parts.netloc:
            raise ValueError(f"{field} has no host")
        if parts.username is not None or parts.password is not None:
            raise ValueError(f"{field} contains credentials, which would be shown to users")
        return parts

    def page(self, message_id: str) -> str:
        """Return the URL of a message's page in an archive of mailing lists."""
        return self.url.replace(MESSAGE_ID, quoted(message_id))

    def series_number(self, address: str) -> int | None:
        """Return the number of a series of this Patchwork, whose address is that of `find_series`; None for another."""
        base, _, number = address.removesuffix("/").rpartition("/series/")
        listed = self.url.partition("://")[2].lower()
        return int(number) if self.kind == "patchwork" and base.partition("://")[2].lower() in {"", listed} else None

    def thread(self, message_id: str) -> str:
        """Return the URL of the compressed mbox of a message's thread."""
        return f"{self.page(message_id)}t.mbox.gz"

    def epoch(self, number: int) -> str:
        """Return the URL of the git repository of an epoch. Raises ValueError if the archive names none."""
        if self.epochs is None:
            raise ValueError(f"archive {self.name} has no epochs")
        return self.epochs.replace(EPOCH, f"{number}")

    def results(self, query: str) -> str | None:
        """Return the URL that answers a POST with the threads that match; None if the archive has no search."""
        return None if self.search is None else self.search.replace(QUERY, quote(query, safe=""))


def quoted(message_id: str) -> str:
    """Return a Message-ID as a part of a URL's path."""
    return quote(message_id, safe="@+=!$&'()*,:;")

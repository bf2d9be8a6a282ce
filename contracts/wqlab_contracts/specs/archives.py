"""Mail archives in which series are found by Message-ID."""

from __future__ import annotations

from typing import Self
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import Field, model_validator

from .base import Name, Strict

MESSAGE_ID = "{message_id}"
QUERY = "{query}"
EPOCH = "{epoch}"


class Archive(Strict):
    """A public-inbox archive of one or more mailing lists."""

    name: Name
    summary: str
    url: str = Field(max_length=500)
    """Page of a message, with `{message_id}` in the place of its id; the mbox of its thread is at `t.mbox.gz` below."""
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

    @model_validator(mode="after")
    def _check_urls(self) -> Self:
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
        """Return the URL of a message's page."""
        return self.url.replace(MESSAGE_ID, quote(message_id, safe="@+=!$&'()*,:;"))

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

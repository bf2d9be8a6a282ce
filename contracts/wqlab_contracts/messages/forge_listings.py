"""What a forge's API listed at the last poll: the open pull requests and the branches of a repository."""

from __future__ import annotations

from pydantic import Field

from .base import Message


class ListedHead(Message):
    """An open pull request, or a branch, with its head."""

    key: str
    """`pull/7` or `branch/NAME`."""
    number: int | None
    """Number of the pull request; null for a branch."""
    branch: str
    """Branch that the pull request is for, or the branch itself."""
    head: str
    """Commit."""


class ListedPage(Message):
    """One page of a list, with its validator: an unchanged page is not sent again."""

    etag: str
    """Header `ETag` of the answer; empty if the forge sends none."""
    is_last: bool
    heads: list[ListedHead]


class ForgeListing(Message):
    """All pages by their path."""

    pages: dict[str, ListedPage] = Field(default_factory=dict)
    is_complete: bool = True
    """False if the repository has more pages than a poll reads."""

    @property
    def heads(self) -> list[ListedHead]:
        return [head for page in self.pages.values() for head in page.heads]

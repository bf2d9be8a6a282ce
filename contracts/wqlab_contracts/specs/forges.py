"""Repositories on forges (GitHub, GitLab, Gitea, Forgejo) whose pull requests and pushes are measured."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Name, Strict, check_address, read_secret

_File = Annotated[str, StringConstraints(pattern=r"^/\S+$", max_length=500)]
_Login = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\[\]-]{0,99}$")]
_API = {"github": "api/v3", "gitlab": "api/v4", "gitea": "api/v1"}
_PUBLIC_GITHUB = "https://github.com"


class ForgeKind(StrEnum):
    """Software of a forge, which decides its API and its events."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"
    """Gitea or Forgejo."""


class Forge(Strict):
    """One repository on a forge."""

    name: Name
    """Part of the address that the forge posts its events to: `/api/v1/forges/NAME/events`."""
    kind: ForgeKind
    url: str = Field(max_length=300)
    """Address of the forge, such as https://github.com."""
    api: str = Field(default="", max_length=300)
    """Address of its API; by default what the forge's software uses."""
    repository: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+$", max_length=250)]
    """OWNER/NAME; on GitLab with all groups."""
    git: str = Field(default="", max_length=500)
    """URL from which workers fetch commits; by default that of the repository on the forge."""
    secret_file: _File
    """File with the secret of the forge's webhook, on the server's host."""
    token_file: _File
    """File with an API token that may read the repository and write commit statuses and comments."""
    user: _Login
    """Account of the token on the forge. The lab ignores events that this account causes."""
    tree: Name
    """Kernel tree of the lab that the repository's branches are based on."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Account of the lab that owns the submissions, and whose quota they use."""
    may_spend: Literal["members", "listed"] = "members"
    """Whether to measure the pull requests and pushes of accounts with write access, or only of those in `users`."""
    users: list[_Login] = Field(default_factory=list, max_length=200)
    label: Annotated[str, StringConstraints(min_length=1, max_length=50)] | None = None
    """Label that lets one commit of anybody's pull request be measured, if somebody with write access sets it."""
    private: bool = False
    """True for a forge in the lab's own network: its addresses may be private, and its URLs may be http."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for field, url in (("url", self.url), ("api", self.api)):
            if url or field == "url":
                check_address(field, url, private=self.private)
        if (self.may_spend == "listed") != bool(self.users):
            raise ValueError("`may_spend: listed` and `users` belong together: set both, or neither")
        if self.git.startswith("http://") or (not self.git and self.url.startswith("http://")):
            raise ValueError("git is needed: workers fetch by https or git, or from a local path that the lab allows")
        return self

    @property
    def api_url(self) -> str:
        """Address of the API, without a slash at its end."""
        url = self.url.rstrip("/")
        default = "https://api.github.com" if url == _PUBLIC_GITHUB else f"{url}/{_API[self.kind]}"
        return self.api.rstrip("/") or default

    @property
    def git_url(self) -> str:
        """URL from which workers fetch commits."""
        return self.git or f"{self.url.rstrip('/')}/{self.repository}.git"

    def read_secret(self) -> str:
        """Return the secret of the webhook. Raises ValueError, which names the file, if it cannot be used."""
        return read_secret("secret_file", self.secret_file)

    def read_token(self) -> str:
        """Return the API token. Raises ValueError, which names the file, if it cannot be used."""
        return read_secret("token_file", self.token_file)

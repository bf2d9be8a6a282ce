"""Session of a command: its global options, output, and calls to the server that are created on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from .. import config
from .output import Output

if TYPE_CHECKING:
    from ..calls.connection import Connection

Calls = TypeVar("Calls", bound="Connection")

Limit = Annotated[int, typer.Option(min=1, max=200, help="Entries per page")]
Cursor = Annotated[str | None, typer.Option(metavar="CURSOR", help="Continue after the page that printed this cursor")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text")]
SubmissionId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the submission", show_default=False)]
DETACHED_EXIT = 130
"""Exit code that a shell reports for a program ended by Ctrl-C."""


class Session:
    """Global options, output and calls of one command."""

    def __init__(self, url: str | None, token: str | None, token_file: Path | None, path: Path | None) -> None:
        self._flags = (url, token, token_file, path)
        self._calls: dict[type[Connection], Connection] = {}
        self.output = Output()
        self.report_retry: Callable[[str], None] = self.output.note
        """Called with the reason when the client waits before a retry; a progress display replaces it."""

    @property
    def config_path(self) -> Path:
        return self._flags[3] or config.config_path(os.environ)

    def resolve_config(self) -> config.Config:
        """Return the configuration and print nothing. Raises UsageError as `config.resolve` does."""
        url, token, token_file, path = self._flags
        return config.resolve(os.environ, url=url, token=token, token_file=token_file, path=path)

    @cached_property
    def config(self) -> config.Config:
        """The resolved configuration; warnings go to stderr. Raises UsageError as `config.resolve` does."""
        resolved = self.resolve_config()
        for warning in resolved.warnings:
            self.output.warn(warning)
        return resolved

    def calls(self, kind: type[Calls]) -> Calls:
        """Return calls to the configured server: each command imports only the models that it uses.

        Raises UsageError if no lab is configured.
        """
        if kind not in self._calls:
            token = self.config.token
            self._calls[kind] = kind(self.url, token.value if token else None, on_retry=self._on_retry)
        return cast("Calls", self._calls[kind])

    @property
    def url(self) -> str:
        """The URL of the configured server. Raises UsageError if no lab is configured."""
        return self.config.server()

    def _on_retry(self, text: str) -> None:
        self.report_retry(text)


def session_of(context: typer.Context) -> Session:
    """Return the session that the global options created."""
    session = context.find_object(Session)
    if session is None:
        raise RuntimeError("the command was called without its global options")
    return session

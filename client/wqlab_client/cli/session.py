"""What every command starts from: the global options, the output, a client made when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from .. import config
from ..client import Client
from .output import Output

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text")]
SubmissionId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the submission", show_default=False)]
DETACHED_EXIT = 130
"""As a shell reports a program that Ctrl-C ended."""


class Session:
    def __init__(self, url: str | None, token: str | None, token_file: Path | None, path: Path | None) -> None:
        self._flags = (url, token, token_file, path)
        self.output = Output()
        self.tell_retry: Callable[[str], None] = self.output.note
        """Told when the client waits to try again; a progress display puts itself here."""

    @property
    def config_path(self) -> Path:
        return self._flags[3] or config.config_path(os.environ)

    @cached_property
    def config(self) -> config.Config:
        """Raises UsageError, as `config.resolve` does; warnings go to stderr."""
        url, token, token_file, path = self._flags
        resolved = config.resolve(os.environ, url=url, token=token, token_file=token_file, path=path)
        for warning in resolved.warnings:
            self.output.warn(warning)
        return resolved

    @cached_property
    def client(self) -> Client:
        """Raises UsageError when no lab is configured."""
        token = self.config.token
        return Client(
            self.config.server(),
            token.value if token else None,
            on_retry=self._retrying,
        )

    def _retrying(self, text: str) -> None:
        self.tell_retry(text)


def of(context: typer.Context) -> Session:
    session = context.find_object(Session)
    if session is None:
        raise RuntimeError("the command was called without its global options")
    return session

"""Types of the fixtures that call the `wqlab` command, and the token that they use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

TOKEN = "wql_0123456789abcdef0123456789abcdef"


@dataclass
class CommandResult:
    """Exit code and output of one command."""

    code: int
    out: str
    err: str


class Wqlab(Protocol):
    """Fixture that runs `wqlab` with arguments."""

    def __call__(self, *arguments: str) -> CommandResult: ...

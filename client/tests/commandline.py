"""How tests call the `wqlab` command. Beside conftest.py, because every room has a module of that name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

TOKEN = "wql_0123456789abcdef0123456789abcdef"


@dataclass
class Ended:
    code: int
    out: str
    err: str


class Wqlab(Protocol):
    def __call__(self, *arguments: str) -> Ended: ...

"""Base class and common types of the data folder's models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints

from .. import defer_models

NAME_LIMIT = 64
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
CpuArch = Literal["x86_64", "arm64"]
LastLevel = Literal["L3", "L2", "cluster", "package"]
"""Level that the CPUs of a last-level domain share: the highest known cache, or a substitute if no cache is known."""


class Strict(BaseModel):
    """Immutable model that rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=defer_models)


def check_address(field: str, url: str, *, private: bool) -> None:
    """Check the address of a web server. Raises ValueError, which names the field."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{field} is not a URL: {error}") from None
    if parts.scheme != "https" and not (private and parts.scheme == "http"):
        hint = "http is allowed only with `private: true`" if parts.scheme == "http" else "write https://..."
        raise ValueError(f"{field}: {hint}")
    if not parts.hostname or parts.query or parts.fragment or not url.isascii() or " " in url:
        raise ValueError(f"{field} must be https://HOST, perhaps with a path")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{field} contains credentials; the token is read from token_file")


def read_secret(field: str, path: str) -> str:
    """Return the secret in a file. Raises ValueError, which names the field and the file, if it cannot be used."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(4097)
    except OSError as error:
        raise ValueError(f"{field} {path} cannot be read: {error.strerror}") from None
    text = content.decode("ascii", errors="replace").strip()
    if len(text) < 8 or len(content) > 4096 or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{field} {path} must have the secret in one line, of 8 to 4,000 ASCII characters")
    return text

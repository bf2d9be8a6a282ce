"""Which git URLs a user may name. The worker that fetches checks again, and the addresses that a name leads to too."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit


def url_problem(url: str, local_git_paths: Sequence[str]) -> str | None:
    """Why `url` will not be fetched from, and what to write instead; None when nothing is wrong with it."""
    if len(url) > 2000 or any(character.isspace() or ord(character) < 32 for character in url):
        return "not a URL: it has white space or control characters, or over 2000 characters"
    if url.startswith("/"):
        if url.rstrip("/") in {path.rstrip("/") for path in local_git_paths}:
            return None
        allowed = ", ".join(local_git_paths) or "none is listed"
        return f"local path {url!r} is not one the operator lists ({allowed}); push the branch and give its https URL"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if parts.scheme not in {"https", "git"}:
        return f"{parts.scheme or 'no'} scheme is not fetched from; write https://... or git://..."
    if not host:
        return "the URL names no host"
    if parts.username or parts.password:
        return "the URL carries credentials, which would be stored and shown; give a public URL"
    return None

"""Validation of submitted git URLs. The worker that fetches checks the URL and its resolved addresses again."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit


def url_problem(url: str, local_git_paths: Sequence[str]) -> str | None:
    """Return why `url` is refused and what to write instead, or None if it is accepted."""
    if len(url) > 2000 or any(character.isspace() or ord(character) < 32 for character in url):
        return "not a URL: it has white space or control characters, or more than 2000 characters"
    if url.startswith("/"):
        if url.rstrip("/") in {path.rstrip("/") for path in local_git_paths}:
            return None
        allowed = ", ".join(local_git_paths) or "none"
        return (
            f"local path {url!r} is not allowed (allowed by the operator: {allowed}); "
            "push the branch and give its https URL"
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"not a URL: {error}"
    if parts.scheme not in {"https", "git"}:
        scheme = f"scheme {parts.scheme}" if parts.scheme else "a URL without a scheme"
        return f"{scheme} is not supported; write https://... or git://..."
    if not host:
        return "the URL has no host"
    if parts.username or parts.password:
        return "the URL contains credentials, which would be stored and shown; give a public URL"
    return None

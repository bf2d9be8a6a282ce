"""Validation of submitted branches and git URLs.

The worker that fetches checks the URL and its resolved addresses again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from wqlab_contracts.hosts import host_problem
from wqlab_contracts.messages import GitSeries

GIT_REF = re.compile(r"(?!.*(\.\.|//|@\{|\.lock(/|$)))[A-Za-z0-9_][A-Za-z0-9_./+@=-]*(?<![./])\Z")
_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")


def series_problems(git: GitSeries, local_git_paths: Sequence[str]) -> dict[str, str]:
    """Return why fields of a branch are refused: name of the field -> what is wrong, and what to write instead."""
    found = {}
    if (problem := url_problem(git.url, local_git_paths)) is not None:
        found["url"] = problem
    if not GIT_REF.match(git.ref) or len(git.ref) > 250:
        found["ref"] = f"{git.ref[:80]!r} is not a branch, tag or commit name"
    if git.base is not None and not (_COMMIT.match(git.base) or GIT_REF.match(git.base)):
        found["base"] = f"{git.base[:80]!r} is not a commit; leave it out to use the merge base"
    return found


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
    if (problem := host_problem(host)) is not None:
        return problem
    if parts.username or parts.password:
        return "the URL contains credentials, which would be stored and shown; give a public URL"
    return None

"""Responses that are not sent again to a client that has them."""

from __future__ import annotations

import hashlib

from fastapi import Request, Response, status


def revalidated(request: Request, body: bytes, media_type: str = "application/json") -> Response:
    """Return a response with `body` and its ETag, or 304 without a body if the client has it already.

    A browser may cache it but must revalidate it each time, because read permission can be revoked.
    """
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    headers = {"Cache-Control": "private, no-cache", "ETag": etag}
    if etag_matches(request.headers.get("If-None-Match", ""), etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def etag_matches(if_none_match: str, etag: str) -> bool:
    """Return True if an If-None-Match header matches `etag`, by weak comparison (RFC 9110, 13.1.2)."""
    etags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag in etags or etags == ["*"]

"""Artifact downloads: whole or by range, cacheable without limit because the address contains the hash."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact

from ..storage.artifacts import ArtifactStore
from .problems import ApiProblem, documented
from .problems import response as problem

_TEXT = {ArtifactKind.BUILD_LOG, ArtifactKind.CONFIG, ArtifactKind.SYSTEM_MAP, ArtifactKind.SERIES}
_ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_JSON = {ArtifactKind.METADATA, ArtifactKind.INSTRUMENT_PROFILE}

BINARY: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
    206: {"description": "The requested range of bytes"},
    **documented(410),
    416: {"description": "The range is outside the artifact"},
}
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The text", "content": {"text/plain": {"schema": {"type": "string"}}}},
    206: {"description": "The requested range of bytes"},
    **documented(410),
    416: {"description": "The range is outside the text"},
}


class StoredBytes(Response):
    """Response that streams an artifact, or one requested range of it, from the store."""

    def __init__(
        self,
        store: ArtifactStore,
        sha256: str,
        size: int,
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
    ) -> None:
        super().__init__(None, status_code, headers, media_type)
        self._store, self._sha256, self._size = store, sha256, size
        self.headers["ETag"] = f'"{sha256}"'
        self.headers["Accept-Ranges"] = "bytes"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_headers, start, end = Headers(scope=scope), 0, self._size
        if request_headers.get("If-Range", self.headers["ETag"]) == self.headers["ETag"]:
            try:
                found = one_range(request_headers.get("Range", ""), self._size)
            except ValueError as error:
                headers = {"Content-Range": f"bytes */{self._size}"}
                await problem(ApiProblem(416, str(error), headers=headers))(scope, receive, send)
                return
            if found is not None:
                self.status_code, (start, end) = 206, found
                self.headers["Content-Range"] = f"bytes {start}-{end - 1}/{self._size}"
        self.headers["Content-Length"] = str(end - start)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            async for piece in self._store.stream(self._sha256, start, end):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def one_range(header: str, size: int) -> tuple[int, int] | None:
    """Parse a Range header into (first byte, byte after the last).

    Returns None if the whole artifact is to be sent: no range, several ranges or an invalid one (RFC 9110, 14.2).
    Raises ValueError if the range starts beyond `size` bytes.
    """
    match = _ONE_RANGE.fullmatch(header)
    if match is None:
        return None
    first, last = (int(text) if text else None for text in match.groups())
    if first is None and last is not None:
        first, last = max(size - last, 0) if last else size, None
    if first is None or (last is not None and last < first):
        return None
    if first >= size:
        raise ValueError(f"the range {header} is outside of the artifact's {size} bytes")
    return first, size if last is None else min(last + 1, size)


def deleted(what: str, at: datetime) -> ApiProblem:
    """Return a 410 problem for something that retention deleted."""
    return ApiProblem(410, f"{what} was deleted by retention on {at.astimezone(UTC):%Y-%m-%d}")


def send(store: ArtifactStore, artifact: Artifact, deleted_at: datetime | None = None) -> StoredBytes:
    """Return the download of an artifact; Range and If-Range are supported.

    Submitted code determines an artifact's content, so it is never sent with a media type that a browser executes.
    `deleted_at` is when retention deleted the files of the artifact's job. Raises ApiProblem 410 if it has, and 404 if
    the store no longer has the bytes.
    """
    if deleted_at is not None:
        raise deleted(artifact.name, deleted_at)
    try:
        size = store.size(artifact.sha256)
    except FileNotFoundError:
        raise ApiProblem(404, f"{artifact.name} ({artifact.sha256[:12]}) is no longer in the artifact store") from None
    if artifact.kind in _TEXT:
        media_type = "text/plain; charset=utf-8"
    elif artifact.kind in _JSON:
        media_type = "application/json"
    else:
        media_type = "application/octet-stream"
    disposition = "inline" if artifact.kind in _TEXT else "attachment"
    return StoredBytes(
        store,
        artifact.sha256,
        size,
        media_type=media_type,
        headers={
            "Content-Disposition": _content_disposition(disposition, artifact.name),
            "Cache-Control": "private, max-age=31536000, immutable",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _content_disposition(disposition: str, name: str) -> str:
    """Format a Content-Disposition header (RFC 6266); a name that is not plain ASCII is written in UTF-8."""
    quoted = quote(name)
    return f'{disposition}; filename="{name}"' if quoted == name else f"{disposition}; filename*=utf-8''{quoted}"

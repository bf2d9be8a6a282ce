"""Artifacts over HTTP: whole or by range, cacheable for ever because a name is a hash."""

from __future__ import annotations

from typing import Any

from fastapi.responses import FileResponse

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact

from .artifacts import ArtifactStore
from .problems import ApiProblem

_TEXT = {ArtifactKind.BUILD_LOG, ArtifactKind.CONFIG, ArtifactKind.SYSTEM_MAP, ArtifactKind.SERIES}
_JSON = {ArtifactKind.METADATA}

BINARY: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
    206: {"description": "The bytes of the Range asked for"},
    416: {"description": "The range is outside the artifact"},
}
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The text", "content": {"text/plain": {"schema": {"type": "string"}}}},
    206: {"description": "The bytes of the Range asked for"},
    416: {"description": "The range is outside the text"},
}


def send(store: ArtifactStore, artifact: Artifact) -> FileResponse:
    """Answers Range and If-Range requests. Raises ApiProblem 404 when the store lost the bytes.

    Submitted code decides what an artifact holds, so nothing is ever sent as a type that a browser would run.
    """
    if not store.has(artifact.sha256):
        raise ApiProblem(404, f"{artifact.name} ({artifact.sha256[:12]}) is no longer in the artifact store")
    if artifact.kind in _TEXT:
        media_type = "text/plain; charset=utf-8"
    elif artifact.kind in _JSON:
        media_type = "application/json"
    else:
        media_type = "application/octet-stream"
    return FileResponse(
        store.path(artifact.sha256),
        media_type=media_type,
        filename=artifact.name,
        content_disposition_type="inline" if artifact.kind in _TEXT else "attachment",
        headers={
            "Cache-Control": "private, max-age=31536000, immutable",
            "X-Content-Type-Options": "nosniff",
            "ETag": f'"{artifact.sha256}"',
        },
    )

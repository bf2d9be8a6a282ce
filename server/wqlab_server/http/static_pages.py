"""The pages: the build of web/, served from this process, so that one URL is all of the lab.

Files under assets/ are named by their content and never change; everything else is asked for anew. A path that is no
file is a page of the application, which finds its way itself.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from ..settings import Settings

RESERVED = frozenset({"api", "r", "healthz", "readyz", "metrics", "docs", "redoc", "openapi.json"})
"""First parts of paths that are never pages: what is not found there is an error of the API."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""What the build compresses to, the smaller first."""
_TYPES = {".js": "text/javascript", ".map": "application/json", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
"""Those that the host's tables may lack or call by an old name."""
_FILE_SUFFIXES = frozenset({".js", ".css", ".map", ".json", ".svg", ".png", ".ico", ".txt", ".webmanifest", ".woff2"})
_MISSING = """\
The web pages are not built.

`make setup` builds them and `make up` serves them; WQLAB_WEB_DIR is the folder with the build's index.html{where}.
The API does without: {api}, and the `wqlab` command does all that the pages do.
"""


class _Pages(Route):
    """A route for every path but the reserved ones, which it does not even forbid methods of."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["path"].removeprefix("/").partition("/")[0] in RESERVED:
            return Match.NONE, {}
        return super().matches(scope)


def install(app: FastAPI) -> None:
    """Last of all routes."""
    settings: Settings = app.state.settings

    def pages(request: Request) -> Response:
        return respond(settings, request)

    app.router.routes.append(_Pages("/{path:path}", pages, methods=["GET", "HEAD"], name="pages"))


def respond(settings: Settings, request: Request) -> Response:
    """The file that is asked for, else the application."""
    path = request.path_params["path"]
    index = settings.web_dir / "index.html" if settings.web_dir is not None else None
    if settings.web_dir is None or index is None or not index.is_file():
        where = f" (it is {settings.web_dir} now)" if settings.web_dir is not None else " (it is not set)"
        text = _MISSING.format(where=where, api=f"{settings.public_url}/api/v1")
        return PlainTextResponse(text, 503, {**_HEADERS, "Cache-Control": "no-store"})
    file = _within(settings.web_dir, path)
    if file is not None and file != index.resolve():
        lasting = PurePosixPath(path).parts[0] == "assets"
        return _file(request, file, _FOR_EVER if lasting else "no-cache")
    if path.startswith("assets/") or PurePosixPath(path).suffix in _FILE_SUFFIXES:
        return PlainTextResponse(f"no file {path[:200]}\n", 404, {**_HEADERS, "Cache-Control": "no-store"})
    return _file(request, index, "no-store")


def _within(root: Path, path: str) -> Path | None:
    """The regular file at `path` under `root`; None for what is none, or lies elsewhere."""
    if not path or "\0" in path:
        return None
    try:
        file = (root / path).resolve(strict=True)
    except (OSError, ValueError):
        return None
    return file if file.is_file() and file.is_relative_to(root.resolve()) else None


def _file(request: Request, file: Path, cache: str) -> Response:
    headers = {**_HEADERS, "Cache-Control": cache, "Vary": "Accept-Encoding"}
    sent = file
    for encoding in _accepted(request.headers.get("accept-encoding", "")):
        packed = file.with_name(file.name + _ENCODINGS[encoding])
        if packed.is_file():
            sent = packed
            headers["Content-Encoding"] = encoding
            break
    status = sent.stat()
    headers["ETag"] = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
    if cache != "no-store" and headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={name: headers[name] for name in ("ETag", "Cache-Control", "Vary")})
    media_type = _TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return FileResponse(sent, headers=headers, media_type=media_type, stat_result=status)


def _accepted(header: str) -> list[str]:
    """The build's encodings that a client takes (RFC 9110, 12.5.3), the smaller first."""
    refused: set[str] = set()
    named: set[str] = set()
    for part in header.split(","):
        name, _, parameters = part.strip().lower().partition(";")
        weight = parameters.strip().removeprefix("q=").strip()
        (refused if weight and weight.strip("0.") == "" else named).add(name.strip())
    return [encoding for encoding in _ENCODINGS if encoding in named or ("*" in named and encoding not in refused)]

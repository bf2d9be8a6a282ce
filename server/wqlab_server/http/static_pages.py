"""Serve the web pages and the documentation from this process, so that one URL is the whole lab.

Both are static builds: of web/ (`Settings.web_dir`) and of docs/ (`Settings.docs_dir`, under /docs/). Files under
assets/ of web/ are named by their content and never change; every other file is revalidated. A path that is no file is
a page of the client-side application.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from ..settings import Settings

RESERVED = frozenset({"api", "r", "healthz", "readyz", "metrics", "docs", "redoc", "openapi.json"})
"""First parts of paths that are never pages of the application: the API answers 404 for what it does not have there."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_IMMUTABLE = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Content encodings that the build of web/ has files of, the smaller first."""
_TYPES = {".js": "text/javascript", ".map": "application/json", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
"""Media types that the host's tables may lack or name differently."""
_FILE_SUFFIXES = frozenset({".js", ".css", ".map", ".json", ".svg", ".png", ".ico", ".txt", ".webmanifest", ".woff2"})
_PAGES_NOT_BUILT = """\
The web pages are not built.

`make setup` builds them and `make up` serves them; WQLAB_WEB_DIR is the folder with the build's index.html{where}.
The API works without them: {api}, and the `wqlab` command does everything that the pages do.
"""
_DOCS_NOT_BUILT = """\
The documentation is not built.

`make docs` builds it and `make up` serves it; WQLAB_DOCS_DIR is the folder with the build's index.html{where}.
"""


class _Pages(Route):
    """A route for every path that is not reserved. It never matches a reserved path, not even to answer 405."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["path"].removeprefix("/").partition("/")[0] in RESERVED:
            return Match.NONE, {}
        return super().matches(scope)


def install(app: FastAPI) -> None:
    """Add the routes of documentation and pages. Call it after every other route is added."""
    settings: Settings = app.state.settings

    def pages(request: Request) -> Response:
        return serve_page(settings, request)

    def documentation(request: Request) -> Response:
        return serve_documentation(settings, request)

    def api_reference(_: Request) -> Response:
        return RedirectResponse("/docs/api/", 308)

    methods = ["GET", "HEAD"]
    app.router.routes += [
        Route("/redoc", api_reference, methods=methods, name="redoc"),
        Route("/docs", documentation, methods=methods, name="docs"),
        Route("/docs/{path:path}", documentation, methods=methods, name="documentation"),
        _Pages("/{path:path}", pages, methods=methods, name="pages"),
    ]


def serve_page(settings: Settings, request: Request) -> Response:
    """Respond with the file of web/ at the request's path, or with the application's index.html."""
    path = request.path_params["path"]
    index = _index_of(settings.web_dir)
    if settings.web_dir is None or index is None:
        return _not_built(_PAGES_NOT_BUILT, settings.web_dir, settings)
    file = _file_within(settings.web_dir, path)
    if file is not None and file != index:
        return _file(request, file, _IMMUTABLE if PurePosixPath(path).parts[0] == "assets" else _REVALIDATE)
    if path.startswith("assets/") or PurePosixPath(path).suffix in _FILE_SUFFIXES:
        return _no_file(path)
    return _file(request, index, "no-store")


def serve_documentation(settings: Settings, request: Request) -> Response:
    """Respond with the documentation's file at the request's path below /docs/; a folder's file is its index.html."""
    path = request.path_params.get("path")
    if settings.docs_dir is None or _index_of(settings.docs_dir) is None:
        return _not_built(_DOCS_NOT_BUILT, settings.docs_dir, settings)
    if path is None:
        return RedirectResponse("/docs/", 308)
    file = _file_within(settings.docs_dir, f"{path}index.html" if path.endswith("/") or not path else path)
    if file is not None:
        return _file(request, file, _REVALIDATE)
    if _file_within(settings.docs_dir, f"{path}/index.html") is not None:
        return RedirectResponse(f"/docs/{path}/", 308)  # relative links of the page need the slash
    missing = _file_within(settings.docs_dir, "404.html")
    if missing is None or PurePosixPath(path).suffix in _FILE_SUFFIXES:
        return _no_file(path)
    return FileResponse(missing, 404, headers={**PAGE_HEADERS, "Cache-Control": "no-store"}, media_type="text/html")


def _index_of(folder: Path | None) -> Path | None:
    index = folder / "index.html" if folder is not None else None
    return index.resolve() if index is not None and index.is_file() else None


def _not_built(text: str, folder: Path | None, settings: Settings) -> Response:
    where = f" (now {folder})" if folder is not None else " (not set)"
    text = text.format(where=where, api=f"{settings.public_url}/api/v1")
    return PlainTextResponse(text, 503, {**PAGE_HEADERS, "Cache-Control": "no-store"})


def _no_file(path: str) -> Response:
    return PlainTextResponse(f"no file {path[:200]}\n", 404, {**PAGE_HEADERS, "Cache-Control": "no-store"})


def _file_within(root: Path, path: str) -> Path | None:
    """Return the regular file at `path` under `root`; None if there is none or it lies outside `root`."""
    if not path or "\0" in path:
        return None
    try:
        file = (root / path).resolve(strict=True)
    except (OSError, ValueError):
        return None
    return file if file.is_file() and file.is_relative_to(root.resolve()) else None


def _file(request: Request, file: Path, cache: str) -> Response:
    headers = {**PAGE_HEADERS, "Cache-Control": cache, "Vary": "Accept-Encoding"}
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
    """Return the encodings of the build that the client accepts (RFC 9110, 12.5.3), the smaller first."""
    refused: set[str] = set()
    named: set[str] = set()
    for part in header.split(","):
        name, _, parameters = part.strip().lower().partition(";")
        weight = parameters.strip().removeprefix("q=").strip()
        (refused if weight and weight.strip("0.") == "" else named).add(name.strip())
    return [encoding for encoding in _ENCODINGS if encoding in named or ("*" in named and encoding not in refused)]

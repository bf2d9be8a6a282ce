"""Security headers of responses: no foreign scripts, no framing, no caching of private data."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of a response that is not a page: opened in a browser, it can do nothing."""
DOCUMENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
DOCUMENT_POLICY += "frame-ancestors 'none'; sandbox"
"""Content-Security-Policy of a self-contained page without scripts, which may show output of submitted code."""
STRICT_TRANSPORT = "max-age=31536000"
"""Strict-Transport-Security (RFC 6797): browsers use https only, for a year. Subdomains may be run by others."""
_DEFAULTS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY"}


class SecurityHeaders:
    """ASGI middleware that adds the security headers an endpoint did not set itself.

    With `https`, users reach the lab by https and browsers are told to use nothing else.
    """

    def __init__(self, app: ASGIApp, *, https: bool, api_prefix: str = "/api/") -> None:
        self.app, self.api_prefix = app, api_prefix
        self.defaults = _DEFAULTS | ({"Strict-Transport-Security": STRICT_TRANSPORT} if https else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.defaults.items():
                    headers.setdefault(name, value)
                headers.setdefault("Content-Security-Policy", DATA_POLICY)
                if path.startswith(self.api_prefix):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)

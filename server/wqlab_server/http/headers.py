"""What browsers may do with an answer: run nothing that is not the lab's, frame nothing, keep nothing private."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For an answer that is no page: opened by itself, it is to do nothing."""
DOCUMENT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
DOCUMENT += "frame-ancestors 'none'; sandbox"
"""For a page that brings all it needs and has no script. What submitted code printed is in it."""
_INTERACTIVE_DOCS = "frame-ancestors 'none'"
"""FastAPI's /docs comes with a script in place, and loads its viewer from elsewhere."""
_ALWAYS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY"}


class SafeAnswers:
    """ASGI middleware: adds what the endpoint did not set itself."""

    def __init__(self, app: ASGIApp, api_prefix: str = "/api/") -> None:
        self.app, self.api_prefix = app, api_prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]

        async def safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers.setdefault(name, value)
                policy = _INTERACTIVE_DOCS if path in {"/docs", "/redoc"} else DATA
                headers.setdefault("Content-Security-Policy", policy)
                if path.startswith(self.api_prefix):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, safe)

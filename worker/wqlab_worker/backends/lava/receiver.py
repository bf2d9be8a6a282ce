"""Web server of one run for its LAVA lab: LAVA fetches images and calls back when a job ends, devices send results.

Every path begins with a secret of this run. Only offered files are served.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from . import job_archives

RESULT_LIMIT = 64 << 20
"""Largest results archive of one boot, in encoded bytes."""
START_TIMEOUT_S = 10.0


class Receiver:
    """Context manager that runs the web server. `notify` is called for each result and callback."""

    def __init__(self, listen: str, host: str, notify: Callable[[], None]) -> None:
        self._listen, self._host, self._notify = listen, host, notify
        self._secret = secrets.token_hex(16)
        self._files: dict[str, Path] = {}
        self._results: dict[str, bytes] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="receiver", daemon=True)
        self._runner: web.AppRunner | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner:
            self._run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def offer(self, name: str, path: Path) -> str:
        """Serve the file and return the URL at which LAVA's dispatcher fetches it."""
        self._files[name] = path
        return f"{self.url(self._host)}/files/{name}"

    def url(self, host: str | None = None) -> str:
        """Return the base URL. Devices may reach this machine under another name (`host`) than LAVA does."""
        return f"http://{host or self._host}:{self.port}/{self._secret}"

    @property
    def callback(self) -> str:
        """URL that LAVA calls when the job ends."""
        return f"{self.url()}/callback"

    def result(self, boot: str) -> bytes | None:
        """Return the results archive of a boot; None until the device has sent it."""
        return self._results.get(boot)

    # --- inside -------------------------------------------------------------------------------------------------

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(START_TIMEOUT_S)  # type: ignore[arg-type]

    async def _start(self) -> None:
        app = web.Application(client_max_size=RESULT_LIMIT)
        app.router.add_get(f"/{self._secret}/files/{{name}}", self._get_file)
        app.router.add_post(f"/{self._secret}/results/{{boot}}", self._receive_result)
        app.router.add_post(f"/{self._secret}/callback", self._receive_callback)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._listen, 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _get_file(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _receive_result(self, request: web.Request) -> web.Response:
        # The first upload counts: a later one is not from the device that was to send it.
        boot = request.match_info["boot"]
        try:
            data = job_archives.decode_archive(await request.text(), request.headers.get("X-Sha256", ""))
        except job_archives.ResultsUnreadable as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        self._results.setdefault(boot, data)
        self._notify()
        return web.Response(text="taken\n")

    async def _receive_callback(self, request: web.Request) -> web.Response:
        self._notify()
        return web.Response(text="thanks\n")

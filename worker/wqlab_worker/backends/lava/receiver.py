"""Web server of one run for its LAVA lab: LAVA fetches images and calls back when a job ends, devices send results.

Every path begins with a secret of one job, or of one boot of it, which the job's text contains. The secrets are valid
until the job ends: whoever reads the text later gets and sends nothing. A boot's secret takes the results of that boot
only; if two results differ, neither is used.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from ..unattended.boot_files import ResultsUnreadable
from . import job_archives

RESULT_LIMIT = 64 << 20
"""Largest results archive of one boot, in encoded bytes."""
START_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class JobAddresses:
    """Addresses that are in the text of one LAVA job, valid until it ends."""

    server: str
    """URL of the receiver, as LAVA reaches it."""
    secret: str
    boots: Mapping[str, str]
    """Name of each boot -> secret for its results."""

    def file(self, name: str) -> str:
        """Return the URL at which LAVA's dispatcher fetches an offered file."""
        return f"{self.server}/{self.secret}/files/{name}"

    @property
    def callback(self) -> str:
        """URL that LAVA calls when the job ends."""
        return f"{self.server}/{self.secret}/callback"

    def results(self, server: str) -> dict[str, str]:
        """Return the URL for each boot's results, below the receiver's URL as the device reaches it."""
        return {boot: f"{server}/{secret}" for boot, secret in self.boots.items()}


class Receiver:
    """Context manager that runs the web server. `notify` is called for each result and callback."""

    def __init__(self, listen: str, host: str, notify: Callable[[], None]) -> None:
        self._listen, self._host, self._notify = listen, host, notify
        self._files: dict[str, Path] = {}
        self._job: JobAddresses | None = None
        self._results: dict[str, bytes] = {}
        self._disputed: set[str] = set()
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

    def offer(self, name: str, path: Path) -> None:
        """Serve the file to each job that is open."""
        self._files[name] = path

    def open_job(self, boots: Iterable[str]) -> JobAddresses:
        """Return new addresses for a job that makes `boots`; those of an earlier job become invalid."""
        self._results.clear()
        self._disputed.clear()
        self._job = JobAddresses(self.url(), secrets.token_hex(16), {boot: secrets.token_hex(16) for boot in boots})
        return self._job

    def close_job(self) -> None:
        """Serve and take nothing until the next job is opened."""
        self._job = None

    def url(self, host: str | None = None) -> str:
        """Return the server's URL. Devices may reach this machine under another name (`host`) than LAVA does."""
        return f"http://{host or self._host}:{self.port}"

    def result(self, boot: str) -> bytes | None:
        """Return the results archive of a boot; None until the device has sent it.

        Raises ResultsUnreadable if another one was sent too: whoever can read the job in LAVA, such as an earlier
        kernel of it, can send one before the device does.
        """
        if boot in self._disputed:
            raise ResultsUnreadable("two different archives were sent, of which one is not the device's")
        return self._results.get(boot)

    # --- inside -------------------------------------------------------------------------------------------------

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(START_TIMEOUT_S)  # type: ignore[arg-type]

    async def _start(self) -> None:
        app = web.Application(client_max_size=RESULT_LIMIT)
        app.router.add_get("/{secret}/files/{name}", self._get_file)
        app.router.add_post("/{secret}/results/{boot}", self._receive_result)
        app.router.add_post("/{secret}/callback", self._receive_callback)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._listen, 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _get_file(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.match_info["name"])
        if path is None or not self._is_of_job(request):
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _receive_result(self, request: web.Request) -> web.Response:
        boot, job = request.match_info["boot"], self._job
        if job is None or not _is_secret(request, job.boots.get(boot, "")):
            raise web.HTTPNotFound
        try:
            data = job_archives.decode_archive(await request.text(), request.headers.get("X-Sha256", ""))
        except ResultsUnreadable as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        if self._results.setdefault(boot, data) != data:
            self._disputed.add(boot)
            raise web.HTTPConflict(text="the results of this boot have arrived already\n")
        self._notify()
        return web.Response(text="taken\n")

    async def _receive_callback(self, request: web.Request) -> web.Response:
        if not self._is_of_job(request):
            raise web.HTTPNotFound
        self._notify()
        return web.Response(text="thanks\n")

    def _is_of_job(self, request: web.Request) -> bool:
        return self._job is not None and _is_secret(request, self._job.secret)


def _is_secret(request: web.Request, secret: str) -> bool:
    """Return True if the request's path begins with `secret`; an empty one matches nothing."""
    return bool(secret) and hmac.compare_digest(request.match_info["secret"].encode(), secret.encode())

"""Download mails from a public-inbox archive or a Patchwork, whatever it sends or does not send.

The archive is the operator's choice, but its answers are not trusted: time, size (compressed and expanded) and
redirects are limited, and the client connects only to addresses that it has checked. The content is not looked at
beyond its first bytes; `parse_thread` reads it in the sandbox.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
import zlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from wqlab_contracts.hosts import find_private, host_problem
from wqlab_contracts.specs import Archive

from ..addresses import Resolve, resolve_host
from ..failures import InfrastructureError
from ..tls import ssl_context
from ..workspace import Workspace

MIB = 1 << 20
_REDIRECTS = 5
_PORTS = {"https": 443, "http": 80}
_TICK_S = 1.0
_USER_AGENT = "wqlab (fetches the series that its users name)"
_GZIP = b"\x1f\x8b"
_LATER_ADVICE = "Try again in some minutes, or submit the series as an mbox."
_LOOK_ADVICE = "Open the URL in a browser. If the archive works there, its operator may be refusing programs."
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Limits on one download, and on all of them together."""

    compressed_bytes: int = 16 * MIB
    expanded_bytes: int = 64 * MIB
    answer_s: float = 60.0
    """Time for one answer, including its redirects."""
    total_s: float = 150.0
    """Time for all downloads of a job, including repeated ones."""
    pauses_s: tuple[float, ...] = (1.0, 4.0)
    """Pauses before an answer that failed for the moment is asked for again."""


class ArchiveUnavailable(InfrastructureError):
    """The archive does not answer as an archive does; it may later."""


class TooLarge(Exception):
    """The mails are larger than the limits; the text names the limit."""


@dataclass(frozen=True)
class _Download:
    """What to ask an archive, and where to write the mails that it answers with."""

    archive: Archive
    method: Literal["GET", "POST"]
    path: Path
    begin: bytes = _GZIP
    """First bytes of such an answer; what is compressed is expanded."""


class _Temporary(ArchiveUnavailable):
    """The same request may succeed in a moment."""


class ArchiveClient:
    """Client of archives for one job.

    `on_tick` is called about once a second; an exception from it ends a download.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),
        on_tick: Callable[[], None] = lambda: None,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._workspace = workspace
        self._limits = limits
        self._on_tick = on_tick
        self._resolve = resolve
        self._ends_at = time.monotonic() + limits.total_s

    def thread(self, archive: Archive, message_id: str, path: Path) -> bool:
        """Write the mbox of a message's thread to `path`; return False if the archive does not have the message.

        Raises ArchiveUnavailable, and TooLarge.
        """
        return self._run(self._repeat(_Download(archive, "GET", path), archive.thread(message_id)))

    def search(self, archive: Archive, query: str, path: Path) -> bool:
        """Write the threads that match a query to `path`; return False if there are none or the archive has no search.

        Raises ArchiveUnavailable, and TooLarge.
        """
        url = archive.results(query)
        return url is not None and self._run(self._repeat(_Download(archive, "POST", path), url))

    def file(self, archive: Archive, url: str, path: Path, *, begin: bytes) -> bool:
        """Write an answer that is not compressed to `path`; return False if the archive does not have the URL.

        `begin`: the first bytes of such an answer. Raises ArchiveUnavailable, and TooLarge.
        """
        return self._run(self._repeat(_Download(archive, "GET", path, begin), url))

    def _run(self, download: Coroutine[Any, Any, T]) -> T:
        async def with_ticks() -> T:
            task = asyncio.ensure_future(download)
            try:
                while not task.done():
                    await asyncio.wait({task}, timeout=_TICK_S)
                    self._on_tick()
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task
            return task.result()

        return asyncio.run(with_ticks())

    async def _repeat(self, download: _Download, url: str) -> bool:
        """Download, again after each pause while the failure is temporary and there is time."""
        for pause_s in (*self._limits.pauses_s, None):
            try:
                return await self._download(download, url)
            except _Temporary:
                if pause_s is None or time.monotonic() + pause_s >= self._ends_at:
                    raise
                await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    async def _download(self, download: _Download, url: str) -> bool:
        archive = download.archive
        seconds = max(1.0, min(self._limits.answer_s, self._ends_at - time.monotonic()))
        proxied = not archive.private and "https" in urllib.request.getproxies()
        try:
            async with (
                asyncio.timeout(seconds),
                httpx.AsyncClient(
                    timeout=None,  # noqa: S113 - asyncio.timeout bounds the whole exchange
                    verify=ssl_context(self._workspace),
                    trust_env=proxied,
                    follow_redirects=False,
                ) as client,
            ):
                for _ in range(_REDIRECTS + 1):
                    parts = self._allowed(archive, url, proxied=proxied)
                    address = None if proxied else await self._address(archive, parts)
                    target = await self._exchange(download, client, url, address)
                    if isinstance(target, bool):
                        return target
                    url = target
        except TimeoutError as error:
            raise _Temporary(
                f"archive {archive.name} did not answer within {seconds:.0f} s", excerpt=url, advice=_LATER_ADVICE
            ) from error
        except httpx.HTTPError as error:
            reason = str(error) or repr(error)
            raise _Temporary(
                f"archive {archive.name} cannot be read", excerpt=f"{url}\n{reason}", advice=_LATER_ADVICE
            ) from error
        raise ArchiveUnavailable(f"archive {archive.name} redirects more than {_REDIRECTS} times", excerpt=url)

    async def _exchange(
        self, download: _Download, client: httpx.AsyncClient, url: str, address: str | None
    ) -> bool | str:
        """Request `url` from `address` only; return whether there are mails, or the URL of a redirect."""
        archive, method = download.archive, download.method
        try:
            request_url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ArchiveUnavailable(f"archive {archive.name} redirects to {url[:200]!r}: {error}") from error
        headers = {
            "User-Agent": _USER_AGENT,
            "Accept-Encoding": "identity",
            "Host": request_url.netloc.decode("ascii"),
        }
        extensions = {"sni_hostname": request_url.raw_host.decode("ascii")}
        target = request_url if address is None else request_url.copy_with(host=address.partition("%")[0])
        async with client.stream(method, target, headers=headers, extensions=extensions) as answer:
            status = answer.status_code
            if status in (307, 308) or (status in (301, 302, 303) and method == "GET"):
                return _redirect_target(archive, url, answer.headers.get("location", ""))
            if status in (300, 404):
                return False
            if status == 429 or status >= 500:
                raise _Temporary(f"archive {archive.name} answers with error status {status}", excerpt=url)
            if status != 200:
                raise ArchiveUnavailable(
                    f"archive {archive.name} refuses the request with status {status}", excerpt=url, advice=_LOOK_ADVICE
                )
            self._check_length(answer)
            with download.path.open("wb") as file:
                await self._expand(download, answer, file, url)
        return True

    def _check_length(self, answer: httpx.Response) -> None:
        announced = answer.headers.get("content-length", "")
        if announced.isascii() and announced.isdigit() and int(announced[:20]) > self._limits.compressed_bytes:
            raise TooLarge(f"{self._limits.compressed_bytes // MIB} MiB of compressed mails")

    async def _expand(self, download: _Download, answer: httpx.Response, file: IO[bytes], url: str) -> None:
        """Write the mails of a response to a file. Raises TooLarge when their decompressed size exceeds the limit."""
        archive, packed, first = download.archive, download.begin == _GZIP, len(download.begin)
        inflate = zlib.decompressobj(wbits=31)
        received = written = 0
        begin = b""
        async for piece in answer.aiter_raw():
            received += len(piece)
            if received > self._limits.compressed_bytes:
                raise TooLarge(f"{self._limits.compressed_bytes // MIB} MiB of {'compressed ' if packed else ''}mails")
            begin = begin if len(begin) >= first else (begin + piece)[:200]
            if len(begin) >= first and not begin.startswith(download.begin):
                kind = answer.headers.get("content-type", "")[:80] or "other content"
                raise ArchiveUnavailable(
                    f"archive {archive.name} answers with {kind} instead of mails",
                    excerpt=f"{url}\n{begin.decode(errors='replace')}",
                    advice=_LOOK_ADVICE,
                )
            if not packed:
                file.write(piece)
            left = piece if packed else b""
            while left:
                try:
                    mails = inflate.decompress(left, self._limits.expanded_bytes - written + 1)
                except zlib.error as error:
                    raise _Temporary(
                        f"archive {archive.name} sends a damaged gzip file: {error}", excerpt=url
                    ) from error
                written += len(mails)
                if written > self._limits.expanded_bytes:
                    raise TooLarge(f"{self._limits.expanded_bytes // MIB} MiB of mails")
                file.write(mails)
                left = inflate.unconsumed_tail
                if inflate.eof and inflate.unused_data:
                    left, inflate = inflate.unused_data, zlib.decompressobj(wbits=31)
            await asyncio.sleep(0)  # a stream that never pauses would not let the time run out
        if (packed and not inflate.eof) or len(begin) < first:
            raise _Temporary(f"archive {archive.name} ended its answer in the middle of the mails", excerpt=url)

    # --- addresses ----------------------------------------------------------------------------------------------

    def _allowed(self, archive: Archive, url: str, *, proxied: bool) -> SplitResult:
        """Return the parts of a URL of the archive, or of a redirect. Raises ArchiveUnavailable if it is refused."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError as error:
            raise ArchiveUnavailable(f"archive {archive.name} redirects to {url[:200]!r}: {error}") from error
        own = _is_own(archive, parts)
        if not parts.hostname or port is None or not (parts.scheme == "https" or (own and archive.private)):
            raise ArchiveUnavailable(f"archive {archive.name} redirects to {url[:200]!r}, which is not https")
        if not own and (problem := host_problem(parts.hostname)) is not None:
            raise ArchiveUnavailable(f"archive {archive.name} redirects to a host that is refused: {problem}")
        if parts.username is not None or parts.password is not None:
            raise ArchiveUnavailable(f"archive {archive.name} redirects to a URL with credentials")
        if proxied and not own:
            raise ArchiveUnavailable(
                f"archive {archive.name} redirects to {parts.hostname}, and a proxy hides the address of that host",
                advice="Name that host in the archive's `url` in intake/archives.yaml.",
            )
        return parts

    async def _address(self, archive: Archive, parts: SplitResult) -> str:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        try:
            addresses = await asyncio.to_thread(self._resolve, host, port)
        except (OSError, UnicodeError) as error:
            raise _Temporary(f"archive {archive.name}: no address for {host}", excerpt=str(error)) from error
        private = find_private(addresses)
        if private is not None and not (archive.private and _is_own(archive, parts)):
            raise ArchiveUnavailable(
                f"archive {archive.name}: {host} is the private address {private}",
                advice="An archive of the lab's own network needs `private: true` in intake/archives.yaml; what it"
                " redirects to must be public.",
            )
        return addresses[0]


def _redirect_target(archive: Archive, url: str, location: str) -> str:
    try:
        return str(urljoin(url, location))
    except ValueError as error:
        raise ArchiveUnavailable(f"archive {archive.name} redirects to {location[:200]!r}: {error}") from error


def _is_own(archive: Archive, parts: SplitResult) -> bool:
    """Return True if the URL has the scheme, host and port that the operator's file gives the archive."""
    listed = urlsplit(archive.url)
    return (parts.scheme, parts.hostname, parts.port) == (listed.scheme, listed.hostname, listed.port)

"""HTTP client of the OpenID provider, whose responses are bounded in size and time."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from authlib.integrations.httpx_client import AsyncOAuth2Client

RESPONSE_BYTES = 256 << 10
"""Largest response that is read: keys and discovery documents have some kilobytes."""
RESPONSE_TIME_S = 15.0
"""Longest time from a request to the end of its response, also of a provider that sends a byte now and then."""


class ProviderUnavailable(Exception):
    """The provider cannot be reached, or its answer is invalid; the text tells users and operators which."""


class BoundedClient(AsyncOAuth2Client):  # type: ignore[misc]  # Authlib has no types
    """Authlib's client, with limits. It follows no redirect: the client secret and codes go to named URLs only."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request and return the whole response.

        Raises ProviderUnavailable if there is none in time, if it is too large, compressed, or a redirect.
        """
        # Without compression the bytes that arrive are the bytes in memory.
        request.headers["Accept-Encoding"] = "identity"
        where = f"{request.url.host}{request.url.path}"
        options["stream"] = True
        try:
            async with asyncio.timeout(RESPONSE_TIME_S):
                response: httpx2.Response = await super().send(request, **options)
                try:
                    body = await _read(response, where)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise ProviderUnavailable(f"{where} has not answered within {RESPONSE_TIME_S:g} s") from error
        except httpx2.HTTPError as error:
            raise ProviderUnavailable(f"{where} cannot be reached: {str(error) or type(error).__name__}") from error
        kept = {name: value for name, value in response.headers.items() if name.lower() == "content-type"}
        return httpx2.Response(response.status_code, headers=kept, content=body, request=request)


async def _read(response: httpx2.Response, where: str) -> bytes:
    if response.is_redirect or response.has_redirect_location:
        raise ProviderUnavailable(f"{where} redirects elsewhere, and redirects are not followed")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ProviderUnavailable(f"{where} sends a compressed response although none was asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > RESPONSE_BYTES:
            raise ProviderUnavailable(f"{where} sends more than {RESPONSE_BYTES >> 10} KiB")
    return bytes(body)

"""Send a document to KernelCI's results database KCIDB: POST /submit with a bearer token.

The receiver answers 200 to anything that is JSON and has a valid token, and drops an invalid document later, so the
document is validated before it is sent. To send one twice does no harm: KCIDB merges objects of equal ids.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from wqlab_contracts.enums import AttemptOutcome
from wqlab_contracts.kcidb import parse_document

from ..settings import Settings
from .post_webhook import Result

LIMIT_S = 60.0
"""Time for connection, request and answer together."""
ANSWER_LIMIT = 4096
"""Bytes that are read of an answer."""
TOKEN_LIMIT = 16_384
_CHUNK = 65_536


class _TokenError(Exception):
    """The token cannot be used; the text says why."""


class _LateError(Exception):
    """The time for the attempt is over."""


def send(document: bytes, settings: Settings, *, limit_s: float = LIMIT_S) -> Result:
    """Validate a document and send it once. Redirects are not followed, and no answer makes this raise."""
    try:
        origin = parse_document(document).origin
    except ValueError as error:
        return Result(AttemptOutcome.REFUSED, problem=f"the document is not valid: {error}")
    if origin is None:
        return Result(AttemptOutcome.REFUSED, problem="the document is empty")
    if not settings.kcidb_url or settings.kcidb_token_file is None:
        return Result(AttemptOutcome.FAILED, problem="set WQLAB_KCIDB_URL and WQLAB_KCIDB_TOKEN_FILE")
    try:
        token = _read_token(settings.kcidb_token_file)
        allowed = _origin_of(token)
    except _TokenError as error:
        return Result(AttemptOutcome.FAILED, problem=f"{settings.kcidb_token_file.name}: {error}")
    if allowed != origin:
        problem = (
            f"the token is for the origin {allowed!r}, the document has {origin!r}: set WQLAB_KCIDB_ORIGIN={allowed}"
        )
        return Result(AttemptOutcome.REFUSED, problem=problem)
    return _post(f"{settings.kcidb_url.rstrip('/').removesuffix('/submit')}/submit", token, document, limit_s)


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(TOKEN_LIMIT + 1)
    except OSError as error:
        raise _TokenError(f"cannot be read: {error.strerror}") from None
    token = content.decode("ascii", errors="replace").strip()
    if not token or len(content) > TOKEN_LIMIT or not token.isprintable() or " " in token or not token.isascii():
        raise _TokenError("contains no token: it must have the token and nothing else")
    return token


def _origin_of(token: str) -> str:
    """Return the origin that a JSON Web Token is for. The receiver checks its signature; this reads its claims.

    Raises _TokenError if there is no such claim or the token has expired.
    """
    parts = token.split(".")
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        origin, expires = claims["origin"], claims.get("exp")
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, binascii.Error):
        raise _TokenError("is not a token of KCIDB: a JSON Web Token with the claim `origin`") from None
    if isinstance(expires, int | float) and expires <= time.time():
        raise _TokenError(
            f"expired at {datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M} UTC: ask KernelCI for another"
        )
    return str(origin)


def _post(url: str, token: str, document: bytes, limit_s: float) -> Result:
    deadline = time.monotonic() + limit_s
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(document)),
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "wqlab",
    }
    try:
        with (
            httpx.Client(trust_env=False, follow_redirects=False, timeout=limit_s) as client,
            client.stream("POST", url, headers=headers, content=_parts(document, deadline)) as response,
        ):
            return _judge(response.status_code, _beginning(response, deadline))
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        return Result(AttemptOutcome.FAILED, problem=f"no connection: {error or type(error).__name__}")
    except (_LateError, httpx.TimeoutException):
        return Result(AttemptOutcome.UNKNOWN, problem=f"no answer within {limit_s:g} s")
    except (httpx.HTTPError, OSError) as error:
        problem = f"the connection ended before the answer: {error or type(error).__name__}"
        return Result(AttemptOutcome.UNKNOWN, problem=problem)


def _parts(document: bytes, deadline: float) -> Iterator[bytes]:
    """Yield the document in parts, so that a receiver that reads slowly does not hold the sender beyond its time."""
    for start in range(0, len(document), _CHUNK):
        _check_time(deadline)
        yield document[start : start + _CHUNK]


def _beginning(response: httpx.Response, deadline: float) -> str:
    content = b""
    for chunk in response.iter_raw():
        _check_time(deadline)
        content += chunk
        if len(content) >= ANSWER_LIMIT:
            break
    return content[:ANSWER_LIMIT].decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise _LateError


def _judge(status: int, answer: str) -> Result:
    told = _fields(answer)
    message = told.get("message", "")
    if status == 200:
        if told.get("status") == "ok" and told.get("id"):
            return Result(AttemptOutcome.ACCEPTED, status, answer)
        problem = "the receiver answered 200, but not as KCIDB does; check WQLAB_KCIDB_URL"
        return Result(AttemptOutcome.FAILED, status, answer, problem)
    if status in {401, 403}:
        problem = f"the token was not accepted: {message or status}; ask KernelCI for another"
        return Result(AttemptOutcome.FAILED, status, answer, problem)
    if status in {400, 413, 422}:
        return Result(AttemptOutcome.REFUSED, status, answer, f"the document was not accepted: {message or status}")
    if 300 <= status < 400:
        problem = f"{status}: redirects are not followed, so that the token goes nowhere else; check WQLAB_KCIDB_URL"
        return Result(AttemptOutcome.FAILED, status, answer, problem)
    if status in {404, 405}:
        problem = f"{status}: there is no KCIDB at this address; check WQLAB_KCIDB_URL"
        return Result(AttemptOutcome.FAILED, status, answer, problem)
    return Result(
        AttemptOutcome.FAILED, status, answer, f"the receiver answered {status}{f': {message}' if message else ''}"
    )


def _fields(answer: str) -> dict[str, str]:
    """Return the fields of KCIDB's answer, {id, status, message}; empty if it is something else."""
    try:
        told = json.loads(answer)
    except ValueError:
        return {}
    return {name: str(value) for name, value in told.items() if value is not None} if isinstance(told, dict) else {}

"""Errors of the LAVA client."""

from __future__ import annotations

import httpx
import pytest

from wqlab_worker.backends.lava.lava_client import Lava, LavaRefused, LavaUnreachable


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (503, "", LavaUnreachable, "answers 503"),
        (200, "<html>", LavaUnreachable, "with JSON; is it a LAVA server"),
        (403, '{"detail": "Invalid token."}', LavaRefused, "Invalid token"),
        (400, '{"message": "Devices unavailable"}', LavaRefused, "Devices unavailable"),
    ],
)
def test_invalid_answers_are_described(status: int, body: str, error: type[Exception], words: str) -> None:
    lava = Lava("http://lava", "t")
    lava._http = httpx.Client(
        base_url="http://lava/api/v0.2/",
        transport=httpx.MockTransport(lambda request: httpx.Response(status, text=body)),
    )
    with pytest.raises(error, match=words):
        lava.version()


def test_unreachable_server_is_named() -> None:
    with pytest.raises(LavaUnreachable, match=r"LAVA at http://127\.0\.0\.1:9 does not answer"):
        Lava("http://127.0.0.1:9", "t").version()

"""Connection to one lab, and the two kinds of call that return a model."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from types import TracebackType
from typing import Self, TypeVar

from ..transport import Params, Retry, Transport, decode

T = TypeVar("T")
API = "/api/v1"


class Connection:
    """Connection to one lab, on which the calls are made."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retry: Retry | None = None,
        timeout_s: float = 60.0,
        on_retry: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._transport = Transport(
            url,
            token,
            retry=retry or Retry(),
            timeout_s=timeout_s,
            user_agent=f"wqlab-client/{version('wqlab-client')}",
            on_retry=on_retry,
            sleep=sleep or time.sleep,
        )

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, model: type[T], path: str, what: str, params: Params | None = None, retry: Retry | None = None) -> T:
        return decode(model, self._transport.call("GET", path, what=what, params=params, retry=retry), what)

    def _post(
        self,
        model: type[T],
        path: str,
        what: str,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        repeatable: bool = True,
    ) -> T:
        response = self._transport.call("POST", path, what=what, body=body, headers=headers, repeatable=repeatable)
        return decode(model, response, what)

"""A server that a worker talks to, and how it fails as servers do."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import httpx

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import BlockFinished, BootKey
from wqlab_worker.claims.server import JobRef, Server

REF = JobRef("runs", 7, 3)
BOOT = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)
Answer = Callable[[httpx.Request], httpx.Response]


def server(answer: Answer, patience_s: float = 5.0) -> Server:
    return Server(
        "http://lab", "secret", worker="w/1", lab="local", patience_s=patience_s, transport=httpx.MockTransport(answer)
    )


def event(number: int) -> BlockFinished:
    return BlockFinished(at=datetime.now(UTC), block=number, attempt=0)


class FakeLab:
    """Takes what a real server takes, idempotently, unless `broken`."""

    def __init__(self) -> None:
        self.broken = threading.Event()
        self.lose_answers = False
        self.status = 500
        self.blocks: list[int] = []
        self.requests = 0
        self.console = bytearray()
        self.order: list[str] = []
        self.truncated_after = 1 << 30

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.broken.is_set():
            if self.status:
                return httpx.Response(self.status, json={"detail": "away"})
            raise httpx.ConnectError("refused", request=request)
        body = json.loads(request.content)
        assert body["fence"] == 3
        if request.url.path.endswith("/events"):
            self.blocks += [e["block"] for e in body["events"] if e["block"] not in self.blocks]
            self.order += ["event"] * len(body["events"])
            answer = httpx.Response(204)
        else:
            data = base64.b64decode(body["data"])
            if body["offset"] <= len(self.console):
                self.console[body["offset"] : body["offset"] + len(data)] = data
            self.order.append("console")
            truncated = len(self.console) > self.truncated_after
            answer = httpx.Response(200, json={"next_offset": len(self.console), "truncated": truncated})
        if self.lose_answers and self.requests % 2:
            raise httpx.ReadTimeout("lost", request=request)
        return answer

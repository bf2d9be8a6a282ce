"""A fake server for the worker API, with outages and lost responses."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import httpx

from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, JobKind
from wqlab_contracts.messages import Artifact, BlockFinished, BlockPlan, BootKey, DeviceFacts, Kernel, RunJob
from wqlab_contracts.specs import BootMethod, Profile, Repetitions, TestPlan, Topology
from wqlab_worker.claims.server import JobRef, Server

REF = JobRef(JobKind.RUN, 7, 3)
BOOT = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)
CommandResult = Callable[[httpx.Request], httpx.Response]


def server(answer: CommandResult, retry_s: float = 3600.0) -> Server:
    return Server(
        "http://lab", "secret", worker="w/1", lab="local", retry_s=retry_s, transport=httpx.MockTransport(answer)
    )


def event(number: int) -> BlockFinished:
    return BlockFinished(at=datetime.now(UTC), block=number, attempt=0)


class FakeLab:
    """Accept events and console output idempotently, like the real server, unless `broken` is set."""

    def __init__(self) -> None:
        self.broken = threading.Event()
        self.lose_responses = False
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
        if self.lose_responses and self.requests % 2:
            raise httpx.ReadTimeout("lost", request=request)
        return answer


def run_job() -> RunJob:
    """A run of two blocks on device tiny-1."""
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="bzImage")
    topology = Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=1)
    profile = Profile(repetitions=Repetitions(warmup=0, untraced=1, traced=0), settings=["scope=cache"])
    plan = TestPlan.model_construct(name="plan", parser="plan", emulated=profile, hardware=profile)  # type: ignore[call-arg]
    return RunJob.model_construct(  # type: ignore[call-arg]
        run_id=7,
        device=DeviceFacts(
            name="tiny-1",
            device_type="tiny",
            lab="local",
            arch="x86_64",
            topology=topology,
            boot=BootMethod(),
            emulated=True,
            scratch=[],
        ),
        plan=plan,
        profile=profile,
        kernels={arm: Kernel(recipe="measure", build_id_gnu="ab", release="6.12", image=image) for arm in PAIR},
        blocks=[BlockPlan(block=number, arms=[Arm.BASELINE, Arm.CANDIDATE]) for number in range(2)],
    )

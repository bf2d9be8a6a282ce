"""Measure one server's capacity: requests of its API process, messages of its broker, bytes of its artifact store.

    python benchmarks/capacity.py        # beside a running lab (`make up`), as the lab's user

Sends requests from as many clients as a lab has workers and users (CLIENTS), for SECONDS each, and prints requests per
second with the median and the 99th percentile of the latency. docs/scaling.md interprets the figures.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from celery import Celery
from redis import Redis

from wqlab_contracts.celery_names import CELERY_CONFIG, JOB, lab_queue
from wqlab_server.settings import Settings
from wqlab_server.storage.artifacts import ArtifactStore

CLIENTS = 16
SECONDS = 5.0
MESSAGES = 3000
LARGE = 64 << 20
SMALL, SMALLS = 20_000, 300


@contextmanager
def tokens(url: str, admin: str) -> Iterator[list[str]]:
    """Create a token for each client, because the API limits the requests of a token."""
    with httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {admin}"}, trust_env=False) as api:
        made = [
            api.post("/tokens", json={"name": f"capacity {number}", "scopes": ["read"]}).raise_for_status().json()
            for number in range(CLIENTS)
        ]
        try:
            yield [each["token"] for each in made]
        finally:
            for each in made:
                api.post(f"/tokens/{each['id']}/revoke").raise_for_status()


async def asked(url: str, clients: Sequence[str], path: str) -> list[float]:
    """Return the latency of each answer in seconds, with one client for each token."""
    took: list[float] = []
    end = time.monotonic() + SECONDS

    async def one(client: httpx.AsyncClient, token: str) -> None:
        while (began := time.monotonic()) < end:
            answer = await client.get(path, headers={"Authorization": f"Bearer {token}"})
            answer.raise_for_status()
            took.append(time.monotonic() - began)

    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=60, trust_env=False) as client:
        await asyncio.gather(*(one(client, token) for token in clients))
    return sorted(took)


def api(url: str, admin: str, worker: str) -> None:
    print(f"{'API, one process':52}{'req/s':>8}{'median':>10}{'p99':>10}")
    with tokens(url, admin) as readers:
        for clients, path in (
            (readers, "/healthz"),
            ([worker] * CLIENTS, "/api/worker/v1/labs/local/leases"),
            (readers, "/api/v1/devices"),
            (readers, "/api/v1/submissions?limit=20"),
            (readers, "/api/v1/queue"),
        ):
            took = asyncio.run(asked(url, clients, path))
            median, slow = took[len(took) // 2], took[int(len(took) * 0.99)]
            print(f"{path:52}{len(took) / SECONDS:8.0f}{median * 1000:7.1f} ms{slow * 1000:7.1f} ms", flush=True)


def rate(what: str, number: float, unit: str, work: Callable[[], object]) -> None:
    began = time.monotonic()
    work()
    print(f"{what:52}{number / (time.monotonic() - began):8.0f} {unit}", flush=True)


def broker(url: str, socket: Path) -> None:
    queue = lab_queue("benchmark")
    app = Celery("benchmark", broker=url)
    app.conf.update(CELERY_CONFIG)
    redis = Redis(unix_socket_path=str(socket))
    print()
    with app.producer_pool.acquire(block=True) as producer:

        def send() -> None:
            for number in range(MESSAGES):
                app.send_task(JOB, kwargs={"id": number}, queue=queue, producer=producer)

        rate("broker: messages sent", MESSAGES, "/s", send)

    def take() -> None:
        for _ in range(MESSAGES):
            assert redis.brpop([queue], timeout=1) is not None

    rate("broker: messages taken, one worker", MESSAGES, "/s", take)
    redis.delete(queue)


def artifacts(folder: Path) -> None:
    store = ArtifactStore.of(
        Settings.model_construct(artifact_dir=folder, artifact_url="", artifact_options=None, artifact_limit=4 << 30)
    )
    large = os.urandom(LARGE)
    smalls = [os.urandom(SMALL) for _ in range(SMALLS)]
    print()
    sha256 = hashlib.sha256(large).hexdigest()
    rate("artifacts: written, hashed and synced, 64 MiB", LARGE / 1e6, "MB/s", lambda: store.put(sha256, [large]))
    rate("artifacts: read, 64 MiB", LARGE / 1e6, "MB/s", lambda: store.read(sha256))
    names: list[str] = []
    rate("artifacts: written, 20 kB each", SMALLS, "/s", lambda: names.extend(store.put_bytes(s)[0] for s in smalls))
    rate("artifacts: read, 20 kB each", SMALLS, "/s", lambda: [store.read(name) for name in names])


def main() -> int:
    state = Path(os.environ["WQLAB_STATE"])
    if not (state / "run/api.port").exists():
        print("no lab is running; start one with `make up`", file=sys.stderr)
        return 2
    url = f"http://127.0.0.1:{(state / 'run/api.port').read_text()}"
    api(url, (state / "keys/admin.token").read_text().strip(), (state / "keys/worker.token").read_text().strip())
    broker(f"redis+socket://{state}/run/redis.sock", state / "run/redis.sock")
    with tempfile.TemporaryDirectory(dir=state) as folder:
        artifacts(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())

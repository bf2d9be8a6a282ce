"""Frees labgrid places whose session died: labgrid's locks never expire, the lab's leases do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import structlog

from wqlab_contracts import bench_addresses
from wqlab_contracts.specs import ExternalPower

from .backends.labgrid import clear
from .backends.lava.pool import look
from .backends.session_messages import Clearing, Held
from .claims.server import Lease, Server, ServerRefused, StaleFence
from .settings import Settings

log = structlog.get_logger()

INTERVAL_S = 30.0
LAVA_INTERVAL_S = 10.0
"""LAVA's users take and give back its devices all the time."""
REAP_INTERVAL_S = 120.0
"""A look at the places starts a process that imports labgrid: half a second of a core."""


def dead(held: Sequence[Held], leases: Sequence[Lease]) -> list[Held]:
    """Places whose holder has no live lease. Holder names carry run and fence, so a lease names its one session."""
    live = {(lease.device, f"run-{lease.run_id}-fence-{lease.fence}") for lease in leases}
    return [item for item in held if (item.place, item.holder.partition("/")[2]) not in live]


def reap(
    coordinator: str,
    lab: str,
    leases: Callable[[], Sequence[Lease]],
    power: Callable[[], dict[str, ExternalPower]],
    clearing: Callable[[Clearing], list[Held]] = clear,
) -> list[Held]:
    """Powers off and frees what dead sessions hold; returns it. `power`: how devices without a power port are switched.

    Holders are listed *before* the leases: a session acquires its place after its lease, so one that is listed and
    has no lease is dead, whatever happens meanwhile.
    """
    held = clearing(Clearing(coordinator=coordinator, lab=lab))
    if not held:
        return []
    to_free = dead(held, leases())
    if not to_free:
        return []
    log.warning("freeing places of dead sessions", places=[item.place for item in to_free])
    return clearing(Clearing(coordinator=coordinator, lab=lab, free=to_free, power=power()))


def refused(state: Path) -> dict[str, str] | None:
    """Device types that the bench beside this worker cannot build devices of -> why; None while there is no bench."""
    try:
        return bench_addresses.read(state).refused
    except FileNotFoundError:
        return None


def start(settings: Settings, server: Server, capacity: int) -> threading.Thread:
    """A lab worker's standing duties, for as long as the process lives: say how many devices it can drive at once and
    what its LAVA says of them, and, at first and then now and again, free what dead sessions hold."""
    pause = threading.Event()
    next_reap = time.monotonic()

    def live() -> list[tuple[int, int]]:
        return [(lease.run_id, lease.fence) for lease in server.leases(settings.lab)]

    def duties() -> None:
        nonlocal next_reap
        if settings.lava_url:
            token = settings.lava_token.get_secret_value()
            pool = look(settings.lava_url, token, settings.lab, live)
            server.publish_capacity(settings.lab, capacity, None, pool)
            return
        server.publish_capacity(settings.lab, capacity, refused(settings.state))
        if time.monotonic() >= next_reap:
            lab = settings.lab
            reap(settings.coordinator, lab, lambda: server.leases(lab), lambda: server.power(lab))
            next_reap = time.monotonic() + REAP_INTERVAL_S

    def forever() -> None:
        while True:
            try:
                duties()
            except (httpx.TransportError, ServerRefused, StaleFence, ValueError) as error:
                log.warning("reaper skipped a round", error=repr(error))
            pause.wait(LAVA_INTERVAL_S if settings.lava_url else INTERVAL_S)

    thread = threading.Thread(target=forever, name="reaper", daemon=True)
    thread.start()
    return thread

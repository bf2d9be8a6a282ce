"""Free labgrid places of dead sessions. Labgrid's locks never expire, but the lab's leases do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import structlog

from wqlab_contracts import bench_addresses
from wqlab_contracts.messages import LabPower

from .backends.labgrid import clear
from .backends.lava.pool_report import read_pool
from .backends.session_messages import ClearRequest, HeldPlace
from .claims.server import Lease, Server, ServerRefused, StaleFence
from .settings import Settings

log = structlog.get_logger()

INTERVAL_S = 30.0
LAVA_INTERVAL_S = 10.0
"""Interval with LAVA, whose other users take and return devices at any time."""
REAP_INTERVAL_S = 120.0
"""Interval between checks of the labgrid places.

Each starts a process that imports labgrid: half a second of CPU time.
"""


def find_stale(held: Sequence[HeldPlace], leases: Sequence[Lease]) -> list[HeldPlace]:
    """Return the places whose holder has no live lease. A holder's name has run and fence, so it matches one lease."""
    live = {(lease.device, f"run-{lease.run_id}-fence-{lease.fence}") for lease in leases}
    return [item for item in held if (item.place, item.holder.partition("/")[2]) not in live]


def reap(
    coordinator: str,
    lab: str,
    leases: Callable[[], Sequence[Lease]],
    power: Callable[[], LabPower],
    clearing: Callable[[ClearRequest], list[HeldPlace]] = clear,
) -> list[HeldPlace]:
    """Power off and free the places that dead sessions hold, and return these places.

    Devices with an operating system of their own keep their power, because that may be running. Holders are listed
    *before* leases: a session acquires its place after its lease, so a holder that is listed and has no lease then is
    dead.
    """
    held = clearing(ClearRequest(coordinator=coordinator, lab=lab))
    if not held:
        return []
    to_free = find_stale(held, leases())
    if not to_free:
        return []
    log.warning("freeing places of dead sessions", places=[item.place for item in to_free])
    known = power()
    return clearing(
        ClearRequest(
            coordinator=coordinator, lab=lab, free=to_free, power=known.power, own_systems=set(known.own_systems)
        )
    )


def refused_device_types(state: Path) -> dict[str, str] | None:
    """Return device type -> reason why this machine's virtual bench cannot emulate it; None if no bench is running."""
    try:
        return bench_addresses.read(state).refused
    except FileNotFoundError:
        return None


def start(settings: Settings, server: Server, capacity: int) -> threading.Thread:
    """Start the thread with a lab worker's periodic duties, which runs until the process ends.

    It reports to the server how many devices the worker can drive at once and the state of LAVA's devices. With labgrid
    it also frees the places of dead sessions, at once and then every REAP_INTERVAL_S seconds.
    """
    pause = threading.Event()
    next_reap = time.monotonic()

    def live_leases() -> list[tuple[int, int]]:
        return [(lease.run_id, lease.fence) for lease in server.leases(settings.lab)]

    def run_duties() -> None:
        nonlocal next_reap
        if settings.lava_url:
            token = settings.lava_token.get_secret_value()
            pool = read_pool(settings.lava_url, token, settings.lab, live_leases)
            server.publish_capacity(settings.lab, capacity, None, pool)
            return
        server.publish_capacity(settings.lab, capacity, refused_device_types(settings.state))
        if time.monotonic() >= next_reap:
            lab = settings.lab
            reap(settings.coordinator, lab, lambda: server.leases(lab), lambda: server.power(lab))
            next_reap = time.monotonic() + REAP_INTERVAL_S

    def forever() -> None:
        while True:
            try:
                run_duties()
            except (httpx.TransportError, ServerRefused, StaleFence, ValueError) as error:
                log.warning("reaper failed; it tries again at the next interval", error=repr(error))
            pause.wait(LAVA_INTERVAL_S if settings.lava_url else INTERVAL_S)

    thread = threading.Thread(target=forever, name="reaper", daemon=True)
    thread.start()
    return thread

"""Derive a device's availability from what its lab's LAVA server reported. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from wqlab_contracts.messages import LavaPool
from wqlab_contracts.specs import Backend

MAX_AGE = timedelta(seconds=120)
"""Age at which a report is no longer used. The worker of a LAVA lab reports every ten seconds."""
USABLE_HEALTH = {"Good", "Unknown"}
"""LAVA's health values with which LAVA schedules jobs on a device."""


@dataclass(frozen=True)
class PublishedPool:
    """The last report of a lab's worker about its LAVA server."""

    pool: LavaPool | None
    at: datetime | None


@dataclass(frozen=True)
class Availability:
    """State of one device in its lab's own queue."""

    unavailable_reason: str = ""
    """Why the device cannot be used now, whatever its health is in this lab; empty when it can be used."""
    backlog: float = 0.0
    """Jobs of other LAVA users that run before a new job, per device of the type."""
    held_elsewhere: str = ""
    """LAVA's state of a device that another LAVA user holds; empty when the device is idle or runs our job."""


def availability(
    device: str, lab: str, backend: Backend, published: Mapping[str, PublishedPool], now: datetime, *, ours: bool
) -> Availability:
    """Return the availability of `device`. `ours`: a run of this server has the device."""
    if backend != "lava":
        return Availability()
    report = published.get(lab)
    if report is None or report.pool is None or report.at is None:
        return Availability(f"no worker of lab {lab} has reported its LAVA devices yet")
    if now - report.at > MAX_AGE:
        minutes = round((now - report.at).total_seconds() / 60)
        return Availability(f"lab {lab} was last seen {minutes} min ago")
    pool = report.pool
    if pool.problem:
        return Availability(pool.problem)
    found = pool.devices.get(device)
    if found is None:
        return Availability(f"LAVA at {pool.url} has no device {device}")
    if found.health not in USABLE_HEALTH:
        return Availability(f"LAVA reports health {found.health}")
    peers = sum(other.device_type == found.device_type for other in pool.devices.values())
    queued_per_device = pool.queued.get(found.device_type, 0) / peers
    held_elsewhere = found.state != "Idle" and not ours
    return Availability(
        backlog=queued_per_device + held_elsewhere,
        held_elsewhere=f"LAVA reports {found.state} (another user's job)" if held_elsewhere else "",
    )

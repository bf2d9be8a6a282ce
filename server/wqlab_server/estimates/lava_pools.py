"""What a lab's own server says of its devices: whether one can be had now, and how much stands before it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from wqlab_contracts.messages import LavaPool
from wqlab_contracts.specs import Backend

STALE = timedelta(seconds=120)
"""A LAVA lab's worker tells every ten seconds."""
USABLE = {"Good", "Unknown"}


@dataclass(frozen=True)
class Published:
    pool: LavaPool | None
    at: datetime | None


@dataclass(frozen=True)
class Standing:
    away: str = ""
    """Why the device cannot be had now, whatever its health here; empty when it can."""
    backlog: float = 0.0
    """Jobs of others that stand before a new one, per device of its type."""
    elsewhere: str = ""
    """That others have it; empty when it is idle or ours."""


def standing(
    device: str, lab: str, backend: Backend, published: Mapping[str, Published], now: datetime, *, ours: bool
) -> Standing:
    """`ours`: a run of this lab has the device."""
    if backend != "lava":
        return Standing()
    known = published.get(lab)
    if known is None or known.pool is None or known.at is None:
        return Standing(f"no worker of lab {lab} has told of its LAVA yet")
    if now - known.at > STALE:
        return Standing(f"lab {lab} was not heard of for {round((now - known.at).total_seconds() / 60)} min")
    pool = known.pool
    if pool.problem:
        return Standing(pool.problem)
    found = pool.devices.get(device)
    if found is None:
        return Standing(f"LAVA at {pool.url} has no device {device}")
    if found.health not in USABLE:
        return Standing(f"LAVA says {found.health}")
    peers = sum(other.device_type == found.device_type for other in pool.devices.values())
    before = pool.queued.get(found.device_type, 0) / peers
    others = found.state != "Idle" and not ours
    return Standing(backlog=before + others, elsewhere=f"LAVA says {found.state}, for others" if others else "")

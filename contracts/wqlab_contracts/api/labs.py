"""REST resources of labs that are not the server's own machine: invited, joined, removed."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..messages import LavaPool, Message
from ..specs import Backend, Name

JOIN_PREFIX = "wqj_"
"""A join token is `wqj_SECRET`, and where the server has a private CA `wqj_SECRET.SHA256` of its certificate: so the
lab host knows whom it talks to before it has the certificate."""


class LabInvitation(Message):
    again: bool = False
    """For a lab that has joined: a host that joins by it takes the place of the one before, whose credentials end."""
    valid_s: int = Field(default=3600, ge=60, le=7 * 86400)


class LabInvited(Message):
    lab: str
    url: str
    """Where the lab's host reaches this server."""
    token: str
    """Shown once; only its hash is kept."""
    expires_at: datetime


class LabJoin(Message):
    token: str = Field(max_length=200)
    """Without its part after the dot."""


class LabJoined(Message):
    """What a lab host needs; each secret is shown this once."""

    lab: Name
    worker_token: str
    """Claims the runs of this lab's devices and nothing else."""
    broker_url: str
    """With a user that may take messages from this lab's queue and nothing else."""


class LabView(Message):
    name: str
    joined_at: datetime | None
    """null: it has no credentials of its own, as the lab on the server's machine."""
    invited_by: str | None
    removed_at: datetime | None
    last_seen_at: datetime | None
    """When its worker last asked for anything, to the minute."""
    capacity: int | None
    """Devices that its worker runs at once; null before it has said so."""
    devices: int
    """Units of the device-types folder that name it."""
    backend: Backend
    """How its worker reaches them."""
    free: int
    """Healthy or to be checked, and to be had now."""
    busy: int
    """Leased to a run, or at work for others."""
    away: int
    """Not to be had now, or quarantined."""
    problem: str
    """Why none can be had; empty when one can."""
    pool: LavaPool | None
    """Of a LAVA lab: what its server says of all its devices, ours or not."""

"""REST resources of remote labs: invite, join and remove a lab."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..jsontypes import JsonBool, JsonInt
from ..messages import LavaPool, Message
from ..specs import Backend, Name

JOIN_PREFIX = "wqj_"
"""A join token is `wqj_SECRET`. If the server has a private CA it is `wqj_SECRET.SHA256`, with the hash of the
certificate, so that the lab host can verify the server before it has the certificate."""


class LabInvitation(Message):
    """Body of a request to invite a lab."""

    again: JsonBool = False
    """Invite a lab that has joined already: the new host replaces the previous one, whose credentials are revoked."""
    valid_s: JsonInt = Field(default=3600, ge=60, le=7 * 86400)


class LabInvited(Message):
    """An invitation with its join token."""

    lab: str
    url: str
    """URL at which the lab's host reaches this server."""
    token: str
    """Shown once; only its hash is kept."""
    expires_at: datetime


class LabJoin(Message):
    """Body of a request to join as an invited lab."""

    token: str = Field(max_length=200)
    """The join token without the part after the dot."""


class LabJoined(Message):
    """Credentials of a lab host; each secret is shown only this once."""

    lab: Name
    worker_token: str
    """Token with which a worker can claim only runs of this lab's devices."""
    broker_url: str
    """Broker URL with a user that can only take messages from this lab's queue."""


class LabView(Message):
    """A lab with its worker and devices."""

    name: str
    joined_at: datetime | None
    """null for a lab without its own credentials, such as on the server's machine."""
    invited_by: str | None
    removed_at: datetime | None
    last_seen_at: datetime | None
    """Time of its worker's last request, to the minute."""
    capacity: int | None
    """Number of devices that its worker runs at once; null until reported."""
    devices: int
    """Number of devices that the device-types folder assigns to it."""
    backend: Backend
    """Backend of the lab's devices."""
    free: int
    """Devices available now, healthy or to be checked."""
    busy: int
    """Devices leased to a run, or in use by others."""
    away: int
    """Devices unavailable or quarantined."""
    problem: str
    """Reason why no device is available; empty if one is."""
    pool: LavaPool | None
    """For a LAVA lab: the state of all devices of its server, including those of others."""

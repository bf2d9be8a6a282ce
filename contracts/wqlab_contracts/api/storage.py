"""REST resource of the lab's storage."""

from __future__ import annotations

from datetime import datetime

from ..messages import Message
from ..messages.storage import StorageArea


class MachineStorage(Message):
    """Storage of one machine: the server, or one that runs workers."""

    machine: str
    reported_at: datetime
    areas: list[StorageArea]


class StorageView(Message):
    """Storage of all machines of the lab, and what is pinned."""

    machines: list[MachineStorage]
    pinned: list[int]
    """Ids of the pinned submissions, newest first; at most 1000."""
